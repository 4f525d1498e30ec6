"""Kernels in the styles that are found in the wild: samples, extensions, generated code, raw kernels, HIP, plain C++."""

from __future__ import annotations

import functools
import math
import struct
from pathlib import Path
from typing import Any

import pytest
from cpu_kernels import host_compiler

import podium
from podium.backend import Entry, HostCompiler, Options, Program

np = pytest.importorskip("numpy", reason="numpy is what the kernels are compared with")

FOLDER = Path(__file__).parent / "cpu_styles"


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    return host_compiler()


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_BACKEND", "cpu")
    monkeypatch.setenv("PODIUM_LAUNCHER", "interpreted")  # no launcher is built for a kernel that is launched once


NAMES = {
    "samples.cu": (
        "reduce<float, 64, true>",
        "reduce<double, 128, false>",
        "reduceGroups",
        "scanExclusiveShared",
        "convolutionRowsKernel",
        "BlackScholesGPU",
        "transposeDiagonal<16, 4>",
        "VoteAnyKernel1",
    ),
    "extension.cu": (
        "ext::lstm_forward<float>",
        "ext::gelu<__half>",
        "ext::gelu<float>",
        "ext::row_moments<__nv_bfloat16>",
        "ext::sample_backward<double>",
        "ext::argmax<float, 64>",
    ),
    "generated.cu": (),
    "raw.cu": (
        "my_add",
        "forces",
        "interpret",
        "rgb_to_gray",
        "clip_gradient<float>",
        "polynomial<4, double>",
        "half_axpy",
    ),
    "hip.cu": (
        "matrixTranspose",
        "transposeByShuffles",
        "vector_square<double>",
        "bit_extract_kernel",
        "countPositives",
        "dotHalf",
    ),
    "language.cu": (),
}

# What podium does not read from the source: a parameter behind a template of templates.
SIGNATURES = {"ext::lstm_forward<float>": "gates: {*fp32,i32,i32,i32,i32}, cell: *fp32, state_size: u64"}


@functools.cache
def kernels(file: str) -> podium.Module:
    """Compile the kernels of a file in one go."""
    path = FOLDER / file
    if file in ("samples.cu", "language.cu"):  # these have variables, so podium compiles their kernels together
        return podium.module(path, kernels=NAMES[file])
    module = podium.module(path)
    names = NAMES[file] or module.names
    declared = [module.kernel(name, signature=SIGNATURES.get(name)) for name in names]
    entries = tuple(Entry(each.name, each.signature) for each in declared)
    driver = podium.driver.resolve()
    program = Program(path.read_text(), "cuda", entries, Options.of(), path=str(path))
    return podium.module(driver.compile(program, driver.default_target()))


@pytest.fixture
def random() -> Any:
    return np.random.default_rng(11)


# ---- samples ----


def test_reductions_of_the_samples(random: Any) -> None:
    """Shared memory behind a struct of two types, masks from the block's size, and volatile sums with groups."""
    module = kernels("samples.cu")
    data = random.random(1024, dtype=np.float32)
    sums = np.zeros(3, np.float32)
    module["reduce<float, 64, true>"][3, 64](data, sums, 1024, shared=64 * 4)
    assert sums.sum() == pytest.approx(data.sum(), rel=1e-5)
    doubles, results = random.random(777), np.zeros(2)
    module["reduce<double, 128, false>"][2, 128](doubles, results, 777, shared=128 * 8)
    assert results.sum() == pytest.approx(doubles.sum())
    sums[:] = 0
    module["reduceGroups"][3, 96](data, sums, 1000, shared=96 * 4)
    assert sums.sum() == pytest.approx(data[:1000].sum(), rel=1e-5)


def test_scan_of_the_samples(random: Any) -> None:
    """Groups by value in nested functions, and four values a thread."""
    data = random.integers(0, 100, (3, 512), dtype=np.uint32)
    out = np.zeros_like(data)
    kernels("samples.cu")["scanExclusiveShared"][3, 128](out, data, 512)
    assert (out == data.cumsum(1) - data).all()


def test_convolution_of_the_samples(random: Any) -> None:
    """Pointers that are moved before the array, a halo, and a table in constant memory."""
    image = random.random((8, 64), dtype=np.float32)
    out = np.zeros_like(image)
    kernels("samples.cu")["convolutionRowsKernel"][(2, 2), (16, 4)](out, image, 64, 8, 64)
    weights = np.array([0.1, 0.2, 0.3, 0.4, 0.3, 0.2, 0.1], np.float32)
    expected = [np.convolve(row, weights, mode="same") for row in image]
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_options_of_the_samples(random: Any) -> None:
    """Results by reference, fast functions, and pairs of floats."""
    n = 150
    price, strike, years = (random.uniform(low, high, n).astype(np.float32) for low, high in ((5, 30), (1, 99), (1, 9)))
    call, put = np.zeros(n, np.float32), np.zeros(n, np.float32)
    kernels("samples.cu")["BlackScholesGPU"][1, 128](call, put, price, strike, years, 0.02, 0.3, n)
    d1 = (np.log(price / strike) + (0.02 + 0.045) * years) / (0.3 * np.sqrt(years))
    normal = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))
    expected = price * normal(d1) - strike * np.exp(-0.02 * years) * normal(d1 - 0.3 * np.sqrt(years))
    np.testing.assert_allclose(call, expected, atol=1e-4)
    np.testing.assert_allclose(put, expected - price + strike * np.exp(-0.02 * years), atol=1e-4)


def test_transpose_and_votes_of_the_samples(random: Any) -> None:
    """A diagonal order of blocks, and a vote of each warp."""
    matrix = random.random((32, 48), dtype=np.float32)
    out = np.zeros((48, 32), np.float32)
    kernels("samples.cu")["transposeDiagonal<16, 4>"][(3, 2), (16, 4)](out, matrix, 48, 32)
    assert (out == matrix.T).all()
    votes, result = np.zeros(96, np.uint32), np.zeros(96, np.uint32)
    votes[40] = 7
    kernels("samples.cu")["VoteAnyKernel1"][1, 96](votes, result, 96)
    assert result.tolist() == [0] * 32 + [1] * 32 + [0] * 32


# ---- extensions ----


def test_extension_with_accessors(random: Any) -> None:
    """A tensor as a struct with sizes and strides by value, and functions that mix floats with doubles."""
    batch, state = 3, 40
    gates = random.normal(size=(batch, 3 * state)).astype(np.float32)
    cell = np.zeros((batch, state), np.float32)
    accessor = struct.pack("=Q2i2i", gates.ctypes.data, batch, 3 * state, 3 * state, 1)
    kernels("extension.cu")["ext::lstm_forward<float>"][(2, batch), 32](accessor, cell, state)
    i, o, c = (gates[:, k * state : (k + 1) * state].astype(float) for k in range(3))
    elu = np.maximum(0, c) + np.minimum(0, np.exp(c) - 1)
    np.testing.assert_allclose(cell, np.tanh(elu / (1 + np.exp(-i))) / (1 + np.exp(-o)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "dtype", "tolerance"), [("__half", "f2", 2e-3), ("float", "f4", 1e-6)])
def test_extension_with_vectors_and_closures(random: Any, name: str, dtype: str, tolerance: float) -> None:
    """Aligned vectors of any type, and a closure with the dialect's qualifier."""
    x = random.normal(size=1001).astype(dtype)
    out = np.zeros_like(x)
    kernels("extension.cu")[f"ext::gelu<{name}>"][2, 256](out, x, 1001)
    expected = [0.5 * value * (1 + math.erf(value / math.sqrt(2))) for value in x.astype(float)]
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


def test_extension_with_moments(random: Any) -> None:
    """Structs are shuffled by members; shared memory is storage of another type; short floats add up in floats."""
    x = random.normal(3, 2, size=(4, 300)).astype(np.float32)
    short = (x.view(np.uint32) >> 16).astype(np.uint16)  # cut, as bfloat16
    values = (short.astype(np.uint32) << 16).view(np.float32)
    mean, rstd = np.zeros(4, np.float32), np.zeros(4, np.float32)
    kernels("extension.cu")["ext::row_moments<__nv_bfloat16>"][4, 96](short.ctypes.data, mean, rstd, 300, 1e-5)
    np.testing.assert_allclose(mean, values.mean(1), rtol=1e-4)
    np.testing.assert_allclose(rstd, 1 / np.sqrt(values.var(1) + 1e-5), rtol=1e-4)


def test_extension_with_its_own_atomics(random: Any) -> None:
    """An atomicAdd for old devices does not clash with the dialect's, and references carry results out."""
    height, width, n = 5, 7, 200
    points = random.uniform(-1.5, 8, size=(n, 2))
    grad, total = random.random(n), np.zeros((height, width))
    kernels("extension.cu")["ext::sample_backward<double>"][2, 32](n, grad, points, total, height, width)
    inside = (points >= -1).all(1) & (points[:, 0] <= height) & (points[:, 1] <= width)
    assert total.sum() == pytest.approx(grad[inside].sum())


def test_extension_with_limits(random: Any) -> None:
    """The limits of the standard library, and ties that go to the first place."""
    x = random.integers(0, 50, size=(3, 333)).astype(np.float32)
    index = np.zeros(3, np.int64)
    kernels("extension.cu")["ext::argmax<float, 64>"][3, 64](x, index, 333)
    assert (index == x.argmax(1)).all()


# ---- generated ----


def test_generated_convolution(random: Any) -> None:
    """One long function of loops, selects and two tiles in shared memory."""
    image = random.random((3, 8, 8), dtype=np.float32)
    weights = random.normal(size=(4, 3, 3, 3)).astype(np.float32)
    out = np.zeros((4, 8, 8), np.float32)
    kernels("generated.cu")["fused_conv2d_relu_kernel0"][4, 64](image, weights, out)
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    np.testing.assert_allclose(out, np.maximum(np.einsum("cyxij,kcij->kyx", windows, weights), 0), rtol=1e-4, atol=1e-5)


def test_generated_loop_of_labels(random: Any) -> None:
    """Arrays as loose numbers, control flow by goto, 64-bit types of the source's own, and a very long name."""
    module = kernels("generated.cu")
    (name,) = (each for each in module.names if each.startswith("_ZN"))
    x, y = random.random(500)[::2], random.random(250)
    expected = 1.5 * x + y
    array = [0, 0, 250, 8]
    module[name][2, 64](1.5, *array, x.ctypes.data, 250, 16, *array, y, 250, 8)
    np.testing.assert_allclose(y, expected)


def test_generated_softmax_and_casts(random: Any) -> None:
    """Dynamic shared memory of bytes, infinities by bits, shuffles in a row; and a chain of casts."""
    x = random.normal(size=(3, 200)).astype(np.float32)
    out = np.zeros_like(x)
    kernels("generated.cu")["triton_like_0d1d2de"][3, 64](x, out, 3, 200, shared=8)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)
    choice = random.integers(0, 2, 999).astype(bool)
    small, wide = random.integers(-128, 128, 999, dtype=np.int8), random.integers(0, 1 << 16, 999, dtype=np.uint16)
    result = np.zeros(999, np.int64)
    kernels("generated.cu")["fused_where_cast"][2, 256](choice, small, wide, result, 999)
    expected = np.where(choice, small.astype(np.int64) * -3, (wide.astype(np.int64) << 33) >> 1)
    assert (result == expected ^ (choice.astype(np.int64) << 62)).all()


# ---- raw kernels ----


def test_raw_kernels_on_structs(random: Any) -> None:
    """Arrays of structs, macros with a return in them, and a maximum of doubles by compare and swap."""
    module = kernels("raw.cu")
    n = 50
    particles = np.zeros(n, [("x", "f8"), ("y", "f8"), ("z", "f8"), ("mass", "f4"), ("id", "i4")])
    for name in "xyz":
        particles[name] = random.normal(size=n)
    particles["mass"] = random.random(n)
    force, strongest = np.zeros((n, 3)), np.zeros(1)
    module["forces"][2, 32](particles.ctypes.data, force, strongest, n)
    place = np.stack([particles[name] for name in "xyz"], 1)
    offset = place[None] - place[:, None]
    scale = particles["mass"] * ((offset**2).sum(2) + 1e-8) ** -1.5
    np.fill_diagonal(scale, 0)
    np.testing.assert_allclose(force, (offset * scale[..., None]).sum(1), rtol=1e-6)
    assert strongest[0] == pytest.approx(np.sqrt((force**2).sum(1)).max())
    a, b, c = random.random(70, dtype=np.float32), random.random(70, dtype=np.float32), np.zeros(70, np.float32)
    module["my_add"][3, 32](a, b, c, 70)
    assert (c == a + b).all()


def test_raw_kernel_with_a_switch() -> None:
    """A switch that falls through inside an endless loop that is left by goto."""
    program = np.array([0, 2, 3, 5, 1, 4, 1, 6], np.int8)  # x * x + 5, inverted unless odd
    values = np.arange(-20, 20, dtype=np.int32)
    out = np.zeros_like(values)
    kernels("raw.cu")["interpret"][2, 32](program, len(program), values, out, len(values))
    square = values * values + 5
    assert (out == np.where(square % 2, square, ~square)).all()


def test_raw_kernels_on_pixels_and_gradients(random: Any) -> None:
    """Vectors of three bytes, arrays of bool, counters in shared memory, and numbers of the template's type."""
    module = kernels("raw.cu")
    image = random.integers(0, 256, (9, 21, 3), dtype=np.uint8)
    gray, dark = np.zeros((9, 21), np.uint8), np.zeros((9, 21), bool)
    module["rgb_to_gray"][(2, 2), (16, 8)](image, gray, dark, 21, 9)
    weighted = (image * np.array([0.299, 0.587, 0.114])).sum(2)
    assert np.abs(gray - weighted).max() <= 0.51 and (dark == (weighted < 40)).all()
    gradient = random.normal(size=500).astype(np.float32)
    expected, clipped = np.clip(gradient, -1, 1), np.zeros(1, np.uint64)
    count = (np.abs(gradient) > 1).sum()
    module["clip_gradient<float>"][3, 64](gradient, 1.0, clipped, 500)
    assert (gradient == expected).all() and clipped[0] == count
    x, y, c = random.random(40), np.zeros(40), np.array([1.0, -2.0, 0.5, 3.0])
    module["polynomial<4, double>"][2, 32](x, y, 40, c)
    np.testing.assert_allclose(y, np.polyval(c[::-1], x))
    a, b = random.random(64).astype(np.float16), random.random(64).astype(np.float16)
    expected = (np.float64(0.5) * a + b).astype(np.float16)
    module["half_axpy"][1, 32](0.5, a.ctypes.data, b.ctypes.data, 32)
    assert (b == expected).all()


# ---- HIP ----


def test_hip_samples(random: Any) -> None:
    """HIP's indices, its macro for shared memory, shuffles and votes without masks, and its atomics."""
    module = kernels("hip.cu")
    matrix, out = random.random((16, 16), dtype=np.float32), np.zeros((16, 16), np.float32)
    module["matrixTranspose"][1, (16, 16)](out, matrix, 16, shared=16 * 16 * 4)
    assert (out == matrix.T).all()
    small, out = random.random((4, 4), dtype=np.float32), np.zeros((4, 4), np.float32)
    module["transposeByShuffles"][1, 16](out, small, 4)
    assert (out == small.T).all()
    x, y = random.random(100), np.zeros(100)
    module["vector_square<double>"][2, 32](y, x, 100)
    assert (y == x * x).all()
    words, bits = random.integers(0, 1 << 32, 50, dtype=np.uint32), np.zeros(50, np.uint32)
    module["bit_extract_kernel"][1, 32](bits, words, 50)
    assert (bits == (words & 0xF00) >> 8).all()
    numbers = random.integers(-5, 5, 100, dtype=np.int32)
    masks, count = np.zeros(5, np.uint64), np.zeros(1, np.int32)
    module["countPositives"][1, 160](numbers, masks, count, 100)
    positive = np.append(numbers > 0, np.zeros(60, bool)).reshape(5, 32)
    assert (masks == (positive * (1 << np.arange(32, dtype=np.uint64))).sum(1)).all()
    assert count[0] == positive.sum() + 1000
    a, b = random.random(500).astype(np.float16), random.random(500).astype(np.float16)
    total = np.zeros(1, np.float32)
    module["dotHalf"][1, 96](a, b, total, 500)
    assert total[0] == pytest.approx((a.astype(float) * b).sum(), rel=1e-5)


# ---- the language ----


def test_classes_and_the_heap() -> None:
    """Virtual functions, placement new, and memory from the heap by both ways to ask for it."""
    out = np.zeros(40, np.float32)
    kernels("language.cu")["polymorphism"][1, 64](out, 40)
    i = np.arange(40)
    assert (out == np.where(i % 2, 3 * i * i, i * i + 1000) + 4).all()
    sums = np.zeros(64, np.int32)
    kernels("language.cu")["heap"][1, 64](sums, 30)
    assert (sums == 435 * np.arange(1, 65)).all()


def test_recursion_and_pointers_to_functions(random: Any) -> None:
    """Functions that call themselves, tables of functions, functions as template arguments, pointers to members."""
    data = random.integers(-100, 100, (8, 60), dtype=np.int32)
    expected, values = np.sort(data, 1), np.zeros(8, np.int32)
    kernels("language.cu")["recursion"][1, 8](data, 60, values)
    assert (data == expected).all() and (values == 2 * np.arange(8) + 3).all()
    out = np.zeros(8, np.float32)
    kernels("language.cu")["functions"][1, 8](out)
    x = np.arange(8)
    np.testing.assert_allclose(out, np.choose(x & 3, [2 * x, -x, x + 10, np.sqrt(x)]) + 206, rtol=1e-6)


def test_templates_and_constants_of_the_compiler() -> None:
    """Packs, folds, closures, structured bindings, tuples, unions with bit fields, literals of the source's own."""
    out = np.zeros(8, np.int32)
    kernels("language.cu")["templates"][1, 1](out)
    assert out.tolist() == [6 + 11, 12, 42 + 2 + 42, 32 + 4321, 2 + 4324, 1000 + 129, 5000 + ord("c"), 2 + 21]


def test_text(capfd: pytest.CaptureFixture[str]) -> None:
    """printf has every format of the C library."""
    kernels("language.cu")["text"][1, 3](42, 2.5)
    podium.synchronize()
    said = capfd.readouterr().out.splitlines()
    assert said == [
        "42|   42|42   |00042|+42|-42",
        "42|ff|FF|0xff|10|z|%|word|wo|    word",
        "2.500000|2.500|      2.50|2.500000e+00|2.5|2.500000",
        "-5000000000|10000000000|7|3|4|    42|0",
    ]
