"""A first kernel: y += a * x."""

from __future__ import annotations

import podium

SAXPY = podium.kernel("""
__global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
""")


def main() -> None:
    """Run it on the active backend."""
    n = 1000
    x = podium.asarray([float(i) for i in range(n)])
    y = podium.asarray([1.0] * n)
    SAXPY[lambda args: (args["n"] + 255) // 256, 256](n, 2.0, x, y)
    print(y.tolist()[:5])


if __name__ == "__main__":
    main()

# It prints:
# [1.0, 3.0, 5.0, 7.0, 9.0]
