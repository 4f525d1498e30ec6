"""The arguments of a kernel as words of the command line: numbers, filled arrays, and arrays from files."""

from __future__ import annotations

import argparse
import ctypes
import math
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from podium._cli.failure import CommandError, need_numpy
from podium._element_types import ElementType, element_type

if TYPE_CHECKING:
    from podium._memory import Array
    from podium.backend import Driver

__all__ = ["GRAMMAR", "Argument", "ArrayFile", "Filled", "Scalar", "parse_argument"]

GRAMMAR = """\
An argument is one of
  42  -1  0x7f  1.5  1e-3  inf  true  false  none
                          a number, a boolean, a null pointer
  zeros:TYPE:SHAPE        an array of zeros, such as zeros:f32:1024 or zeros:i64:64x64
  ones:TYPE:SHAPE         an array of ones
  arange:TYPE:SHAPE       0, 1, 2, ... in order
  rand:TYPE:SHAPE[:SEED]  random numbers: floats from 0 up to 1, integers from 0 to 99; the same for the same seed
  FILE.npy                an array that numpy saved
TYPE is i1, i8 to i64, u8 to u64, fp16, bf16, fp32, fp64, or as numpy spells it; f16, f32 and f64 will do, too."""

_FILLS = ("zeros", "ones", "arange", "rand")
_WORDS = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class Scalar:
    """A number, a boolean or None."""

    value: int | float | None

    def make(self, driver: Driver, device: int | None) -> int | float | None:
        """Return the value itself."""
        return self.value


@dataclass(frozen=True)
class Filled:
    """An array that is filled by a rule."""

    text: str
    rule: str
    element: ElementType
    shape: tuple[int, ...]
    seed: int = 0

    def make(self, driver: Driver, device: int | None) -> Array:
        """Make the array on a device. Raises `CommandError` if a value does not fit the type."""
        import podium

        data = self.data()
        array = podium.empty(self.shape, self.element.spelling, device=device, driver=driver)
        if data:
            source = ctypes.create_string_buffer(data, len(data))
            stream = driver.current_stream(array.device)
            driver.copy(array.ptr, ctypes.addressof(source), len(data), array.device, stream)
        return array

    def data(self) -> bytes:
        """Return the elements as bytes, in the order of this machine."""
        count = math.prod(self.shape)
        if self.rule == "zeros":
            return bytes(count * self.element.size)
        if self.rule == "ones":
            return self._pack([1]) * count
        if self.rule == "arange":
            return self._pack(range(count))
        generator = random.Random(self.seed)
        if self.element.spelling == "i1":
            return self._pack([generator.randrange(2) for _ in range(count)])
        if self.element.spelling[0] in "iu":
            return self._pack([generator.randrange(100) for _ in range(count)])
        return self._pack([generator.random() for _ in range(count)])

    def _pack(self, values: Sequence[int | float]) -> bytes:
        if self.element.spelling == "i1" and any(value not in (0, 1) for value in values):
            raise CommandError(f"{self.text}: an element of type i1 is 0 or 1", status=2)
        if self.element.format is None:
            from podium._arguments import Slot
            from podium._signature import Parameter, Type

            slot = Slot(self.text, 0, Parameter("element", Type.parse(self.element.spelling)))
            return b"".join(slot.encode(float(value)) for value in values)
        try:
            return struct.pack(f"={len(values)}{self.element.format}", *values)
        except (struct.error, OverflowError) as error:
            spelling = self.element.spelling
            raise CommandError(f"{self.text}: not all elements fit {spelling}: {error}", status=2) from None


@dataclass(frozen=True)
class ArrayFile:
    """An array in a file that numpy saved."""

    path: str

    def make(self, driver: Driver, device: int | None) -> Array:
        """Read the file into an array on a device. Raises `CommandError` if it is no such file; needs numpy."""
        import podium

        numpy = need_numpy(f"Reading {self.path}")
        try:
            values = numpy.load(self.path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise CommandError(f"{self.path} cannot be read: {error}") from None
        if not isinstance(values, numpy.ndarray):
            raise CommandError(f"{self.path} holds no single array; save one with numpy.save")
        try:
            return podium.asarray(numpy.ascontiguousarray(values), device=device, driver=driver)
        except (TypeError, ValueError) as error:
            raise CommandError(f"{self.path}: {error}") from None


Argument = Union[Scalar, Filled, ArrayFile]


def parse_argument(text: str) -> Argument:
    """Read one argument. Raises `argparse.ArgumentTypeError` that says what is wrong with it."""
    rule, colon, rest = text.partition(":")
    if colon and rule in _FILLS:
        return _filled(text, rule, rest.split(":"))
    if text.endswith(".npy"):
        return ArrayFile(text)
    value = _number(text)
    if value is None and text.lower() != "none":
        raise argparse.ArgumentTypeError(f"{text!r} is no argument: see podium run --help for their forms")
    return Scalar(value)


def _number(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for read in (lambda: int(text, 0), lambda: int(text), lambda: float(text)):
        try:
            return read()
        except ValueError:
            continue
    return None


def _filled(text: str, rule: str, parts: list[str]) -> Filled:
    if len(parts) not in ((2, 3) if rule == "rand" else (2,)):
        seed = "[:SEED]" if rule == "rand" else ""
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form {rule}:TYPE:SHAPE{seed}")
    try:
        element = element_type(parts[0])
    except TypeError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    lengths = parts[1].split("x")
    if not all(length.isascii() and length.isdigit() for length in lengths):
        raise argparse.ArgumentTypeError(f"{text!r}: a shape is 1024 or 64x64, not {parts[1]!r}")
    seed_text = parts[2] if len(parts) == 3 else "0"
    if not (seed_text.isascii() and seed_text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r}: a seed is a number, not {seed_text!r}")
    return Filled(text, rule, element, tuple(map(int, lengths)), int(seed_text))
