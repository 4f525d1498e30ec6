"""zig as a compiler of C and C++: the one that is a Python package, for machines that have no other."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.machinery import PathFinder
from itertools import pairwise

__all__ = ["add_flags", "environment", "is_zig", "packaged_command"]

# What other compilers do without being told.
_FLAGS = (
    "-mcpu=baseline",  # not the processor of this machine: what is compiled may be shared with others
    "-fno-sanitize=undefined",  # which zig turns on where it does not optimise
    "-UNDEBUG",  # which zig defines where it does
)

_COMMANDS = {"c": "cc", "c++": "c++"}
_PROGRAM = "zig.exe" if os.name == "nt" else "zig"


def packaged_command(language: str) -> tuple[str, ...] | None:
    """Return the command of the installed package `ziglang` for a language, or None; the package is not imported."""
    spec = PathFinder.find_spec("ziglang")
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        program = os.path.join(os.path.abspath(folder), _PROGRAM)
        if os.access(program, os.X_OK):
            return program, _COMMANDS[language]
    return None


def is_zig(command: Sequence[str]) -> bool:
    """Tell whether a command runs zig as a compiler, behind a prefix or not."""
    return _subcommand(command) is not None


def add_flags(command: Sequence[str]) -> list[str]:
    """Put the flags that make zig behave as other compilers behind its subcommand; other commands stay as they are."""
    place = _subcommand(command)
    return list(command) if place is None else [*command[: place + 1], *_FLAGS, *command[place + 1 :]]


def environment(folder: str) -> Mapping[str, str]:
    """Return the variables that zig is run with, for a run in a private folder.

    Its own cache keeps the parts of the C library that it has compiled, which takes seconds; they belong to the user
    and not to podium. Where there is no place for that, they are compiled each time.
    """
    variables = {"ZIG_LOCAL_CACHE_DIR": folder}
    if not os.environ.get("ZIG_GLOBAL_CACHE_DIR") and not _has_cache():
        variables["ZIG_GLOBAL_CACHE_DIR"] = folder
    return variables


def _subcommand(command: Sequence[str]) -> int | None:
    for place, (word, following) in enumerate(pairwise(command)):
        name = os.path.splitext(os.path.basename(word))[0]
        if name in ("zig", "ziglang", "python-zig") and following in _COMMANDS.values():
            return place + 1
    return None


def _has_cache() -> bool:
    """Tell whether zig can use the folder that it takes by itself."""
    if os.name == "nt":
        return True
    parent = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME") or os.devnull, ".cache")
    try:
        os.makedirs(os.path.join(parent, "zig"), exist_ok=True)
    except OSError:
        return False
    return os.access(os.path.join(parent, "zig"), os.W_OK | os.X_OK)
