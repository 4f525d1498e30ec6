"""Parts that backends of several vendors are made of.

No backend needs them: each does one thing that is the same for most vendors, so that nobody writes it again. What is
about one vendor's compiler or driver, its backend hands over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium._apart import ProcessEnded, call_apart, call_on_large_stack, can_call_apart
    from podium._binary import find_symbols, read_binary
    from podium._build import parse_diagnostics
    from podium._compile_error import compile_error, is_host_header, refused_name
    from podium._compile_flags import flag_pairs, last_flag, user_options
    from podium._launch_ranges import LaunchRanges
    from podium._limits import check_cooperative

__all__ = [
    "LaunchRanges",
    "ProcessEnded",
    "call_apart",
    "call_on_large_stack",
    "can_call_apart",
    "check_cooperative",
    "compile_error",
    "find_symbols",
    "flag_pairs",
    "is_host_header",
    "last_flag",
    "parse_diagnostics",
    "read_binary",
    "refused_name",
    "user_options",
]

_HOMES = {
    "LaunchRanges": "_launch_ranges",
    "ProcessEnded": "_apart",
    "call_apart": "_apart",
    "call_on_large_stack": "_apart",
    "can_call_apart": "_apart",
    "check_cooperative": "_limits",
    "compile_error": "_compile_error",
    "find_symbols": "_binary",
    "flag_pairs": "_compile_flags",
    "is_host_header": "_compile_error",
    "last_flag": "_compile_flags",
    "parse_diagnostics": "_build",
    "read_binary": "_binary",
    "refused_name": "_compile_error",
    "user_options": "_compile_flags",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'podium.parts' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"podium.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
