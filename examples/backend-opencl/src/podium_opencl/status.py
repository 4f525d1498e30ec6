"""The statuses of OpenCL, and the errors that are made of them."""

from __future__ import annotations

from typing import Any

from podium.errors import BackendError, LaunchError

__all__ = [
    "INVALID_KERNEL",
    "INVALID_KERNEL_ARGS",
    "INVALID_QUEUE",
    "OUT_OF_MEMORY",
    "SUCCESS",
    "describe",
    "launch_error",
    "status_of",
    "unusable",
]

SUCCESS = 0
INVALID_QUEUE, INVALID_KERNEL, INVALID_KERNEL_ARGS = -36, -48, -52
OUT_OF_MEMORY = frozenset({-4, -5, -6})
"""The statuses that say that something is used up: memory for an object, other resources, memory of the host."""

_STATUSES = {
    0: ("CL_SUCCESS", "no error"),
    -1: ("CL_DEVICE_NOT_FOUND", "there is no such device"),
    -2: ("CL_DEVICE_NOT_AVAILABLE", "the device is there and cannot be used now"),
    -3: ("CL_COMPILER_NOT_AVAILABLE", "the platform has no compiler"),
    -4: ("CL_MEM_OBJECT_ALLOCATION_FAILURE", "the device has no memory left for this"),
    -5: ("CL_OUT_OF_RESOURCES", "the device has too little of something, such as registers or local memory"),
    -6: ("CL_OUT_OF_HOST_MEMORY", "the host has no memory left for this"),
    -7: (
        "CL_PROFILING_INFO_NOT_AVAILABLE",
        "the time of this command was not taken; a queue of pyopencl's takes it with PROFILING_ENABLE",
    ),
    -11: ("CL_BUILD_PROGRAM_FAILURE", "the program could not be built"),
    -14: ("CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", "a command that was waited for has failed"),
    -30: ("CL_INVALID_VALUE", "a value is outside what the call takes"),
    -33: ("CL_INVALID_DEVICE", "this is no device of the context"),
    -34: ("CL_INVALID_CONTEXT", "the objects are of different contexts: of different devices, say"),
    -36: (
        "CL_INVALID_COMMAND_QUEUE",
        "the device has no such stream: pass a podium.Stream of it that is alive, or what "
        "podium_opencl.as_stream makes of a queue of pyopencl's",
    ),
    -38: ("CL_INVALID_MEM_OBJECT", "this is no memory of the context"),
    -42: ("CL_INVALID_BINARY", "the device does not take this binary"),
    -43: ("CL_INVALID_BUILD_OPTIONS", "the compiler does not know these options"),
    -44: ("CL_INVALID_PROGRAM", "this is no program of the context"),
    -45: ("CL_INVALID_PROGRAM_EXECUTABLE", "the program is not built for this device"),
    -46: ("CL_INVALID_KERNEL_NAME", "the program has no kernel of that name"),
    -47: ("CL_INVALID_KERNEL_DEFINITION", "the kernel is not the same on all devices"),
    -48: ("CL_INVALID_KERNEL", "this is no kernel"),
    -49: ("CL_INVALID_ARG_INDEX", "the kernel has fewer parameters than its signature"),
    -50: ("CL_INVALID_ARG_VALUE", "the device does not take the value of a parameter"),
    -51: ("CL_INVALID_ARG_SIZE", "a parameter has another size in the kernel than in its signature"),
    -52: ("CL_INVALID_KERNEL_ARGS", "a parameter of the kernel was not set"),
    -53: ("CL_INVALID_WORK_DIMENSION", "a launch has one to three axes"),
    -54: ("CL_INVALID_WORK_GROUP_SIZE", "the block is larger than this kernel can have on the device"),
    -55: ("CL_INVALID_WORK_ITEM_SIZE", "the block is longer on an axis than the device allows"),
    -56: ("CL_INVALID_GLOBAL_OFFSET", "the grid does not begin at zero"),
    -57: ("CL_INVALID_EVENT_WAIT_LIST", "what is waited for is no event"),
    -58: ("CL_INVALID_EVENT", "this is no event"),
    -59: ("CL_INVALID_OPERATION", "the device cannot do this"),
    -61: ("CL_INVALID_BUFFER_SIZE", "the memory is larger than the device can have in one piece"),
    -63: ("CL_INVALID_GLOBAL_WORK_SIZE", "the grid is larger than the device can count"),
    -1001: ("CL_PLATFORM_NOT_FOUND_KHR", "no OpenCL platform is installed"),
}


def describe(status: int) -> tuple[str, str]:
    """Return the name and the text of a status; those of vendors have their number for a name."""
    known = _STATUSES.get(status)
    if known is not None:
        return known
    return f"OpenCL status {status}", "the OpenCL platform gives a status that the standard's first versions lack"


def status_of(error: Any) -> int:
    """Return the status in an error of pyopencl's, or of `launch_error`."""
    return error.status if isinstance(error, LaunchError) else int(error.code)


def launch_error(status: int, what: str, device: int) -> LaunchError:
    """Make the error for a call that failed beside a launch; `what` was being done."""
    return LaunchError.of_call(what, "opencl", device, status, describe(status))


def unusable(error: Any, what: str) -> BackendError:
    """Make the error for a platform or a device that cannot be used; `what` was being done."""
    status = status_of(error)
    name, text = describe(status)
    return BackendError(f"OpenCL cannot be used: {what}: {name}: {text} (status {status} of {error.routine})")
