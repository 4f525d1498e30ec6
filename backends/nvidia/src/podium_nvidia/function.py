"""Kernels on devices: code is loaded, its limits are raised and read, and its parameters are compared.

A CUDA driver since 12.0 loads a library, which is there in every context of a device; an older one loads a module into
the primary context. Both are a number here, and so is a kernel of either.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from podium.backend import ForkSafeLock, Function, ObjectCode
from podium.errors import LoadError, PodiumError

from podium_nvidia import context
from podium_nvidia.api import driver, has
from podium_nvidia.device import Attribute, attribute
from podium_nvidia.image import is_whole
from podium_nvidia.status import INVALID_VALUE, NOT_FOUND

__all__ = ["hold", "let_go", "load", "load_beside", "mark_captured", "unload", "uses_libraries", "variable"]

# CUfunction_attribute
_MAX_DYNAMIC_SHARED, _NON_PORTABLE_CLUSTER = 8, 14
_ATTRIBUTES = {
    "max_threads": 0,
    "shared": 1,
    "constant": 2,
    "local": 3,
    "registers": 4,
    "ptx_version": 5,
    "binary_version": 6,
}
_CLUSTER_ATTRIBUTES = {"cluster_x": 11, "cluster_y": 12, "cluster_z": 13}
_UNLINKED = {"ltoir": "LTO-IR", "object": "relocatable"}
_LOG_BYTES = 16 << 10
_INFO_LOG, _INFO_LOG_SIZE, _ERROR_LOG, _ERROR_LOG_SIZE = 3, 4, 5, 6  # CUjit_option


class _Loaded:
    """Code on a device: a CUlibrary, or a CUmodule of the primary context."""

    def __init__(self, handle: int, device: int, is_library: bool) -> None:
        self.handle, self.device, self.is_library = handle, device, is_library
        self.functions: list[int] = []
        self.captured = False  # a graph of others may launch a kernel of it for as long as the process lives
        self.graphs = 0  # how many launches of podium's own graphs there are
        self.dropped = False  # given to `unload` while there were


_lock = ForkSafeLock()
_loaded: dict[int, _Loaded] = {}
_of_function: dict[int, _Loaded] = {}


def uses_libraries() -> bool:
    """Tell whether the driver has libraries, whose kernels belong to no context."""
    return has("cuLibraryLoadData")


def load(code: ObjectCode, name: str, device: int) -> Function:
    """Load code on a device, and a kernel of it. Raises `LoadError`."""
    code.entry(name)
    if code.format in _UNLINKED:
        raise LoadError(
            f"{name}: the code is {_UNLINKED[code.format]}, and is to be linked first: podium_nvidia.link([...])",
            kernel=name,
            backend="nvidia",
        )
    if not is_whole(code.code):
        raise LoadError(f"{name}: the {code.format} is cut short; compile it again", kernel=name, backend="nvidia")
    is_library = uses_libraries()
    with _place(device, is_library), context.relaxed():
        handle = _load_data(code, name, device, is_library)
        loaded = _Loaded(handle, device, is_library)
        try:
            function = _kernel(loaded, code, name)
        except PodiumError:
            _release(loaded)
            raise
        _loaded[handle] = loaded
    return function


def load_beside(function: Function, code: ObjectCode, name: str, device: int) -> Function:
    """Return another kernel of code that is loaded. Raises `LoadError`."""
    code.entry(name)
    loaded = _loaded[function.module]
    with _place(device, loaded.is_library), context.relaxed():
        return _kernel(loaded, code, name)


def unload(function: Function, device: int) -> None:
    """Release code, as soon as no graph can launch a kernel of it. It does not raise."""
    with _lock:
        loaded = _loaded.get(function.module)
        if loaded is None:
            return
        loaded.dropped = True
    _release_unused(loaded)


def hold(function: int) -> _Loaded | None:
    """Keep the code of a kernel for a launch of a graph, until it is given to `let_go`."""
    with _lock:
        loaded = _of_function.get(function)
        if loaded is not None:
            loaded.graphs += 1
        return loaded


def let_go(loaded: _Loaded) -> None:
    """Take back what `hold` did. It does not raise."""
    with _lock:
        loaded.graphs -= 1
    _release_unused(loaded)


def _release_unused(loaded: _Loaded) -> None:
    with _lock:
        if not loaded.dropped or loaded.captured or loaded.graphs or _loaded.pop(loaded.handle, None) is None:
            return
        for handle in loaded.functions:
            _of_function.pop(handle, None)
    try:
        with _place(loaded.device, loaded.is_library), context.relaxed():
            _release(loaded)
    except PodiumError:  # the context is lost, and the code with it
        pass


def mark_captured(function: int) -> None:
    """Note that a kernel was launched into a graph of others, which can be replayed at any time."""
    with _lock:
        loaded = _of_function.get(function)
        if loaded is not None:
            loaded.captured = True


def variable(function: Function, code: ObjectCode, name: str, device: int) -> tuple[int, int]:
    """Return the address and the bytes of a variable of loaded code. Raises `LoadError`."""
    loaded, functions = _loaded[function.module], driver()
    place, size, symbol = ctypes.c_void_p(), ctypes.c_size_t(), code.symbol(name).encode()
    found = (ctypes.byref(place), ctypes.byref(size), loaded.handle, symbol)
    with _place(device, loaded.is_library), context.relaxed():
        if loaded.is_library:
            status = functions.cuLibraryGetGlobal(*found)
            if status == NOT_FOUND:
                status = functions.cuLibraryGetManaged(*found)
        else:
            status = functions.cuModuleGetGlobal(*found)
    if status:
        raise _error(status, "", code, f"the variable {name}", device)
    return place.value or 0, size.value


def _place(device: int, is_library: bool) -> Any:
    """Have a context current: any of the device for a library, the primary one for a module, which belongs to it."""
    return context.current(device) if is_library else context.current_primary(device)


def _load_data(code: ObjectCode, name: str, device: int, is_library: bool) -> int:
    functions, handle = driver(), ctypes.c_void_p()
    logs = [ctypes.create_string_buffer(_LOG_BYTES) for _ in range(2)]
    options = (ctypes.c_int * 4)(_INFO_LOG, _INFO_LOG_SIZE, _ERROR_LOG, _ERROR_LOG_SIZE)
    places = [ctypes.addressof(log) for log in logs]
    values = (ctypes.c_void_p * 4)(places[0], _LOG_BYTES, places[1], _LOG_BYTES)
    count = 0 if code.format == "cubin" else 4
    data = code.code + b"\0" if code.format == "ptx" else code.code
    if is_library:
        status = functions.cuLibraryLoadData(ctypes.byref(handle), data, options, values, count, None, None, 0)
    else:
        status = functions.cuModuleLoadDataEx(ctypes.byref(handle), data, count, options, values)
    if status:
        log = "\n".join(log.value.decode("utf-8", "replace").strip("\0 \n") for log in reversed(logs)).strip()
        raise _error(status, log, code, name, device)
    return handle.value or 0


def _kernel(loaded: _Loaded, code: ObjectCode, name: str) -> Function:
    functions, place, symbol = driver(), ctypes.c_void_p(), code.symbol(name).encode()
    device = loaded.device
    if loaded.is_library:
        status = functions.cuLibraryGetKernel(ctypes.byref(place), loaded.handle, symbol)
    else:
        status = functions.cuModuleGetFunction(ctypes.byref(place), loaded.handle, symbol)
    if status:
        known = _names(loaded) if status == NOT_FOUND else ""
        raise _error(status, known, code, name, device)
    handle = place.value or 0
    if loaded.is_library:
        # now, rather than in the first launch, which may be in a capture or in a hurry
        status = functions.cuKernelGetFunction(ctypes.byref(ctypes.c_void_p()), handle)
        if status:
            raise _error(status, "", code, name, device)
    try:
        _compare_parameters(loaded, handle, code, name)
        known_attributes = _raise_limits(loaded, handle)
    except _StatusError as error:
        raise _error(error.status, "", code, name, device) from None
    with _lock:
        loaded.functions.append(handle)
        _of_function[handle] = loaded
    return Function(handle, loaded.handle, known_attributes["max_threads"], known_attributes)


def _names(loaded: _Loaded) -> str:
    """Return the kernels that a library has, for an error."""
    if not loaded.is_library or not has("cuLibraryEnumerateKernels"):
        return ""
    functions, count, text = driver(), ctypes.c_uint(), ctypes.c_char_p()
    if functions.cuLibraryGetKernelCount(ctypes.byref(count), loaded.handle):
        return ""
    kernels = (ctypes.c_void_p * max(1, count.value))()
    if functions.cuLibraryEnumerateKernels(kernels, count, loaded.handle):
        return ""
    names = []
    for kernel in kernels[: count.value]:
        if functions.cuKernelGetName(ctypes.byref(text), kernel) == 0:
            names.append((text.value or b"").decode("utf-8", "replace"))
    return f"The binary has: {', '.join(names) or 'no kernels'}"


def _release(loaded: _Loaded) -> None:
    functions = driver()
    # A status can only be that of earlier work, which others are told.
    (functions.cuLibraryUnload if loaded.is_library else functions.cuModuleUnload)(loaded.handle)


def _error(status: int, log: str, code: ObjectCode, what: str, device: int) -> PodiumError:
    from podium_nvidia.load_error import load_error  # what loads does not pay for it

    return load_error(status, log, code, what, device)


# ---- limits ----


class _StatusError(Exception):
    """A status other than success, on its way to where the error is made."""

    def __init__(self, status: int) -> None:
        self.status = status


def _check(status: int) -> None:
    if status:
        raise _StatusError(status)


def _raise_limits(loaded: _Loaded, handle: int) -> dict[str, int]:
    """Opt in to all that the device has, and return what is known of the kernel."""
    device = loaded.device
    found = {key: _get(loaded, handle, number) for key, number in _ATTRIBUTES.items()}
    most = attribute(device, Attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
    present = _get(loaded, handle, _MAX_DYNAMIC_SHARED)
    if most - found["shared"] > present:
        present = most - found["shared"]
        _set(loaded, handle, _MAX_DYNAMIC_SHARED, present)
    found["max_dynamic_shared"] = present
    if attribute(device, Attribute.CLUSTER_LAUNCH):
        _set(loaded, handle, _NON_PORTABLE_CLUSTER, 1)
        required = {key: _get(loaded, handle, number) for key, number in _CLUSTER_ATTRIBUTES.items()}
        if any(required.values()):
            found |= required
    return found


def _get(loaded: _Loaded, handle: int, number: int) -> int:
    value = ctypes.c_int()
    if loaded.is_library:
        status = driver().cuKernelGetAttribute(ctypes.byref(value), number, handle, loaded.device)
    else:
        status = driver().cuFuncGetAttribute(ctypes.byref(value), number, handle)
    _check(status)
    return value.value


def _set(loaded: _Loaded, handle: int, number: int, value: int) -> None:
    if loaded.is_library:
        status = driver().cuKernelSetAttribute(number, value, handle, loaded.device)
    else:
        status = driver().cuFuncSetAttribute(handle, number, value)
    _check(status)


# ---- parameters ----


def _compare_parameters(loaded: _Loaded, handle: int, code: ObjectCode, name: str) -> None:
    """Raise `LoadError` if the binary's parameters are not those of the signature, as far as the driver tells."""
    if not has("cuKernelGetParamInfo"):
        return
    signature = code.entry(name).signature
    wanted = [
        (f"parameter {parameter.name!r} ({parameter.type})", parameter.type.size) for parameter in signature.passed
    ]
    for which in ("global", "profile"):
        if code.metadata.get(f"{which}_scratch_size") is not None:
            wanted.append((f"the pointer to {which} scratch memory", 8))
    found = list(_parameter_sizes(loaded, handle))
    for index, (what, size) in enumerate(wanted):
        if index >= len(found):
            problem = f"the binary has {len(found)} parameters and the signature {len(wanted)}; {what} is too many"
        elif found[index] != size:
            problem = f"{what} has {size} bytes, and {found[index]} in the binary, where it is number {index}"
        else:
            continue
        raise LoadError(f"{name}({signature}): {problem}", kernel=name, backend="nvidia")
    if len(found) > len(wanted):
        raise LoadError(
            f"{name}({signature}): the binary has {len(found)} parameters and the signature {len(wanted)}; number "
            f"{len(wanted)}, of {found[len(wanted)]} bytes, is missing",
            kernel=name,
            backend="nvidia",
        )


def _parameter_sizes(loaded: _Loaded, handle: int) -> Iterator[int]:
    functions = driver()
    ask = functions.cuKernelGetParamInfo if loaded.is_library else functions.cuFuncGetParamInfo
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    index = 0
    while True:
        status = ask(handle, index, ctypes.byref(offset), ctypes.byref(size))
        if status == INVALID_VALUE:  # there is none of this number
            return
        _check(status)
        yield size.value
        index += 1
