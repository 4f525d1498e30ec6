"""Extension modules that podium builds on the user's machine: from C, through the cache, for this interpreter."""

from __future__ import annotations

import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from podium._build import HostCompiler
from podium._cache import cache_key, default_cache
from podium._library import load_extension
from podium.errors import LoadError, ToolchainError

__all__ = ["INCLUDE_DIR", "build_extension", "read_file"]

INCLUDE_DIR = Path(__file__).parent / "include"

_FLAGS = ("-std=c11", "-O2", "-fvisibility=hidden", "-Wall", "-Wextra")

# The interpreters whose layouts include/podium_python.h declares; others compile with their own headers.
_DECLARED_VERSIONS = ((3, 10), (3, 13))


def build_extension(kind: str, name: str, source: str, folders: tuple[Path, ...] = ()) -> ModuleType:
    """Return the extension module of a C source, from the cache if it is there.

    `kind` is the cache's word for such things, `name` the module's; headers are looked for in `folders` and in podium's
    own. Raises `ToolchainError` without a compiler, `CompileError` or `LoadError`.
    """
    compiler = HostCompiler.find("c")
    searched = (INCLUDE_DIR, *folders)
    python_flags = _python_flags()
    headers = "".join(f"{header.name}\n{read_file(header)}" for folder in searched for header in _headers(folder))
    key = cache_key(kind, source, headers, repr((_FLAGS, python_flags)), compiler.identity, _abi())
    cache = default_cache()
    library = cache.get(key)
    if library is not None:
        try:
            return load_extension(name, library)
        except (LoadError, ImportError) as error:
            # built by another compiler or for another system: rebuilt exactly once
            cache.quarantine(key, str(error))
    flags = [*_FLAGS, *python_flags, *(f"-I{folder}" for folder in searched)]
    library = compiler.compile({f"{kind}.c": source}, f"{kind}.c", flags)
    cache.put(key, library)
    return load_extension(name, library)


def _abi() -> str:
    return f"{sysconfig.get_config_var('SOABI')} {sysconfig.get_platform()} {sys.implementation.cache_tag}"


def _python_flags() -> tuple[str, ...]:
    """Return what the compiler needs to see of this Python: nothing, for those that are declared by hand."""
    if _is_declared():
        return (f"-DPODIUM_PYTHON_MINOR={sys.version_info.minor}",)
    folder = Path(sysconfig.get_path("include"))
    for name in ("Python.h", "pyconfig.h"):
        if not (folder / name).is_file():
            raise ToolchainError(
                f"This Python ({sys.version.split()[0]}, {sysconfig.get_config_var('SOABI')}) needs its own headers to "
                f"build launchers, and {folder} has no {name}. Install them (Debian, Ubuntu: python3-dev; "
                f"Fedora: python3-devel)"
            )
    return ("-DPODIUM_USE_PYTHON_H", f"-I{folder}")


def _is_declared() -> bool:
    return (
        sys.implementation.name == "cpython"
        and _DECLARED_VERSIONS[0] <= sys.version_info[:2] <= _DECLARED_VERSIONS[1]
        and sys.maxsize > 1 << 32
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and not hasattr(sys, "getobjects")  # Py_TRACE_REFS puts two words before every object
    )


@lru_cache(maxsize=64)
def read_file(path: Path) -> str:
    """Return the text of a file of this package or of a backend; they do not change while the process runs."""
    return path.read_text(encoding="utf-8")


def _headers(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.h")) if folder.is_dir() else []
