"""The lines behind the user's text: each kernel and each variable as a C function, and the checks of parameters.

Each line stands alone, so that the line of a compiler's message tells which kernel and parameter it is about. All names
begin with podium, since the user's macros hold here: those that the source defines, and those of the options.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.backend import Entry, Type, Variable
from podium.errors import CompileError

__all__ = ["EntryLine", "EntryLines", "entry_lines"]

_LABEL = "<podium-cpu entries>"

_WORD = r"[A-Za-z_]\w*(?:[ ]*<[\w :<>,*&.\-]*>)?"
_NAME = re.compile(rf"(?:::[ ]*)?{_WORD}(?:[ ]*::[ ]*{_WORD})*", re.ASCII)

_CATEGORIES = {
    "boolean": "podium_integer_category",
    "signed": "podium_integer_category",
    "unsigned": "podium_integer_category",
    "float": "podium_float_category",
    "pointer": "podium_pointer_category",
    "struct": "podium_struct_category",
}


@dataclass(frozen=True)
class EntryLine:
    """What a line is about: the kernel or variable, a parameter or None, and what to say if the line is refused."""

    entry: int  # variables are counted after the kernels
    kind: str  # name, count, parameter, export or variable
    parameter: int | None
    complaint: str


@dataclass(frozen=True)
class EntryLines:
    """The text of all lines, what each is about, and the symbols that kernels and variables are exported as."""

    label: str
    text: str
    lines: tuple[EntryLine, ...]
    symbols: Mapping[str, str]


def entry_lines(entries: Sequence[Entry], variables: Sequence[Variable] = ()) -> EntryLines:
    """Write the lines for some kernels and variables. Raises `CompileError` for a name that is none."""
    texts: list[str] = []
    lines: list[EntryLine] = []
    symbols: dict[str, str] = {}
    for index, entry in enumerate(entries):
        symbols[entry.name] = _symbol(index)
        for text, line in _lines_of(index, entry):
            texts.append(text)
            lines.append(line)
    for number, variable in enumerate(variables):
        symbols[variable.name] = f"podium_variable_{number}"
        for text, line in _lines_of_variable(len(entries) + number, symbols[variable.name], variable.name):
            texts.append(text)
            lines.append(line)
    return EntryLines(_LABEL, "\n".join([*texts, ""]), tuple(lines), symbols)


def _lines_of(index: int, entry: Entry) -> list[tuple[str, EntryLine]]:
    name, kernel = entry.name, f"kernel {entry.name!r}"
    _check_name(name, "kernel")
    passed = entry.signature.passed
    found = f"podium_cpu::podium_parameters_of<podium_entries::podium_kernel_{index}>"
    result = [
        (
            f"namespace podium_entries "
            f"{{ typedef decltype(podium_cpu::podium_kernel_type(&{name}, 0)) podium_kernel_{index}; }}",
            EntryLine(index, "name", None, f"there is no {kernel}"),
        ),
        (
            f'static_assert({found}::podium_is_kernel, "a kernel is a function that returns void");',
            EntryLine(index, "name", None, f"{name!r} is not a kernel: a kernel is a function that returns void"),
        ),
        (
            f'static_assert(int({found}::podium_count) == {len(passed)}, "the number of parameters");',
            EntryLine(
                index, "count", None, f"{kernel}: its signature has {len(passed)} parameters, the source has {{found}}"
            ),
        ),
    ]
    for position, parameter in enumerate(passed):
        kind, at = parameter.type, f"{found}::podium_at<{position}>"
        who = f"{kernel}, parameter {parameter.name!r} (number {position + 1})"
        says = f"the signature says {kind}"
        checks = [
            (
                f"int({at}::podium_size) == {kind.size}",
                f"{who}: {says} of {kind.size} bytes, the source has {{found}} bytes",
            ),
            (
                f"podium_cpu::podium_same_category({at}::podium_category, podium_cpu::{_category(kind)})",
                f"{who}: {says}, and the source has a type of another kind",
            ),
        ]
        if kind.kind == "struct":
            checks.append(
                (
                    f"{at}::podium_alignment <= {kind.alignment}",
                    f"{who}: {says} aligned to {kind.alignment} bytes, which is less than in the source",
                )
            )
        result += [
            (f'static_assert({check}, "a parameter");', EntryLine(index, "parameter", position, complaint))
            for check, complaint in checks
        ]
    export = (
        f'extern "C" __attribute__((__visibility__("default"))) int {_symbol(index)}'
        f"(const podium_cpu_launch *podium_launch, void *const *podium_parameters) "
        f"{{ return podium_cpu::podium_entry<podium_entries::podium_kernel_{index}, &{name}, "
        f'podium_entries::podium_may_wait>::podium_run(podium_launch, podium_parameters, "{name}"); }}'
    )
    return [*result, (export, EntryLine(index, "export", None, f"{kernel} cannot be exported"))]


def _lines_of_variable(index: int, symbol: str, name: str) -> list[tuple[str, EntryLine]]:
    _check_name(name, "variable")
    line = EntryLine(index, "variable", None, f"{name!r} is not a variable whose memory is there for the whole module")
    # The address of shared memory is another in each thread of the system, so it is no constant.
    address = f"static constexpr const volatile void *{symbol} = __builtin_addressof({name});"
    export = (
        f'extern "C" __attribute__((__visibility__("default"))) '
        f"const volatile void *{symbol}(unsigned long long *podium_size) "
        f"{{ *podium_size = sizeof({name}); return podium_entries::{symbol}; }}"
    )
    return [(f"namespace podium_entries {{ {address} }}", line), (export, line)]


def _category(kind: Type) -> str:
    return _CATEGORIES.get(kind.kind, "podium_struct_category")


def _symbol(index: int) -> str:
    return f"podium_entry_{index}"


def _check_name(name: str, what: str) -> None:
    depth = 0
    for character in name:
        depth += (character == "<") - (character == ">")
        if depth < 0:
            break
    if depth or not _NAME.fullmatch(name):
        raise CompileError(
            f"{name!r} cannot be the name of a {what}; one is written like saxpy, ns::saxpy or ns::reduce<float, 256>"
        )
