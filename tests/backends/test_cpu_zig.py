"""The CPU backend on a machine whose only compiler is the Python package ziglang."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAM = r'''
import podium

module = podium.module("""
#include <cassert>
#include <type_traits>
#include <cuda_fp16.h>

template <typename T>
__global__ void turn(T *data, int n) {
    extern __shared__ char bytes[];
    T *copy = reinterpret_cast<T *>(bytes);
    copy[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    assert(n == int(blockDim.x));
    data[threadIdx.x] = std::is_same<T, float>::value ? copy[n - 1 - threadIdx.x] * 2 : rsqrtf(0.0f);
}
""")

turn = module["turn<float>"]
x = podium.asarray([1.0, 2.0, 3.0])
turn[1, 3](x, 3, shared=12)
turn.warm_up()
print(turn.level, x.tolist())
turn[1, 3](x, 3, shared=12)
print(x.tolist())
try:
    turn[1, 3](x, 4, shared=12)
except podium.errors.LaunchError as error:
    print(error.status_name)
try:
    podium.kernel("__global__ void k(int *p) {\n  *p = nowhere; }").load()
except podium.errors.CompileError as error:
    print(error.diagnostics[0].line, error.diagnostics[0].column)
try:
    podium.kernel("__device__ int missing(int); __global__ void k(int *p) { *p = missing(1); }").load()
except podium.errors.CompileError as error:
    print(str(error).splitlines()[-1])
debug = podium.kernel("__global__ void k(int *p) { *p += 2147483647; }", debug=True)
y = podium.asarray([1])
debug[1, 1](y)
print(y.tolist())
'''

EXPECTED = """\
generated [6.0, 4.0, 2.0]
[4.0, 8.0, 12.0]
PODIUM_CPU_ERROR_ASSERT
2 8
<podium source>: declared and used, but nowhere defined: missing(int)
[-2147483648]
"""


@pytest.fixture(scope="module")
def zig_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where zig keeps the parts of the C library that it has compiled."""
    return tmp_path_factory.mktemp("zig")


@pytest.mark.skipif(find_spec("ziglang") is None, reason="the package ziglang is not installed")
def test_kernels_and_launchers_are_built_with_zig_alone(tmp_path: Path, zig_cache: Path) -> None:
    """CC-01: with no compiler on the path, kernels and generated launchers are built by ziglang, and errors read the same."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}
    environment = {**kept, "PATH": str(tmp_path), "ZIG_GLOBAL_CACHE_DIR": str(zig_cache), "PODIUM_BACKEND": "cpu"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout) == (0, EXPECTED), done.stderr
