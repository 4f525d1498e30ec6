"""Statuses of the CUDA driver: their names and texts, what to do about them, and the versions of what is at work."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from pathlib import Path

from podium.errors import LaunchError

from podium_nvidia import libcuda

__all__ = [
    "ALREADY_ENABLED",
    "CAPTURE_IMPLICIT",
    "CAPTURE_INVALIDATED",
    "CAPTURE_UNJOINED",
    "CAPTURE_UNSUPPORTED",
    "CONTEXT_IS_DESTROYED",
    "ILLEGAL_STATE",
    "INVALID_CLUSTER_SIZE",
    "INVALID_CONTEXT",
    "INVALID_IMAGE",
    "INVALID_PTX",
    "INVALID_SOURCE",
    "INVALID_VALUE",
    "JIT_COMPILER_NOT_FOUND",
    "NOT_FOUND",
    "NOT_INITIALIZED",
    "NOT_READY",
    "NO_BINARY",
    "NO_CONTEXT",
    "OUT_OF_MEMORY",
    "STICKY",
    "SUCCESS",
    "UNSUPPORTED_PTX_VERSION",
    "cuda_version",
    "describe",
    "driver_version",
    "launch_error",
    "spell_version",
]

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED = 0, 1, 2, 3
INVALID_IMAGE, INVALID_CONTEXT, NO_BINARY = 200, 201, 209
INVALID_PTX, JIT_COMPILER_NOT_FOUND, UNSUPPORTED_PTX_VERSION = 218, 221, 222
INVALID_SOURCE, ILLEGAL_STATE, NOT_FOUND, NOT_READY = 300, 401, 500, 600
ALREADY_ENABLED, CONTEXT_IS_DESTROYED = 704, 709
CAPTURE_UNSUPPORTED, CAPTURE_INVALIDATED, CAPTURE_UNJOINED = 900, 901, 904
CAPTURE_IMPLICIT, INVALID_CLUSTER_SIZE = 906, 912
NO_CONTEXT = frozenset({INVALID_CONTEXT, CONTEXT_IS_DESTROYED})  # none that could be used is current

# After one of these the context answers every call with the same status.
STICKY = frozenset({214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721})
_LOST = (
    "the device's context and all memory in it are lost to this process, and every later call says the same; start a "
    "new process"
)
_ADVICE = {
    1: "a part of the launch is out of the driver's bounds",
    2: "free memory of the device, or use less of it",
    34: "this is the library for linking, without a driver behind it; install the NVIDIA driver, or set "
    f"{libcuda.VARIABLE} to the right copy",
    100: "no GPU is visible; look at CUDA_VISIBLE_DEVICES and at what nvidia-smi lists",
    400: "the stream, the event or the function belongs to another context, or has been destroyed",
    701: "a block needs more registers or shared memory than a multiprocessor has; make the block smaller",
    720: "the blocks of a cooperative grid run all at once; kernel.occupancy() tells how many fit",
    803: "the library and the kernel module of the NVIDIA driver have different versions; restart the machine",
    804: "the forward-compatibility package serves data-centre GPUs only; remove it from the library path",
    900: "this is not possible while a stream is captured into a graph",
    901: "the stream is captured, and something was done before that no graph can hold, such as to wait for it",
    907: "the event was recorded in a capture, so it is a place in a graph and never comes to pass itself",
    906: "the legacy default stream cannot be used while another stream is captured into a graph",
    912: "the device has no place for a cluster of this size",
}


def describe(status: int) -> tuple[str, str]:
    """Return the name and the text of a status, with what to do where that is known. Works without a device."""
    library = libcuda.library()
    name = _ask(library.cuGetErrorName, status) or f"CUDA_ERROR_{status}"
    text = _ask(library.cuGetErrorString, status) or "a status that this driver has no text for"
    advice = _LOST if status in STICKY else _ADVICE.get(status)
    return name, f"{text}; {advice}" if advice else text


def _ask(function: ctypes._CFuncPtr, status: int) -> str:  # type: ignore[name-defined]
    text = ctypes.c_char_p()
    function(ctypes.c_int(status), ctypes.byref(text))
    return (text.value or b"").decode("utf-8", "replace")


def launch_error(status: int, what: str, device: int) -> LaunchError:
    """Make the error for a status that a call other than a launch gave."""
    return LaunchError.of_call(what, "nvidia", device, status, describe(status), earlier=status in STICKY)


@cache
def cuda_version() -> int:
    """Return the CUDA version that the driver speaks, such as 13000; 0 if it does not tell."""
    version = ctypes.c_int()
    status = libcuda.library().cuDriverGetVersion(ctypes.byref(version))
    return version.value if status == SUCCESS else 0


def spell_version(version: int) -> str:
    """Write a version of CUDA as people do: 13000 is 13.0."""
    return f"{version // 1000}.{version % 1000 // 10}"


def driver_version(file: Path = Path("/proc/driver/nvidia/version")) -> str:
    """Return the version of the NVIDIA driver with that of CUDA that it speaks, as "580.95.05 (CUDA 13.0)"."""
    try:
        found = re.search(r"\b\d{3,}\.\d+(\.\d+)?\b", file.read_text())
    except OSError:  # Windows, WSL, or no kernel driver
        found = None
    cuda = f"CUDA {spell_version(cuda_version())}"
    return f"{found[0]} ({cuda})" if found else cuda
