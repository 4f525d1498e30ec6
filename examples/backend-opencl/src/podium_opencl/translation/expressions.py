"""Expressions but for calls: names, operators, members, elements, literals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from podium_opencl.translation.condition import integer
from podium_opencl.translation.context import Context
from podium_opencl.translation.folding import folded
from podium_opencl.translation.refusal import Refusal
from podium_opencl.translation.resolution import Templated
from podium_opencl.translation.symbols import (
    Alias,
    Enumerator,
    Local,
    Scope,
    Struct,
    Symbol,
    Variable,
    text_of,
)
from podium_opencl.translation.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    NULL,
    SCALARS,
    UINT,
    ULONG,
    Type,
    common,
    pointer,
    promoted,
    size_of,
    spelled,
    stored,
)
from podium_opencl.translation.values import Value, convert, identity, literal, loaded, named, truth, widened

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Expressions"]

_INDICES = {
    "threadIdx": "get_local_id",
    "blockIdx": "get_group_id",
    "blockDim": "get_local_size",
    "gridDim": "get_num_groups",
}
_NAMES = ("identifier", "qualified_identifier", "template_function")
_COMPARISONS = ("<", ">", "<=", ">=", "==", "!=")


class Expressions(Context):
    """The translation of expressions."""

    def value(self, node: Node) -> Value:
        """Translate an expression; the result may be an lvalue. Raises `Refusal` with its place."""
        method = getattr(self, f"_{node.type}", None)
        if method is None:
            raise self.refused(node, _refusal(node))
        with self.at(node):
            found: Value = method(node)
            return found

    def rvalue(self, node: Node) -> Value:
        """Translate an expression and read it."""
        return loaded(self.value(node))

    # ---- names ----

    def _identifier(self, node: Node) -> Value:
        return self._named(node, text_of(node))

    _type_identifier = _identifier  # what stands between <> is read as a type

    def _qualified_identifier(self, node: Node) -> Value:
        found = self.resolution.symbol(node, self.scope)
        if found is None:
            raise self.unknown(node)
        return self._of_symbol(node, found)

    def _this(self, node: Node) -> Value:
        if self.this is None:
            raise self.refused(node, "this stands outside of a member function")
        return Value("podium_this", self.this.type)

    def _named(self, node: Node, name: str) -> Value:
        scope: Scope | None = self.scope
        while scope is not None:
            found = scope.own(name)
            if found is not None:
                return self._of_symbol(node, found)
            if scope.kind == "struct" and scope.owner is not None and self.this is not None:
                kind = dict(scope.owner.members).get(name)
                if kind is not None and identity(scope.owner) == identity(self.this.type.target):
                    return self._member_of(
                        Value("(*podium_this)", scope.owner, None, True, self.this.type.space or "?"), name
                    )
            scope = scope.parent
        if name in _INDICES:
            kind = self.resolution.vector("dim3")
            parts = ", ".join(f"(uint){_INDICES[name]}({axis})" for axis in range(3))
            return Value(f"(({kind.name}){{{parts}}})", kind)
        if name == "warpSize":
            return Value(str(self.whole.warp_size), INT, self.whole.warp_size)
        raise self.unknown(node)

    def _of_symbol(self, node: Node, found: Symbol | Templated) -> Value:
        if isinstance(found, Local):
            return self._local(found)
        if isinstance(found, Enumerator):
            base = 0
            if found.node is not None:
                start = self.whole.evaluate(found.node, found.scope).constant
                if not isinstance(start, int):
                    raise self.refused(node, f"{text_of(node)} is no constant that podium-opencl can compute")
                base = start
            return Value(literal(base + found.more, INT), INT, base + found.more)
        if isinstance(found, Variable):
            return self._variable(found)
        if isinstance(found, list):
            raise self.refused(node, f"podium-opencl has no pointers to functions: {text_of(node)} can only be called")
        raise self.refused(node, f"{text_of(node)} is no value")

    def _local(self, found: Local) -> Value:
        kind = found.type
        if kind.kind == "reference":
            return Value(f"(*{found.text})", kind.target, is_lvalue=True, space=kind.space or "?")
        if kind.kind == "pointer" and kind.space in (None, "?"):
            kind = replace(kind, space=self.learned.get(found.key, "?"))
        return Value(found.text, kind, found.constant, True, found.space, key=found.key)

    def _variable(self, found: Variable) -> Value:
        kind = self.variable_type(found)
        initial = found.initial
        if found.is_constant and kind.is_number:
            if initial is None:
                raise Refusal(f"the constant {found.name} has no value")
            value = self.whole.evaluate(initial, found.scope)
            return replace(convert(loaded(value), kind), is_lvalue=False)
        if found.is_constant:
            return self.whole.constant_array(found)
        place = f"podium_variables + {self.whole.offset(found, kind)}"
        self.need("podium_variables", "__global uchar *podium_variables")
        address = pointer(stored(kind), "global")
        return Value(f"(*({spelled(address)})({place}))", kind, None, True, "global", in_memory=kind.kind == "pointer")

    def variable_type(self, found: Variable) -> Type:
        """Return the type of a variable outside of functions; an array without a size has that of its values."""
        inner = found.declarator.child_by_field_name("declarator")
        declarator = inner if found.declarator.type == "init_declarator" else found.declarator
        specifier = found.node.child_by_field_name("type")
        initial = found.initial
        if specifier is not None and specifier.type == "placeholder_type_specifier" and initial is not None:
            return loaded(self.whole.evaluate(initial, found.scope)).type
        kind = self.resolution.declared(self.resolution.specified(found.node, found.scope), declarator, found.scope)
        if kind.kind == "array" and kind.count is None and initial is not None:
            kind = replace(kind, count=initial.named_child_count)
        return kind

    # ---- literals ----

    def _number_literal(self, node: Node) -> Value:
        text = text_of(node).replace("'", "")
        lower = text.lower()
        if "p" in lower or ("0x" not in lower and any(each in lower for each in ".e")):
            digits = lower.rstrip("fl")
            single = lower.endswith("f")
            if lower.endswith("l"):
                raise self.refused(node, "a GPU has no long double: use double")
            if not single and "cl_khr_fp64" not in self.whole.extensions:
                raise self.refused(node, f"this OpenCL device has no double (cl_khr_fp64): write {digits}f")
            try:
                constant = float.fromhex(digits) if "p" in digits else float(digits)
            except ValueError:
                raise self.refused(node, f"{text} is no number that podium-opencl knows") from None
            return Value(digits + ("f" if single else ""), FLOAT if single else DOUBLE, constant)
        value = integer(lower)
        suffix = lower[len(lower.rstrip("uzl")) :]
        if value is None:
            raise self.refused(node, f"{text} is no number that podium-opencl knows")
        kinds = [UINT, ULONG] if "u" in suffix else [INT, LONG] if lower[:1] != "0" else [INT, UINT, LONG, ULONG]
        if "l" in suffix or "z" in suffix:
            kinds = [kind for kind in kinds if kind.size == 8]
        fitting = [kind for kind in kinds if value < 1 << (8 * kind.size - kind.signed)]
        if not fitting:
            raise self.refused(node, f"{text} is larger than any integer")
        return Value(literal(value, fitting[0]), fitting[0], value)

    def _char_literal(self, node: Node) -> Value:
        try:
            value = ord(text_of(node)[1:-1].encode().decode("unicode_escape"))
        except (ValueError, TypeError):
            value = 256
        if not 0 <= value < 128:
            raise self.refused(node, f"the character {text_of(node)} is not a plain one")
        return Value(f"((char){value})", SCALARS["char"], value)

    def _true(self, node: Node) -> Value:
        return Value("1", BOOL, 1)

    def _false(self, node: Node) -> Value:
        return Value("0", BOOL, 0)

    def _null(self, node: Node) -> Value:
        return Value("0", NULL)

    def _string_literal(self, node: Node) -> Value:
        raise self.refused(node, "podium-opencl has strings only as the format of printf")

    # ---- operators ----

    def _parenthesized_expression(self, node: Node) -> Value:
        return self.value(node.named_children[0])

    def _comma_expression(self, node: Node) -> Value:
        left, right = self.value(_field(node, "left")), self.rvalue(_field(node, "right"))
        if not left.text:
            return right
        return Value(f"({left.text}, {right.text})", right.type)

    def _conditional_expression(self, node: Node) -> Value:
        condition = truth(self.rvalue(_field(node, "condition")))
        nodes = [_field(node, "consequence"), _field(node, "alternative")]
        if condition.constant is not None:
            return self.rvalue(nodes[0 if condition.constant else 1])
        before, self.may_hoist = self.may_hoist, False
        values = [self.rvalue(each) for each in nodes]
        self.may_hoist = before
        kinds = [each.type for each in values]
        if kinds[0].is_number and kinds[1].is_number:
            kind = kinds[0] if kinds[0].name == kinds[1].name else common(kinds)
        elif "pointer" in (kinds[0].kind, kinds[1].kind):
            kind = next(each for each in kinds if each.kind == "pointer" and each.space not in (None, "?"))
        else:
            kind = kinds[0]
        values = [convert(each, kind) for each in values]
        return Value(f"({condition.text} ? {values[0].text} : {values[1].text})", kind)

    def _unary_expression(self, node: Node) -> Value:
        operator = text_of(_field(node, "operator"))
        operator = {"not": "!", "compl": "~"}.get(operator, operator)
        value = self.rvalue(_field(node, "argument"))
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
        operator = text_of(_field(node, "operator"))
        operator = {"and": "&&", "or": "||", "bitand": "&", "bitor": "|", "xor": "^", "not_eq": "!="}.get(
            operator, operator
        )
        left = self.rvalue(_field(node, "left"))
        if operator in ("&&", "||"):
            left = truth(left)
            if left.constant is not None and bool(left.constant) == (operator == "||"):
                return Value(str(left.constant), BOOL, left.constant)
            before, self.may_hoist = self.may_hoist, False
            right = truth(self.rvalue(_field(node, "right")))
            self.may_hoist = before
            if left.constant is not None:
                return right
            return Value(f"({left.text} {operator} {right.text})", BOOL)
        return self.combined(node, operator, left, self.rvalue(_field(node, "right")))

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

    def overloaded(self, node: Node, name: str, values: list[Value]) -> Value:
        """Call an operator that the user has defined."""
        raise NotImplementedError

    # ---- assignment ----

    def _assignment_expression(self, node: Node) -> Value:
        operator = text_of(_field(node, "operator"))
        left, right = self.value(_field(node, "left")), _field(node, "right")
        if left.type.kind == "struct" and operator != "=":
            return self.overloaded(node, f"operator{operator}", [left, self.rvalue(right)])
        if not left.is_lvalue or left.type.kind == "array":
            raise self.refused(node, f"{text_of(_field(node, 'left'))} cannot be assigned to")
        if left.space == "constant":
            raise self.refused(node, f"{text_of(_field(node, 'left'))} is constant")
        if operator == "=":
            value = self.converted(right, left.type)
        else:
            other = self.rvalue(right)
            value = self.combined(node, operator[:-1], loaded(left), other)
            simple = left.type.kind in ("integer", "real") and left.type.name != "bool" and value.type.kind != "small"
            if simple or (left.type.kind == "pointer" and not left.in_memory):
                return replace(left, text=f"({left.text} {operator} {other.text})", constant=None)
            if any(each in left.text for each in ("++", "--", "+=", "podium_call")):
                raise self.refused(node, f"write {text_of(_field(node, 'left'))} only once: x = x {operator[:-1]} ...")
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
        value = self.value(_field(node, "argument"))
        operator = text_of(_field(node, "operator"))
        if value.type.kind == "struct":
            raise self.refused(node, f"podium-opencl has no {operator} of structs")
        if not value.is_lvalue or value.in_memory or value.type.kind not in ("integer", "real", "pointer"):
            raise self.refused(node, f"write x {operator[0]}= 1 instead of {operator}")
        if value.type.name == "bool" or value.space == "constant":
            raise self.refused(node, f"{operator} of {text_of(_field(node, 'argument'))}")
        if node.children[0].type == operator:
            return replace(value, text=f"({operator}{value.text})", constant=None)
        return Value(f"({value.text}{operator})", value.type)

    # ---- memory ----

    def _subscript_expression(self, node: Node) -> Value:
        base = self.value(_field(node, "argument"))
        indices = node.child_by_field_name("indices") or node.child_by_field_name("index")
        items = indices.named_children if indices is not None and indices.type.endswith("list") else [indices]
        if len(items) != 1 or items[0] is None:
            raise self.refused(node, "an element needs one index")
        index = self.rvalue(items[0])
        if base.type.kind == "struct":
            return self.overloaded(node, "operator[]", [base, index])
        if base.type.kind == "array":
            element, space, text = base.type.target, base.space, base.text
        else:
            base = loaded(base)
            if base.type.kind != "pointer" or base.type.target.kind == "void":
                raise self.refused(node, f"a {named(base.type)} has no elements")
            element, space, text = base.type.target, base.type.space or "?", base.text
        if index.type.kind != "integer":
            raise self.refused(node, f"the index {text_of(items[0])} is a {named(index.type)}")
        in_memory = element.kind == "pointer"
        return Value(f"{text}[{index.text}]", element, None, True, space, in_memory)

    def _pointer_expression(self, node: Node) -> Value:
        operator = text_of(_field(node, "operator"))
        argument = _field(node, "argument")
        value = self.value(argument)
        if operator == "*":
            if value.type.kind == "struct":
                return self.overloaded(node, "operator*", [value])
            value = loaded(value)
            if value.type.kind != "pointer" or value.type.target.kind == "void":
                raise self.refused(node, f"* of a {named(value.type)}")
            kind = value.type.target
            return Value(f"(*{value.text})", kind, None, True, value.type.space or "?", kind.kind == "pointer")
        if not value.is_lvalue:
            raise self.refused(node, f"{text_of(argument)} has no address")
        if value.type.kind == "pointer" and not value.in_memory:
            raise self.refused(node, f"podium-opencl cannot take the address of the pointer {text_of(argument)}")
        return Value(f"(&{value.text})", pointer(value.type, value.space))

    def _field_expression(self, node: Node) -> Value:
        field = text_of(_field(node, "field"))
        argument = _field(node, "argument")
        if (
            argument.type == "identifier"
            and text_of(argument) in _INDICES
            and self.scope.find(text_of(argument)) is None
        ):
            if field not in ("x", "y", "z"):
                raise self.refused(node, f"no member named {field!r} in {text_of(argument)}")
            return Value(f"((uint){_INDICES[text_of(argument)]}({'xyz'.index(field)}))", UINT)
        base = self.value(argument)
        if text_of(_field(node, "operator")) == "->":
            base = loaded(base)
            if base.type.kind != "pointer":
                raise self.refused(node, f"-> of a {named(base.type)}")
            base = Value(f"(*{base.text})", base.type.target, None, True, base.type.space or "?")
        return self._member_of(base, field)

    def _member_of(self, base: Value, name: str) -> Value:
        kind = dict(base.type.members).get(name) if base.type.kind == "struct" else None
        if kind is None:
            scope = base.type.origin
            static = scope.own(name) if isinstance(scope, Scope) else None
            if isinstance(static, Variable):
                return self._variable(static)
            raise Refusal(f"no member named {name!r} in {named(base.type)}")
        return replace(
            base, text=f"{base.text}.{name}_", type=kind, constant=None, in_memory=kind.kind == "pointer", key=-1
        )

    # ---- types ----

    def _sizeof_expression(self, node: Node) -> Value:
        described = node.child_by_field_name("type")
        if described is not None:
            symbol = self.resolution.symbol(described.child_by_field_name("type") or described, self.scope)
            if isinstance(symbol, (Local, Variable)):
                kind = self._of_symbol(described, symbol).type
            else:
                kind = self.resolution.described(described, self.scope)
        else:
            value = _field(node, "value")
            while value.type == "parenthesized_expression":
                value = value.named_children[0]
            is_type = value.type in _NAMES and self.is_type(value)
            kind = self.resolution.type_of(value, self.scope) if is_type else self.value(value).type
        size = size_of(kind.target if kind.kind == "reference" else kind)
        return Value(literal(size, ULONG), ULONG, size)

    def _cast_expression(self, node: Node) -> Value:
        return self.cast(_field(node, "value"), self.resolution.described(_field(node, "type"), self.scope))

    def cast(self, node: Node, kind: Type) -> Value:
        """Translate a cast of an expression to a type."""
        if kind.kind == "reference":
            raise self.refused(node, "podium-opencl has no casts to references: cast the address")
        return convert(self.rvalue(node), kind, explicit=True)

    def _compound_literal_expression(self, node: Node) -> Value:
        kind = self.resolution.find_type(_field(node, "type"), self.scope)
        if kind is None:
            raise self.refused(node, f"unknown type name {text_of(_field(node, 'type'))!r}")
        return self.converted(_field(node, "value"), kind)

    def is_type(self, node: Node) -> bool:
        """Tell whether a name stands for a type."""
        if node.type in ("primitive_type", "sized_type_specifier"):
            return True
        found = self.resolution.symbol(node, self.scope)
        return isinstance(found, (Alias, Struct, Type)) or (
            found is None and self.resolution.find_type(node, self.scope) is not None
        )


def _field(node: Node, name: str) -> Node:
    found = node.child_by_field_name(name)
    assert found is not None, (node.type, name)
    return found


_REFUSED = {
    "lambda_expression": "podium-opencl has no lambdas: write a function or a struct with operator()",
    "gnu_asm_expression": "podium-opencl has no inline PTX: write it in C++, for which there are intrinsics",
    "new_expression": "podium-opencl has no new: use an array of a fixed size, or pass the memory",
    "delete_expression": "podium-opencl has no delete: use an array of a fixed size, or pass the memory",
    "user_defined_literal": "podium-opencl has no literals with suffixes of the user's",
    "fold_expression": "podium-opencl has no parameter packs",
    "parameter_pack_expansion": "podium-opencl has no parameter packs",
    "alignof_expression": "podium-opencl has no alignof: write the number",
    "raw_string_literal": "podium-opencl has strings only as the format of printf",
    "co_await_expression": "podium-opencl has no coroutines",
}


def _refusal(node: Node) -> str:
    return _REFUSED.get(node.type, f"podium-opencl does not know the expression {text_of(node)!r} ({node.type})")
