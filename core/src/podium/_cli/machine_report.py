"""What podium finds on the machine beside backends: host compilers, the launcher build, the cache, the environment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podium import _settings
from podium.errors import PodiumError, SettingError

if TYPE_CHECKING:
    from podium._plugins import Backend

__all__ = [
    "CompilerReport",
    "LauncherReport",
    "VariableReport",
    "cache_report",
    "compiler_reports",
    "launcher_report",
    "python_report",
    "variable_reports",
]


@dataclass(frozen=True)
class CompilerReport:
    """A host compiler: its command and version, or the error that says what to install."""

    language: str
    command: str | None = None
    version: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class LauncherReport:
    """Which launcher level is asked for, and whether launchers can be generated here; if not, `reason` says why."""

    level: str | None
    can_generate: bool
    reason: str | None = None


@dataclass(frozen=True)
class VariableReport:
    """An environment variable that is set, what it means, and what is wrong with its value."""

    name: str
    value: str
    meaning: str
    error: str | None = None


def python_report() -> dict[str, str]:
    """Return which Python this is, and on which system."""
    import platform
    import sys

    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "system": platform.platform(),
    }


def compiler_reports() -> list[CompilerReport]:
    """Look for the host's C and C++ compilers; asks them for their version."""
    return [_compiler("c"), _compiler("c++")]


def _compiler(language: Any) -> CompilerReport:
    from podium._build import HostCompiler

    try:
        compiler = HostCompiler.find(language)
        return CompilerReport(language, " ".join(compiler.command), compiler.version)
    except (PodiumError, OSError) as error:
        return CompilerReport(language, error=str(error))


def launcher_report() -> LauncherReport:
    """Build one of podium's own extension modules, which needs all that a generated launcher needs, and load it."""
    from podium._dlpack import exporter

    level = None
    try:
        level = _settings.launcher_level()
        exporter().build()
    except SettingError as error:
        return LauncherReport(None, False, str(error))
    except (PodiumError, OSError, ImportError) as error:
        return LauncherReport(level, False, str(error))
    return LauncherReport(level, True)


def cache_report() -> dict[str, object]:
    """Return the state of the disk cache; under "error" what kept it from being looked at."""
    from podium._cache import default_cache

    try:
        info = default_cache().info()
    except (PodiumError, OSError) as error:
        return {"error": str(error)}
    return {
        "folder": None if info.folder is None else str(info.folder),
        "mode": info.mode,
        "reason": info.reason or None,
        "entries": info.entries,
        "bytes": info.bytes,
        "max_bytes": info.max_bytes,
        "error": None,
    }


def variable_reports(backends: Sequence[Backend]) -> list[VariableReport]:
    """Report on the variables of podium and of backends that are set, and on names that only look like one."""
    checks = {
        "PODIUM_LAUNCHER": _settings.launcher_level,
        "PODIUM_CACHE_DIR": _settings.cache_dir,
        "PODIUM_CACHE_SIZE": _settings.cache_size,
        "PODIUM_CACHE_TRUSTED": _settings.cache_trusted,
        "PODIUM_DEBUG": _settings.debug,
        "PODIUM_TRACE": _settings.trace_file,
        "PODIUM_STRICT_PLUGINS": _settings.strict_plugins,
    }
    reports = []
    for name, meaning in _settings.VARIABLES.items():
        if name in os.environ:
            error = None
            try:
                if name in checks:
                    checks[name]()
            except (SettingError, RuntimeError) as problem:  # a path may begin with the home of a user who has none
                error = str(problem)
            reports.append(VariableReport(name, os.environ[name], meaning, error))
    return reports + [_beyond_the_core(name, backends) for name in sorted(os.environ) if _looks_like_ours(name)]


def _looks_like_ours(name: str) -> bool:
    return name.startswith("PODIUM_") and name not in _settings.VARIABLES


def _beyond_the_core(name: str, backends: Sequence[Backend]) -> VariableReport:
    by_prefix = {_settings.backend_prefix(backend.name): backend for backend in backends}
    prefix = max((prefix for prefix in by_prefix if name.startswith(prefix)), key=len, default=None)
    if prefix is None:
        every = [*_settings.VARIABLES, *(variable for backend in backends for variable in _variables(backend))]
        return _unknown(name, f"podium has no variable {name}, and no installed backend has it", every)
    backend = by_prefix[prefix]
    variables = _variables(backend)
    if name in variables:
        return VariableReport(name, os.environ[name], variables[name])
    if not variables:  # its plug-in may be disabled or broken, or may not list them
        return VariableReport(name, os.environ[name], f"a variable of the backend {backend.name}")
    return _unknown(name, f"the backend {backend.name} has no variable {name}", variables)


def _variables(backend: Backend) -> Mapping[str, str]:
    return {} if backend.driver_class is None else backend.driver_class.environment


def _unknown(name: str, problem: str, known: Iterable[str]) -> VariableReport:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return VariableReport(name, os.environ[name], "", problem + hint)
