"""The names of `podium.backend` that are imported when first asked for: choosing a driver needs none of them."""

from __future__ import annotations

from importlib import import_module

__all__ = ["look_up"]

_NAMES = {
    "_array_layout": "ArrayLayout array_layout",
    "_background": "BackgroundCall import_early",
    "_build": "Build HostCompiler",
    "_compiler_identity": "compiler_identity",
    "_excerpt": "declaration excerpt kernel_names source_line",
    "_file_stamps": "folder_digest",
    "_function": "Buffer Function Occupancy OwnedMemory",
    "_generated": "foresee_launchers",
    "_launch_config": "LaunchConfig",
    "_launcher": "Launcher",
    "_library": "SharedLibrary is_whole",
    "_object_code": "ObjectCode",
    "_parameters": "Parameters",
    "_program": "Entry Options Program",
    "_signature": "Parameter Signature Type",
    "_target": "Device Target",
    "_variable": "Variable",
}

_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def look_up(name: str) -> object:
    """Import what has a name in `podium.backend`. Raises AttributeError if there is no such name."""
    if name not in _HOMES:
        raise AttributeError(f"module 'podium.backend' has no attribute {name!r}")
    return getattr(import_module(f"podium.{_HOMES[name]}"), name)
