"""The search for the host's C and C++ compilers: in CC or CXX, on the search path, or in the package of zig."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from podium import _zig
from podium._compiler_identity import COMMAND_VARIABLES, Language
from podium.errors import ToolchainError

__all__ = ["find_command", "find_program", "searched_places"]

_NAMES: dict[str, tuple[str, ...]] = {"c": ("cc", "gcc", "clang"), "c++": ("c++", "g++", "clang++")}
_PACKAGES: dict[str, str] = {
    "c": "apt install gcc libc6-dev, dnf install gcc, apk add gcc musl-dev, or xcode-select --install",
    "c++": "apt install g++, dnf install gcc-c++, apk add g++, or xcode-select --install",
}


def find_command(language: Language, chosen: str, path: str) -> tuple[list[str], tuple[str, ...]]:
    """Return the command of a compiler, and the files whose change makes it another one. Raises `ToolchainError`.

    `chosen` is the command that the user chose, or nothing; `path` is where programs are looked for.
    """
    variable = COMMAND_VARIABLES[language]
    if chosen:
        import shlex

        try:
            words = shlex.split(chosen, posix=os.name != "nt")
        except ValueError as error:
            raise ToolchainError(f"{variable}={chosen!r} cannot be read as a command: {error}") from None
        program = find_program(words[0], path)
        if program is None:
            raise ToolchainError(
                f"{variable}={chosen!r}: there is no program {words[0]!r}. Correct {variable} or unset it; "
                f"to install a compiler: {_PACKAGES[language]}"
            )
        programs = [program]
        for word in words:
            if not word.startswith("-"):
                programs += [*_matches(word, path), *_matches(os.path.basename(word), path)]
    else:
        programs = next(filter(None, (list(_matches(name, path)) for name in _NAMES[language])), [])
        words = programs[:1] or list(_zig.packaged_command(language) or ())
        if not words:
            title = {"c": "C", "c++": "C++"}[language]
            raise ToolchainError(
                f"No {title} compiler was found: none of {', '.join(_NAMES[language])} is on PATH. Install one "
                f"({_PACKAGES[language]}), or the Python package ziglang, which has one in it (pip install ziglang), "
                f"or set {variable} to a compiler's command"
            )
        program = words[0]
        programs = programs or [program]
    return [program, *words[1:]], tuple(dict.fromkeys(programs))


def find_program(name: str, path: str) -> str | None:
    """Return the first program of a name on the search path."""
    return next(_matches(name, path), None)


def _matches(name: str, path: str) -> Iterator[str]:
    """Give every program of a name on the search path. It is not shutil's, which takes longer to import."""
    for place in _places(name, path):
        if os.access(place, os.X_OK) and os.path.isfile(place):
            yield os.path.abspath(place)


def _places(name: str, path: str) -> Iterator[str]:
    folders = [""] if os.path.dirname(name) else [folder for folder in path.split(os.pathsep) if folder and name]
    for folder in folders:
        for suffix in ("", ".exe") if os.name == "nt" else ("",):
            yield os.path.join(folder, name + suffix)


def searched_places(language: Language, command: Sequence[str], chosen: str, path: str) -> list[str]:
    """Give every path at which a program was looked for, in vain or not, until there was this command."""
    words = [word for word in command if not word.startswith("-")]
    names = [*words, *map(os.path.basename, words)]
    if not chosen:
        # What stands behind the one that was found was not looked for.
        known = _NAMES[language]
        names += known[: known.index(names[-1])] if names[-1] in known else known
    return [place for name in dict.fromkeys(names) for place in _places(name, path)]
