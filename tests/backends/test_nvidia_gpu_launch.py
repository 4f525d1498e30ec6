"""Launches on a real NVIDIA GPU: attributes whose effect the results prove, limits, and the bytes of parameters."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from nvidia_gpu import Captured, needs, python

import podium
from podium import LaunchConfig
from podium.errors import LaunchConfigError, LaunchError, OutOfResourcesError

from podium_nvidia.driver import NvidiaDriver

pytestmark = pytest.mark.gpu

KERNELS = Path(__file__).with_name("nvidia_gpu.cu")


@pytest.fixture
def kernels(gpu: NvidiaDriver, level: str) -> podium.Module:
    """The module of the kernels, at one level."""
    return podium.module(KERNELS)


# ---- clusters ----


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [
        ((8, 1, 1), (2, 1, 1)),
        ((4, 4, 2), (2, 2, 2)),
        ((6, 3, 1), (3, 1, 1)),
        ((16, 1, 1), (8, 1, 1)),
        ((5, 1, 1), (1, 1, 1)),
    ],
)
def test_clusters_are_what_was_asked_for(gpu: NvidiaDriver, kernels: podium.Module, grid: Any, cluster: Any) -> None:
    """Blocks see the cluster's size and their places in it, along every axis."""
    needs(gpu, 90, "cluster")
    blocks = grid[0] * grid[1] * grid[2]
    out = podium.asarray([9] * 6 * blocks, "u32")
    kernel = kernels["cluster_shape"]
    for _ in range(2):
        kernel[LaunchConfig(grid, 32, cluster=cluster)](out)
    found = [tuple(out.tolist()[6 * block : 6 * block + 6]) for block in range(blocks)]
    assert {each[:3] for each in found} == {cluster}
    assert len({each[3:] for each in found}) == cluster[0] * cluster[1] * cluster[2]


def test_clusters_share_memory(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """Blocks of a cluster read each other's shared memory."""
    needs(gpu, 90, "cluster")
    out = podium.asarray([0] * 12)
    kernels["cluster_sum"][LaunchConfig(12, 1, cluster=4)](out)
    assert out.tolist() == [6] * 4 + [22] * 4 + [38] * 4


def test_clusters_of_sixteen_blocks_are_allowed_at_load(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """A cluster over the portable 8 blocks runs where the device has room, unless the launch forbids it."""
    needs(gpu, 90, "cluster")
    kernel, out = kernels["cluster_shape"], podium.asarray([0] * 6 * 32, "u32")
    try:
        kernel[LaunchConfig(32, 32, cluster=16)](out)
    except OutOfResourcesError as error:
        pytest.skip(f"this device has no room: {error}")
    assert out.tolist()[:3] == [16, 1, 1]
    with pytest.raises(LaunchConfigError, match="larger than the 8 that every device can run"):
        kernel[LaunchConfig(32, 32, cluster=16, attributes={"non_portable_cluster": 0})](out)
    kernel[LaunchConfig(32, 32, cluster=16, attributes={"non_portable_cluster": 1})](out)
    podium.synchronize()


def test_clusters_that_cannot_be(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """A grid that is no multiple of the cluster, a cluster without room, and one that the source has fixed otherwise."""
    needs(gpu, 90, "cluster")
    out = podium.asarray([0] * 64, "u32")
    with pytest.raises(LaunchConfigError, match=r"grid.x is 9, which is no multiple of the cluster's 2 blocks"):
        kernels["cluster_shape"][LaunchConfig(9, 32, cluster=2)](out)
    with pytest.raises(OutOfResourcesError, match="blocks in a cluster is 17"):
        kernels["cluster_shape"][LaunchConfig(17, 32, cluster=17)](out)
    kernels["fixed_cluster"][4, 32](out)
    assert out.tolist()[:4] == [2] * 4
    with pytest.raises(LaunchConfigError, match=r"compiled for clusters of \(2, 1, 1\)"):
        kernels["fixed_cluster"][LaunchConfig(4, 32, cluster=4)](out)
    with pytest.raises(LaunchConfigError, match="no multiple"):
        kernels["fixed_cluster"][3, 32](out)


def test_num_ctas_counts_the_grid_in_clusters(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """As Triton's launchers do: num_warps are warps of a block, num_ctas blocks of a cluster, the grid is in clusters."""
    needs(gpu, 90, "cluster")
    kernel, out = kernels["cluster_shape"], podium.asarray([0] * 6 * 8, "u32")
    launcher = gpu.launcher_cls(kernel, {"name": "cluster_shape", "num_warps": 2, "num_ctas": 2}, gpu)
    launcher(4, 1, 1, 0, kernel.load(), out)
    assert out.tolist()[:3] == [2, 1, 1] and out.tolist()[-6:-3] == [2, 1, 1]


# ---- cooperative grids ----


def test_a_cooperative_grid_synchronises(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """Blocks of a cooperative launch wait for each other, also when there are as many as fit at once."""
    kernel = kernels["ring"]
    config = LaunchConfig(1, 64, cooperative=True)
    function = kernel.binding(gpu).load(0)
    most = gpu.occupancy(function, 0, config).max_active_blocks
    assert most >= gpu.occupancy(function, 0, config).multiprocessors
    for blocks in (7, most):
        values = podium.asarray([0] * blocks)
        kernel[LaunchConfig(blocks, 64, cooperative=True)](values, 5)
        assert values.tolist() == [5] * blocks
    values = podium.asarray([0] * (most + 1))
    with pytest.raises(OutOfResourcesError) as caught:
        kernel[LaunchConfig(most + 1, 64, cooperative=True)](values, 1)
    assert (caught.value.required, caught.value.limit) == (most + 1, most)


def test_the_driver_refuses_a_cooperative_grid_that_is_too_large(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """GRD-09: a low-level launcher, whose grid is not known before, gets the driver's status with what to do."""
    kernel = kernels["ring"]
    launcher = gpu.launcher_cls(kernel, {"name": "ring", "block": 64, "cooperative": True}, gpu)
    values = podium.asarray([0])
    with pytest.raises(LaunchError, match="COOPERATIVE_LAUNCH_TOO_LARGE.*occupancy"):
        launcher(1 << 20, 1, 1, 0, kernel.load(), values, 0)
    launcher(1, 1, 1, 0, kernel.load(), values, 1)
    assert values.tolist() == [1]


# ---- dependent launches ----


def test_a_dependent_launch_begins_early(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """GRD-11: a dependent kernel runs beside the one before it, which an ordinary one never does."""
    needs(gpu, 90, "dependent launch")
    first, second = kernels["first"], kernels["second"]
    stream = gpu.create_stream(0, 0)
    for kernel in (first, second):
        kernel.load()  # which takes longer than the first waits

    def overlap(dependent: bool) -> bool:
        flags = podium.asarray([0, 7, 7])
        first[1, 1](flags, stream=stream)
        second[LaunchConfig(1, 1, dependent=dependent)](flags, stream=stream)
        podium.synchronize(stream=stream)
        done, met, seen = flags.tolist()
        assert done == 1 and met == seen
        return bool(met)

    # Between the two, a device that other processes use may turn to these.
    assert any(overlap(True) for _ in range(20))
    assert not any(overlap(False) for _ in range(3))
    assert any(overlap(True) for _ in range(20))
    gpu.destroy_stream(stream, 0)


# ---- attributes that a graph tells of ----


@pytest.mark.parametrize(
    ("name", "value", "needed"),
    [
        ("priority", -3, 70),
        ("cluster_scheduling_policy", 2, 90),
        ("memory_sync_domain", 1, 90),
        ("shared_memory_carveout", 50, 70),
    ],
)
def test_attributes_reach_the_driver(
    gpu: NvidiaDriver, kernels: podium.Module, name: str, value: int, needed: int
) -> None:
    """An attribute by name is one of the launch: the node of a captured graph has it, and the kernel runs."""
    needs(gpu, needed, name)
    kernel, x = kernels["add"], podium.asarray([1] * 32)
    config = LaunchConfig(1, 32, attributes={name: value})
    kernel[config](x, 1)
    with Captured(gpu) as captured:
        kernel[config](x, 10, stream=captured.stream)
    if name != "shared_memory_carveout":  # which nodes do not give back
        assert captured.attribute(gpu.attribute_keys[name]) == value
    captured.replay()
    assert x.tolist() == [12] * 32


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("priority", 1000, r"it is from -\d+, which comes first, to 0"),
        ("cluster_scheduling_policy", 7, "it is one of 0"),
        ("memory_sync_domain", 2, "it is one of 0"),
        ("shared_memory_carveout", 101, "from 0 to 100"),
        ("preferred_cluster", 2, "compute capability 10.0|three numbers"),
    ],
)
def test_values_that_cannot_be(gpu: NvidiaDriver, kernels: podium.Module, name: str, value: int, message: str) -> None:
    """A value out of range is refused by name, before the driver would only say that something is invalid."""
    needs(gpu, 90, name)
    with pytest.raises(LaunchConfigError, match=message):
        kernels["add"][LaunchConfig(1, 32, attributes={name: value})](podium.asarray([1] * 32), 1)


# ---- shared memory ----


def test_shared_memory_over_48_kilobytes(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """GRD-07: all that the device has can be asked for at once, and small launches in between take nothing away."""
    kernel, out = kernels["fill_shared"], podium.asarray([0] * 2, "u32")
    most = gpu.devices()[0].max_shared
    assert most > 48 << 10
    for size in (most, 1024, most, 49 << 10):
        words = size // 4
        kernel[2, 256](out, words, shared=size)
        assert out.tolist() == [words * (words - 1) // 2 % (1 << 32)] * 2


def test_shared_memory_over_the_limit(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """GRD-08: what is needed and what there is are named; static shared memory counts."""
    out, most = podium.asarray([0], "u32"), gpu.devices()[0].max_shared
    with pytest.raises(OutOfResourcesError) as caught:
        kernels["fill_shared"][1, 256](out, 1, shared=most + 1)
    assert (caught.value.required, caught.value.limit) == (most + 1, most)
    kernel = kernels["fill_both"]
    kernel[1, 256](out, 64, shared=most - 1024)
    assert out.tolist() == [64 * 63 // 2 + 256 * 255 // 2]
    with pytest.raises(OutOfResourcesError, match="the kernel itself takes 1024") as caught:
        kernel[1, 256](out, 64, shared=most - 1023)
    assert caught.value.limit == most - 1024


# ---- bytes ----


def test_kernels_find_the_bytes_that_were_laid_out(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """Every parameter arrives where `Parameters` puts it, byte for byte: the kernel copies its own."""
    signature = "a: i8, b: fp64, c: i16, d: {fp32,i32}, e: fp16, f: opaque[48,16], g: i1, h: u64, i_: fp32, out: *u64, bytes: *u8"
    kernel = kernels.kernel("dump", signature=signature)
    wide = bytes(range(100, 148))
    pair = struct.pack("=fi", 2.5, -7)
    values = (-5, 1.25, -300, pair, 0.1, wide, True, (1 << 64) - 2, -0.0)
    for _ in range(2):
        out, dumped = podium.asarray([0] * 18, "u64"), podium.asarray([0] * 160, "u8")
        kernel[1, 1](*values, out, dumped)
    launcher = kernel.binding(gpu).launcher
    parameters = launcher.layout.lay_out(launcher.pack((*values, out, dumped)).values)
    data = dumped.tobytes()
    for index in range(9):
        offset, size = out.tolist()[2 * index : 2 * index + 2]
        assert offset == parameters.offsets[index], index
        assert data[offset : offset + size] == parameters.data[offset : offset + size], index


# ---- faults ----

_FAULT = """
import podium, sys
podium.driver.set_active("nvidia")
module = podium.module({kernels!r})
add, wild = module["add"], module["wild"]
x = podium.asarray([1] * 32)
for _ in range(3):
    add[1, 32](x, 1)
try:
    wild[2, 32](x, 1 << 40)
    add[1, 32](x, 1)
    podium.synchronize()
except podium.errors.LaunchError as error:
    print(error.kernel, error.status_name, error.grid)
    print(error)
"""


@pytest.mark.parametrize("debug", ["1", "0"])
def test_a_fault_is_found(gpu: NvidiaDriver, level: str, debug: str, tmp_path: Path) -> None:
    """LIF-08: the debug switch names the launch at fault; without it the error lists the launches that may be."""
    process = python(_FAULT.format(kernels=str(KERNELS)), PODIUM_DEBUG=debug, PODIUM_LAUNCHER=level)
    assert process.returncode == 0, process.stderr
    first, *rest = process.stdout.splitlines()
    if debug == "1":
        assert first.split()[:2] == ["wild", "CUDA_ERROR_ILLEGAL_ADDRESS"] and first.endswith("(2, 1, 1)")
    else:
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in first and any("wild grid (2, 1, 1)" in line for line in rest)
    assert "context" in process.stdout
    assert ("PODIUM_DEBUG" in process.stdout) == (debug == "0")  # who has it on need not be told to
