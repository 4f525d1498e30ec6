"""Where the memory of an array is: address, device, layout and element type, for every protocol that arrays speak.

Tried in this order: a DLPack C exchange table on the type, podium's own arrays, the buffer protocol (where the driver
reaches host memory), ``__dlpack__``, ``__cuda_array_interface__``, ``data_ptr()``. Numbers are those of ``dlpack.h``.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Container
from typing import Any

from podium._exchange import Answer, Tensor, exchange_table, is_contiguous
from podium._record import record

__all__ = [
    "ANYWHERE",
    "CPU",
    "CUDA",
    "DEVICE_NAMES",
    "HOST_TYPES",
    "ROCM",
    "ArrayLocation",
    "VersionedTensor",
    "dlpack_element",
    "dlpack_tensor",
    "has_masked",
    "interface_location",
    "is_address",
    "locate",
]

CPU, CUDA, ROCM = 1, 2, 10
HOST_TYPES = frozenset({CPU, 3, 11})  # what the host's own code reaches, also pinned: it is in nobody's stream
ANYWHERE = HOST_TYPES | {13}  # what does not tell where a launch goes, since it belongs to no device in particular
DEVICE_NAMES = {
    1: "cpu",
    2: "cuda",
    3: "cuda pinned host",
    4: "opencl",
    7: "vulkan",
    8: "metal",
    10: "rocm",
    11: "rocm pinned host",
    13: "cuda managed",
    14: "oneapi",
}

_FLOAT_NAMES = {16: "fp16", 32: "fp32", 64: "fp64"}
# code of DLDataType -> spelling for a number of bits
_DLPACK_TYPES: dict[int, Callable[[int], str | None]] = {
    0: lambda bits: f"i{bits}",
    1: lambda bits: f"u{bits}",
    2: _FLOAT_NAMES.get,
    4: {16: "bf16"}.get,
    5: {64: "c64", 128: "c128"}.get,
    6: {8: "i1"}.get,
    10: {8: "fp8e4nv"}.get,
    12: {8: "fp8e5"}.get,
}


@record(frozen=True)
class ArrayLocation:
    """Where an array is.

    `device_type` is DLPack's number, `device` the index or -1 if the protocol does not tell; `element` is the podium
    spelling of the element type, or None if there is none, and `typed` tells whether it can be compared with one;
    `swapped` tells that the bytes of the elements are in the other order; `owner` must live until the launch has been
    issued; `stream` is the current stream of the array's own library on that device, or None if it does not tell;
    `pending` is the stream that has the work before which the array is not ready, where its owner tells one.
    """

    address: int
    device_type: int
    device: int
    element: str | None
    contiguous: bool
    readonly: bool
    owner: object
    stream: int | None = None
    swapped: bool = False
    typed: bool = True
    pending: int | None = None


class VersionedTensor(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_capsule_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)

_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY


_PROTOCOLS = ("__dlpack__", "__cuda_array_interface__", "data_ptr")


def is_address(value: object) -> bool:
    """Tell whether a value is an integer or a bare pointer of ctypes rather than an array; a bool is neither."""
    kind = type(value)
    if isinstance(value, (int, ctypes.c_void_p)):
        return kind is not bool
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.bool_):  # an index, too, before numpy 2.3
        return False
    return hasattr(kind, "__index__") and not any(hasattr(kind, protocol) for protocol in _PROTOCOLS)


def has_masked(value: Any) -> bool:
    """Tell whether a value is a masked array of numpy in which an element is masked."""
    return hasattr(type(value), "harden_mask") and b"\1" in value.mask.tobytes()


def locate(
    value: object,
    host_memory: bool,
    reachable: Container[int],
    dlpack_stream: Callable[[int], int | None] = lambda device: None,
    stream_first: bool = False,
) -> ArrayLocation | None:
    """Find the memory of `value`; None if it is not an array in any protocol.

    An array on a device that is not `reachable` is not exported, and has no address then; one of the host's may be.
    `dlpack_stream` is asked, for device arrays, for the stream of their device that ``__dlpack__`` shall wait for. With
    `stream_first`, an array whose ``__cuda_array_interface__`` tells its library's current stream is read by that:
    ``__dlpack__`` tells none.
    """
    own = getattr(type(value), "_podium_location", None)
    if own is not None:
        location: ArrayLocation = own(value)
        return location
    table = exchange_table(type(value))
    if table is not None:
        tensor = table.tensor(value)
        if tensor is not None:
            place = tensor.device.type, tensor.device.index
            stream = None if place[0] in HOST_TYPES else table.stream(*place, Answer())
            return _location(tensor, value, readonly=False, stream=stream)
    if host_memory and (found := _from_buffer(value)) is not None:
        return found
    device = _dlpack_device(value)
    if device is not None:
        if stream_first and device[0] == CUDA and CUDA in reachable and tells_stream(value):
            found = interface_location(value, value.__cuda_array_interface__)  # type: ignore[attr-defined]
            if found is not None:
                return found
        if device[0] in reachable or device[0] in HOST_TYPES:
            found = _from_dlpack(value, device, dlpack_stream)
            if found is not None:
                return found
        if device[0] not in reachable:
            return ArrayLocation(0, *device, None, True, False, value)
    interface = getattr(value, "__cuda_array_interface__", None)
    if isinstance(interface, dict) and (found := interface_location(value, interface)) is not None:
        return found
    data_ptr = getattr(value, "data_ptr", None)
    if callable(data_ptr) and not isinstance(value, type):
        address = data_ptr()
        if isinstance(address, int) and 0 <= address < 1 << 64:
            return ArrayLocation(address, *(device or (-1, -1)), None, True, False, value, typed=False)
    return None


_telling: dict[int, tuple[type, bool]] = {}  # by the numbers of types, which are kept
_MOST_TYPES = 256


def tells_stream(value: Any) -> bool:
    """Tell whether the ``__cuda_array_interface__`` of a type has a stream; the first array of the type is asked."""
    kind = type(value)
    known = _telling.get(id(kind))
    if known is None:
        try:
            interface = getattr(value, "__cuda_array_interface__", None)
        except (RuntimeError, TypeError, ValueError):  # a library that has it for some of its arrays
            interface = None
        if len(_telling) >= _MOST_TYPES:
            _telling.clear()
        known = _telling[id(kind)] = kind, isinstance(interface, dict) and interface.get("stream") is not None
    return known[1]


def _dlpack_device(value: Any) -> tuple[int, int] | None:
    if not hasattr(type(value), "__dlpack__") or not hasattr(type(value), "__dlpack_device__"):
        return None
    try:
        device_type, index = value.__dlpack_device__()
        return int(device_type), int(index)
    except (TypeError, ValueError):
        return None


def _from_dlpack(
    value: Any, device: tuple[int, int], dlpack_stream: Callable[[int], int | None]
) -> ArrayLocation | None:
    keywords: dict[str, Any] = {} if device[0] in HOST_TYPES else {"stream": dlpack_stream(device[1])}
    capsule = _exported(value, keywords)
    if capsule is None:
        return None
    tensor, flags = _tensor_of(capsule)
    return None if tensor is None else _location(tensor, capsule, readonly=bool(flags & _READ_ONLY))


def dlpack_tensor(value: Any) -> tuple[Tensor, object] | None:
    """Export an array through ``__dlpack__``; return the tensor and the capsule that keeps it."""
    capsule = _exported(value, {})
    tensor = None if capsule is None else _tensor_of(capsule)[0]
    return None if tensor is None else (tensor, capsule)


def _exported(value: Any, keywords: dict[str, Any]) -> object:
    try:
        try:
            return value.__dlpack__(max_version=(1, 1), **keywords)
        except TypeError:  # written before DLPack 1.0
            return value.__dlpack__(**keywords)
    except BufferError:  # the array has something that DLPack cannot say; another protocol may
        return None


def _tensor_of(capsule: object) -> tuple[Tensor | None, int]:
    """Return the tensor of a capsule and its flags."""
    if _capsule_is_valid(capsule, b"dltensor_versioned"):
        versioned = VersionedTensor.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
        return versioned.tensor, versioned.flags
    if not _capsule_is_valid(capsule, b"dltensor"):
        return None, 0
    return Tensor.from_address(_capsule_pointer(capsule, b"dltensor")), 0


def dlpack_element(tensor: Tensor) -> str | None:
    """Return podium's spelling of the element type of a tensor, if there is one."""
    name_of_bits = _DLPACK_TYPES.get(tensor.code)
    return name_of_bits(tensor.bits) if name_of_bits is not None and tensor.lanes == 1 else None


def _location(tensor: Tensor, owner: object, *, readonly: bool, stream: int | None = None) -> ArrayLocation:
    strides = tensor.strides[: tensor.ndim] if tensor.strides else None
    element = dlpack_element(tensor)
    return ArrayLocation(
        address=tensor.data + tensor.byte_offset,
        device_type=tensor.device.type,
        device=tensor.device.index,
        element=element,
        contiguous=strides is None or is_contiguous(tensor.shape[: tensor.ndim], strides),
        readonly=readonly,
        owner=owner,
        stream=stream,
        typed=element is not None,  # types that podium has no name for are for the kernel to know
    )


def _from_buffer(value: object) -> ArrayLocation | None:
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except (TypeError, BufferError, ValueError):
        return None
    marks = re.sub(":[^:]*:", "", view.format or "")  # between colons are names
    if "O" in marks:  # references to Python objects
        return None
    # The address is that of the view, which lives as long as the launch: the object may give other memory each time.
    buffer = _Buffer()
    _get_buffer(view, ctypes.byref(buffer), _STRIDES | (0 if view.readonly else _WRITABLE))
    address = buffer.buf or 0
    _release_buffer(ctypes.byref(buffer))
    return ArrayLocation(
        address,
        CPU,
        0,
        _buffer_element(view.format, view.itemsize),
        view.c_contiguous,
        view.readonly,
        view,
        swapped=view.itemsize > 1 and any(mark in marks for mark in _OTHER_BYTE_ORDER),
    )


class _Buffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_OTHER_BYTE_ORDER = ">!" if sys.byteorder == "little" else "<"  # marks of the struct module
_STRIDES, _WRITABLE = 0x18, 0x1  # PyBUF_STRIDES, PyBUF_WRITABLE
_get_buffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int)(
    ("PyObject_GetBuffer", ctypes.pythonapi)
)
_release_buffer = ctypes.PYFUNCTYPE(None, ctypes.POINTER(_Buffer))(("PyBuffer_Release", ctypes.pythonapi))

_FORMATS = {"?": "i1", "e": "fp16", "f": "fp32", "d": "fp64", "Zf": "c64", "Zd": "c128"}
_FORMATS |= dict.fromkeys("bhilqn", "i") | dict.fromkeys("BHILQN", "u")


def _buffer_element(format: str | None, itemsize: int) -> str | None:
    name = _FORMATS.get((format or "B").lstrip("@=<"))
    return f"{name}{8 * itemsize}" if name in ("i", "u") else name


def _interface_type(value: object) -> int:
    """Return DLPack's type of the devices that a ``__cuda_array_interface__`` is about.

    Builds of torch for ROCm have it as well, call their devices "cuda", and tell by their version what they are.
    """
    torch: Any = sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(value, getattr(torch, "Tensor", ()))
    return ROCM if is_tensor and getattr(getattr(torch, "version", None), "hip", None) else CUDA


def interface_location(value: object, interface: dict[str, Any]) -> ArrayLocation | None:
    """Read a ``__cuda_array_interface__``; None if it is not what the protocol says."""
    try:
        address, readonly = interface["data"]
        shape, strides, typestr = interface["shape"], interface.get("strides"), interface["typestr"]
        itemsize, queue = int(typestr[2:]), interface.get("stream")
        stream = None if queue is None else int(queue)
        location = ArrayLocation(
            address=int(address or 0),
            device_type=_interface_type(value),
            device=-1,
            element=_typestr_element(typestr, itemsize),
            contiguous=strides is None or is_contiguous(shape, [stride // max(itemsize, 1) for stride in strides]),
            readonly=bool(readonly),
            owner=value,
            stream=stream,
            swapped=itemsize > 1 and typestr[0] in _OTHER_BYTE_ORDER,
            pending=stream,
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):  # not what the protocol says
        return None
    valid = 0 <= location.address < 1 << 64 and 0 <= (location.stream or 0) < 1 << 64
    return location if valid and interface.get("mask") is None else None


def _typestr_element(typestr: str, itemsize: int) -> str | None:
    bits = 8 * itemsize
    names = {"b": "i1", "i": f"i{bits}", "u": f"u{bits}", "c": f"c{bits}", "f": _FLOAT_NAMES.get(bits)}
    return None if typestr[0] in _OTHER_BYTE_ORDER and itemsize > 1 else names.get(typestr[1])
