"""From CUDA-dialect text to a shared library: a few definitions before it, and an entry for each kernel after it."""

from __future__ import annotations

import hashlib
import os
import platform

from podium.backend import Entry, HostCompiler, ObjectCode, Program, Target
from podium.errors import CompileError

__all__ = ["compile_program"]

_BEFORE = """\
#include <math.h>
#include <stdint.h>
#include <stdio.h>
struct dim3 { unsigned x, y, z; };
static thread_local dim3 gridDim, blockDim, blockIdx, threadIdx;
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline
#define __restrict__ __restrict
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
"""

_ENTRY = """
extern "C" __attribute__((visibility("default"))) int {symbol}(const uint32_t *grid, const uint32_t *block, void **p) {{
    if (uint64_t(block[0]) * block[1] * block[2] > 1024) return 1;
    gridDim = {{grid[0], grid[1], grid[2]}};
    blockDim = {{block[0], block[1], block[2]}};
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
    for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)
    for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
        serial_call({name}, p);
    return 0;
}}
"""

# Reads each parameter through its address, as the type that the kernel declares.
_CALL = """
#include <utility>
template <typename... T, size_t... I>
static void serial_unpack(void (*kernel)(T...), void **p, std::index_sequence<I...>) {
    kernel(*static_cast<T *>(p[I])...);
}
template <typename... T>
static void serial_call(void (*kernel)(T...), void **p) { serial_unpack(kernel, p, std::index_sequence_for<T...>()); }
"""


def compile_program(program: Program, target: Target) -> ObjectCode:
    """Compile with the host's C++ compiler. Raises `CompileError` or `ToolchainError`."""
    if target.arch != platform.machine():
        message = f"The serial backend compiles for {platform.machine()} only, not for {target.arch!r}"
        raise CompileError(message, program=program.label, target=str(target))
    symbols = {entry.name: f"serial_{index}" for index, entry in enumerate(program.entries)}
    place = program.label.replace("\\", "\\\\").replace('"', '\\"')
    after = _CALL + "".join(map(_entry_code, program.entries, symbols.values()))
    source = f'{_BEFORE}#line 1 "{place}"\n{program.source}\n#line 1 "entries"\n{after}'
    try:
        library = HostCompiler.find("c++").compile({"program.cpp": source}, "program.cpp", _flags(program))
    except CompileError as error:
        error.program, error.target = program.label, str(target)
        raise
    digest = hashlib.sha256(library).hexdigest()
    return ObjectCode(library, "elf", target, program.entries, symbols, {"sha256": digest})


def _flags(program: Program) -> list[str]:
    options = program.options
    flags = [f"-std={options.std}", "-O2", "-fvisibility=hidden", *(["-g"] if options.debug else [])]
    flags += [f"-D{name}={value}" if value else f"-D{name}" for name, value in options.defines]
    if program.path is not None:
        flags += ["-iquote", os.path.dirname(os.path.abspath(program.path))]
    flags += [f"-I{folder}" for folder in options.include_dirs]
    return [*flags, *options.flags]


def _entry_code(entry: Entry, symbol: str) -> str:
    return _ENTRY.format(symbol=symbol, name=entry.name)
