"""Statements, where each thread goes its own way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from podium_opencl.translation.calls import Calls
from podium_opencl.translation.collectives import called_name
from podium_opencl.translation.symbols import (
    Local,
    Scope,
    enter,
    function_declarator_below,
    name_node,
    text_of,
    variable_declarators,
)
from podium_opencl.translation.types import VOID, Type, spelled, stored
from podium_opencl.translation.values import Value, convert, identity, loaded, named, truth

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Loop", "Statements"]

_REFUSED = {
    "for_range_loop": "podium-opencl has no loops over ranges: count an index",
    "goto_statement": "podium-opencl has no goto",
    "labeled_statement": "podium-opencl has no labels",
    "try_statement": "a kernel has no exceptions",
    "throw_statement": "a kernel has no exceptions",
    "co_return_statement": "podium-opencl has no coroutines",
}


@dataclass
class Loop:
    """A loop around the statement at hand; flags tell which threads go on with it and with this turn of it."""

    goes_on: str = ""
    turns: str = ""
    is_switch: bool = False


class Statements(Calls):
    """The translation of statements."""

    result: Type = VOID
    loops: tuple[Loop, ...] = ()
    label = ""  # where a thread goes that leaves a loop or the function, while others go on
    leaves_early: frozenset[int] = frozenset()  # the returns after which other threads meet

    def is_collective(self, node: Node) -> bool:
        """Tell whether threads meet in a statement or an expression."""
        if node.type == "call_expression" and called_name(node) in self.whole.collective:
            return True
        return any(self.is_collective(each) for each in node.named_children)

    def line(self, node: Node) -> str:
        """Return the directive that gives what follows the place of a node."""
        place = self.whole.place(node)
        file = place.file.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        return f'\n#line {place.line} "{file}"\n'

    def statement(self, node: Node) -> str:
        """Translate a statement in which no threads meet."""
        if node.type in _REFUSED:
            raise self.refused(node, _REFUSED[node.type])
        method = getattr(self, f"_plain_{node.type}", None)
        if method is None:
            raise self.refused(node, f"podium-opencl does not know the statement {text_of(node)[:40]!r} ({node.type})")
        with self.at(node):
            text: str = method(node)
        return text if node.type == "compound_statement" else self.line(node) + text

    def block(self, node: Node | None) -> str:
        """Translate the statement of a loop or a condition, in braces."""
        if node is None:
            return "{ }"
        if node.type == "compound_statement":
            return self.statement(node)
        before, self.scope = self.scope, Scope(self.scope, kind="block")
        text = "{" + self.statement(node) + " }"
        self.scope = before
        return text

    def _plain_compound_statement(self, node: Node) -> str:
        before, self.scope = self.scope, Scope(self.scope, kind="block")
        text = "{" + "".join(self.statement(each) for each in node.named_children if each.type != "comment") + " }"
        self.scope = before
        return text

    def _plain_expression_statement(self, node: Node) -> str:
        if not node.named_child_count:
            return ";"
        value = self.value(node.named_children[0])
        return f"{value.text};"

    def _plain_declaration(self, node: Node) -> str:
        return " ".join(self.declaration(node))

    def _plain_static_assert_declaration(self, node: Node) -> str:
        condition, message = node.child_by_field_name("condition"), node.child_by_field_name("message")
        assert condition is not None
        value = self.rvalue(condition)
        if value.constant is None:
            raise self.refused(condition, f"{text_of(condition)} is no constant that podium-opencl can compute")
        if not value.constant:
            raise self.refused(node, f"static assertion failed: {text_of(message) or text_of(condition)}")
        return ""

    def _plain_alias_declaration(self, node: Node) -> str:
        enter(node, self.scope, None)
        return ""

    _plain_type_definition = _plain_alias_declaration
    _plain_struct_specifier = _plain_alias_declaration
    _plain_enum_specifier = _plain_alias_declaration
    _plain_using_declaration = _plain_alias_declaration

    def _plain_empty_statement(self, node: Node) -> str:
        return ";"

    def _plain_if_statement(self, node: Node) -> str:
        before, self.scope = self.scope, Scope(self.scope, kind="block")
        opening, condition = self.head_condition(node)
        consequence, alternative = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if alternative is not None and alternative.type == "else_clause":
            alternative = alternative.named_children[-1]
        if condition.constant is not None:
            chosen = consequence if condition.constant else alternative
            text = self.block(chosen) if chosen is not None else ";"
        else:
            text = f"if ({condition.text}) {self.block(consequence)}"
            text += f" else {self.block(alternative)}" if alternative is not None else ""
        self.scope = before
        return f"{{ {opening}{text} }}" if opening else text

    def head_condition(self, node: Node) -> tuple[str, Value]:
        """Translate the condition of an if or a loop, with the declaration that may stand before it."""
        clause = node.child_by_field_name("condition")
        assert clause is not None
        opening = ""
        if clause.type == "condition_clause":
            initial, value = clause.child_by_field_name("initializer"), clause.child_by_field_name("value")
            if initial is not None:
                opening = " ".join(self.statement(each) for each in initial.named_children) + "\n"
            assert value is not None
            clause = value
        if clause.type == "declaration":
            raise self.refused(clause, "podium-opencl has no declarations in conditions: declare the variable before")
        return opening, truth(self.rvalue(clause))

    def _plain_while_statement(self, node: Node) -> str:
        _, condition = self.head_condition(node)
        return f"while ({condition.text}) {self.looped(node)}"

    def _plain_do_statement(self, node: Node) -> str:
        body = self.looped(node)
        _, condition = self.head_condition(node)
        return f"do {body} while ({condition.text});"

    def looped(self, node: Node) -> str:
        """Translate the body of a loop that each thread goes through by itself."""
        before, self.loops = self.loops, (*self.loops, Loop())
        text = self.block(node.child_by_field_name("body"))
        self.loops = before
        return text

    def _plain_for_statement(self, node: Node) -> str:
        before, self.scope = self.scope, Scope(self.scope, kind="block")
        initial, condition, update = self.for_head(node)
        text = f"{{ {initial} for (; {condition}; {update}) {self.looped(node)} }}"
        self.scope = before
        return text

    def for_head(self, node: Node) -> tuple[str, str, str]:
        """Translate the head of a for loop."""
        initial, update = node.child_by_field_name("initializer"), node.child_by_field_name("update")
        condition = node.child_by_field_name("condition")
        start = ""
        if initial is not None:
            start = (
                " ".join(self.declaration(initial)) if initial.type == "declaration" else f"{self.value(initial).text};"
            )
        test = truth(self.rvalue(condition)).text if condition is not None else ""
        return start, test, self.value(update).text if update is not None else ""

    def _plain_switch_statement(self, node: Node) -> str:
        _, clause = None, node.child_by_field_name("condition")
        assert clause is not None
        inner = clause.child_by_field_name("value") or clause
        value = self.rvalue(inner)
        if value.type.kind != "integer":
            raise self.refused(node, f"switch over a {named(value.type)}")
        body = node.child_by_field_name("body")
        before, self.loops = self.loops, (*self.loops, Loop(is_switch=True))
        outer, self.scope = self.scope, Scope(self.scope, kind="block")
        parts = [self._case(each) for each in (body.named_children if body is not None else ())]
        self.loops, self.scope = before, outer
        return f"switch ({value.text}) {{{''.join(parts)} }}"

    def _case(self, node: Node) -> str:
        if node.type != "case_statement":
            return self.statement(node)
        value = node.child_by_field_name("value")
        text = "default: ;"
        if value is not None:
            text = f"case {self.resolution_constant(value)}: ;"
        return text + "".join(self.statement(each) for each in node.named_children if each != value)

    def resolution_constant(self, node: Node) -> str:
        """Compute the constant of a case."""
        value = self.rvalue(node)
        if not isinstance(value.constant, int):
            raise self.refused(node, f"{text_of(node)} is no constant that podium-opencl can compute")
        return str(value.constant)

    # ---- leaving ----

    def _plain_return_statement(self, node: Node) -> str:
        text = self.returned(node)
        if node.start_byte in self.leaves_early:
            keep = f"podium_result = {text}; " if text else ""
            return f"{{ {keep}podium_live = 0; {f'goto {self.label};' if self.label else ''} }}"
        return f"return {text};"

    def returned(self, node: Node) -> str:
        """Translate the value of a return statement."""
        values = [each for each in node.named_children if each.type != "comment"]
        if not values:
            return ""
        if self.result == VOID:
            raise self.refused(node, "a value is returned from a function that returns none")
        if self.result.kind == "auto":
            self.result = loaded(self.value(values[0])).type
        if self.result.kind == "pointer":
            value = convert(self.rvalue(values[0]), replace(self.result, space=None))
            self.learn(0, value.type.space)
            return value.text
        return self.converted(values[0], self.result).text

    def _plain_break_statement(self, node: Node) -> str:
        loop = self.loops[-1] if self.loops else None
        if loop is None or not loop.goes_on:
            return "break;"
        return f"{{ {loop.goes_on} = 0; {f'goto {self.label};' if self.label else ''} }}"

    def _plain_continue_statement(self, node: Node) -> str:
        loops = [each for each in self.loops if not each.is_switch]
        if not loops or not loops[-1].goes_on:
            return "continue;"
        return f"{{ {loops[-1].turns} = 0; {f'goto {self.label};' if self.label else ''} }}"

    # ---- declarations ----

    def declaration(self, node: Node) -> list[str]:
        """Translate a declaration, into one for each variable."""
        inner = node.child_by_field_name("type")
        if inner is not None and inner.child_by_field_name("body") is not None:
            enter(inner, self.scope, None)
        words = {text_of(each) for each in node.children} | {text_of(each) for each in node.named_children}
        if "__shared__" in words:
            self._shared(node, "extern" in words)
            return []
        if "static" in words and "constexpr" not in words and "const" not in words:
            raise self.refused(node, "podium-opencl has no static variables in functions: declare it outside")
        if "extern" in words:
            raise self.refused(node, "podium-opencl has no extern variables but __shared__ ones")
        if "register" in words or "thread_local" in words:
            raise self.refused(node, "podium-opencl has no register or thread_local variables")
        texts = []
        for declarator in variable_declarators(node):
            if function_declarator_below(declarator):
                raise self.refused(node, "podium-opencl has no declarations of functions inside of functions")
            with self.at(declarator):
                texts.append(self._variable_declared(node, declarator, bool(words & {"const", "constexpr"})))
        return texts

    def _shared(self, node: Node, dynamic: bool) -> None:
        for declarator in variable_declarators(node):
            if declarator.type == "init_declarator":
                raise self.refused(declarator, "a shared variable has no initial value")
            name = text_of(name_node(declarator))
            kind = self.resolution.declared(self.resolution.specified(node, self.scope), declarator, self.scope)
            if dynamic:
                if kind.kind != "array":
                    raise self.refused(declarator, f"dynamic shared memory is an array: extern __shared__ ... {name}[]")
                text = self.need("podium_shared", "__local uchar *podium_shared")
                kind = Type("pointer", to=kind.target, space="local", size=8)
                self.scope.names[name] = Local(f"(({spelled(kind)}){text})", kind, key=node.start_byte)
                self.learned.setdefault(node.start_byte, "local")
                continue
            word = self.whole.shared(self.function_name, name, kind)
            if kind.kind == "pointer":
                raise self.refused(declarator, "podium-opencl has no shared pointers: share the index")
            target = stored(kind)
            form = f"(*{word})" if target.kind == "array" else f"*{word}"
            self.need(word, "__local " + spelled(target, form))
            self.scope.names[name] = Local(f"(*{word})", kind, "local")

    def _variable_declared(self, node: Node, declarator: Node, constant: bool) -> str:
        initial = declarator.child_by_field_name("value")
        inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
        name = text_of(name_node(inner))
        specifier = node.child_by_field_name("type")
        assert specifier is not None
        if specifier.type == "placeholder_type_specifier":
            if initial is None:
                raise self.refused(node, "auto needs an initial value")
            base = loaded(self.value(initial)).type
            if base.kind == "pointer" and inner is not None and "pointer" in inner.type:
                base = base.target
        else:
            base = self.resolution.specified(node, self.scope)
        kind = self.resolution.declared(base, inner, self.scope)
        if kind.kind == "array" and kind.count is None and initial is not None:
            kind = replace(kind, count=initial.named_child_count)
        key = declarator.start_byte
        text = name + "_"
        if kind.kind == "reference":
            return self._reference(declarator, name, kind, initial)
        if kind.kind == "pointer":
            return self._pointer(declarator, name, kind, initial)
        value = self._initial(declarator, kind, initial)
        known = value.constant if value is not None and constant and kind.kind != "array" else None
        self.scope.names[name] = Local(text, kind, constant=known, key=key)
        if value is None:
            return f"{spelled(kind, text)};"
        return self.set_variable(kind, text, value.text, initial)

    def set_variable(self, kind: Type, name: str, value: str, initial: Node | None) -> str:
        """Declare a variable with its initial value."""
        if not self.is_masked:
            return f"{spelled(kind, name)} = {value};"
        if kind.kind != "array":
            return f"{spelled(kind, name)}; if ({self.condition()}) {name} = {value};"
        # Arrays cannot be assigned to: copy.
        copy = self.fresh("copy")
        return (
            f"{spelled(kind, name)}; if ({self.condition()}) {{ {spelled(kind, copy)} = {value}; "
            f"for (int podium_i = 0; podium_i < {kind.count}; podium_i++) "
            + _copied(kind.target, f"{name}[podium_i]", f"{copy}[podium_i]")
            + " }"
        )

    def _initial(self, node: Node, kind: Type, initial: Node | None) -> Value | None:
        if initial is None:
            return self.constructed(node, kind, []) if kind.kind == "struct" else None
        if initial.type == "argument_list":
            nodes = [each for each in initial.named_children if each.type != "comment"]
            if kind.kind != "struct":
                if len(nodes) != 1:
                    raise self.refused(initial, f"a {named(kind)} takes one value")
                return convert(self.rvalue(nodes[0]), kind)
            return self._made(node, kind, nodes)
        if kind.kind == "array":
            return Value(self.initialised(initial, kind), kind)
        is_listed = initial.type == "initializer_list" and kind.kind == "struct"
        if is_listed and not self.is_masked and self.constructed_name(kind) is None:
            return Value(self.initialised(initial, kind), kind)
        return self.converted(initial, kind)

    def constructed_name(self, kind: Type) -> str | None:
        """Return the name of a struct's constructors, None if it has none."""
        scope = kind.origin
        has = isinstance(scope, Scope) and isinstance(scope.names.get(scope.name), list)
        return scope.name if has else None

    def converted(self, node: Node, kind: Type) -> Value:
        """Translate an expression, which may be in braces, and convert it to a type."""
        if node.type == "initializer_list" and kind.kind == "struct" and self.constructed_name(kind) is not None:
            made = self.constructed(node, kind, self._given(list(node.named_children)))
            if made is not None:
                return made
        return super().converted(node, kind)

    def _reference(self, node: Node, name: str, kind: Type, initial: Node | None) -> str:
        if initial is None:
            raise self.refused(node, f"the reference {name} refers to nothing")
        value = self.value(initial)
        if not value.is_lvalue or identity(value.type) != identity(kind.target):
            value = convert(loaded(value), kind.target)
            self.scope.names[name] = Local(name + "_", kind.target, key=node.start_byte)
            return self.set_variable(kind.target, name + "_", value.text, initial)
        if value.type.kind == "pointer":
            raise self.refused(node, "podium-opencl has no references to pointers")
        pointer_type = Type("pointer", to=value.type, space=value.space, size=8)
        self.scope.names[name] = Local(f"{name}_", Type("reference", to=value.type, space=value.space, size=8))
        return self.set_variable(pointer_type, f"{name}_", f"&{value.text}", initial)

    def _pointer(self, node: Node, name: str, kind: Type, initial: Node | None) -> str:
        key = node.start_byte
        text = name + "_"
        value = None
        if initial is not None:
            if initial.type == "argument_list":
                initial = initial.named_children[0]
            value = self.converted(initial, replace(kind, space=None))
            if not (value.constant == 0 or text_of(initial) in ("nullptr", "NULL", "0")):
                self.learn(key, value.type.space)
        self.scope.names[name] = Local(text, kind, key=key)
        space = self.learned.get(key)
        if space is None:
            self.unknown_spaces[key] = name
            space = "global"
        kind = replace(kind, space=space)
        if value is None:
            return f"{spelled(kind, text)};"
        if value.type.space != space:
            value = Value(f"(({spelled(kind)})0)", kind)
        return self.set_variable(kind, text, value.text, initial)

    def initialised(self, node: Node, kind: Type) -> str:
        """Translate values in braces for an array or a struct."""
        items = [each for each in node.named_children if each.type != "comment"]
        if node.type != "initializer_list":
            raise self.refused(node, f"a {named(kind)} takes its values in braces")
        if not items:
            return "{0}"
        kinds = [kind.target] * len(items) if kind.kind == "array" else [member for _, member in kind.members]
        if len(items) > (kind.count or 0 if kind.kind == "array" else len(kinds)):
            raise self.refused(node, f"too many values for {named(kind)}")
        parts = []
        for item, each in zip(items, kinds):
            if item.type == "initializer_pair":
                raise self.refused(item, "podium-opencl has no designated initializers: give all values in order")
            if each.kind == "array":
                parts.append(self.initialised(item, each))
            elif each.kind == "pointer":
                value = self.converted(item, replace(each, space="global"))
                parts.append(f"(ulong)({value.text})")
            else:
                parts.append(self.converted(item, each).text)
        return f"{{{', '.join(parts)}}}"


def _copied(kind: Type, to: str, source: str) -> str:
    if kind.kind != "array":
        return f"{to} = {source};"
    index = "podium_" + "i" * (to.count("[") + 1)
    inner = _copied(kind.target, f"{to}[{index}]", f"{source}[{index}]")
    return f"for (int {index} = 0; {index} < {kind.count}; {index}++) {inner}"
