"""Kernels without barriers on the CPU backend: loops over the threads of a block, which the compiler makes vectors of."""

from __future__ import annotations

import array

import pytest
from cpu_kernels import SUCCESS, Kernels, host_compiler, zeros

from podium.backend import HostCompiler

from podium_cpu.call_tree import has_large_call_tree
from podium_cpu.waiting import may_wait


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    return host_compiler()


PLAIN = """
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
__device__ float polynomial(float x) { return ((x * 0.5f + 0.25f) * x + 2.0f) * x; }
template <class T> __global__ void with_return(const T *x, T *y, size_t n) {
  const size_t i = threadIdx.x + (size_t)blockDim.x * blockIdx.x;
  if (i >= n) return;
  y[i] = polynomial(x[i]);
}
extern "C" __global__ void last_block(unsigned *out) {
  if (blockIdx.x == gridDim.x - 1) out[threadIdx.x] = blockIdx.x * blockDim.x + threadIdx.x;
}
"""

ENTRIES = {
    "saxpy": "a: fp32, x: *kfp32, y: *fp32, n: i32",
    "with_return<float>": "x: *kfp32, y: *fp32, n: u64",
    "last_block": "out: *u32",
}


@pytest.fixture(scope="module")
def plain(compiler: HostCompiler) -> Kernels:
    report = "-Rpass=loop-vectorize" if "clang" in compiler.version else "-fopt-info-vec-optimized"
    return Kernels(PLAIN, ENTRIES, flags=[report])


def test_threads_become_vectors(plain: Kernels) -> None:
    """A loop over the threads of a block is vectorised, without restrict and with a guard, a return or a call."""
    if not plain.code.target.arch.startswith("x86-64-v4"):
        pytest.skip("the processor has no masked stores of every width, and compilers decide case by case")
    assert plain.code.log.count("vectorized loop") + plain.code.log.count("loop vectorized") >= 2


def test_vectors_give_what_threads_give(plain: Kernels) -> None:
    """Guards hold at sizes that are no multiple of anything, and nothing beyond them is touched."""
    for n, block in ((1000, 256), (37, 32), (1, 1024), (999, 7)):
        x, y = array.array("f", range(n)), array.array("f", [1.0] * (n + 8))
        assert plain("saxpy", -(-n // block), block, 2.0, x, y, n) == SUCCESS
        assert y.tolist() == [2.0 * i + 1 for i in range(n)] + [1.0] * 8
        z = array.array("f", [-1.0] * (n + 8))
        assert plain("with_return<float>", -(-n // block), block, x, z, n) == SUCCESS
        assert z.tolist()[n:] == [-1.0] * 8
        assert z.tolist()[:8] == [((i * 0.5 + 0.25) * i + 2.0) * i for i in range(min(n, 8))] + [-1.0] * (8 - n)


def test_blocks_of_great_index(plain: Kernels) -> None:
    """Blocks beyond those that the vectors are made for run as well: the millionth and later ones."""
    for blocks in ((1 << 20) - 1, (1 << 20), (1 << 20) + 1, (1 << 21) + 5):
        out = zeros("I", 3)
        assert plain("last_block", blocks, 3, out) == SUCCESS
        assert out.tolist() == [3 * (blocks - 1) + i for i in range(3)]


BESIDE = """
#define BLOCK 64
namespace tools {
struct Sum {
  __device__ float all(float x) { return x + __shfl_xor_sync(0xffffffffu, x, 1); }  // "}" {
};
__device__ float step(float x) { const char *text = "{"; __syncthreads(); return x; }
__device__ float indirect(float x);
}
template <int N> __global__ void __launch_bounds__(BLOCK) waits(float *x) { x[threadIdx.x] = tools::indirect(x[0]); }
__device__ float tools::indirect(float x) { return step(x); }
__global__ void uses_a_method(float *x) { *x = tools::Sum().all(*x); }
extern "C" __global__ void plain(float *x) { x[threadIdx.x] += 1.0f; }
__global__ void nothing_of_it(float *x) { /* __syncthreads() */ plain(x); }
"""


def test_what_waits_is_told_kernel_by_kernel() -> None:
    """A kernel becomes loops although others of its source have barriers, unless a function that it calls has one."""
    asked = ["waits<2>", "uses_a_method", "plain", "::plain", "nowhere"]
    assert [may_wait(BESIDE, [name]) for name in asked] == [True, True, False, False, False]
    assert may_wait(BESIDE, ["plain", "waits<2>"])
    assert not may_wait("__global__ void k() {}", ["k"])
    groups = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
    assert not may_wait(groups + "__global__ void k(int *p) { *p = 1; }", ["k"])
    assert may_wait(groups + "__global__ void k(int *p) { cg::this_grid().sync(); }", ["k"])
    assert may_wait("#define WAIT __syncthreads()\n__global__ void k() { WAIT; }", ["k"])


def test_a_kernel_that_waits_unnoticed_runs_right(compiler: HostCompiler) -> None:
    """Where the text does not show that threads wait, they wait all the same, and no thread runs twice."""
    source = """
    __device__ float swap(float x) { return __shfl_xor_sync(0xffffffffu, x, 1); }
    template <class F> __device__ float call(F f, float x) { return f(x); }
    extern "C" __global__ void k(float *x) { auto f = [](float v) { return sw\\
ap(v); }; x[threadIdx.x] += call(f, x[threadIdx.x]); }
    """
    assert not may_wait(source, ["k"])
    x = array.array("f", range(64))
    assert Kernels(source, {"k": "x: *fp32"})("k", 1, 64, x) == SUCCESS
    assert x.tolist() == [i + (i ^ 1) for i in range(64)]


def tree(levels: int) -> str:
    """Write functions each of which calls the one before three times, and a kernel that calls the last."""
    text = "__device__ float f0(float x) { for (int i = 0; i < 8; ++i) x = x * x + sinf(x) / (1 + x); return x; }\n"
    for level in range(1, levels):
        calls = " + ".join(f"(x > {k}.f ? f{level - 1}(x * {k}.5f) : {k}.f)" for k in range(3))
        text += f"__device__ float f{level}(float x) {{ return {calls}; }}\n"
    return text + f'extern "C" __global__ void top(float *x) {{ x[threadIdx.x] = f{levels - 1}(x[threadIdx.x]); }}\n'


def test_what_calls_very_much_is_compiled_in_time() -> None:
    """Calls are not put into each other without end: compilers would take minutes, and all memory there is."""
    assert not has_large_call_tree(tree(3))
    assert has_large_call_tree(tree(7))
    assert has_large_call_tree("void f(); " * 30_000)
    chain = "".join(f"__device__ int f{i}(int x) {{ return f{i - 1}(x) + 1; }}\n" for i in range(1, 500))
    assert not has_large_call_tree(f"__device__ int f0(int x) {{ return f0(x) + f499(x); }}\n{chain}")
    Kernels(tree(14), {"top": "x: *fp32"})  # three to the thirteenth calls
