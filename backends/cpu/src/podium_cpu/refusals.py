"""What the CPU backend cannot do, refused by name: which words and headers mean it, and what to do instead.

Most of it needs no search. The dialect's headers declare none of it, so the compiler itself finds the uses that are
compiled, at their places, and its messages are only put in other words here. Inline assembly is the exception: it is
part of the language of the host, too. It is looked for in preprocessed text, so that comments, strings and what is
compiled out do not count.
"""

from __future__ import annotations

import bisect
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podium.backend import Program, source_line
from podium.errors import CompileError, Diagnostic

from podium_cpu.toolchain import INCLUDE

__all__ = ["may_have_assembly", "name_refusals", "refuse_assembly"]


@dataclass(frozen=True)
class _Feature:
    name: str
    advice: str
    words: str  # a regular expression for names, qualified or not, and what follows them
    headers: str = "(?!)"  # and one for the beginnings of headers


_ASSEMBLY = _Feature("inline PTX", "write it in C++, for which there are intrinsics", "(__)?asm(__)?")
_TILES = _Feature("tiles of several warps", "take a tile of at most 32 threads, or the whole block", "tiled_partition")
_NESTED = _Feature("dynamic parallelism", "launch the second kernel from Python", "<<<")

_FEATURES = (
    _Feature(
        "textures and surfaces",
        "pass a pointer and compute the index",
        r"(tex|surf)(1D|2D|3D|Cubemap)\w*|(texture|surface)(?=\s*<)|(texture|surface)Reference"
        r"|(cuda|hip)(Texture|Surface|Array|ReadMode|Address|Filter|Boundary|ChannelFormat|CreateTex|CreateSurf)\w*",
        "texture_|surface_|cuda_texture|cuda_surface|hip/.*texture|hip/.*surface",
    ),
    _Feature(
        "thread block clusters",
        "let each block work alone, and exchange through global memory",
        r"__cluster\w*|__block_size__|__isClusterShared|(\w+::)*(this_cluster|cluster_group)|clusterDim|clusterIdx"
        r"|clusterRelativeBlock\w*",
    ),
    _Feature(
        "launches over several devices",
        "launch once for each device",
        r"(\w+::)*(this_multi_grid|multi_grid_group)",
    ),
    _Feature(
        "tensor cores",
        "write the product of the tiles as a loop",
        r"nvcuda|rocwmma|wmma(?=\s*::)|__(wgmma|mma|hmma|imma|bmma|dmma|wmma|mfma|tcgen05)\w*",
        "mma.h|crt/|rocwmma|cutlass/|cute/",
    ),
    _Feature(
        "asynchronous copies with pipelines and barrier objects",
        "copy by assignment or with cooperative_groups::memcpy_async, and wait with __syncthreads()",
        r"__pipeline_\w+|__mbarrier_\w+|CUtensorMap|__cp_async\w*|cuda::(ptx|latch|memcpy_async|device::)"
        r"|cuda::\w*(pipeline|barrier|semaphore)\w*",
        "cuda_pipeline|cuda_awbarrier|cuda/pipeline|cuda/barrier|cuda/latch|cuda/semaphore|cuda/ptx|cudaTypedefs",
    ),
    _Feature(
        "instructions of AMD's compiler",
        "use the dialect's functions, such as __shfl_xor_sync and __syncthreads",
        r"__builtin_amdgcn_\w+|__builtin_r600_\w+|__amdgcn_\w+|__oc(kl|ml)_\w+|__hip_(ds|move)_\w+|__llvm_amdgcn_\w+",
    ),
    _Feature(
        "instructions of NVIDIA's compiler",
        "use the dialect's functions and variables, such as threadIdx and __shfl_sync",
        r"__nvvm_\w+|__nv_(?!bfloat16|fp8)\w+|__cvta_\w+|__is(Global|Shared|Constant|Local|GridConstant)|__setmaxnreg\w*",
    ),
    _Feature(
        "device libraries of GPU vendors",
        "write the loop in the kernel, or use cooperative_groups and the warp functions",
        r"(cub|thrust|hipcub|rocprim|cutlass|cute|cublasdx|cufftdx|curanddx)(?=\s*(::|;))"
        r"|cuda(?=\s*(::|;))(?!::(atomic|thread_scope|memory_order|std))"
        r"|(curand|hiprand|rocrand|nvshmem)\w*",
        "cub/|thrust/|curand|hiprand|rocrand|hipcub/|rocprim/|nvshmem|cublas|cufft|cusparse|cusolver|cudnn|nvfunctional"
        "|cuda_fp6|cuda_fp4|cuda/|nv/",
    ),
    _Feature(
        "CUDA or HIP runtime inside kernels", "make such calls from Python, around the launch", r"(cuda|hip)[A-Z]\w+"
    ),
)

_CANNOT = ": the CPU backend has no "

# Names that a header of the dialect declares, for whoever has not included it.
_DECLARED_BY = (
    (
        "cuda_fp16.h",
        re.compile(r"half2?|__half\w*|__\w+2half2?\w*|__h(add|sub|mul|div|fma|neg|abs|max|min)2?|h(exp|log|sqrt)"),
    ),
    ("cuda_bf16.h", re.compile(r"(__)?nv_bfloat16\w*|__\w+2bfloat16\w*|__bfloat16\w*")),
    ("cuda_fp8.h", re.compile(r"__nv_fp8\w*|__nv_cvt_\w*fp8\w*")),
    ("cooperative_groups.h", re.compile(r"(cooperative_groups|cg)(::\w+)*")),
    ("cuComplex.h", re.compile(r"cu(Float|Double)?Complex|make_cu\w*Complex|cuC\w+")),
    ("math_constants.h", re.compile(r"CUDART_\w+")),
    ("cuda/atomic", re.compile(r"cuda::(atomic|atomic_ref|atomic_thread_fence|thread_scope\w*|memory_order\w*)")),
)

# What compilers say of a name that they do not know.
_UNKNOWN = re.compile(
    r"not declared|not been declared|not a member|undeclared|no member|no template|unknown type|does not name"
    r"|must be available|not a namespace-name|expected namespace name"
)
_QUOTED = re.compile(r"['\u2018](\w+(?:::\w+)*)")
_NO_HEADER = re.compile(r"'?([^\s']+?)'?(?:: No such file or directory| file not found)")
_NOT_HERE = re.compile(r"(\w+) is not for the CPU")  # what the dialect's own macros say
_QUALIFIED = re.compile(r"[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*")

_ASM = re.compile(r"\b(?:__asm__|__asm|asm)\b")
_LITERAL = re.compile(
    r'R"(?P<delimiter>[^()\\\s]{0,16})\((?P<raw>.*?)\)(?P=delimiter)"|"(?P<text>(?:\\.|[^"\\\n])*)"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)
_STATEMENT = re.compile(r"(?:\s|#[^\n]*\n|__volatile__|__volatile|volatile|inline|__inline__|goto)*\(\s*(?=[\"RuUL(])")
_MARKER = re.compile(r'^#(?:line)? (\d+) "((?:\\.|[^"\\\n])*)"([ 0-9]*)$', re.MULTILINE)
# What is assembly of a GPU: operations with a type or a modifier behind a dot, its registers, and AMD's prefixes.
_GPU_ASSEMBLY = re.compile(
    r"\b(?!b\.)[a-z]\w*\.[a-z]|%+(?:laneid|warpid|smid|clock|globaltimer|lanemask|tid|ctaid|envreg|dynamic_smem)"
    r"|\b(?:exit|trap|brkpt|ret)\s*;|^\s*[{@]|\b(?:[sv]|ds|buffer|global|flat|image)_[a-z]\w+"
)


def may_have_assembly(source: str) -> bool:
    """Tell whether a text could have inline assembly, and so must be looked at once it is preprocessed."""
    return "asm" in source and _ASM.search(source) is not None


def refuse_assembly(text: str, program: Program) -> None:
    """Raise `CompileError` for assembly of a GPU in preprocessed text, with its places in the user's source.

    Assembly that could be the host's is left to the compiler, as is an empty one, which only keeps accesses in order.
    """
    if not may_have_assembly(text):
        return
    found = []
    for word, template, place in _assembly(text):
        if _GPU_ASSEMBLY.search(template):
            found.append(_at_word(place, word, program, _text(_ASSEMBLY, word)))
    if found:
        raise CompileError(found[0].message, diagnostics=found)


def name_refusals(found: Sequence[Diagnostic], program: Program) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Put the errors about what this backend cannot do in those words; return them, and all other messages."""
    refused: list[Diagnostic] = []
    rest: list[Diagnostic] = []
    for each in found:
        refusal = _refusal(each, program) if each.severity in ("error", "fatal error") else None
        if refusal is None:
            rest.append(_with_header(each, program) if each.severity == "error" else each)
        elif refusal not in refused:
            refused.append(refusal)
    return refused, rest


def _text(feature: _Feature, word: str) -> str:
    return (
        f"{word}{_CANNOT}{feature.name}; {feature.advice}. Put what only GPUs can do between "
        f"#ifndef __PODIUM_CPU__ and #endif"
    )


def _refusal(error: Diagnostic, program: Program) -> Diagnostic | None:
    if _CANNOT in error.message:
        return error
    line = source_line(error.file, error.line, program) or ""
    if header := _NO_HEADER.search(error.message):
        feature = next((each for each in _FEATURES if re.match(each.headers, header[1])), None)
        if feature is None:
            return None
        return Diagnostic(error.file, error.line, error.column, "error", _text(feature, f"<{header[1]}>"))
    if macro := _NOT_HERE.fullmatch(error.message):
        feature = _feature(macro[1])
        return _at_word(error, macro[1], program, _text(feature, macro[1])) if feature else None
    launch = line.find("<<<", max(0, error.column - 4), error.column + 5)
    if launch >= 0:
        return Diagnostic(error.file, error.line, launch + 1, "error", _text(_NESTED, _NESTED.words))
    if "deleted function" in error.message and _TILES.words in error.message:
        return _at_word(error, _TILES.words, program, _text(_TILES, _TILES.words))
    if not _UNKNOWN.search(error.message):
        return None
    for start, candidate in _candidates(line, error):
        if feature := _feature(candidate):
            column = start + 1 if start >= 0 else error.column
            return Diagnostic(error.file, error.line, column, "error", _text(feature, _bare(candidate)))
    return None


def _with_header(error: Diagnostic, program: Program) -> Diagnostic:
    """Add to an error about an unknown name which header declares it."""
    if not _UNKNOWN.search(error.message) or "#include" in error.message:
        return error
    names = [_bare(text) for _, text in _candidates(source_line(error.file, error.line, program) or "", error)]
    for header, words in _DECLARED_BY:
        if any(map(words.fullmatch, names)) and f"<{header}>" not in program.source:
            text = f"{error.message}; #include <{header}> declares it"
            return Diagnostic(error.file, error.line, error.column, error.severity, text)
    return error


def _bare(text: str) -> str:
    name = _QUALIFIED.match(text)
    return re.sub(r"\s", "", name[0]) if name else text


def _candidates(line: str, error: Diagnostic) -> Iterator[tuple[int, str]]:
    """Give what an error may be about, with what follows: the name at its place, with and without scopes, or quoted."""
    for match in _QUALIFIED.finditer(line):
        if match.start() < error.column <= match.end():
            yield match.start(), line[match.start() :]
            word = re.compile(r"\w+").match(line, error.column - 1)
            if word:
                yield word.start(), line[word.start() :]
    for name in _QUOTED.findall(error.message.partition("; did you mean")[0]):
        position = line.find(name)
        yield position, line[position:] if position >= 0 else name


def _feature(text: str) -> _Feature | None:
    text = re.sub(r"\s*::\s*", "::", text)
    return next((each for each in _FEATURES if re.match(rf"(?:{each.words})(?!\w)", text)), None)


def _at_word(place: Diagnostic, word: str, program: Program, text: str) -> Diagnostic:
    """Make an error at a word of the line of `place`: where it is the only one, else the nearest; macros hide some."""
    line = source_line(place.file, place.line, program) or ""
    columns = [match.start() + 1 for match in re.finditer(rf"\b{re.escape(word)}\b", line)]
    first = len(line) - len(line.lstrip()) + 1
    column = min(columns, key=lambda each: abs(each - place.column)) if columns else first
    return Diagnostic(place.file, place.line, column, "error", text)


def _assembly(text: str) -> Iterator[tuple[str, str, Diagnostic]]:
    """Give the word, the template and the place of each assembly statement that is not in a header of the system."""
    hidden = _LITERAL.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    markers = list(_MARKER.finditer(text))
    starts = [marker.start() for marker in markers]
    for match in _ASM.finditer(hidden):
        opening = _STATEMENT.match(text, match.end())
        index = bisect.bisect(starts, match.start()) - 1
        if opening is None or index < 0:
            continue
        marker = markers[index]
        file = re.sub(r"\\(.)", r"\1", marker[2])
        if "3" in marker[3].split() or file.startswith(INCLUDE + os.sep):
            continue
        line = int(marker[1]) + text.count("\n", marker.end(), match.start()) - 1
        column = match.start() - text.rfind("\n", 0, match.start())
        yield match[0], _template(text, opening.end()), Diagnostic(file, line, column, "error", "")


def _template(text: str, position: int) -> str:
    """Read the literals that stand one behind the other at a position."""
    parts = []
    literal = re.compile(r"(?:\s|#[^\n]*\n|u8|[uUL(])*" + _LITERAL.pattern, re.DOTALL)
    while match := literal.match(text, position):
        parts.append(match["raw"] or re.sub(r"\\[nt]", "\n", match["text"] or ""))
        position = match.end()
    return "".join(parts)
