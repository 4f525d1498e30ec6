"""Linking by nvJitLink: LTO-IR, relocatable code, PTX and libraries become one cubin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from podium.backend import Entry, ObjectCode, Options, Program, Signature, Target, Variable
from podium.errors import CompileError, LoadError, ToolchainError
from podium.parts import ProcessEnded, find_symbols, read_binary

from podium_nvidia import nvjitlink
from podium_nvidia.arch import Arch
from podium_nvidia.binaries import kind_of, ptx_kernels, target_of
from podium_nvidia.cubin import Cubin
from podium_nvidia.nvjitlink import Linked, Refused
from podium_nvidia.parameters import mismatch

__all__ = ["assemble", "link"]


def link(
    inputs: Sequence[ObjectCode | str | Path | bytes],
    *,
    kernels: Mapping[str, object] | None = None,
    target: Target | str | None = None,
    **options: Any,
) -> ObjectCode:
    """Link object code, files and bytes into one cubin, as object code for ``podium.kernel`` and ``podium.module``.

    The inputs are what ``kernel.compile()`` gives with ``flags=["-dlto"]`` (LTO-IR) or ``flags=["-rdc=true"]``, cubins
    and object files that nvcc made with ``-rdc=true``, PTX, LTO-IR, fat binaries, and static libraries.

    `kernels` maps further names to signatures; those of object code are known. `target`, such as "sm_90", is that of
    the object code, else the active device's. The options are ``debug``, ``line_info``, ``max_registers``,
    ``fast_math`` and ``flags``, which are nvJitLink's.

    Raises `CompileError` with nvJitLink's log, `LoadError` for an input that is nothing of this or lacks a kernel, and
    `ToolchainError` if nvJitLink is not there.
    """
    if isinstance(inputs, (str, Path, bytes, ObjectCode)) or not inputs:
        raise TypeError("link takes a list of inputs, one at least")
    codes = [each for each in inputs if isinstance(each, ObjectCode)]
    entries = {each.name: each for code in codes for each in code.entries}
    symbols = {name: symbol for code in codes for name, symbol in code.symbols.items()}
    variables = {each.name: each for code in codes for each in code.variables}
    further = [Entry(name, Signature.parse(signature)) for name, signature in (kernels or {}).items()]  # type: ignore[arg-type]
    chosen = codes[0].target if target is None and codes else target_of(target)
    pieces = [_piece(each, number) for number, each in enumerate(inputs)]
    linked, log = _run(pieces, _arch(chosen), _options(Options.of(**options), pieces), "The linked code", chosen)
    cubin = _read(linked, "The linked code", chosen)
    symbols.update(find_symbols(further, [each.symbol for each in cubin.kernels], "The linked code"))
    entries.update((each.name, each) for each in further)
    return _checked(linked, cubin, chosen, tuple(entries.values()), symbols, tuple(variables.values()), log)


def assemble(program: Program, target: Target) -> ObjectCode:
    """Make machine code of PTX; where nvJitLink is not there, or does not know the device, the driver will do it."""
    data = program.source.encode()
    if kind_of(data) != "ptx":
        raise CompileError(f"{program.label} is not PTX: it has no line .version", program=program.label)
    try:
        symbols = find_symbols(program.entries, ptx_kernels(data), program.label)
    except LoadError as error:
        raise CompileError(str(error), program=program.label, target=str(target)) from None
    options = _options(program.options, [])
    if nvjitlink.is_there():
        try:
            code, log = _run([("ptx", data, program.label)], _arch(target), options, program.label, target)
            cubin = _read(code, program.label, target)
            return _checked(code, cubin, target, program.entries, symbols, program.variables, log)
        except _UnknownArch:
            pass
    if options:
        raise ToolchainError(
            f"{program.label}: options for PTX need nvJitLink, which is not there: pip install 'podium-nvidia[nvrtc]'",
            program=program.label,
            target=str(target),
        )
    return ObjectCode(data, "ptx", target, program.entries, symbols, variables=program.variables)


class _UnknownArch(CompileError):
    """nvJitLink is older than the architecture."""


def _piece(source: ObjectCode | str | Path | bytes, number: int) -> tuple[str, bytes, str]:
    """Return kind, bytes and label of an input."""
    if isinstance(source, ObjectCode):
        return source.format, source.code, ", ".join(each.name for each in source.entries) or f"input {number}"
    data, label = read_binary(source)
    kind = kind_of(data)
    if kind is None:
        raise LoadError(f"{label} (input {number} of the link) is neither a cubin, PTX, LTO-IR nor a library")
    return kind, data, label if isinstance(source, (str, Path)) else f"input {number}"


def _arch(target: Target) -> Arch:
    try:
        arch = Arch.parse(target.arch)
    except ValueError as error:
        raise CompileError(str(error), target=str(target)) from None
    return Arch(arch.number, arch.letter)


def _options(options: Options, pieces: Iterable[tuple[str, bytes, str]]) -> list[str]:
    result = ["-lto"] if any(kind == "ltoir" for kind, _, _ in pieces) else []
    if options.debug:
        result.append("-g")
    if options.line_info:
        result.append("-lineinfo")
    if options.max_registers is not None:
        result.append(f"-maxrregcount={options.max_registers}")
    if options.fast_math:
        result += ["-ftz=1", "-prec-div=0", "-prec-sqrt=0"]
    return [*result, *options.flags]


def _run(
    pieces: Sequence[tuple[str, bytes, str]], arch: Arch, options: Sequence[str], label: str, target: Target
) -> Linked:
    """Link for an architecture."""
    arguments = [f"-arch={arch}", *options]
    try:
        return nvjitlink.link(pieces, arguments)
    except Refused as refused:
        if "without LTO enabled" in refused.log and "-lto" not in options:  # it was inside of a fat binary or a library
            return _run(pieces, arch, ["-lto", *options], label, target)
        if refused.of_options:
            message = f"nvJitLink refuses {' '.join(arguments)}: {refused.log}"
            # Older versions say of an architecture that they do not know only that something is wrong.
            error_class = _UnknownArch if "ARCH" in refused.log or not options else CompileError
        else:
            message, error_class = f"{refused.log}{_advice(refused)}", CompileError
        log = "" if refused.of_options else refused.log
    except ProcessEnded as ended:
        given = ", ".join(f"{name} ({kind}, {len(data)} bytes)" for kind, data, name in pieces)
        message = f"the process of nvJitLink ended ({ended.how}), as it does for what is damaged. Make again: {given}"
        error_class, log = CompileError, ended.output
    raise error_class(f"{label} cannot be linked for {arch}: {message}", log=log, program=label, target=str(target))


def _advice(refused: Refused) -> str:
    log = refused.log
    if "Unresolved extern" in log or "undefined reference" in log.lower():
        return "\nAmong the inputs none defines it"
    if "higher than default SM" in log:
        return "\nThe PTX is for a newer architecture than the target: compile it for an older one"
    if "nsupported .version" in log or "PTX version" in log:
        major, minor = refused.version
        return f"\nThe PTX is of a newer toolkit than nvJitLink {major}.{minor}: install a newer nvJitLink"
    return ""


def _read(code: bytes, label: str, target: Target) -> Cubin:
    try:
        return Cubin(code)
    except ValueError as error:
        text = f"{label}: what nvJitLink made of it cannot be read: {error}; make the inputs again"
        raise CompileError(text, program=label, target=str(target)) from None


def _checked(
    code: bytes,
    cubin: Cubin,
    target: Target,
    entries: tuple[Entry, ...],
    symbols: Mapping[str, str],
    variables: tuple[Variable, ...],
    log: str,
) -> ObjectCode:
    for entry in entries:
        wrong = mismatch(cubin, entry, symbols.get(entry.name, entry.name))
        if wrong:
            raise CompileError(wrong, program=entry.name, target=str(target))
    arch = Arch.parse(target.arch)
    made = Target(target.backend, str(Arch(arch.number, arch.letter)), target.warp_size)
    return ObjectCode(code, "cubin", made, entries, dict(symbols), log=log, variables=variables)
