"""What the parts of a translation share: the body of one function, and the whole that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from podium_opencl.translation.refusal import Place, Refusal
from podium_opencl.translation.resolution import Arguments, Resolution
from podium_opencl.translation.symbols import Function, Scope, Variable, text_of
from podium_opencl.translation.types import VOID, Type, spelled
from podium_opencl.translation.values import Value, convert

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Context", "Instance", "Parameter", "Whole"]


@dataclass
class Parameter:
    """A parameter of a function that is being translated; a pointer's type has the space that it points to."""

    name: str
    type: Type
    uniform: bool = False


@dataclass
class Instance:
    """A function of the output: made of a function of the source, for given types and address spaces.

    `home` is the function of the source, for its template arguments, which the shared variables belong to.
    `implicit` are the parameters that the source does not have: shared memory, variables, and so on.
    `is_collective` tells that all threads of the block must call it, and `masked` that it is told who takes part.
    """

    name: str
    home: str
    result: Type = VOID
    parameters: list[Parameter] = field(default_factory=list)
    implicit: dict[str, str] = field(default_factory=dict)
    is_collective: bool = False
    masked: bool = False


class Whole(Protocol):
    """What a function's translation needs of the whole one."""

    resolution: Resolution
    collective: frozenset[str]
    warp_size: int
    extensions: frozenset[str]

    def place(self, node: Node) -> Place:
        """Return the place of a node in the user's text."""

    def evaluate(self, node: Node, scope: Scope) -> Value:
        """Translate an expression that stands outside of functions."""

    def helper(self, name: str, text: str) -> str:
        """Put a function of podium's own into the output, once; return its name."""

    def instance(
        self,
        function: Function,
        bound: Arguments,
        parameters: Sequence[Parameter],
        this: Parameter | None,
        masked: bool,
    ) -> Instance:
        """Translate a function for given types and spaces of its parameters, once."""

    def constant_array(self, variable: Variable) -> Value:
        """Put a constant array or struct into the output, once."""

    def offset(self, variable: Variable, kind: Type) -> int:
        """Return the place of a variable in the block that has them."""


class Context:
    """The state of translating one body."""

    def __init__(self, whole: Whole, scope: Scope, learned: dict[int, str] | None = None) -> None:
        self.whole, self.scope = whole, scope
        self.resolution = whole.resolution
        self.learned: dict[int, str] = {} if learned is None else learned
        self.unknown_spaces: dict[int, str] = {}  # the pointers that were declared before their space was known
        self.implicit: dict[str, str] = {}
        self.hoisted: list[str] = []  # what has to be done before the statement at hand
        self.may_hoist = False
        self.mask: list[str] = []
        self.counter = 0
        self.this: Parameter | None = None
        self.home = ""  # the function as far as shared variables are concerned
        self.varying: frozenset[str] = frozenset()  # the variables that threads may have different values of
        self.live: str | None = None  # whether the thread has not returned yet, once some may have

    def value(self, node: Node) -> Value:
        """Translate an expression; the result may be an lvalue."""
        raise NotImplementedError

    def rvalue(self, node: Node) -> Value:
        """Translate an expression and read it."""
        raise NotImplementedError

    def initialised(self, node: Node, kind: Type) -> str:
        """Translate an initial value of a type."""
        raise NotImplementedError

    def converted(self, node: Node, kind: Type) -> Value:
        """Translate an expression, which may be in braces, and convert it to a type."""
        if node.type == "initializer_list":
            if kind.kind == "struct":
                return Value(f"(({kind.name}){self.initialised(node, kind)})", kind)
            if node.named_child_count == 1:
                return self.converted(node.named_children[0], kind)
            if not node.named_child_count:
                return convert(Value("0", VOID if kind.kind == "void" else _INT, 0), kind)
            raise self.refused(node, "a value in braces for what is no struct")
        return convert(self.rvalue(node), kind)

    def fresh(self, word: str) -> str:
        """Make a name that nothing else has."""
        self.counter += 1
        return f"podium_{word}{self.counter}"

    @contextmanager
    def at(self, node: Node) -> Iterator[None]:
        """Give the place of a node to refusals that have none yet."""
        try:
            yield
        except Refusal as refusal:
            if refusal.place is None:
                refusal.place = self.whole.place(node)
            raise

    def refused(self, node: Node, reason: str) -> Refusal:
        """Make a refusal with the place of a node."""
        return Refusal(reason, self.whole.place(node))

    def expect(self, node: Node, name: str, given: Sequence[object], count: int) -> None:
        """Refuse a call of something built in that has another number of arguments."""
        if len(given) != count:
            raise self.refused(node, f"{name} takes {count} argument{'s' if count != 1 else ''}, not {len(given)}")

    def unknown(self, node: Node) -> Refusal:
        """Make a refusal of an identifier that stands for nothing."""
        return self.refused(node, f"use of undeclared identifier {text_of(node)!r}")

    def temporary(self, value: Value, word: str = "value") -> str:
        """Put a value into a variable ahead of the statement, for the threads that take part."""
        name = self.fresh(word)
        declared = spelled(value.type, name)
        if self.is_masked:
            self.hoisted.append(f"{declared}; if ({self.condition()}) {name} = {value.text};")
        else:
            self.hoisted.append(f"{declared} = {value.text};")
        return name

    def taken(self) -> str:
        """Return what has to be done before the statement at hand, and forget it."""
        text = "".join(self.hoisted)
        self.hoisted = []
        return text

    def condition(self) -> str:
        """Return the condition under which a thread takes part in what is being translated."""
        flags = self.mask if self.live is None else [self.live, *self.mask]
        return " && ".join(flags) if flags else "1"

    @property
    def is_masked(self) -> bool:
        """Whether some threads may not take part in what is being translated."""
        return bool(self.mask) or self.live is not None

    def need(self, name: str, declaration: str) -> str:
        """Have a parameter that the source does not have; return its name."""
        self.implicit.setdefault(name, declaration)
        return name


_INT = Type("integer", "int", 4, True)
