"""What an NVIDIA device can launch, on the recording CUDA driver: attributes, clusters, cooperative grids, occupancy."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from recording.cuda.library import Recording, build, environment

import podium
from podium import LaunchConfig
from podium.errors import LaunchConfigError, LaunchError, OutOfResourcesError

from podium_nvidia.driver import NvidiaDriver

SOURCE = """
extern "C" __global__ void plain(int* x) { __shared__ int s[256]; s[threadIdx.x] = 1; x[0] = s[threadIdx.x + 1]; }
"""
PAIRS = 'extern "C" __global__ void __cluster_dims__(2, 1, 1) pairs(int* x) { x[threadIdx.x] = 1; }'
CAPABILITY = {75: {75: 7, 76: 5, 97: 96 << 10, 120: 0, 126: 1}, 80: {75: 8, 76: 0, 97: 163 << 10, 120: 0, 126: 1}}


def driver() -> NvidiaDriver:
    """Return the driver, which the fixture `recording` has made the one to use."""
    found = podium.driver.resolve()
    assert isinstance(found, NvidiaDriver)
    return found


def launch(name: str = "plain", **config: Any) -> None:
    """Launch a kernel in a shape."""
    podium.kernel(PAIRS if name == "pairs" else SOURCE)[LaunchConfig(**{"grid": 4, "block": 32, **config})](None)


LACKING: list[tuple[dict[str, Any], str]] = [
    ({"cluster": 2}, r"blocks in a cluster is 2, the limit is 1; device 0 is .*, which has no clusters"),
    ({"dependent": True}, r"device 0 \(sm_\d+\) does not have the launch feature 'dependent'.*9.0"),
    ({"attributes": {"cluster_scheduling_policy": 1}}, "has no clusters"),
    ({"attributes": {"memory_sync_domain": 1}}, "one memory synchronisation domain only"),
    ({"attributes": {"preferred_cluster": (2, 1, 1)}}, "compute capability 10.0"),
]


@pytest.mark.parametrize("capability", [75, 80])
def test_devices_that_lack_something(recording: Recording, level: str, capability: int) -> None:
    """What a device does not have is refused by name, before the driver is asked; all else is launched."""
    recording.set_attributes(CAPABILITY[capability])
    for config, message in LACKING:
        with pytest.raises(LaunchConfigError, match=message):
            launch(**config)
    assert recording.launch_count() == 0
    launch(attributes={"priority": -1, "shared_memory_carveout": 50})
    assert [key for key, _ in recording.last().attributes] == [8, 14]


VALUES: list[tuple[dict[str, Any], str]] = [
    ({"priority": 1}, "which comes first, to 0"),
    ({"priority": (1, 2)}, "which comes first, to 0"),
    ({"cluster_scheduling_policy": 3}, r"it is one of 0 \(default\), 1 \(spread\), 2 \(load balancing\)"),
    ({"memory_sync_domain": -1}, r"it is one of 0 \(default\), 1 \(remote\)"),
    ({"shared_memory_carveout": 101}, "0 to 100 per cent"),
    ({"shared_memory_carveout": -1}, "0 to 100 per cent"),
    ({"non_portable_cluster": 2}, r"it is one of 0 \(refused\), 1 \(allowed\)"),
]


def test_values_that_no_launch_has(recording: Recording, level: str) -> None:
    """A value that an attribute cannot have is refused with those that it can have."""
    for attributes, message in VALUES:
        with pytest.raises(LaunchConfigError, match=message) as caught:
            launch(attributes=attributes)
        assert caught.value.axis == next(iter(attributes))
    assert recording.launch_count() == 0


def test_preferred_clusters(recording: Recording, level: str) -> None:
    """On devices that have them they are three multiples of the cluster, and divide the grid."""
    recording.set_attributes({75: 10, 76: 0})
    for value, message in (
        (4, "three numbers of blocks"),
        ((4, 1), "three numbers of blocks"),
        ((3, 1, 1), r"a multiple of the cluster \(2, 1, 1\)"),
        ((8, 1, 1), r"the grid \(4, 1, 1\) is a multiple of it"),
    ):
        with pytest.raises(LaunchConfigError, match=message):
            launch(cluster=2, attributes={"preferred_cluster": value})
    launch(cluster=2, attributes={"preferred_cluster": (4, 1, 1)})
    assert [key for key, _ in recording.last().attributes] == [4, 11]
    assert recording.last().attributes[1][1][:12] == b"\4\0\0\0\1\0\0\0\1\0\0\0"


def test_clusters(recording: Recording, level: str) -> None:
    """The grid is a multiple of the cluster on each axis; more than eight blocks are allowed where that is not refused."""
    launch(grid=(16, 1, 1), cluster=16)
    assert recording.last().cluster == (16, 1, 1)
    with pytest.raises(LaunchConfigError, match="larger than the 8 that every device can run"):
        launch(grid=16, cluster=16, attributes={"non_portable_cluster": 0})
    launch(grid=16, cluster=16, attributes={"non_portable_cluster": 1})
    with pytest.raises(LaunchConfigError, match=r"grid.y is 3, which is no multiple of the cluster's 2 blocks"):
        launch(grid=(4, 3), cluster=(2, 2))
    with pytest.raises(OutOfResourcesError, match="blocks in a cluster is 17, the limit is 16"):
        launch(grid=17, cluster=17)


def test_clusters_that_the_source_fixes(recording: Recording, level: str) -> None:
    """__cluster_dims__ holds without a word at the launch; another cluster, or a grid that it does not divide, is refused."""
    launch("pairs")
    assert recording.last().entry == "cuLaunchKernel"
    launch("pairs", cluster=2)
    with pytest.raises(LaunchConfigError, match=r"compiled for clusters of \(2, 1, 1\)"):
        launch("pairs", cluster=4)
    with pytest.raises(LaunchConfigError, match="no multiple"):
        launch("pairs", grid=3)


def test_a_cluster_without_room(recording: Recording, level: str) -> None:
    """Where the driver says that no cluster of a launch fits, that is said, with what it was made of."""
    count = recording.calls().get("cuOccupancyMaxActiveClusters", 0)
    launch(cluster=2)
    assert recording.calls()["cuOccupancyMaxActiveClusters"] == count + 1
    with (
        recording.failing("cuOccupancyMaxActiveClusters", 912),  # what a device with smaller clusters only says
        pytest.raises(OutOfResourcesError, match=r"no place for a cluster \(4, 1, 1\)"),
    ):
        launch(cluster=4)
    recording.set_attributes({16: 8})
    with pytest.raises(OutOfResourcesError, match=r"no place for a cluster \(16, 1, 1\) of blocks of 1024 threads"):
        launch(grid=16, block=1024, cluster=16, shared=227 * 1024 - 1024)


def test_a_cooperative_grid(recording: Recording, level: str) -> None:
    """GRD-09: as many blocks as run at once are launched; one more is refused with the limit and how it is made up."""
    kernel = podium.module(SOURCE)["plain"]
    most = driver().occupancy(kernel.binding().load(0), 0, LaunchConfig(1, 128, cooperative=True))
    assert most.max_active_blocks == most.blocks_per_multiprocessor * most.multiprocessors > 0
    launch(grid=most.max_active_blocks, block=128, cooperative=True)
    with pytest.raises(OutOfResourcesError, match=f"{most.blocks_per_multiprocessor} on each of the") as caught:
        launch(grid=most.max_active_blocks + 1, block=128, cooperative=True)
    assert caught.value.limit == most.max_active_blocks
    with recording.failing("cuLaunchKernelEx", 720), pytest.raises(LaunchError, match="how many fit"):
        launch(cooperative=True)


def test_shared_memory_of_the_kernel_counts(recording: Recording, level: str) -> None:
    """GRD-08: the limit of dynamic shared memory is what static shared memory leaves."""
    launch(shared=232448 - 1024)
    with pytest.raises(OutOfResourcesError, match="the kernel itself takes 1024") as caught:
        launch(shared=232448 - 1023)
    assert (caught.value.required, caught.value.limit) == (232448 - 1023, 232448 - 1024)


def test_a_dependent_launch_of_older_code(recording: Recording, level: str) -> None:
    """GRD-11: code for an architecture without the wait is not launched early, whatever the device."""
    target = podium.Target("nvidia", "compute_80", 32)
    text = "\n".join(
        (
            ".version 7.0",
            ".target sm_80",
            ".address_size 64",
            ".visible .entry old(.param .u64 x) { ret; }",
        )
    )
    entry = podium.backend.Entry("old", podium.Signature.parse("x: *i32"))  # type: ignore[attr-defined]
    kernel = podium.kernel(podium.ObjectCode(text.encode(), "ptx", target, (entry,)))
    kernel[1, 32](None)
    with pytest.raises(LaunchConfigError, match=r"code for compute capability 9.0 or later, and this is for 8.0"):
        kernel[LaunchConfig(1, 32, dependent=True)](None)


def test_nothing_is_asked_once_a_launch_is_prepared(recording: Recording, level: str) -> None:
    """The checks of a shape are made before its first launch on a device; the others make the launch only."""
    kernel = podium.module(SOURCE)["plain"]
    bound = kernel[LaunchConfig(4, 32, cluster=2, cooperative=True, attributes={"priority": -1})]
    bound(None)
    bound(None)
    before = recording.calls()
    for _ in range(10):
        bound(None)
    calls = {name: count - before.get(name, 0) for name, count in recording.calls().items()}
    assert {name for name, count in calls.items() if count} == {"cuCtxGetDevice", "cuLaunchKernelEx"}
    assert calls["cuLaunchKernelEx"] == 10


def test_the_suggested_block(recording: Recording) -> None:
    """The driver's suggestion is that of a kernel with its shared memory."""
    function = podium.module(SOURCE)["plain"].binding().load(0)
    block, grid = driver().suggested_block(function, 0, 0)
    assert 32 <= block <= 1024 and grid > 0
    found = driver().occupancy(function, 0, LaunchConfig(8, 128, cluster=2))
    assert found.max_active_clusters and found.max_active_blocks <= found.multiprocessors * 32
    fixed = podium.kernel(PAIRS)
    assert fixed.occupancy(8, 128) == fixed.occupancy(8, 128, cluster=2)


# ---- older drivers ----

OLD = """
import sys, podium
from podium import LaunchConfig
from recording.cuda.library import Recording
recording = Recording()
podium.driver.set_active("nvidia")
kernel = podium.kernel('extern "C" __global__ void k(int* x) { x[0] = 1; }')
x = podium.empty(4, "i32")
for _ in range(2):
    kernel[2, 32](x)
print(recording.last().entry, kernel.level)
for config in ({"cooperative": True}, {"attributes": {"priority": -1}}, {"cluster": 2}, {"dependent": True}):
    try:
        kernel[LaunchConfig(2, 32, **config)](x)
        print(*config, recording.last().entry)
    except podium.errors.LaunchConfigError as error:
        print(*config, error)
counters = recording.counters()
print(counters["libraries"], counters["modules"])
kernel.unload()
print(recording.counters()["modules"])
import threading
thread = threading.Thread(target=lambda: kernel[2, 32](x))
thread.start(); thread.join()
podium.synchronize()
"""


@pytest.mark.oldest  # which compiles a driver for each
@pytest.mark.parametrize("version", [11040, 11080, 12020])
def test_older_drivers_are_served(version: int, level: str, tmp_path: Any) -> None:
    """A driver without libraries has modules, one without cuLaunchKernelEx has plain and cooperative launches."""
    if level == "interpreted" and version < 12000:
        pytest.skip("cuda-python 13 itself needs a driver for CUDA 12")
    settings = {"PODIUM_LAUNCHER": level, "PODIUM_CACHE_DIR": str(tmp_path)}
    variables = environment(build(version), **settings)
    variables["PYTHONPATH"] = os.pathsep.join([variables["PYTHONPATH"], *filter(None, sys.path)])
    done = subprocess.run([sys.executable, "-c", OLD], env=variables, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    plain, cooperative, priority, cluster, dependent, loaded, unloaded = done.stdout.splitlines()
    assert plain == f"cuLaunchKernel {level}"
    if version < 11060:
        assert cooperative == "cooperative cuLaunchCooperativeKernel"
        assert "needs a driver for CUDA 11.7, and this one is for CUDA 11.4" in priority
        assert "needs a driver for CUDA 11.8" in cluster and "needs a driver for CUDA 11.8" in dependent
    else:
        assert cooperative == "cooperative cuLaunchKernelEx" and priority == "attributes cuLaunchKernelEx"
        assert cluster == "cluster cuLaunchKernelEx" and dependent == "dependent cuLaunchKernelEx"
    assert loaded == ("1 1" if version >= 12000 else "0 1") and unloaded == "0"
