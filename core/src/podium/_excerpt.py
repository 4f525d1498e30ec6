"""Places in a program's source, for the messages of compilers: the line with a caret, and where a name is declared."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from podium.errors import Diagnostic

if TYPE_CHECKING:
    from podium._program import Program

__all__ = ["declaration", "excerpt", "kernel_names", "source_line"]

# A qualifier, attributes and launch bounds, the type void, and the name.
_KERNEL = re.compile(r"\b__global__\b(?:[^;{}()]|\([^()]*\))*?\b(?!__launch_bounds__|__cluster_dims__)(\w+)\s*\(")

_MOST_READ = 1 << 20


def excerpt(diagnostic: Diagnostic, program: Program) -> str:
    """Return a diagnostic as text: place, severity and message, then the line with a caret below its column."""
    head = f"{diagnostic.file}:{diagnostic.line}:{diagnostic.column}: {diagnostic.severity}: {diagnostic.message}"
    line = source_line(diagnostic.file, diagnostic.line, program)
    if line is None or not line.strip():
        return head
    gutter = f"{diagnostic.line:5} | "
    # Tabs stay tabs, so that the caret stands under its character.
    blank = "".join("\t" if character == "\t" else " " for character in line[: diagnostic.column - 1])
    return f"{head}\n{gutter}{line}\n{' ' * (len(gutter) - 2)}| {blank}^"


def source_line(file: str, number: int, program: Program) -> str | None:
    """Return a line of the program's source, or of a file that it includes; None if there is none."""
    if file == program.label:
        text = program.source
    else:
        try:
            with open(file, encoding="utf-8", errors="replace") as opened:
                text = opened.read(_MOST_READ)
        except OSError:
            return None
    lines = text.split("\n")
    return lines[number - 1].rstrip("\r") if 1 <= number <= len(lines) else None


def declaration(name: str, program: Program) -> tuple[int, int]:
    """Find the line and the column where a kernel or a variable is named in the source; the beginning if nowhere."""
    base = re.sub(r"<.*", "", name, flags=re.DOTALL).split("::")[-1].strip()
    kernels = (match for match in _KERNEL.finditer(program.source) if match[1] == base)
    match = next(kernels, None) or re.search(rf"\b({re.escape(base)})\b", program.source)
    if match is None:
        return 1, 1
    before = program.source[: match.start(1)]
    return before.count("\n") + 1, match.start(1) - before.rfind("\n")


def kernel_names(source: str) -> list[str]:
    """Return the names of the kernels that a source seems to declare, for a message about one that it does not."""
    return list(dict.fromkeys(_KERNEL.findall(source)))
