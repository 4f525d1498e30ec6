"""From CUDA-dialect text to a shared object, with the host's C++ compiler.

The text is compiled as it is, behind a header that supplies the dialect. Behind it stand lines that export each kernel
as a C function, and that check the kernel's parameters against its signature, since only the compiler knows its types.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator

from podium.backend import Build, HostCompiler, ObjectCode, Options, Program, Target
from podium.errors import CompileError, ToolchainError

from podium_cpu.call_tree import has_large_call_tree
from podium_cpu.debug_source import debug_flags, debug_metadata
from podium_cpu.diagnostics import explain
from podium_cpu.entries import EntryLines, entry_lines
from podium_cpu.processor import ARCH_LEVELS, host_arch, is_known, processor_identity
from podium_cpu.refusals import may_have_assembly, refuse_assembly
from podium_cpu.regions import may_have_marks, may_have_regions, rewrite_regions
from podium_cpu.runtime_object import RuntimeObject
from podium_cpu.sanitizers import NONE, Sanitizers
from podium_cpu.shared_memory import may_have_dynamic_shared, rewrite_shared
from podium_cpu.toolchain import INCLUDE
from podium_cpu.waiting import may_wait

__all__ = ["compile_program"]

# Options whose reason is the dialect:
_DIALECT_FLAGS = (
    "-fno-strict-aliasing",  # kernels read floats as float4 and as integers through casts of pointers
    "-ffp-contract=fast",  # a GPU's compiler merges a product and a sum as well
    "-fno-math-errno",  # kernels have no errno,
    "-fno-trapping-math",  # nor traps: both would keep loops from being vectorised
    "-fvisibility=hidden",  # a kernel's name must not meet one of another library
)

# What use_fast_math allows a GPU's compiler, and no more: infinities and not-a-numbers still count. With -ffast-math
# itself, loading the library would make the whole process flush subnormal numbers to zero.
_FAST_MATH_FLAGS = ("-fno-signed-zeros", "-fassociative-math", "-freciprocal-math")

# The one macro that is meant for the headers.
_ASSERT_SWITCH = "NDEBUG"

# What linkers say where the C++ library is missing.
_OF_THE_CXX_LIBRARY = re.compile(
    r"undefined symbol: (?:.*\bstd::|.*\b__cxxabiv1::|__cxa_|__gxx_|_Unwind_|operator (?:new|delete)\b)"
)

# Headers of many functions, each of which would cost every compilation; and what a text that needs one has in it.
_DEMANDED_HEADERS = (
    ("../podium_cpu/rounding.h", re.compile(r"(?:_|\b)r[nduz]\b")),
    ("../podium_cpu/simd.h", re.compile(r"__v[a-z]|__dp")),
)

_OWN_INTEGER = re.compile(
    r"\btypedef\s+(?:(?:un)?signed\s+)?long\s+long\s+(?:unsigned\s+)?(?:int\s+)?(u?int64_t)\s*;"
    r"|\busing\s+(u?int64_t)\s*=\s*(?:unsigned\s+)?long\s+long\b"
)

_SOURCE_BEGINS = "#pragma podium_cpu source"

_MAY_WAIT = "namespace podium_entries {{ enum {{ podium_may_wait = {} }}; }}"


def compile_program(program: Program, target: Target, sanitizers: Sanitizers = NONE) -> ObjectCode:
    """Compile every kernel of a program into one shared object. Raises `CompileError` and `ToolchainError`."""
    if not is_known(target.arch):
        raise CompileError(
            f"{program.label}: there is no architecture {target.arch!r}; this machine's is {host_arch()!r}",
            program=program.label,
            target=str(target),
        )
    compiler = HostCompiler.find("c++")
    lines = entry_lines(program.entries, program.variables)
    flags = _flags(program, target, compiler, sanitizers)
    debugged = program.options.debug and not sanitizers  # what a sanitizer says has the names of messages
    if debugged:
        flags += debug_flags(program)
    try:
        source = _unit(program, lines)
        barriers = _may_have(may_have_marks, program)
        regions = not sanitizers and not _keeps_threads(program) and _may_have(may_have_regions, program)
        if compiler.is_zig or _needs_rewriting(program) or _may_have(may_have_assembly, program) or barriers or regions:
            built = _build_rewritten(compiler, source, program, flags, sanitizers)
        else:
            flags = [*flags, *_forced_include()]
            built = _build(compiler, "kernel.cpp", source, flags, program.options, sanitizers)
    except ToolchainError as error:
        error.program, error.target = program.label, str(target)
        raise
    except CompileError as error:
        raise explain(error, program, lines, target) from None
    return ObjectCode(
        code=built.data,
        format=_object_format(),
        target=target,
        entries=program.entries,
        symbols=lines.symbols,
        metadata={**(debug_metadata(program) if debugged else {}), **_native_metadata(flags, compiler)},
        log=built.log,
        variables=program.variables,
    )


def _build(
    compiler: HostCompiler, main: str, source: str, flags: list[str], options: Options, sanitizers: Sanitizers
) -> Build:
    if not compiler.is_zig:
        return _compile_and_link(compiler, main, source, flags, options, sanitizers)
    try:
        # zig brings its C++ library along and would compile it first, which takes a minute. The headers of it are not
        # needed any more, and few kernels need the library.
        return _compile_and_link(compiler, main, source, [*flags, "-nostdlib++"], options, sanitizers)
    except CompileError as error:
        if not _OF_THE_CXX_LIBRARY.search(error.log):
            raise
        return _compile_and_link(compiler, main, source, flags, options, sanitizers)


def _compile_and_link(
    compiler: HostCompiler, main: str, source: str, flags: list[str], options: Options, sanitizers: Sanitizers
) -> Build:
    """Compile, and link with the runtime; where that is not in the cache, it is compiled at the same time."""
    runtime = RuntimeObject(compiler, flags)
    link = _link_flags(options)
    data = runtime.recall()
    if data is not None and not sanitizers:
        return compiler.run({main: source}, main, [*flags, *link], objects={"runtime.o": data})
    if data is None:
        runtime.start()
    try:
        checks = sanitizers.flags(compiler) if sanitizers else []
        built = compiler.run({main: source}, main, [*flags, *checks, "-fPIC", "-c"])
    finally:
        if data is None:
            data = runtime.finish()
    linked = compiler.run({}, "kernel.o", [*flags, *link], objects={"kernel.o": built.data, "runtime.o": data})
    return Build(linked.data, built.log + linked.log)


def _unit(program: Program, lines: EntryLines) -> str:
    source = program.source.lstrip("\ufeff")
    # Behind the dialect's headers, so that a macro such as T or size does not change them.
    defines = program.options.defines
    macros = "".join(f"#define {name} {value}\n" for name, value in defines if name != _ASSERT_SWITCH)
    macros += "".join(f"#define {name} podium_{name}\n" for name in _own_integers(source))
    source = f"{macros}#line 1 {_quote(program.label)}\n{source}"
    names = [*_demanded_headers(program), *_dialect_headers(program.source)]
    headers = "".join(f"#include <{name}>\n" for name in names)
    before = f"{headers}{_says_may_wait(source, program)}\n{_SOURCE_BEGINS}\n"
    return f"{before}{source}\n#line 1 {_quote(lines.label)}\n{lines.text}"


def _says_may_wait(source: str, program: Program) -> str:
    # One that calls very much runs thread by thread as well.
    waits = may_wait(source, (entry.name for entry in program.entries)) or has_large_call_tree(source)
    return _MAY_WAIT.format(int(waits))


def _own_integers(source: str) -> list[str]:
    """Give the integer types of the C library that the source defines itself, as text for NVRTC does, which has none.

    Where the C library's is another of the types with as many bits, the source's has to have another name.
    """
    found = _OWN_INTEGER.finditer(source)
    # In a namespace there is no conflict.
    outside = [each for each in found if source.count("{", 0, each.start()) == source.count("}", 0, each.start())]
    return sorted({match[1] or match[2] for match in outside})


def _demanded_headers(program: Program) -> list[str]:
    texts = [program.source, *(value for _, value in program.options.defines)]
    every = _has_unseen_text(program) or any("##" in text for text in texts)
    return [name for name, pattern in _DEMANDED_HEADERS if every or any(map(pattern.search, texts))]


def _dialect_headers(source: str) -> list[str]:
    """Give the headers of the dialect that the source includes; all but assert.h, which looks at NDEBUG each time."""
    names = {name for form, name in _includes(source) if form == "<" and name != "assert.h"}
    return sorted(name for name in names if os.path.exists(os.path.join(INCLUDE, "dialect", name)))


def _build_rewritten(
    compiler: HostCompiler, source: str, program: Program, flags: list[str], sanitizers: Sanitizers
) -> Build:
    """Run the preprocessor alone, and compile what it leaves with the rewritings that need to see all of it."""
    arguments = [*flags, "-DPODIUM_CPU_KEEP_WORDS", *_forced_include(), "-E"]
    text = compiler.run({"kernel.cpp": source}, "kernel.cpp", arguments).data.decode("utf-8", "surrogateescape")
    before, _, after = text.partition(_SOURCE_BEGINS)
    refuse_assembly(after, program)
    # zig takes a file of any other name for one to be linked.
    main = "kernel.cpp" if compiler.is_zig else "kernel.ii"
    # What is left of macros is for the runtime.
    flags = [each for each in flags if not each.startswith(("-D", "-U")) or each.startswith("-DPODIUM_CPU_")]
    storage = "static" if sanitizers else "thread_local"

    def build(after: str) -> Build:
        says = _says_may_wait(after, program)
        unit = before.replace(_MAY_WAIT.format(0), says).replace(_MAY_WAIT.format(1), says)
        return _build(compiler, main, unit + rewrite_shared(after, storage), flags, program.options, sanitizers)

    loops = not sanitizers and not _keeps_threads(program) and may_have_regions(after)
    if loops or may_have_marks(after):
        rewritten, _ = rewrite_regions(after, independent="clang" not in compiler.version, loops=loops)
        if rewritten != after:
            try:
                return build(rewritten)
            except CompileError:
                pass  # the mistake is the user's, or the rewriting went too far: the text as it is says which
    return build(after)


def _may_have(test: Callable[[str], bool], program: Program) -> bool:
    return test(program.source) or any(test(value) for _, value in program.options.defines)


def _keeps_threads(program: Program) -> bool:
    """Tell whether each thread has to run by itself: for a debugger, for a sanitizer, or because the user says so."""
    options = program.options
    words = (program.source, *(name for name, _ in options.defines), *options.flags)
    return (
        options.debug
        or any(flag.startswith(("-fsanitize", "-O0", "-Og")) for flag in options.flags)
        or any("PODIUM_CPU_FIBERS" in each for each in words)
    )


def _needs_rewriting(program: Program) -> bool:
    """Tell whether dynamic shared memory may be declared: in the text, or where the text does not show it."""
    return (
        may_have_dynamic_shared(program.source)
        or any("__shared__" in value for _, value in program.options.defines)
        or _has_unseen_text(program)
    )


def _has_unseen_text(program: Program) -> bool:
    """Tell whether more of the user's text may be compiled than the source shows: headers, and macros of flags."""
    options = program.options
    hidden_flags = ("-I", "-i", "-D", "@", "-Xclang", "--include")
    return any(flag.startswith(hidden_flags) for flag in options.flags) or any(
        _is_users(name, form, options) for form, name in _includes(program.source)
    )


def _includes(source: str) -> Iterator[tuple[str, str]]:
    """Give the bracket and the name of each include; one by a macro has the name ''."""
    for match in re.finditer(r'^[ \t]*#[ \t]*include(?:_next)?\b[ \t]*(?:([<"])([^>"\n]+)[>"])?', source, re.MULTILINE):
        yield match[1] or "", match[2] or ""


def _is_users(name: str, form: str, options: Options) -> bool:
    """Tell whether an included file is the user's own, and not the dialect's or the system's."""
    if not name or os.path.exists(os.path.join(INCLUDE, "dialect", name)):
        return not name
    return form == '"' or any(os.path.exists(os.path.join(folder, name)) for folder in options.include_dirs)


def _flags(program: Program, target: Target, compiler: HostCompiler, sanitizers: Sanitizers) -> list[str]:
    """Make the flags that hold for the preprocessor and for the compiler.

    `max_registers` changes nothing here: a thread of a block has as many registers as the processor.
    """
    options = program.options
    # With less of it, what a sanitizer finds is found at the line where it stands.
    level = "-O0" if options.debug else "-O1" if sanitizers else "-O3"
    flags = [f"-std={options.std}", level, *_DIALECT_FLAGS]
    if sanitizers:
        flags.append("-DPODIUM_CPU_SANITIZE")
    if options.debug or options.line_info:
        flags.append("-g")
    if options.fast_math:
        flags += _FAST_MATH_FLAGS
    flags += _arch_flags(target.arch, compiler)
    if "clang" in compiler.version:
        # All lanes may pass a variable to a shuffle that only one of them has set. Clang would conclude from it that
        # each one sets it, and have every lane do what only one should.
        flags.append("-ftrivial-auto-var-init=pattern")
    for name, value in options.defines:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or re.search(r"[\n\r\0]", value):
            raise CompileError(
                f"The macro {name!r} with the value {value!r} cannot be defined: a name has letters, digits and "
                f"underscores, and a value is one line",
                program=program.label,
                target=str(target),
            )
        if name == _ASSERT_SWITCH:
            flags.append(f"-D{name}={value}")
    # Before the user's folders, where a vendor's headers of the same names may lie.
    flags.append(f"-I{os.path.join(INCLUDE, 'dialect')}")
    if program.path is not None:
        flags += ["-iquote", os.path.dirname(os.path.abspath(program.path))]
    flags += [f"-I{folder}" for folder in options.include_dirs]
    # Last, since clang's -Wall brings it back: #pragma unroll means something to a GPU's compiler.
    return [*flags, *options.flags, "-Wno-unknown-pragmas"]


def _forced_include() -> list[str]:
    return ["-include", os.path.join(INCLUDE, "podium_cpu.h")]


def _link_flags(options: Options) -> list[str]:
    flags = ["-shared", "-fPIC", "-pthread"]
    if sys.platform.startswith("linux"):
        # Without a need for it, the C++ library is not loaded with the kernel.
        flags += ["-Wl,--as-needed", "-lrt"]
        # What is missing is told by the compiler, and not when the kernel is loaded. The functions of a sanitizer are
        # in the program and not in the library.
        if not any(flag.startswith("-fsanitize") for flag in options.flags):
            flags.append("-Wl,-z,defs")
    return flags


def _native_metadata(flags: list[str], compiler: HostCompiler) -> dict[str, str]:
    """Name the processor, if the user's flags or compiler make code for exactly the one that is here."""
    native = any(re.fullmatch(r"-m\w+=native", word) for word in (*flags, *compiler.identity.split()))
    return {"processor": processor_identity()} if native else {}


def _arch_flags(arch: str, compiler: HostCompiler) -> list[str]:
    if arch in ARCH_LEVELS:
        if compiler.is_zig:
            return [f"-march={arch.replace('-', '_')}"]
        # The levels have names in gcc 11, clang 12 and later; code for the lowest runs everywhere.
        return [f"-march={arch}"] if _knows_levels(compiler.version) else ["-march=x86-64"]
    return [f"-march={arch}"] if arch.startswith("armv8") and not compiler.is_zig else []


def _knows_levels(version: str) -> bool:
    clang = re.search(r"clang version (\d+)", version)
    if clang:
        return int(clang[1]) >= 12
    numbers = re.findall(r"\b(\d+)\.\d+(?:\.\d+)?", version)
    return bool(numbers) and int(numbers[-1]) >= 11


def _quote(label: str) -> str:
    text = label.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\n\r\0]", "?", text) + '"'


def _object_format() -> str:
    return {"darwin": "macho", "win32": "coff"}.get(sys.platform, "elf")
