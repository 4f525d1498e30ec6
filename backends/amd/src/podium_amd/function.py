"""Kernels on devices: code is loaded, and what is known of each kernel is read from its metadata."""

from __future__ import annotations

import ctypes

from podium.backend import ForkSafeLock, Function, ObjectCode, is_whole
from podium.errors import LoadError, PodiumError

from podium_amd import context
from podium_amd.api import hip
from podium_amd.arch import Arch
from podium_amd.code_object import CodeObject, CodeObjectKernel, is_bundle, is_code_object, unbundled
from podium_amd.device import Attribute, attribute, target
from podium_amd.load_error import load_error
from podium_amd.parameters import mismatch
from podium_amd.status import NOT_FOUND, take_last_error

__all__ = ["load", "load_beside", "mark_captured", "unload", "variable"]

# hipFunction_attribute, for code that is a compressed bundle, whose metadata only the runtime reads
_ATTRIBUTES = {"max_threads": 0, "shared": 1, "constant": 2, "local": 3, "registers": 4}


class _Loaded:
    """Code on a device: a hipModule_t, the bytes that it was made of, and what they say."""

    def __init__(self, handle: int, device: int, data: bytes, described: CodeObject | None) -> None:
        self.handle, self.device, self.described = handle, device, described
        self.data = data  # the runtime may read them for as long as the module lives
        self.functions: list[int] = []
        self.captured = False  # a graph may launch a kernel of it for as long as the process lives


_lock = ForkSafeLock()
_loaded: dict[int, _Loaded] = {}
_of_function: dict[int, _Loaded] = {}


def load(code: ObjectCode, name: str, device: int) -> Function:
    """Load code on a device, and a kernel of it. Raises `LoadError`."""
    code.entry(name)
    described = None
    data = unbundled(code.code, Arch.parse(target(device).arch)) if is_bundle(code.code) else code.code
    if data is not None and (is_code_object(data) or code.format == "hsaco"):
        try:
            if not is_whole(data):
                raise ValueError("it is cut short")
            described = CodeObject(data)
        except ValueError as error:
            raise LoadError(
                f"{name}: the code object cannot be read: {error}; compile it again", kernel=name, backend="amd"
            ) from None
    _kernel_of(described, code, name, device)  # before the runtime reads the code
    functions, handle = hip(), ctypes.c_void_p()
    with context.current(device), context.relaxed():
        status = functions.hipModuleLoadData(ctypes.byref(handle), code.code)
        if status:
            raise load_error(status, "", code, name, device)
        loaded = _Loaded(handle.value or 0, device, code.code, described)
        try:
            function = _kernel(loaded, code, name)
        except PodiumError:
            functions.hipModuleUnload(loaded.handle)
            raise
        _loaded[loaded.handle] = loaded
    return function


def load_beside(function: Function, code: ObjectCode, name: str, device: int) -> Function:
    """Return another kernel of code that is loaded. Raises `LoadError`."""
    code.entry(name)
    with context.current(device), context.relaxed():
        return _kernel(_loaded[function.module], code, name)


def unload(function: Function, device: int) -> None:
    """Release code, unless a graph may still launch a kernel of it. It does not raise."""
    with _lock:
        loaded = _loaded.get(function.module)
        if loaded is None or loaded.captured:
            return
        del _loaded[function.module]
        for handle in loaded.functions:
            _of_function.pop(handle, None)
    try:
        with context.current(loaded.device), context.relaxed():
            if hip().hipModuleUnload(loaded.handle):  # a status can only be that of earlier work, which others are told
                take_last_error()
    except PodiumError:  # the device is lost, and the code with it
        pass


def mark_captured(function: int) -> None:
    """Note that a kernel was launched into a graph, which can be replayed at any time."""
    with _lock:
        loaded = _of_function.get(function)
        if loaded is not None:
            loaded.captured = True


def variable(function: Function, code: ObjectCode, name: str, device: int) -> tuple[int, int]:
    """Return the address and the bytes of a variable of loaded code. Raises `LoadError`."""
    loaded = _loaded[function.module]
    place, size = ctypes.c_void_p(), ctypes.c_size_t()
    symbol = code.symbol(name).encode()
    with context.current(device), context.relaxed():
        status = hip().hipModuleGetGlobal(ctypes.byref(place), ctypes.byref(size), loaded.handle, symbol)
    if status:
        raise load_error(status, "", code, f"the variable {name}", device)
    return place.value or 0, size.value


def _kernel(loaded: _Loaded, code: ObjectCode, name: str) -> Function:
    place, symbol, device = ctypes.c_void_p(), code.symbol(name), loaded.device
    described = _kernel_of(loaded.described, code, name, device)
    status = hip().hipModuleGetFunction(ctypes.byref(place), loaded.handle, symbol.encode())
    if status:
        raise load_error(status, "", code, name, device)
    handle = place.value or 0
    known_attributes = _described(described) if described is not None else _asked(handle, code, name, device)
    most = attribute(device, Attribute.MAX_SHARED_MEMORY_PER_BLOCK)
    known_attributes["max_dynamic_shared"] = max(0, most - known_attributes["shared"])
    with _lock:
        loaded.functions.append(handle)
        _of_function[handle] = loaded
    return Function(handle, loaded.handle, known_attributes["max_threads"], known_attributes)


def _kernel_of(described: CodeObject | None, code: ObjectCode, name: str, device: int) -> CodeObjectKernel | None:
    """Return what is known of a kernel, if anything of the code is. Raises `LoadError` if it is not as expected."""
    if described is None:
        return None
    kernel = described.kernel(code.symbol(name))
    if kernel is None:
        known = f"It has: {', '.join(each.symbol for each in described.kernels) or 'no kernels'}"
        raise load_error(NOT_FOUND, known, code, name, device)
    _check(kernel, code, name, device)
    return kernel


def _check(described: CodeObjectKernel, code: ObjectCode, name: str, device: int) -> None:
    """Raise `LoadError` for code whose parameters or warps are not those that launches will reckon with."""
    hidden = sum(code.metadata.get(f"{which}_scratch_size") is not None for which in ("global", "profile"))
    wrong = mismatch(described, code.entry(name), hidden)
    if wrong is None and described.wavefront_size != code.target.warp_size:
        wrong = (
            f"kernel {name!r}: the target says warps of {code.target.warp_size} threads, the code has "
            f"{described.wavefront_size}"
        )
    if wrong is not None:
        raise LoadError(wrong, kernel=name, backend="amd")


def _described(kernel: CodeObjectKernel) -> dict[str, int]:
    return {
        "max_threads": kernel.max_threads,
        "shared": kernel.shared,
        "local": kernel.local,
        "registers": kernel.vector_registers,
        "accumulation_registers": kernel.accumulation_registers,
        "scalar_registers": kernel.scalar_registers,
        "spilled_registers": kernel.spilled_registers,
        "warp_size": kernel.wavefront_size,
    }


def _asked(handle: int, code: ObjectCode, name: str, device: int) -> dict[str, int]:
    found = {}
    for key, number in _ATTRIBUTES.items():
        value = ctypes.c_int()
        status = hip().hipFuncGetAttribute(ctypes.byref(value), number, handle)
        if status:
            raise load_error(status, "", code, name, device)
        found[key] = value.value
    return found
