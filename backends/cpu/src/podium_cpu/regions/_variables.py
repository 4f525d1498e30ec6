"""The local variables of a kernel: where each is declared and used, and which have one value for a whole block."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium_cpu.regions._classes import Classes
from podium_cpu.regions._syntax import NAMES, called_name, declared_name, find, same, word

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["PURE", "Facts", "Unsupported", "Use", "Variable", "Variables"]

# Functions without side effects, whose parameters are values.
PURE = re.compile(
    r"(?:f?min|f?max|u?min|u?max|ll?min|ull?min|ll?max|ull?max|f?abs|ll?abs|r?sqrt|r?cbrt|exp|exp2|exp10|expm1|log|log2"
    r"|log10|log1p|pow|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|sinpi|cospi|floor|ceil|trunc|round|rint|nearbyint"
    r"|ll?rint|ll?round|fma|fmod|fdivide|hypot|erf|erfc|copysign|fdim|isnan|isinf|isfinite|signbit)[fl]?"
    r"|__(?:u?mul24|u?mulhi|popc|popcll|clz|clzll|ffs|ffsll|brev|brevll|[us]?sad|saturatef|f?dividef"
    r"|(?:float|int|uint|double|longlong)_as_\w+|\w+2\w+_r[nzud]|\w+_r[nzud]|(?:exp|exp10|log|log2|log10|sin|cos|tan|pow)f)"
    r"|make_\w+"
)
_CASTS = ("static_cast", "reinterpret_cast", "const_cast")
_BY_VALUE = re.compile(r"__ld\w+|__st\w+|printf|atomic\w+|__syncthreads\w*|__threadfence\w*|sizeof")
_SCOPES = (
    "compound_statement",
    "for_statement",
    "for_range_loop",
    "while_statement",
    "do_statement",
    "if_statement",
    "switch_statement",
    "lambda_expression",
    "catch_clause",
)
_INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")


_NUMBERS = re.compile(
    r"(?:(?:unsigned|signed|bool|char|short|int|long|float|double|half|__half|__nv_bfloat16|size_t|ssize_t|ptrdiff_t"
    r"|u?int(?:8|16|32|64)_t|uchar|ushort|uint|ulong)\s*)+"
)


def is_number(type: str) -> bool:
    """Tell whether the name of a type is one of a number, whose operators are the language's own."""
    return _NUMBERS.fullmatch(type) is not None


class Unsupported(Exception):
    """A kernel is left as it is; the text says why."""


@dataclass(frozen=True)
class Facts:
    """What the rest of the source says: what its functions take, and which variables of it can change."""

    parameters: dict[str, list[list[Node]]]
    changing: frozenset[str]
    classes: Classes


@dataclass(frozen=True)
class Use:
    """A place where a variable stands; kind is read, change, argument (of a call that may change it) or address."""

    start: int
    kind: str


@dataclass(eq=False)
class Variable:
    """A local variable or a parameter; `declaration` is None for the latter."""

    name: str
    start: int
    declaration: Node | None = None
    declarator: Node | None = None
    value: Node | None = None
    lasting: bool = False  # shared, static, constexpr: it exists once anyhow
    bound: bool = False  # by a reference, a structured binding or a range
    uses: list[Use] = field(default_factory=list)

    @property
    def dimensions(self) -> int:
        """How many indices lead from it to an element."""
        return 0 if self.declarator is None else sum(1 for _ in find(self.declarator, "array_declarator"))

    @property
    def is_pointer(self) -> bool:
        """Whether it is declared as a pointer."""
        return self.declarator is not None and self.dimensions == 0 and any(find(self.declarator, "pointer_declarator"))

    def is_of(self, classes: frozenset[str]) -> bool:
        """Tell whether it is an object of one of some classes, or of a library's, which may be anything."""
        return not self.is_pointer and (self.type in classes or "::" in self.type)

    @property
    def type(self) -> str:
        """The name of its type, without the arguments of a template; nothing if it has none."""
        node = self.declaration or self.declarator
        while node is not None and (kind := node.child_by_field_name("type")) is None:
            node = node.parent
        return "" if node is None else word(kind).partition("<")[0].strip()

    @property
    def is_plain(self) -> bool:
        """Whether it is a number or a pointer, and what is done to it is what the language does."""
        return self.is_pointer or is_number(self.type)

    def has(self, *kinds: str) -> bool:
        """Tell whether it is used in one of some ways."""
        return any(use.kind in kinds for use in self.uses)

    @property
    def is_fixed(self) -> bool:
        """Whether nothing changes it once it is declared."""
        return not self.has("change", "argument", "address")


class Variables:
    """All variables of a function."""

    def __init__(self, function: Node, body: Node, facts: Facts) -> None:
        self.facts = facts
        self.all: list[Variable] = []
        self.at: dict[int, Variable] = {}  # by the offset of each use and of the declaration
        self._scopes: list[dict[str, Variable]] = [{}]
        self._lambdas = 0
        declarator = function.child_by_field_name("declarator")
        parameters = None if declarator is None else declarator.child_by_field_name("parameters")
        for parameter in () if parameters is None else parameters.named_children:
            if parameter.type == "parameter_declaration":
                self._declare(parameter.child_by_field_name("declarator"), None, None)
        for variable in self.all:
            variable.lasting = variable.bound  # a reference, to what lasts longer than the function
        self._visit(body)

    # ---- reading the tree ----

    def _visit(self, node: Node) -> None:
        kind = node.type
        if kind in _SCOPES:
            self._scopes.append({})
            self._lambdas += kind == "lambda_expression"
            self._children(node)
            self._lambdas -= kind == "lambda_expression"
            self._scopes.pop()
        elif kind == "declaration":
            self._declaration(node)
        elif kind == "parameter_declaration":
            if self._lambdas:
                self._children(node, "declarator")
                self._declare(node.child_by_field_name("declarator"), None, None, bound=True)
        elif kind == "qualified_identifier":
            for arguments in find(node, "template_argument_list"):
                self._children(arguments)
        elif kind in NAMES[:3]:
            variable = self._look_up(word(node))
            if variable is not None:
                use = "change" if self._lambdas else self._kind(node, variable)
                variable.uses.append(Use(node.start_byte, use))
                self.at[node.start_byte] = variable
        else:
            self._children(node)

    def _children(self, node: Node, *without: str) -> None:
        for index, child in enumerate(node.children):
            name = node.field_name_for_child(index)
            if node.type == "for_range_loop" and name == "declarator":
                self._declare(child, None, None, bound=True)
            elif name not in without:
                self._visit(child)

    def _declaration(self, node: Node) -> None:
        self._children(node, "declarator", "value")
        value = node.child_by_field_name("value")  # of a declaration in a condition
        for declarator in node.children_by_field_name("declarator"):
            for part in find(declarator, "array_declarator"):
                size = part.child_by_field_name("size")
                if size is not None:
                    self._visit(size)
            own = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else value
            self._declare(declarator, node, own)
            if own is not None:
                self._visit(own)

    def _declare(self, declarator: Node | None, node: Node | None, value: Node | None, bound: bool = False) -> None:
        if declarator is None:
            return
        name = declared_name(declarator)
        if name is None:
            if any(find(declarator, "function_declarator")) and node is not None:
                raise Unsupported("it declares a function")
            bound = True
        words = set() if node is None else {word(child) for child in node.children}
        lasting = bool(words & {"__shared__", "static", "extern", "constexpr", "thread_local"})
        for each in [name] if name is not None else find(declarator, "identifier", within=("argument_list",)):
            variable = Variable(word(each), each.start_byte, node, declarator, value, lasting, bound)
            if self._lambdas:
                variable.bound = True
            self.all.append(variable)
            self.at[each.start_byte] = variable
            self._scopes[-1][variable.name] = variable

    def _look_up(self, name: str) -> Variable | None:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def _kind(self, node: Node, variable: Variable) -> str:
        """Say what the expression around a name does with the variable."""
        indices, here = 0, node
        while (parent := here.parent) is not None:
            kind = parent.type
            if kind in ("parenthesized_expression", "conditional_expression", "comma_expression"):
                pass
            elif kind == "subscript_expression" and same(parent.child_by_field_name("argument"), here):
                if variable.is_pointer:
                    return "read"
                indices += 1
                if indices > variable.dimensions and not variable.is_plain:
                    return "change"  # by an operator of its class, perhaps
            elif kind == "call_expression" and same(parent.child_by_field_name("function"), here):
                return "change"  # an object that is called, and may have a state
            elif kind in ("binary_expression", "unary_expression") and self._may_mutate(variable):
                return "change"
            elif kind in ("initializer_list", "init_declarator") and self._may_hold(parent):
                return "address"
            elif kind == "field_expression":
                around = parent.parent
                if around is not None and around.type == "call_expression" and same(around.children[0], parent):
                    return "read" if variable.is_pointer else "change"
                if word(parent.child_by_field_name("operator")) == "->":
                    return "read" if variable.is_pointer else "change"
            elif kind == "pointer_expression":
                if parent.children[0].type == "&":
                    around = parent.parent
                    in_call = around is not None and around.type == "argument_list" and around.parent is not None
                    return "argument" if in_call and around.parent.type == "call_expression" else "address"  # type: ignore[union-attr]
                if variable.is_pointer:
                    return "read"
                if self._may_mutate(variable):
                    return "change"
                indices += 1
            elif kind == "assignment_expression":
                return "change" if same(parent.child_by_field_name("left"), here) else self._read(variable, indices)
            elif kind == "update_expression":
                return "change"
            elif kind == "argument_list":
                return self._argument(parent, here, variable, indices)
            elif kind == "init_declarator":
                reference = any(find(parent, "reference_declarator"))
                return "address" if reference else self._read(variable, indices)
            elif kind == "cast_expression":
                reference = "&" in word(parent.child_by_field_name("type"))
                return "address" if reference else self._read(variable, indices)
            elif kind == "for_range_loop":
                return "change"
            elif kind == "sizeof_expression":
                return "read"
            else:
                return self._read(variable, indices)
            here = parent
        return "read"

    def _may_mutate(self, variable: Variable) -> bool:
        return self.facts.classes.mutating and not variable.is_plain

    def _may_hold(self, node: Node) -> bool:
        """Tell whether what is made there may keep a reference to what it is made from."""
        if not self.facts.classes.holders:
            return False
        around: Node | None = node
        while around is not None and around.type == "initializer_list":
            around = around.parent
        if around is not None and around.type == "init_declarator":
            around = around.parent
        return around is None or not is_number(word(around.child_by_field_name("type")))

    @staticmethod
    def _read(variable: Variable, indices: int) -> str:
        # An array that is not indexed all the way becomes a pointer, which may be kept.
        return "address" if indices < variable.dimensions and not variable.lasting else "read"

    def _argument(self, arguments: Node, here: Node, variable: Variable, indices: int) -> str:
        call = arguments.parent
        if call is None or call.type != "call_expression":
            known = call is not None and call.type == "init_declarator" and not self._may_hold(call)
            return self._read(variable, indices) if known else "address"
        function, name = call.child_by_field_name("function"), called_name(call)
        around = call.parent
        if around is not None and around.type == "pointer_expression" and around.children[0].type == "&":
            return "address"  # the function may return what it is given
        if function is not None and function.type == "template_function" and name in _CASTS:
            return "address" if "&" in word(function) else self._read(variable, indices)
        if indices < variable.dimensions:
            return "argument"
        if function is not None and function.type == "primitive_type":
            return "read"
        if function is not None and function.start_byte in self.at:
            return "argument"  # of a variable that is called, perhaps by the name of a function
        if name in self.facts.parameters:
            position = next(i for i, each in enumerate(arguments.named_children) if same(each, here))
            return "read" if all(_is_value(each, position) for each in self.facts.parameters[name]) else "argument"
        return "read" if PURE.fullmatch(name) or _BY_VALUE.fullmatch(name) else "argument"

    # ---- what a value depends on ----

    def is_uniform(self, node: Node | None, uniform: set[Variable], pure: set[Variable] | None = None) -> bool:
        """Tell whether an expression has one value for all threads of a block, given the variables that have.

        With `pure`, tell whether it can be computed again at any time, given the variables for which that holds.
        """
        if node is None:
            return True
        kind = node.type
        if kind in ("number_literal", "true", "false", "char_literal", "null", "sizeof_expression"):
            return True
        if kind in ("identifier", "type_identifier"):
            variable = self.at.get(node.start_byte)
            if variable is None:
                name = word(node)
                return (pure is not None or name != "threadIdx") and name not in self.facts.changing
            if self.facts.classes.operators and not variable.is_plain and (pure is not None or not _is_part(node)):
                return False  # an operator may look at anything
            if pure is not None and variable in pure:
                return True
            if variable in uniform:
                return pure is None or variable.is_fixed
            return variable.lasting and variable.dimensions == 0 and "constexpr" in _words(variable)
        if kind == "qualified_identifier":
            return word(node).rpartition("::")[2] not in self.facts.changing
        if kind == "template_function":
            return word(node.child_by_field_name("name")) not in self.facts.changing
        if kind == "field_expression":
            if word(node.child_by_field_name("operator")) != ".":
                return False
            return self.is_uniform(node.child_by_field_name("argument"), uniform, pure)
        if kind == "call_expression":
            function, name = node.child_by_field_name("function"), called_name(node)
            fine = function is not None and (function.type == "primitive_type" or name in _CASTS)
            own = name in self.facts.parameters or (function is not None and function.start_byte in self.at)
            if not fine and (own or not PURE.fullmatch(name)):
                return False
            return self.is_uniform(node.child_by_field_name("arguments"), uniform, pure)
        if kind == "cast_expression":
            return self.is_uniform(node.child_by_field_name("value"), uniform, pure)
        if kind in (
            "parenthesized_expression",
            "unary_expression",
            "binary_expression",
            "conditional_expression",
            "initializer_list",
            "argument_list",
            "condition_clause",
        ):
            return all(self.is_uniform(child, uniform, pure) for child in node.named_children)
        return False


def _is_part(node: Node) -> bool:
    """Tell whether of a variable only a member is meant."""
    return node.parent is not None and node.parent.type == "field_expression"


def _words(variable: Variable) -> set[str]:
    return set() if variable.declaration is None else {word(child) for child in variable.declaration.children}


def _is_value(parameters: list[Node], position: int) -> bool:
    if position >= len(parameters):
        return False
    parameter = parameters[position]
    if parameter.type not in ("parameter_declaration", "optional_parameter_declaration"):
        return False
    declarator = parameter.child_by_field_name("declarator")
    if declarator is None or not any(find(declarator, "reference_declarator")):
        return True
    # In const int *&p, only what it points to is const.
    pointer = any(find(declarator, "pointer_declarator"))
    return not pointer and any(word(child) == "const" for child in parameter.children)
