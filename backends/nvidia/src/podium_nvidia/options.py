"""Compile options, from the words that podium has for all backends to NVRTC's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from podium.backend import Program
from podium.parts import flag_pairs, last_flag, user_options

from podium_nvidia.arch import Arch

__all__ = ["ASSERT_SWITCH", "advice_on_flags", "arch_of_flags", "is_linkable", "makes_lto", "nvrtc_options"]

ASSERT_SWITCH = "NDEBUG"
"""The one macro that is meant for NVRTC's own declarations."""

_ARCH_FLAGS = ("-arch", "--gpu-architecture")
_LTO_FLAGS = ("-dlto", "--dlink-time-opt")
_LINKABLE_FLAGS = ("-rdc", "--relocatable-device-code", "-dc", "--device-c")

_STD_FLAGS = ("-std", "--std")

# What nvcc takes and NVRTC does not, as regular expressions, with what to do.
_ONLY_NVCC = (
    (r"-O\d$|--optimize", "it optimises always, and flags=['-Xptxas=-O1'] is for its assembler"),
    (
        r"-gencode|--generate-code",
        "podium compiles for the device of the launch, and flags=['-arch=sm_90a'] for another",
    ),
    (r"-Xcompiler|--compiler|-ccbin", "there is no host compiler here"),
    (r"--?expt-relaxed-constexpr", "device code may call constexpr functions without it"),
    (r"--?expt-extended-lambda", "the option is --extended-lambda"),
    (r"-g$", "debug=True makes code for debuggers"),
    (r"-v$|--verbose$", "flags=['-Xptxas=-v'] puts the registers of each kernel into the log"),
)


def arch_of_flags(program: Program) -> Arch | None:
    """Return the architecture that the program's flags ask for, the last one. Raises `CompileError` if it is none."""
    return last_flag(program, _ARCH_FLAGS, Arch.parse)


def makes_lto(options: Sequence[str]) -> bool:
    """Tell whether flags or options of NVRTC ask for LTO-IR, which is to be linked."""
    return any(each in _LTO_FLAGS for each in options)


def is_linkable(options: Sequence[str]) -> bool:
    """Tell whether flags or options of NVRTC ask for machine code that is to be linked before it can be loaded."""
    return any(name in _LINKABLE_FLAGS and value != "false" for name, value in flag_pairs(options, _ARCH_FLAGS))


def nvrtc_options(program: Program, arch: Arch, folders: Sequence[str]) -> list[str]:
    """Make NVRTC's options for a program; `folders` are those of headers that are not the user's."""
    options = program.options
    result = [f"-arch={arch}"]
    # NVRTC takes it once; of others the last one counts.
    if not any(name in _STD_FLAGS for name, _ in flag_pairs(options.flags, _ARCH_FLAGS)):
        result.append(f"-std={options.std}")
    if options.fast_math:
        result.append("--use_fast_math")
    if options.debug:
        result.append("-G")
    elif options.line_info:
        result.append("-lineinfo")
    if options.max_registers is not None:
        result.append(f"--maxrregcount={options.max_registers}")
    result += [f"-D{name}={value}" for name, value in options.defines if name == ASSERT_SWITCH]
    return result + user_options(program, _ARCH_FLAGS, folders)


def advice_on_flags(log: str, std: str) -> str:
    """Say what to do about an option that NVRTC does not know, or a standard; nothing if it is none of nvcc's."""
    if "invalid value for --std" in log:
        return f"; std is {std!r}, and standards that it knows are c++17 and c++20"
    unknown = re.search(r"unrecognized option (\S+)", log)
    if unknown is None:
        return ""
    return next((f"; {text}" for name, text in _ONLY_NVCC if re.match(name, unknown[1])), "")
