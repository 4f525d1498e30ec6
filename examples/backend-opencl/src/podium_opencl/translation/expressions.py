"""Expressions: operators and assignments."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from podium_opencl.translation.folding import folded
from podium_opencl.translation.literals import Literals
from podium_opencl.translation.places import Places, part
from podium_opencl.translation.refusal import Refusal
from podium_opencl.translation.symbols import text_of
from podium_opencl.translation.types import BOOL, FLOAT, INT, LONG, common, constant, promoted
from podium_opencl.translation.values import Value, convert, literal, loaded, named, truth, widened

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Expressions"]

_COMPARISONS = ("<", ">", "<=", ">=", "==", "!=")


class Expressions(Places, Literals):
    """The translation of expressions."""

    def value(self, node: Node) -> Value:
        """Translate an expression; the result may be an lvalue. Raises `Refusal` with its place."""
        method = getattr(self, f"_{node.type}", None)
        if node.type in ("primitive_type", "sized_type_specifier"):
            raise self.refused(node, f"{text_of(node)} is a type and no value")
        if method is None:
            raise self.refused(node, _refusal(node))
        with self.at(node):
            found: Value = method(node)
            return found

    def rvalue(self, node: Node) -> Value:
        """Translate an expression and read it."""
        return loaded(self.value(node))

    # ---- operators ----

    def _parenthesized_expression(self, node: Node) -> Value:
        return self.value(node.named_children[0])

    def _comma_expression(self, node: Node) -> Value:
        left = self.value(part(node, "left"))
        before, self.may_hoist = self.may_hoist, False  # what is left of a comma comes first
        right = self.rvalue(part(node, "right"))
        self.may_hoist = before
        if not left.text:
            return right
        return Value(f"({left.text}, {right.text})", right.type)

    def _conditional_expression(self, node: Node) -> Value:
        condition = truth(self.rvalue(part(node, "condition")))
        nodes = [part(node, "consequence"), part(node, "alternative")]
        if condition.constant is not None:
            return self.rvalue(nodes[0 if condition.constant else 1])
        before, self.may_hoist = self.may_hoist, False
        values = [self.rvalue(each) for each in nodes]
        self.may_hoist = before
        kinds = [each.type for each in values]
        if kinds[0].is_number and kinds[1].is_number:
            kind = kinds[0] if kinds[0].name == kinds[1].name else common(kinds)
        elif "pointer" in (kinds[0].kind, kinds[1].kind):
            pointers = [each for each in kinds if each.kind == "pointer"]
            kind = next(each for each in pointers if each.space not in (None, "?"))
            kind = replace(kind, to=constant(kind.target, any(each.target.const for each in pointers)))
        else:
            kind = kinds[0]
        values = [convert(each, kind) for each in values]
        return Value(f"({condition.text} ? {values[0].text} : {values[1].text})", kind)

    def _unary_expression(self, node: Node) -> Value:
        operator = text_of(part(node, "operator"))
        operator = {"not": "!", "compl": "~"}.get(operator, operator)
        value = self.rvalue(part(node, "argument"))
        if value.type.kind == "struct":
            return self.overloaded(node, f"operator{operator}", [value])
        if operator == "!":
            value = truth(value)
            return Value(f"(!{value.text})", BOOL, None if value.constant is None else int(not value.constant))
        if not value.type.is_number:
            raise self.refused(node, f"{operator} of a {named(value.type)}")
        kind = value.type if value.type.kind == "small" else promoted(value.type)
        constant = folded(operator, [value.constant], kind)
        if isinstance(constant, int):
            return Value(literal(constant, kind), kind, constant)
        return convert(Value(f"({operator}{widened(value).text})", widened(value).type, constant), kind)

    def _binary_expression(self, node: Node) -> Value:
        operator = text_of(part(node, "operator"))
        operator = {"and": "&&", "or": "||", "bitand": "&", "bitor": "|", "xor": "^", "not_eq": "!="}.get(
            operator, operator
        )
        left = self.rvalue(part(node, "left"))
        if operator in ("&&", "||"):
            left = truth(left)
            if left.constant is not None and bool(left.constant) == (operator == "||"):
                return Value(str(left.constant), BOOL, left.constant)
            before, self.may_hoist = self.may_hoist, False
            right = truth(self.rvalue(part(node, "right")))
            self.may_hoist = before
            if left.constant is not None:
                return right
            return Value(f"({left.text} {operator} {right.text})", BOOL)
        return self.combined(node, operator, left, self.rvalue(part(node, "right")))

    def combined(self, node: Node, operator: str, left: Value, right: Value) -> Value:
        """Translate an operator between two values."""
        kinds = (left.type, right.type)
        if "struct" in (kinds[0].kind, kinds[1].kind):
            return self.overloaded(node, f"operator{operator}", [left, right])
        if "pointer" in (kinds[0].kind, kinds[1].kind):
            return self._of_pointers(node, operator, left, right)
        if "null" in (kinds[0].kind, kinds[1].kind) or not (kinds[0].is_number and kinds[1].is_number):
            raise self.refused(node, f"{operator} between a {named(kinds[0])} and a {named(kinds[1])}")
        if operator in ("<<", ">>"):
            kind = promoted(kinds[0])
        else:
            kind = common(kinds)
            left, right = convert(left, kind), convert(right, kind)
        constant = folded(operator, [left.constant, right.constant], kind)
        result = BOOL if operator in _COMPARISONS else kind
        if operator in ("/", "%") and right.constant == 0 and kind.kind == "integer":
            raise self.refused(node, "a division by zero")
        if isinstance(constant, int):
            return Value(literal(constant, result), result, constant)
        if kind.kind == "small":
            value = Value(f"({widened(left).text} {operator} {widened(right).text})", FLOAT)
            return replace(value, type=BOOL) if result == BOOL else convert(value, kind)
        return Value(f"({left.text} {operator} {right.text})", result, constant)

    def _of_pointers(self, node: Node, operator: str, left: Value, right: Value) -> Value:
        if operator == "+" and left.type.kind == "integer":
            left, right = right, left
        if operator in ("+", "-") and right.type.kind == "integer":
            if left.type.target.kind == "void":
                raise self.refused(node, "arithmetic on a pointer to void")
            return Value(f"({left.text} {operator} {right.text})", left.type)
        if operator == "-" and right.type.kind == left.type.kind == "pointer":
            if left.type.space != right.type.space:
                raise self.refused(node, "the difference of pointers to different memories")
            return Value(f"((long)({left.text} - {right.text}))", LONG)
        if operator in _COMPARISONS:
            return Value(f"((ulong)({left.text}) {operator} (ulong)({right.text}))", BOOL)
        raise self.refused(node, f"{operator} between a {named(left.type)} and a {named(right.type)}")

    # ---- assignment ----

    def _assignment_expression(self, node: Node) -> Value:
        operator = text_of(part(node, "operator"))
        left, right = self.value(part(node, "left")), part(node, "right")
        if left.type.kind == "struct" and operator != "=":
            return self.overloaded(node, f"operator{operator}", [left, self.rvalue(right)])
        if not left.is_lvalue or left.type.kind == "array":
            raise self.refused(node, f"{text_of(part(node, 'left'))} cannot be assigned to")
        if left.type.const or left.space == "constant":
            raise self.refused(node, f"{text_of(part(node, 'left'))} is const and cannot be assigned to")
        if operator == "=":
            value = self.converted(right, left.type)
        else:
            other = self.rvalue(right)
            value = self.combined(node, operator[:-1], loaded(left), other)
            simple = left.type.kind in ("integer", "real") and left.type.name != "bool" and value.type.kind != "small"
            if simple or (left.type.kind == "pointer" and not left.in_memory):
                return replace(left, text=f"({left.text} {operator} {other.text})", constant=None)
            if any(each in left.text for each in ("++", "--", "+=", "podium_call")):
                raise self.refused(node, f"write {text_of(part(node, 'left'))} only once: x = x {operator[:-1]} ...")
            value = convert(value, left.type)
        if left.type.kind == "pointer":
            return self.stored_pointer(left, value)
        return replace(left, text=f"({left.text} = {value.text})", constant=None)

    def stored_pointer(self, left: Value, value: Value) -> Value:
        """Assign to a pointer: as an address in memory, else so that its variable learns the space."""
        if left.in_memory:
            if value.type.space not in ("global", "?"):
                raise Refusal("a pointer that lies in memory can only point to global memory: keep the index instead")
            return replace(left, text=f"({left.text} = (ulong)({value.text}))")
        self.learn(left.key, value.type.space)
        return replace(left, text=f"({left.text} = {value.text})")

    def learn(self, key: int, space: str | None) -> None:
        """Note which memory a pointer variable points to."""
        if space in (None, "?") or key < 0:
            return
        known = self.learned.get(key)
        if known is None:
            self.learned[key] = str(space)
        elif known != space:
            raise Refusal(
                f"a pointer points to {known} memory in one place and to {space} memory in another: podium-opencl "
                "gives each pointer one address space; use two variables"
            )

    def _update_expression(self, node: Node) -> Value:
        value = self.value(part(node, "argument"))
        operator = text_of(part(node, "operator"))
        is_prefix = node.children[0].type == operator
        if value.type.kind == "struct":  # what stands behind its object has an int, to be told from what stands before
            return self.overloaded(node, f"operator{operator}", [value] if is_prefix else [value, Value("0", INT, 0)])
        if value.type.const or value.space == "constant":
            raise self.refused(node, f"{text_of(part(node, 'argument'))} is const and cannot be changed by {operator}")
        if not value.is_lvalue or value.in_memory or value.type.kind not in ("integer", "real", "pointer"):
            raise self.refused(node, f"write x {operator[0]}= 1 instead of {operator}")
        if value.type.name == "bool":
            raise self.refused(node, f"{operator} of {text_of(part(node, 'argument'))}")
        if is_prefix:
            return replace(value, text=f"({operator}{value.text})", constant=None)
        return Value(f"({value.text}{operator})", value.type)


_REFUSED = {
    "lambda_expression": "podium-opencl has no lambdas: write a function or a struct with operator()",
    "gnu_asm_expression": "podium-opencl has no inline PTX: write it in C++, for which there are intrinsics",
    "new_expression": "podium-opencl has no new: use an array of a fixed size, or pass the memory",
    "delete_expression": "podium-opencl has no delete: use an array of a fixed size, or pass the memory",
    "user_defined_literal": "podium-opencl has no literals with suffixes of the user's",
    "fold_expression": "podium-opencl has no parameter packs",
    "parameter_pack_expansion": "podium-opencl has no parameter packs",
    "raw_string_literal": "podium-opencl has strings only as the format of printf",
    "co_await_expression": "podium-opencl has no coroutines",
}


def _refusal(node: Node) -> str:
    return _REFUSED.get(node.type, f"podium-opencl does not know the expression {text_of(node)!r} ({node.type})")
