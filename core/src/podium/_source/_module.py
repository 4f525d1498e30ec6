"""What a whole source declares, for those that are compiled in one piece: its variables and its plain kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podium._program import Entry
from podium._source._kernel_index import KernelGroup, KernelIndex
from podium._source._name_expression import parse_name_expression
from podium._source._outline import Outline
from podium._source._parse import parse_group
from podium._source._preprocessor import preprocess
from podium._source._resolver import Resolver
from podium._source._variables import read_variables
from podium._variable import DeclaredVariable
from podium.errors import SourceError

__all__ = ["parse_module"]


def parse_module(
    source: str, *, defines: Iterable[tuple[str, str]] = ()
) -> tuple[tuple[DeclaredVariable, ...], tuple[Entry, ...]]:
    """Read the variables of a source and its kernels.

    The kernels are those that are no templates, and the templates that the source itself instantiates; all but those
    under a condition that cannot be decided, and those with parameters whose types are not clear. In a source that
    nests too deeply to be read, nothing is seen. `defines` are the macros that the compiler will be given. Raises
    `SourceError` for text that no compiler can read.
    """
    try:
        outline = Outline(preprocess(source, tuple(defines)))
        variables = read_variables(outline, Resolver(outline.text.doubtful, packed=outline.text.packed))
        kernels = [each for group in KernelIndex(outline).groups for each in _kernels(outline, group)]
    except RecursionError:  # as with what a header has: it is for the user to say
        return (), ()
    return tuple(variables), tuple(kernels)


def _kernels(outline: Outline, group: KernelGroup) -> Iterator[Entry]:
    heads = group.deciding
    if any(head.body is None or head.is_conditional for head in heads):
        return
    names = [group.name] if not heads[0].templates else []
    for head in group.others:
        if head.role == "instantiation" and not head.is_conditional and "<" in head.name:
            names.append(group.name + head.name[head.name.index("<") :])
    for name in names:
        try:
            kernel = parse_group(outline, group, parse_name_expression(name))
        except SourceError:  # asked for by its name, it says why
            continue
        yield Entry(kernel.name, kernel.signature)
