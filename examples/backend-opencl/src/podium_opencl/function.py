"""Kernels on devices: programs made of binaries, the block of their variables, and what launches need of them."""

from __future__ import annotations

import ctypes
import itertools
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from podium.backend import Function, ObjectCode
from podium.errors import LoadError, PodiumError

from podium_opencl.compiler import FORMAT, digest
from podium_opencl.device import OpenDevice, open_device
from podium_opencl.memory import SvmBuffer, svm_at
from podium_opencl.opencl import address, function, opencl
from podium_opencl.program import build_binary
from podium_opencl.status import INVALID_KERNEL, SUCCESS, describe, status_of
from podium_opencl.stream import known_streams

__all__ = ["Loaded", "find", "load", "load_beside", "unload", "variable"]

_SLOTS = 16
_ALIGNMENT = 256


class KernelRecord(ctypes.Structure):
    """struct podium_opencl_kernel of podium_opencl.h: what the generated C needs. Its address is the handle."""

    _fields_ = [
        ("set_argument", ctypes.c_void_p),
        ("set_pointer", ctypes.c_void_p),
        ("enqueue", ctypes.c_void_p),
        ("flush", ctypes.c_void_p),
        ("create", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("queue", ctypes.c_void_p),
        ("streams", ctypes.c_void_p),
        ("program", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("variables", ctypes.c_uint64),
        ("sizes", ctypes.POINTER(ctypes.c_uint32)),
        ("count", ctypes.c_uint32),
        ("has_variables", ctypes.c_uint32),
        ("has_shared", ctypes.c_uint32),
        ("declares", ctypes.c_uint32),
        ("kernels", ctypes.c_void_p * _SLOTS),
    ]


@dataclass(eq=False)
class _Module:
    """A program on a device, with the memory of its variables."""

    number: int
    device: OpenDevice
    program: Any
    variables: SvmBuffer | None
    kernels: list[Loaded] = field(default_factory=list)


class Loaded:
    """A kernel on a device.

    A kernel of OpenCL holds the arguments of its next launch, so that one must not be used by two threads: each launch
    takes one that nobody has, or makes another.
    """

    def __init__(self, module: _Module, symbol: str, sizes: tuple[int, ...], metadata: dict[str, Any]) -> None:
        device = module.device
        self.module, self.symbol, self.sizes = module, symbol, sizes
        self.device = device
        self.free: list[int] = []  # that the launches of the interpreted level have made, and use again
        first = opencl().Kernel(module.program, symbol)
        self.uses_variables = bool(metadata.get("uses_variables"))
        # Of code that was not compiled here, the number of parameters tells.
        extra = int(first.num_args) - len(sizes) - self.uses_variables
        self.dynamic_shared = bool(metadata.get("dynamic_shared", extra == 1))
        self.surplus = extra - self.dynamic_shared
        self.declares = not _reaches_all(device)
        info = opencl().kernel_work_group_info
        ask = first.get_work_group_info
        limits = [int(ask(info.WORK_GROUP_SIZE, device.handle)), metadata.get("max_threads")]
        self.max_threads = min(int(each) for each in limits if each)
        self.attributes = {
            "shared": int(ask(info.LOCAL_MEM_SIZE, device.handle)),
            "local": int(ask(info.PRIVATE_MEM_SIZE, device.handle)),
        }
        self.attributes["max_dynamic_shared"] = max(0, device.record.max_shared - self.attributes["shared"])
        self._sizes = (ctypes.c_uint32 * max(1, len(sizes)))(*sizes)
        self.record = KernelRecord(
            address("clSetKernelArg"),
            address("clSetKernelArgSVMPointer"),
            address("clEnqueueNDRangeKernel"),
            address("clFlush"),
            address("clCreateKernel"),
            address("clReleaseKernel"),
            device.queue_handle,
            known_streams(device.index),
            module.program.int_ptr,
            symbol.encode(),
            module.variables.ptr if module.variables is not None else 0,
            self._sizes,
            len(sizes),
            self.uses_variables,
            self.dynamic_shared,
            self.declares,
        )
        self.handle = ctypes.addressof(self.record)

    def take(self) -> tuple[int | None, int]:
        """Return a kernel of OpenCL that no other launch has; None, and the status, if there can be none."""
        with suppress(IndexError):
            return self.free.pop(), SUCCESS
        program = self.record.program
        if program is None:
            return None, INVALID_KERNEL
        status = ctypes.c_int()
        kernel = _create()(program, self.record.symbol, ctypes.byref(status))
        return kernel, status.value

    def give_back(self, kernel: int) -> None:
        """Keep a kernel of OpenCL for the next launch, or release it if the code is gone."""
        if self.record.program is None:
            _release()(kernel)
        else:
            self.free.append(kernel)

    def release(self) -> None:
        """Release the kernels of OpenCL. Launches that are under way keep what they need."""
        self.record.program = None
        _retired.append((self.record, self._sizes))
        for index, kernel in enumerate(self.record.kernels):
            if kernel:
                self.record.kernels[index] = None
                _release()(kernel)
        while self.free:
            _release()(self.free.pop())


@cache
def _create() -> Any:
    status = ctypes.POINTER(ctypes.c_int)
    return function("clCreateKernel", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, status)


@cache
def _release() -> Any:
    return function("clReleaseKernel", ctypes.c_int, ctypes.c_void_p)


# No locks, since finalizers unload, in the middle of anything; each step is one by itself.
_numbers = itertools.count(1)
_modules: dict[int, _Module] = {}
_loaded: dict[int, Loaded] = {}
# Records of code that is gone, for as long as a launch by an old handle may look there.
_retired: deque[Any] = deque(maxlen=1024)


def find(handle: int) -> Loaded | None:
    """Return the kernel that a handle stands for; None if it is not loaded any more."""
    return _loaded.get(handle)


def load(code: ObjectCode, name: str, device: int) -> Function:
    """Load code on a device, and a kernel of it. Raises `LoadError`."""
    code.entry(name)
    place = open_device(device)
    _check(code, name, place)
    built = build_binary(place, code.code)
    if built.program is None:
        raise _error(built.status, code, name, place, built.log)
    try:
        module = _Module(next(_numbers), place, built.program, _variables(code, built.program, place))
        loaded = _kernel(module, code, name)
    except opencl().Error as error:
        raise _error(status_of(error), code, name, place) from None
    _modules[module.number] = module
    return _function(loaded)


def load_beside(function: Function, code: ObjectCode, name: str, device: int) -> Function:
    """Return another kernel of code that is loaded; it has the same variables. Raises `LoadError`."""
    code.entry(name)
    module = _modules[function.module]
    try:
        return _function(_kernel(module, code, name))
    except opencl().Error as error:
        raise _error(status_of(error), code, name, module.device) from None


def unload(function: Function, device: int) -> None:
    """Release code and the memory of its variables. It does not raise."""
    module = _modules.pop(function.module, None)
    with suppress(PodiumError):
        for loaded in module.kernels if module is not None else ():
            _loaded.pop(loaded.handle, None)
            loaded.release()


def variable(function: Function, code: ObjectCode, name: str, device: int) -> tuple[int, int]:
    """Return the address and the bytes of a variable of loaded code. Raises `LoadError`."""
    module = _modules[function.module]
    place = code.metadata.get("variables", {}).get(name)
    if place is None or module.variables is None:
        raise LoadError(f"The code has no variable {name}", backend="opencl")
    offset, size = place
    return module.variables.ptr + offset, size


def _kernel(module: _Module, code: ObjectCode, name: str) -> Loaded:
    sizes = tuple(0 if each.type.kind == "pointer" else each.type.size for each in code.entry(name).signature.passed)
    metadata = code.metadata.get("kernels", {}).get(name, {})
    loaded = Loaded(module, code.symbol(name), sizes, metadata)
    if loaded.surplus:
        raise LoadError(
            f"{name}({code.entry(name).signature}): the kernel has {len(sizes) + loaded.surplus} parameters in the "
            f"binary, and {len(sizes)} in its signature",
            kernel=name,
            backend="opencl",
        )
    most = module.device.record.max_shared
    if loaded.attributes["shared"] > most:  # PoCL would end the process when it is launched
        raise LoadError(
            f"{name}: the kernel has {loaded.attributes['shared']} bytes of shared memory, and device "
            f"{module.device.index} has {most}: share less, or compute in smaller blocks",
            kernel=name,
            backend="opencl",
        )
    module.kernels.append(loaded)
    _loaded[loaded.handle] = loaded
    return loaded


def _function(loaded: Loaded) -> Function:
    return Function(loaded.handle, loaded.module.number, loaded.max_threads, loaded.attributes)


def _variables(code: ObjectCode, program: Any, device: OpenDevice) -> SvmBuffer | None:
    """Make the block of the module's variables, with the values that the source gives them."""
    size = int(code.metadata.get("variables_bytes") or 0)
    if not size:
        return None
    cl, block = opencl(), SvmBuffer(size, _ALIGNMENT, device.index, None)
    queue = device.queue
    cl.enqueue_svm_memfill(queue, svm_at(block.ptr, size), bytes(1))
    initialiser = code.metadata.get("initialiser")
    if initialiser:
        kernel = cl.Kernel(program, initialiser)
        kernel.set_arg(0, svm_at(block.ptr, size))
        cl.enqueue_nd_range_kernel(queue, kernel, (1, 1, 1), (1, 1, 1))
    queue.finish()
    return block


def _reaches_all(device: OpenDevice) -> bool:
    """Tell whether kernels reach memory that nobody has told them of: that of the host does on a processor."""
    cl = opencl()
    system = cl.device_svm_capabilities.FINE_GRAIN_SYSTEM
    return bool(device.handle.type & cl.device_type.CPU) or bool(int(device.handle.svm_capabilities) & int(system))


def _check(code: ObjectCode, name: str, device: OpenDevice) -> None:
    expected = code.metadata.get("digest")
    if code.format != FORMAT:
        problem = f"the code is {code.format!r}, and this backend loads {FORMAT!r}"
    elif code.target.arch != device.target.arch:
        problem = f"it was built for {code.target.arch}, and device {device.index} is {device.target.arch}"
    elif not code.code or (expected is not None and expected != digest(code.code)):
        problem = "the bytes are damaged; compile it again"
    else:
        return
    raise LoadError(f"{name}: {problem}", kernel=name, backend="opencl", binary=str(code.target))


def _error(status: int, code: ObjectCode, name: str, device: OpenDevice, log: str = "") -> LoadError:
    status_name, text = describe(status)
    made_by = code.metadata.get("driver")
    advice = (
        f". It was built by driver {made_by} and this is {device.versions['driver']}: compile it again"
        if status != SUCCESS and made_by not in (None, device.versions["driver"])
        else ""
    )
    said = f"\n{log}" if log else ""
    return LoadError(
        f"{name}: {status_name}: {text} (status {status}, device {device.index}){advice}{said}",
        kernel=name,
        backend="opencl",
        binary=str(code.target),
        versions=device.versions,
    )
