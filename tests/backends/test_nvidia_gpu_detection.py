"""Detection on a machine with an NVIDIA GPU: nothing is woken, masks are understood as the driver does."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from nvidia_machines import python

from podium_nvidia.driver import NvidiaDriver

pytestmark = pytest.mark.gpu

COUNT = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int()
status = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
"""


def test_asking_wakes_no_driver(gpu: NvidiaDriver) -> None:
    """ACT-05, ACT-08: after asking, no device is open or mapped; a mask set then counts, and so does a forked child."""
    program = (
        """
import json, os
from podium_nvidia.detection import inactive_reason
reason = inactive_reason()
opened = [os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd") if number.isdigit()
          and os.path.exists(f"/proc/self/fd/{number}")]
mapped = open("/proc/self/maps").read()
devices = [name for name in opened if "nvidia" in name] + [line for line in mapped.splitlines() if "/dev/nvidia" in line]
threads = len(os.listdir("/proc/self/task"))
child = os.fork()
if child == 0:
    exec(COUNT)
    os._exit(0 if status == 0 and count.value > 0 else 1)
first = os.waitpid(child, 0)[1]
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
exec(COUNT)
print(json.dumps([reason, devices, threads, first, status, inactive_reason()]))
"""
    ).replace("exec(COUNT)", f"exec({COUNT!r})")
    reason, devices, threads, child, masked, after = json.loads(python(program))
    assert (reason, devices, threads, child) == (None, [], 1, 0)
    assert masked == 100  # CUDA_ERROR_NO_DEVICE
    assert "hides every GPU" in after


def test_masks_mean_what_the_driver_takes_them_for(gpu: NvidiaDriver) -> None:
    """A mask that is a reason leaves the driver no device, and one with a device is no reason."""
    count = len([name for name in os.listdir("/dev") if name.startswith("nvidia") and name[6:].isdigit()])
    program = COUNT + "from podium_nvidia.detection import inactive_reason\nprint(count.value, inactive_reason())"
    seen = {}
    masks = [
        "",
        " ",
        "-1",
        "none",
        "NoDevFiles",
        "0",
        " 0",
        "0 ",
        "+0",
        "0,-1",
        "0,none",
        "-1,0",
        "abc,0",
        str(count),
        "0x0",
        "0 1",
        "0;1",
        "0.5",
        "-0",
        "0,0",
        "4294967296",
    ]
    for mask in [*masks, f"{count - 1},{count}", "GPU-", "GPU-zz", "gpu-", "MIG-none"]:
        number, _, reason = python(program, CUDA_VISIBLE_DEVICES=mask).partition(" ")
        seen[mask] = (int(number), reason == "None")
    unsound = {mask: found for mask, found in seen.items() if found[0] > 0 and not found[1]}
    assert unsound == {}
    missed = {mask for mask, found in seen.items() if found[0] == 0 and found[1]}
    assert missed <= {"0x0", "+0", "GPU-", "GPU-zz", "gpu-", "MIG-none", " 0", "0 "}, seen


def test_the_library_is_the_one_of_the_kernel_driver(gpu: NvidiaDriver) -> None:
    """What was found is the driver's own library, with a version that the kernel driver agrees with."""
    program = """
from podium_nvidia import libcuda
from podium_nvidia.system import System
print(libcuda.path(), libcuda.version(), System().kernel_driver_version)
"""
    path, version, kernel = python(program).split()
    assert Path(path).name.startswith("libcuda.so.1")
    assert int(version) >= 11030
    assert kernel in ("None", os.path.realpath(path).rpartition(".so.")[2])
