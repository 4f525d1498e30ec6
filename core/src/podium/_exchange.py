"""DLPack's C exchange table, by which a type of arrays tells where one of them is, and in which stream it is used.

A table is read once for each type, and what is made of it is kept: a launch asks for every array.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Any

__all__ = ["ExchangeTable", "Tensor", "exchange_table", "is_contiguous"]


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


_fields = Struct("=QiiiBBHQQQ").unpack_from  # of a Tensor: all of them in the time of one by its name

_integer_at = ctypes.c_int64.from_address

_FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
_CurrentStream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_uint64))


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
        self._tensor_from_object = _FromObject(table.tensor_from_object)
        self._current_stream = _CurrentStream(table.current_stream) if table.current_stream else None

    def tensor(self, value: object) -> Tensor | None:
        """Return the tensor of an array, which points into it; None if the library gives none."""
        tensor = Tensor()
        return tensor if self._tensor_from_object(value, tensor) == 0 else None

    def place(self, value: object, tensor: Tensor) -> tuple[int, int, int, bool] | None:
        """Return the address of an array, its device's type and index, and whether it is C-contiguous.

        The library writes to `tensor`, which can be used again: to make one takes as long as to ask.
        """
        if self._tensor_from_object(value, tensor) != 0:
            return None
        data, device_type, device, ndim, _, _, _, shape, strides, offset = _fields(tensor)
        contiguous = (
            not strides
            or (ndim == 1 and _integer_at(strides).value == 1)
            or is_contiguous(_axes_type(ndim).from_address(shape)[:], _axes_type(ndim).from_address(strides)[:])
        )
        return data + offset, device_type, device, contiguous

    def stream(self, device_type: int, device: int) -> int | None:
        """Return the library's current stream on a device; None if it does not tell."""
        if self._current_stream is None:
            return None
        stream = ctypes.c_uint64()
        try:
            status = self._current_stream(device_type, device, stream)
        except (RuntimeError, ValueError, TypeError, BufferError):
            return None
        return stream.value if status == 0 else None


@lru_cache(maxsize=64)
def _axes_type(count: int) -> Any:
    return ctypes.c_int64 * count


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
