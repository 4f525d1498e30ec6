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
    from podium._host_memory import free_host_bytes
    from podium._launch_ranges import LaunchRanges
    from podium._limits import check_cooperative
else:
    from podium._late_names import late_names

    __getattr__, __dir__ = late_names(
        __name__,
        {
            "podium._apart": "ProcessEnded call_apart call_on_large_stack can_call_apart",
            "podium._binary": "find_symbols read_binary",
            "podium._build": "parse_diagnostics",
            "podium._compile_error": "compile_error is_host_header refused_name",
            "podium._compile_flags": "flag_pairs last_flag user_options",
            "podium._host_memory": "free_host_bytes",
            "podium._launch_ranges": "LaunchRanges",
            "podium._limits": "check_cooperative",
        },
    )

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
    "free_host_bytes",
    "is_host_header",
    "last_flag",
    "parse_diagnostics",
    "read_binary",
    "refused_name",
    "user_options",
]
