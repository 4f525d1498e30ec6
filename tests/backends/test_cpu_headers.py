"""Headers that kernels include: complex numbers, numbers of eight bits, atomic objects, the standard library for GPUs."""

from __future__ import annotations

import array
import math
from pathlib import Path

import pytest
from cpu_kernels import SUCCESS, Kernels, cpu_driver, host_compiler, zeros

from podium.backend import HostCompiler

INCLUDE = Path(cpu_driver.__file__).parent / "include" / "dialect"


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    return host_compiler()


SOURCE = """
#include <cuComplex.h>
#include <cuda_fp8.h>
#include <cuda/atomic>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/type_traits>
#include <hip/hip_runtime.h>

extern "C" __global__ void complex(const double *in, double *out) {
  cuDoubleComplex a = make_cuDoubleComplex(in[0], in[1]), b = make_cuDoubleComplex(in[2], in[3]);
  cuDoubleComplex all[] = {cuCadd(a, b), cuCsub(a, b), cuCmul(a, b), cuCdiv(a, b), cuConj(a), cuCfma(a, b, a),
                           cuComplexFloatToDouble(cuCmulf(make_cuComplex(1, 2), cuComplexDoubleToFloat(b)))};
  for (int i = 0; i < 7; ++i) out[2 * i] = cuCreal(all[i]), out[2 * i + 1] = cuCimag(all[i]);
  out[14] = cuCabs(a);
}

extern "C" __global__ void encode(const float *in, unsigned char *out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[4 * i] = __nv_cvt_float_to_fp8(in[i], __NV_SATFINITE, __NV_E4M3);
  out[4 * i + 1] = __nv_cvt_float_to_fp8(in[i], __NV_NOSAT, __NV_E4M3);
  out[4 * i + 2] = __nv_fp8_e5m2(in[i]).__x;
  out[4 * i + 3] = __nv_cvt_float2_to_fp8x2(make_float2(0, in[i]), __NV_NOSAT, __NV_E5M2) >> 8;
}

extern "C" __global__ void decode(float *out) {
  const int i = threadIdx.x;
  __nv_fp8_e4m3 x;
  x.__x = i;
  out[2 * i] = float(x);
  out[2 * i + 1] = __half(__nv_cvt_fp8_to_halfraw(i, __NV_E5M2));
}

extern "C" __global__ void vectors(float *out) {
  const float4 v = float4(__nv_fp8x4_e4m3(make_float4(1, -2, 0.5f, 448)));
  const float2 w = float2(__nv_fp8x2_e5m2(make_float2(3, -7)));
  out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w, out[4] = w.x, out[5] = w.y;
}

__device__ cuda::atomic<int, cuda::thread_scope_device> ticket{0};

extern "C" __global__ void atomics(int *data, float *sum) {
  cuda::atomic_ref<int, cuda::thread_scope_device> count(data[0]);
  count.fetch_add(2, cuda::memory_order_relaxed);
  ++count;
  cuda::atomic_ref<float> total(*sum);
  total += 0.5f;
  cuda::atomic_ref<int>(data[1]).fetch_max(threadIdx.x);
  int expected = 7;
  if (cuda::atomic_ref<int>(data[2]).compare_exchange_strong(expected, 8)) atomicAdd(data + 3, 1);
  ticket.fetch_add(1);
  __shared__ int flag;
  cuda::atomic_ref<int, cuda::thread_scope_block> ready(flag);
  if (threadIdx.x == 0) ready.store(0);
  __syncthreads();
  // The last thread lets all others go.
  if (threadIdx.x == blockDim.x - 1) ready.store(1, cuda::memory_order_release);
  while (ready.load(cuda::memory_order_acquire) == 0) {}
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
  data[4] = ticket.load();
}

extern "C" __global__ void names(int *out) {
  cuda::std::array<int, 3> a = {1, 2, 3};
  cuda::std::complex<float> z(3, 4);
  static_assert(cuda::std::is_same<cuda::std::remove_const<const int>::type, int>::value, "the same type");
  out[0] = a[2] + int(cuda::std::abs(z)) + int(sizeof(cuda::std::uint8_t));
  out[1] = __lane_id();
  unsafeAtomicAdd(out + 2, 3);
  __hip_atomic_fetch_add(out + 2, 4, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  out[3] = __hip_atomic_load(out + 2, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) + (wall_clock64() > 0);
}
"""

ENTRIES = {
    "complex": "*kfp64, *fp64",
    "encode": "*kfp32, *u8",
    "decode": "*fp32",
    "vectors": "*fp32",
    "atomics": "*i32, *fp32",
    "names": "*i32",
}


@pytest.fixture(scope="module")
def kernels(compiler: HostCompiler) -> Kernels:
    return Kernels(SOURCE, ENTRIES)


def test_complex_numbers(kernels: Kernels) -> None:
    """The functions of cuComplex.h compute what complex numbers are in Python."""
    a, b = 1.5 - 2j, -0.25 + 3j
    out = zeros("d", 15)
    assert kernels("complex", 1, 1, array.array("d", [a.real, a.imag, b.real, b.imag]), out) == SUCCESS
    found = [complex(*out[2 * i : 2 * i + 2]) for i in range(7)]
    expected = [a + b, a - b, a * b, a / b, a.conjugate(), a * b + a, (1 + 2j) * b]
    assert all(abs(x - y) < 1e-12 for x, y in zip(found, expected))
    assert out[14] == pytest.approx(abs(a))


def numbers(bits: int, bias: int, last: int) -> list[float]:
    """List the values of all positive codes of a format up to the last that is finite."""
    values = []
    for code in range(last + 1):
        exponent, fraction = code >> bits, code & (1 << bits) - 1
        scale = 2.0 ** ((exponent or 1) - bias - bits)
        values.append((fraction + ((1 << bits) if exponent else 0)) * scale)
    return values


E4M3, E5M2 = numbers(3, 7, 0x7E), numbers(2, 15, 0x7B)


def nearest(x: float, values: list[float], beyond: int | None) -> int:
    """Encode a number: the nearest value's code, the even one of two; `beyond` what is too large, None for the last."""
    sign = 0x80 if math.copysign(1, x) < 0 else 0
    size = abs(x)
    greatest = values[-1] + (values[-1] - values[-2]) / 2  # the middle to what would come next
    if size > greatest or (size == greatest and len(values) % 2 == 0):
        return sign | (len(values) - 1 if beyond is None else beyond)
    code = min(range(len(values)), key=lambda each: (abs(values[each] - size), each % 2))
    return sign | code


def test_numbers_of_eight_bits(kernels: Kernels) -> None:
    """Both formats round to nearest even, saturate where that is asked for, and are decoded code by code."""
    out = zeros("f", 512)
    assert kernels("decode", 1, 256, out) == SUCCESS
    assert out[0:254:2].tolist() == E4M3 and out[1 : 2 * 0x7C : 2].tolist() == E5M2
    assert math.isnan(out[2 * 0x7F]) and out[2 * 0x7C + 1] == math.inf and math.isnan(out[2 * 0x7E + 1])
    assert out[2 * 0xFC + 1] == -math.inf and out[2 * 0x81] == -E4M3[1]
    floats = [0.0, -0.0, 1e30, -1e30, 448.0, 463.9, 464.0, 464.1, 57344.0, 61439.0, 61440.0, 1e-9, math.inf, -math.inf]
    floats += [value * factor for value in (*E4M3[1::3], *E5M2[1::5]) for factor in (1, 1.03, -1.0625, 1.125)]
    floats += [0.0] * (-len(floats) % 32)
    data, codes = array.array("f", floats), zeros("B", 4 * len(floats))
    assert kernels("encode", len(floats) // 32, 32, data, codes) == SUCCESS
    for i, value in enumerate(data):
        expected = [nearest(value, E4M3, None), nearest(value, E4M3, 0x7F)]
        expected += [nearest(value, E5M2, None), nearest(value, E5M2, 0x7C)]
        assert codes[4 * i : 4 * i + 4].tolist() == expected, value
    assert kernels("encode", 1, 1, array.array("f", [math.nan]), codes) == SUCCESS
    assert codes[:4].tolist() == [0x7F] * 4
    assert kernels("vectors", 1, 1, out) == SUCCESS
    assert out[:6].tolist() == [1, -2, 0.5, 448, 3, -7]


def test_atomic_objects(kernels: Kernels) -> None:
    """Objects and references of cuda/atomic count, and a thread that waits for a flag lets the others run."""
    data, total = array.array("i", [0, -1, 7, 0, 0]), array.array("f", [0])
    assert kernels("atomics", 2, 100, data, total) == SUCCESS
    assert data.tolist()[:4] == [600, 99, 8, 1] and 100 <= data[4] <= 200 and total[0] == 100


def test_names_of_other_compilers(kernels: Kernels) -> None:
    """cuda::std is the host's std, and HIP's atomics and indices are there."""
    out = array.array("i", [0, 0, 0, 0])
    assert kernels("names", 1, 1, out) == SUCCESS
    assert out.tolist() == [3 + 5 + 1, 0, 7, 8]


@pytest.mark.parametrize("std", ["c++11", "c++20"])
def test_every_header_can_be_included(std: str) -> None:
    """Every header of the dialect compiles alone and with all others, without warnings, in old and new standards."""
    names = sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*") if path.is_file())
    source = "".join(f"#include <{name}>\n" for name in names if name != "bits/shared_ptr_base.h")
    source += "__global__ void k(int *p) { *p = 1; }"
    Kernels(source, {"k": "*i32"}, std=std, flags=["-Wall", "-Wextra", "-Werror"])
