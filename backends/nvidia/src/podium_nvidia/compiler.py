"""From CUDA C++ to machine code for one architecture, by NVRTC."""

from __future__ import annotations

import re
from collections.abc import Mapping

from podium.backend import ObjectCode, Program, Target
from podium.errors import CompileError, ToolchainError

from podium_nvidia import nvrtc
from podium_nvidia.arch import WARP_SIZE, Arch, choose, may_need_specific, runs_on
from podium_nvidia.cubin import Cubin
from podium_nvidia.nvrtc import Compiled, Nvrtc, Refused
from podium_nvidia.options import ASSERT_SWITCH, arch_of_flags, is_linkable, makes_lto, nvrtc_options
from podium_nvidia.parameters import mismatch
from podium_nvidia.toolchain import INCLUDE
from podium_nvidia.toolkit import NVRTC_VARIABLE, include_folders

__all__ = ["compile_program"]

# What the assembler says of instructions that only the architecture with its letter has.
_NEEDS_LETTER = re.compile(r"Instruction '\S+' (?:not supported on|cannot be compiled for)|requires \.target")

_FIRST_WITH_LETTER = 90

# Leaves out declarations of the runtime, of textures and of launches from the device, which few kernels need and which
# take a tenth of the time; the code that comes out is the same.
_MINIMAL = "-minimal"
_MINIMAL_SINCE = (12, 8)
_RUNTIME_WORDS = re.compile(r"\bcuda[A-Z]\w|\b(?:tex|surf)\w|<<<")
_INCLUDE = re.compile(r'(?m)^[ \t]*#[ \t]*include\b[ \t]*(?:[<"]([^>"\n]+)[>"])?')
# Headers that do with what is left; others may be large, and trying would cost more than it saves.
_SMALL_HEADERS = re.compile(
    r"cuda\.h|cuda_(?:fp16|bf16|fp8|runtime)\.h|hip/hip_\w+\.h|c?(?:math|stdint|stddef|float|limits)(?:\.h)?"
)

_MACRO = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def compile_program(program: Program, target: Target) -> ObjectCode:
    """Compile every kernel of a program for a target. Raises `CompileError` and `ToolchainError`."""
    if target.warp_size != WARP_SIZE:
        raise _error(program, target, f"NVIDIA's devices have warps of {WARP_SIZE} threads, not of {target.warp_size}")
    if program.language == "ptx":
        from podium_nvidia.linker import assemble

        return assemble(program, target)
    try:
        compiler = nvrtc.load()
        arch = _arch(program, target, compiler)
        arch, compiled = _compile(compiler, program, target, arch)
    except ToolchainError as error:
        error.program, error.target = program.label, str(target)
        raise
    symbols = _symbols(program, compiled)
    flags = program.options.flags
    form = "ltoir" if makes_lto(flags) else "ptx" if arch.is_ptx else "object" if is_linkable(flags) else "cubin"
    if form == "cubin":
        _check(compiled.code, program, target, symbols)
    return ObjectCode(
        code=compiled.code,
        format=form,
        target=Target(target.backend, str(arch), target.warp_size),
        entries=program.entries,
        symbols={name: symbol for name, symbol in symbols.items() if name != symbol},
        log=compiled.log,
        variables=program.variables,
    )


def _arch(program: Program, target: Target, compiler: Nvrtc) -> Arch:
    """Choose the architecture: what the flags ask for, else the target's, with its letter if the source needs it."""
    try:
        device = Arch.parse(target.arch)
    except ValueError as error:
        raise _error(program, target, str(error)) from None
    asked = arch_of_flags(program)
    if asked is not None:
        if not runs_on(asked, device):
            raise _error(program, target, f"its flags ask for {asked}, which {device} does not run")
        if asked.number not in compiler.supported:
            raise _error(program, target, f"its flags ask for {asked}; {_knows(compiler)}")
        return asked
    arch = choose(device, compiler.supported)
    if arch is None:
        raise ToolchainError(
            f"{program.label}: {_knows(compiler)}, so nothing for {device}. Take an older one: pip install "
            f"'cuda-toolkit[nvrtc,cudart,cccl]==12.*', or name its file by {NVRTC_VARIABLE}"
        )
    texts = (program.source, *(value for _, value in program.options.defines))
    return arch._replace(letter="a") if _may_have_letter(arch) and may_need_specific(*texts) else arch


def _compile(compiler: Nvrtc, program: Program, target: Target, arch: Arch) -> tuple[Arch, Compiled]:
    """Compile; once more with the letter of the architecture where the assembler says that it needs one."""
    folders = [INCLUDE, *include_folders(compiler.path)]
    names = [*(each.name for each in program.entries), *(f"&{each}" for each in _addressed(program))]

    text = _text(program)
    is_small = compiler.version >= _MINIMAL_SINCE and _may_be_small(text)

    def attempt(arch: Arch) -> Compiled:
        options = nvrtc_options(program, arch, folders)
        if is_small:
            try:
                return compiler.compile(text, program.label, [*options, _MINIMAL], names)
            except Refused:
                pass  # it may miss what was left out, and what is said of it must not be about that
        return compiler.compile(text, program.label, options, names)

    try:
        return arch, attempt(arch)
    except Refused as refused:
        if not _may_have_letter(arch) or not _NEEDS_LETTER.search(refused.log) or arch_of_flags(program) is not None:
            raise _explained(refused, program, target) from None
    arch = arch._replace(letter="a")
    try:
        return arch, attempt(arch)
    except Refused as refused:
        raise _explained(refused, program, target) from None


def _explained(refused: Refused, program: Program, target: Target) -> CompileError:
    from podium_nvidia.diagnostics import explain  # what compiles does not pay for it

    return explain(refused, program, target)


def _text(program: Program) -> str:
    """Put the macros in front of the source, where they do not change NVRTC's own declarations, as a flag would."""
    source = program.source.lstrip("\ufeff")
    macros = ""
    for name, value in program.options.defines:
        if not _MACRO.fullmatch(name) or re.search(r"[\n\r\0]", value):
            raise CompileError(
                f"The macro {name!r} with the value {value!r} cannot be defined: a name has letters, digits and "
                f"underscores, and a value is one line",
                program=program.label,
            )
        if name != ASSERT_SWITCH:
            macros += f"#define {name} {value}\n"
    return f"{macros}#line 1 {_quote(program.label)}\n{source}" if macros else source


def _may_be_small(text: str) -> bool:
    return not _RUNTIME_WORDS.search(text) and all(
        _SMALL_HEADERS.fullmatch(name[1] or "") for name in _INCLUDE.finditer(text)
    )


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def _may_have_letter(arch: Arch) -> bool:
    return arch.kind == "sm" and not arch.letter and arch.number >= _FIRST_WITH_LETTER


def _addressed(program: Program) -> list[str]:
    """Give the variables that NVRTC can name. It refuses managed ones, whose address is no constant."""
    return [each.name for each in program.variables if not _is_managed(each.name, program.source)]


def _is_managed(name: str, source: str) -> bool:
    base = name.rpartition("::")[2]
    return re.search(rf"\b__managed__\b[^;{{}}()]*\b{re.escape(base)}\b", source) is not None


def _symbols(program: Program, compiled: Compiled) -> dict[str, str]:
    symbols = {each.name: compiled.lowered[each.name] for each in program.entries}
    for variable in program.variables:
        name = variable.name
        symbols[name] = compiled.lowered.get(f"&{name}") or _mangled(name)
    return symbols


def _check(code: bytes, program: Program, target: Target, symbols: Mapping[str, str]) -> None:
    """Compare parameters with signatures. Raises `CompileError`."""
    try:
        cubin = Cubin(code)
    except ValueError:
        flags = " ".join(program.options.flags)
        raise _error(program, target, f"its flags ({flags}) make NVRTC give something else than machine code") from None
    for entry in program.entries:
        wrong = mismatch(cubin, entry, symbols[entry.name])
        if wrong:
            raise _error(program, target, wrong)


def _mangled(name: str) -> str:
    """Return the symbol of a variable, as the C++ ABI of all compilers for GPUs makes it of a plain qualified name."""
    parts = name.split("::")
    return name if len(parts) == 1 else "_ZN" + "".join(f"{len(part)}{part}" for part in parts) + "E"


def _knows(compiler: Nvrtc) -> str:
    major, minor = compiler.version
    return f"NVRTC {major}.{minor} makes code for {', '.join(f'sm_{each}' for each in compiler.supported)}"


def _error(program: Program, target: Target, why: str) -> CompileError:
    return CompileError(f"{program.label}: {why}", program=program.label, target=str(target))
