"""What tests on the recording CUDA driver share: kernels, and a kernel at each of the two levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from recording.cuda.library import Launch, Recording

import podium

SOURCE = """
struct pair { double a; int b[3]; };
extern "C" __global__ void scalars(signed char a, unsigned char b, short c, unsigned short d, int e, unsigned f,
                                   long long g, unsigned long long h, float i, double j, bool k) {}
extern "C" __global__ void saxpy(float *y, const float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void structs(char a, pair s, char b, float *x) { if (x) x[0] = s.a + s.b[1] + a + b; }
extern "C" __global__ void nothing() {}
extern "C" __global__ void shared(float *x, int n) { extern __shared__ float s[]; s[n] = x[n]; x[n] = s[n + 1]; }
extern "C" __global__ void __launch_bounds__(256) bounded(int *x) { x[threadIdx.x] = 1; }
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(int *x) { x[threadIdx.x] = 1; }
"""


def kernels() -> podium.Module:
    """Make the module of the kernels above; what was made before stays as it is."""
    return podium.module(SOURCE)


def at_level(monkeypatch: pytest.MonkeyPatch, level: str) -> podium.Module:
    """Make the module with the launchers of all its kernels at one level."""
    monkeypatch.setenv("PODIUM_LAUNCHER", level)
    module = kernels()
    for name in module.names:
        module[name].binding()
    return module


def told(recording: Recording, work: Callable[[], Any]) -> list[Launch]:
    """Return the launches that something makes the driver do."""
    before = recording.launch_count()
    work()
    return recording.launches(before)


def shape(launch: Launch) -> tuple[Any, ...]:
    """What two launches must have in common to be the same but for the handles of their code."""
    return (
        launch.name,
        launch.entry,
        launch.device,
        launch.context,
        launch.stream,
        launch.grid,
        launch.block,
        launch.cluster,
        launch.shared,
        launch.attributes,
        launch.parameters,
        launch.packed,
        launch.captured,
        launch.stale,
    )


VARIABLES = """
__device__ int counter; __managed__ float bias[4];
extern "C" __global__ void count(int *x) { *x = counter++; }
"""


def everything() -> None:
    """Use all that podium asks the driver for, once, on one device, and give it back."""
    kernel = kernels()["saxpy"]
    x, y = podium.empty(64, "fp32"), podium.asarray([1.0] * 64)
    other = podium.empty(64, "fp32", pinned=True)
    kernel[2, 32](y, x, 2.0, 64)
    stream = podium.Stream(priority=-1)
    kernel[podium.LaunchConfig(4, 32, cluster=2, cooperative=True)](y, x, 2.0, 64, stream=stream)
    kernel[podium.LaunchConfig(4, 32, attributes={"priority": -1})](y, x, 2.0, 64, stream=stream)
    start = stream.record()
    end = stream.record()
    stream.wait(start)
    assert end.done
    end.synchronize()
    assert start.elapsed(end) >= 0
    stream.synchronize()
    with podium.use("nvidia") as driver:
        for alignment in (256, 1024):
            buffer = driver.allocate(100, alignment, 0, stream.handle)
            assert buffer.ptr % alignment == 0
            del buffer
        assert driver.pointer_device(x.ptr) == (2, 0) and driver.pointer_device(id(x)) == (1, 0)
        assert driver.pointer_device(other.ptr)[0] == 3
    with podium.capture() as graph:
        kernel[2, 32](y, x, 2.0, 64)
    graph.launches[0].update(a=3.0, grid=0)
    graph.launches[0].update(grid=2)
    graph.replay()
    del graph
    kernel.occupancy(4, 32)
    kernel.occupancy(4, 32, cluster=2)
    kernel.suggested_block()
    assert kernel.attributes()["registers"] > 0
    module = podium.module(VARIABLES)
    counter = module.variable("counter")
    counter.copy_from(5)
    assert counter.tolist() == 5
    module.variable("bias").tolist()
    module["count"][1, 1](y.ptr)
    module.unload()
    podium.synchronize()
