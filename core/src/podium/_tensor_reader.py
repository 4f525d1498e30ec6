"""What C reads tensors of PyTorch with, where their exchange table need not be asked: include/podium_reader.h.

PyTorch's library exports C functions for compiled models, each of which reads one field of a tensor by a handle. The
handle is the address of the C++ tensor that lies in the Python object, and where in it that is, is found here: the word
that is the same as `_cdata` in tensors of all kinds. Nothing about the layout of a tensor is taken for granted.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from functools import lru_cache
from struct import Struct
from typing import Any

from podium._exchange import ExchangeTable, exchange_table

__all__ = ["foresee_tensors", "tensor_reader"]

_READER = Struct("=8Q")
_FUNCTIONS = (
    "aoti_torch_get_data_ptr",
    "aoti_torch_get_device_type",
    "aoti_torch_get_device_index",
    "aoti_torch_get_dtype",
    "aoti_torch_is_contiguous",
)
_PLAIN = "_ZTVN3c1010TensorImplE"
"""The table of virtual functions of c10::TensorImpl, whose third word its objects begin with the address of.

Tensors of other kinds have tables of their own: sparse and nested ones, those of a transformation.
"""

_ELEMENTS = (
    *("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16"),
    *("uint8", "bool", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
)
_WORD = 8


def tensor_reader(kind: type) -> bytes | None:
    """Return the bytes of `struct podium_reader` for tensors of exactly this type, `torch.Tensor` or `Parameter`.

    None for every other type, and wherever PyTorch is not as it is expected to be; then its exchange table is used.
    """
    torch: Any = sys.modules.get("torch")
    try:
        if torch is not None and (kind is torch.Tensor or kind is torch.nn.Parameter):
            return _found(torch)
    except (AttributeError, OSError, RuntimeError, TypeError, ValueError):  # what another library than expected does
        pass
    return None


def foresee_tensors() -> None:
    """Find what tensors are read with before a launch asks, if the program has PyTorch at all."""
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "Tensor"):
        tensor_reader(torch.Tensor)


@lru_cache(maxsize=1)
def _found(torch: Any) -> bytes | None:
    library = ctypes.CDLL(torch._C.__file__)  # loaded already; symbols are looked for in what it needs, too
    functions = data, device_type, device_index, element, is_contiguous = [library[name] for name in _FUNCTIONS]
    plain = ctypes.addressof(ctypes.c_void_p.in_dll(library, _PLAIN)) + 2 * _WORD
    table = exchange_table(torch.Tensor)
    if ctypes.sizeof(ctypes.c_void_p) != _WORD or table is None:
        return None
    places, devices, elements = set(), set(), 0
    for tensor, contiguous in _samples(torch):
        (place,) = _places(tensor)  # exactly one, or a ValueError
        places.add(place)
        devices.add(tuple(_ask(function, tensor, place, ctypes.c_int32()) for function in (device_type, device_index)))
        if (
            ctypes.c_uint64.from_address(tensor._cdata).value != plain
            or _ask(data, tensor, place, ctypes.c_uint64()) != tensor.data_ptr()
            or _ask(is_contiguous, tensor, place, ctypes.c_bool()) != contiguous
        ):
            return None
    if len(places) != 1 or len(devices) != 1:
        return None
    for name in _ELEMENTS:
        if hasattr(torch, name):
            tensor = torch.empty(0, dtype=getattr(torch, name), device="cpu")
            number = _ask(element, tensor, place, ctypes.c_int32())
            if 0 <= number < 64 and _is_told(table, tensor):
                elements |= 1 << number
    addresses = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)
    return _READER.pack(place, plain, elements, *addresses)


def _samples(torch: Any) -> Iterator[tuple[Any, bool]]:
    """Make tensors of several kinds, all of them plain, and say which are contiguous."""
    square = torch.empty((3, 3), dtype=torch.float32, device="cpu")
    yield from ((square, True), (square[1:], True), (square.t(), False), (square[:, 1], False))
    yield torch.empty(5, dtype=torch.int16, device="cpu"), True
    yield torch.nn.Parameter(square), True


def _places(tensor: Any) -> list[int]:
    """Return the offsets in an object at which the address of its C++ tensor is."""
    words = (ctypes.c_uint64 * (type(tensor).__basicsize__ // _WORD)).from_address(id(tensor))
    address = tensor._cdata
    return [_WORD * index for index, word in enumerate(words) if word == address]


def _is_told(table: ExchangeTable, tensor: Any) -> bool:
    try:
        return table.tensor(tensor) is not None
    except (BufferError, RuntimeError, TypeError, ValueError):
        return False


def _ask(function: Any, tensor: Any, place: int, out: Any) -> Any:
    """Call a function of PyTorch's library, as C does. Raises ValueError if it fails."""
    status = function(ctypes.c_void_p(id(tensor) + place), ctypes.byref(out))
    if status:
        raise ValueError(f"a function of PyTorch gave status {status}")
    return out.value
