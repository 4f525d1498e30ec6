"""Real kernels, small ones, against numpy; at sizes that are no multiples of the block."""

from __future__ import annotations

from typing import Any

import pytest

import podium
from podium.backend import Driver
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Kernels"]

_SAXPY = """
template <typename T>
__global__ void saxpy(T* y, const T* x, T a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""
_REDUCE = """
template <int B>
__global__ void reduce(const float* x, float* sums, int n) {
    __shared__ float part[B];
    int t = threadIdx.x;
    float sum = 0;
    for (int i = blockIdx.x * B + t; i < n; i += gridDim.x * B) sum += x[i];
    part[t] = sum;
    __syncthreads();
    for (int half = B / 2; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
"""
_MATMUL = """
#define TILE 16
__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < k; start += TILE) {
        int x = start + threadIdx.x, y = start + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = row < m && x < k ? a[row * k + x] : 0.0f;
        right[threadIdx.y][threadIdx.x] = y < k && column < n ? b[y * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
"""
_HISTOGRAM = """
__global__ void histogram(const unsigned char* data, unsigned int* counts, int n) {
    __shared__ unsigned int own[256];
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) own[bin] = 0;
    __syncthreads();
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) atomicAdd(&own[data[i]], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) atomicAdd(&counts[bin], own[bin]);
}
"""
_WARP_SUM = """
__global__ void warp_sum(const int* x, int* sums) {
    int value = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int offset = warpSize / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
    if (threadIdx.x % warpSize == 0) sums[(blockIdx.x * blockDim.x + threadIdx.x) / warpSize] = value;
}
"""
_HALF = """
#include <cuda_fp16.h>
__global__ void scale(__half* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = __float2half(__half2float(x[i]) * a);
}
"""


@contract("One kernel source", "compiles", "executes")
class Kernels(Subject):
    """Kernels as they are written in practice."""

    @pytest.mark.parametrize("c_type", ["float", "double", "int"])
    def test_saxpy(self, driver: Driver, level: Level, c_type: str) -> None:
        """A templated saxpy over a size that is no multiple of the block equals numpy's.

        Rows ARG-06.
        """
        import numpy

        if c_type == "double" and not self.capabilities.fp64:
            pytest.skip("not claimed: fp64")
        dtype = {"float": numpy.float32, "double": numpy.float64, "int": numpy.int32}[c_type]
        kernel = podium.kernel(_SAXPY, f"saxpy<{c_type}>")
        for n in (1, 255, 1000, 4097):
            x, y = (self._values(n, seed).astype(dtype) for seed in (1, 2))
            device_y = podium.asarray(y)
            kernel[-(-n // 128), 128](device_y, podium.asarray(x), 3, n)
            numpy.testing.assert_allclose(device_y.numpy(), 3 * x + y, rtol=1e-6, atol=1e-5)
        level.check(kernel)

    @pytest.mark.needs("shared_memory", "barriers")
    def test_reduction(self, driver: Driver, level: Level) -> None:
        """A reduction through shared memory with barriers equals numpy's sum."""
        import numpy

        kernel = podium.kernel(_REDUCE, "reduce<128>")
        for n in (1, 127, 1000, 12_345):
            x, sums = numpy.rint(self._values(n, 3) * 16).astype(numpy.float32), podium.empty(5)
            kernel[5, 128](podium.asarray(x), sums, n)
            assert sums.numpy().sum() == x.sum()

    @pytest.mark.needs("shared_memory", "barriers")
    def test_tiled_matrix_product(self, driver: Driver, level: Level) -> None:
        """A tiled matrix product with ragged edges equals numpy's."""
        import numpy

        kernel = podium.kernel(_MATMUL)
        for m, n, k in ((16, 16, 16), (33, 17, 50), (1, 70, 3)):
            a, b = self._values(m * k, 4).reshape(m, k), self._values(k * n, 5).reshape(k, n)
            c = podium.empty((m, n))
            kernel[(-(-n // 16), -(-m // 16)), (16, 16)](podium.asarray(a), podium.asarray(b), c, m, n, k)
            numpy.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4, atol=1e-4)

    @pytest.mark.needs("shared_memory", "barriers", "atomics")
    def test_histogram(self, driver: Driver, level: Level) -> None:
        """A histogram with atomics in shared and global memory equals numpy's."""
        import numpy

        kernel = podium.kernel(_HISTOGRAM)
        data = numpy.random.default_rng(6).integers(0, 256, 10_007).astype(numpy.uint8)
        counts = podium.asarray(numpy.zeros(256, numpy.uint32))
        kernel[7, 96](podium.asarray(data), counts, data.size)
        assert (counts.numpy() == numpy.bincount(data, minlength=256)).all()

    @pytest.mark.needs("warps")
    def test_sums_of_warps(self, driver: Driver, level: Level) -> None:
        """Shuffles within a warp add up the values of its threads."""
        import numpy

        warp = driver.default_target().warp_size
        x = numpy.arange(12 * warp, dtype=numpy.int32)
        sums = podium.asarray(numpy.zeros(12, numpy.int32))
        podium.kernel(_WARP_SUM)[3, 4 * warp](podium.asarray(x), sums)
        assert (sums.numpy() == x.reshape(12, warp).sum(axis=1)).all()

    @pytest.mark.needs("half")
    def test_half_precision(self, driver: Driver, level: Level) -> None:
        """A kernel on ``__half`` computes what numpy's float16 does.

        Rows RTC-01.
        """
        import numpy

        x = self._values(333, 7).astype(numpy.float16)
        device_x = podium.asarray(x)
        podium.kernel(_HALF)[3, 128](device_x, 1.5, x.size)
        assert (device_x.numpy() == (x.astype(numpy.float32) * 1.5).astype(numpy.float16)).all()

    def _values(self, count: int, seed: int) -> Any:
        import numpy

        return numpy.random.default_rng(seed).uniform(-4, 4, count).astype(numpy.float32)
