"""The CUDA dialect on the CPU backend: threads, barriers, shared memory, warps, atomics, numbers."""

from __future__ import annotations

import array
import ctypes
import gc
import math
import os
import random
import re
import struct
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

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

    def __call__(self, name: str, grid: object, block: object, *args: object, shared: int = 0) -> int:
        types = self.code.entry(name).signature.types
        data, offsets = bytearray(), []
        assert len(types) == len(args)
        for kind, value in zip(types, args):
            data += bytes(-len(data) % kind.alignment)
            offsets.append(len(data))
            data += pack(kind.spelling, value)
        config = LaunchConfig(grid, block, shared=shared)  # type: ignore[arg-type]
        return self.driver.launch(self.functions[name].handle, config, 0, Parameters(bytes(data), tuple(offsets)))


def ints(values: object) -> array.array[int]:
    return array.array("i", values)  # type: ignore[arg-type]


def zeros(code: str, count: int) -> array.array[int]:
    return array.array(code, bytes(array.array(code).itemsize * count))


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    try:
        return HostCompiler.find("c++")
    except ToolchainError as error:
        pytest.skip(f"this machine has no C++ compiler: {error}")


# ---- threads and blocks ----

INDICES = """
#include <cuda_runtime.h>
#include "device_launch_parameters.h"
extern "C" __global__ void index(int *out) {
  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int *o = out + 13 * (block * blockDim.x * blockDim.y * blockDim.z + thread);
  uint3 t = threadIdx, b = blockIdx;
  dim3 n = blockDim, g = gridDim;
  const int all[13] = {(int)t.x, (int)t.y, (int)t.z, (int)b.x, (int)b.y, (int)b.z, (int)n.x, (int)n.y, (int)n.z,
                       (int)g.x, (int)g.y, (int)g.z, warpSize};
  for (int i = 0; i < 13; ++i) o[i] = all[i];
}
extern "C" __global__ void index_behind_barrier(int *out) {
  __syncthreads();
  int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  for (int i = 0; i < 3; ++i) __syncthreads();
  out[3 * thread] = threadIdx.x, out[3 * thread + 1] = threadIdx.y, out[3 * thread + 2] = threadIdx.z;
}
extern "C" __global__ void __launch_bounds__(1024, 2) nothing() {}
__device__ __noinline__ int depth(int n) { volatile char local[65536]; local[n] = 1; return n + local[n]; }
extern "C" __global__ void deep(int *out) {
  char local[131072];
  local[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = depth(threadIdx.x) + local[threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def indices() -> Kernels:
    return Kernels(
        INDICES, {"index": "out: *i32", "index_behind_barrier": "out: *i32", "nothing": "", "deep": "out: *i32"}
    )


def test_indices_have_three_axes(indices: Kernels) -> None:
    """Every thread of every block runs once, with its own indices; x is the innermost axis."""
    grid, block = (2, 3, 2), (4, 2, 3)
    out = ints([-1] * 13 * 12 * 24)
    assert indices("index", grid, block, out) == SUCCESS
    expected: list[int] = []
    for bz, by, bx in ((z, y, x) for z in range(2) for y in range(3) for x in range(2)):
        for tz, ty, tx in ((z, y, x) for z in range(3) for y in range(2) for x in range(4)):
            expected += [tx, ty, tz, bx, by, bz, *block, *grid, 32]
    assert out.tolist() == expected


def test_indices_survive_barriers(indices: Kernels) -> None:
    """A thread that has waited still has its own indices."""
    out = ints([-1] * 3 * 60)
    assert indices("index_behind_barrier", 1, (5, 4, 3), out) == SUCCESS
    assert out.tolist() == [v for z in range(3) for y in range(4) for x in range(5) for v in (x, y, z)]


def test_empty_grid_and_kernel_without_arguments(indices: Kernels) -> None:
    """GRD-03, CTX-03: an empty grid does nothing, and a kernel may have no parameters."""
    out = ints([7])
    assert indices("index", (0, 1, 1), 1, out) == SUCCESS
    assert indices("index", (1, 1, 0), 1, out) == SUCCESS
    assert out[0] == 7
    assert indices("nothing", 3, 1024) == SUCCESS


@pytest.mark.parametrize(
    ("block", "shared"), [((1025, 1, 1), 0), ((32, 32, 2), 0), ((1 << 31, 2, 1), 0), ((1, 1, 1), 232449)]
)
def test_shapes_beyond_the_limits_are_refused(indices: Kernels, block: tuple[int, int, int], shared: int) -> None:
    """GRD-06, GRD-08: the compiled code checks the shape itself, whoever calls it."""
    assert indices("nothing", 1, block, shared=shared) == INVALID_VALUE


def test_threads_have_room_for_locals(indices: Kernels) -> None:
    """Each thread that waits has a stack of its own, of more than a GPU's thread usually has."""
    out = ints([0] * 40)
    assert indices("deep", 1, 40, out) == SUCCESS
    assert out.tolist() == [i + 2 for i in range(40)]


# ---- barriers and shared memory ----

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


@pytest.fixture(scope="module", params=["switch", "ucontext"])
def barriers(request: pytest.FixtureRequest) -> Kernels:
    """The same kernels on the switch for this processor and on the one for all others."""
    flags = ["-DPODIUM_CPU_UCONTEXT"] if request.param == "ucontext" else []
    return Kernels(BARRIERS, BARRIER_ENTRIES, flags=flags)


@pytest.mark.parametrize("threads", [1, 2, 31, 33, 257, 1024])
def test_reverse_through_shared_memory(barriers: Kernels, threads: int) -> None:
    """All that a block wrote before a barrier is there behind it, for every size of block."""
    data = ints(range(3 * threads))
    assert barriers("reverse", 3, threads, data) == SUCCESS
    assert data.tolist() == [b * threads + i for b in range(3) for i in reversed(range(threads))]


def test_barriers_in_a_loop(barriers: Kernels) -> None:
    """A tree reduction has a barrier on each turn of its loop."""
    values = [random.Random(1).randrange(1000) for _ in range(256 * 5)]
    out = ints([0] * 5)
    assert barriers("sum", 5, 256, ints(values), out) == SUCCESS
    assert out.tolist() == [sum(values[256 * b : 256 * (b + 1)]) for b in range(5)]


def test_tiled_matrix_product(barriers: Kernels) -> None:
    """Two-dimensional blocks with two shared tiles give the matrix product."""
    n, source = 48, random.Random(2)
    a, b = ([float(source.randrange(-4, 5)) for _ in range(n * n)] for _ in range(2))
    c = zeros("f", n * n)
    assert barriers("matmul", (3, 3), (16, 16), array.array("f", a), array.array("f", b), c, n) == SUCCESS
    assert c.tolist() == [sum(a[i * n + k] * b[k * n + j] for k in range(n)) for i in range(n) for j in range(n)]


def test_barrier_in_a_branch_that_all_take(barriers: Kernels) -> None:
    """A barrier may stand where the whole block goes, and need not be reached at all."""
    out = ints([0] * 50)
    assert barriers("uniform_branch", 1, 50, out, 4) == SUCCESS
    assert out.tolist() == [sum(range(50))] * 50
    assert barriers("uniform_branch", 1, 50, out, 3) == SUCCESS
    assert out.tolist() == [-1] * 50


def test_exited_threads_are_not_waited_for(barriers: Kernels) -> None:
    """Threads that have returned count as arrived, whether they return before or between barriers."""
    out = ints([-1] * 64)
    assert barriers("early_exit", 1, 64, out, 20) == SUCCESS
    assert out.tolist() == [20 if i < 20 and i % 2 == 0 else -1 for i in range(64)]
    out = ints([-1] * 64)
    assert barriers("late_exit", 2, 64, out) == SUCCESS
    assert out.tolist() == [-1] * 3 + [61] * 61


def test_barriers_that_vote(barriers: Kernels) -> None:
    """The counting barriers give every thread the same answer about all predicates."""
    out = ints([-1] * 4 * 64)
    assert barriers("votes", 1, 64, out) == SUCCESS
    assert out.tolist() == [22, 1, 1, 0] * 64


def test_shared_memory_at_namespace_scope(barriers: Kernels) -> None:
    """Shared variables outside functions belong to the block as well."""
    out = ints([0] * 4 * 40)
    assert barriers("namespace_scope", 4, 40, out) == SUCCESS
    assert out.tolist() == [2 * (b + 5) for b in range(4) for _ in range(40)]


def test_deadlock_is_an_error(barriers: Kernels) -> None:
    """Threads that wait for each other for ever are an error of the launch, and the next launch works."""
    out = ints([0] * 64)
    assert barriers("different_barriers", 3, 64, out) == BARRIER
    assert out.tolist() == [0] * 64
    data = ints(range(64))
    assert barriers("reverse", 1, 64, data) == SUCCESS
    assert data.tolist() == list(range(63, -1, -1))


def test_a_thread_that_sleeps_lets_others_run(barriers: Kernels) -> None:
    """__nanosleep in a loop waits for what another thread of the block does, also for one that has not begun."""
    out = ints([0] * 64)
    assert barriers("wait_for_flag", 1, 64, out) == SUCCESS
    assert out.tolist() == [42] * 64
    assert barriers("flag_of_a_thread_to_come", 1, 64, ints([0]), out) == SUCCESS
    assert out.tolist() == [9] * 64


def test_threads_of_python_launch_at_the_same_time(barriers: Kernels) -> None:
    """CTX-01: launches from several threads do not share blocks' memory, and new threads can launch at once."""
    results: dict[int, bool] = {}

    def work(number: int) -> None:
        right = True
        for turn in range(20):
            data = ints(range(number, number + 512))
            right &= barriers("reverse", 2, 256, data) == SUCCESS
            expected = [number + b * 256 + i for b in range(2) for i in reversed(range(256))]
            right &= data.tolist() == expected and turn >= 0
        results[number] = right

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(6), True)


def mappings() -> int:
    with open("/proc/self/maps") as file:
        return sum(1 for _ in file)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="mappings are counted in /proc")
def test_stacks_go_with_their_thread(barriers: Kernels) -> None:
    """LIF-04: a thread's stacks are returned when it ends, so short-lived threads do not use up the memory."""

    def once() -> None:
        data = ints(range(1024))
        thread = threading.Thread(target=barriers, args=("reverse", 1, 1024, data))
        thread.start()
        thread.join()
        gc.collect()

    once()
    before = mappings()
    for _ in range(5):
        once()
    assert mappings() - before < 500  # each block of 1024 threads has more than 1024 stacks


def test_libraries_share_stacks(barriers: Kernels) -> None:
    """LIF-04: ten thousand kernels do not have ten thousand sets of stacks: later libraries use the first one's."""
    driver = cpu_driver.CpuDriver()
    runtimes = set()
    for number in range(3):
        text = f"__global__ void k(int *p) {{ *p = {number}; __syncthreads(); }}"
        program = Program(text, "cuda", (Entry("k", Signature.parse("*i32")),))
        driver.load(driver.compile(program, driver.default_target()), "k", 0)
        runtimes.add(driver._runtime)
    assert len(runtimes) == 1 and None not in runtimes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_launches_in_a_forked_child(barriers: Kernels) -> None:
    """ACT-06: the CPU goes on working in a child forked after it was used."""
    assert barriers("reverse", 1, 64, ints(range(64))) == SUCCESS
    child = os.fork()
    if child == 0:
        data = ints(range(64))
        right = barriers("reverse", 1, 64, data) == SUCCESS and data.tolist() == list(range(63, -1, -1))
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0


# ---- dynamic shared memory ----

DYNAMIC = """
// not this: extern __shared__ int commented[];
extern __shared__ float at_global_scope[];
extern __shared__ float at_global_scope[];
namespace outer { namespace inner { extern __shared__ __align__(16) unsigned char bytes[]; } }
#define DYNAMIC(T, name) extern __shared__ T name[]
__device__ const char *text() { return "extern __shared__ int quoted[];"; }
extern "C" __global__ void plain(int *data) {
  extern __shared__ int s[];
  s[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
template <typename T> __global__ void typed(T *data) {
  extern __shared__ T s[];
  T *const copy = s;
  copy[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = copy[(threadIdx.x + 1) % blockDim.x];
}
__device__ float first() { return at_global_scope[0]; }
extern "C" __global__ void global_scope(float *data) {
  at_global_scope[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  float *same = reinterpret_cast<float *>(outer::inner::bytes);
  data[threadIdx.x] = first() + same[threadIdx.x] + (text()[0] == 'e');
}
extern "C" __global__ void several(int *out) {
  extern __shared__ volatile int a[], b[];
  __align__(8) extern __shared__ short rows[][2];
  __shared__ int fixed[64];
  DYNAMIC(unsigned, by_macro);
  fixed[threadIdx.x] = 100;
  a[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = b[threadIdx.x] + rows[threadIdx.x][0] + by_macro[threadIdx.x] + fixed[threadIdx.x];
}
extern "C" __global__ void blocks_are_apart(int *out) {
  extern __shared__ int s[];
  if (threadIdx.x == 0) s[0] = blockIdx.x;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = s[0];
}
extern "C" __global__ void largest(int *out) {
  extern __shared__ char s[];
  s[232447] = 5;
  *out = s[232447] + (reinterpret_cast<size_t>(s) % 128 == 0);
}
"""


@pytest.fixture(scope="module")
def dynamic() -> Kernels:
    return Kernels(
        DYNAMIC,
        {
            "plain": "data: *i32",
            "typed<float>": "data: *fp32",
            "typed<unsigned long long>": "data: *u64",
            "global_scope": "data: *fp32",
            "several": "out: *i32",
            "blocks_are_apart": "out: *i32",
            "largest": "out: *i32",
        },
    )


def test_dynamic_shared_memory(dynamic: Kernels) -> None:
    """The memory behind extern __shared__ is the block's own, of the size that the launch gives."""
    data = ints(range(100))
    assert dynamic("plain", 1, 100, data, shared=400) == SUCCESS
    assert data.tolist() == list(range(99, -1, -1))
    out = ints([0] * 6 * 8)
    assert dynamic("blocks_are_apart", 6, 8, out, shared=4) == SUCCESS
    assert out.tolist() == [b for b in range(6) for _ in range(8)]


def test_dynamic_shared_memory_in_templates(dynamic: Kernels) -> None:
    """One name may have another type in each instance of a template."""
    floats, longs = array.array("f", range(8)), array.array("Q", [1 << 40 | i for i in range(8)])
    assert dynamic("typed<float>", 1, 8, floats, shared=32) == SUCCESS
    assert dynamic("typed<unsigned long long>", 1, 8, longs, shared=64) == SUCCESS
    assert floats.tolist() == [*range(1, 8), 0]
    assert longs.tolist() == [1 << 40 | i for i in [*range(1, 8), 0]]


def test_dynamic_shared_memory_at_namespace_scope(dynamic: Kernels) -> None:
    """Names at namespace scope, declared twice or inside namespaces, all stand for the same memory."""
    data = array.array("f", [2.0, 3.0, 5.0])
    assert dynamic("global_scope", 1, 3, data, shared=12) == SUCCESS
    assert data.tolist() == [5.0, 6.0, 8.0]


def test_dynamic_shared_memory_by_other_spellings(dynamic: Kernels) -> None:
    """Several names in one declaration, more dimensions, qualifiers in any order, and macros."""
    out = ints([0] * 16)
    assert dynamic("several", 1, 16, out, shared=64) == SUCCESS
    # rows[i][0] is the lower half of word i
    assert out.tolist() == [100 + 3 * i for i in range(16)]


def test_most_dynamic_shared_memory(dynamic: Kernels) -> None:
    """GRD-07: a block can have as much as the device says, and it is well aligned."""
    out = ints([0])
    assert dynamic("largest", 1, 1, out, shared=cpu_driver.CpuDriver().devices()[0].max_shared) == SUCCESS
    assert out[0] == 6


def test_dynamic_shared_memory_in_a_header(tmp_path: Path) -> None:
    """A declaration in the user's own header is found as well."""
    (tmp_path / "tile.cuh").write_text("__device__ int *tile() { extern __shared__ int s[]; return s; }\n")
    source = '#include <tile.cuh>\nextern "C" __global__ void k(int *p) { tile()[0] = 3; *p = tile()[0]; }'
    kernels = Kernels(source, {"k": "*i32"}, include_dirs=[tmp_path])
    out = ints([0])
    assert kernels("k", 1, 1, out, shared=4) == SUCCESS and out[0] == 3


def test_hip_header() -> None:
    """The names that HIP adds: its indices, its macro for dynamic shared memory, its warp functions without masks."""
    source = """
    #include <hip/hip_runtime.h>
    #include <hip/hip_fp16.h>
    #include <hip/hip_bf16.h>
    extern "C" __global__ void k(int *p) {
      HIP_DYNAMIC_SHARED(int, s)
      s[hipThreadIdx_x] = hipThreadIdx_x;
      __syncthreads();
      int v = __shfl_down(s[hipThreadIdx_x], 1) + (__ballot(1) == 0xffffffffull) + __any(hipThreadIdx_x == 3);
      p[hipThreadIdx_x] = v + __all(1) + (int)(float)half(1.0f) + (int)(float)__hip_bfloat16(2.0f);
    }
    """
    out = ints([0] * 32)
    assert Kernels(source, {"k": "*i32"})("k", 1, 32, out, shared=128) == SUCCESS
    assert out.tolist() == [min(i + 1, 31) + 6 for i in range(32)]


# ---- warps ----

WARPS = """
#include <cuda_fp16.h>
extern "C" __global__ void shuffles(const int *in, int *out, int argument, int width) {
  const int i = threadIdx.x, v = in[i], all = 0xffffffff;
  out[4 * i] = __shfl_sync(all, v, argument, width);
  out[4 * i + 1] = __shfl_up_sync(all, v, argument, width);
  out[4 * i + 2] = __shfl_down_sync(all, v, argument, width);
  out[4 * i + 3] = __shfl_xor_sync(all, v, argument, width);
}
extern "C" __global__ void types(double *out) {
  const unsigned all = 0xffffffffu;
  const int i = threadIdx.x;
  double sum = __shfl_sync(all, i * 0.5, 3);
  sum += __shfl_sync(all, (long long)i << 40, 3);
  sum += __shfl_sync(all, (unsigned char)i, 3);
  sum += __shfl_sync(all, i * 0.25f, 3);
  sum += (float)__shfl_sync(all, __float2half(i), 3);
  half2 pair = __shfl_sync(all, __floats2half2_rn(i, 2 * i), 3);
  out[i] = sum + __high2float(pair);
}
extern "C" __global__ void ballots(unsigned *out) {
  const int i = threadIdx.x, lane = i % 32;
  unsigned *o = out + 10 * i;
  o[0] = __ballot_sync(0xffffffff, i % 3 == 0);
  o[1] = __any_sync(0xffffffff, lane == 9);
  o[2] = __all_sync(0xffffffff, lane < 31) + 2 * __all_sync(0xffffffff, lane < 32);
  o[3] = __match_any_sync(0xffffffff, lane / 5);
  int same;
  o[4] = __match_all_sync(0xffffffff, i / 32, &same) + same;
  o[5] = __match_all_sync(0xffffffff, lane, &same) + same;
  o[6] = __reduce_add_sync(0xffffffff, lane) + __reduce_max_sync(0xffffffffu, lane);
  o[7] = __reduce_xor_sync(0xffffffff, 1u << lane) + __reduce_or_sync(0xffffffff, 0u) +
         __reduce_and_sync(0xffffffff, ~0u);
  o[8] = __reduce_min_sync(0xffffffff, lane - 7);
  o[9] = __activemask();
}
extern "C" __global__ void apart(int *out) {
  const int lane = threadIdx.x % 32;
  int v = threadIdx.x;
  if (lane < 8) {
    for (int k = 4; k > 0; k /= 2) v += __shfl_down_sync(0xff, v, k);
    v = __shfl_sync(0xff, v, 0);
  } else if (lane % 2) {
    v = __ballot_sync(0xaaaaaa00, lane > 20);
  } else {
    __syncwarp(0x55555500);
    v = __shfl_xor_sync(0x55555500, v, 2);
  }
  __syncwarp();
  out[threadIdx.x] = v;
}
extern "C" __global__ void order(int *out) {
  // lanes 0 to 15 go on to their next shuffle while the others have not looked at the first one yet
  int v = threadIdx.x;
  v = __shfl_xor_sync(0xffffffff, v, 16);
  if (threadIdx.x < 16)
    for (int i = 0; i < 5; ++i) v = __shfl_xor_sync(0xffff, v, 1) + 100;
  out[threadIdx.x] = v;
}
extern "C" __global__ void block_sum(const float *in, float *out) {
  __shared__ float parts[32];
  float v = in[threadIdx.x];
  for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(0xffffffff, v, k);
  if (threadIdx.x % warpSize == 0) parts[threadIdx.x / warpSize] = v;
  __syncthreads();
  if (threadIdx.x < warpSize) {
    v = threadIdx.x < blockDim.x / warpSize ? parts[threadIdx.x] : 0;
    for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(0xffffffff, v, k);
    if (threadIdx.x == 0) *out = v;
  }
}
extern "C" __global__ void partial_warp(int *out) {
  if (threadIdx.x % 32 == 5) return;
  int v = __ballot_sync(0xffffffff, 1);
  out[threadIdx.x] = v;
}
extern "C" __global__ void exits_later(int *out) {
  // lanes wait for lane 31, which returns without ever taking part
  if (threadIdx.x == 31) return;
  out[threadIdx.x] = __popc(__ballot_sync(0xffffffff, 1));
}
extern "C" __global__ void without_itself(int *out) { *out = __shfl_sync(0xfffffffe, 1, 0); }
extern "C" __global__ void other_masks(int *out) {
  *out = threadIdx.x % 2 ? __ballot_sync(0xffffffff, 1) : __ballot_sync(0x55555555 | 2, 1);
}
extern "C" __global__ void aggregated(int *counter, int *slots, int n) {
  const int i = threadIdx.x;
  if (i % 3 != 0) {
    const unsigned active = __activemask();
    const int leader = __ffs(active) - 1, lane = i % 32;
    int base = 0;
    if (lane == leader) base = atomicAdd(counter, __popc(active));
    base = __shfl_sync(active, base, leader);
    slots[base + __popc(active & ((1u << lane) - 1))] = i;
  }
  if (i >= n) return;
  __syncthreads();
}
extern "C" __global__ void two_places(unsigned *out) {
  const int lane = threadIdx.x % 32;
  unsigned first = 0;
  if (lane < 10) first = __activemask();
  const unsigned second = __activemask();
  out[2 * threadIdx.x] = first, out[2 * threadIdx.x + 1] = second;
}
"""


@pytest.fixture(scope="module")
def warps() -> Kernels:
    return Kernels(
        WARPS,
        {
            "shuffles": "in: *ki32, out: *i32, argument: i32, width: i32",
            "types": "out: *fp64",
            "ballots": "out: *u32",
            "apart": "out: *i32",
            "order": "out: *i32",
            "block_sum": "in: *kfp32, out: *fp32",
            "partial_warp": "out: *i32",
            "exits_later": "out: *i32",
            "without_itself": "out: *i32",
            "other_masks": "out: *i32",
            "aggregated": "counter: *i32, slots: *i32, n: i32",
            "two_places": "out: *u32",
        },
    )


@pytest.mark.parametrize("width", [1, 2, 8, 32])
@pytest.mark.parametrize("argument", [0, 1, 5, 16, 31])
def test_shuffles(warps: Kernels, argument: int, width: int) -> None:
    """The four shuffles move values within segments, and lanes that would look beyond one keep their own."""
    values = [random.Random(3).randrange(1 << 30) for _ in range(64)]
    out = ints([0] * 256)
    assert warps("shuffles", 1, 64, ints(values), out, argument, width) == SUCCESS
    for i in range(64):
        lane, warp = i % 32, values[i // 32 * 32 :]
        begin = lane - lane % width
        expected = [
            warp[begin + argument % width],
            warp[lane - argument if lane - argument >= begin else lane],
            warp[lane + argument if lane + argument < begin + width else lane],
            warp[lane ^ argument if lane ^ argument < begin + width else lane],
        ]
        assert out[4 * i : 4 * i + 4].tolist() == expected, f"lane {lane}"


def test_shuffles_of_other_types(warps: Kernels) -> None:
    """A shuffle moves any value of up to eight bytes."""
    out = zeros("d", 32)
    assert warps("types", 1, 32, out) == SUCCESS
    assert out.tolist() == [1.5 + (3 << 40) + 3 + 0.75 + 3 + 6] * 32


def test_votes_and_reductions(warps: Kernels) -> None:
    """Ballots, matches and reductions give each lane what all lanes have brought."""
    out = zeros("I", 640)
    assert warps("ballots", 1, 64, out) == SUCCESS
    for i in range(64):
        first, lane = i // 32 * 32, i % 32
        expected = [
            sum(1 << k for k in range(32) if (first + k) % 3 == 0),
            1,
            2,
            sum(1 << k for k in range(32) if k // 5 == lane // 5),
            0,  # all bits, plus one
            0,
            sum(range(32)) + 31,
            (0xFFFFFFFF + 0 + 0xFFFFFFFF) & 0xFFFFFFFF,
            -7 & 0xFFFFFFFF,
            0xFFFFFFFF,
        ]
        assert out[10 * i : 10 * i + 10].tolist() == expected


def test_parts_of_a_warp_go_their_own_ways(warps: Kernels) -> None:
    """Groups of lanes with masks of their own do not disturb each other, and meet again."""
    out = ints([0] * 64)
    assert warps("apart", 1, 64, out) == SUCCESS
    for i in range(64):
        lane, first = i % 32, i // 32 * 32
        if lane < 8:
            expected = sum(range(first, first + 8))
        elif lane % 2:
            expected = sum(1 << k for k in range(21, 32, 2)) - (1 << 32)
        else:
            expected = i ^ 2
        assert out[i] == expected


def test_results_are_kept_until_they_are_read(warps: Kernels) -> None:
    """Lanes that hurry ahead to another shuffle do not overwrite what slower lanes still have to read."""
    out = ints([0] * 32)
    assert warps("order", 1, 32, out) == SUCCESS
    assert out.tolist() == [((i ^ 16) ^ 1) + 500 for i in range(16)] + [i ^ 16 for i in range(16, 32)]


def test_sum_of_a_block_by_shuffles(warps: Kernels) -> None:
    """The usual reduction in two steps: within warps, and then in the first warp while the others have left."""
    for threads in (32, 96, 1024):
        out = zeros("f", 1)
        assert warps("block_sum", 1, threads, array.array("f", range(threads)), out) == SUCCESS
        assert out[0] == sum(range(threads))


def test_lanes_that_are_not_there(warps: Kernels) -> None:
    """Lanes that have returned, and those beyond the end of the block, are not waited for."""
    out = ints([0] * 40)
    assert warps("partial_warp", 1, 40, out) == SUCCESS
    whole = ((1 << 32) - 1 - (1 << 5)) - (1 << 32)
    assert out.tolist() == [0 if i % 32 == 5 else whole if i < 32 else 0xFF - (1 << 5) for i in range(40)]
    assert warps("exits_later", 1, 32, out) == SUCCESS
    assert out.tolist()[:31] == [31] * 31


def test_wrong_masks_are_errors(warps: Kernels) -> None:
    """A mask without the caller, and lanes that wait with different masks, are errors instead of a hang."""
    assert warps("without_itself", 1, 32, ints([0])) == MASK
    assert warps("other_masks", 1, 32, ints([0])) == BARRIER


def test_active_mask_in_divergent_code(warps: Kernels) -> None:
    """Lanes that ask for the active mask in a branch are told of each other, and not of those elsewhere."""
    counter, slots = ints([0]), ints([-1] * 128)
    assert warps("aggregated", 1, 128, counter, slots, 1000) == SUCCESS
    wanted = [i for i in range(128) if i % 3]
    assert counter[0] == len(wanted)
    assert sorted(slots.tolist()[: len(wanted)]) == wanted
    out = zeros("I", 128)
    assert warps("two_places", 1, 64, out) == SUCCESS
    for first in range(0, 64, 32):
        assert out.tolist()[2 * first : 2 * first + 64 : 2] == [0x3FF] * 10 + [0] * 22
        # Which lanes meet at the second place is open; those that do agree on it.
        masks = out.tolist()[2 * first + 1 : 2 * first + 64 : 2]
        for lane, mask in enumerate(masks):
            assert mask >> lane & 1
            assert {masks[other] for other in range(32) if mask >> other & 1} == {mask}


# ---- atomics ----

ATOMICS = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <class T> __global__ void integers(T *o) {
  const int i = threadIdx.x;
  atomicAdd(o, 2);
  atomicSub(o + 1, (T)1);
  atomicMin(o + 2, (T)i);
  atomicMax(o + 3, (T)i);
  atomicAnd(o + 4, (T)~(T(1) << i % 8));
  atomicOr(o + 5, T(1) << i % 8);
  atomicXor(o + 6, (T)i);
  if (i == 5) o[8] = atomicExch(o + 7, (T)77);
  if (i == 6) o[10] = atomicCAS(o + 9, 3, 4) + atomicCAS(o + 9, 3, 5);
  atomicAdd_block(o + 11, (T)1);
  atomicAdd_system(o + 11, (T)1);
}
extern "C" __global__ void wrapping(unsigned *o) {
  atomicInc(o, 9u);
  atomicDec(o + 1, 9u);
}
template <class T> __global__ void floats(T *o) {
  atomicAdd(o, T(0.5f));
  if (threadIdx.x == 3) o[1] = atomicExch(o + 2, T(8.0f));
}
extern "C" __global__ void minima(float *o, double *d) {
  atomicMax(o, (float)threadIdx.x);
  atomicMin(d, -1.0 * threadIdx.x);
}
__global__ void histogram(const unsigned char *in, unsigned *bins, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(bins + i, local[i]);
}
__device__ int lock_word = 0;
extern "C" __global__ void locked(volatile int *sum) {
  while (atomicCAS(&lock_word, 0, 1) != 0) {}
  __threadfence();
  *sum = *sum + 1;
  __threadfence();
  atomicExch(&lock_word, 0);
}
"""

INTEGER_TYPES = {"int": "i32", "unsigned int": "u32", "unsigned long long": "u64", "long long": "i64"}


@pytest.fixture(scope="module")
def atomics() -> Kernels:
    entries = {f"integers<{name}>": f"*{spelling}" for name, spelling in INTEGER_TYPES.items()}
    entries |= {"floats<float>": "*fp32", "floats<double>": "*fp64", "floats<__half>": "*fp16"}
    entries |= {"floats<__nv_bfloat16>": "*bf16", "wrapping": "*u32", "minima": "*fp32, *fp64"}
    entries |= {"histogram": "*ku8, *u32, i32", "locked": "*i32"}
    return Kernels(ATOMICS, entries)


@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_integer_atomics(atomics: Kernels, name: str) -> None:
    """Every atomic of the integers does what its name says, and returns what was there."""
    code = {"i32": "i", "u32": "I", "u64": "Q", "i64": "q"}[INTEGER_TYPES[name]]
    out = array.array(code, [10, 1000, 50, 50, 255, 0, 0, 5, 0, 3, 0, 0])
    assert atomics(f"integers<{name}>", 1, 100, out) == SUCCESS
    xor = 0
    for i in range(100):
        xor ^= i
    assert out.tolist() == [210, 900, 0, 99, 0, 255, xor, 77, 5, 4, 7, 200]


def test_atomics_that_wrap(atomics: Kernels) -> None:
    """atomicInc and atomicDec wrap at their bound."""
    out = array.array("I", [0, 0])
    assert atomics("wrapping", 1, 25, out) == SUCCESS
    assert out.tolist() == [5, 5]


def test_float_atomics(atomics: Kernels) -> None:
    """Floats of every width can be added and exchanged; minima and maxima of floats work too."""
    for name, code in (("float", "f"), ("double", "d")):
        out = array.array(code, [1.0, 0.0, 4.0])
        assert atomics(f"floats<{name}>", 1, 64, out) == SUCCESS
        assert out.tolist() == [33.0, 4.0, 8.0]
    half = array.array("H", struct.unpack("=3H", struct.pack("=3e", 1, 0, 4)))
    assert atomics("floats<__half>", 1, 64, half) == SUCCESS
    assert struct.unpack("=3e", half.tobytes()) == (33.0, 4.0, 8.0)
    short = array.array("H", [0x3F80, 0, 0x4080])
    assert atomics("floats<__nv_bfloat16>", 1, 64, short) == SUCCESS
    assert short.tolist() == [0x4204, 0x4080, 0x4100]
    most, least = array.array("f", [-5.0]), array.array("d", [5.0])
    assert atomics("minima", 1, 40, most, least) == SUCCESS
    assert (most[0], least[0]) == (39.0, -39.0)


def test_histogram(atomics: Kernels) -> None:
    """Atomics on shared and on global memory count every byte once."""
    data = random.Random(4).randbytes(5000)
    bins = zeros("I", 256)
    assert atomics("histogram", 4, 64, array.array("B", data), bins, len(data)) == SUCCESS
    assert bins.tolist() == [data.count(value) for value in range(256)]


def test_atomics_across_launches(atomics: Kernels) -> None:
    """Atomics and fences hold between launches from several threads: a lock made of them keeps a sum right."""
    total = ints([0])
    threads = [threading.Thread(target=atomics, args=("locked", 50, 32, total)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total[0] == 4 * 50 * 32


# ---- numbers ----

MATH: dict[str, Callable[[float], float]] = {
    "rsqrtf(x)": lambda x: x**-0.5,
    "rsqrt((double)x)": lambda x: x**-0.5,
    "rcbrtf(x)": lambda x: x ** (-1 / 3),
    "sinpif(x)": lambda x: math.sin(math.pi * x),
    "cospif(x)": lambda x: math.cos(math.pi * x),
    "exp10f(x)": lambda x: 10**x,
    "normcdff(x)": lambda x: 0.5 * math.erfc(-x / math.sqrt(2)),
    "erff(erfinvf(x / 4))": lambda x: x / 4,
    "erfcf(erfcinvf(x / 2))": lambda x: x / 2,
    "normcdf(normcdfinv(x / 4))": lambda x: x / 4,
    "rhypotf(x, 2.0f)": lambda x: 1 / math.hypot(x, 2),
    "norm3df(x, 2.0f, 3.0f)": lambda x: math.hypot(x, 2, 3),
    "__expf(x)": math.exp,
    "__logf(x)": math.log,
    "__log2f(x) + __log10f(x)": lambda x: math.log2(x) + math.log10(x),
    "__sinf(x) + __cosf(x) + __tanf(x)": lambda x: math.sin(x) + math.cos(x) + math.tan(x),
    "__powf(x, 2.5f)": lambda x: x**2.5,
    "__fdividef(x, 3.0f)": lambda x: x / 3,
    "__saturatef(x)": lambda x: min(max(x, 0.0), 1.0),
    "__frcp_rn(x) + __fsqrt_rn(x)": lambda x: 1 / x + math.sqrt(x),
    "__fmaf_rn(x, x, -1.0f) + __fadd_rn(x, 1.0f)": lambda x: x * x + x,
    "fabs(x) + abs(-x) + fabsf(-x)": lambda x: 3 * x,
    "pow(x, 3) + powf(x, 2.0f)": lambda x: x**3 + x**2,
    "min(x, 1.0f) + max(x, 1.0) + fminf(x, 2.0f)": lambda x: min(x, 1) + max(x, 1) + min(x, 2),
    "sin(x) + exp(x) + tanh(x) + floor(x) + fmod(x, 1.0f)": lambda x: (
        math.sin(x) + math.exp(x) + math.tanh(x) + math.floor(x) + math.fmod(x, 1)
    ),
    "isnan(x) + isinf(x) + isfinite(x)": lambda x: 1.0,
}


def test_mathematical_functions() -> None:
    """Functions that the C library has not, the fast ones, and the overloads for floats agree with Python's."""
    lines = "\n".join(f"  o[{i}] = {expression};" for i, expression in enumerate(MATH))
    source = 'extern "C" __global__ void k(const float *in, double *out) {\n  float x = in[threadIdx.x];\n'
    source += f"  double *o = out + {len(MATH)} * threadIdx.x;\n{lines}\n}}\n"
    values = [0.1, 0.25, 0.5, 1.0, 1.4, 1.75]
    out = zeros("d", len(MATH) * len(values))
    assert Kernels(source, {"k": "*kfp32, *fp64"})("k", 1, len(values), array.array("f", values), out) == SUCCESS
    for number, value in enumerate(array.array("f", values)):
        for i, (expression, reference) in enumerate(MATH.items()):
            found = out[len(MATH) * number + i]
            assert found == pytest.approx(reference(value), rel=1e-5, abs=1e-6), f"{expression} at {value}"


def signed(x: int, bits: int = 32) -> int:
    return (x + (1 << (bits - 1)) & (1 << bits) - 1) - (1 << (bits - 1))


X, Y = 0x80F01234, 0x0BADF00D

INTEGERS: dict[str, int] = {
    "__popc(x)": X.bit_count() if hasattr(int, "bit_count") else bin(X).count("1"),
    "__popcll((unsigned long long)x << 8)": bin(X).count("1"),
    "__clz(y) + 100 * __clz(0) + 10000 * __clz(x)": 4 + 3200,
    "__clzll(y) + 100 * __clzll(0)": 36 + 6400,
    "__ffs(x) + 100 * __ffs(0) + 1000 * __ffsll((long long)y << 33)": 3 + 34000,
    "__brev(x)": int(f"{X:032b}"[::-1], 2),
    "__brevll(y)": int(f"{Y:064b}"[::-1], 2),
    "__byte_perm(x, y, 0x7410)": 0x0B0D1234,
    "__byte_perm(x, y, 0x80fb)": 0x003400FF,
    "(unsigned)__mulhi((int)x, (int)y)": signed(X) * Y >> 32 & 0xFFFFFFFF,
    "__umulhi(x, y)": X * Y >> 32,
    "__umul64hi((unsigned long long)x << 30, (unsigned long long)y << 30)": (X << 30) * (Y << 30) >> 64,
    "(unsigned long long)__mul64hi((long long)(int)x << 30, (long long)y << 30)": (signed(X) << 30) * (Y << 30) >> 64
    & (1 << 64) - 1,
    "(unsigned)__mul24((int)x, (int)y)": signed(X & 0xFFFFFF, 24) * signed(Y & 0xFFFFFF, 24) & 0xFFFFFFFF,
    "__umul24(x, y)": (X & 0xFFFFFF) * (Y & 0xFFFFFF) & 0xFFFFFFFF,
    "__sad((int)x, (int)y, 5u)": Y - signed(X) + 5 & 0xFFFFFFFF,
    "__usad(x, y, 5u)": X - Y + 5,
    "(unsigned)__hadd((int)x, (int)y)": (signed(X) + Y >> 1) & 0xFFFFFFFF,
    "(unsigned)__rhadd((int)x, (int)y)": (signed(X) + Y + 1 >> 1) & 0xFFFFFFFF,
    "__uhadd(x, y) + __urhadd(x, y) - x": ((X + Y >> 1) + (X + Y + 1 >> 1) - X) & 0xFFFFFFFF,
    "__funnelshift_l(x, y, 37)": ((Y << 32 | X) << 5 >> 32) & 0xFFFFFFFF,
    "__funnelshift_r(x, y, 5)": (Y << 32 | X) >> 5 & 0xFFFFFFFF,
    "__funnelshift_lc(x, y, 40) ^ __funnelshift_rc(x, y, 40)": X ^ Y,
    "(unsigned)__dp4a((int)x, (int)y, 7)": sum(
        signed(X >> s & 255, 8) * signed(Y >> s & 255, 8) for s in (0, 8, 16, 24)
    )
    + 7
    & 0xFFFFFFFF,
    "__dp4a(x, y, 7u)": sum((X >> s & 255) * (Y >> s & 255) for s in (0, 8, 16, 24)) + 7,
    "__float_as_uint(1.5f) + (unsigned)__float_as_int(-0.0f)": 0x3FC00000 + 0x80000000,
    "(unsigned long long)__double_as_longlong(__hiloint2double(0x40090000, 1))": 0x4009000000000001,
    "(unsigned)__double2hiint(3.125) + __double2loint(3.125)": 0x40090000,
    "(unsigned)__float2int_rz(-2.7f) + __float2int_rn(2.5f) + __float2int_ru(2.1f) + __float2int_rd(2.9f)": 5,
    "(unsigned)__float2int_rz(1e20f) ^ (unsigned)__float2int_rn(-1e20f) ^ (unsigned)__float2int_rz(NAN)": 0xFFFFFFFF,
    "__float2uint_rn(-5.0f) + __float2uint_rz(1e20f) + __double2uint_rz(7.9)": (0xFFFFFFFF + 7) & 0xFFFFFFFF,
    "__float2ull_rz(1e30f) ^ (unsigned long long)__double2ll_rz(-1e30)": 0x7FFFFFFFFFFFFFFF,
    "__ldg(in) + __ldcs(in + 1)": X + Y & 0xFFFFFFFF,
    "(unsigned)min(-1, 1) + max(3u, 2u) + min(5ll, 4ll) + umax(1, 2) + max(-1, 0u)": (-1 + 3 + 4 + 2 + 0xFFFFFFFF)
    & (1 << 64) - 1,
    "clock64() <= clock64()": 1,
}


def test_integer_intrinsics() -> None:
    """Integer intrinsics, casts of bits, and conversions that saturate give what Python's integers give."""
    lines = "\n".join(f"  out[{i}] = {expression};" for i, expression in enumerate(INTEGERS))
    source = 'extern "C" __global__ void k(const unsigned *in, unsigned long long *out) {\n'
    source += f"  unsigned x = in[0], y = in[1];\n{lines}\n}}\n"
    out = zeros("Q", len(INTEGERS))
    assert Kernels(source, {"k": "*ku32, *u64"})("k", 1, 1, array.array("I", [X, Y]), out) == SUCCESS
    for found, (expression, expected) in zip(out, INTEGERS.items()):
        assert found == expected, f"{expression}: {found:#x}, not {expected:#x}"


SHORT_FLOATS = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <class T> __device__ unsigned short bits(T x) { return podium_cpu::bit_copy<unsigned short>(x); }
template <class T> __global__ void decode(const T *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}
template <class T> __global__ void encode(const float *in, T *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}
template <class T> __global__ void encode_double(const double *in, T *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}
template <class T, class T2> __global__ void arithmetic(T a, T b, float *out) {
  T c = a;
  c += b;
  c *= T(2);
  T2 pair(a, b);
  pair = __hfma2(pair, pair, pair) - pair;
  const float all[] = {a + b, a - b, a * b, a / b, -a, c, float(a < b), float(a >= b), float(a == a), __hadd(a, b),
                       __hfma(a, b, a), __habs(-a), __hmax(a, b), __hmin(a, b), hsqrt(b), hexp(a), float(__hisnan(a)),
                       __low2float(pair), __high2float(pair), T(7), T(7ll), T(2.5), float(int(T(3.75f))),
                       float(__hgt(a, b)), float(__hlt(a, b)), float(__hbeq2(pair, pair)), __hadd_sat(a, b), hfloor(a)};
  for (int i = 0; i < sizeof(all) / sizeof(float); ++i) out[i] = all[i];
}
"""


@pytest.fixture(scope="module", params=["host", "baseline"])
def short_floats(request: pytest.FixtureRequest) -> Kernels:
    """Once for this processor, which may convert half precision itself, and once for one that does not."""
    entries = {}
    for name, spelling in (("__half", "fp16"), ("__nv_bfloat16", "bf16")):
        entries[f"decode<{name}>"] = f"*k{spelling}, *fp32, i32"
        entries[f"encode<{name}>"] = f"*kfp32, *{spelling}, i32"
        entries[f"encode_double<{name}>"] = f"*kfp64, *{spelling}, i32"
        entries[f"arithmetic<{name}, {name}2>"] = f"{spelling}, {spelling}, *fp32"
    target = cpu_driver.CpuDriver().default_target()
    if request.param == "baseline":
        if target.arch not in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
            pytest.skip(f"{target.arch} has one level only")
        target = Target("cpu", "x86-64", 32)
    return Kernels(SHORT_FLOATS, entries, target)


def float_bits(x: float) -> int:
    return int(struct.unpack("=I", struct.pack("=f", x))[0])


def reference_half(x: float) -> int:
    try:
        return int(struct.unpack("=H", struct.pack("=e", x))[0])
    except OverflowError:
        return 0xFC00 if x < 0 else 0x7C00


def reference_bfloat16(x: float) -> int:
    bits = float_bits(x)
    if (bits & 0x7FFFFFFF) > 0x7F800000:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16) & 0xFFFF


def interesting_floats() -> list[float]:
    source = random.Random(5)
    patterns = [source.getrandbits(32) for _ in range(20000)]
    patterns += [(0x38000000 + (i << 12) + j) & 0xFFFFFFFF for i in range(0, 1 << 16, 37) for j in (0, 1, 0xFFF)]
    patterns += [0x477FEFFF, 0x477FF000, 0x477FF001, 0x33000000, 0x33000001, 0x387FFFFF, 0x7F7FFFFF, 0x7F800000]
    patterns += [pattern | 0x80000000 for pattern in patterns[-8:]] + [0, 0x80000000, 1, 0x7F7F8000, 0x7F7F7FFF]
    values: tuple[float, ...] = struct.unpack(f"={len(patterns)}f", struct.pack(f"={len(patterns)}I", *patterns))
    return [value for value in values if value == value]


def test_every_half_and_bfloat16_is_decoded(short_floats: Kernels) -> None:
    """All 65536 bit patterns of both formats become the float that they stand for."""
    patterns, out = array.array("H", range(65536)), zeros("f", 65536)
    assert short_floats("decode<__half>", 64, 1024, patterns, out, 65536) == SUCCESS
    expected = struct.unpack("=65536e", patterns.tobytes())
    assert all(a == b or (a != a and b != b) for a, b in zip(out, expected))
    assert [math.copysign(1, x) for x in (out[0], out[0x8000])] == [1, -1]
    assert short_floats("decode<__nv_bfloat16>", 64, 1024, patterns, out, 65536) == SUCCESS
    found = array.array("I", out.tobytes())
    assert all(a == i << 16 or i & 0x7FFF > 0x7F80 for i, a in enumerate(found))


def test_floats_are_rounded_to_nearest_even(short_floats: Kernels) -> None:
    """ARG-05: conversions to 16 bits round to nearest even, with subnormal numbers, infinities and not-a-numbers."""
    values = interesting_floats()
    data, out = array.array("f", values), zeros("H", len(values))
    for name, reference in (("__half", reference_half), ("__nv_bfloat16", reference_bfloat16)):
        assert short_floats(f"encode<{name}>", len(values) // 256 + 1, 256, data, out, len(values)) == SUCCESS
        wrong = [(value, hex(found)) for value, found in zip(values, out) if found != reference(value)]
        assert wrong == []
        nan = array.array("f", [math.nan])
        assert short_floats(f"encode<{name}>", 1, 1, nan, out, 1) == SUCCESS
        exponent = 0x7C00 if name == "__half" else 0x7F80
        assert out[0] & exponent == exponent and out[0] & ~exponent & 0x7FFF


def test_doubles_are_rounded_once(short_floats: Kernels) -> None:
    """A double just beside the middle of two halves is not rounded to the middle first."""
    values = [
        1 + 2**-11 + 2**-40,
        1 + 2**-11 - 2**-40,
        1 + 2**-11,
        1 + 3 * 2**-11,
        -(2**-25) - 2**-60,
        2**-25,
        1e300,
        0.0,
    ]
    out = zeros("H", 8)
    assert short_floats("encode_double<__half>", 1, 8, array.array("d", values), out, 8) == SUCCESS
    assert out.tolist() == [reference_half(value) for value in values]
    values = [1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 1 + 2**-8, 1 + 3 * 2**-8, -3.0, 1e300, 0.0, 0.5]
    assert short_floats("encode_double<__nv_bfloat16>", 1, 8, array.array("d", values), out, 8) == SUCCESS
    assert out.tolist() == [0x3F81, 0x3F80, 0x3F80, 0x3F82, 0xC040, 0x7F80, 0, 0x3F00]


@pytest.mark.parametrize("name", ["__half", "__nv_bfloat16"])
def test_arithmetic_of_sixteen_bits(short_floats: Kernels, name: str) -> None:
    """Operators and functions of both formats give exact results where the result is exact."""
    a, b, out = 0.5, 4.0, zeros("f", 28)
    encode = reference_half if name == "__half" else reference_bfloat16
    arguments = [struct.pack("=H", encode(value)) for value in (a, b)]
    assert short_floats(f"arithmetic<{name}, {name}2>", 1, 1, *arguments, out) == SUCCESS
    root = 1.6484375  # of e, rounded
    expected = [4.5, -3.5, 2.0, 0.125, -0.5, 9.0, 1, 0, 1, 4.5, 2.5, 0.5, 4.0, 0.5, 2.0, root, 0, 0.25, 16.0]
    expected += [7, 7, 2.5, 3, 0, 1, 1, 1, 0]
    found = out.tolist()
    assert found[15] == pytest.approx(root, rel=0.01)
    found[15] = root
    assert found == expected


def test_vector_types() -> None:
    """Vector types have the sizes and alignments of CUDA's, and functions that make them."""
    layouts = {
        "char": (1, [1, 2, 1, 4]), "uchar": (1, [1, 2, 1, 4]), "short": (2, [2, 4, 2, 8]), "ushort": (2, [2, 4, 2, 8]),
        "int": (4, [4, 8, 4, 16]), "uint": (4, [4, 8, 4, 16]), "float": (4, [4, 8, 4, 16]),
        "long": (8, [8, 16, 8, 16]), "longlong": (8, [8, 16, 8, 16]), "ulonglong": (8, [8, 16, 8, 16]),
        "double": (8, [8, 16, 8, 16]),
    }  # fmt: skip
    checks = []
    for name, (size, alignments) in layouts.items():
        for count, alignment in enumerate(alignments, 1):
            arguments = ", ".join("1234"[:count])
            checks.append(f'static_assert(sizeof({name}{count}) == {size * count}, "size");')
            checks.append(f'static_assert(alignof({name}{count}) == {alignment}, "alignment");')
            checks.append(f'static_assert(make_{name}{count}({arguments}).x == 1, "value");')
    source = (
        "\n".join(checks)
        + """
    struct __align__(32) Big { float4 v; };
    static_assert(alignof(Big) == 32, "alignment");
    extern "C" __global__ void k(float4 *p, float4 v, int2 w) {
      float4 u = p[threadIdx.x];
      p[threadIdx.x] = make_float4(u.x + v.x, u.y + v.y, u.z + w.x, u.w + w.y);
    }
    """
    )
    data = array.array("f", range(8))
    kernels = Kernels(source, {"k": "*{fp32,fp32,fp32,fp32}@16, {fp32,fp32,fp32,fp32}@16, {i32,i32}@8"})
    assert kernels("k", 1, 2, data, struct.pack("=4f", 10, 20, 30, 40), struct.pack("=2i", 100, 200)) == SUCCESS
    assert data.tolist() == [10, 21, 102, 203, 14, 25, 106, 207]


# ---- the rest of the language ----

LANGUAGE = """
#include <cuda_runtime.h>
#include <math_constants.h>
#include <assert.h>
#include <cassert>
#include <memory>
#include <cmath>
#include <vector>
#include <algorithm>
#include <type_traits>
__constant__ float table[4] = {1, 2, 3, 4};
__device__ int counter = 5;
__device__ __forceinline__ float square(float x) { return x * x; }
__host__ __device__ __noinline__ float twice(float x) { return 2 * x; }
struct Pair { double a; int b; };
namespace ns {
template <class T, int N> struct Op { static __device__ T apply(T x) { return x * N; } };
template <class T, template <class, int> class O, int N> struct Use {};
template <class T, int N> __global__ void scale(T *__restrict__ p, const __grid_constant__ int n) {
#pragma unroll 4
  for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = Op<T, N>::apply(p[i]);
}
}
template <class Operation> __global__ void generic(float *p) { p[0] = Operation::apply(p[0]); }
extern "C" __global__ void misc(float *out, Pair pair, bool flag, long long wide, unsigned char narrow) {
  __builtin_assume(out != nullptr);
  assert(out != nullptr && std::is_same<int, int>::value);
  out[0] = table[2] + square(3) + twice(4) + counter;
  out[1] = pair.a + pair.b + flag + wide + narrow;
  out[2] = CUDART_PI_F + std::sqrt(4.0f) + std::max(1, 2);
  out[3] = CUDART_INF_F > 1e30f;
  auto add = [=] __device__(float x) { return x + out[0]; };
  out[4] = add(1);
}
extern "C" __global__ void says(int n) { if (threadIdx.x == 1) printf("kernel says %d\\n", n); }
extern "C" __global__ void fails(int n) { __syncthreads(); assert(n < 3 && "too large"); }
extern "C" __global__ void traps(int n) { if (threadIdx.x == n) __trap(); __syncthreads(); }
"""

LANGUAGE_ENTRIES = {
    "ns::scale<float, 3>": "p: *fp32, n: i32",
    "::ns::scale<int, 1>": "p: *i32, n: i32",
    "generic<ns::Op<float, 7>>": "p: *fp32",
    "misc": "out: *fp32, pair: {fp64,i32}, flag: i1, wide: i64, narrow: u8",
    "says": "n: i32",
    "fails": "n: i32",
    "traps": "n: i32",
}


@pytest.fixture(scope="module")
def language() -> Kernels:
    return Kernels(LANGUAGE, LANGUAGE_ENTRIES)


def test_templates_by_name_expression(language: Kernels) -> None:
    """Kernels in namespaces and templates are instantiated by their name expressions."""
    data = array.array("f", [1, 2, 3])
    assert language("ns::scale<float, 3>", 1, 2, data, 3) == SUCCESS
    assert data.tolist() == [3, 6, 9]
    numbers = ints([4, 5])
    assert language("::ns::scale<int, 1>", 1, 2, numbers, 2) == SUCCESS
    assert numbers.tolist() == [4, 5]
    assert language("generic<ns::Op<float, 7>>", 1, 1, data) == SUCCESS
    assert data[0] == 21


def test_qualifiers_parameters_and_standard_headers(language: Kernels) -> None:
    """Qualifiers mean something sensible, parameters of every kind arrive, and standard headers can be included."""
    out = zeros("f", 5)
    pair = struct.pack("=di4x", 1.5, 2)
    assert language("misc", 1, 1, out, pair, True, 1 << 20, 255) == SUCCESS
    assert out.tolist()[:2] == [3 + 9 + 8 + 5, 1.5 + 2 + 1 + (1 << 20) + 255]
    assert out[2] == pytest.approx(math.pi + 2 + 2) and out[3] == 1 and out[4] == out[0] + 1


def test_printf_is_written_when_the_device_is_waited_for(language: Kernels, capfd: pytest.CaptureFixture[str]) -> None:
    """What a kernel prints is there after a synchronisation, as on a GPU."""
    assert language("says", 1, 3, 42) == SUCCESS
    assert language.driver.synchronize(0) == 0
    assert capfd.readouterr().out == "kernel says 42\n"


def test_assertions_end_the_launch(language: Kernels, capfd: pytest.CaptureFixture[str]) -> None:
    """LIF-08: a failed assertion says where it is and which thread it was; the process goes on."""
    assert language("fails", 2, 4, 2) == SUCCESS
    assert language("fails", 2, 4, 5) == ASSERT
    said = capfd.readouterr().err
    assert "<podium source>:36: fails: block: [0,0,0]" in said and "thread: [" in said and "too large" in said
    assert language("fails", 1, 4, 2) == SUCCESS
    assert language("traps", 1, 4, 2) == TRAP
    assert language("traps", 1, 4, 9) == SUCCESS


def test_assertions_can_be_switched_off() -> None:
    """NDEBUG removes assertions, with and without the header."""
    source = "__global__ void k(int n) {{ assert(n < 0); }}\n"
    for text in (source, "#include <cassert>\n" + source):
        text = text.replace("{{", "{").replace("}}", "}")
        assert Kernels(text, {"k": "i32"}, defines={"NDEBUG": None})("k", 1, 1, 5) == SUCCESS


@pytest.mark.parametrize("std", ["c++11", "c++14", "c++17", "c++20", "gnu++17"])
def test_language_standards(std: str) -> None:
    """The dialect works in every standard of C++ that kernels are written in."""
    source = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" + BARRIERS
    data = ints(range(64))
    assert Kernels(source, BARRIER_ENTRIES, std=std)("reverse", 1, 64, data) == SUCCESS
    assert data.tolist() == list(range(63, -1, -1))


def test_kernels_of_one_source_share_its_variables() -> None:
    """Kernels that were compiled together see the same __device__ variables."""
    source = "__device__ int v; __global__ void put(int n) { v = n; } __global__ void take(int *p) { *p = v; }"
    kernels = Kernels(source, {"put": "i32", "take": "*i32"})
    out = ints([0])
    assert kernels("put", 1, 1, 31) == SUCCESS
    assert kernels("take", 1, 1, out) == SUCCESS and out[0] == 31


def test_arguments_are_not_changed_by_stores() -> None:
    """Each thread gets the arguments of the launch, also if a kernel assigns to its parameters."""
    source = "__global__ void k(int *p, int n) { p[threadIdx.x] = n; n = -1; p = nullptr; __syncthreads(); }"
    out = ints([0] * 70)
    assert Kernels(source, {"k": "*i32, i32"})("k", 1, 70, out, 8) == SUCCESS
    assert out.tolist() == [8] * 70


def test_folded_parameters_are_not_in_the_binary() -> None:
    """A constexpr parameter of a signature is no parameter of the kernel."""
    kernels = Kernels("__global__ void k(int *p) { *p = N; }", {"k": "n: constexpr, p: *i32"}, defines={"N": 6})
    out = ints([0])
    data = struct.pack("=Q", out.buffer_info()[0])
    status = kernels.driver.launch(kernels.functions["k"].handle, LaunchConfig(1, 1), 0, Parameters(data, (0,)))
    assert status == SUCCESS and out[0] == 6


SANITIZED = """
#include <stdio.h>
int main() {
  static int data[3 * 257];
  int *p = data;
  void *parameters[] = {&p};
  podium_cpu_launch launch = {{3, 1, 1}, {257, 1, 1}, 0};
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 3 * 257; ++i) data[i] = i;
    if (podium_cpu::entry<decltype(&reverse), &reverse>::run(&launch, parameters)) return 2;
    for (int i = 0; i < 257; ++i) if (data[257 + i] != 257 + 256 - i) return 3;
  }
  podium_cpu_launch wrong = {{3, 1, 1}, {64, 1, 1}, 0};
  if (podium_cpu::entry<decltype(&different_barriers), &different_barriers>::run(&wrong, parameters) != 3) return 4;
  puts("right");
}
"""


@pytest.fixture
def executable(tmp_path: Path, compiler: HostCompiler) -> Callable[[str, list[str]], Path]:
    """Build a program out of kernels and a main function, as users would to debug with a sanitizer."""
    include = Path(cpu_driver.__file__).parent / "include"

    def build(source: str, flags: list[str]) -> Path:
        path = tmp_path / "program"
        every = ["-std=c++17", "-g", f"-I{include / 'dialect'}", "-include", str(include / "podium_cpu.h"), "-pthread"]
        path.write_bytes(compiler.run({"main.cpp": source}, "main.cpp", [*every, *flags]).data)
        path.chmod(0o755)
        return path

    return build


@pytest.mark.parametrize("level", ["-O1", "-O3"])
def test_sanitizers_find_nothing(executable: Callable[[str, list[str]], Path], level: str) -> None:
    """The headers are clean under the sanitizers for addresses and for undefined behaviour."""
    try:
        path = executable(BARRIERS + SANITIZED, [level, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
    except Exception as error:
        pytest.skip(f"the compiler has no sanitizers: {error}")
    ran = subprocess.run([str(path)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "right\n"), ran.stderr


def test_headers_are_free_of_warnings(executable: Callable[[str, list[str]], Path]) -> None:
    """The headers do not trip over warnings that users make errors for their own source."""
    headers = ("cuda_runtime.h", "cuda_fp16.h", "math_constants.h", "hip/hip_runtime.h", "hip/hip_bf16.h")
    source = "".join(f"#include <{name}>\n" for name in headers) + "int main() {}\n"
    executable(source, ["-Wall", "-Wextra", "-Werror"])


def test_statuses_are_those_of_the_header() -> None:
    """LIF-09: every status that compiled code returns has a name and a text, and the names are the header's."""
    text = (Path(cpu_driver.__file__).parent / "include" / "podium_cpu_launch.h").read_text()
    found = {int(number): name for name, number in re.findall(r"(PODIUM_CPU_(?:SUCCESS|ERROR_\w+)) = (\d+)", text)}
    driver = cpu_driver.CpuDriver()
    assert found == {number: driver.describe_status(number)[0] for number in range(7)}
    assert all(driver.describe_status(number)[1] for number in range(7))
    assert "999" in driver.describe_status(999)[0]


def test_ctypes_structure_matches_the_header(executable: Callable[[str, list[str]], Path]) -> None:
    """The shape that Python hands over has the layout of the C structure."""
    source = "typedef podium_cpu_launch shape;\n"
    source += 'int main() { printf("%zu %zu", sizeof(shape), offsetof(shape, shared)); }'
    ran = subprocess.run([str(executable(source, []))], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{ctypes.sizeof(cpu_driver._Launch)} {cpu_driver._Launch.shared.offset}"
