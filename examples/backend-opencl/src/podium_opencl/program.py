"""Programs of OpenCL: built from source for one device, or made of a binary.

They are made by calls of the OpenCL library and not by pyopencl's class, which would look into a cache of its own
first, leave the source of a failure in a temporary file, and warn of whatever a compiler says.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from podium_opencl.device import OpenDevice
from podium_opencl.opencl import function, opencl
from podium_opencl.status import SUCCESS

__all__ = ["Built", "build_binary", "build_source"]

_BUILD_LOG = 0x1183  # CL_PROGRAM_BUILD_LOG


@dataclass(frozen=True)
class Built:
    """What building gave: the program, unless the status is a failure, and what the compiler said."""

    program: Any
    status: int
    log: str


def build_source(device: OpenDevice, source: str, options: str) -> Built:
    """Build OpenCL C for a device."""
    text = source.encode("utf-8", "surrogateescape")
    texts, lengths = (ctypes.c_char_p * 1)(text), (ctypes.c_size_t * 1)(len(text))
    status = ctypes.c_int()
    handle = _functions().with_source(device.context.int_ptr, 1, texts, lengths, ctypes.byref(status))
    return _build(device, handle, status.value, options)


def build_binary(device: OpenDevice, binary: bytes) -> Built:
    """Make a program of the binary that a built one for the same device gave."""
    handles = (ctypes.c_void_p * 1)(device.handle.int_ptr)
    binaries, lengths = (ctypes.c_char_p * 1)(binary), (ctypes.c_size_t * 1)(len(binary))
    status, of_binary = ctypes.c_int(), (ctypes.c_int * 1)()
    handle = _functions().with_binary(
        device.context.int_ptr, 1, handles, lengths, binaries, of_binary, ctypes.byref(status)
    )
    return _build(device, handle, status.value or of_binary[0], "")


def _build(device: OpenDevice, handle: int | None, status: int, options: str) -> Built:
    if not handle:
        return Built(None, status, "")
    program = opencl().Program.from_int_ptr(handle, retain=False)  # which releases it in any case
    log = ""
    if status == SUCCESS:
        handles = (ctypes.c_void_p * 1)(device.handle.int_ptr)
        status = _functions().build(handle, 1, handles, options.encode(), None, None)
        log = _log(handle, device.handle.int_ptr)
    return Built(program if status == SUCCESS else None, status, log)


def _log(handle: int, device: int) -> str:
    size = ctypes.c_size_t()
    if _functions().build_info(handle, device, _BUILD_LOG, 0, None, ctypes.byref(size)) or size.value < 2:
        return ""
    text = ctypes.create_string_buffer(size.value)
    if _functions().build_info(handle, device, _BUILD_LOG, size.value, text, None):
        return ""
    return text.value.decode("utf-8", "replace").strip()


class _Functions:
    """The calls of the OpenCL library that make programs."""

    def __init__(self) -> None:
        handle, size, integer = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint
        texts, sizes = ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(size)
        handles, status = ctypes.POINTER(handle), ctypes.POINTER(ctypes.c_int)
        self.with_source = function("clCreateProgramWithSource", handle, handle, integer, texts, sizes, status)
        self.with_binary = function(
            "clCreateProgramWithBinary", handle, handle, integer, handles, sizes, texts, status, status
        )
        self.build = function("clBuildProgram", ctypes.c_int, handle, integer, handles, ctypes.c_char_p, handle, handle)
        self.build_info = function(
            "clGetProgramBuildInfo", ctypes.c_int, handle, handle, integer, size, ctypes.c_char_p, sizes
        )


@cache
def _functions() -> _Functions:
    return _Functions()
