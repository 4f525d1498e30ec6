"""Python values become parameter bytes: what the signature says, at both levels alike."""

from __future__ import annotations

import ctypes
import decimal
import fractions
import math
import random
import struct
import sys
import warnings
from typing import Any

import ml_dtypes
import numpy
import pytest
from fake_launching import SCALARS, Failure, Pair, bytes_of
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from podium._arguments import Slot, describe, round_to_format
from podium._signature import Parameter, Type
from podium.errors import ArgumentCountError, ArgumentTypeError, ArgumentValueError, SignatureError
from podium.testing import FakeArray

_pairs: dict[str, Pair] = {}


def pair(signature: str) -> Pair:
    """The launchers of a signature, made once for this module."""
    if signature not in _pairs:
        _pairs[signature] = Pair(signature)
    return _pairs[signature]


RANGES = {f"i{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)}
RANGES |= {f"u{bits}": (0, (1 << bits) - 1) for bits in (8, 16, 32, 64)}
FORMATS = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
FLOATS = ("fp16", "bf16", "fp32", "fp64")


# ---- Integers ----


@pytest.mark.parametrize("name", RANGES)
def test_integers_at_their_limits(name: str) -> None:
    """ARG-02, ARG-03: the whole range of the declared type passes in its width, and one beyond names everything."""
    low, high = RANGES[name]
    for value in (low, low + 1, 0, 1, high - 1, high):
        assert bytes_of(pair(name).same(value)) == (struct.pack(f"={FORMATS[name]}", value),)
    for value in (low - 1, high + 1, -(1 << 64), 1 << 64, (1 << 64) - 1 if high < (1 << 64) - 1 else 1 << 65, 10**5000):
        failure = pair(name).same(value)
        assert isinstance(failure, Failure)
        assert failure.kind is ArgumentValueError
        assert failure.message.startswith(f"k: argument 0 ('arg0') expects {name}, got {describe(value)}")
        assert str(low) in failure.message and str(high) in failure.message
        attributes = dict(failure.attributes)
        assert attributes["kernel"] == "'k'" and attributes["argument"] == "'arg0'" and attributes["index"] == "0"
        assert attributes["expected"] == repr(name)


@pytest.mark.parametrize("name", [*RANGES, "i1"])
@pytest.mark.parametrize(
    "value", [1.0, 0.5, math.nan, "1", b"1", None, [], (1,), 1j, decimal.Decimal(1), object(), int]
)
def test_no_other_type_is_an_integer(name: str, value: object) -> None:
    """A float, a text, None or a container for an integer is a type error that shows the value."""
    failure = pair(name).same(value)
    assert isinstance(failure, Failure)
    assert failure.kind is ArgumentTypeError
    assert describe(value) in failure.message


def test_boolean_is_one_byte_and_tested_before_int() -> None:
    """ARG-07: i1 takes True, False, 0 and 1 as one byte, and nothing else."""
    for value in (True, 1, numpy.True_, numpy.int64(1), ctypes.c_bool(True), ctypes.c_int(1)):
        assert bytes_of(pair("i1").same(value)) == (b"\1",)
    for value in (False, 0, numpy.False_, numpy.uint8(0)):
        assert bytes_of(pair("i1").same(value)) == (b"\0",)
    for value in (2, -1, 256, numpy.int32(7)):
        failure = pair("i1").same(value)
        assert isinstance(failure, Failure) and failure.kind is ArgumentValueError


@pytest.mark.parametrize("name", RANGES)
def test_true_is_one_in_every_integer_type(name: str) -> None:
    """ARG-07: a bool for a wider integer is 0 or 1 in that width."""
    assert bytes_of(pair(name).same(True)) == (struct.pack(f"={FORMATS[name]}", 1),)
    assert bytes_of(pair(name).same(numpy.False_)) == (struct.pack(f"={FORMATS[name]}", 0),)


class IntSubclass(int):
    pass


class Unspeakable(int):
    def __repr__(self) -> str:
        raise RuntimeError("its text must not be asked for")


class FloatSubclass(float):
    pass


class HasIndex:
    def __init__(self, result: Any) -> None:
        self.result = result

    def __index__(self) -> Any:
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


class HasFloat:
    def __init__(self, result: Any) -> None:
        self.result = result

    def __float__(self) -> Any:
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


def test_subclasses_count_by_value() -> None:
    """ARG-07: subclasses of int and float and objects with __index__ or __float__ pass by their value."""
    assert bytes_of(pair("i32").same(IntSubclass(-5))) == (struct.pack("=i", -5),)
    assert bytes_of(pair("u64").same(HasIndex(2**64 - 1))) == (struct.pack("=Q", 2**64 - 1),)
    assert bytes_of(pair("fp64").same(FloatSubclass(0.1))) == (struct.pack("=d", 0.1),)
    assert bytes_of(pair("fp32").same(IntSubclass(3))) == (struct.pack("=f", 3),)
    assert bytes_of(pair("fp32").same(HasFloat(1.5))) == (struct.pack("=f", 1.5),)
    assert bytes_of(pair("fp64").same(HasIndex(7))) == (struct.pack("=d", 7),)
    assert bytes_of(pair("fp64").same(decimal.Decimal("0.25"))) == (struct.pack("=d", 0.25),)
    assert bytes_of(pair("fp64").same(fractions.Fraction(1, 4))) == (struct.pack("=d", 0.25),)
    failure = pair("i8").same(Unspeakable(300))
    assert isinstance(failure, Failure) and failure.kind is ArgumentValueError and "Unspeakable" in failure.message


@pytest.mark.parametrize("name", [*SCALARS, "*fp32"])
@pytest.mark.parametrize("error", [ZeroDivisionError("own"), KeyError("own"), RuntimeError("own"), MemoryError("own")])
def test_errors_of_the_callers_own_conversions_are_not_hidden(name: str, error: Exception) -> None:
    """LIF-10: what a hostile __index__ or __float__ raises reaches the caller as it is, at both levels."""
    failure = pair(name).same(HasFloat(error) if name in FLOATS else HasIndex(error))
    assert isinstance(failure, Failure)
    assert failure.kind is type(error) and "own" in failure.message


@pytest.mark.parametrize("name", [*SCALARS, "*fp32"])
@pytest.mark.parametrize("nonsense", ["5", None, 5.0, [], b"5"])
def test_conversions_that_return_nonsense_are_type_errors(name: str, nonsense: object) -> None:
    """An __index__ that returns no int, or a __float__ that returns no float, is the argument's type error."""
    value = HasFloat(nonsense if nonsense != 5.0 else "x") if name in FLOATS else HasIndex(nonsense)
    failure = pair(name).same(value)
    assert isinstance(failure, Failure)
    assert failure.kind is ArgumentTypeError


# ---- numpy and ctypes scalars ----


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("dtype", [*numpy.typecodes["AllInteger"], *numpy.typecodes["Float"], "?"])
def test_numpy_scalars_count_by_their_dtype(name: str, dtype: str) -> None:
    """ARG-07: a numpy scalar means the Python number it holds; float scalars are no integers."""
    scalar = numpy.dtype(dtype).type(1)
    outcome = pair(name).same(scalar)
    if name in FLOATS or dtype not in numpy.typecodes["Float"]:
        assert bytes_of(outcome) == bytes_of(pair(name).same(1))
    else:
        assert isinstance(outcome, Failure) and outcome.kind is ArgumentTypeError


@pytest.mark.parametrize("dtype", ["b", "h", "i", "q", "B", "H", "I", "Q"])
def test_numpy_scalars_are_range_checked(dtype: str) -> None:
    """ARG-02, ARG-07: the extremes of every numpy integer fit or fail in every integer type as Python's ints do."""
    limits = numpy.iinfo(dtype)
    for value in (limits.min, limits.max):
        for name, (low, high) in RANGES.items():
            outcome = pair(name).same(numpy.dtype(dtype).type(value))
            if low <= value <= high:
                assert bytes_of(outcome) == (struct.pack(f"={FORMATS[name]}", value),)
            else:
                assert isinstance(outcome, Failure) and outcome.kind is ArgumentValueError


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize(
    "scalar",
    [
        numpy.complex64(1),
        numpy.complex128(1 + 2j),
        numpy.str_("1"),
        numpy.bytes_(b"1"),
        numpy.datetime64(1, "s"),
        numpy.timedelta64(1, "s"),
        numpy.zeros((), [("a", "i4")])[()],
        numpy.void(b"abcd"),
    ],
    ids=lambda scalar: type(scalar).__name__,
)
def test_numpy_scalars_that_are_no_real_numbers_are_refused(name: str, scalar: object) -> None:
    """ARG-07: a complex loses nothing silently, and texts, dates and records are not numbers; no numpy warning leaks."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        failure = pair(name).same(scalar)
    assert isinstance(failure, Failure)
    assert failure.kind is ArgumentTypeError


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_scalars_of_ml_dtypes_are_floats(kind: Any) -> None:
    """ARG-05: bfloat16 and the small floats of ml_dtypes pass by their value."""
    assert bytes_of(pair("fp32").same(kind(1.5))) == (struct.pack("=f", 1.5),)
    assert bytes_of(pair("bf16").same(kind(-1.5))) == (b"\xc0\xbf",)
    failure = pair("i32").same(kind(1))
    assert isinstance(failure, Failure) and failure.kind is ArgumentTypeError


@pytest.mark.parametrize("name", SCALARS)
def test_arrays_are_no_scalars(name: str) -> None:
    """An array for a scalar is refused whatever its size, since reading it would wait for a device."""
    for value in (numpy.ones(1, "f4"), numpy.ones((), "i4"), FakeArray(64)):
        failure = pair(name).same(value)
        assert isinstance(failure, Failure)
        assert failure.kind is ArgumentTypeError
        assert "array" in failure.message or "number" in failure.message or "integer" in failure.message


@pytest.mark.parametrize("name", SCALARS)
def test_ctypes_scalars_count_by_value(name: str) -> None:
    """ctypes scalars pass by their value; characters are no numbers."""
    for kind in (ctypes.c_int8, ctypes.c_uint64, ctypes.c_long, ctypes.c_bool, ctypes.c_size_t):
        assert bytes_of(pair(name).same(kind(1))) == bytes_of(pair(name).same(1))
    for kind in (ctypes.c_float, ctypes.c_double, ctypes.c_longdouble):
        outcome = pair(name).same(kind(1))
        if name in FLOATS:
            assert bytes_of(outcome) == bytes_of(pair(name).same(1.0))
        else:
            assert isinstance(outcome, Failure) and outcome.kind is ArgumentTypeError
    for value in (ctypes.c_char(b"1"), ctypes.c_char_p(b"1"), ctypes.c_wchar("1"), ctypes.py_object("1")):
        failure = pair(name).same(value)
        assert isinstance(failure, Failure) and failure.kind is ArgumentTypeError


# ---- Floats ----


SINGLE_EDGES = [
    0.0, -0.0, 1.0, 0.1, math.inf, -math.inf, 3.4028234663852886e38, 3.4028235677973366e38, 3.402823567797337e38, 1e39,
    -1e300, 1.401298464324817e-45, 7.006492321624085e-46, 7.006492321624086e-46, 1e-46, 1.1754943508222875e-38, 5e-324,
    sys.float_info.max, 1 + 2**-24, 1 + 2**-24 + 2**-52, 1 + 3 * 2**-24,
]  # fmt: skip


@pytest.mark.parametrize("value", SINGLE_EDGES)
def test_single_precision_rounds_to_nearest_even(value: float) -> None:
    """ARG-01: a Python float becomes four bytes for fp32, rounded once, with infinity beyond the largest."""
    with numpy.errstate(over="ignore", under="ignore"):
        expected = numpy.float32(value).tobytes()
    assert bytes_of(pair("fp32").same(value)) == (expected,)
    assert bytes_of(pair("fp64").same(value)) == (struct.pack("=d", value),)


def test_nan_stays_nan_with_its_sign() -> None:
    """ARG-05: a NaN of either sign arrives as a NaN of that sign in every float type."""
    for bits in (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF):
        (value,) = struct.unpack("=d", struct.pack("=Q", bits))
        for name, dtype in {"fp16": "e", "fp32": "f", "fp64": "d"}.items():
            (data,) = bytes_of(pair(name).same(value))
            (number,) = struct.unpack(f"={dtype}", data)
            assert math.isnan(number)
            assert data[-1] >> 7 == bits >> 63
        (data,) = bytes_of(pair("bf16").same(value))
        assert data == (b"\xc0\x7f" if bits >> 63 == 0 else b"\xc0\xff")


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("value", [10**400, -(10**400), "1.0", b"1", None, [], 1j, object(), float])
def test_what_is_no_float(name: str, value: object) -> None:
    """An int too large for any float is a value error; what is no real number is a type error."""
    failure = pair(name).same(value)
    assert isinstance(failure, Failure)
    assert failure.kind is (ArgumentValueError if isinstance(value, int) else ArgumentTypeError)


@pytest.mark.parametrize("name", FLOATS)
def test_ints_are_floats(name: str) -> None:
    """ARG-01: an int for a float parameter is converted, not reinterpreted."""
    for value in (0, 1, -3, 2048, True, 2**53 + 1, 10**300):
        assert bytes_of(pair(name).same(value)) == bytes_of(pair(name).same(float(value)))


def half_bits(value: float) -> int:
    (bits,) = struct.unpack("=H", bytes_of(pair("fp16").same(value))[0])
    return int(bits)


def around_halves(bits: int, mantissa: int) -> list[float]:
    """Numbers at, next to, and half-way after the one with these bits in a half format of that many mantissa bits."""
    if mantissa == 10:
        here, after = (struct.unpack("=e", struct.pack("=H", each))[0] for each in (bits, bits + 1))
    else:
        here, after = (struct.unpack("=f", struct.pack("=I", each << 16))[0] for each in (bits, bits + 1))
    if math.isinf(after):  # half-way to what would come next
        after = 65536.0 if mantissa == 10 else 2.0**128
    middle = (here + after) / 2
    return [
        sign * each
        for sign in (1, -1)
        for each in (here, math.nextafter(here, math.inf), middle, math.nextafter(middle, 0.0),
                     math.nextafter(middle, math.inf))
    ]  # fmt: skip


def test_half_precision_rounds_exactly_everywhere() -> None:
    """ARG-05: around every fp16 number, and at every tie between two, rounding agrees with struct and numpy."""
    values = [each for bits in range(0x7C00) for each in around_halves(bits, 10)]
    with numpy.errstate(over="ignore"):
        expected = numpy.array(values).astype(numpy.float16).view(numpy.uint16).tolist()
    assert [round_to_format(value, 5, 10) for value in values] == expected
    for value, bits in zip(values[::97], expected[::97]):
        try:
            assert struct.pack("=e", value) == struct.pack("=H", bits)
        except OverflowError:  # struct refuses what rounds to infinity
            assert bits & 0x7FFF == 0x7C00


def test_bfloat16_rounds_exactly_everywhere() -> None:
    """ARG-05: around every bf16 number, and at every tie, rounding agrees with exact arithmetic on the bits."""
    values = [each for bits in range(0x7F80) for each in around_halves(bits, 7)]
    got = [round_to_format(value, 8, 7) for value in values]
    for index in range(0, len(values), 5):
        # the order in around_halves: here, just after, the tie, just below it, just above it
        sign = got[index] & 0x8000
        here = index // 10
        assert [each - sign for each in got[index : index + 5]] == [here, here, here + (here & 1), here, here + 1]


def test_bfloat16_agrees_with_ml_dtypes() -> None:
    """ARG-05: single-precision numbers become the bf16 that ml_dtypes gives, which rounds from those only."""
    generator = random.Random(5)
    singles = [struct.unpack("=f", struct.pack("=I", generator.getrandbits(32)))[0] for _ in range(20_000)]
    numbers = [each for each in singles if not math.isnan(each)]
    expected = numpy.array(numbers, "f4").astype(ml_dtypes.bfloat16).view(numpy.uint16).tolist()
    assert [round_to_format(each, 8, 7) for each in numbers] == expected


def test_the_levels_round_halves_alike() -> None:
    """ARG-05: the rounding in C and the one in Python give the same bits around all halves of both formats."""
    for name, mantissa, infinity in (("fp16", 10, 0x7C00), ("bf16", 7, 0x7F80)):
        assert pair(name).launchers["generated"].promote()
        driver, launcher = pair(name).driver, pair(name).launchers["generated"].generated
        function = pair(name).function
        edges = {0, 1, 2, (1 << mantissa) - 1, 1 << mantissa, infinity - 2, infinity - 1}
        for bits in sorted(edges | set(range(0, infinity, 211))):
            for value in around_halves(bits, mantissa):
                driver.launches.clear()
                launcher(1, 1, 1, 0, function, value)
                exponent_bits = 15 - mantissa
                expected = round_to_format(value, exponent_bits, mantissa)
                assert driver.launches[0].parameters == (struct.pack("=H", expected),)


# ---- Structs ----


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_float), ("n", ctypes.c_int32)]


def test_structs_pass_by_value() -> None:
    """A struct is a ctypes structure, a numpy record, bytes or a buffer of exactly its size."""
    data = struct.pack("=fi", 1.5, -2)
    record = numpy.zeros((), [("x", "f4"), ("n", "i4")])
    record["x"], record["n"] = 1.5, -2
    for value in (Point(1.5, -2), record[()], record, data, bytearray(data), memoryview(data)):
        assert bytes_of(pair("{fp32,i32}").same(value)) == (data,)
    for value in (b"", data + b"\0", (ctypes.c_char * 9)(), numpy.zeros(3, "f4")):
        failure = pair("{fp32,i32}").same(value)
        assert isinstance(failure, Failure) and failure.kind is ArgumentValueError and "8" in failure.message
    for value in ("12345678", 5, 5.0, True, None, (1.5, -2), object()):
        failure = pair("{fp32,i32}").same(value)
        assert isinstance(failure, Failure) and failure.kind is ArgumentTypeError


def test_parameters_are_aligned() -> None:
    """Each parameter stands at an address of its own alignment: 16 for float4, 64 for a tensor map, and so on."""
    signature = "i8, {fp32,fp32}@16, i8, opaque[128,64], i1, fp64, u16, *fp32"
    both = pair(signature)
    addresses: list[list[int]] = []
    driver = both.driver

    kind = type(driver._recorders[both.function])

    def record(shape: Any, device: int, stream: int, parameters: Any, count: int) -> int:
        addresses.append([parameters[index] for index in range(count)])
        return 0

    recorder = kind(record)
    handle = ctypes.cast(recorder, ctypes.c_void_p).value
    assert handle
    driver._recorders[handle] = recorder
    for launcher in both.launchers.values():
        launcher(1, 1, 1, 0, handle, 1, bytes(16), 2, bytes(128), True, 1.0, 3, None)
    assert len(addresses) == 2
    for row in addresses:
        for address, alignment in zip(row, (1, 16, 1, 64, 1, 8, 2, 8)):
            assert address % alignment == 0


# ---- Counts, and all of it at random ----


@pytest.mark.parametrize("given_count", [0, 1, 2, 4, 5, 40])
def test_wrong_counts_name_what_is_missing(given_count: int) -> None:
    """ARG-09: too few or too many arguments are told with the signature, at both levels alike."""
    failure = pair("*fp32, i32, fp32").same(*[1] * given_count)
    assert isinstance(failure, Failure)
    assert failure.kind is ArgumentCountError
    assert "k(arg0: *fp32, arg1: i32, arg2: fp32) takes 3 arguments" in failure.message
    for name in ("arg0", "arg1", "arg2")[given_count:]:
        assert repr(name) in failure.message


def test_unknown_types_are_refused_when_the_launcher_is_made() -> None:
    """ARG-16: a type name that is not known is an error at once, never an eight-byte integer."""
    for spelling in ("i33", "f32", "int", "*", "*fp31", "{}", "{void}", "void", "fp8e5", "[4xfp32]", "", "i32 x"):
        with pytest.raises(SignatureError):
            Pair({"x": spelling})


def test_the_description_of_a_value_is_short_and_safe() -> None:
    """ARG-02: messages show scalars, shortened, those of numpy and ctypes too, and of everything else only the type."""
    assert describe(5) == "5 (int)"
    assert describe(numpy.uint32(1 << 31)) == "2147483648 (numpy.uint32)"
    assert describe(ctypes.c_double(0.5)) == "0.5 (ctypes.c_double)"
    assert describe(ctypes.c_char_p(8)) == "an object of type ctypes.c_char_p"
    assert describe(None) == "None (NoneType)"
    assert describe("x" * 1000).startswith("'xxx") and len(describe("x" * 1000)) < 80
    assert describe(10**6000).startswith("0x") and len(describe(10**6000)) < 80
    assert describe(IntSubclass(1)) == "an object of type test_arguments.IntSubclass"
    assert describe(numpy.ones(3)) == "an object of type numpy.ndarray"


hostile = st.sampled_from(
    [
        None, "5", b"\1\2", object(), 1j, [], (1, 2), {}, int, NotImplemented, ...,
        HasIndex(3), HasIndex("3"), HasIndex(KeyError("own")), HasIndex(2**70), HasFloat(2.5), HasFloat("x"),
        HasFloat(ZeroDivisionError("own")), IntSubclass(7), IntSubclass(2**80), FloatSubclass(1e308),
        ctypes.c_int(3), ctypes.c_float(2.5), ctypes.c_char(b"x"), Point(1, 2), bytes(8), bytes(16), decimal.Decimal("1.5"),
        numpy.zeros(2, "f4"), numpy.complex64(1), FakeArray(4096), FakeArray(8192, device=1), FakeArray(1, strides=(2,)),
    ]
)  # fmt: skip
numpy_scalars = st.builds(
    lambda dtype, value: numpy.array(value).astype(dtype)[()],
    st.sampled_from(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g", "?"]),
    st.integers(-128, 127),
)
limits = st.sampled_from(
    sorted({limit + step for low, high in RANGES.values() for limit in (low, high) for step in (-1, 0, 1)})
)
values = st.one_of(
    st.integers(), limits, st.floats(), st.floats(width=32), st.floats(width=16), st.booleans(), numpy_scalars, hostile,
    st.integers(min_value=-(10**400), max_value=10**400), st.binary(max_size=9), st.text(max_size=3),
)  # fmt: skip
types = st.sampled_from(
    [*SCALARS, *SCALARS, "*fp32", "*kfp32", "*void", "**i8", "{fp32,i32}", "opaque[8,8]", "{i8,fp64}", "constexpr"]
)


@settings(max_examples=2500, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from([*SCALARS, "*fp32", "*kfp32", "{fp32,i32}", "opaque[16,16]"]), value=values)
@example(name="fp32", value=2**1024)
@example(name="i64", value=-(2**63) - 1)
def test_any_value_fares_alike_at_both_levels(name: str, value: object) -> None:
    """Each level is the other's oracle: same bytes, or the same error with the same words and attributes."""
    pair(name).same(value)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[object]]:
    signature = draw(st.lists(types, max_size=6))
    fitting = [draw(_fitting(name)) if draw(st.integers(0, 9)) else draw(values) for name in signature]
    return ", ".join(signature), fitting


def _fitting(name: str) -> st.SearchStrategy[object]:
    if name in RANGES:
        return st.integers(*RANGES[name])
    if name == "i1":
        return st.booleans()
    if name in FLOATS:
        return st.floats()
    if name.startswith("*"):
        return st.one_of(
            st.none(), st.integers(0, 2**64 - 1), st.builds(FakeArray, st.integers(0, 2**63), st.integers(0, 1))
        )
    if name == "constexpr":
        return values
    size = Type.parse(name).size
    return st.binary(min_size=size, max_size=size)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(call=calls())
def test_any_signature_fares_alike_at_both_levels(call: tuple[str, list[object]]) -> None:
    """Random signatures with mostly fitting values: the same launches and the same first error at both levels."""
    signature, arguments = call
    both = pair(signature)
    both.same(*arguments)
    both.same(*arguments[:-1])
    both.same(*arguments, 1)


def test_a_slot_encodes_what_the_levels_do() -> None:
    """The one conversion that both levels share gives the bytes in the order of this machine."""
    slot = Slot("k", 0, Parameter("x", Type.parse("i32")))
    assert slot.encode(258) == (258).to_bytes(4, sys.byteorder)
