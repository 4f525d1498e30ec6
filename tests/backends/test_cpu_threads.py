"""Threads, blocks, barriers and shared memory on the CPU backend."""

from __future__ import annotations

import array
import gc
import os
import random
import threading
from pathlib import Path

import pytest
from cpu_kernels import (
    BARRIER,
    BARRIER_ENTRIES,
    BARRIERS,
    INVALID_VALUE,
    SUCCESS,
    Kernels,
    cpu_driver,
    host_compiler,
    ints,
    zeros,
)

from podium.backend import Entry, HostCompiler, Program, Signature


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    return host_compiler()


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
    source = random.Random(1)
    values = [source.randrange(1000) for _ in range(256 * 5)]
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
    from podium_cpu import runtime

    before = len(runtime.runtimes())
    for number in range(3):
        driver = cpu_driver.CpuDriver()
        text = f"__global__ void k(int *p) {{ *p = {number}; __syncthreads(); }}"
        program = Program(text, "cuda", (Entry("k", Signature.parse("*i32")),))
        driver.load(driver.compile(program, driver.default_target()), "k", 0)
    assert len(runtime.runtimes()) == before >= 1


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
