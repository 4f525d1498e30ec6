"""Compiling: a program in CUDA's dialect is translated to OpenCL C, built for a device, and kept as its binary."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.backend import Entry, ObjectCode, Options, Program, Target
from podium.errors import BackendError, CompileError, ToolchainError
from podium.parts import compile_error, parse_diagnostics

from podium_opencl._version import __version__
from podium_opencl.device import OpenDevice, device_of_arch, is_forked, open_devices
from podium_opencl.opencl import opencl
from podium_opencl.program import Built, build_source
from podium_opencl.status import describe

__all__ = ["FORMAT", "compile_program", "digest", "toolchain"]

FORMAT = "opencl-binary"

# PoCL up to version 3 puts the severity in front.
_SEVERITY_FIRST = re.compile(r"(?m)^(fatal error|error|warning|note): ([^\n]+?:\d+:\d+): ")


_toolchain: str | None = None  # a child that is forked from here needs it, too


@dataclass(frozen=True)
class _Unit:
    """OpenCL C with what is known of it; `metadata` is what loading needs."""

    source: str
    options: tuple[str, ...]
    symbols: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


def toolchain(language: str) -> str:
    """Name the compilers: those of all platforms, with their versions, and this backend. Raises `ToolchainError`."""
    from podium.backend import folder_digest

    global _toolchain
    if _toolchain is not None:
        return _toolchain
    try:
        devices = open_devices()
    except BackendError as error:
        raise ToolchainError(str(error)) from None
    compilers = [
        f"{device.target}: {device.versions['platform']}, driver {device.versions['driver']}" for device in devices
    ]
    _toolchain = f"{'; '.join(compilers)}\npodium-opencl {__version__} {folder_digest(__file__.rpartition('/')[0])}"
    return _toolchain


def compile_program(program: Program, target: Target) -> ObjectCode:
    """Compile for a device that is here. Raises `CompileError`, and `ToolchainError` if OpenCL does not work."""
    if is_forked():
        from podium_opencl.elsewhere import compile_elsewhere

        return compile_elsewhere(program, target)
    try:
        device = device_of_arch(target.arch)
    except BackendError as error:
        raise ToolchainError(str(error), program=program.label, target=str(target)) from None
    if device is None:
        known = ", ".join(str(each.target) for each in open_devices())
        raise CompileError(
            f"There is no device {target.arch!r} to compile for; OpenCL compiles for those that are here: {known}",
            program=program.label,
            target=str(target),
        )
    unit = _own_unit(program) if program.language == "opencl" else _translated(program, target, device)
    built = build_source(device, unit.source, " ".join((*unit.options, "-cl-kernel-arg-info")))
    if built.program is None:
        raise _refusal(built, program, target)
    binary = bytes(built.program.get_info(opencl().program_info.BINARIES)[0])
    kernels = {}
    for entry in program.entries:
        found = _parameters(built.program, unit.symbols.get(entry.name, entry.name))
        _compare(entry, found, program, target)
        if found and program.language == "opencl":
            kernels[entry.name] = {"dynamic_shared": found[-1] == "local"}
    return ObjectCode(
        binary,
        FORMAT,
        target,
        program.entries,
        symbols=unit.symbols,
        metadata={"kernels": kernels, **unit.metadata, "digest": digest(binary), **device.versions},
        log=built.log,
        variables=program.variables,
    )


def digest(binary: bytes) -> str:
    """Return what damaged bytes are told by: not every platform looks at them before it runs them."""
    return hashlib.sha256(binary).hexdigest()


def _parameters(built: Any, symbol: str) -> list[str]:
    """Return the memory that each parameter of a kernel points to, "private" for a value; nothing if none is known."""
    cl = opencl()
    kinds = cl.kernel_arg_address_qualifier
    names = {kinds.GLOBAL: "global", kinds.CONSTANT: "constant", kinds.LOCAL: "local", kinds.PRIVATE: "private"}
    try:
        kernel = cl.Kernel(built, symbol)
        places = [
            kernel.get_arg_info(each, cl.kernel_arg_info.ADDRESS_QUALIFIER) for each in range(int(kernel.num_args))
        ]
    except cl.Error:  # no kernel of that name, or a compiler that does not keep them
        return []
    return [names[each] for each in places]


def _compare(entry: Entry, found: Sequence[str], program: Program, target: Target) -> None:
    """Refuse a signature with a pointer for a value, or the other way round, with which a device would end the process.

    The number of the parameters is compared when the kernel is loaded, whoever compiled it.
    """
    for index, (parameter, place) in enumerate(zip(entry.signature.passed, found)):
        is_pointer = parameter.type.kind == "pointer"
        if is_pointer != (place in ("global", "constant")):
            what = "a value" if place == "private" else f"a pointer to {place} memory"
            raise CompileError(
                f"{entry.name}({entry.signature}): parameter {index} ({parameter.name}) is {parameter.type} in the "
                f"signature, and {what} in the source",
                program=program.label,
                target=str(target),
            )


def _translated(program: Program, target: Target, device: OpenDevice) -> _Unit:
    from podium_opencl.translation import translate

    try:
        translation = translate(program, device.facts)
    except CompileError as error:
        error.program, error.target = program.label, str(target)
        raise
    kernels = {
        name: {
            "dynamic_shared": kernel.dynamic_shared,
            "uses_variables": kernel.uses_variables,
            "max_threads": kernel.max_threads,
        }
        for name, kernel in translation.kernels.items()
    }
    return _Unit(
        translation.source,
        (*translation.build_options, "-w"),  # its compiler would warn of what the translation wrote
        {name: kernel.symbol for name, kernel in translation.kernels.items()},
        {
            "kernels": kernels,
            "variables": {name: [place.offset, place.size] for name, place in translation.variables.items()},
            "variables_bytes": translation.variables_bytes,
            "initialiser": translation.initialiser,
        },
    )


def _own_unit(program: Program) -> _Unit:
    """Take OpenCL C as it is."""
    label = program.label.replace("\\", "\\\\").replace('"', '\\"')
    return _Unit(f'#line 1 "{label}"\n{program.source}', tuple(_options(program.options)))


def _options(options: Options) -> Sequence[str]:
    """Write options as OpenCL's compilers take them, which split them at blanks."""
    written = [f"-D{name}={value}" for name, value in options.defines]
    written += [f"-I{folder}" for folder in options.include_dirs]
    for each in written:
        if re.search(r"\s", each):
            raise CompileError(f"OpenCL's compilers take no option with a blank in it: {each!r}")
    if options.fast_math:
        written.append("-cl-fast-relaxed-math")
    if options.debug:
        written.append("-cl-opt-disable")
    return [*written, *options.flags]


def _refusal(built: Built, program: Program, target: Target) -> CompileError:
    diagnostics = parse_diagnostics(_SEVERITY_FIRST.sub(r"\2: \1: ", built.log))
    said = ": ".join(describe(built.status))
    return compile_error(
        program, target, log=built.log or said, diagnostics=diagnostics, otherwise=built.log.splitlines() or [said]
    )
