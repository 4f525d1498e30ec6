"""A program: source text, its language, the kernels wanted from it, and the options to compile it with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from podium._record import field, record
from podium._signature import Signature
from podium._variable import Variable

__all__ = ["Entry", "Options", "Program"]


@record(frozen=True)
class Entry:
    """A kernel wanted from a program: its name, qualified and with template arguments, and its signature."""

    name: str
    signature: Signature


@record(frozen=True)
class Options:
    """What changes the output of a compiler, in the words that nvcc, hipcc, gcc and clang share.

    `defines` are macros, `include_dirs` are searched for headers in order, `flags` go to the compiler as they are.
    `max_registers` bounds the registers of a thread where the target has such a bound.
    """

    defines: tuple[tuple[str, str], ...] = ()
    include_dirs: tuple[str, ...] = ()
    std: str = "c++17"
    fast_math: bool = False
    debug: bool = False
    line_info: bool = False
    max_registers: int | None = None
    flags: tuple[str, ...] = ()

    @staticmethod
    def of(
        defines: Mapping[str, object] | None = None,
        include_dirs: Sequence[str | Path] = (),
        flags: Sequence[str] = (),
        **options: object,
    ) -> Options:
        """Make options from what users write: a mapping of macros, paths, and the other fields by name.

        A define of None or True is 1, as for a compiler's ``-DNAME``; one of False is left out.
        Raises TypeError for an option that does not exist and ValueError for a macro that is not a name, a standard
        that is not one of C++, a bound of registers below 1, or a last flag such as ``-I`` that is nothing without
        another one.
        """
        known = set(Options.__match_args__)
        unknown = sorted(set(options) - known)
        if unknown:
            raise TypeError(f"Unknown compile option {unknown[0]!r}; the options are {', '.join(sorted(known))}")
        if defines is not None and not isinstance(defines, Mapping):
            raise TypeError(f"defines takes a mapping of macros to values, such as {{'TILE': 16}}, not {defines!r}")
        if "++" not in str(options.get("std", "c++17")):  # a compiler's own error of it is about C
            raise ValueError(f"std takes a standard of C++, such as 'c++17' or 'gnu++17', not {options['std']!r}")
        most = options.get("max_registers")
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise ValueError(f"max_registers takes a number of registers from 1 on, not {most!r}")
        return Options(
            defines=tuple(
                (_macro_name(name), _macro_value(name, value))
                for name, value in sorted((defines or {}).items())
                if value is not False
            ),
            include_dirs=tuple(str(Path(each).absolute()) for each in _sequence(include_dirs, "include_dirs")),
            flags=_flags(flags),
            **options,  # type: ignore[arg-type]
        )

    def key(self) -> str:
        """Return a text that is equal exactly if the options are; the same in every process."""
        return json.dumps({name: getattr(self, name) for name in self.__match_args__}, sort_keys=True)


_HALF_FLAGS = frozenset({"-D", "-I", "-U", "-idirafter", "-imacros", "-include", "-iquote", "-isystem"})


def _flags(value: Sequence[str]) -> tuple[str, ...]:
    flags = tuple(map(str, _sequence(value, "flags")))
    if flags and flags[-1] in _HALF_FLAGS:  # it would take what podium puts behind it
        raise ValueError(f"The last of the flags, {flags[-1]!r}, lacks what it is about: write it in one, or add that")
    return flags


def _sequence(value: Sequence[str | Path], name: str) -> Sequence[str | Path]:
    if isinstance(value, (str, Path)):
        raise TypeError(f"{name} takes a list, not the single value {str(value)!r}")
    for each in value:
        if "\0" in str(each):
            raise ValueError(f"{name} cannot have the character NUL in it: {str(each)!r}")
    return value


def _macro_name(name: str) -> str:
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise ValueError(f"{name!r} cannot be the name of a macro: use letters, digits and underscores")
    return name


def _macro_value(name: str, value: object) -> str:
    text = "1" if value is None or value is True else str(value)  # what -DNAME means
    if "\n" in text or "\r" in text or "\0" in text:
        raise ValueError(f"The value of the macro {name} must be one line, not {text!r}")
    if text.endswith("\\"):
        raise ValueError(
            f"The value of the macro {name} must not end with a backslash, which joins the next line: {text!r}"
        )
    return text


@record(frozen=True)
class Program:
    """Source text and what is wanted from it.

    `language` is "cuda" for the CUDA dialect of C++; a backend may take others, such as "ptx".
    `path` is where the text came from, for messages and quoted includes; `headers` holds the name and the content hash
    of every header that the text includes, since they change the output too. `variables` are those that the host
    wants to reach.
    """

    source: str
    language: str = "cuda"
    entries: tuple[Entry, ...] = ()
    options: Options = field(default_factory=Options)
    path: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    variables: tuple[Variable, ...] = ()

    @property
    def label(self) -> str:
        """The name that compiler messages carry for the source."""
        return self.path or "<podium source>"
