"""The identity of the host's compiler, for cache keys: most often known without looking for the compiler."""

from __future__ import annotations

import os
import time
from typing import Literal

from podium._cache import cache_key
from podium._file_stamps import look, recall, remember

__all__ = ["COMMAND_VARIABLES", "SEARCH_VARIABLES", "Language", "compiler_identity", "recalled_identity"]

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
    known = recalled_identity(language)
    if known is not None:
        return known
    from podium._build import HostCompiler
    from podium._compiler_search import searched_places

    now = time.time_ns()
    compiler = HostCompiler.find(language)
    chosen, path = _search(language)
    statuses = look(map(os.fsencode, searched_places(language, compiler.command, chosen, path)))
    identity = compiler.identity
    key = _key(language)
    if key is not None and not compiler.is_zig:  # which is found as Python's packages are
        remember(key, identity.encode("utf-8", "surrogateescape"), statuses, now)
    return identity


def recalled_identity(language: Language) -> str | None:
    """Return the identity if no compiler need be looked for or started for it."""
    key = _key(language)
    known = recall(key) if key is not None else None
    return None if known is None else known.decode("utf-8", "surrogateescape")


def _key(language: Language) -> str | None:
    """Return the key of what is kept: what identity and search depend on beside files. None if there is more."""
    chosen, path = _search(language)
    named = [word for word in chosen.split() if os.path.dirname(word)]
    if not all(map(os.path.isabs, filter(None, [*path.split(os.pathsep), *named]))):
        return None  # it depends on the current folder
    variables = [os.environ.get(name, "") for name in SEARCH_VARIABLES]
    return cache_key("compiler", language, chosen, path, *variables)


def _search(language: Language) -> tuple[str, str]:
    return os.environ.get(COMMAND_VARIABLES[language], "").strip(), os.environ.get("PATH", os.defpath)
