"""The translation of one source: the functions, structs and variables that its kernels need."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from podium_opencl.translation.body import Body, translate_function
from podium_opencl.translation.collectives import collective_names
from podium_opencl.translation.context import Instance, Parameter
from podium_opencl.translation.overloads import parameter_nodes
from podium_opencl.translation.parser import parse
from podium_opencl.translation.prelude import EXTENSIONS, PRELUDE
from podium_opencl.translation.preprocessor import Preprocessed
from podium_opencl.translation.refusal import Place, Refusal
from podium_opencl.translation.resolution import Argument, Arguments, Resolution, Templated
from podium_opencl.translation.symbols import (
    Function,
    Scope,
    Variable,
    collect,
    function_declarator,
    name_node,
    text_of,
)
from podium_opencl.translation.types import Type, alignment_of, size_of, spelled, stored
from podium_opencl.translation.values import Value, qualified

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["TranslationUnit"]


class TranslationUnit:
    """A source that is being translated."""

    def __init__(self, text: Preprocessed, root: Node, extensions: frozenset[str], warp_size: int) -> None:
        self.text, self.root = text, root
        self.extensions, self.warp_size = extensions, warp_size
        self.resolution = Resolution(self.evaluate, self.place, "cl_khr_fp64" in extensions)
        self.collective = collective_names(root)
        self.scope = Scope()
        self._refuse_unread(root)
        collect(root, self.scope)
        self.helpers: dict[str, str] = {}
        self.functions: list[str] = []
        self.constants: list[str] = []
        self.instances: dict[str, Instance | None] = {}
        self.homes: dict[str, str] = {}
        self.constant_arrays: dict[int, Value] = {}
        self.offsets: dict[int, int] = {}
        self.variables: dict[str, tuple[Variable, Type, int]] = {}
        self.variables_bytes = 0

    def place(self, node: Node) -> Place:
        """Return the place of a node in the user's text."""
        return self.text.place(node.start_point[0], node.start_point[1])

    def _refuse_unread(self, root: Node) -> None:
        if not root.has_error:
            return
        node = _first_error(root)
        if node.is_missing:
            raise Refusal(f"expected {node.type!r}", self.place(node))
        raise Refusal(f"podium-opencl cannot read this: {text_of(node)[:60]!r}", self.place(node))

    def evaluate(self, node: Node, scope: Scope) -> Value:
        """Translate an expression that stands outside of functions."""
        return Body(self, scope).rvalue(node)

    def helper(self, name: str, text: str) -> str:
        """Put a function of podium's own into the output, once; return its name."""
        self.helpers.setdefault(name, text)
        return name

    # ---- functions ----

    def instance(
        self,
        function: Function,
        bound: Arguments,
        parameters: Sequence[Parameter],
        this: Parameter | None,
        masked: bool,
    ) -> Instance:
        """Translate a function for given types and spaces of its parameters, once."""
        kinds = [*parameters, this] if this is not None else parameters
        forms = [f"{each.type.kind}:{each.type.space}:{qualified(each.type)}" for each in kinds]
        collective = function.name in self.collective
        shared = [each.uniform for each in parameters] if collective else []
        key = f"{id(function)}<{bound.key}>{forms}{shared}{masked}"
        if key in self.instances:
            found = self.instances[key]
            if found is None:
                raise Refusal(f"OpenCL C has no recursion, which {function.name} uses: write a loop")
            return found
        self.instances[key] = None
        word = re.sub(r"\W+", "_", function.name).strip("_")
        # All the forms of a function have the same shared variables.
        home = self.homes.setdefault(f"{id(function)}<{bound.key}>", f"{word}{len(self.homes)}")
        made = Instance(f"podium_call{len(self.instances)}_{word}", home, is_collective=collective, masked=masked)
        text = translate_function(self, function, bound.scope, parameters, this, made, False)
        self.functions.append(text)
        self.instances[key] = made
        return made

    def kernel(self, name: str) -> tuple[str, Instance, int | None]:
        """Translate a kernel; return its name in the output, its instance, and the most threads of a block."""
        function, bound = self._find_kernel(name)
        symbol = f"{re.sub(r'[^A-Za-z0-9]+', '_', name).strip('_')[:80]}_{len(self.instances)}"
        made = Instance(symbol, symbol, is_collective=True)
        self.instances[f"kernel {name}"] = made
        body = Body(self, bound.scope)
        declarator = function_declarator(function.node)
        listed = declarator.child_by_field_name("parameters") if declarator is not None else None
        parameters = []
        for node in parameter_nodes(listed):
            kind = body.parameter_type(node, bound.scope)
            if kind.kind == "reference":
                raise Refusal("a kernel has no parameters that are references", self.place(node))
            if kind.kind == "pointer":
                kind = replace(kind, space="global")
            word = text_of(name_node(node.child_by_field_name("declarator")))
            parameters.append(Parameter(word, kind, uniform=True))
        self.functions.append(translate_function(self, function, bound.scope, parameters, None, made, True))
        return symbol, made, self._most_threads(function.node, bound.scope)

    def _most_threads(self, node: Node, scope: Scope) -> int | None:
        bounds = next((each for each in node.children if each.type == "launch_bounds"), None)
        if bounds is None or not bounds.named_children:
            return None
        return self.resolution.count(bounds.named_children[0], scope)

    def _find_kernel(self, name: str) -> tuple[Function, Arguments]:
        root = parse(f"using podium_name = {name};")
        described = root.named_children[0].child_by_field_name("type")
        node = described.child_by_field_name("type") if described is not None else None
        if root.has_error or node is None:
            raise Refusal(f"the name {name!r} cannot be read")
        found = self.resolution.symbol(node, self.scope)
        functions = list(found.functions) if isinstance(found, Templated) else found
        if not isinstance(functions, list):
            raise Refusal(f"the source defines no kernel {name!r}")
        kernels = [each for each in functions if _is_kernel(each.node)]
        if not kernels:
            raise Refusal(f"the source defines no kernel {name!r}")
        primary = [each for each in kernels if each.arguments is None]
        if len(primary) != 1:
            raise Refusal(f"the source defines {len(primary)} kernels {name!r}")
        written: list[Node | Argument] = list(found.arguments.named_children) if isinstance(found, Templated) else []
        try:
            bound = self.resolution.bind(primary[0].template, written, self.scope, primary[0].scope)
        except Refusal as refusal:  # its place is one in the name
            raise Refusal(f"the name {name!r}: {refusal.reason}", self.place(primary[0].node)) from None
        for each in kernels:
            if each.arguments is not None:
                nodes = list(each.arguments.named_children)
                if self.resolution.bind(primary[0].template, nodes, each.scope, each.scope).key == bound.key:
                    return each, Arguments(Scope(each.scope), bound.bound)
        return primary[0], bound

    # ---- variables ----

    def constant_array(self, variable: Variable) -> Value:
        """Put a constant array or struct into the output, once."""
        if id(variable) not in self.constant_arrays:
            body = Body(self, variable.scope)
            kind = body.variable_type(variable)
            initial = variable.initial
            if initial is None or kind.kind not in ("array", "struct"):
                raise Refusal(f"podium-opencl cannot make {variable.name} a constant", self.place(variable.node))
            name = f"podium_constant{len(self.constant_arrays)}_{variable.name}"
            text = body.initialised(initial, kind)
            if body.implicit:
                raise Refusal(f"the constant {variable.name} needs values of variables", self.place(variable.node))
            self.constants.append(f"__constant {spelled(kind, name)} = {text};")
            self.constant_arrays[id(variable)] = Value(name, kind, None, True, "constant")
        return self.constant_arrays[id(variable)]

    def offset(self, variable: Variable, kind: Type) -> int:
        """Return the place of a variable in the block that has them."""
        if id(variable) not in self.offsets:
            size, alignment = size_of(stored(kind)), alignment_of(stored(kind))
            start = -(-self.variables_bytes // alignment) * alignment
            self.offsets[id(variable)] = start
            self.variables_bytes = start + size
            self.variables[variable.scope.qualified(variable.name)] = (variable, kind, size)
        return self.offsets[id(variable)]

    def lay_out(self, names: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Give all variables of the source their places; return place and size of those with the given names."""
        wanted = {name: self._find_variable(name) for name in names}
        for variable in _variables(self.scope):
            if not (variable.is_constant or variable.is_shared):
                self.offset(variable, Body(self, variable.scope).variable_type(variable))
        return {
            name: (self.offset(variable, kind), size_of(stored(kind)))
            for name, variable in wanted.items()
            for kind in [Body(self, variable.scope).variable_type(variable)]
        }

    def _find_variable(self, name: str) -> Variable:
        found: object = self.scope
        for part in name.removeprefix("::").split("::"):
            found = found.own(part) if isinstance(found, Scope) else None
        if not isinstance(found, Variable):
            raise Refusal(f"the source defines no variable {name!r}")
        found.is_constant = False
        return found

    def initialiser(self) -> str | None:
        """Translate the initial values of all variables into a kernel; return its name, None if there are none."""
        lines = []
        for variable, kind, _ in self.variables.values():
            initial = variable.initial
            if initial is None:
                continue
            body = Body(self, variable.scope)
            place = f"podium_variables + {self.offset(variable, kind)}"
            with body.at(initial):
                target = spelled(Type("pointer", to=stored(kind), space="global", size=8))
                if kind.kind == "array" or (kind.kind == "struct" and initial.type == "initializer_list"):
                    lines.append(f"{spelled(kind, 'podium_initial')} = {body.initialised(initial, kind)};")
                    lines[-1] = f"{{ {lines[-1]} {_copy(place, size_of(kind))} }}"
                else:
                    value = body.converted(initial, kind)
                    text = f"(ulong)({value.text})" if kind.kind == "pointer" else value.text
                    lines.append(f"*({target})({place}) = {text};")
        if not lines:
            return None
        inside = "\n".join(lines)
        self.functions.append(f"__kernel void podium_initialise(__global uchar *podium_variables)\n{{\n{inside}\n}}\n")
        return "podium_initialise"

    def output(self) -> str:
        """Return all that was translated, in OpenCL C."""
        extensions = [each for each in EXTENSIONS if each in self.extensions]
        pragmas = "".join(f"#pragma OPENCL EXTENSION {each} : enable\n" for each in extensions)
        parts = [*self.resolution.definitions, *self.constants, *self.helpers.values(), *self.functions]
        return f"{pragmas}{PRELUDE}" + "\n".join(parts)


def _copy(place: str, size: int) -> str:
    return (
        f"for (uint podium_i = 0; podium_i < {size}; podium_i++) "
        f"({place})[podium_i] = ((const uchar *)&podium_initial)[podium_i];"
    )


def _is_kernel(node: Node) -> bool:
    return any(text_of(each) == "__global__" for each in node.children)


def _variables(scope: Scope) -> list[Variable]:
    found = []
    for each in [*scope.names.values(), *scope.opened]:
        if isinstance(each, Variable):
            found.append(each)
        elif isinstance(each, Scope) and each.parent is scope:
            found += _variables(each)
    return found


def _first_error(node: Node) -> Node:
    for each in node.children:
        if each.type == "ERROR" or each.is_missing:
            return each
        if each.has_error:
            return _first_error(each)
    return node
