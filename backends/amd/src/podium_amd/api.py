"""The functions of the HIP runtime, as ctypes calls them.

A process that finds everything in the cache launches from generated C, and the rest that it asks of the runtime comes
here: importing hip-python costs more than all of that together. Calls release the interpreter lock.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

from podium.backend import ForkSafeLock
from podium.errors import BackendError, ForkedProcessError

from podium_amd import library
from podium_amd.status import describe, hip_version, take_last_error

__all__ = ["PROTOTYPES", "Functions", "address", "check", "has", "hip", "is_initialised"]

PROTOTYPES = {
    "hipInit": "u",
    "hipGetDeviceCount": "P",
    "hipGetDevice": "P",
    "hipSetDevice": "i",
    "hipDeviceGetName": "Pii",
    "hipDeviceGetAttribute": "Pii",
    "hipDeviceTotalMem": "Pi",
    "hipGetDeviceProperties": "Pi",
    "hipGetDevicePropertiesR0600": "Pi",
    "hipDeviceCanAccessPeer": "Pii",
    "hipDeviceEnablePeerAccess": "iu",
    "hipDeviceSynchronize": "",
    "hipDeviceGetStreamPriorityRange": "PP",
    "hipThreadExchangeStreamCaptureMode": "P",
    "hipModuleLoadData": "PP",
    "hipModuleGetFunction": "PPP",
    "hipModuleGetGlobal": "PPPP",
    "hipModuleUnload": "P",
    "hipFuncGetAttribute": "PiP",
    "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor": "PPiz",
    "hipModuleOccupancyMaxPotentialBlockSize": "PPPzi",
    "hipMalloc": "Pz",
    "hipFree": "P",
    "hipMallocAsync": "PzP",
    "hipFreeAsync": "PP",
    "hipHostMalloc": "Pzu",
    "hipHostFree": "P",
    "hipMemGetInfo": "PP",
    "hipMemcpyAsync": "PPziP",
    "hipPointerGetAttributes": "PP",
    "hipStreamCreateWithPriority": "Pui",
    "hipStreamDestroy": "P",
    "hipStreamSynchronize": "P",
    "hipStreamGetDevice": "PP",
    "hipStreamIsCapturing": "PP",
    "hipStreamWaitEvent": "PPu",
    "hipEventCreateWithFlags": "Pu",
    "hipEventDestroy": "P",
    "hipEventRecord": "PP",
    "hipEventQuery": "P",
    "hipEventSynchronize": "P",
    "hipEventElapsedTime": "PPP",
    "hipModuleLaunchKernel": "PuuuuuuuPPP",
    "hipModuleLaunchCooperativeKernel": "PuuuuuuuPP",
    "hipDrvLaunchKernelEx": "PPPP",
}
"""What podium calls, with the types of the parameters: P is a pointer or a handle, i and u are int and unsigned, z a
size. All return a status. Others are called in `podium_amd.status`, since they return something else."""

_TYPES: dict[str, Any] = {"P": ctypes.c_void_p, "i": ctypes.c_int, "u": ctypes.c_uint, "z": ctypes.c_size_t}

_lock = ForkSafeLock()
_process: int | None = None


class Functions:
    """The runtime's functions by name; each is looked up when it is first used, and returns its status."""

    def __getattr__(self, name: str) -> Any:
        if name not in PROTOTYPES:
            raise AttributeError(f"podium_amd.api has no prototype of {name}")
        place = address(name)
        if not place:
            raise BackendError(
                f"The HIP runtime {library.path()} has no function {name}: its version is {hip_version()}. Install a "
                f"newer ROCm"
            )
        function = ctypes.CFUNCTYPE(ctypes.c_int, *(_TYPES[each] for each in PROTOTYPES[name]))(place)
        setattr(self, name, function)
        return function


_functions = Functions()


def hip() -> Functions:
    """Return the runtime's functions, after initialising it once in the process.

    Raises `BackendError` if that fails, `ForkedProcessError` in a child of the process that did it.
    """
    if _process != os.getpid():
        _initialise()
    return _functions


def is_initialised() -> bool:
    """Tell whether podium has initialised the runtime in this process."""
    return _process == os.getpid()


def check(status: int, what: str) -> None:
    """Raise `BackendError` with the name and the text of a status that is not success."""
    if status:
        take_last_error()
        name, text = describe(status)
        raise BackendError(f"{what}: {name}: {text} (status {status}; HIP {hip_version()})")


@cache
def address(name: str) -> int:
    """Return the address of a function of the runtime; 0 if there is none.

    hipGetDeviceProperties is the form of HIP 5 in all versions, and R0600 that of those since; other functions have
    one form.
    """
    function = getattr(library.library(), name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def has(name: str) -> bool:
    """Tell whether this runtime has a function."""
    return bool(address(name))


def _initialise() -> None:
    global _process
    with _lock:
        if _process == os.getpid():
            return
        if _process is not None:
            raise ForkedProcessError("amd", _process)
        library.mapped()  # another copy may have come since
        status = _functions.hipInit(0)
        count = ctypes.c_int()
        if not status:  # which is the last word on whether there is a device
            status = _functions.hipGetDeviceCount(ctypes.byref(count))
        if status or not count.value:
            take_last_error()
            name, text = describe(status or 100)
            raise BackendError(
                f"The HIP runtime {library.path()} finds no device: {name}: {text} (status {status or 100}; HIP "
                f"{hip_version()})"
            )
        _process = os.getpid()
