"""What the CPU backend cannot do is refused by name, at compile time, at its place in the user's source."""

from __future__ import annotations

from pathlib import Path

import pytest
from cpu_kernels import SUCCESS, Kernels, host_compiler, ints

from podium.backend import HostCompiler
from podium.errors import CompileError, Diagnostic


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    return host_compiler()


def refusal(source: str, **options: object) -> CompileError:
    with pytest.raises(CompileError) as caught:
        Kernels(source, {"k": "*i32"}, **options)
    assert caught.value.program == "<podium source>"
    return caught.value


def place(source: str, word: str) -> tuple[int, int]:
    """Find the line and the column of the first mark /*!*/ that stands in front of a word."""
    before = source[: source.index(f"/*!*/{word}") + len("/*!*/")]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def refused(error: CompileError) -> dict[str, Diagnostic]:
    return {each.message.partition(":")[0]: each for each in error.diagnostics if "CPU backend has no" in each.message}


MANY = """__device__ float sample(/*!*/cudaTextureObject_t t);
template <class T> __device__ T look(unsigned long long t) { return /*!*/tex2D<float>(t, 0.f, 1.f); }
__global__ void child(int *p) {}
__global__ void k(int *p) {
\t/*!*/surf2Dwrite(1, p, 0, 0);
  child/*!*/<<<1, 32>>>(p);
  child /*!*/<<< dim3(1), 32, 0 >>> (p);
  /*!*/__builtin_amdgcn_s_barrier();
  *p = /*!*/__nvvm_read_ptx_sreg_tid_x() + /*!*/__isShared(p);
  /*!*/__pipeline_commit();
  /*!*/cudaDeviceSynchronize();
}
"""

FEATURES = {
    "cudaTextureObject_t": "textures",
    "tex2D": "textures",
    "surf2Dwrite": "surfaces",
    "<<<": "dynamic parallelism",
    "__builtin_amdgcn_s_barrier": "instructions of AMD's compiler",
    "__nvvm_read_ptx_sreg_tid_x": "instructions of NVIDIA's compiler",
    "__isShared": "instructions of NVIDIA's compiler",
    "__pipeline_commit": "asynchronous copies",
    "cudaDeviceSynchronize": "CUDA or HIP runtime",
}


def test_names_are_refused_at_their_places() -> None:
    """Each use is an error with the word, the feature, the line and the column, the advice, and the line itself."""
    error = refusal(MANY)
    found = refused(error)
    for word, feature in FEATURES.items():
        diagnostic = found.pop(word)
        assert feature in diagnostic.message and "__PODIUM_CPU__" in diagnostic.message
        if word != "<<<":
            assert (diagnostic.line, diagnostic.column) == place(MANY, word), word
    assert not found
    launches = [(each.line, each.column) for each in error.diagnostics if each.message.startswith("<<<")]
    assert launches == [(6, 13), (7, 14)]
    assert "    1 | __device__ float sample(/*!*/cudaTextureObject_t t);\n      | " + " " * 29 + "^" in str(error)
    assert "has no textures and surfaces; pass a pointer" in str(error)
    # Errors that come of a refused name are not shown.
    assert "expected" not in str(error)


SCOPES = """using namespace /*!*/nvcuda;
__global__ void __launch_bounds__(32) /*!*/__cluster_dims__(2, 1, 1) k(int *p) {
  __shared__ /*!*/cuda::barrier<1> b;
}
"""


def test_scopes_and_qualifiers_are_refused() -> None:
    """Namespaces of GPU vendors are told apart by what is wanted of them; a cluster is refused where it is asked for."""
    found = refused(refusal(SCOPES))
    assert "tensor cores" in found["nvcuda"].message
    assert "barrier objects" in found["cuda"].message
    for word in ("nvcuda", "__cluster_dims__", "cuda::barrier"):
        diagnostic = next(each for each in found.values() if each.message.startswith(word + ":"))
        assert (diagnostic.line, diagnostic.column) == place(SCOPES, word)
    # The preprocessor alone runs first where shared memory is dynamic.
    (cluster,) = refused(refusal(SCOPES.replace("k(int *p) {", "k(int *p) { extern __shared__ int s[];"))).values()
    assert (cluster.line, cluster.column) == place(SCOPES, "__cluster_dims__")


@pytest.mark.parametrize(
    ("header", "feature"),
    [
        ("mma.h", "tensor cores"),
        ("cub/block/block_reduce.cuh", "device libraries"),
        ("curand_kernel.h", "device libraries"),
        ("cuda/barrier", "asynchronous copies"),
    ],
)
def test_headers_are_refused(header: str, feature: str) -> None:
    """Headers of what cannot be are refused by name, where they are included; others that are missing are as ever."""
    error = refusal(f"\n#include <{header}>\n__global__ void k(int *p) {{}}\n")
    first = error.diagnostics[0]
    assert first.line == 2 and first.message.startswith(f"<{header}>: the CPU backend has no {feature}")


def test_other_errors_are_left_alone() -> None:
    """A name that is wrong, a header that is missing and a syntax error are not taken for something refused."""
    error = refusal("__global__ void k(int *p) { int barrier = 1, texture = 2; textur = 3; *p = cluster; cuda_x = 4; }")
    assert not refused(error)
    assert not refused(refusal('#include "my_own.h"\n__global__ void k(int *p) {}'))
    assert not refused(refusal("__global__ void k(int *p) { int texture = 1 int surface = 2; }"))


ASSEMBLY = """#define LANE(x) asm("mov.u32 %0, %%laneid;" : "=r"(x))
__global__ void k(int *p) {
  // asm("mov.u32 %0, 1;")
  const char *text = "asm(\\"mov.u32\\")"; /* asm("exit;") */ (void)text;
\tunsigned x; float f;
\tasm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(x));
  *p = x; __asm__ __volatile__(
      "{ .reg .pred p;\\n\\t"
      "add.f32 %0, %0, %0; }" : "+f"(f));
    LANE(x);
#ifdef __CUDA_ARCH__
  asm("exit;");
#endif
}
"""


def test_assembly_is_refused_where_it_is_compiled() -> None:
    """Inline PTX is refused in the user's terms; in comments, strings and what is compiled out it is none."""
    error = refusal(ASSEMBLY)
    assert [(each.line, each.column) for each in error.diagnostics] == [(6, 2), (7, 11), (10, 5)]
    assert "asm: the CPU backend has no inline PTX" in str(error)
    assert '    6 | \tasm volatile("mov.u32' in str(error)


def test_assembly_in_headers_and_macros(tmp_path: Path) -> None:
    """A user's header is the user's source as well, and so are the macros of the options."""
    (tmp_path / "warp.h").write_text('\ninline void stop() { asm volatile("exit;"); }\n')
    error = refusal('#include "warp.h"\n__global__ void k(int *p) {}', include_dirs=[str(tmp_path)])
    assert (Path(error.diagnostics[0].file).name, error.diagnostics[0].line) == ("warp.h", 2)
    error = refusal("__global__ void k(int *p) {\n  STOP; }", defines={"STOP": 'asm("trap;")'})
    assert (error.diagnostics[0].line, error.diagnostics[0].column) == (2, 3)


def test_what_is_compiled_out_is_not_refused() -> None:
    """Code for GPUs only is no hindrance where the preprocessor removes it, nor is assembly that orders accesses only."""
    source = """
    #include <atomic>
    #include <cmath>
    #ifndef __PODIUM_CPU__
    #include <mma.h>
    #include <cub/cub.cuh>
    #endif
    #if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    __device__ int lane() { int x; asm("mov.u32 %0, %%laneid;" : "=r"(x)); return x; }
    __global__ void __cluster_dims__(2) clustered() { nvcuda::wmma::fragment f; }
    #else
    __device__ int lane() { return threadIdx.x & 31; }
    #endif
    #if __has_include(<cub/cub.cuh>)
    #error there is none
    #endif
    __global__ void k(int *p) {
      asm volatile("" ::: "memory");
      int tex2 = 1, cluster = 2, pipeline = 3, barrier = 4, surface = 5, texture = 6, wmma = 7; // tex2D<float>(t)
      p[threadIdx.x] = lane() + tex2 + cluster + pipeline + barrier + surface + texture + wmma;
    }
    """
    out = ints([0] * 40)
    assert Kernels(source, {"k": "*i32"})("k", 1, 40, out) == SUCCESS
    assert out.tolist() == [i % 32 + 28 for i in range(40)]


def test_missing_headers_are_named() -> None:
    """A name that a header of the dialect declares is an error that says which header that is."""
    error = refusal("""__global__ void k(int *p) {
      half h = 1.0f;
      __nv_bfloat16 b = 1.0f;
      cuFloatComplex z;
      auto g = cooperative_groups::this_thread_block();
      nowhere();
    }""")
    said = {each.line: each.message for each in error.diagnostics if each.severity == "error"}
    headers = {2: "cuda_fp16.h", 3: "cuda_bf16.h", 4: "cuComplex.h", 5: "cooperative_groups.h"}
    for line, header in headers.items():
        assert said[line].endswith(f"; #include <{header}> declares it")
    assert "#include" not in said[6]


def test_errors_in_the_headers_point_at_the_call() -> None:
    """What a header of the dialect refuses is told of the line that called it, not of the header's own."""
    source = """struct Big { int a[4]; };
template <class T> __device__ T pass(T x) {
  return __shfl_sync(~0u, x, 0);
}
__global__ void k(int *p) {
  Big big = {};
  big = pass(big);
  *p = big.a[0];
}
"""
    error = refusal(source)
    first = next(each for each in error.diagnostics if each.severity == "error")
    assert (first.file, first.line) in (("<podium source>", 3), ("<podium source>", 7))
    assert "a shuffle moves values of at most eight bytes" in first.message
    assert "include/podium_cpu" not in str(error)
