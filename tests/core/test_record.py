"""Records: to whoever looks at them they are dataclasses, but they are made without the module `dataclasses`."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from typing import Any, ClassVar

import pytest

from podium._record import field, record, replace


@record(frozen=True)
class Point:
    """A record with a default, a field that is not shown, and what is no field."""

    x: int
    y: int = 2
    label: str = field(default="", repr=False)
    origin: ClassVar[int] = 7

    def moved(self) -> Point:
        return replace(self, x=self.x + 1)


@record
class Trail:
    """A record that changes."""

    points: list[Point] = field(default_factory=list)
    owner: object = None


@dataclasses.dataclass(frozen=True)
class PointClass:
    """The dataclass that `Point` is like."""

    x: int
    y: int = 2
    label: str = dataclasses.field(default="", repr=False)
    origin: ClassVar[int] = 7


def test_a_record_is_made_compared_and_shown_as_a_dataclass_is() -> None:
    """Construction, defaults, equality, hash and text are those of a dataclass; a ClassVar is no field."""
    point = Point(1, label="a")
    assert (point.x, point.y, point.label, Point.origin) == (1, 2, "a", 7)
    assert point == Point(1, 2, "a") != Point(1, 2, "b")
    assert point != PointClass(1, 2, "a")
    assert len({point, Point(1, 2, "a"), Point(2)}) == 2
    assert repr(point) == repr(PointClass(1)).replace("PointClass", "Point")
    assert str(inspect.signature(Point)).replace("'", "") == str(inspect.signature(PointClass)).replace("'", "")


@pytest.mark.parametrize("many", [False, True], ids=["first objects", "further objects"])
def test_wrong_arguments_are_refused_in_the_words_of_a_dataclass(many: bool) -> None:
    """What is wrong with a call is said as Python says it of a written ``__init__``, from the first object on."""

    def fresh(kind: Any, name: str) -> Any:
        body = {"__annotations__": {"x": "int", "y": "int"}, "y": 2, "__module__": __name__, "__qualname__": "Point"}
        return kind(frozen=True)(type(name, (), body))

    ours, theirs = fresh(record, "Point"), fresh(dataclasses.dataclass, "Point")
    if many:
        assert [ours(index).x for index in range(100)] == list(range(100))
    calls: list[tuple[tuple[int, ...], dict[str, int]]] = [
        ((), {}),
        ((1, 2, 3), {}),
        ((1,), {"x": 1}),
        ((1,), {"z": 1}),
        ((), {"y": 1}),
    ]
    for arguments, keywords in calls:
        with pytest.raises(TypeError) as expected:
            theirs(*arguments, **keywords)
        with pytest.raises(TypeError) as found:
            ours(*arguments, **keywords)
        assert str(found.value) == str(expected.value)
    assert (ours(1).y, ours(x=1, y=3).y, repr(ours(1))) == (2, 3, "Point(x=1, y=2)")


def test_a_frozen_record_does_not_change() -> None:
    """Assigning and deleting raise what a dataclass raises, also for names that are no fields."""
    point = Point(1)
    for name in ("x", "other"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(point, name, 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x  # type: ignore[misc]
    assert point == Point(1)


def test_a_record_that_changes_has_defaults_of_its_own_and_no_hash() -> None:
    """A default that is made anew is not shared, and what can change cannot be a key."""
    first, second = Trail(), Trail()
    first.points.append(Point(1))
    assert (second.points, first == second) == ([], False)
    with pytest.raises(TypeError, match="unhashable"):
        hash(first)
    first.owner = first
    assert repr(first) == "Trail(points=[Point(x=1, y=2)], owner=...)"


def test_dataclasses_take_records_for_their_own() -> None:
    """`dataclasses.fields`, `replace` and `asdict`, and a match statement work on records."""
    point = Point(1, 5, "a")
    assert dataclasses.is_dataclass(point)
    assert [each.name for each in dataclasses.fields(Point)] == ["x", "y", "label"]
    assert [each.repr for each in dataclasses.fields(point)] == [True, True, False]
    assert dataclasses.replace(point, y=6) == replace(point, y=6) == Point(1, 6, "a")
    assert dataclasses.asdict(point) == {"x": 1, "y": 5, "label": "a"}
    assert point.moved() == Point(2, 5, "a")
    match point:
        case Point(x, y):
            assert (x, y) == (1, 5)


def test_records_are_copied_and_pickled() -> None:
    """A copy, and what comes back from another process, equals the record."""
    point = Point(1, 5, "a")
    assert copy.copy(point) == copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point


def test_a_record_can_be_inherited_from() -> None:
    """A dataclass has the fields of the record that it inherits from; another subclass calls its ``__init__``."""

    @dataclasses.dataclass(frozen=True)
    class Place(Point):
        z: int = 0

    class Named(Trail):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    assert (Place(1, z=3).z, Place(1, z=3).y) == (3, 2)
    assert (Named("a").points, Named("a").name) == ([], "a")


def test_records_do_not_load_dataclasses() -> None:
    """PRF-03: making a record class and a record imports neither `dataclasses` nor `inspect`."""
    code = (
        "import sys\n"
        "from podium.errors import Diagnostic\n"
        "print(Diagnostic('a', 1, 2, 'error', 'b'), hash(Diagnostic('a', 1, 2, 'error', 'b')) != 0)\n"
        "assert not {'dataclasses', 'inspect'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Diagnostic(file='a', line=1, column=2, severity='error', message='b') True\n"
