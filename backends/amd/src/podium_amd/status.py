"""Statuses of the HIP runtime: their names and texts, what to do about them, and the version of what is at work."""

from __future__ import annotations

import ctypes
import os
import re
from functools import cache

from podium.errors import LaunchError

from podium_amd import library

__all__ = [
    "ALREADY_ENABLED",
    "CAPTURE_IMPLICIT",
    "INVALID_IMAGE",
    "INVALID_KERNEL_FILE",
    "INVALID_VALUE",
    "NOT_FOUND",
    "NOT_READY",
    "NO_BINARY",
    "NO_DEVICE",
    "OUT_OF_MEMORY",
    "STICKY",
    "describe",
    "hip_version",
    "launch_error",
    "spell_version",
    "take_last_error",
]

INVALID_VALUE, OUT_OF_MEMORY, NO_DEVICE = 1, 2, 100
INVALID_IMAGE, NO_BINARY, INVALID_KERNEL_FILE = 200, 209, 218
NOT_FOUND, NOT_READY, ALREADY_ENABLED, CAPTURE_IMPLICIT = 500, 600, 704, 906

# After one of these the device answers every call with the same status, if the runtime has not ended the process.
STICKY = frozenset({700, 710})
_LOST = "the device and all memory in it are lost to this process; start a new one"
_ADVICE = {
    1: "a value that the call was given is out of the runtime's bounds",
    2: "free memory of the device, or use less of it",
    9: "a block or a grid is larger than the device takes",
    98: "the code has no kernel of this name for the device",
    100: "no GPU is visible; look at HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES, and at what rocminfo lists",
    101: "no GPU is visible, or there is none of this number, or a stream is another device's; look at "
    "HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES",
    400: "the stream, the event or the function belongs to another device, or has been destroyed",
    701: "a block needs more registers or LDS than a compute unit has; make the block smaller",
    719: "the block may be larger than the kernel was compiled for; or an earlier launch has failed",
    720: "the blocks of a cooperative grid run all at once; kernel.occupancy() tells how many fit",
    801: "this device or this version of HIP cannot do that",
    900: "this is not possible while a stream is captured into a graph",
    906: "the default stream cannot be used while another stream is captured into a graph",
}


def describe(status: int) -> tuple[str, str]:
    """Return the name and the text of a status, with what to do where that is known. Works without a device."""
    name = _ask("hipGetErrorName", status)
    text = _ask("hipGetErrorString", status) or "a status that this runtime has no text for"
    advice = _LOST if status in STICKY else _ADVICE.get(status)
    return name or f"hipError_{status}", f"{text}; {advice}" if advice else text


def _ask(function: str, status: int) -> str:
    ask = library.library()[function]
    ask.argtypes, ask.restype = [ctypes.c_int], ctypes.c_char_p
    return (ask(status) or b"").decode("utf-8", "replace")


def take_last_error() -> int:
    """Clear the error that the runtime keeps for the thread, when it becomes an exception; return its status.

    Other libraries ask for it after launches of their own, and would take it for theirs.
    """
    status: int = library.library().hipGetLastError()
    return status


def launch_error(status: int, what: str, device: int) -> LaunchError:
    """Make the error for a status that a call other than a launch gave."""
    take_last_error()
    return LaunchError.of_call(what, "amd", device, status, describe(status), earlier=status in STICKY)


def hip_version() -> str:
    """Return the version of the HIP runtime, as "7.2.53211", or what its file tells while it is not initialised."""
    from podium_amd.api import is_initialised

    return _asked_version() if is_initialised() else _version_of_name(os.path.realpath(library.path()))


def spell_version(version: int) -> str:
    """Write a version of HIP as people do: 70253211 is 7.2.53211."""
    return f"{version // 10_000_000}.{version // 100_000 % 100}.{version % 100_000}"


@cache
def _asked_version() -> str:
    version = ctypes.c_int()
    status = library.library().hipRuntimeGetVersion(ctypes.byref(version))
    return _version_of_name(os.path.realpath(library.path())) if status else spell_version(version.value)


def _version_of_name(file: str) -> str:
    found = re.search(r"\.so\.(\d+(?:\.\d+)*)$", file)
    return found[1] if found else f"{library.abi()}"
