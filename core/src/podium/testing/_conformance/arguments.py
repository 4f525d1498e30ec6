"""Arguments: for every type, the bytes that the kernel sees and the values that are refused."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable
from typing import Any

import pytest

import podium
from podium.backend import Driver
from podium.errors import (
    ArgumentCountError,
    ArgumentError,
    ArgumentTypeError,
    ArgumentValueError,
    CompileError,
    LoadError,
)
from podium.testing._conformance.argument_table import SCALARS, STRUCTS, Scalar, StructCase
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Arguments"]

_MIXED = ("i8", "fp64", "u16", "i64", "i1", "fp32", "u8", "i32", "*void", "u64", "i16", "u32")
_FLOAT_BITS = {"fp16": (5, 10), "bf16": (8, 7), "fp32": (8, 23), "fp64": (11, 52)}  # of exponent and mantissa
_FORMATS = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q"}
_FORMATS |= {"i1": "?", "fp32": "f", "fp64": "d", "*void": "Q"}
_C_TYPES = {each.spelling: each.c_type for each in SCALARS} | {"*void": "const void*"}


@contract("Arguments")
class Arguments(Subject):
    """What becomes of the values that a kernel is called with."""

    def echo(self, driver: Driver, spelling: str, c_type: str, size: int, definition: str = "") -> Any:
        """Return a function that launches with a value and returns the bytes that arrived."""
        source = f'{definition}\nextern "C" __global__ void echo({c_type}* out, {c_type} x) {{ out[0] = x; }}'
        kernel = podium.kernel(source, "echo", signature=f"out: *void, x: {spelling}")
        self.kernel = kernel

        def arrived(value: Any) -> bytes:
            out = podium.asarray(b"\xa5" * (size + 8))
            kernel[1, 1](out, value)
            data: bytes | None = None
            if self.capabilities.executes:
                data = out.tobytes()
                assert data[size:] == b"\xa5" * 8, "the kernel's parameter is larger than the signature says"
                data = data[:size]
            if self.capabilities.records:
                launch = self.last(driver)
                assert len(launch.parameters) == 2
                assert launch.parameters[0] == struct.pack("=Q", out.ptr), "the address of the array did not arrive"
                assert data is None or data == launch.parameters[1]
                data = launch.parameters[1]
            assert data is not None
            return data

        return arrived

    @pytest.mark.needs("observes")
    @pytest.mark.parametrize("scalar", SCALARS, ids=lambda each: each.spelling)
    def test_scalars_arrive_exactly(self, driver: Driver, level: Level, scalar: Scalar) -> None:
        """Every scalar type is passed exactly: limits, rounding to nearest even, NaN, numpy scalars by their value.

        Rows ARG-01, ARG-03, ARG-05, ARG-07.
        """
        self.need(*scalar.needs)
        arrived = self.echo(driver, scalar.spelling, scalar.c_type, len(scalar.good[0][1]), scalar.definition)
        for value, expected in scalar.good:
            data = arrived(value)
            assert data == expected, f"{value!r} as {scalar.spelling} arrives as {data.hex()}, not {expected.hex()}"
        self._check_nan(arrived, scalar.spelling)
        self._check_numpy_scalars(arrived, scalar.spelling)
        level.check(self.kernel)

    def _check_nan(self, arrived: Callable[[Any], bytes], spelling: str) -> None:
        """Assert that NaN arrives as NaN where there is one, and is refused elsewhere."""
        if spelling not in _FLOAT_BITS:
            with pytest.raises(ArgumentTypeError):
                arrived(float("nan"))
            return
        exponent, mantissa = _FLOAT_BITS[spelling]
        bits = int.from_bytes(arrived(float("nan")), sys.byteorder)
        assert bits >> mantissa & (1 << exponent) - 1 == (1 << exponent) - 1 and bits & (1 << mantissa) - 1, hex(bits)

    def _check_numpy_scalars(self, arrived: Callable[[Any], bytes], spelling: str) -> None:
        """Assert that numpy scalars are passed like the Python numbers that they hold."""
        import numpy

        if spelling == "i1":
            assert arrived(numpy.bool_(True)) == b"\1" and arrived(numpy.bool_(False)) == b"\0"
            return
        for kind in (numpy.int8, numpy.uint8, numpy.int64, numpy.uint64):
            assert arrived(kind(7)) == arrived(7), kind
        if spelling in _FLOAT_BITS:
            for real in (numpy.float16, numpy.float32, numpy.float64, numpy.longdouble):
                assert arrived(real(1.5)) == arrived(1.5), real
        else:
            with pytest.raises(ArgumentTypeError):
                arrived(numpy.float32(1))

    @pytest.mark.parametrize("scalar", SCALARS, ids=lambda each: each.spelling)
    def test_values_that_do_not_fit_are_refused(self, driver: Driver, level: Level, scalar: Scalar) -> None:
        """One beyond a limit, and every other type, is an error naming kernel, argument and type.

        Rows ARG-02, ARG-16.
        """
        self.need(*scalar.needs)
        kernel = podium.kernel(
            f'{scalar.definition}\nextern "C" __global__ void refuse({scalar.c_type} x, int y) {{}}',
            "refuse",
            signature=f"x: {scalar.spelling}, y: i32",
        )
        launch = kernel[1, 1]
        launch(scalar.good[0][0], 0)
        before = self.count(driver)
        for value, kind in scalar.bad:
            with pytest.raises(ArgumentError) as caught:
                launch(value, 0)
            error = caught.value
            assert isinstance(error, kind), f"{value!r}: {error!r}"
            assert (error.kernel, error.argument, error.index) == ("refuse", "x", 0)
            assert error.expected == scalar.spelling and scalar.spelling in str(error) and "refuse" in str(error)
        assert self.count(driver) == before, "a refused launch reached the driver"
        launch(scalar.good[0][0], 0)
        level.check(kernel)

    @pytest.mark.needs("observes")
    @pytest.mark.parametrize("case", STRUCTS, ids=lambda each: each.name)
    def test_structs_by_value(self, driver: Driver, level: Level, case: StructCase) -> None:
        """Structs, nested, padded and with arrays, arrive member by member from ctypes, bytes and numpy records."""
        import numpy

        self.need(*case.needs)
        value = case.value()
        data = bytes(value)
        arrived = self.echo(driver, case.spelling, "T", len(data), case.definition)
        record = numpy.frombuffer(data, dtype=numpy.dtype(case.structure))[0]
        for form in (value, data, bytearray(data), record):
            got = arrived(form)
            for offset, size in case.members():
                assert got[offset : offset + size] == data[offset : offset + size], f"bytes {offset} to {offset + size}"
        for wrong in (data[:-1], data + b"\0"):
            with pytest.raises(ArgumentValueError):
                arrived(wrong)
        with pytest.raises(ArgumentTypeError):
            arrived(3)

    @pytest.mark.needs("observes")
    @pytest.mark.parametrize("rotation", range(0, len(_MIXED), 3))
    def test_mixed_types_keep_their_order_and_alignment(self, driver: Driver, level: Level, rotation: int) -> None:
        """Every parameter arrives at its place, whatever sizes stand before it.

        Rows ARG-01.
        """
        self._check_many(driver, [*_MIXED[rotation:], *_MIXED[:rotation]])

    @pytest.mark.needs("observes")
    def test_sixty_four_arguments(self, driver: Driver, level: Level) -> None:
        """64 arguments of all types arrive, the last one too.

        Rows ARG-15.
        """
        self._check_many(driver, [_MIXED[index * 5 % len(_MIXED)] for index in range(63)] + ["i64"])

    def _check_many(self, driver: Driver, types: list[str]) -> None:
        """Launch with a distinct value for each type, and compare the bytes of each parameter."""
        types = [self._instead(each) for each in types]
        values: list[Any] = []
        for index, spelling in enumerate(types):
            number: Any = 2 * index + 1
            number = {"i1": index % 2 == 0, "fp32": index + 0.5, "fp64": -index - 0.25}.get(spelling, number)
            values.append(-number if spelling in ("i8", "i16", "i32", "i64") else number)
        expected = [struct.pack(f"={_FORMATS[each]}", value) for each, value in zip(types, values)]
        offsets = [8 * index for index in range(len(types))]
        stores = "".join(f"  *({_C_TYPES[each]}*)(out + {2 * i}) = a{i};\n" for i, each in enumerate(types))
        parameters = "".join(f", {_C_TYPES[each]} a{index}" for index, each in enumerate(types))
        source = f'extern "C" __global__ void many(unsigned int* out{parameters}) {{\n{stores}}}'
        signature = "out: *u32, " + ", ".join(f"a{index}: {each}" for index, each in enumerate(types))
        out = podium.asarray(bytes(8 * len(types)))
        podium.kernel(source, "many", signature=signature)[1, 1](out, *values)
        if self.capabilities.executes:
            data = out.tobytes()
            got = [data[offset : offset + len(each)] for offset, each in zip(offsets, expected)]
            assert got == expected
        if self.capabilities.records:
            assert list(self.last(driver).parameters[1:]) == expected

    def _instead(self, spelling: str) -> str:
        """Return a type, or another one where the backend does not claim it."""
        needs = {"fp64": "fp64", "i64": "int64", "u64": "int64", "*void": "addresses"}
        needs |= dict.fromkeys(("i8", "u8", "i16", "u16", "i1"), "small_integers")
        return spelling if self.claims(needs.get(spelling, "observes")) else "i32"

    @pytest.mark.needs("observes", "addresses")
    def test_null_pointers_and_addresses(self, driver: Driver, level: Level) -> None:
        """None is the null pointer, and an integer is an address, in the first launch and in later ones.

        Rows ARG-08.
        """
        arrived = self.echo(driver, "*i32", "int*", 8)
        assert arrived(None) == bytes(8)
        keep = podium.asarray([1, 2, 3])
        assert arrived(keep.ptr) == struct.pack("=Q", keep.ptr) == arrived(keep)
        assert arrived(None) == bytes(8)
        assert arrived(1 << 63) == struct.pack("=Q", 1 << 63)
        for wrong in (-1, 1 << 64):
            with pytest.raises(ArgumentValueError):
                arrived(wrong)
        for wrong_type in (1.0, "x", [1], True, object()):
            with pytest.raises(ArgumentTypeError):
                arrived(wrong_type)

    def test_too_few_and_too_many_arguments(self, driver: Driver, level: Level) -> None:
        """A wrong number of arguments is an error that names the missing ones, in every form of call.

        Rows ARG-09.
        """
        kernel = podium.kernel(
            'extern "C" __global__ void take(int first, int second) {}', "take", signature="first: i32, second: i32"
        )
        launch = kernel[1, 1]
        launch(1, 2)
        before = self.count(driver)
        for args in ((), (1,), (1, 2, 3), tuple(range(100))):
            with pytest.raises(ArgumentCountError) as caught:
                launch(*args)
            assert "take" in str(caught.value)
        with pytest.raises(ArgumentCountError, match="second"):
            launch(1)
        for keywords in ({"third": 3}, {"first": 1}, {"first": 1, "second": 2, "third": 3}):
            with pytest.raises(ArgumentCountError):
                launch(**keywords)
        with pytest.raises(ArgumentCountError):
            launch(1, first=1)
        assert self.count(driver) == before
        launch(second=2, first=1)
        if self.capabilities.records:
            assert self.last(driver).parameters == (struct.pack("=i", 1), struct.pack("=i", 2))

    def test_a_kernel_without_parameters(self, driver: Driver, level: Level) -> None:
        """A kernel without parameters can be the very first launch.

        Rows CTX-03.
        """
        podium.kernel('extern "C" __global__ void nothing() {}', "nothing", signature="")[1, 1]()
        podium.synchronize()
        if self.capabilities.records:
            assert self.last(driver).parameters == ()

    @pytest.mark.needs("structs")
    def test_more_parameters_than_the_device_takes(self, driver: Driver, level: Level) -> None:
        """Parameters larger than the device's limit are refused before the launch.

        Rows ARG-15.
        """
        limit = driver.devices()[driver.current_device()].max_parameter_bytes
        size = limit // 8 * 8 + 8
        kernel = podium.kernel(
            f'struct T {{ int x[{size // 4}]; }};\nextern "C" __global__ void large(T x) {{}}',
            "large",
            signature=f"x: opaque[{size},4]",
        )
        with pytest.raises((LoadError, CompileError)):
            kernel[1, 1]((ctypes.c_char * size)())
