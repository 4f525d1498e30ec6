"""Kernels for tests of the AMD backend: their source, and what hipRTC makes of their arguments.

The stand-in for the runtime takes code objects that are described here, without machine code; a test with the real
hipRTC keeps the descriptions honest.
"""

from __future__ import annotations

from recording.hip.code_object import POINTER, Argument, Kernel, code_object
from recording.hip.compiling import compiled
from recording.hip.machine import Machine, Modelled

SOURCE = """
struct pair { double a; int b[3]; };
struct triple { float x, y, z; };
extern "C" __global__ void scalars(signed char a, unsigned char b, short c, unsigned short d, int e, unsigned f,
                                   long long g, unsigned long long h, float i, double j, bool k) {}
extern "C" __global__ void saxpy(float *y, const float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void structs(char a, pair s, char b, float *x) { if (x) x[0] = s.a + s.b[1] + a + b; }
extern "C" __global__ void misaligned(int a, triple t, long long b, float *x) { if (x) x[0] = t.y + a + b; }
extern "C" __global__ void nothing() {}
extern "C" __global__ void shared(float *x, int n) {
    extern __shared__ float s[];
    __shared__ float t[64];
    t[threadIdx.x % 64] = s[n] = x[n];
    __syncthreads();
    x[n] = s[n + 1] + t[n % 64];
}
extern "C" __global__ void __launch_bounds__(256) bounded(int *x) { x[threadIdx.x] = 1; }
"""


def _integers(*sizes: int) -> list[Argument]:
    return [Argument(size) for size in sizes]


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("scalars", _integers(1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1)),
        Kernel("saxpy", [POINTER, POINTER, *_integers(4, 4)]),
        Kernel("structs", [Argument(1), Argument(24, alignment=8), Argument(1), POINTER]),
        Kernel("misaligned", [Argument(4), Argument(12, alignment=4), Argument(8), POINTER]),
        Kernel("nothing"),
        Kernel("shared", [POINTER, Argument(4)], group=256),
        Kernel("bounded", [POINTER], most=256),
    )
}


def code(hip: Machine, arch: str | None = None) -> bytes:
    """Return the code object of the kernels for a machine, or for another architecture."""
    if isinstance(hip, Modelled):
        return compiled(hip.compiler, SOURCE, arch or hip.arch)
    return code_object(list(KERNELS.values()), arch or hip.arch)
