"""Mistakes in kernels, found on the CPU with their line and thread: an index, an overflow, a shared array."""

from __future__ import annotations

import numpy as np

import podium

SOURCE = r"""
__global__ void scale(float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n)  // one too many
    x[i] *= a;
}

__global__ void reverse(float *x) {
  __shared__ float tile[64];
  tile[threadIdx.x + 1] = x[threadIdx.x];  // begins at the wrong place
  __syncthreads();
  x[threadIdx.x] = tile[63 - threadIdx.x];
}

__global__ void total(const int *x, int *sum, int n) {
  for (int i = 0; i < n; ++i)
    *sum += x[i];
}
"""


def main() -> None:
    """Run each kernel, and show what was found."""
    module = podium.module(SOURCE)
    launches = {
        "scale": lambda: module["scale"][4, 256](np.ones(1000, np.float32), 2.0, 1000),
        "reverse": lambda: module["reverse"][1, 64](np.ones(64, np.float32)),
        "total": lambda: module["total"][1, 1](np.full(3, 1 << 30, np.int32), np.zeros(1, np.int32), 3),
    }
    with podium.use("cpu", sanitize="address,undefined"):
        for name, launch in launches.items():
            try:
                launch()
            except podium.errors.LaunchError as error:
                print(f"{name}: {error.status_text}")


if __name__ == "__main__":
    main()

# It prints:
# scale: <podium source>:5:...: the kernel reads 4 bytes right behind the end of the argument 'x', which has 4000 by...
# reverse: <podium source>:10:...: the index 64 is out of bounds for 'float...[64]', in thread (63,0,0) of block (0,0,0)
# total: <podium source>:17:...: 1073741824 + 1073741824 does not fit into 'int', in thread (0,0,0) of block (0,0,0)
