"""Statements, where each thread goes its own way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from podium_opencl.translation.collectives import called_name
from podium_opencl.translation.declarations import Declarations
from podium_opencl.translation.symbols import (
    Scope,
    enter,
    text_of,
)
from podium_opencl.translation.types import VOID, Type
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


class Statements(Declarations):
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
        if self.result.kind == "reference":
            return self._referred(values[0])
        if self.result.kind == "pointer":
            if text_of(values[0]) in ("nullptr", "NULL", "0"):
                return convert(self.rvalue(values[0]), replace(self.result, space=self.learned.get(0))).text
            value = convert(self.rvalue(values[0]), replace(self.result, space=None))
            self.learn(0, value.type.space)
            return value.text
        return self.converted(values[0], self.result).text

    def _referred(self, node: Node) -> str:
        """Translate what a function returns a reference to, into its address."""
        value, target = self.value(node), self.result.target
        if not value.is_lvalue or identity(value.type) != identity(target) or value.type.kind == "pointer":
            raise self.refused(node, f"podium-opencl cannot return {text_of(node)} as a reference to {named(target)}")
        if value.type.const and not target.const:
            raise self.refused(node, f"{text_of(node)} is const, and returned as a reference to {named(target)}")
        self.learn(0, value.space)
        return f"(&{value.text})"

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
