"""The error for a program that does not compile, in terms of the user's source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from podium._excerpt import declaration, excerpt, kernel_names
from podium._program import Program
from podium._target import Target
from podium.errors import CompileError, Diagnostic

__all__ = ["compile_error", "is_host_header", "refused_name"]

_ERRORS = ("error", "fatal error")
_SHOWN = 3


# Names of C++'s own headers, and of those of C and of systems that programs for hosts include.
_OF_HOSTS = re.compile(
    r"[a-z_]+|(?:ctype|errno|fcntl|inttypes|locale|pthread|setjmp|signal|time|unistd|wchar)\.h|sys/\w+\.h"
)


def is_host_header(name: str) -> bool:
    """Tell whether a header, as "vector" or "sys/mman.h", is one that only programs for hosts have."""
    return _OF_HOSTS.fullmatch(name) is not None


def compile_error(
    program: Program,
    target: Target,
    *,
    log: str,
    diagnostics: Sequence[Diagnostic],
    errors: Sequence[Diagnostic] | None = None,
    otherwise: Iterable[str] = (),
) -> CompileError:
    """Make the error that users see out of what a compiler said.

    Its text has the first of the `errors`, those among the `diagnostics` if none are given, each with its line of
    source, and says how many more there are; where there is none, it has the lines of `otherwise`. Its attributes have
    all `diagnostics` and the whole `log`.
    """
    if errors is None:
        errors = [each for each in diagnostics if each.severity in _ERRORS]
    parts = [excerpt(each, program) for each in errors[:_SHOWN]]
    if len(errors) > _SHOWN:
        parts.append(f"... and {len(errors) - _SHOWN} more errors, in the error's log")
    kernels = ", ".join(entry.name for entry in program.entries)
    return CompileError(
        "\n".join([f"{program.label} ({kernels}) does not compile for {target}:", *(parts or otherwise)]),
        log=log,
        diagnostics=diagnostics,
        program=program.label,
        target=str(target),
    )


def refused_name(name: str, message: str, program: Program, *, unknown: bool) -> Diagnostic:
    """Turn what a compiler said of a kernel's or a variable's name into a message at the place where it is declared.

    `unknown` tells whether the compiler knows no such name; the message then lists the kernels that there are.
    """
    is_variable = name in {each.name for each in program.variables}
    what = "variable" if is_variable else "kernel"
    place = declaration(name, program)
    if not unknown:
        return Diagnostic(program.label, *place, "error", f"{name!r} does not name one {what}: {message}")
    names = ", ".join(kernel_names(program.source)) or "none"
    why = f" ({message})" if "<" in name else ""  # it may be about an argument of the template
    has = "" if is_variable else f"; it has: {names}"
    return Diagnostic(program.label, *place, "error", f"there is no {what} {name!r} in the source{why}{has}")
