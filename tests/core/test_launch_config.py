"""The shape of a launch is a checked, hashable value."""

from __future__ import annotations

import pickle
from typing import Any

import numpy
import pytest

from podium import LaunchConfig
from podium._launch_config import dim3
from podium.errors import LaunchConfigError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, (5, 1, 1)),
        ((5,), (5, 1, 1)),
        ([5, 6], (5, 6, 1)),
        ((5, 6, 7), (5, 6, 7)),
        (range(2, 4), (2, 3, 1)),
        (numpy.int64(5), (5, 1, 1)),
        (numpy.array([5, 6], "u1"), (5, 6, 1)),
        (numpy.array(5), (5, 1, 1)),
        (True, (1, 1, 1)),
        (0, (0, 1, 1)),
        (10**30, (10**30, 1, 1)),
    ],
)
def test_one_to_three_integers(value: Any, expected: tuple[int, int, int]) -> None:
    """A size is an integer or up to three; the missing axes are 1."""
    assert dim3(value, "grid") == expected
    assert all(type(each) is int for each in dim3(value, "grid"))


def endless() -> Any:
    while True:
        yield 1


@pytest.mark.parametrize(
    ("value", "axis", "words"),
    [
        ("5", "grid", "one to three integers"),
        (b"5", "grid", "one to three integers"),
        ((), "grid", "not none"),
        ((1, 2, 3, 4), "grid", "4 or more"),
        (endless(), "grid", "4 or more"),
        (1.0, "grid.x", "must be an integer, not 1.0 (float)"),
        ((1, None), "grid.y", "must be an integer"),
        ((1, 2, "3"), "grid.z", "must be an integer"),
        ((1, -2), "grid.y", "is -2; it cannot be negative"),
        (object(), "grid.x", "an object of type object"),
        (numpy.array(1.5), "grid.x", "must be an integer"),
        (lambda: 1, "grid.x", "must be an integer"),
    ],
    ids=repr,
)
def test_sizes_that_cannot_be(value: Any, axis: str, words: str) -> None:
    """GRD-04: what is no size is an error with the axis, that can be pickled whatever the value was."""
    with pytest.raises(LaunchConfigError) as caught:
        dim3(value, "grid")
    error = caught.value
    assert error.axis == axis and words in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.axis, copy.value) == (str(error), error.axis, error.value)


def test_equal_configurations_are_one_key() -> None:
    """A configuration is a value: equal ones hash alike however they were written, and nothing can be changed."""
    one = LaunchConfig((2, 3), 32, shared=5, attributes={"b": 1, "a": 2})
    two = LaunchConfig([2, 3, 1], (32,), shared=numpy.int32(5), attributes=[("a", 2), ("b", 1)])  # type: ignore[arg-type]
    assert one == two and hash(one) == hash(two) and len({one, two}) == 1
    assert one.attributes == (("a", 2), ("b", 1)) and one.blocks == 6
    for other in (
        LaunchConfig((2, 3), 33, shared=5, attributes={"b": 1, "a": 2}),
        LaunchConfig((2, 3), 32, shared=6, attributes={"b": 1, "a": 2}),
        LaunchConfig((2, 3), 32, shared=5),
        LaunchConfig((2, 3), 32, shared=5, attributes={"b": 1, "a": 2}, cooperative=True),
        LaunchConfig((2, 3), 32, shared=5, attributes={"b": 1, "a": 2}, dependent=True),
        LaunchConfig((2, 3), 32, shared=5, attributes={"b": 1, "a": 2}, cluster=2),
    ):
        assert one != other
    with pytest.raises(AttributeError):
        one.shared = 7  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"block": 0}, "block.x is 0; it must be at least 1"),
        ({"block": (1, 0)}, "block.y is 0"),
        ({"cluster": (1, 1, 0)}, "cluster.z is 0"),
        ({"block": -1}, "block.x is -1"),
        ({"cluster": "2"}, "cluster must be"),
        ({"shared": -1}, "shared is -1; it cannot be negative"),
        ({"shared": 1.5}, "shared must be a number of bytes, not 1.5"),
        ({"shared": None}, "shared must be a number of bytes"),
    ],
)
def test_configurations_that_no_device_has(keywords: dict[str, Any], words: str) -> None:
    """GRD-03: only a grid may be empty; a block, a cluster and shared memory have limits that hold everywhere."""
    with pytest.raises(LaunchConfigError, match=words):
        LaunchConfig(**{"grid": 1, "block": 1, **keywords})
    assert LaunchConfig(0, 1).blocks == 0


@pytest.mark.parametrize("wrong", ["priority", 5, [("priority",)], [1], object()])
def test_what_is_no_mapping_of_attributes(wrong: Any) -> None:
    """Attributes that are no pairs of names and values are an error that shows what is taken."""
    with pytest.raises(LaunchConfigError, match="attributes is a mapping of names to integers, such as .*, not"):
        LaunchConfig(1, 1, attributes=wrong)
