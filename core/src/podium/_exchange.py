"""DLPack's C exchange table, by which a type of arrays tells where one of them is, and in which stream it is used.

A table is read once for each type, and what is made of it is kept: a launch asks for every array.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from struct import Struct

__all__ = [
    "Answer",
    "ExchangeTable",
    "Tensor",
    "exchange_table",
    "first_strides",
    "has_order_of_c",
    "is_contiguous",
    "tensor_fields",
]


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class Tensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = [
        ("data", ctypes.c_uint64),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


tensor_fields = Struct("=Qiii4x8xQQ").unpack_from
"""Of a `Tensor`: data, device type, device, axes, strides and offset, in the time of one by its name."""

_MOST_PLACES = 1024


class _Strides(dict[int, ctypes.c_int64]):
    def __missing__(self, address: int) -> ctypes.c_int64:
        return _NO_STRIDE


_NO_STRIDE = ctypes.c_int64(0)
first_strides = _Strides()
"""The first stride of arrays with one axis, by address; what is there is read only while its array lives."""

# Without types of arguments: to convert them takes as long as the calls, so they are what C takes already.
_Function = ctypes.PYFUNCTYPE(ctypes.c_int)


class Answer:
    """Memory for what a table is asked and says, which launches use again."""

    __slots__ = ("array", "reference", "tensor", "word")

    def __init__(self) -> None:
        self.array = ctypes.py_object()  # to make one for each array takes as long as a third of the call
        self.tensor = Tensor()
        self.reference = ctypes.byref(self.tensor)
        self.word = ctypes.c_uint64.from_buffer(self.tensor)  # the first: where streams are written to


class _Exchange(ctypes.Structure):
    """DLPackExchangeAPI of dlpack.h 1.3."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("managed_from_object", ctypes.c_void_p),
        ("managed_to_object", ctypes.c_void_p),
        ("tensor_from_object", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p),
    ]


class ExchangeTable:
    """The table of one type of arrays."""

    def __init__(self, table: _Exchange) -> None:
        self.ask = _Function(table.tensor_from_object)  # (py_object, reference) -> 0; `Answer` has the reference
        self._current_stream = _Function(table.current_stream) if table.current_stream else None
        self.stream_function: int = table.current_stream or 0  # its address
        self.knows_stream = self._current_stream is not None

    def tensor(self, value: object) -> Tensor | None:
        """Return the tensor of an array, which points into it; None if the library gives none."""
        answer = Answer()
        return None if self.ask(ctypes.py_object(value), answer.reference) else answer.tensor

    def stream(self, device_type: int, device: int, answer: Answer) -> int | None:
        """Return the library's current stream on a device; None if it does not tell."""
        ask = self._current_stream
        try:
            if ask is None or ask(device_type, device, answer.reference):
                return None
        except (RuntimeError, ValueError, TypeError, BufferError):
            return None
        return answer.word.value


def has_order_of_c(tensor: Tensor) -> bool:
    """Tell whether a tensor is C-contiguous; the first stride of one axis is remembered if it is."""
    axes = tensor.ndim
    if not is_contiguous(tensor.shape[:axes], tensor.strides[:axes]):
        return False
    if axes == 1:
        address = ctypes.addressof(tensor.strides.contents)
        if len(first_strides) >= _MOST_PLACES:
            first_strides.clear()
        first_strides[address] = ctypes.c_int64.from_address(address)
    return True


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Tell whether strides, in elements, are those of C order; axes of length 1 may have any."""
    if 0 in shape:
        return True
    expected = 1
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_capsule_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)


_MOST_TYPES = 64
_tables: dict[
    int, tuple[type, ExchangeTable | None]
] = {}  # by id, since a type need not have a hash; kept alive with it


def exchange_table(kind: type) -> ExchangeTable | None:
    """Return the exchange table of a type, if it has one that can be used.

    Those that have podium's own way to say where an array is have none here, and none numpy's masked arrays: a table
    knows no mask.
    """
    known = _tables.get(id(kind))
    if known is None:
        if len(_tables) >= _MOST_TYPES:
            _tables.clear()
        known = _tables[id(kind)] = kind, _read_table(kind)
    return known[1]


def _read_table(kind: type) -> ExchangeTable | None:
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None or any(hasattr(kind, name) for name in ("_podium_location", "harden_mask")):
        return None
    if not _capsule_is_valid(capsule, b"dlpack_exchange_api"):
        return None
    table = _Exchange.from_address(_capsule_pointer(capsule, b"dlpack_exchange_api"))
    return ExchangeTable(table) if table.major == 1 and table.tensor_from_object else None
