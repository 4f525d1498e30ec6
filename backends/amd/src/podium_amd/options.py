"""Compile options, from the words that podium has for all backends to hipRTC's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from podium.backend import Program
from podium.parts import flag_pairs, last_flag, user_options

from podium_amd.arch import Arch

__all__ = ["advice_on_flags", "arch_of_flags", "hiprtc_options"]

_ARCH_FLAGS = ("--offload-arch", "--gpu-architecture", "-arch")
_STD_FLAGS = ("-std", "--std")

# What nvcc and NVRTC take and clang does not, as regular expressions, with what to do.
_ONLY_NVIDIA = (
    (
        r"-gencode|--generate-code",
        "podium compiles for the device of the launch, and flags=['--offload-arch=gfx942'] for another",
    ),
    (r"-?-maxrregcount", "max_registers= is the word for all backends"),
    (r"-?-use_fast_math", "fast_math=True is the word for all backends"),
    (r"-lineinfo|--generate-line-info", "line_info=True is the word for all backends"),
    (r"-G$|--device-debug", "debug=True makes code for debuggers"),
    (r"-Xptxas|-Xcicc|-Xcompiler", "it is for NVIDIA's tools"),
    (r"--?expt-|--extended-lambda|-extra-device-vectorization", "clang needs no option for it"),
)


def arch_of_flags(program: Program) -> Arch | None:
    """Return the architecture that the program's flags ask for, the last one. Raises `CompileError` if it is none."""
    return last_flag(program, _ARCH_FLAGS, Arch.parse)


def hiprtc_options(program: Program, arch: Arch, warp_size: int, folders: Sequence[str]) -> list[str]:
    """Make hipRTC's options for a program; `folders` are those of headers that are not the user's.

    There is none that bounds the registers of a thread: `podium_amd.compiler` puts that bound into the text.
    """
    options = program.options
    result = [f"--offload-arch={arch}"]
    if not any(name in _STD_FLAGS for name, _ in flag_pairs(options.flags, _ARCH_FLAGS)):
        result.append(f"-std={options.std}")
    if warp_size == 64 and not arch.is_wave64_only:
        result.append("-mwavefrontsize64")
    if options.fast_math:
        result.append("-ffast-math")
    if options.debug:
        result += ["-g", "-O0"]
    elif options.line_info:
        result.append("-gline-tables-only")
    return result + user_options(program, _ARCH_FLAGS, folders)


def advice_on_flags(log: str) -> str:
    """Say what to do about an option that hipRTC does not know; nothing if it is none of NVIDIA's."""
    unknown = re.search(r"(?:unknown argument|unsupported option|unknown option)[^']*'([^']+)'", log)
    if unknown is None:
        return ""
    return next((f"; {text}" for name, text in _ONLY_NVIDIA if re.match(name, unknown[1])), "")
