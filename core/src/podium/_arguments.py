"""Python values as the bytes of a parameter. The signature decides; the value never does.

Both launcher levels convert here: the generated one does the plain cases in C and hands the rest to the same functions,
so a value means the same and fails the same in both.
"""

from __future__ import annotations

import ctypes
import operator
import struct
import sys
from typing import Any, TypeVar

from podium._record import record
from podium._signature import Parameter
from podium.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

__all__ = ["Slot", "describe", "round_to_format"]

# exponent bits and mantissa bits, IEEE 754-2008 binary16 and the upper half of binary32
_HALF_FORMATS = {"fp16": (5, 10), "bf16": (8, 7)}

_Error = TypeVar("_Error", bound=ArgumentError)


def describe(value: object) -> str:
    """Give a short text of a value for messages.

    Only scalars of Python, numpy and ctypes are shown: the repr of an array may be long, wait for a device, or fail.
    """
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    value = _number_in(value)
    if type(value) in (int, float, bool, str, bytes) or value is None:
        # decimal digits of a huge int take quadratic time, and are refused beyond a limit
        text = hex(value) if isinstance(value, int) and value.bit_length() > 256 else repr(value)
        return f"{text if len(text) <= 60 else text[:57] + '...'} ({name})"
    return f"an object of type {name}"


def _number_in(value: Any) -> Any:
    """Return the number that a scalar of numpy or ctypes holds; anything else as it is."""
    if isinstance(value, ctypes._SimpleCData):  # others than these may lead to any memory
        return value.value if getattr(value, "_type_", "O") in "?bBhHiIlLqQfd" else value
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic) and value.dtype.kind in "biuf":
        return value.item()
    return value


@record(frozen=True)
class Slot:
    """A place among the arguments of a kernel: what it is called, where it stands, and its type."""

    kernel: str
    index: int
    parameter: Parameter

    def encode(self, value: object) -> bytes:
        """Convert a scalar or a struct to the bytes of the parameter, in the order of this machine.

        Raises `ArgumentTypeError` or `ArgumentValueError`.
        """
        kind = self.parameter.type.kind
        if kind in ("signed", "unsigned"):
            return self._integer(value)
        if kind == "float":
            return self._float(value)
        if kind == "boolean":
            return self._boolean(value)
        return self._struct(value)

    def integer_address(self, value: object) -> int:
        """Return an address that was given as an integer, or as the pointer of ctypes that holds it."""
        if isinstance(value, ctypes.c_void_p):
            return value.value or 0
        number = self._as_integer(value, "an array, None or an integer address is needed")
        if not 0 <= number < 1 << 64:
            raise self.value_error(value, "an address has 64 bits and no sign")
        return number

    def type_error(self, value: object, why: str) -> ArgumentTypeError:
        """Make the error for a value whose type does not fit."""
        return self._error(ArgumentTypeError, value, why)

    def value_error(self, value: object, why: str) -> ArgumentValueError:
        """Make the error for a value that its type cannot hold."""
        return self._error(ArgumentValueError, value, why)

    def _error(self, kind: type[_Error], value: object, why: str) -> _Error:
        name, expected, text = self.parameter.name, str(self.parameter.type), describe(value)
        return kind(
            f"{self.kernel}: argument {self.index} ({name!r}) expects {expected}, got {text}: {why}",
            kernel=self.kernel,
            argument=name,
            index=self.index,
            value=text,
            expected=expected,
        )

    def _integer(self, value: object) -> bytes:
        size, signed = self.parameter.type.size, self.parameter.type.kind == "signed"
        number = self._as_integer(value, "an integer is needed")
        low, high = (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1) if signed else (0, (1 << 8 * size) - 1)
        if not low <= number <= high:
            raise self.value_error(value, f"it must be between {low} and {high}")
        return number.to_bytes(size, sys.byteorder, signed=signed)

    def _as_integer(self, value: object, why: str) -> int:
        value = self._plain(value)
        if isinstance(value, float):
            raise self.type_error(value, f"{why}; convert it with int() if that is meant")
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            raise self.type_error(value, why) from None

    def _boolean(self, value: object) -> bytes:
        number = self._as_integer(value, "True or False is needed")
        if number not in (0, 1):
            raise self.value_error(value, "it must be 0 or 1")
        return bytes([number])

    def _float(self, value: object) -> bytes:
        plain = self._plain(value)
        if isinstance(plain, (str, bytes, bytearray)) or (
            not hasattr(type(plain), "__float__") and not hasattr(type(plain), "__index__")
        ):
            raise self.type_error(value, "a number is needed")
        try:
            number = float(plain)  # type: ignore[arg-type]
        except OverflowError:
            raise self.value_error(value, "it is too large for any float") from None
        except (TypeError, ValueError):
            raise self.type_error(value, "a number is needed") from None
        name = self.parameter.type.spelling
        if name in _HALF_FORMATS:
            return round_to_format(number, *_HALF_FORMATS[name]).to_bytes(2, sys.byteorder)
        return bytes((ctypes.c_float if name == "fp32" else ctypes.c_double)(number))

    def _struct(self, value: object) -> bytes:
        size = self.parameter.type.size
        if isinstance(value, (str, int, float)) or value is None:
            raise self.type_error(value, "a struct is given as a ctypes structure, a numpy record, or bytes")
        try:
            data = memoryview(value).tobytes()  # type: ignore[arg-type]
        except (TypeError, BufferError, ValueError):
            raise self.type_error(value, "a struct is given as a ctypes structure, a numpy record, or bytes") from None
        if len(data) != size:
            raise self.value_error(value, f"it has {len(data)} bytes, the struct has {size}")
        return data

    def _plain(self, value: object) -> object:
        """Turn a numpy or ctypes scalar into the Python value it holds; refuse arrays where a scalar is needed."""
        if isinstance(value, ctypes._SimpleCData):
            return value.value
        numpy: Any = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.generic):
            if value.dtype.kind in "biuf":
                return value.item() if value.dtype.itemsize <= 8 else float(value)
            if value.dtype.kind == "V" and not isinstance(value, numpy.void):  # bfloat16 and the like, of ml_dtypes
                return operator.index(value) if hasattr(type(value), "__index__") else float(value)
            # float() would take the real part of a complex, the digits of a text, the seconds of a time
            raise self.type_error(value, "a real number is needed")
        if hasattr(type(value), "__dlpack__") or hasattr(type(value), "__cuda_array_interface__"):
            raise self.type_error(value, "a scalar is needed, not an array; take its .item()")
        return value


def round_to_format(value: float, exponent_bits: int, mantissa_bits: int) -> int:
    """Round a double to a smaller IEEE 754 format, to nearest with ties to even; return its bits.

    Overflow gives infinity, as the standard says; every NaN becomes the quiet one of the same sign. It rounds once,
    straight from the double: going through single precision would round twice.
    """
    bits = int.from_bytes(struct.pack("<d", value), "little")
    sign = bits >> 63 << exponent_bits + mantissa_bits
    exponent, significand = bits >> 52 & 0x7FF, bits & (1 << 52) - 1
    infinity = (1 << exponent_bits) - 1 << mantissa_bits
    if exponent == 0x7FF:
        return sign | infinity | (1 << mantissa_bits - 1 if significand else 0)
    if exponent:
        significand |= 1 << 52
    # the exponent field in the small format; below 1 the number is subnormal there, and loses more bits
    field = exponent - 1023 + (1 << exponent_bits - 1) - 1
    shift = 52 - mantissa_bits + max(0, 1 - field)
    if shift > 54:
        return sign
    quotient, remainder = significand >> shift, significand & (1 << shift) - 1
    half = 1 << shift - 1
    quotient += remainder > half or (remainder == half and quotient & 1)
    # a carry out of the mantissa steps the exponent, which is what rounding up to a power of two means
    rounded = quotient + (max(field, 1) - 1 << mantissa_bits)
    return sign | min(rounded, infinity)
