"""The example kernels: for each one how it is launched, on what, what must come out, and how much work it is.

The program that shows them (`run.py`), the tests and the benchmarks share these descriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import podium

__all__ = ["EXAMPLES", "Example", "Launch", "Work"]

FOLDER = Path(__file__).parent

# Kernels that go over an array in steps of the whole grid get this many blocks at most.
MOST_BLOCKS = 1024


@dataclass(frozen=True)
class Launch:
    """One launch: a kernel with grid, block, arguments, and bytes of dynamic shared memory."""

    kernel: podium.Kernel
    grid: Any
    block: Any
    arguments: tuple[Any, ...]
    shared: int = 0

    def __call__(self) -> None:
        """Launch it on the active backend."""
        self.kernel[self.grid, self.block](*self.arguments, shared=self.shared)


@dataclass(frozen=True)
class Work:
    """What an example does at one size: its launches in order, the array that they fill, and what must be in it.

    `shape` says the size in words. `bytes` is what must at least be read and written in global memory, `operations`
    counts floating-point operations, a fused product and sum as two; 0 where the kernel is not about them.
    """

    launches: tuple[Launch, ...]
    output: podium.Array
    expected: np.ndarray
    shape: str
    bytes: int
    operations: int = 0

    def run(self) -> None:
        """Make all launches, in order, without waiting; after the first run the output is as expected."""
        for launch in self.launches:
            launch()


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, relative to the largest expected element; 0 for two empty arrays."""
    if not expected.size:
        return 0.0
    expected = expected.astype(np.float64)
    different = found != expected  # where not, there may be infinities
    differences = np.abs(found[different] - expected[different])
    return float(differences.max(initial=0.0) / (np.abs(expected).max() or 1.0))


def share_of_others(found: np.ndarray, expected: np.ndarray) -> float:
    """Return which share of the elements is not as expected."""
    return float(np.mean(found != expected)) if expected.size else 0.0


@dataclass(frozen=True)
class Example:
    """A kernel to show. `prepare` makes its `Work` for a size: a number of elements, or of the rows of a matrix.

    `sizes` are for a quick look, for a demonstration, and for figures; none is a multiple of the block. An error above
    `tolerance` is a mistake of the kernel or of what runs it, and `because` says why a smaller one is none.
    """

    name: str
    file: str
    sizes: Mapping[str, int]
    prepare: Callable[[int], Work]
    tolerance: float
    because: str
    error: Callable[[np.ndarray, np.ndarray], float] = field(default=relative_error)

    def check(self, work: Work) -> float:
        """Return the error of what the launches have left in the output, after waiting for them."""
        return self.error(work.output.numpy(), work.expected)


def kernel(file: str, name: str) -> podium.Kernel:
    """Declare a kernel of a file in this folder, by its name or name expression."""
    return podium.kernel(FOLDER / file, name)


def blocks(count: int, block: int) -> int:
    """Return how many blocks cover a number of elements."""
    return -(-count // block)


def some_blocks(count: int, block: int) -> int:
    """Return how many blocks a kernel gets that covers any number of elements: at least one, and not too many."""
    return min(max(1, blocks(count, block)), MOST_BLOCKS)


def fill(array: podium.Array, spelling: str, value: float) -> Launch:
    """Set all elements of an array; `spelling` is their type in C."""
    return Launch(kernel("fill.cu", f"fill<{spelling}>"), some_blocks(array.size, 256), 256, (array, value, array.size))


def normal(*shape: int) -> np.ndarray:
    """Return random numbers, the same ones each time."""
    return np.random.default_rng(20).standard_normal(shape, dtype=np.float32)


def uniform(*shape: int) -> np.ndarray:
    """Return random numbers from 0 to 1, the same ones each time."""
    return np.random.default_rng(22).random(shape, dtype=np.float32)


def integers(count: int, end: int) -> np.ndarray:
    """Return random integers from 0 to before `end`, the same ones each time."""
    return np.random.default_rng(21).integers(0, end, count, dtype=np.uint32)


# ---- what each one does ----


def prepare_saxpy(n: int) -> Work:
    return _saxpy("saxpy", blocks(n, 256), n)


def prepare_saxpy_float4(n: int) -> Work:
    return _saxpy("saxpy_float4", some_blocks(n, 4 * 256), n)


def _saxpy(name: str, grid: int, n: int) -> Work:
    a, x, y = 2.5, normal(n), uniform(n)
    result = podium.asarray(y)
    launch = Launch(kernel("saxpy.cu", name), grid, 256, (n, a, podium.asarray(x), result))
    expected = a * x.astype(np.float64) + y
    return Work((launch,), result, expected, f"{n}", bytes=3 * x.nbytes, operations=2 * n)


def prepare_matmul(size: int) -> Work:
    m, n, k = size, (5 * size + 3) // 4, (3 * size + 3) // 4
    a, b = normal(m, k), normal(k, n)
    product = podium.empty((m, n))
    arguments = (podium.asarray(a), podium.asarray(b), product, m, n, k)
    launch = Launch(kernel("matmul.cu", "matmul<float, 16>"), (blocks(n, 16), blocks(m, 16)), (16, 16), arguments)
    moved = a.nbytes + b.nbytes + product.nbytes
    shape = f"{m}x{k}x{n}"
    return Work((launch,), product, a.astype(np.float64) @ b, shape, moved, operations=2 * m * n * k)


def prepare_reduce_sum(n: int) -> Work:
    x = uniform(n)
    return _reduction("reduce_sum<float, 256>", x, x.sum(dtype=np.float64))


def prepare_reduce_largest(n: int) -> Work:
    x = normal(n)
    return _reduction("reduce_largest<float, 256>", x, x.max(initial=-np.inf))


def _reduction(name: str, x: np.ndarray, expected: Any) -> Work:
    grid = some_blocks(x.size, 8 * 256)
    partial, result = podium.empty(grid), podium.empty(1)
    reduce = kernel("reduce.cu", name)
    launches = (
        Launch(reduce, grid, 256, (podium.asarray(x), partial, x.size)),
        Launch(reduce, 1, 256, (partial, result, grid)),
    )
    return Work(launches, result, np.array([expected]), f"{x.size}", bytes=x.nbytes, operations=x.size)


def prepare_warp_reduce(n: int) -> Work:
    x = uniform(n)
    total = podium.empty(1)
    arguments = (podium.asarray(x), total, n)
    launches = (
        fill(total, "float", 0.0),
        Launch(kernel("warp_reduce.cu", "warp_reduce"), some_blocks(n, 8 * 256), 256, arguments),
    )
    expected = np.array([x.sum(dtype=np.float64)])
    return Work(launches, total, expected, f"{n}", bytes=x.nbytes, operations=n)


def prepare_scan(n: int) -> Work:
    threads, items = 128, 7
    x = integers(n, 1000)
    tiles = blocks(n, threads * items)
    result, states, ticket = podium.empty(n, "u32"), podium.empty(max(1, tiles), "u64"), podium.empty(1, "u32")
    scan = kernel("scan.cu", f"inclusive_scan<{threads}, {items}>")
    launches = (
        fill(states, "unsigned long long", 0),
        fill(ticket, "unsigned int", 0),
        Launch(scan, tiles, threads, (podium.asarray(x), result, n, states, ticket)),
    )
    return Work(launches, result, np.cumsum(x, dtype=np.uint32), f"{n}", bytes=2 * x.nbytes)


def prepare_histogram(n: int) -> Work:
    x, bins = normal(n), 100
    low, scale = -2.0, 25.0
    counts = podium.empty(bins, "u32")
    arguments = (podium.asarray(x), n, low, scale, bins, counts)
    launches = (
        fill(counts, "unsigned int", 0),
        Launch(kernel("histogram.cu", "histogram"), some_blocks(n, 16 * 256), 256, arguments, shared=4 * bins),
    )
    positions = np.floor((x - np.float32(low)) * np.float32(scale))
    inside = positions[(positions >= 0) & (positions < bins)].astype(np.int64)
    return Work(launches, counts, np.bincount(inside, minlength=bins), f"{n}", bytes=x.nbytes)


def prepare_softmax(rows: int) -> Work:
    columns = 4 * rows + 1
    x = 3 * normal(rows, columns)
    result = podium.empty(x.shape)
    launch = Launch(kernel("softmax.cu", "softmax<float, 128>"), rows, 128, (podium.asarray(x), result, columns))
    exponentials = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = exponentials / exponentials.sum(axis=1, keepdims=True)
    return Work((launch,), result, expected, f"{rows}x{columns}", bytes=2 * x.nbytes, operations=5 * x.size)


def prepare_layer_norm(rows: int) -> Work:
    columns, epsilon = 4 * rows + 3, 1e-5
    x = 100 + normal(rows, columns)  # far from zero, where a sum of squares would lose its digits
    gamma, beta = uniform(columns), normal(columns)
    result = podium.empty(x.shape)
    arguments = (podium.asarray(x), podium.asarray(gamma), podium.asarray(beta), result, rows, columns, epsilon)
    launch = Launch(kernel("layer_norm.cu", "layer_norm<float>"), blocks(rows, 4), (32, 4), arguments)
    exact = x.astype(np.float64)
    centred = exact - exact.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + epsilon) * gamma + beta
    return Work((launch,), result, expected, f"{rows}x{columns}", bytes=2 * x.nbytes, operations=8 * x.size)


def prepare_stencil(size: int) -> Work:
    rows, columns, rate = size, (3 * size + 1) // 2, 0.1
    x = normal(rows, columns)
    result = podium.empty(x.shape)
    grid = (blocks(columns, 32), blocks(rows, 8))
    arguments = (podium.asarray(x), result, rows, columns, rate)
    launch = Launch(kernel("stencil.cu", "heat_step<32, 8>"), grid, (32, 8), arguments)
    wide = np.pad(x.astype(np.float64), 2)
    near = wide[1:-3, 2:-2] + wide[3:-1, 2:-2] + wide[2:-2, 1:-3] + wide[2:-2, 3:-1]
    far = wide[:-4, 2:-2] + wide[4:, 2:-2] + wide[2:-2, :-4] + wide[2:-2, 4:]
    expected = x + rate * (16 * near - far - 60.0 * x) / 12
    return Work((launch,), result, expected, f"{rows}x{columns}", bytes=2 * x.nbytes, operations=13 * x.size)


def prepare_transpose(size: int) -> Work:
    rows, columns = size, (3 * size + 1) // 2
    x = normal(rows, columns)
    result = podium.empty((columns, rows))
    grid = (blocks(columns, 32), blocks(rows, 32))
    arguments = (podium.asarray(x), result, rows, columns)
    launch = Launch(kernel("transpose.cu", "transpose<float, 32, 8>"), grid, (32, 8), arguments)
    return Work((launch,), result, x.T, f"{rows}x{columns}", bytes=2 * x.nbytes)


def prepare_mandelbrot(size: int) -> Work:
    width, height, most = (3 * size + 1) // 2, size, 200
    left, top, step = -2.0, -1.0, 2.0 / max(1, size)
    counts = podium.empty((height, width), "i32")
    grid = (blocks(width, 32), blocks(height, 8))
    arguments = (counts, width, height, left, top, step, most)
    launch = Launch(kernel("mandelbrot.cu", "mandelbrot<float>"), grid, (32, 8), arguments)
    expected = _mandelbrot(left + step * np.arange(width) + 1j * (top + step * np.arange(height)[:, None]), most)
    operations = 8 * int(expected.sum())
    return Work((launch,), counts, expected, f"{width}x{height}", bytes=counts.nbytes, operations=operations)


def _mandelbrot(points: np.ndarray, most: int) -> np.ndarray:
    counts = np.zeros(points.size, np.int32)
    index, c = np.arange(points.size), points.ravel()
    z = np.zeros_like(c)
    for _ in range(most):
        within = z.real**2 + z.imag**2 <= 4
        index, z, c = index[within], z[within], c[within]
        counts[index] += 1
        z = z * z + c
    return counts.reshape(points.shape)


def prepare_radix_sort(n: int) -> Work:
    threads, digits = 256, 16
    keys = integers(n, 1 << 32)
    grid = blocks(n, threads)
    source, first, second = podium.asarray(keys), podium.empty(n, "u32"), podium.empty(n, "u32")
    counts = podium.empty(digits * max(1, grid), "u32")
    count, scan, scatter = (
        kernel("radix_sort.cu", name) for name in ("count_digits", "scan_counts", f"scatter<{threads}>")
    )
    launches = []
    for shift in range(0, 32, 4):
        to = first if source is not first else second
        launches += [
            Launch(count, grid, threads, (source, n, shift, counts)),
            Launch(scan, 1, 1024, (counts, digits * grid), shared=4 * 1024),
            Launch(scatter, grid, threads, (source, to, n, shift, counts)),
        ]
        source = to
    return Work(tuple(launches), source, np.sort(keys), f"{n}", bytes=8 * 3 * keys.nbytes)


def prepare_attention(length: int) -> Work:
    return _attention(length, causal=False)


def prepare_causal_attention(length: int) -> Work:
    return _attention(length, causal=True)


def _attention(length: int, causal: bool) -> Work:
    heads, depth, rows, columns = 3, 64, 64, 32
    q, k, v = np.split(normal(3 * heads, length, depth), 3)
    result = podium.empty(q.shape)
    name = f"attention<{depth}, {rows}, {columns}, {str(causal).lower()}>"
    arguments = (podium.asarray(q), podium.asarray(k), podium.asarray(v), result, length)
    launch = Launch(kernel("attention.cu", name), (blocks(length, rows), heads), rows, arguments)
    scores = q.astype(np.float64) @ k.transpose(0, 2, 1) / np.sqrt(depth)
    if causal:
        scores[:, np.triu(np.ones((length, length), bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=2, keepdims=True, initial=-np.inf))
    expected = weights / weights.sum(axis=2, keepdims=True) @ v
    operations = 4 * heads * depth * (length * (length + 1) // 2 if causal else length**2)
    return Work((launch,), result, expected, f"{heads}x{length}x{depth}", bytes=4 * q.nbytes, operations=operations)


def _lengths(small: int, medium: int, large: int) -> dict[str, int]:
    return {"small": small, "medium": medium, "large": large}


_ELEMENTS = _lengths(10_007, 1_000_003, 50_000_017)
_SIDES = _lengths(77, 1_003, 5_003)
_EXACT = "integers are the same in any order"
_ROUNDING = "each sum rounds a few times, and a product and a sum may round once together"
_OFFSET = "the rows are around 100, and a row's mean is as exact as such numbers are"

EXAMPLES: dict[str, Example] = {
    each.name: each
    for each in (
        Example("saxpy", "saxpy.cu", _ELEMENTS, prepare_saxpy, 1e-6, _ROUNDING),
        Example("saxpy-float4", "saxpy.cu", _ELEMENTS, prepare_saxpy_float4, 1e-6, _ROUNDING),
        Example("matmul", "matmul.cu", _lengths(53, 403, 2_003), prepare_matmul, 1e-5, _ROUNDING),
        Example("sum", "reduce.cu", _ELEMENTS, prepare_reduce_sum, 1e-5, _ROUNDING),
        Example("largest", "reduce.cu", _ELEMENTS, prepare_reduce_largest, 0, "nothing is rounded"),
        Example("warp-sum", "warp_reduce.cu", _ELEMENTS, prepare_warp_reduce, 1e-5, _ROUNDING),
        Example("scan", "scan.cu", _ELEMENTS, prepare_scan, 0, _EXACT),
        Example("histogram", "histogram.cu", _ELEMENTS, prepare_histogram, 0, _EXACT),
        Example("softmax", "softmax.cu", _lengths(37, 501, 2_501), prepare_softmax, 1e-5, _ROUNDING),
        Example("layer-norm", "layer_norm.cu", _lengths(37, 501, 2_501), prepare_layer_norm, 1e-4, _OFFSET),
        Example("stencil", "stencil.cu", _SIDES, prepare_stencil, 1e-6, _ROUNDING),
        Example("transpose", "transpose.cu", _SIDES, prepare_transpose, 0, "nothing is computed"),
        Example(
            "mandelbrot",
            "mandelbrot.cu",
            _SIDES,
            prepare_mandelbrot,
            0.02,
            "points near the edge of the set leave it earlier or later with other roundings",
            error=share_of_others,
        ),
        Example("radix-sort", "radix_sort.cu", _lengths(5_003, 300_007, 20_000_003), prepare_radix_sort, 0, _EXACT),
        Example("attention", "attention.cu", _lengths(83, 403, 4_003), prepare_attention, 1e-5, _ROUNDING),
        Example(
            "causal-attention",
            "attention.cu",
            _lengths(83, 403, 4_003),
            prepare_causal_attention,
            1e-5,
            _ROUNDING,
        ),
    )
}
