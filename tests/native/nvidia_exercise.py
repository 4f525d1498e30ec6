"""A program that drives the NVIDIA backend's generated launchers on the recording driver, for tools that watch memory.

python nvidia_exercise.py ROUNDS
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["PODIUM_LAUNCHER"] = "generated"
os.environ["PODIUM_BACKEND"] = "nvidia"
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "backends")]

from nvidia_recorded import kernels  # noqa: E402
from recording.cuda.library import Recording  # noqa: E402

import podium  # noqa: E402
from podium.errors import PodiumError  # noqa: E402

recording = Recording()
failures = launches = 0


def attempt(call: Callable[..., object], *args: Any, **keywords: Any) -> None:
    """Call, and count how it ended; only podium's own errors may come out."""
    global failures, launches
    before = recording.launch_count()
    try:
        call(*args, **keywords)
        launches += 1
        if recording.launch_count() > before:
            # Adding is deciding, for Python: so valgrind sees a byte that nobody has written.
            told = recording.last()
            sum(told.packed) + sum(sum(value) for _, value in told.attributes)
    except PodiumError:
        failures += 1


def arguments(module: podium.Module) -> None:
    """Launch with values of every type, right ones and wrong ones."""
    launch = module["scalars"][1, 1]
    good: list[Any] = [-1, 2, -3, 4, -5, 6, -7, 8, 0.5, 1.5, True]
    attempt(launch, *good)
    for position in range(len(good)):
        for value in (2**63, -1, 2**64, 10**400, 1e300, float("nan"), None, "x", True, ctypes.c_int(5)):
            attempt(launch, *good[:position], value, *good[position + 1 :])
    for count in range(len(good) + 2):
        attempt(launch, *(good * 2)[:count])
    for value in (bytes(24), bytes(23), bytes(25), None, 5, "x"):
        attempt(module["structs"][1, 1], 1, value, 2, None)


def places(module: podium.Module) -> None:
    """Launch into streams and contexts, on both devices, with arrays, addresses and nothing."""
    kernel = module["saxpy"]
    arrays = [podium.empty(64, "fp32", device=device) for device in (0, 1)]
    streams = [podium.Stream(device=device) for device in (0, 1)]
    for x, stream in zip(arrays, streams):
        for handle in (None, 0, 1, 2, stream, stream.handle, 2**63, -1, "x"):
            attempt(kernel[2, 32], x, x, 2.0, 64, stream=handle)
    attempt(kernel[1, 1], arrays[0], arrays[1], 2.0, 64)
    for value in (None, arrays[0].ptr, 2**64, -1, bytearray(16), [1.0], object()):
        attempt(kernel[1, 1], value, value, 2.0, 64)
    thread = threading.Thread(target=attempt, args=(kernel[1, 1], arrays[1], arrays[1], 2.0, 64))
    thread.start()
    thread.join()


def shapes(module: podium.Module) -> None:
    """Launch with every shape and attribute, also such as cannot be."""
    kernel = module["nothing"]
    for grid in (0, 1, (2, 3, 4), 2**31, 2**32, (1, 65536)):
        for block in (1, (8, 8, 8), 1024, 1025, (1, 1, 65)):
            attempt(lambda grid=grid, block=block: kernel[grid, block]())
    settings: list[dict[str, Any]] = [{"cluster": 2}, {"cluster": 16}, {"cooperative": True}, {"dependent": True}]
    settings += [{"shared": 49152}, {"shared": 232448}, {"shared": 2**31}, {"attributes": {"priority": -1}}]
    settings += [{"cluster": (2, 2), "cooperative": True, "dependent": True, "attributes": {"priority": -1}}]
    settings += [{"attributes": {"unknown": 1}}, {"attributes": {"cluster_scheduling_policy": 1}}]
    for each in settings:
        attempt(lambda each=each: kernel[podium.LaunchConfig((8, 8), 32, **each)]())


def refusals(module: podium.Module) -> None:
    """Launch while the driver refuses each of the calls that a launch makes."""
    x, stream = podium.empty(64, "fp32", device=1), podium.Stream(device=1)
    config = podium.LaunchConfig(4, 32, cluster=2)
    names = ("cuLaunchKernel", "cuLaunchKernelEx", "cuCtxGetDevice", "cuStreamIsCapturing", "cuCtxPushCurrent")
    for name in (*names, "cuCtxGetCurrent"):
        for status in (1, 201, 709, 999):
            recording.fail(name, status)
            attempt(module["saxpy"][1, 32], x, x, 2.0, 64, stream=stream)
            attempt(module["saxpy"][config], x, x, 2.0, 64, stream=stream)
            recording.fail(name, 0, 0)


def captures(module: podium.Module) -> None:
    """Launch into a graph, and run it."""
    from cuda.bindings import driver

    stream, x = podium.Stream(), podium.empty(64, "fp32")
    attempt(module["saxpy"][2, 32], x, x, 2.0, 64, stream=stream)
    driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode(0))
    for number in range(4):
        attempt(module["saxpy"][2, 32], x, x, 2.0, number, stream=stream)
    status, graph = driver.cuStreamEndCapture(stream.handle)
    assert status == 0, status
    _, run = driver.cuGraphInstantiate(graph, 0)
    driver.cuGraphLaunch(run, stream.handle)
    driver.cuGraphExecDestroy(run)
    driver.cuGraphDestroy(graph)


def graphs(module: podium.Module) -> None:
    """Capture graphs of podium's own, replay them in every stream, change them, and let the driver refuse."""
    kernel, x = module["saxpy"], podium.empty(64, "fp32")
    attempt(kernel[2, 32], x, x, 2.0, 64)
    with podium.capture() as graph:
        for number in range(4):
            kernel[2, 32](x, x, 2.0, number)
    for _ in range(3):
        attempt(graph.replay)
        attempt(graph)
        for handle in (None, 0, 1, 2, podium.Stream(), graph.stream.handle, 2**63, -1, "x"):
            attempt(graph.replay, stream=handle)
            attempt(graph.replay, handle)
        for wrong in ({"n": "1"}, {"m": 1}, {"grid": -1}, {"grid": 0}, {"block": 2048}, {"n": 3}, {"grid": 8}):
            attempt(graph.launches[0].update, **wrong)
        for name in ("cuGraphLaunch", "cuGraphExecKernelNodeSetParams", "cuCtxGetDevice", "cuStreamIsCapturing"):
            for status in (1, 201, 709, 999):
                recording.fail(name, status)
                attempt(graph.replay, stream=graph.stream)
                attempt(graph.launches[1].update, n=status)
                recording.fail(name, 0, 0)
    thread = threading.Thread(target=attempt, args=(graph.replay,))
    thread.start()
    thread.join()


def main() -> None:
    """Do all of it as often as the command line says."""
    module = kernels()
    for _ in range(int(sys.argv[1])):
        for part in (arguments, places, shapes, refusals, captures, graphs):
            part(module)
        gc.collect()
    sys.stdout.write(f"{launches} launches, {failures} failures\n")


if __name__ == "__main__":
    main()
