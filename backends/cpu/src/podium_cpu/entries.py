"""The lines behind the user's text: each kernel as a C function, and the checks of its parameters.

Each line stands alone, so that the line of a compiler's message tells which kernel and parameter it is about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from podium.backend import Entry, Type
from podium.errors import CompileError

__all__ = ["EntryLine", "EntryLines", "entry_lines"]

_LABEL = "<podium-cpu entries>"

_WORD = r"[A-Za-z_]\w*(?:[ ]*<[\w :<>,*&.\-]*>)?"
_NAME = re.compile(rf"(?:::[ ]*)?{_WORD}(?:[ ]*::[ ]*{_WORD})*", re.ASCII)

_CATEGORIES = {
    "boolean": "integer_category",
    "signed": "integer_category",
    "unsigned": "integer_category",
    "float": "float_category",
    "pointer": "pointer_category",
    "struct": "struct_category",
}


@dataclass(frozen=True)
class EntryLine:
    """What a line is about: the kernel, one of its parameters or None, and what to say if the line is refused."""

    entry: int
    kind: str  # name, count, parameter or export
    parameter: int | None
    complaint: str


@dataclass(frozen=True)
class EntryLines:
    """The text of all lines, what each is about, and the symbol that each kernel is exported as."""

    label: str
    text: str
    lines: tuple[EntryLine, ...]
    symbols: tuple[str, ...]


def entry_lines(entries: Sequence[Entry]) -> EntryLines:
    """Write the lines for some kernels. Raises `CompileError` for a name that is none."""
    texts: list[str] = []
    lines: list[EntryLine] = []
    for index, entry in enumerate(entries):
        for text, line in _lines_of(index, entry):
            texts.append(text)
            lines.append(line)
    return EntryLines(_LABEL, "\n".join([*texts, ""]), tuple(lines), tuple(map(_symbol, range(len(entries)))))


def _lines_of(index: int, entry: Entry) -> list[tuple[str, EntryLine]]:
    name, kernel = entry.name, f"kernel {entry.name!r}"
    _check_name(name)
    passed = entry.signature.passed
    found = f"podium_cpu::parameters_of<podium_entries::kernel_{index}>"
    result = [
        (
            f"namespace podium_entries {{ typedef decltype(podium_cpu::kernel_type(&{name}, 0)) kernel_{index}; }}",
            EntryLine(index, "name", None, f"there is no {kernel}"),
        ),
        (
            f'static_assert({found}::is_kernel, "a kernel is a function that returns void");',
            EntryLine(index, "name", None, f"{name!r} is not a kernel: a kernel is a function that returns void"),
        ),
        (
            f'static_assert(int({found}::count) == {len(passed)}, "the number of parameters");',
            EntryLine(
                index, "count", None, f"{kernel}: its signature has {len(passed)} parameters, the source has {{found}}"
            ),
        ),
    ]
    for position, parameter in enumerate(passed):
        kind, at = parameter.type, f"{found}::at<{position}>"
        who = f"{kernel}, parameter {parameter.name!r} (number {position + 1})"
        says = f"the signature says {kind}"
        checks = [
            (f"int({at}::size) == {kind.size}", f"{who}: {says} of {kind.size} bytes, the source has {{found}} bytes"),
            (
                f"podium_cpu::same_category({at}::category, podium_cpu::{_category(kind)})",
                f"{who}: {says}, and the source has a type of another kind",
            ),
        ]
        if kind.kind == "struct":
            checks.append(
                (
                    f"{at}::alignment <= {kind.alignment}",
                    f"{who}: {says} aligned to {kind.alignment} bytes, which is less than in the source",
                )
            )
        result += [
            (f'static_assert({check}, "a parameter");', EntryLine(index, "parameter", position, complaint))
            for check, complaint in checks
        ]
    export = (
        f'extern "C" __attribute__((visibility("default"))) int {_symbol(index)}'
        f"(const podium_cpu_launch *launch, void *const *parameters) "
        f"{{ return podium_cpu::entry<podium_entries::kernel_{index}, &{name}>::run(launch, parameters); }}"
    )
    return [*result, (export, EntryLine(index, "export", None, f"{kernel} cannot be exported"))]


def _category(kind: Type) -> str:
    return _CATEGORIES.get(kind.kind, "struct_category")


def _symbol(index: int) -> str:
    return f"podium_entry_{index}"


def _check_name(name: str) -> None:
    depth = 0
    for character in name:
        depth += (character == "<") - (character == ">")
        if depth < 0:
            break
    if depth or not _NAME.fullmatch(name):
        raise CompileError(
            f"{name!r} cannot be the name of a kernel; one is written like saxpy, ns::saxpy or ns::reduce<float, 256>"
        )
