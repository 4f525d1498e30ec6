"""The functions of the CUDA driver, as ctypes calls them, and cuda-python on the same copy of the library.

A process that finds everything in the cache launches from generated C, and the rest that it asks of the driver comes
here: importing cuda-python costs more than all of that together. `bindings` gives it where it is used, in launches of
the interpreted level. Calls release the interpreter lock.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

from podium.backend import ForkSafeLock
from podium.errors import BackendError, ForkedProcessError

from podium_nvidia import libcuda
from podium_nvidia.status import NOT_INITIALIZED, SUCCESS, describe, driver_version

__all__ = ["Functions", "address", "bindings", "check", "driver", "has", "uninitialised"]

# Names as the manual has them, without a version. P is a pointer or a handle, i and u are int and unsigned, z a size.
_PROTOTYPES = {
    "cuInit": "u",
    "cuDeviceGetCount": "P",
    "cuDeviceGet": "Pi",
    "cuDeviceGetName": "Pii",
    "cuDeviceGetAttribute": "Pii",
    "cuDeviceTotalMem": "Pi",
    "cuDeviceCanAccessPeer": "Pii",
    "cuDevicePrimaryCtxRetain": "Pi",
    "cuCtxGetCurrent": "P",
    "cuCtxSetCurrent": "P",
    "cuCtxPushCurrent": "P",
    "cuCtxPopCurrent": "P",
    "cuCtxGetDevice": "P",
    "cuCtxSynchronize": "",
    "cuCtxGetStreamPriorityRange": "PP",
    "cuCtxEnablePeerAccess": "Pu",
    "cuThreadExchangeStreamCaptureMode": "P",
    "cuLibraryLoadData": "PPPPuPPu",
    "cuLibraryGetKernel": "PPP",
    "cuLibraryGetKernelCount": "PP",
    "cuLibraryEnumerateKernels": "PuP",
    "cuLibraryGetGlobal": "PPPP",
    "cuLibraryGetManaged": "PPPP",
    "cuLibraryUnload": "P",
    "cuKernelGetName": "PP",
    "cuKernelGetFunction": "PP",
    "cuKernelGetAttribute": "PiPi",
    "cuKernelSetAttribute": "iiPi",
    "cuKernelGetParamInfo": "PzPP",
    "cuModuleLoadDataEx": "PPuPP",
    "cuModuleGetFunction": "PPP",
    "cuModuleGetGlobal": "PPPP",
    "cuModuleUnload": "P",
    "cuFuncGetAttribute": "PiP",
    "cuFuncSetAttribute": "Pii",
    "cuFuncGetParamInfo": "PzPP",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": "PPiz",
    "cuOccupancyMaxActiveClusters": "PPP",
    "cuOccupancyMaxPotentialBlockSize": "PPPPzi",
    "cuMemAlloc": "Pz",
    "cuMemFree": "P",
    "cuMemAllocAsync": "PzP",
    "cuMemFreeAsync": "PP",
    "cuMemHostAlloc": "Pzu",
    "cuMemFreeHost": "P",
    "cuMemGetInfo": "PP",
    "cuMemcpyAsync": "PPzP",
    "cuPointerGetAttributes": "uPPP",
    "cuStreamCreateWithPriority": "Pui",
    "cuStreamDestroy": "P",
    "cuStreamSynchronize": "P",
    "cuStreamGetCtx": "PP",
    "cuStreamIsCapturing": "PP",
    "cuStreamWaitEvent": "PPu",
    "cuEventCreate": "Pu",
    "cuEventDestroy": "P",
    "cuEventRecord": "PP",
    "cuEventQuery": "P",
    "cuEventSynchronize": "P",
    "cuEventElapsedTime": "PPP",
    "cuStreamBeginCapture": "Pi",
    "cuStreamEndCapture": "PP",
    "cuStreamGetCaptureInfo": "PPPPPP",
    "cuGraphInstantiateWithFlags": "PPz",
    "cuGraphKernelNodeGetParams": "PP",
    "cuGraphExecKernelNodeSetParams": "PPP",
    "cuGraphNodeSetEnabled": "PPu",
    "cuGraphLaunch": "PP",
    "cuGraphExecDestroy": "P",
    "cuGraphDestroy": "P",
}
_TYPES: dict[str, Any] = {"P": ctypes.c_void_p, "i": ctypes.c_int, "u": ctypes.c_uint, "z": ctypes.c_size_t}

# The version of CUDA whose form of each function is meant: the first that has cuGetProcAddress, or the function.
_VERSION = 11030
_VERSIONS = {
    **dict.fromkeys((name for name in _PROTOTYPES if name.startswith(("cuLibrary", "cuKernel"))), 12000),
    "cuLaunchKernelEx": 11060,
    "cuGraphInstantiateWithFlags": 11040,
    "cuGraphKernelNodeGetParams": 12000,
    "cuGraphExecKernelNodeSetParams": 12000,
    "cuGraphNodeSetEnabled": 11060,
    "cuOccupancyMaxActiveClusters": 11070,
    "cuKernelGetName": 12030,
    "cuKernelGetParamInfo": 12040,
    "cuFuncGetParamInfo": 12040,
    "cuLibraryGetKernelCount": 12040,
    "cuLibraryEnumerateKernels": 12040,
}
_LEGACY_STREAM = 1  # CU_GET_PROC_ADDRESS_LEGACY_STREAM: stream 0 is the legacy one

_OF_LAUNCHES = tuple(f"podium_nvidia.{each}" for each in ("launcher", "function", "stream", "toolchain"))
_OF_COMPILING = ("cuda.bindings.driver", "cuda.bindings.nvrtc", "podium_nvidia.compiler", "podium_nvidia.launch")

_lock = ForkSafeLock()
_process: int | None = None


class Functions:
    """The driver's functions by name; each is looked up when it is first used, and returns its status."""

    def __getattr__(self, name: str) -> Any:
        if name not in _PROTOTYPES:
            raise AttributeError(f"podium_nvidia.api has no prototype of {name}")
        place = address(name)
        if not place:
            raise BackendError(
                f"The CUDA driver has no function {name}: its version is {driver_version()}. Install a newer driver"
            )
        function = _prototype(_PROTOTYPES[name])(place)
        setattr(self, name, function)
        return function


def _prototype(letters: str) -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_int, *(_TYPES[each] for each in letters))  # which ctypes keeps


_functions = Functions()


def driver() -> Functions:
    """Return the driver's functions, after initialising it once in the process.

    Raises `BackendError` if that fails, `ForkedProcessError` in a child of the process that did it.
    """
    if _process != os.getpid():
        _initialise()
    return _functions


def uninitialised() -> Functions:
    """Return the driver's functions without initialising it; most then say that it is not."""
    return _functions


def check(status: int, what: str) -> None:
    """Raise `BackendError` with the name and the text of a status that is not success."""
    if status:
        name, text = describe(status)
        raise BackendError(f"{what}: {name}: {text} (status {status}; driver {driver_version()})")


@cache
def address(name: str) -> int:
    """Return the address of a function of the driver, given without a version in its name; 0 if there is none."""
    library = libcuda.library()
    place = ctypes.c_void_p()
    version = ctypes.c_int(_VERSIONS.get(name, _VERSION))
    asked = (name.encode(), ctypes.byref(place), version, ctypes.c_uint64(_LEGACY_STREAM))
    if hasattr(library, "cuGetProcAddress_v2"):
        status = library.cuGetProcAddress_v2(*asked, None)
    elif hasattr(library, "cuGetProcAddress"):
        status = library.cuGetProcAddress(*asked)
    else:
        return _symbol(library, name)
    return place.value or 0 if status == SUCCESS else 0


def _symbol(library: ctypes.CDLL, name: str) -> int:
    """Look a function up by its name in the library; the newest form of it comes first."""
    for spelling in (f"{name}_v2", name):
        if hasattr(library, spelling):
            return ctypes.cast(getattr(library, spelling), ctypes.c_void_p).value or 0
    return 0


def has(name: str) -> bool:
    """Tell whether this driver has a function."""
    return bool(address(name))


def bindings() -> Any:
    """Return ``cuda.bindings.driver`` on the library that everything else here uses, initialised.

    Raises `BackendError` if it cannot be imported, or cannot use the driver.
    """
    driver()
    return _bindings()


@cache
def _bindings() -> Any:
    try:
        import cuda.bindings.driver
    except ImportError as error:
        raise BackendError(
            f"Launches of the interpreted level need cuda-python, which cannot be imported here: {error}. Install it, "
            f"pip install 'cuda-python>=12.6', or launch from the main interpreter"
        ) from error
    try:
        cuda.bindings.driver.cuDriverGetVersion()
    except RuntimeError as error:  # it says so in the first call: it has no use for drivers of an older major version
        from importlib.metadata import version

        raise BackendError(
            f"cuda-python {version('cuda-bindings')} cannot use this driver, {driver_version()}: {error}. Install a "
            f"newer driver, or an older cuda-python; with PODIUM_LAUNCHER=generated podium needs none to launch"
        ) from None
    return cuda.bindings.driver


def _prepare() -> None:
    """Do what a first launch would, and that does not depend on what the program does until then."""
    from podium.backend import foresee_launchers

    from podium_nvidia import toolchain
    from podium_nvidia.launcher import NvidiaLauncher

    for letters in {*_PROTOTYPES.values()}:
        _prototype(letters)
    foresee_launchers(NvidiaLauncher.template)
    toolchain.foresee()


def _open_compiler() -> None:
    from podium_nvidia import toolchain

    toolchain.open_foreseen()


def _initialise() -> None:
    global _process
    with _lock:
        if _process == os.getpid():
            return
        if _process is not None:
            raise ForkedProcessError("nvidia", _process)
        # Where another library has initialised it there is no time to make use of, and the thread would be in the way.
        if _functions.cuCtxGetDevice(ctypes.byref(ctypes.c_int())) == NOT_INITIALIZED:
            from podium.backend import import_early

            import_early(_OF_LAUNCHES, _OF_COMPILING, _prepare, _open_compiler)
        status = _functions.cuInit(0)
        if status:
            name, text = describe(status)
            raise BackendError(
                f"The CUDA driver {libcuda.path()} cannot be initialised: {name}: {text} (status {status}; driver "
                f"{driver_version()})"
            )
        _process = os.getpid()
