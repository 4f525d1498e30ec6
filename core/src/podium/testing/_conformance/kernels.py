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
__global__ void saxpy(NUMBER* y, const NUMBER* x, NUMBER a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""
_REDUCE = """
__global__ void reduce(const float* x, float* sums, int n) {
    __shared__ float part[BLOCK];
    int t = threadIdx.x;
    float sum = 0;
    for (int i = blockIdx.x * BLOCK + t; i < n; i += gridDim.x * BLOCK) sum += x[i];
    part[t] = sum;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
"""
_MATMUL = """
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
_WARPS_APART = """
__device__ int sum(int value) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}
__global__ void apart(int* sums) {
    int warp = threadIdx.x / warpSize, lane = threadIdx.x % warpSize, found = 0;
    if (warp == 2) return;
    if (warp == 0) found = sum(lane);
    else if (warp == 1) found = 2 * sum(lane);
    if (warp < 3) { if (lane == 0) sums[warp] = found; return; }
    found = sum(4 * lane);
    if (lane == 0) sums[warp] = found;
}
"""
_LAST = """
__global__ void last(int* out) {
    __shared__ int value;
    value = 3;
    __syncthreads();
    if (threadIdx.x == 0) value = 7;
    __syncthreads();
    out[threadIdx.x] = value;
}
"""
_HALF = """
#include <cuda_fp16.h>
__global__ void scale(__half* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = __float2half(__half2float(x[i]) * a);
}
"""
_TALLY = """
__global__ void tally(int* x) { atomicAdd(x, 1); }
"""


@contract("One kernel source", "compiles", "executes")
class Kernels(Subject):
    """Kernels as they are written in practice."""

    @pytest.mark.parametrize("c_type", ["float", "double", "int"])
    def test_saxpy(self, driver: Driver, level: Level, c_type: str) -> None:
        """A saxpy over a size that is no multiple of the block equals numpy's.

        Rows ARG-06.
        """
        import numpy

        if c_type == "double":
            self.need("fp64")
        dtype = {"float": numpy.float32, "double": numpy.float64, "int": numpy.int32}[c_type]
        kernel, block = podium.kernel(_SAXPY, defines={"NUMBER": c_type}), self.threads(driver, 128)
        for n in (1, 255, 1000, 4097):
            x, y = (self._values(n, seed).astype(dtype) for seed in (1, 2))
            device_y = podium.asarray(y)
            kernel[-(-n // block), block](device_y, podium.asarray(x), 3, n)
            numpy.testing.assert_allclose(device_y.numpy(), 3 * x + y, rtol=1e-6, atol=1e-5)
        level.check(kernel)

    @pytest.mark.needs("shared_memory", "barriers")
    def test_reduction(self, driver: Driver, level: Level) -> None:
        """A reduction through shared memory with barriers equals numpy's sum."""
        import numpy

        block = 1 << self.threads(driver, 128).bit_length() - 1
        kernel = podium.kernel(_REDUCE, defines={"BLOCK": block})
        for n in (1, 127, 1000, *[12_345] * 20):  # often, since blocks that meet each other do so by chance
            x, sums = numpy.rint(self._values(n, 3) * 16).astype(numpy.float32), podium.empty(5)
            kernel[5, block](podium.asarray(x), sums, n)
            assert sums.numpy().sum() == x.sum()

    @pytest.mark.needs("shared_memory", "barriers")
    def test_tiled_matrix_product(self, driver: Driver, level: Level) -> None:
        """A tiled matrix product with ragged edges equals numpy's."""
        import numpy

        device = driver.devices()[driver.current_device()]
        side = min(device.max_block[:2])
        tile = next(size for size in (16, 8, 4, 2, 1) if size <= side and size * size <= device.max_threads)
        kernel = podium.kernel(_MATMUL, defines={"TILE": tile})
        for m, n, k in ((16, 16, 16), (33, 17, 50), (1, 70, 3)):
            a, b = self._values(m * k, 4).reshape(m, k), self._values(k * n, 5).reshape(k, n)
            c = podium.empty((m, n))
            kernel[(-(-n // tile), -(-m // tile)), (tile, tile)](podium.asarray(a), podium.asarray(b), c, m, n, k)
            numpy.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4, atol=1e-4)

    @pytest.mark.needs("shared_memory", "barriers", "atomics", "small_integers")
    def test_histogram(self, driver: Driver, level: Level) -> None:
        """A histogram with atomics in shared and global memory equals numpy's."""
        import numpy

        kernel = podium.kernel(_HISTOGRAM)
        data = numpy.random.default_rng(6).integers(0, 256, 10_007).astype(numpy.uint8)
        counts = podium.asarray(numpy.zeros(256, numpy.uint32))
        kernel[7, self.threads(driver, 96)](podium.asarray(data), counts, data.size)
        assert (counts.numpy() == numpy.bincount(data, minlength=256)).all()

    @pytest.mark.needs("warps")
    def test_sums_of_warps(self, driver: Driver, level: Level) -> None:
        """Shuffles within a warp add up the values of its threads."""
        import numpy

        warp = driver.default_target().warp_size
        warps = max(1, self.threads(driver, 4 * warp) // warp)
        x = numpy.arange(3 * warps * warp, dtype=numpy.int32)
        sums = podium.asarray(numpy.zeros(3 * warps, numpy.int32))
        podium.kernel(_WARP_SUM)[3, warps * warp](podium.asarray(x), sums)
        assert (sums.numpy() == x.reshape(3 * warps, warp).sum(axis=1)).all()

    @pytest.mark.needs("shared_memory", "barriers")
    def test_a_barrier_shows_what_others_have_written(self, driver: Driver, level: Level) -> None:
        """Behind a barrier all threads see the last value of a shared variable, also those that have set it before."""
        block = self.threads(driver, 64)
        out = podium.asarray([0] * block)
        podium.kernel(_LAST)[1, block](out)
        assert out.tolist() == [7] * block

    @pytest.mark.needs("warps")
    def test_warps_go_their_own_ways(self, driver: Driver, level: Level) -> None:
        """Warps shuffle in branches that others do not take, and after others have returned."""
        import numpy

        warp = driver.default_target().warp_size
        warps = max(1, self.threads(driver, 4 * warp) // warp)
        sums = podium.asarray(numpy.zeros(warps, numpy.int32))
        podium.kernel(_WARPS_APART)[1, warps * warp](sums)
        whole = warp * (warp - 1) // 2
        expected = [whole, 2 * whole, 0, 4 * whole][:warps]
        assert sums.tolist() == expected + [0] * (warps - len(expected))

    @pytest.mark.needs("half")
    def test_half_precision(self, driver: Driver, level: Level) -> None:
        """A kernel on ``__half`` computes what numpy's float16 does.

        Rows RTC-01.
        """
        import numpy

        x = self._values(333, 7).astype(numpy.float16)
        device_x = podium.asarray(x)
        block = self.threads(driver, 128)
        podium.kernel(_HALF)[-(-x.size // block), block](device_x, 1.5, x.size)
        assert (device_x.numpy() == (x.astype(numpy.float32) * 1.5).astype(numpy.float16)).all()

    @pytest.mark.needs("atomics")
    def test_atomics_in_global_memory(self, driver: Driver, level: Level) -> None:
        """Atomic additions of all threads to one int in global memory lose none."""
        block, x = self.threads(driver, 64), podium.asarray([0, 0])
        podium.kernel(_TALLY)[33, block](x)
        assert x.tolist() == [33 * block, 0]

    def _values(self, count: int, seed: int) -> Any:
        import numpy

        return numpy.random.default_rng(seed).uniform(-4, 4, count).astype(numpy.float32)
