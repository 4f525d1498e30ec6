"""The headers that kernels may include, from the wheels of the toolkit alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from nvidia_compile import compiled, refused

from podium_nvidia.toolchain import INCLUDE
from podium_nvidia.toolkit import find_library, include_folders

KERNEL = "__global__ void k(float *x) {{ {} }}\n"

# A header, and a statement that needs it.
LIGHT = {
    "cuda_fp16.h": "__half2 h = __floats2half2_rn(x[0], x[1]); x[2] = __low2float(__hfma2(h, h, h));",
    "cuda_bf16.h": "__nv_bfloat16 b = __float2bfloat16(x[0]); x[1] = b * b;",
    "cuda_fp8.h": "x[0] = float(__nv_fp8_e4m3(x[1]));",
    "cuda_runtime.h": "x[0] = float(cudaSuccess);",
    "math_constants.h": "x[0] = CUDART_INF_F;",
    "cuComplex.h": "x[0] = cuCabsf(make_cuFloatComplex(x[1], x[2]));",
    "cuda_pipeline.h": "__shared__ float s[4]; __pipeline_memcpy_async(s, x, 16); __pipeline_commit();",
    "cmath": "x[0] = std::sqrt(x[1]) + std::abs(x[2]) + std::fma(x[0], x[1], x[2]) + INFINITY + M_PI;",
    "math.h": "x[0] = sqrt(x[1]) + (isnan(x[2]) ? NAN : HUGE_VALF);",
    "cstdint": "x[0] = float(std::uint32_t(1) + INT32_MAX);",
    "stdint.h": "x[0] = uint8_t(300) + (uintptr_t(x) & 1);",
    "cstddef": "x[0] = std::size_t(3) + offsetof(float3, y);",
    "climits": "x[0] = INT_MAX;",
    "cfloat": "x[0] = FLT_MAX + float(DBL_EPSILON);",
    "cassert": "assert(x[0] > 0);",
    "cstdio": 'std::printf("%f", x[0]); printf("%f", x[1]);',
    "cstring": "std::memcpy(x, x + 1, 4); memset(x, 0, 4);",
    "cstdlib": "x[0] = std::abs(-3);",
    "new": "new (x) float(1);",
    "limits": "x[0] = std::numeric_limits<float>::max();",
    "initializer_list": "for (int each : {1, 2, 3}) x[each] = 0;",
    "hip/hip_runtime.h": "x[hipThreadIdx_x] = __shfl_down(x[0], 1) + __ballot(1) + __any(1);",
    "hip/hip_fp16.h": "x[0] = __half2float(__half(x[1]));",
    "hip/hip_bf16.h": "__hip_bfloat16 b = x[0]; x[1] = b;",
}
HEAVY = {
    "cooperative_groups.h": "auto warp = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block()); "
    "x[0] = warp.shfl(x[1], 3);",
    "cub/cub.cuh": "using Sum = cub::BlockReduce<float, 128>; __shared__ typename Sum::TempStorage room; "
    "x[0] = Sum(room).Sum(x[threadIdx.x]);",
    "cuda/atomic": "cuda::atomic_ref<float, cuda::thread_scope_device> a(x[0]); a.fetch_add(1.0f);",
    "type_traits": "x[0] = std::is_same<int, int>::value + std::is_integral_v<int>;",
    "utility": "std::pair<int, int> p(1, 2); std::swap(x[0], x[1]); x[2] = p.first + std::move(x[3]);",
    "array": "std::array<int, 3> a{1, 2, 3}; x[0] = a[1];",
    "tuple": "std::tuple<int, float> t(1, x[0]); x[1] = std::get<1>(t);",
    "algorithm": "x[0] = std::max(x[1], std::min(x[2], x[3]));",
    "complex": "std::complex<float> c(x[0], 2); x[1] = std::abs(c);",
}


def test_headers_of_the_runtime_and_of_the_c_library_compile_together() -> None:
    """Half and 8-bit floats, the runtime's own headers, HIP's names, and what C++ has of C, in one source."""
    kernels = {f"k{number}": body for number, body in enumerate(LIGHT.values())}
    source = "".join(f"#include <{name}>\n" for name in LIGHT)
    source += "".join(KERNEL.replace(" k(", f" {name}(").format(body) for name, body in kernels.items())
    assert len(compiled(source, *kernels).entries) == len(LIGHT)


def test_headers_of_cccl_compile_together() -> None:
    """Cooperative groups, CUB, atomics and templates of the C++ library, in one source."""
    kernels = {f"k{number}": body for number, body in enumerate(HEAVY.values())}
    source = "".join(f"#include <{name}>\n" for name in HEAVY)
    source += "".join(KERNEL.replace(" k(", f" {name}(").format(body) for name, body in kernels.items())
    assert len(compiled(source, *kernels, arch="sm_75").entries) == len(HEAVY)


def test_matrix_fragments_compile() -> None:
    """The header of the tensor cores, which the toolkit has in its compiler's part."""
    folders = include_folders(find_library("nvrtc"))
    if not any((Path(each) / "crt" / "mma.h").exists() for each in folders):
        pytest.skip("the headers of the compiler are not installed (nvidia-cuda-crt)")
    fragment = "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float>"
    compiled(
        "#include <mma.h>\n" + KERNEL.format(f"{fragment} f; nvcuda::wmma::fill_fragment(f, 1.0f); x[0] = f.x[0];")
    )


@pytest.mark.parametrize("name", ["cmath", "cstdint", "stddef.h", "cfloat", "cuda_fp16.h", "hip/hip_runtime.h"])
def test_a_header_stands_alone(name: str) -> None:
    """A header compiles as the only one."""
    compiled(f"#include <{name}>\n" + KERNEL.format(LIGHT.get(name, "x[0] = offsetof(float3, z);")))


def test_headers_of_the_users_come_first(tmp_path: Path) -> None:
    """A header in the user's folder beats one of the same name of this backend or of the toolkit."""
    (tmp_path / "cmath").write_text("#define MINE 1\n")
    (tmp_path / "cuda_fp16.h").write_text("#define TOO 2\n")
    source = "#include <cmath>\n#include <cuda_fp16.h>\n" + KERNEL.format("x[0] = MINE + TOO;")
    compiled(source, include_dirs=[tmp_path])


def test_a_header_that_is_not_there_is_named_with_what_brings_it() -> None:
    """A missing component is named by the package that has it, a header of the C++ library by what there is (RTC-01)."""
    error = refused("#include <nvtx3/no_such.hpp>\n" + KERNEL.format(""))
    assert "<nvtx3/no_such.hpp> belongs to NVTX, which is not installed" in str(error)
    assert re.search(r"'cuda-toolkit\[nvtx\]'", str(error))
    assert "NVRTC has no C++ library" in str(refused("#include <vector>\n" + KERNEL.format("")))
    error = refused('#include "mine.h"\n' + KERNEL.format(""))
    assert "'mine.h' is in none of the include folders" in str(error) and error.diagnostics[0].line == 1


def test_headers_of_this_backend_have_no_names_of_the_toolkits() -> None:
    """Of the toolkit's headers two are replaced, whose own are for the host as well."""
    theirs = [Path(each) for each in include_folders(find_library("nvrtc"))]
    mine = [each.relative_to(INCLUDE) for each in Path(INCLUDE).rglob("*") if each.is_file()]
    same = {str(each) for each in mine if any((folder / each).exists() for folder in theirs)}
    assert same == {"cub/cub.cuh", "cuda.h"}
