"""The environment variables of podium: each is read here and nowhere else, at the time it is needed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from podium.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

__all__ = [
    "VARIABLES",
    "backend",
    "backend_prefix",
    "cache_dir",
    "cache_size",
    "cache_trusted",
    "debug",
    "disabled_plugins",
    "environment_flag",
    "launcher_level",
    "option_choice",
    "strict_plugins",
    "trace_file",
]

VARIABLES = {
    "PODIUM_BACKEND": "the backend to use, by name; beats the priorities, loses to podium.use and set_active",
    "PODIUM_LAUNCHER": "auto (default), generated or interpreted: how launches are made",
    "PODIUM_CACHE_DIR": "the folder of the disk cache",
    "PODIUM_CACHE_SIZE": "the most bytes that the disk cache keeps, such as 512M or 2G (default 1G)",
    "PODIUM_CACHE_TRUSTED": "1 accepts a cache folder that other users can write; their code then runs as you",
    "PODIUM_DEBUG": "1 synchronises after each launch, names the kernel at fault, and checks array dtypes",
    "PODIUM_TRACE": "a file that receives every launch, compile and load, for a trace viewer",
    "PODIUM_DISABLED_PLUGINS": "names of backends to leave out, separated by commas",
    "PODIUM_STRICT_PLUGINS": "1 raises the error of a broken plug-in at once; for plug-in authors",
    "CC": "the host C compiler, with arguments, such as 'ccache gcc'",
    "CXX": "the host C++ compiler, with arguments",
}


def environment_flag(variable: str) -> bool:
    """Read an environment variable that is on or off: 1, true, yes or on; 0, false, no, off or nothing; in any case.

    Raises `SettingError` for anything else.
    """
    text = os.environ.get(variable, "").strip().lower()
    if text in ("", "0", "false", "no", "off"):
        return False
    if text in ("1", "true", "yes", "on"):
        return True
    raise SettingError(variable, text, "0 or 1")


def option_choice(option: str, given: str | None, variable: str, choices: Collection[str]) -> str:
    """Return what an option of a backend has been given, or else its environment variable, or else its first choice.

    Raises ValueError for an option that is none of the choices, `SettingError` for such a variable.
    """
    value = given
    if value is None:
        value = os.environ.get(variable, "").strip() or next(iter(choices))
    if value in choices:
        return value
    if given is None:
        raise SettingError(variable, value, " or ".join(choices))
    raise ValueError(f"{option} is {' or '.join(map(repr, choices))}, not {value!r}")


def _path(variable: str, text: str) -> Path:
    from pathlib import Path  # which choosing a driver does not need

    try:
        return Path(text).expanduser().absolute()
    except RuntimeError:  # ~name of a user that does not exist
        raise SettingError(variable, text, "a path; no user has this name") from None


def backend_prefix(name: str) -> str:
    """Return what the names of a backend's environment variables begin with, such as PODIUM_CPU_."""
    return f"PODIUM_{name.upper().replace('-', '_')}_"


def backend() -> str | None:
    """Return the name in PODIUM_BACKEND, or None."""
    return os.environ.get("PODIUM_BACKEND", "").strip() or None


def launcher_level() -> str:
    """Return auto, generated or interpreted."""
    text = os.environ.get("PODIUM_LAUNCHER", "").strip().lower() or "auto"
    if text not in ("auto", "generated", "interpreted"):
        raise SettingError("PODIUM_LAUNCHER", text, "auto, generated or interpreted")
    return text


def cache_dir() -> Path | None:
    """Return the folder in PODIUM_CACHE_DIR, or None."""
    text = os.environ.get("PODIUM_CACHE_DIR", "").strip()
    return _path("PODIUM_CACHE_DIR", text) if text else None


def cache_size() -> int:
    """Return the most bytes that the disk cache may keep."""
    given = os.environ.get("PODIUM_CACHE_SIZE", "").strip()
    if not given:
        return 1 << 30
    text = given.upper()
    digits = text.rstrip("KMGTB")
    scale = {"": 0, "B": 0, "K": 10, "M": 20, "G": 30, "T": 40}.get(text[len(digits) :].rstrip("B") or "B")
    if not (digits.isascii() and digits.isdigit()) or scale is None:
        raise SettingError("PODIUM_CACHE_SIZE", given, "a number of bytes such as 512M or 2G")
    return int(digits) << scale


def cache_trusted() -> bool:
    """Tell whether a cache folder that others can write is accepted."""
    return environment_flag("PODIUM_CACHE_TRUSTED")


def debug() -> bool:
    """Tell whether PODIUM_DEBUG is on."""
    return environment_flag("PODIUM_DEBUG")


def trace_file() -> Path | None:
    """Return the file in PODIUM_TRACE, or None."""
    text = os.environ.get("PODIUM_TRACE", "").strip()
    return _path("PODIUM_TRACE", text) if text else None


def disabled_plugins() -> frozenset[str]:
    """Return the names of the backends to leave out."""
    return frozenset(filter(None, (name.strip() for name in os.environ.get("PODIUM_DISABLED_PLUGINS", "").split(","))))


def strict_plugins() -> bool:
    """Tell whether the error of a broken plug-in is raised at once."""
    return environment_flag("PODIUM_STRICT_PLUGINS")
