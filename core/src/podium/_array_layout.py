"""The shape of an array in memory, for backends that describe whole arrays to their hardware and not only addresses.

A launch needs none of this, so `podium._arrays` does not read it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from podium import _arrays
from podium._element_types import element_type
from podium._exchange import Tensor, exchange_table
from podium._record import record

__all__ = ["ArrayLayout", "array_layout"]


@record(frozen=True)
class ArrayLayout:
    """Where an array is, and how its elements lie there; the outermost axis comes first.

    `device_type` is DLPack's number, `device` the index or -1 if the protocol does not tell; `element` is podium's
    spelling of the element type, or None if there is none; `strides` are bytes; `owner` keeps the memory.
    """

    address: int
    device_type: int
    device: int
    element: str | None
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    owner: object


def array_layout(value: object) -> ArrayLayout | None:
    """Read the layout of an array in device memory; None if it is not an array that says its shape.

    Reads podium's own arrays, DLPack's exchange table, ``__dlpack__`` and ``__cuda_array_interface__``, in this order.
    """
    kind = type(value)
    if hasattr(kind, "_podium_location"):
        return _own(value)
    table = exchange_table(kind)
    if table is not None and (tensor := table.tensor(value)) is not None:
        return _of_tensor(tensor, value)
    if hasattr(kind, "__dlpack__") and (exported := _arrays.dlpack_tensor(value)) is not None:
        return _of_tensor(*exported)
    interface = getattr(value, "__cuda_array_interface__", None)
    return _of_interface(value, interface) if isinstance(interface, dict) else None


def _own(value: Any) -> ArrayLayout:
    location: _arrays.ArrayLocation = value._podium_location()
    shape = tuple(value.shape)
    itemsize = element_type(value.dtype).size
    strides = _packed(shape, itemsize)
    return ArrayLayout(
        location.address, location.device_type, location.device, location.element, itemsize, shape, strides, value
    )


def _of_tensor(tensor: Tensor, owner: object) -> ArrayLayout:
    itemsize = -(-tensor.bits * tensor.lanes // 8)
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides:
        strides = tuple(stride * itemsize for stride in tensor.strides[: tensor.ndim])
    else:
        strides = _packed(shape, itemsize)
    return ArrayLayout(
        tensor.data + tensor.byte_offset,
        tensor.device.type,
        tensor.device.index,
        _arrays.dlpack_element(tensor),
        itemsize,
        shape,
        strides,
        owner,
    )


def _of_interface(value: object, interface: dict[str, Any]) -> ArrayLayout | None:
    location = _arrays.interface_location(value, interface)
    if location is None:
        return None
    itemsize = int(interface["typestr"][2:])
    shape = tuple(int(length) for length in interface["shape"])
    given: Sequence[int] | None = interface.get("strides")
    strides = _packed(shape, itemsize) if given is None else tuple(int(stride) for stride in given)
    element = None if location.swapped else location.element
    return ArrayLayout(
        location.address, location.device_type, location.device, element, itemsize, shape, strides, value
    )


def _packed(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides of C order."""
    return tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
