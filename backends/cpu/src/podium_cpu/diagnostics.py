"""What the compiler said, in terms of the user's source: which line, with the line itself, or which parameter."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace

from podium.backend import Program, Target, declaration, kernel_names
from podium.errors import CompileError, Diagnostic
from podium.parts import compile_error

from podium_cpu.entries import EntryLine, EntryLines
from podium_cpu.refusals import name_refusals
from podium_cpu.toolchain import INCLUDE

__all__ = ["explain"]

_UNKNOWN = re.compile(r"not declared|not been declared|not a member|undeclared|no member|no template")

# What stands behind the user's text begins with a namespace.
_INSIDE_BRACES = re.compile(r"namespace.*(?:not allowed here|only be defined in)")

_ERRORS = ("error", "fatal error")


def explain(error: CompileError, program: Program, lines: EntryLines, target: Target) -> CompileError:
    """Make the error that users see out of the host compiler's."""
    found = _at_users(error.diagnostics, error.log)
    refused, rest = name_refusals(_translate(found, program, lines), program)
    # Where something is refused by name, other errors may come of that alone.
    errors = refused or [each for each in rest if each.severity in _ERRORS]
    missing = list(dict.fromkeys(re.findall(r"undefined (?:reference to [`'\"]|symbol: )([^'\"\n]+)", error.log)))
    if missing:
        otherwise = f"{program.label}: declared and used, but nowhere defined: {', '.join(missing)}"
    else:
        otherwise = str(error)
    return compile_error(
        program, target, log=error.log, diagnostics=[*refused, *rest], errors=errors, otherwise=[otherwise]
    )


def _at_users(found: Sequence[Diagnostic], log: str) -> list[Diagnostic]:
    """Move errors in the dialect's headers to where the user's text called for what is wrong in them."""
    result: list[Diagnostic] = []
    for position, each in enumerate(found):
        place = None
        if each.severity in _ERRORS and each.file.startswith(INCLUDE + os.sep):
            place = _caller(each, found[position + 1 :], log)
        result.append(each if place is None else Diagnostic(*place, each.severity, each.message))
    return result


def _caller(error: Diagnostic, following: Sequence[Diagnostic], log: str) -> tuple[str, int, int] | None:
    # clang says it in notes behind the error, gcc in lines before it.
    for note in following:
        if note.severity != "note":
            break
        if "requested here" in note.message and not note.file.startswith(INCLUDE + os.sep):
            return note.file, note.line, note.column
    before = log.partition(f"{error.file}:{error.line}:{error.column}: {error.severity}: {error.message}")[0]
    calls = re.findall(r"(?m)^(.+?):(\d+):(\d+): +required from here$", before)
    return (calls[-1][0], int(calls[-1][1]), int(calls[-1][2])) if calls else None


def _translate(found: Sequence[Diagnostic], program: Program, lines: EntryLines) -> list[Diagnostic]:
    """Turn messages about the lines behind the user's text into messages about kernels and parameters."""
    result: list[Diagnostic] = []
    # What the lines behind a broken text say comes of its errors.
    broken = any(each.severity in _ERRORS and each.file != lines.label for each in found)
    refused: dict[int, str] = {}  # the kind of the first line refused, by kernel: what follows comes of it
    translated = False  # whether the last error was about one of the lines, and the notes now are
    for position, diagnostic in enumerate(found):
        if diagnostic.severity == "note" and translated:
            continue
        translated = diagnostic.file == lines.label
        if not translated:
            result.append(diagnostic)
            continue
        if diagnostic.severity not in _ERRORS or broken:
            continue
        if _INSIDE_BRACES.search(diagnostic.message):
            open_brace = replace(diagnostic, message="expected '}': a brace of the source is not closed")
            result.append(_at_end(open_brace, program))
            broken = True
            continue
        if not 1 <= diagnostic.line <= len(lines.lines):
            result.append(_at_end(diagnostic, program))
            continue
        line = lines.lines[diagnostic.line - 1]
        first = refused.setdefault(line.entry, line.kind)
        if first != line.kind or (line.kind != "parameter" and _has(result, program, line)):
            continue
        text = _complaint(line, diagnostic, found[position + 1 :], program)
        place = declaration(_name(program, line.entry), program)
        if not any(each.message == text for each in result):
            result.append(Diagnostic(program.label, *place, "error", text))
    return result


def _has(result: Sequence[Diagnostic], program: Program, line: EntryLine) -> bool:
    name = repr(_name(program, line.entry))
    return any(name in each.message for each in result if each.severity == "error")


def _complaint(line: EntryLine, diagnostic: Diagnostic, following: Sequence[Diagnostic], program: Program) -> str:
    name = _name(program, line.entry)
    if line.kind == "variable":
        unknown = _UNKNOWN.search(diagnostic.message)
        return f"there is no variable {name!r} in the source" if unknown else f"{line.complaint}: {diagnostic.message}"
    if line.kind == "name" and "static" not in diagnostic.message:
        if _UNKNOWN.search(diagnostic.message):
            names = ", ".join(kernel_names(program.source)) or "none"
            why = f" ({diagnostic.message})" if "<" in name else ""  # it may be about an argument of the template
            return f"{line.complaint} in the source{why}; it has: {names}"
        return f"{name!r} does not name one kernel: {diagnostic.message}"
    if line.kind == "export":
        return f"{line.complaint}: {diagnostic.message}"
    # Compilers add a note with the two numbers that they compared.
    notes = [each.message for each in following[:2] if each.severity == "note"]
    numbers = re.search(r"\(?\b(\d+) == (\d+)\b\)?", " ".join([*notes, diagnostic.message]))
    return line.complaint.replace("{found}", numbers[1] if numbers else "another number of")


def _name(program: Program, entry: int) -> str:
    """Return the name of a kernel, or of a variable: those are counted after the kernels."""
    names = [*(each.name for each in program.entries), *(each.name for each in program.variables)]
    return names[entry]


def _at_end(diagnostic: Diagnostic, program: Program) -> Diagnostic:
    """A message behind everything is about what the text leaves open, such as a brace."""
    lines = program.source.splitlines() or [""]
    return Diagnostic(program.label, len(lines), len(lines[-1]) + 1, diagnostic.severity, diagnostic.message)
