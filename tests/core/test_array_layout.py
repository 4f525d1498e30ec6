"""Layouts of arrays, for backends that describe them to hardware: the same from each protocol."""

from __future__ import annotations

import shutil
from typing import Any

import numpy
import pytest
from fake_launching import exchange_type

import podium
from podium.backend import ArrayLayout, array_layout
from podium.testing import FakeDriver


def interface(**changes: Any) -> Any:
    fields = {"data": (0x700, False), "shape": (2, 3), "typestr": "<f4", "version": 3, **changes}
    return type("Array", (), {"__cuda_array_interface__": fields})()


def layout(value: object) -> ArrayLayout:
    found = array_layout(value)
    assert found is not None
    return found


def numbers(value: object) -> tuple[Any, ...]:
    """Return all of a layout that is not an address or an object."""
    found = layout(value)
    return (found.device_type, found.device, found.element, found.itemsize, found.shape, found.strides)


def test_arrays_of_podium() -> None:
    """An array of podium's own lies in C order on the device that it was made for."""
    podium.set_active(FakeDriver())
    array = podium.empty((3, 5), "fp16")
    assert numbers(array) == (12, 0, "fp16", 2, (3, 5), (10, 2))
    assert layout(array).address == array.ptr
    assert layout(array).owner is array
    assert numbers(podium.empty((0, 5), "fp16"))[3] == 2


def test_dlpack_strides_are_bytes() -> None:
    """Strides that DLPack counts in elements come as bytes, negative ones and those of views too."""
    array = numpy.zeros((4, 6, 10), "f4")
    view = array[:, ::2, 9::-3]
    assert numbers(array) == (1, 0, "fp32", 4, (4, 6, 10), (240, 40, 4))
    assert numbers(view) == (1, 0, "fp32", 4, view.shape, view.strides)
    assert layout(view).address == view.ctypes.data
    assert numbers(numpy.zeros((), "c16")) == (1, 0, "c128", 16, (), ())


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler for a library with an exchange table")
def test_the_exchange_table_is_asked_first() -> None:
    """A type with an exchange table is read through it, with the byte offset added to the address."""
    array = exchange_type()(0x1000, 1, offset=24, shape=(2, 3), strides=(8, 2))
    found = layout(array)
    assert (found.address, found.device, found.shape) == (0x1018, 1, (2, 3))
    assert found.strides == (8 * found.itemsize, 2 * found.itemsize)
    assert found.owner is array


def test_the_cuda_array_interface() -> None:
    """Strides are given in bytes or left out; the device is not told, and bytes in another order are no type."""
    assert numbers(interface()) == (2, -1, "fp32", 4, (2, 3), (12, 4))
    assert numbers(interface(strides=(64, 4))) == (2, -1, "fp32", 4, (2, 3), (64, 4))
    assert numbers(interface(typestr=">f4"))[2] is None


@pytest.mark.parametrize("value", [None, 0x700, [1.0, 2.0], b"bytes", interface(data=None)])
def test_what_has_no_shape_is_no_array(value: object) -> None:
    """Addresses and sequences have no layout, nor has an interface that is not what the protocol says."""
    assert array_layout(value) is None
