"""Arrays of a library that podium has never heard of: they speak one protocol each, and nothing else."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from podium._arrays import VersionedTensor
from podium._element_types import element_type
from podium._exchange import Tensor

__all__ = ["DataPtrArray", "DlpackArray", "use"]

_READ_ONLY = 1

_new_capsule: Callable[..., Any] = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))

_rename_capsule: Callable[..., Any] = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)

_OLD_NAME, _NEW_NAME, _USED_NAME = b"dltensor", b"dltensor_versioned", b"used_dltensor_versioned"


def use(capsule: Any) -> Any:
    """Mark a capsule as one that somebody has taken the array of; return it."""
    _rename_capsule(capsule, _USED_NAME)
    return capsule


class DlpackArray:
    """Memory of another owner with any shape, strides and device; it speaks ``__dlpack__`` only.

    Strides are in elements. `old` makes it one from before DLPack 1.0. `streams` has what it was asked to wait for.
    """

    def __init__(
        self,
        owner: Any,
        address: int,
        shape: tuple[int, ...],
        dtype: str,
        device: tuple[int, int],
        *,
        strides: tuple[int, ...] | None = None,
        readonly: bool = False,
        old: bool = False,
    ) -> None:
        self.owner, self.device, self.old, self.readonly = owner, device, old, readonly
        self.streams: list[Any] = []
        self._shape = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        self._strides = None if strides is None else (ctypes.c_int64 * max(1, len(strides)))(*strides)
        self._versioned = VersionedTensor()
        self._fill(self._versioned.tensor, address, len(shape), dtype)
        self._tensor = Tensor()
        self._fill(self._tensor, address, len(shape), dtype)

    def _fill(self, tensor: Any, address: int, axes: int, dtype: str) -> None:
        element = element_type(dtype)
        tensor.data, tensor.ndim, tensor.byte_offset = address, axes, 0
        tensor.device.type, tensor.device.index = self.device
        tensor.code, tensor.bits, tensor.lanes = element.code, element.bits, 1
        tensor.shape = ctypes.cast(self._shape, type(tensor.shape))
        if self._strides is not None:
            tensor.strides = ctypes.cast(self._strides, type(tensor.strides))

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: Any = None, **keywords: Any) -> Any:
        self.streams.append(stream)
        if self.old:
            if keywords:
                raise TypeError(f"__dlpack__() got an unexpected keyword argument {min(keywords)!r}")
            return _new_capsule(ctypes.addressof(self._tensor), _OLD_NAME, None)
        self._versioned.major, self._versioned.minor = 1, 1
        self._versioned.flags = _READ_ONLY if self.readonly else 0
        return _new_capsule(ctypes.addressof(self._versioned), _NEW_NAME, None)


class DataPtrArray:
    """An array that only has ``data_ptr()``."""

    def __init__(self, owner: Any, address: int) -> None:
        self.owner, self.address = owner, address

    def data_ptr(self) -> int:
        """Return the address."""
        return self.address
