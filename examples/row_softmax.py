"""Softmax over the rows of a matrix: a template, shared memory, barriers and warp shuffles, checked against numpy."""

from __future__ import annotations

import numpy as np

import podium

SOURCE = r"""
template <typename T, int threads>
__global__ void softmax(const T* in, T* out, int columns) {
    __shared__ float partial[threads / 32];
    const T* row = in + blockIdx.x * columns;

    float largest = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += threads) largest = fmaxf(largest, (float)row[i]);
    for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, step));
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = largest;
    __syncthreads();
    for (int warp = 0; warp < threads / 32; warp++) largest = fmaxf(largest, partial[warp]);
    __syncthreads();

    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += threads) sum += expf((float)row[i] - largest);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int warp = 0; warp < threads / 32; warp++) sum += partial[warp];

    for (int i = threadIdx.x; i < columns; i += threads)
        out[blockIdx.x * columns + i] = (T)(expf((float)row[i] - largest) / sum);
}
"""

SOFTMAX = podium.kernel(SOURCE, "softmax<float, 128>")


def main() -> None:
    """Run it on the active backend, and compare with numpy."""
    rows, columns = 20, 1000
    values = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    out = podium.empty((rows, columns), "fp32")
    SOFTMAX[rows, 128](podium.asarray(values), out, columns)

    exponents = np.exp(values - values.max(axis=1, keepdims=True))
    expected = exponents / exponents.sum(axis=1, keepdims=True)
    print("same as numpy:", np.allclose(out.numpy(), expected, rtol=1e-4))


if __name__ == "__main__":
    main()

# It prints:
# same as numpy: True
