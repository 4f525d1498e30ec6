"""One function of the output, translated as often as it takes to learn the address spaces of its pointers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from podium_opencl.translation.context import Instance, Parameter, Whole
from podium_opencl.translation.masked import FLAG, Masked
from podium_opencl.translation.refusal import Refusal
from podium_opencl.translation.symbols import Function, Local, Scope, text_of
from podium_opencl.translation.types import VOID, Type, spelled
from podium_opencl.translation.uniformity import varying_variables
from podium_opencl.translation.values import Value

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["MOST_EXCHANGING", "Body", "translate_function"]

_MOST_PASSES = 8
# The most threads of a block that exchanges values between its threads.
MOST_EXCHANGING = 1024


class Body(Masked):
    """The translation of one function, or of an expression outside of functions."""

    def declared_result(self) -> str:
        """Declare the variable that keeps what a thread has returned while the others go on."""
        return spelled(self.result_type(), "podium_result")

    def result_type(self) -> Type:
        """Return the type that the function returns, with the space that its pointer or reference has."""
        if self.result.kind in ("pointer", "reference"):
            return replace(self.result, space=self.learned.get(0, "global"))
        return self.result


def translate_function(
    whole: Whole,
    function: Function,
    scope: Scope,
    parameters: Sequence[Parameter],
    this: Parameter | None,
    instance: Instance,
    is_kernel: bool,
) -> str:
    """Translate a function; fills in what the instance returns and needs. Returns the text. Raises `Refusal`."""
    learned: dict[int, str] = {}
    for _ in range(_MOST_PASSES):
        before = dict(learned)
        unknown: dict[int, str] = {}
        body = Body(whole, Scope(scope, kind="function"), learned)
        body.unknown_spaces = unknown
        text = _pass(body, function, parameters, this, instance, is_kernel)
        for key in unknown:
            learned.setdefault(key, "global")
        if learned == before:
            return text
    raise Refusal(f"it is not clear which memory the pointers of {function.name} point to", whole.place(function.node))


def _pass(
    body: Body,
    function: Function,
    parameters: Sequence[Parameter],
    this: Parameter | None,
    instance: Instance,
    is_kernel: bool,
) -> str:
    node = function.node
    code = node.child_by_field_name("body")
    assert code is not None
    body.home, body.this = instance.home, this
    if this is not None and this.type.kind != "pointer":
        body.this = Parameter("podium_this", Type("pointer", to=this.type, space="private", size=8))
    if instance.masked:
        body.mask = ["podium_active"]
    is_constructor = node.child_by_field_name("type") is None
    owner = function.scope.owner
    if is_constructor:
        if owner is None or owner.kind != "struct":
            raise Refusal(f"{function.name} has no type", body.whole.place(node))
        body.result = VOID
        body.this = Parameter("podium_this", Type("pointer", to=owner, space="private", size=8))
    else:
        specifier = node.child_by_field_name("type")
        assert specifier is not None
        if specifier.type == "placeholder_type_specifier":
            body.result = Type("auto", "auto")
        else:
            with body.at(node):
                body.result = _result(body, node)
                if this is not None and this.type.kind != "pointer" and body.result.kind == "reference":
                    body.result = body.result.target.plain()  # the object goes with the function, so a value is left
    listed = [_entered(body, index, each, is_kernel) for index, each in enumerate(parameters)]
    uniform = [(each.name, each.uniform) for each in parameters]
    body.varying = varying_variables(code, uniform, body.scope, instance.masked)
    if is_constructor and owner is not None:
        text = f"{{ {owner.name} podium_made; {_pointer(owner)} = &podium_made; "
        text += _members(body, node, owner) + body.statement(code) + " return podium_made; }"
        body.result = owner
    elif instance.is_collective:
        text = body.body(code)
    else:
        text = body.statement(code)
    instance.result = body.result_type() if body.result.kind != "auto" else VOID
    instance.implicit = dict(body.implicit)
    instance.parameters = list(parameters)
    if is_kernel:
        return _kernel(body, instance, listed, text)
    if this is not None and not is_constructor:
        if this.type.kind == "pointer":
            listed.insert(0, _pointer(this.type.target, this.type.space or "private"))
        else:
            listed.insert(0, spelled(this.type, "podium_object"))
            text = f"{{ {_pointer(this.type)} = &podium_object; {text} }}"
    if instance.masked:
        listed.append(f"{FLAG} podium_active")
    listed += body.implicit.values()
    head = spelled(instance.result, f"{instance.name}({', '.join(listed) or 'void'})")
    return f"PODIUM_INLINE {head}{body.line(node)}{text}\n"


def _pointer(kind: Type, space: str = "private") -> str:
    return spelled(Type("pointer", to=kind, space=space, size=8), "podium_this")


def _result(body: Body, node: Node) -> Type:
    kind = body.resolution.specified(node, body.scope)
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        if "pointer" in declarator.type:
            kind = Type("pointer", to=kind, space=None, size=8)
        elif "reference" in declarator.type:
            kind = Type("reference", to=kind, space=None, size=8)
        inner = declarator.child_by_field_name("declarator")
        declarator = inner or next((each for each in declarator.named_children if "declarator" in each.type), None)
    return kind


def _entered(body: Body, index: int, parameter: Parameter, is_kernel: bool) -> str:
    """Enter a parameter into the function's scope; return its declaration."""
    kind, key = parameter.type, index + 1
    name = f"{parameter.name}_" if parameter.name else f"podium_unnamed{index}"
    if kind.kind == "pointer":
        body.learned.setdefault(key, kind.space or "global")
    if parameter.name:
        body.scope.names[parameter.name] = Local(name, replace(kind, volatile=False), key=key)
    if kind.kind == "reference":
        return spelled(Type("pointer", to=kind.target, space=kind.space, size=8), name)
    return spelled(replace(kind, volatile=False), name)


def _members(body: Body, node: Node, owner: Type) -> str:
    """Translate the initialisers of a constructor."""
    listed = next((each for each in node.named_children if each.type == "field_initializer_list"), None)
    texts = []
    kinds = dict(owner.members)
    for each in listed.named_children if listed is not None else ():
        name = text_of(each.named_children[0])
        if name not in kinds:
            raise body.refused(each, f"no member named {name!r} in {owner.name.partition('_')[0]}")
        values = [item for item in each.named_children[1].named_children if item.type != "comment"]
        with body.at(each):
            if len(values) != 1 or kinds[name].kind == "array":
                raise body.refused(each, f"podium-opencl takes one value for the member {name} here")
            value = body.converted(values[0], kinds[name])
            left = Value(f"podium_made.{name}_", kinds[name], None, True, "private", kinds[name].kind == "pointer")
            assigned = body.stored_pointer(left, value).text if left.in_memory else f"{left.text} = {value.text}"
            texts.append(f"{assigned}; ")
    return "".join(texts)


def _kernel(body: Body, instance: Instance, listed: list[str], text: str) -> str:
    """Write a kernel: what its functions need is declared at its beginning, or is a parameter behind the user's."""
    opening, addresses = "", []
    for name, declaration in body.implicit.items():
        if name in ("podium_variables", "podium_shared"):
            continue
        if name == "podium_exchange":
            opening += f"__local ulong podium_exchange[{MOST_EXCHANGING}]; "
            addresses.append("(ulong)podium_exchange")
            continue
        # What a pointer is declared to point to, "__local float (*name)[3]" or "__local float *name".
        storage = declaration.replace(f"(*{name})", f"{name}_storage").replace(f"*{name}", f"{name}_storage")
        # Arrays of numbers are also read as vectors.
        opening += f"{storage} __attribute__((aligned(16))); {declaration} = &{name}_storage; "
        addresses.append(f"(ulong){name}")
    # PoCL (3.0, 3.1) takes shared memory that only this function knows of for unchanged by what other threads do before
    # a barrier; so its address is put where others could find it.
    opening += "".join(f"volatile ulong podium_known{i} = {each}; " for i, each in enumerate(addresses))
    listed = listed + [body.implicit[name] for name in ("podium_variables", "podium_shared") if name in body.implicit]
    return f"__kernel void {instance.name}({', '.join(listed)})\n{{ {opening}{text} }}\n"
