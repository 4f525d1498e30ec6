"""How a program shows that it needs a capability: what the conformance suite must say before it compiles such a one."""

from __future__ import annotations

import re

from podium.backend import Program

__all__ = ["MARKS", "asked"]

MARKS = {
    "shared_memory": "__shared__",
    "barriers": "__syncthreads",
    "atomics": r"\batomic",
    "warps": r"__shfl|\bwarpSize\b",
    "fp64": r"\bdouble\b",
    "half": "__half|__nv_bfloat16",
    "int64": r"\blong\b",
    "small_integers": r"\b(char|short|bool)\b",
    "structs": r"\bstruct\b",
    "templates": r"\btemplate\b",
    "namespaces": r"\bnamespace\b",
    "globals": r"^\s*(static )?(__device__|__constant__) [^(]*[=\[;]",
}
"""By capability, what a source has that needs it."""


def asked(program: Program) -> set[str]:
    """Return the capabilities that a program needs."""
    needed = {name for name, mark in MARKS.items() if re.search(mark, program.source, re.MULTILINE)}
    if program.options.std != type(program.options)().std:
        needed.add("standards")
    return needed
