"""Kernels that tests compile, load and launch on the CPU backend."""

from __future__ import annotations

import array
import struct

import pytest

from podium.backend import Entry, HostCompiler, LaunchConfig, Options, Parameters, Program, Signature, Target
from podium.errors import ToolchainError

cpu_driver = pytest.importorskip("podium_cpu.driver", reason="the CPU backend is not installed")

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, BARRIER, MASK, ASSERT, TRAP = range(7)

_FORMATS = {"i1": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q"}
_FORMATS |= {"fp16": "e", "fp32": "f", "fp64": "d"}


def pack(spelling: str, value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, array.array):
        value = value.buffer_info()[0]
    return struct.pack("=" + ("Q" if spelling.startswith("*") else _FORMATS[spelling]), value)


class Kernels:
    """The kernels of a source, compiled and loaded; call one by name, and get the status of the launch."""

    def __init__(self, source: str, entries: dict[str, str], target: Target | None = None, **options: object) -> None:
        self.driver = cpu_driver.CpuDriver()
        signatures = tuple(Entry(name, Signature.parse(text)) for name, text in entries.items())
        program = Program(source, "cuda", signatures, Options.of(**options))  # type: ignore[arg-type]
        self.code = self.driver.compile(program, target or self.driver.default_target())
        self.functions = {name: self.driver.load(self.code, name, 0) for name in entries}

    def __call__(
        self, name: str, grid: object, block: object, *args: object, shared: int = 0, cooperative: bool = False
    ) -> int:
        types = self.code.entry(name).signature.types
        data, offsets = bytearray(), []
        assert len(types) == len(args)
        for kind, value in zip(types, args):
            data += bytes(-len(data) % kind.alignment)
            offsets.append(len(data))
            data += pack(kind.spelling, value)
        config = LaunchConfig(grid, block, shared=shared, cooperative=cooperative)  # type: ignore[arg-type]
        return self.driver.launch(self.functions[name].handle, config, 0, 0, Parameters(bytes(data), tuple(offsets)))


def ints(values: object) -> array.array[int]:
    return array.array("i", values)  # type: ignore[arg-type]


def zeros(code: str, count: int) -> array.array[int]:
    return array.array(code, bytes(array.array(code).itemsize * count))


def host_compiler() -> HostCompiler:
    """Find the C++ compiler, or skip the tests."""
    try:
        return HostCompiler.find("c++")
    except ToolchainError as error:
        pytest.skip(f"this machine has no C++ compiler: {error}")


BARRIERS = """
extern "C" __global__ void reverse(int *data) {
  __shared__ int tile[1024];
  int *mine = data + blockIdx.x * blockDim.x;
  tile[threadIdx.x] = mine[threadIdx.x];
  __syncthreads();
  mine[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void sum(const int *in, int *out) {
  static __shared__ int s[256];
  s[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
  for (int k = 128; k > 0; k >>= 1) {
    __syncthreads();
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n) {
  __shared__ float p[16][16], q[16][17];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float s = 0;
  for (int t = 0; t < n; t += 16) {
    p[y][x] = a[row * n + t + x];
    q[y][x] = b[(t + y) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) s += p[y][k] * q[k][x];
    __syncthreads();
  }
  c[row * n + column] = s;
}
extern "C" __global__ void uniform_branch(int *out, int n) {
  __shared__ int total;
  if (n > 3) {
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, (int)threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = total;
  } else {
    out[threadIdx.x] = -1;
  }
}
extern "C" __global__ void early_exit(int *out, int n) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  if (threadIdx.x >= n) return;
  __syncthreads();
  atomicAdd(&count, 1);
  if (threadIdx.x % 2) return;
  __syncthreads();
  out[threadIdx.x] = count;
}
extern "C" __global__ void late_exit(int *out) {
  __shared__ int count;
  if (threadIdx.x == blockDim.x - 1) count = 0;
  if (threadIdx.x < 3) return;
  __syncthreads();
  atomicAdd(&count, 1);
  __syncthreads();
  out[threadIdx.x] = count;
}
extern "C" __global__ void votes(int *out) {
  int *o = out + 4 * threadIdx.x;
  o[0] = __syncthreads_count(threadIdx.x % 3 == 0);
  o[1] = __syncthreads_or(threadIdx.x == 7);
  o[2] = __syncthreads_and(threadIdx.x < 64);
  o[3] = __syncthreads_and(threadIdx.x < 63) + 2 * __syncthreads_or(0);
}
__shared__ int outside;
namespace { __shared__ double also_outside[4]; }
__device__ void set(int v) { if (threadIdx.x == 0) { outside = v; also_outside[v % 4] = v; } __syncthreads(); }
extern "C" __global__ void namespace_scope(int *out) {
  set(blockIdx.x + 5);
  out[blockIdx.x * blockDim.x + threadIdx.x] = outside + (int)also_outside[(blockIdx.x + 5) % 4];
}
extern "C" __global__ void different_barriers(int *out) {
  if (threadIdx.x < 32) __syncthreads();
  else if (threadIdx.x == 40) __syncwarp();
  else __syncthreads();
  out[threadIdx.x] = 1;
}
extern "C" __global__ void wait_for_flag(int *out) {
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 33) flag = 42;
  while (flag == 0) __nanosleep(100);
  out[threadIdx.x] = flag;
}
extern "C" __global__ void flag_of_a_thread_to_come(volatile int *flag, int *out) {
  if (threadIdx.x == blockDim.x - 1) *flag = 9;
  while (*flag == 0) __nanosleep(100);
  out[threadIdx.x] = *flag;
}
"""

BARRIER_ENTRIES = {
    "reverse": "data: *i32",
    "sum": "in: *ki32, out: *i32",
    "matmul": "a: *kfp32, b: *kfp32, c: *fp32, n: i32",
    "uniform_branch": "out: *i32, n: i32",
    "early_exit": "out: *i32, n: i32",
    "late_exit": "out: *i32",
    "votes": "out: *i32",
    "namespace_scope": "out: *i32",
    "different_barriers": "out: *i32",
    "wait_for_flag": "out: *i32",
    "flag_of_a_thread_to_come": "flag: *i32, out: *i32",
}
