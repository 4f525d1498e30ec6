"""From a program to an image that the runtime loads: the host's C++ compiler, and a header."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from pathlib import Path

from podium.backend import HostCompiler, ObjectCode, Program, Target
from podium.errors import CompileError, ToolchainError
from podium.parts import compile_error, refused_name

__all__ = ["compile_program", "identity"]


def identity() -> str:
    """Name all that changes what is compiled. Raises `ToolchainError` if there is no compiler."""
    return f"{HostCompiler.find('c++').identity}\ndialect {_digest(_dialect())}"


def compile_program(program: Program, target: Target) -> ObjectCode:
    """Compile the kernels of a program. Raises `CompileError` or `ToolchainError`."""
    if target.arch != platform.machine():
        message = f"The abacus backend compiles for {platform.machine()} only, not for {target.arch!r}"
        raise CompileError(message, program=program.label, target=str(target))
    symbols = {entry.name: f"abacus_{index}" for index, entry in enumerate(program.entries)}
    place = program.label.replace("\\", "\\\\").replace('"', '\\"')
    entries = "".join(f"ABACUS_ENTRY({symbol}, {name})\n" for name, symbol in symbols.items())
    # The compiler counts the lines of the user's own text, and its messages name the user's file.
    source = f'#include "dialect.h"\n#line 1 "{place}"\n{program.source}\n#line 1 "entries"\n{entries}'
    try:
        sources = {"program.cpp": source, "dialect.h": _dialect()}
        image = HostCompiler.find("c++").compile(sources, "program.cpp", _flags(program))
    except ToolchainError:
        raise
    except CompileError as error:
        raise _explained(error, program, target) from None
    return ObjectCode(image, "elf", target, program.entries, symbols, {"digest": _digest(image)})


def _explained(error: CompileError, program: Program, target: Target) -> CompileError:
    """Say in terms of the user's source what the compiler said: a line of the entries is about a kernel's name."""
    found = []
    for each in error.diagnostics:
        if each.file == "entries" and each.severity == "error" and each.line <= len(program.entries):
            name = program.entries[each.line - 1].name
            each = refused_name(name, each.message, program, unknown="declared" in each.message)
        found.append(each)
    return compile_error(program, target, log=error.log, diagnostics=found, otherwise=[str(error)])


def _flags(program: Program) -> list[str]:
    options = program.options
    flags = [f"-std={options.std}", "-O2", "-fvisibility=hidden", *(["-g"] if options.debug else [])]
    flags += [f"-D{name}={value}" for name, value in options.defines]
    if program.path is not None:
        flags += ["-iquote", os.path.dirname(os.path.abspath(program.path))]
    flags += [f"-I{folder}" for folder in options.include_dirs]
    return [*flags, *options.flags]


@cache
def _dialect() -> str:
    return (Path(__file__).parent / "dialect.h").read_text(encoding="utf-8")


def _digest(data: str | bytes) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()
