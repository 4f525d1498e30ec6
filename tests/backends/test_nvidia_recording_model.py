"""Older drivers and other devices, as the recording library has them; and that it notices what a real driver would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from nvidia_recorded import kernels
from recording.cuda.library import Recording, build, environment

import podium
from podium.errors import LaunchConfigError, LoadError

_OLDER = """
import sys
from recording.cuda.library import Recording
recording = Recording()
import podium
kernel = podium.kernel('extern "C" __global__ void k(float *x, int n) { if (x) x[n] = n; }')
x = podium.empty(64, "fp32")
for number in range(3):
    kernel[2, 32](x, number)
    assert recording.last().parameters == (x.ptr.to_bytes(8, "little"), number.to_bytes(4, "little"))
kernel[podium.LaunchConfig(4, 32, cooperative=True)](x, 1)
print(recording.last().entry, *sorted(name for name in recording.calls() if name.startswith(("cuLib", "cuMod"))))
try:
    kernel[podium.LaunchConfig(4, 32, cluster=2)](x, 1)
    print(recording.last().entry, recording.last().cluster)
except podium.errors.LaunchConfigError as error:
    print(error)
"""


def _on(version: int, cache: str, level: str) -> subprocess.CompletedProcess[str]:
    settings = {"PODIUM_LAUNCHER": level, "PODIUM_BACKEND": "nvidia", "PODIUM_CACHE_DIR": cache}
    variables = environment(build(version), **settings)
    variables["PYTHONPATH"] = os.pathsep.join([variables["PYTHONPATH"], *filter(None, sys.path)])
    return subprocess.run([sys.executable, "-c", _OLDER], env=variables, capture_output=True, text=True)


def test_a_driver_of_cuda_11_4(recording: Recording, session_cache: Path) -> None:
    """Without cuLibrary, cuLaunchKernelEx and parameter sizes: modules, the old cooperative call, no clusters."""
    done = _on(11040, str(session_cache), "generated")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "cuLaunchCooperativeKernel cuModuleGetFunction cuModuleLoadDataEx"
    assert "needs a driver for CUDA 11.8, and this one is for CUDA 11.4" in second


def test_a_driver_that_cuda_python_does_not_serve(recording: Recording, session_cache: Path) -> None:
    """cuda-python 13 needs a driver of CUDA 12: the interpreted level says so, and what to do."""
    import cuda.bindings

    if cuda.bindings.__version__.startswith("12."):
        pytest.skip("cuda-python 12 is installed, which may serve older drivers")
    done = _on(11040, str(session_cache), "interpreted")
    assert "podium.errors.BackendError: cuda-python 13" in done.stderr and "PODIUM_LAUNCHER=generated" in done.stderr


@pytest.mark.parametrize("version", [12000, 12020])
def test_a_driver_of_cuda_12(recording: Recording, session_cache: Path, level: str, version: int) -> None:
    """Libraries and extended launches are there, sizes of parameters are not."""
    done = _on(version, str(session_cache), level)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "cuLaunchKernelEx cuLibraryGetKernel cuLibraryLoadData"
    assert second == "cuLaunchKernelEx (2, 1, 1)"


def test_a_device_without_clusters(recording: Recording, level: str) -> None:
    """Compute capability 8.0 gets code of its own and no clusters, which is said before the driver is asked."""
    recording.set_attributes({75: 8, 76: 0, 120: 0, 97: 166912, 81: 167936})
    kernel = kernels_without_clusters()["plain"]
    kernel[2, 32](None)
    assert recording.last().grid == (2, 1, 1)
    with pytest.raises(LaunchConfigError, match="blocks in a cluster is 2, the limit is 1"):
        kernel[podium.LaunchConfig(4, 32, cluster=2)](None)
    with pytest.raises(LaunchConfigError, match="166913"):
        kernel[1, 32](None, shared=166913)


def kernels_without_clusters() -> podium.Module:
    """Make a module for devices of any age."""
    return podium.module('extern "C" __global__ void plain(int *x) { if (x) x[0] = 1; }')


def test_code_for_another_device_is_refused(recording: Recording) -> None:
    """A cubin for compute capability 8.0 does not load on one of 9.0, and the error names both."""
    code = kernels_without_clusters()["plain"].compile(podium.Target("nvidia", "sm_80", 32))
    with pytest.raises(LoadError, match="sm_80") as caught:
        podium.module(code)["plain"][1, 1](None)
    assert "sm_90" in str(caught.value)


def test_wrong_use_is_noticed(recording: Recording) -> None:
    """Handles that are over, memory that is freed, copies out of bounds, and contexts that are gone are told apart."""
    from cuda.bindings import driver

    kernels()["nothing"][1, 1]()
    stream = driver.cuStreamCreate(0)[1]
    assert driver.cuStreamDestroy(stream)[0] == 0
    assert driver.cuStreamSynchronize(stream)[0] == driver.cuStreamDestroy(stream)[0] == 400
    event = driver.cuEventCreate(0)[1]
    assert driver.cuEventRecord(stream, 0)[0] == driver.cuStreamQuery(event)[0] == 400  # each in the other's place
    block = driver.cuMemAlloc(100)[1]
    assert driver.cuMemcpyHtoD(block, bytes(101), 101)[0] == 1
    assert driver.cuMemFree(block)[0] == 0
    assert driver.cuMemFree(block)[0] == driver.cuMemcpyHtoD(block, bytes(1), 1)[0] == 1
    block = driver.cuMemAllocAsync(100, 0)[1]
    assert driver.cuMemFreeAsync(block, 0)[0] == 0 and driver.cuMemFreeAsync(block, 0)[0] == 1
    context = driver.cuCtxCreate(None, 0, 1)[1]
    driver.cuCtxPushCurrent(context)
    assert driver.cuCtxDestroy(context)[0] == 0
    assert driver.cuMemAlloc(4)[0] == 709
    assert driver.cuCtxPushCurrent(context)[0] == 201


def test_device_memory_is_not_the_hosts(recording: Recording) -> None:
    """A program that reads device memory as if it were its own ends at once, as with a real device."""
    x = podium.empty(64, "fp32")
    child = os.fork()
    if not child:
        import ctypes

        ctypes.string_at(x.ptr, 4)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == 11
