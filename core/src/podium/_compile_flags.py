"""The flags that users give to a backend's own compiler, and where it looks for headers."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

from podium._program import Program
from podium.errors import CompileError

__all__ = ["flag_pairs", "last_flag", "user_options"]

_Value = TypeVar("_Value")


def flag_pairs(flags: Sequence[str], apart: Collection[str] = ()) -> Iterator[tuple[str, str | None]]:
    """Split flags at "=" into names and values, None for a flag without one.

    Those in `apart`, such as "-arch", may have their value in the next flag. Macros and folders are whole.
    """
    pending = iter(flags)
    for flag in pending:
        name, equals, value = flag.partition("=")
        if name in apart and not equals:
            yield name, next(pending, "")
        elif flag.startswith(("-D", "-U", "-I")):
            yield flag, None
        else:
            yield name, value if equals else None


def last_flag(program: Program, names: Collection[str], parse: Callable[[str], _Value]) -> _Value | None:
    """Return the value of the last of a program's flags that has one of these names; None if there is none.

    Raises `CompileError` for a value that `parse` refuses with a ValueError.
    """
    found = None
    for name, value in flag_pairs(program.options.flags, names):
        if name in names:
            try:
                found = parse(value or "")
            except ValueError as error:
                raise CompileError(f"{program.label}: the flag {name}: {error}", program=program.label) from None
    return found


def user_options(program: Program, without: Collection[str], folders: Sequence[str]) -> list[str]:
    """Return the options for a program's headers, and its flags but those of the names in `without`.

    A header beside the source comes first, then the user's folders, and behind the flags the backend's own `folders`,
    so that a header of the user's beats one of the same name.
    """
    result = []
    if program.path is not None:
        result.append(f"-I{os.path.dirname(os.path.abspath(program.path))}")
    result += [f"-I{folder}" for folder in program.options.include_dirs]
    for name, value in flag_pairs(program.options.flags, without):
        if name not in without:
            result.append(name if value is None else f"{name}={value}")
    return result + [f"-I{folder}" for folder in folders]
