"""Kernels in CUDA C++ source: which there are, and what they take.

Types are read from the text alone: no header is opened and no compiler started. What cannot be resolved that way is
refused with the reason, and the signature to write instead. ``long`` has 64 bits, as on 64-bit Linux.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podium._record import record
from podium._signature import Parameter, Signature
from podium._source._cuda_types import ArgumentMismatch, Refusal
from podium._source._fixed_parameters import literal, rewrite
from podium._source._kernel_index import KernelGroup, KernelIndex
from podium._source._kernel_parameters import DeclaredKernel, DeclaredParameter
from podium._source._name_expression import NameExpression, check_name_expression, parse_name_expression
from podium._source._outline import Outline
from podium._source._preprocessor import preprocess
from podium._source._resolver import Resolver
from podium._source._syntax import parse
from podium._source._templates import example_arguments
from podium.errors import SourceError

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["KernelDeclaration", "ParsedKernel", "check_name_expression", "find_kernels", "parse_group", "parse_kernel"]


@record(frozen=True)
class KernelDeclaration:
    """A kernel in a source: its qualified name, the text of its template parameters, and its line, from 1."""

    name: str
    template_parameters: tuple[str, ...]
    line: int


@record(frozen=True)
class ParsedKernel:
    """A kernel ready to compile.

    `name` is the name expression to give the compiler, `signature` what a launch passes, `source` the text to compile,
    which differs from what was given only if parameters were fixed, and `line` where the kernel stands, from 1.
    """

    name: str
    signature: Signature
    source: str
    line: int


def find_kernels(source: str, *, defines: Iterable[tuple[str, str]] = ()) -> list[KernelDeclaration]:
    """List the kernels of a source: each ``__global__`` function, once, where it is defined if it is.

    `defines` are the macros that the compiler will be given. Kernels that macros with parameters make, and those in
    headers, are not seen. Raises `SourceError` for text that no compiler can read.
    """
    try:
        outline = Outline(preprocess(source, tuple(defines)))
        found = []
        for group in KernelIndex(outline).groups:
            kernel = DeclaredKernel(outline, group.deciding[0])
            found.append(KernelDeclaration(group.name, kernel.template_parameters, kernel.line))
        return found
    except RecursionError:
        raise _too_deep() from None


def parse_kernel(
    source: str,
    name: str | None,
    constants: Mapping[Any, object] | None = None,
    signature: Signature | None = None,
    *,
    defines: Iterable[tuple[str, str]] = (),
) -> ParsedKernel:
    """Read one kernel of a source.

    `name` may leave out namespaces where that is clear, and has the template arguments of a template, such as
    ``reduce<float, 256>``; without a name the source must have exactly one kernel. `constants` are values for scalar
    parameters, by name or position, that are fixed at compile time: they leave the parameter list and the signature.
    `signature`, where given, is taken for the parameters as it is: for all of them, or for those that are not constant.
    `defines` are the macros that the compiler will be given.

    Raises `SourceError` if the kernel is not found or a type is not clear, and `ArgumentTypeError` or
    `ArgumentValueError` for a constant that does not fit its type.
    """
    expression = None if name is None else parse_name_expression(name)
    try:
        outline = Outline(preprocess(source, tuple(defines)))
        index = KernelIndex(outline)
        group = index.only() if expression is None else index.find(expression)
        return _Reading(outline, group, expression).kernel(dict(constants or {}), signature)
    except RecursionError:
        raise _too_deep() from None


def parse_group(outline: Outline, group: KernelGroup, expression: NameExpression) -> ParsedKernel:
    """Read one kernel that was found already. Raises `SourceError`."""
    return _Reading(outline, group, expression).kernel({}, None)


class _Reading:
    """One kernel of an outline, with the template arguments that were given."""

    def __init__(self, outline: Outline, group: KernelGroup, expression: NameExpression | None) -> None:
        self.outline, self.group = outline, group
        self.resolver = Resolver(outline.text.doubtful, packed=outline.text.packed)
        self.declarations = [DeclaredKernel(outline, head) for head in group.deciding]
        self.arguments = None if expression is None else expression.arguments
        self.name = group.name
        if self.arguments is not None:
            self.name += f"<{', '.join(self.arguments)}>"
        elif self.declarations[0].template_parameters:
            self.name += "<>"
        self.line = self.declarations[0].line
        for declaration in self.declarations:
            if not outline.text.is_faithful(declaration.head.declared[0], declaration.head.parameters[0]):
                raise self._error(declaration, "its name may have only letters, digits and underscores")

    def kernel(self, constants: Mapping[object, object], signature: Signature | None) -> ParsedKernel:
        if signature is not None and not constants:
            return ParsedKernel(self.name, signature, self.outline.text.source, self.line)
        parameters = self._parameters(signature)
        fixed = self._positions(constants, parameters)
        kinds = self._types(parameters, fixed, signature)
        if not fixed:
            return ParsedKernel(self.name, Signature(tuple(kinds.values())), self.outline.text.source, self.line)
        literals = {index: literal(self.name, index, kinds[index], value) for index, value in fixed.items()}
        heads = (*self.group.declarations, *self.group.others)
        occurrences = [DeclaredKernel(self.outline, head) for head in heads]
        source = rewrite(self.outline.text, self.name, occurrences, literals)
        left = tuple(parameter for index, parameter in kinds.items() if index not in fixed)
        if signature is not None and len(signature) == len(left):
            left = signature.parameters
        return ParsedKernel(self.name, Signature(left), source, self.line)

    def _parameters(self, signature: Signature | None) -> tuple[DeclaredParameter, ...]:
        """Resolve the parameters of every definition; several, in branches of the preprocessor, have to agree."""
        others = [DeclaredKernel(self.outline, head) for head in self.group.declarations if head.templates]
        readings = [self._resolved(each, others) for each in self.declarations]
        first = readings[0]
        for declaration, parameters in zip(self.declarations[1:], readings[1:]):
            if signature is None and [each.type for each in parameters] != [each.type for each in first]:
                raise SourceError(
                    f"{self.group.name} is defined with different parameters in line {self.line} "
                    f"({_proposal(first)}) and line {declaration.line} ({_proposal(parameters)}). podium neither "
                    "decides preprocessor conditions nor chooses among overloads; give the signature yourself: "
                    f'signature="{_proposal(first)}"',
                    kernel=self.name,
                    line=declaration.line,
                )
        return first

    def _resolved(self, declaration: DeclaredKernel, others: Sequence[DeclaredKernel]) -> tuple[DeclaredParameter, ...]:
        name = self.group.name
        proposal = 'signature="' + ", ".join(f"{each}: ?" for each in declaration.names()) + '"'
        if problem := declaration.problem():
            raise self._error(declaration, f'{problem}. Give both yourself: name="{name}" and {proposal}')
        try:
            return declaration.parameters(_argument_nodes(self.arguments), others, self.resolver)
        except ArgumentMismatch as refusal:
            example = example_arguments(declaration.template, self.arguments)
            raise self._error(
                declaration, f'{refusal}. Write the arguments into the name, such as name="{name}<{example}>"'
            ) from None
        except Refusal as refusal:
            if declaration.template is None:
                raise self._error(declaration, f'{refusal}. Leave them out: name="{name}"') from None
            raise self._error(
                declaration, f'{refusal}. Give both yourself: name="{name}<...>" and {proposal}'
            ) from None

    def _error(self, declaration: DeclaredKernel, why: str) -> SourceError:
        line = declaration.line
        return SourceError(f"{self.group.name} (line {line}): {why}", kernel=self.name, line=line)

    def _positions(
        self, constants: Mapping[object, object], parameters: Sequence[DeclaredParameter]
    ) -> dict[int, object]:
        names = [parameter.name for parameter in parameters]
        fixed: dict[int, object] = {}
        for key, value in constants.items():
            if isinstance(key, str) and key in names:
                position = names.index(key)
            elif type(key) is int and 0 <= key < len(names):
                position = key
            else:
                import difflib  # for errors only: a first launch must not pay for it

                close = difflib.get_close_matches(str(key), names, 1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise SourceError(
                    f"{self.name}: the constant {key!r} is none of its parameters.{hint} "
                    f"They are: {', '.join(names) or 'none'}",
                    kernel=self.name,
                    line=self.line,
                )
            if position in fixed:
                raise SourceError(f"{self.name}: the constant {names[position]!r} is given twice", kernel=self.name)
            fixed[position] = value
        return fixed

    def _types(
        self, parameters: Sequence[DeclaredParameter], fixed: Mapping[int, object], signature: Signature | None
    ) -> dict[int, Parameter]:
        """Say for each position what parameter is there: as the signature has it, else as the source does."""
        if signature is not None:
            if len(signature) == len(parameters):
                return dict(enumerate(signature))
            if len(signature) != len(parameters) - len(fixed):
                raise SourceError(
                    f"{self.name}: it has {len(parameters)} parameters, {len(fixed)} of them constant, but the "
                    f"signature has {len(signature)}: {signature}",
                    kernel=self.name,
                    line=self.line,
                )
        given = iter(signature or ())
        kinds: dict[int, Parameter] = {}
        for index, parameter in enumerate(parameters):
            if signature is not None and index not in fixed:
                kinds[index] = next(given)
                continue
            if parameter.type is None:
                raise SourceError(
                    f"{self.name}: the type of the parameter {parameter.name!r} (line {parameter.line}, "
                    f"{parameter.text!r}) is not clear: {parameter.reason}. Give the signature yourself, with a type "
                    "for each ?, such as *fp32, i32, a struct {fp32,i32} or opaque[size,alignment]: "
                    f'signature="{_proposal(parameters)}"',
                    kernel=self.name,
                    line=parameter.line,
                )
            kinds[index] = Parameter(parameter.name, parameter.type)
        return kinds


def _argument_nodes(arguments: Sequence[str] | None) -> list[Node] | None:
    """Parse template arguments, each by itself. Raises `Refusal`."""
    if arguments is None:
        return None
    nodes = []
    for argument in arguments:
        root = parse(f"using k = k<{argument}>;")
        found = root.descendant_for_byte_range(12, 12 + len(argument))
        while found is not None and found.type != "template_argument_list":
            found = found.parent
        if found is None or found.has_error or found.named_child_count != 1:
            raise Refusal(f"the template argument {argument!r} cannot be read")
        nodes.append(found.named_children[0])
    return nodes


def _proposal(parameters: Sequence[DeclaredParameter]) -> str:
    return ", ".join(f"{each.name}: {each.type or '?'}" for each in parameters)


def _too_deep() -> SourceError:
    return SourceError("The source nests more deeply than podium can follow; give both name= and signature=")
