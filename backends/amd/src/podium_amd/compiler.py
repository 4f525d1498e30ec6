"""From the CUDA dialect of C++ to a code object for one architecture, by hipRTC."""

from __future__ import annotations

from podium.backend import ObjectCode, Program, Target
from podium.errors import CompileError, ToolchainError

from podium_amd import hiprtc, rocm
from podium_amd.arch import Arch
from podium_amd.code_object import CodeObject
from podium_amd.hiprtc import Compiled, Hiprtc, Refused, UnknownArch
from podium_amd.options import arch_of_flags, hiprtc_options
from podium_amd.parameters import mismatch
from podium_amd.toolchain import INCLUDE

__all__ = ["compile_program"]

# Processors whose vector and accumulation registers are one file, which threads share.
_UNIFIED = ("gfx90a", "gfx94", "gfx950", "gfx9-4-")


def compile_program(program: Program, target: Target) -> ObjectCode:
    """Compile every kernel of a program for a target. Raises `CompileError` and `ToolchainError`."""
    if program.language != "cuda":
        raise _error(program, target, f"the AMD backend compiles the CUDA dialect, not {program.language!r}")
    arch = _arch(program, target)
    try:
        compiler = hiprtc.load()
        compiled = _compile(compiler, program, target, arch)
    except ToolchainError as error:
        error.program, error.target = program.label, str(target)
        raise
    symbols = {each.name: compiled.lowered.get(each.name, each.name) for each in program.entries}
    symbols |= {each.name: compiled.lowered.get(f"&{each.name}", each.name) for each in program.variables}
    found = Target(target.backend, str(arch), target.warp_size)
    _check(compiled.code, program, found, symbols)
    return ObjectCode(
        code=compiled.code,
        format="hsaco",
        target=found,
        entries=program.entries,
        symbols={name: symbol for name, symbol in symbols.items() if name != symbol},
        log=compiled.log,
        variables=program.variables,
    )


def _arch(program: Program, target: Target) -> Arch:
    """Return the architecture that the flags ask for, else the target's."""
    try:
        device = Arch.parse(target.arch)
    except ValueError as error:
        raise _error(program, target, str(error)) from None
    sizes = (64,) if device.is_wave64_only else (32, 64)
    if target.warp_size not in sizes:
        spelled = " or ".join(map(str, sizes))
        raise _error(program, target, f"{device} has warps of {spelled} threads, not of {target.warp_size}")
    asked = arch_of_flags(program)
    if asked is not None and not asked.runs_on(device):
        raise _error(program, target, f"its flags ask for {asked}, which {device} does not run")
    return asked or device


def _compile(compiler: Hiprtc, program: Program, target: Target, arch: Arch) -> Compiled:
    names = [*(each.name for each in program.entries), *(f"&{each.name}" for each in program.variables)]
    options = hiprtc_options(program, arch, target.warp_size, [INCLUDE, *rocm.include_folders(compiler.path)])
    if str(arch) in _archs_of_devices():
        compiler.know(str(arch))
    try:
        return compiler.compile(_text(program, arch), program.label, str(arch), options, names)
    except Refused as refused:
        from podium_amd.diagnostics import explain  # what compiles does not pay for it

        raise explain(refused, program, target) from None
    except UnknownArch as error:
        raise _error(
            program,
            target,
            f"hipRTC does not know {arch}, and has ended the process that asked it ({error.text}). It was found as "
            f"{compiler.path}; a newer ROCm may know it, and rocminfo lists the architecture of each device",
        ) from None


def _archs_of_devices() -> set[str]:
    """Return the architectures of the devices, where it is known already."""
    from podium_amd.api import is_initialised

    if not is_initialised():
        return set()
    from podium_amd.device import devices

    return {each.target.arch for each in devices()}


def _text(program: Program, arch: Arch) -> str:
    """Put the dialect in front of the source, and the user's macros between, so that they do not change the dialect."""
    source = program.source.lstrip("\ufeff")
    macros = "".join(f"#define {name} {value}\n" for name, value in program.options.defines)
    if program.options.max_registers is not None:  # there is no option for it: it is an attribute of kernels
        bound = f"amdgpu_num_vgpr({_bound(program.options.max_registers, arch)})"
        macros = f"#undef __global__\n#define __global__ __attribute__((global, {bound}))\n{macros}"
    return f"#include <podium_amd.h>\n{macros}#line 1 {_quote(program.label)}\n{source}\n"


def _bound(registers: int, arch: Arch) -> int:
    """Return what the attribute takes: where accumulation registers are of the same file, it counts pairs."""
    return max(1, registers // 2) if arch.processor.startswith(_UNIFIED) else registers


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def _check(code: bytes, program: Program, target: Target, symbols: dict[str, str]) -> None:
    """Compare what the code says of each kernel with the signature and the target. Raises `CompileError`."""
    try:
        described = CodeObject(code)
    except ValueError as error:
        flags = " ".join(program.options.flags)
        raise _error(
            program, target, f"hipRTC gave something else than a code object, with the flags ({flags}): {error}"
        ) from None
    for entry in program.entries:
        kernel = described.kernel(symbols[entry.name])
        if kernel is None:
            raise _error(program, target, f"{entry.name!r} is a function, and no kernel: it is not __global__")
        wrong = mismatch(kernel, entry)
        if wrong is None and kernel.wavefront_size != target.warp_size:
            wrong = f"kernel {entry.name!r} has warps of {kernel.wavefront_size} threads, not of {target.warp_size}"
        if wrong:
            raise _error(program, target, wrong)


def _error(program: Program, target: Target, why: str) -> CompileError:
    return CompileError(f"{program.label}: {why}", program=program.label, target=str(target))
