"""Variables of a module: what is declared ``__device__``, ``__constant__`` or ``__managed__`` outside of functions."""

from __future__ import annotations

from podium._record import record
from podium._signature import Type
from podium.errors import SignatureError

__all__ = ["DeclaredVariable", "Variable"]

_NUMBERS = ("boolean", "signed", "unsigned", "float")


@record(frozen=True)
class Variable:
    """A variable wanted from a program: its qualified name and its type, which unlike a parameter's can be an array.

    `Variable.of` makes one from a spelling: ``fp32``, ``[16xfp32]``, ``[4x[3xi32]]``, ``{fp32,i32}``, ``opaque[12,4]``.
    """

    name: str
    type: Type

    @staticmethod
    def of(name: str, spelling: object) -> Variable:
        """Make a variable from the spelling of its type. Raises `SignatureError` if it is none."""
        if isinstance(spelling, Type):
            return Variable(name, spelling)
        if not isinstance(spelling, str):
            raise SignatureError(
                f"The type of the variable {name} is a string such as '[16xfp32]', not {spelling!r}",
                spelling=repr(spelling),
            )
        members = Type.parse("{" + spelling + "}").members
        if len(members) != 1:
            raise SignatureError(
                f"The type of the variable {name} is one type, such as '[16xfp32]' or '{{fp32,i32}}', not {spelling!r}",
                spelling=spelling,
            )
        return Variable(name, members[0])

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.type.size

    def layout(self) -> tuple[str, tuple[int, ...]]:
        """Return the element type and the shape of the array that stands for it.

        Arrays are axes. A struct of numbers of one type, as the vector types are, is a last axis; any other struct is
        bytes. A pointer is an address, so a number without sign.
        """
        kind, shape = self.type, []
        while kind.kind == "array":
            (element,) = kind.members
            shape.append(kind.size // element.size)
            kind = element
        if kind.kind == "pointer":
            return "u64", tuple(shape)
        if kind.kind != "struct":
            return kind.spelling, tuple(shape)
        members = kind.members
        if len(set(members)) == 1 and members[0].kind in _NUMBERS and len(members) * members[0].size == kind.size:
            return members[0].spelling, (*shape, len(members))
        return "u8", (*shape, kind.size)

    @property
    def is_record(self) -> bool:
        """Whether structs are in it, whose bytes can come from anything that has as many."""
        kind = self.type
        while kind.kind == "array":
            (kind,) = kind.members
        return kind.kind == "struct"

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@record(frozen=True)
class DeclaredVariable:
    """A variable as its source declares it: its qualified name, that name without inline namespaces, and its line.

    `type` is the spelling of its type; where that is not known it is None, and `reason` says why.
    """

    name: str
    short_name: str
    type: str | None
    reason: str
    line: int
