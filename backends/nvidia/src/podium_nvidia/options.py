"""Compile options, from the words that podium has for all backends to NVRTC's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from podium.backend import Program
from podium.errors import CompileError

from podium_nvidia.arch import Arch

__all__ = ["arch_of_flags", "nvrtc_options"]

_ARCH_FLAGS = ("-arch", "--gpu-architecture")
_STD = re.compile(r"c\+\+\d\d")


def arch_of_flags(program: Program) -> Arch | None:
    """Return the architecture that the program's flags ask for, the last one. Raises `CompileError` if it is none."""
    found = None
    for name, value in _pairs(program.options.flags):
        if name in _ARCH_FLAGS:
            try:
                found = Arch.parse(value)
            except ValueError as error:
                raise CompileError(
                    f"{program.label}: the flag {name}={value}: {error}", program=program.label
                ) from None
    return found


def nvrtc_options(program: Program, arch: Arch, folders: Sequence[str]) -> list[str]:
    """Make NVRTC's options for a program; `folders` are those of the toolkit's headers."""
    options = program.options
    if not _STD.fullmatch(options.std):
        raise CompileError(
            f"{program.label}: std is one of c++11, c++14, c++17 and c++20 for NVRTC, not {options.std!r}",
            program=program.label,
        )
    result = [f"-arch={arch}", f"-std={options.std}"]
    if options.fast_math:
        result.append("--use_fast_math")
    if options.debug:
        result.append("-G")
    elif options.line_info:
        result.append("-lineinfo")
    if options.max_registers is not None:
        result.append(f"--maxrregcount={options.max_registers}")
    if program.path is not None:
        result.append(f"-I{os.path.dirname(os.path.abspath(program.path))}")
    result += [f"-I{folder}" for folder in options.include_dirs]
    result += (f"{name}={value}" if value else name for name, value in _pairs(options.flags) if name not in _ARCH_FLAGS)
    # Behind the user's, so that a header of theirs beats the toolkit's of the same name.
    return result + [f"-I{folder}" for folder in folders]


def _pairs(flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Split flags at "="; one of the architecture may have its value in the next flag."""
    pending = iter(flags)
    for flag in pending:
        name, equals, value = flag.partition("=")
        if name in _ARCH_FLAGS and not equals:
            value = next(pending, "")
        yield name, value
