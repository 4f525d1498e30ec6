"""The identity of the host's compiler, for cache keys: most often known without looking for the compiler."""

from __future__ import annotations

import os
import time
from typing import Literal

from podium._cache import cache_key
from podium._file_stamps import Statuses, look, recall, remember

__all__ = ["COMMAND_VARIABLES", "SEARCH_VARIABLES", "Language", "compiler_identity", "identify", "search_inputs"]

Language = Literal["c", "c++"]

COMMAND_VARIABLES: dict[str, str] = {"c": "CC", "c++": "CXX"}

# Variables that compilers read and that change what they produce without standing in the command.
SEARCH_VARIABLES = (
    "CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH COMPILER_PATH GCC_EXEC_PREFIX CCC_OVERRIDE_OPTIONS SDKROOT"
).split()


def compiler_identity(language: Language) -> str:
    """Return the identity of the compiler that `HostCompiler.find` gives. Raises `ToolchainError`.

    It is looked for, and asked for its version, if one of the files has changed or come that were looked for before.
    """
    parts = search_inputs(language)
    key = None if parts is None else cache_key("compiler", language, *parts)
    known = None if key is None else recall(key)
    if known is not None:
        return known.decode("utf-8", "surrogateescape")
    now = time.time_ns()
    identity, statuses = identify(language)
    if key is not None and statuses is not None:
        remember(key, identity.encode("utf-8", "surrogateescape"), statuses, now)
    return identity


def identify(language: Language) -> tuple[str, Statuses | None]:
    """Look for the compiler; return its identity, and what the system says of all places that were looked at.

    That is None for zig, which is found as Python's packages are. Raises `ToolchainError`.
    """
    from podium._build import HostCompiler
    from podium._compiler_search import searched_places

    compiler = HostCompiler.find(language)
    chosen, path = _search(language)
    statuses = look(map(os.fsencode, searched_places(language, compiler.command, chosen, path)))
    return compiler.identity, None if compiler.is_zig else statuses


def search_inputs(language: Language) -> list[str] | None:
    """Return all that identity and search depend on beside files; None if that is more, such as the current folder."""
    chosen, path = _search(language)
    named = [word for word in chosen.split() if os.path.dirname(word)]
    if not all(map(os.path.isabs, filter(None, [*path.split(os.pathsep), *named]))):
        return None
    return [chosen, path, *(os.environ.get(name, "") for name in SEARCH_VARIABLES)]


def _search(language: Language) -> tuple[str, str]:
    return os.environ.get(COMMAND_VARIABLES[language], "").strip(), os.environ.get("PATH", os.defpath)
