"""Records: what `dataclasses` makes of a class, made when it is first needed.

The methods of a dataclass are written as text and compiled when its module is imported. That takes more than half a
millisecond for each, and a process that finds everything in the cache imports thirty of them and uses a few. A record
is a dataclass to whoever looks at it: `dataclasses.fields`, `dataclasses.replace`, a match statement, a type checker.
But its ``__init__`` is compiled when there are some objects, and `dataclasses` imported when somebody asks for fields.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from dataclasses import field, replace

__all__ = ["field", "record", "replace"]

_Class = TypeVar("_Class", bound=type)

_NOTHING: Any = object()

_FEW = 32


class _Field:
    """What a class says of one of its fields beside name and type."""

    def __init__(self, default: Any = _NOTHING, default_factory: Any = _NOTHING, repr: bool = True) -> None:
        self.default, self.default_factory, self.repr = default, default_factory, repr

    def words(self) -> dict[str, Any]:
        """Return the keywords with which `dataclasses.field` makes its own."""
        return {name: value for name, value in vars(self).items() if value is not _NOTHING}


class _Record:
    """The fields of one record class, and the methods that are made from them."""

    def __init__(self, kind: type, frozen: bool) -> None:
        self.kind, self.frozen = kind, frozen
        # Texts, since every module of podium has its annotations left as they are written.
        self.types: dict[str, str] = {
            name: text for name, text in kind.__annotations__.items() if not text.startswith("ClassVar")
        }
        self.fields: dict[str, _Field] = {}
        for name in self.types:
            given = vars(kind).get(name, _NOTHING)
            if not isinstance(given, _Field):
                given = _Field(given)
            elif given.default is _NOTHING:
                delattr(kind, name)
            else:
                setattr(kind, name, given.default)
            self.fields[name] = given
        self.values = attrgetter(*self.types)

    def init(self) -> Callable[..., None]:
        """Compile ``__init__``, as one would write it."""
        names: dict[str, Any] = {"_assign": object.__setattr__, "_nothing": _NOTHING}
        parameters, lines = ["self"], []
        for name, each in self.fields.items():
            value = name
            if each.default_factory is not _NOTHING:
                names[f"_make_{name}"] = each.default_factory
                value = f"_make_{name}() if {name} is _nothing else {name}"
                parameters.append(f"{name}=_nothing")
            elif each.default is not _NOTHING:
                names[f"_default_{name}"] = each.default
                parameters.append(f"{name}=_default_{name}")
            else:
                parameters.append(name)
            lines.append(f"  _assign(self, {name!r}, {value})" if self.frozen else f"  self.{name} = {value}")
        exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or ["  pass"]), names)
        made: Callable[..., None] = names["__init__"]
        made.__qualname__ = f"{self.kind.__qualname__}.__init__"
        made.__module__ = self.kind.__module__
        made.__annotations__ = {**self.types, "return": None}
        return made

    def fill(self, instance: object, /, *args: object, **keywords: object) -> None:
        """Do what the compiled ``__init__`` does."""
        values = dict(zip(self.fields, args))
        wrong = len(args) > len(self.fields) or not values.keys().isdisjoint(keywords)
        values.update(keywords)
        for name, each in self.fields.items():
            if name in values:
                continue
            if each.default_factory is not _NOTHING:
                values[name] = each.default_factory()
            else:
                wrong = wrong or each.default is _NOTHING
                values[name] = each.default
        if wrong or len(values) > len(self.fields):
            self.init()(instance, *args, **keywords)  # which says what is wrong
        for name in self.fields:
            object.__setattr__(instance, name, values[name])

    def of_dataclass(self, name: str) -> object:
        """Return an attribute that a dataclass with the same fields has."""
        import dataclasses

        rows = [(name, self.types[name], dataclasses.field(**each.words())) for name, each in self.fields.items()]
        made = dataclasses.make_dataclass(self.kind.__name__, rows, frozen=self.frozen)
        return getattr(made, name)


class _FirstInit:
    """Stands for ``__init__`` while there are few objects of a class: to fill those in takes less than to compile."""

    def __init__(self, about: _Record) -> None:
        self._about = about
        self._left = _FEW

    def __get__(self, instance: object, owner: type) -> Callable[..., None]:
        about = self._about
        if self._left and isinstance(instance, about.kind):  # a class asks when its signature is looked at
            self._left -= 1
            return partial(about.fill, instance)
        made = about.init()
        about.kind.__init__ = made  # type: ignore[misc]
        bound: Callable[..., None] = made.__get__(instance, owner)
        return bound


class _Later:
    """An attribute of a class that is made, and put in the place of this one, when it is first asked for."""

    def __init__(self, kind: type, name: str, make: Callable[[], object]) -> None:
        self._kind, self._name, self._make = kind, name, make

    def __get__(self, instance: object, owner: type) -> object:
        made = self._make()
        setattr(self._kind, self._name, made)
        return made


def _represent(self: Any) -> str:
    about: _Record = type(self).__podium_record__
    shown = (f"{name}={getattr(self, name)!r}" for name, each in about.fields.items() if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    values = self.__podium_record__.values
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(self.__podium_record__.values(self))


def _refuse(self: Any, name: str, *value: object) -> None:
    about: _Record = self.__podium_record__
    if type(self) is not about.kind and name not in about.fields:  # an attribute of a subclass
        (object.__setattr__ if value else object.__delattr__)(self, name, *value)
        return
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


def _replaced(self: Any, /, **changes: Any) -> Any:
    return type(self)(**{name: getattr(self, name) for name in type(self).__match_args__} | changes)


def _make_record(kind: _Class, frozen: bool, eq: bool = True) -> _Class:
    about = _Record(kind, frozen)
    members: dict[str, Any] = {
        "__podium_record__": about,
        "__init__": _FirstInit(about),
        "__repr__": recursive_repr()(_represent),
        "__match_args__": tuple(about.fields),
        "__replace__": _replaced,
    }
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        members[name] = _Later(kind, name, partial(about.of_dataclass, name))
    if eq:
        members["__eq__"] = _equal
    if frozen:
        members |= {"__setattr__": _refuse, "__delattr__": _refuse}
    own = vars(kind)
    hashed = own.get("__hash__") is not None
    for name, member in members.items():
        if name not in own:
            setattr(kind, name, member)
    if eq and not hashed:
        kind.__hash__ = _hash if frozen else None  # type: ignore[assignment]  # what is not frozen has no hash
    return kind


if not TYPE_CHECKING:

    def record(kind: type | None = None, *, frozen: bool = False, eq: bool = True) -> Any:
        """Make a class a record, as ``dataclass`` makes it a dataclass: ``@record`` or ``@record(frozen=True)``."""
        return partial(_make_record, frozen=frozen, eq=eq) if kind is None else _make_record(kind, frozen, eq)

    def field(*, default: Any = _NOTHING, default_factory: Any = _NOTHING, repr: bool = True) -> Any:
        """Describe a field whose default is made anew for each record, or one that ``repr`` does not show."""
        return _Field(default, default_factory, repr)

    replace = _replaced
