"""Kernels with barriers as loops over regions: they give what threads on stacks of their own give."""

from __future__ import annotations

import array
import random
import re

import pytest
from cpu_kernels import BARRIER, SUCCESS, Kernels, cpu_driver, host_compiler, ints
from generated_kernels import generate_kernel

import podium
from podium.backend import Entry, HostCompiler, Options, Program, Signature
from podium.errors import CompileError, LaunchError

cpu_compiler = pytest.importorskip("podium_cpu.compiler", reason="the CPU backend is not installed")
regions = pytest.importorskip("podium_cpu.regions", reason="the CPU backend is not installed")

KERNELS = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
using namespace cooperative_groups;
using cooperative_groups::this_grid;
struct Pair { int a; float b; };
typedef unsigned char byte;
__device__ int twice(int x) { return 2 * x; }
__device__ void add_to(int &x, int y) { x += y; }
__device__ int own_index(int x) { return x + threadIdx.x; }
__device__ int counter_of_blocks;
namespace space { constexpr int width = 3; int changing = 5; }

extern "C" __global__ void reverse(int *data, int n) {
  __shared__ int tile[1024];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = data[i % n];
  __syncthreads();
  data[i % n] += tile[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void tree(int *data, int n) {
  __shared__ int s[1024];
  unsigned t = threadIdx.x;
  s[t] = data[t % n];
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    __syncthreads();
    int other = t >= step ? s[t - step] : 0;
    __syncthreads();
    s[t] += other;
  }
  data[t % n] = s[t];
}
extern "C" __global__ void shadows(int *data, int n) {
  int z = n * 2;
  const int c = z + threadIdx.x;
  {
    int z = 5;
    __syncthreads();
    data[threadIdx.x % n] += c * z;
    __syncthreads();
  }
  int x = data[threadIdx.x % n], y = 1, *p = data + threadIdx.x % n, q[3] = {1, 2, 3};
  const float f = x * 0.5f;
  {
    int x = y + 7;
    __syncthreads();
    { float x = f; y += (int)x; }
    q[x % 3] += x;
    __syncthreads();
    y += x;
  }
  *p = x + y + q[0] + 10 * q[1] + 100 * q[2];
}
extern "C" __global__ void divergent_loops(int *data, int n) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  int count = 0;
  for (int i = 0; i < data[0] % 3 + 2; ++i) {
    atomicAdd(&total, i);
    __syncthreads();
    count += total;
    __syncthreads();
  }
  int k = data[1] % 4;
  do {
    __syncthreads();
    count = twice(count) + k;
  } while (--k > 0);
  data[threadIdx.x % n] = count;
}
extern "C" __global__ void early_returns(int *data, int n) {
  __shared__ int live;
  if (blockIdx.x > 0) return;
  if (threadIdx.x == 0) live = 0;
  __syncthreads();
  if (threadIdx.x % 3 == 1) return;
  atomicAdd(&live, 1);
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    if (threadIdx.x == 3u * i) { if (i) return; }
    __syncthreads();
  }
  atomicAdd(&live, 100);
  __syncthreads();
  data[threadIdx.x % n] = live;
}
extern "C" __global__ void branches(int *data, int n) {
  __shared__ int s[1024];
  int x = data[threadIdx.x % n];
  s[threadIdx.x] = x;
  bool deep = data[0] != 123456;
  if (n > 5) {
    __syncthreads();
    x += s[(threadIdx.x + 1) % blockDim.x];
  } else x = -1;
  if (deep) {
    int z = x;
    __syncthreads();
    z += s[(threadIdx.x + 2) % blockDim.x];
    __syncthreads();
    x = z;
  }
  while (x > 1000000) x /= 2;
  switch (x % 3) { case 0: x += 5; break; case 1: x -= 5; }
  __syncthreads();
  data[threadIdx.x % n] = x;
}
extern "C" __global__ void votes(int *data, int n) {
  int c = __syncthreads_count(data[threadIdx.x % n] % 2);
  int any, t = threadIdx.x;
  any = __syncthreads_or(t == 7);
  __syncthreads_and(t);
  int all;
  all = __syncthreads_and(t < 1000);
  data[t % n] += c + 1000 * any + 3000 * all;
}
extern "C" __global__ void structures(int *data, int n) {
  Pair pair = {(int)threadIdx.x, 1.5f};
  float4 v = make_float4(1, 2, 3, data[threadIdx.x % n]);
  const byte small = (byte)data[threadIdx.x % n];
  __syncthreads();
  pair.a += small;
  v.w += pair.b;
  add_to(pair.a, 3);
  __syncthreads();
  auto f = [&](int k) { return k + pair.a; };
  data[threadIdx.x % n] = f((int)(v.x + v.y + v.z + v.w));
}
template <class T, int N> __global__ void templated(T *data, int n) {
  constexpr int M = N + 1;
  using U = T;
  __shared__ U s[M][64];
  const int x = threadIdx.x % 64;
  U own[M];
  for (int i = 0; i < M; ++i) own[i] = data[(x + i) % n];
  if (threadIdx.x < 64) for (int i = 0; i < M; ++i) s[i][x] = own[i];
  __syncthreads();
  U sum = 0;
#pragma unroll
  for (int i = 0; i < M; ++i) sum += s[i][63 - x < (int)blockDim.x ? 63 - x : 0] * own[i];
  __syncthreads();
  data[x % n] = sum;
}
extern "C" __global__ void strided(int *data, int n) {
  __shared__ int largest[1024];
  int best = -1;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    if (data[i] < 0) continue;
    best = max(best, data[i]);
  }
  for (unsigned i = threadIdx.x; i < (unsigned)n; i += blockDim.x) best = max(best, own_index(i));
  largest[threadIdx.x] = best;
  __syncthreads();
  for (int j = threadIdx.x; j < 1; j += blockDim.x)
    for (unsigned k = 1; k < blockDim.x; ++k) largest[0] = max(largest[0], largest[k]);
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] += largest[0];
}
extern "C" __global__ void uniform_changes(int *data, int n) {
  extern __shared__ int dynamic[];
  int offset = 1, turns = n % 4 + 2, t = threadIdx.x;
  n = n > 2 ? n : 2;
  while (turns > 0) {
    dynamic[t] = offset * t;
    __syncthreads();
    data[t % n] += dynamic[(t + offset) % blockDim.x];
    offset *= 2, --turns;
    if (offset > 100) break;
    __syncthreads();
  }
  data[t % n] += space::width + offset;
}
extern "C" __global__ void globals_change(int *data, int n) {
  __shared__ int s;
  if (threadIdx.x == 0) { s = space::changing; counter_of_blocks = 3; }
  __syncthreads();
  int limit = counter_of_blocks;
  for (int i = 0; i < limit; ++i) { s += 0; __syncthreads(); }
  data[threadIdx.x % n] = s + limit;
}
extern "C" __global__ void parameters_change(int *data, int n, float scale) {
  data += threadIdx.x % n;
  scale *= 2;
  __syncthreads();
  n -= (int)threadIdx.x;
  __syncthreads();
  *data = (int)(n * scale);
}
extern "C" __global__ void planes(int *data, int n) {
  __shared__ int s[4][8][8];
  int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  s[z % 4][y % 8][x % 8] = x + 10 * y + 100 * z + blockIdx.x;
  __syncthreads();
  int t = x + blockDim.x * (y + blockDim.y * z);
  data[t % n] = s[z % 4][y % 8][(x + 1) % min(8, blockDim.x)];
}
template <class T> __device__ void sum_of_block(T *data, int n, T (&s)[1024]) {
  T sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += data[i];
  s[threadIdx.x] = sum;
  for (unsigned half = 512; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half && threadIdx.x + half < blockDim.x) s[threadIdx.x] += s[threadIdx.x + half];
  }
  __syncthreads();
  data[threadIdx.x % n] = s[0] + threadIdx.x;
}
extern "C" __global__ void calls_only(int *data, int n) {
  __shared__ int s[1024];
  sum_of_block<int>(data, n, s);
}
template <class T> __global__ void templated_call(T *data, int n) {
  __shared__ T s[1024];
  sum_of_block(data, n - 1, s);
}
extern "C" __global__ void halo(int *data, int n) {
  __shared__ int tile[24][40];
  const int left = blockIdx.x * 8 - 2, t = threadIdx.x;
  int sum = 0, turns = 0;
  for (int y = threadIdx.y; y < 24; y += blockDim.y)
    for (int x = t; x < 40; x += blockDim.x) {
      const int from = left + x + y * 7;
      tile[y][x] = from >= 0 && from < n ? data[from] : 1;
      ++turns;
    }
  __syncthreads();
  if (threadIdx.x % 5 == 4 && data[0] > 500) return;
  for (unsigned y = threadIdx.y; y < 12; y += blockDim.y) sum += tile[y][(t + 1) % 40] * (int)y;
  for (int y = threadIdx.y + 2 * threadIdx.z; y < 20; y += blockDim.y) { int k = y; sum += tile[k][t % 40]; }
  __syncthreads();
  data[(t + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % n] = sum + turns;
}
extern "C" __global__ void nested(int *data, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x, x = data[t % n];
  for (int i = 0; i < 2; ++i) {
    int a = x + i;
    for (int j = i; j < 3; ++j) {
      int b = a * j;
      s[t] = b;
      __syncthreads();
      b += s[(t + 1) % blockDim.x];
      if (j == 1) continue;
      __syncthreads();
      a ^= b;
    }
    __syncthreads();
    x += a;
  }
  data[t % n] = x;
}
extern "C" __global__ void groups(int *data, int n) {
  namespace g = ::cooperative_groups;
  __shared__ int s[1024];
  const auto block = g::this_thread_block();
  cg::grid_group all = this_grid();
  const auto rank = block.thread_rank(), two = 2u;
  int sum = 0;
  for (auto i = all.thread_rank(); i < n; i += all.size()) sum += data[i];
  s[rank] = sum;
  block
      .sync();
  for (int half = block.num_threads() / 2; half > 0; half /= 2) {
    if (rank < half) s[rank] += s[rank + half];
    cg::sync(block);
  }
  { thread_block inner = this_thread_block(); sync(inner); }
  data[rank % n] = s[block.size() - 1 - rank] + two * all.num_blocks() + all.block_rank() + __LINE__;
}
__device__ unsigned own_rank() { return cg::this_thread_block().thread_rank(); }
extern "C" __global__ void groups_of_three_sizes(int *data, int n) {
  cg::thread_block b = cg::this_thread_block();
  __shared__ int s[1024];
  const dim3 place = b.thread_index();
  auto block = this_grid().block_index();
  s[own_rank()] = place.x + 10 * b.thread_index().y + 100 * place.z + block.x + this_grid().group_dim().x;
  cg::sync(cg::this_thread_block());
  int t = place.x + b.group_dim().x * (threadIdx.y + b.dim_threads().y * threadIdx.z);
  if (s[0] > 99 && t % 3) return;
  this_thread_block().sync();
  data[t % n] = s[(t + b.group_index().x) % b.size()];
}
"""

ENTRIES = dict.fromkeys(
    "reverse tree shadows divergent_loops early_returns branches votes structures strided uniform_changes globals_change "
    "planes nested templated<int,3> calls_only templated_call<int> halo groups "
    "groups_of_three_sizes".split(),
    "data: *i32, n: i32",
)
ENTRIES["parameters_change"] = "data: *i32, n: i32, scale: fp32"


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    return host_compiler()


@pytest.fixture(scope="module")
def both() -> tuple[Kernels, Kernels]:
    """The same kernels as loops, and as threads."""
    builds = []
    with pytest.MonkeyPatch.context() as patch:
        build = cpu_compiler._build
        patch.setattr(cpu_compiler, "_build", lambda *arguments: builds.append(1) or build(*arguments))
        loops = Kernels(KERNELS, ENTRIES)
    assert len(builds) == 1, "the loops did not compile, and gave way to threads"
    return loops, Kernels(KERNELS, ENTRIES, defines={"PODIUM_CPU_FIBERS": ""})


@pytest.mark.parametrize("name", ENTRIES)
def test_loops_give_what_threads_give(both: tuple[Kernels, Kernels], name: str) -> None:
    """A kernel gives the same, whether its threads run as loops or on stacks, for blocks of every kind of size."""
    source = random.Random(name)
    for block in ((1, 1, 1), (7, 1, 1), (64, 1, 1), (250, 1, 1), (8, 8, 2), (1024, 1, 1)):
        size = block[0] * block[1] * block[2]
        values = [source.randrange(-99, 1000) for _ in range(max(size, 64) + 5)]
        more = (1.25,) if name == "parameters_change" else ()
        results = []
        for kernels in both:
            data = ints(values)
            n = len(values) if name != "strided" else len(values) - 3
            assert kernels(name, 1 if size > 1 else 3, block, data, n, *more, shared=4 * size) == SUCCESS
            results.append(data.tolist())
        assert results[0] == results[1], f"{name}, block {block}"


def test_generated_kernels() -> None:
    """Kernels of every shape that barriers can stand in give the same, whether as loops or as threads."""
    names = {f"kernel{seed}": "in: *ku32, out: *u32, n: i32" for seed in range(28)}
    source = "__device__ unsigned twice(unsigned x) { return 2 * x; }\n"
    source += "".join(generate_kernel(seed, name) for seed, name in enumerate(names))
    assert sum(not why for why in reasons(source).values()) > 20
    loops, threads = Kernels(source, names), Kernels(source, names, defines={"PODIUM_CPU_FIBERS": ""})
    for name in names:
        for size in (1, 5, 32, 100):
            values = array.array("I", [random.Random(f"{name} {size} {i}").randrange(100) for i in range(size + 3)])
            results = []
            for kernels in (loops, threads):
                out = array.array("I", [0] * size)
                assert kernels(name, 1, size, values, out, len(values), shared=4 * size) == SUCCESS
                results.append(out.tolist())
            assert results[0] == results[1], f"{name}, {size} threads"


def reasons(source: str) -> dict[str, str]:
    found: dict[str, str] = regions.rewrite_regions(source)[1]
    return found


def test_which_kernels_become_loops() -> None:
    """All of the kernels above do, so that the test above compares something."""
    assert {name: why for name, why in reasons(KERNELS).items() if why} == {}


def test_which_sources_are_read() -> None:
    """One with a barrier, or with a loop in strides of the grid, also where the stride has a name; others cost nothing."""
    stride = "int threads = gridDim.x * blockDim.x; for (int i = threadIdx.x; i < n; i += threads) x[i] = 0;"
    assert regions.may_have_regions(stride)
    assert regions.may_have_regions("for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = 0;")
    assert regions.may_have_regions("__syncthreads();")
    assert regions.may_have_regions("cg::this_thread_block().sync();")
    assert not regions.may_have_regions("int i = blockIdx.x * blockDim.x; for (int k = 0; k < n; k += 2) x[i] += k;")


STAY = {
    "warp functions": "int x = p[0]; __syncthreads(); p[1] = __shfl_sync(~0u, x, 0);",
    "a function that waits": "meet(p);",
    "an object that waits": "Meeting m; m.meet(); __syncthreads();",
    "a barrier in an expression": "p[0] = 1 + __syncthreads_or(p[1]);",
    "a barrier in a condition": "while (__syncthreads_or(p[0])) p[0] = 0;",
    "a barrier in a switch": "switch (n) { case 1: __syncthreads(); }",
    "a barrier in a lambda": "auto f = [&] { __syncthreads(); }; f();",
    "jumps": "if (n) goto end; __syncthreads(); end: p[0] = 1;",
    "a thread that leaves a loop": "for (int i = 0; i < n; ++i) { if (p[i]) break; __syncthreads(); }",
    "a type without a name": "auto x = p[threadIdx.x]; __syncthreads(); p[0] = x;",
    "a reference": "int &r = p[threadIdx.x]; __syncthreads(); r = 1;",
    "a pointer to a local": "int x = p[0]; int *q = &x; __syncthreads(); *q += 1;",
    "a pointer to an element": "int x[2]; x[0] = 1; int *q = x; __syncthreads(); p[0] = *q;",
    "two barriers for one": "if (p[threadIdx.x]) __syncthreads(); else __syncthreads();",
    "sleep": "__syncthreads(); while (p[0]) __nanosleep(1);",
    "assembly": '__syncthreads(); asm("");',
    "no barrier": "p[threadIdx.x] = n;",
}


def test_kernels_that_stay_threads() -> None:
    """What only threads on stacks can do, or what is not understood, is left as it is, but for marks."""
    source = "__device__ void meet(int *p) { __syncthreads(); }\nstruct Meeting { __device__ void meet() { __syncthreads(); } };\n"
    source += "".join(f"__global__ void k{i}(int *p, int n) {{ {body} }}\n" for i, body in enumerate(STAY.values()))
    found = reasons(source)
    for i, what in enumerate(STAY):
        assert found[f"k{i}"], what
    text = regions.rewrite_regions(source)[0]
    text = re.sub(r"::podium_cpu::numbered\{-?\d+\}(?:, )?| ::podium_cpu::past = \d+;", "", text)
    assert text == source


DIVERGENT = """
extern "C" __global__ void some_meet(int *p) {
  if (p[threadIdx.x])
    __syncthreads();
  p[threadIdx.x] = 7;
}
extern "C" __global__ void some_turn(int *p) {
  for (int i = 0; i < p[threadIdx.x]; ++i) __syncthreads();
}
"""


def test_a_barrier_that_not_all_reach_is_an_error() -> None:
    """Threads that come to a barrier on ways of their own must all come, unless they have returned."""
    kernels = Kernels(DIVERGENT, {"some_meet": "p: *i32", "some_turn": "p: *i32"})
    assert reasons(DIVERGENT) == {"some_meet": "", "some_turn": ""}
    assert kernels("some_meet", 1, 64, ints([1] * 64)) == SUCCESS
    assert kernels("some_meet", 1, 64, ints([0] * 64)) == SUCCESS
    assert kernels("some_meet", 1, 64, ints([1] * 63 + [0])) == BARRIER
    assert kernels("some_turn", 1, 64, ints([3] * 64)) == SUCCESS
    assert kernels("some_turn", 1, 64, ints([3] * 63 + [2])) == BARRIER


def test_errors_are_in_the_users_lines() -> None:
    """A mistake in a kernel with barriers is reported as it is in any other: line, column and text."""
    source = "__global__ void k(int *p) {\n  int x = 1;\n  __syncthreads();\n\n  p[0] = y + x;\n  __syncthreads();\n}\n"
    driver = cpu_driver.CpuDriver()
    with pytest.raises(CompileError) as caught:
        driver.compile(
            Program(source, "cuda", (Entry("k", Signature.parse("p: *i32")),), Options()), driver.default_target()
        )
    first = next(each for each in caught.value.diagnostics if each.severity == "error")
    assert (first.line, first.column) == (5, 10)


def test_lines_stay_the_users_lines() -> None:
    """Assertions and __LINE__ inside of a region name the line in the user's source."""
    source = (
        'extern "C" __global__ void k(int *p) {\n  __shared__ int s[32]; s[threadIdx.x] = 1; __syncthreads();\n'
        "  for (int i = 0; i < 2; ++i) {\n    __syncthreads();\n    p[threadIdx.x] = __LINE__;\n  }\n}\n"
    )
    kernels = Kernels(source, {"k": "p: *i32"})
    out = ints([0] * 32)
    assert kernels("k", 1, 32, out) == SUCCESS
    assert set(out) == {5}


def test_floats_in_tiles() -> None:
    """A tiled matrix product in regions, at a size where rows are no multiple of a vector."""
    source = """
template <int TILE> __global__ void matmul(const float *a, const float *b, float *c, int n) {
  __shared__ float p[TILE][TILE], q[TILE][TILE + 1];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
  float s = 0;
  for (int t = 0; t < n; t += TILE) {
    p[y][x] = row < n && t + x < n ? a[row * n + t + x] : 0.0f;
    q[y][x] = column < n && t + y < n ? b[(t + y) * n + column] : 0.0f;
    __syncthreads();
    for (int k = 0; k < TILE; ++k) s += p[y][k] * q[k][x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = s;
}
"""
    kernels = Kernels(source, {"matmul<16>": "a: *kfp32, b: *kfp32, c: *fp32, n: i32"})
    n = 37
    a, b = (array.array("f", [(i * step) % 7 - 3 for i in range(n * n)]) for step in (5, 3))
    c = array.array("f", [0] * n * n)
    assert kernels("matmul<16>", (3, 3), (16, 16), a, b, c, n) == SUCCESS
    expected = [sum(a[i * n + k] * b[k * n + j] for k in range(n)) for i in range(n) for j in range(n)]
    assert c.tolist() == expected


def test_a_wait_that_nobody_saw_is_an_error() -> None:
    """A thread that waits in a kernel that runs a whole block in one call is told of, since no other could come."""
    source = """
    __global__ void unseen(int *p) {
      podium_regions::whole_block = true;  // as the first line of a kernel that was rewritten
      __syncthreads();
      p[0] = 1;
    }"""
    kernel = podium.kernel(source, defines={"PODIUM_CPU_FIBERS": ""})
    with podium.use("cpu"), pytest.raises(LaunchError, match="PODIUM_CPU_FIBERS") as caught:
        kernel[1, 4](podium.asarray([0]))
    assert caught.value.status_name == "PODIUM_CPU_ERROR_BARRIER"
