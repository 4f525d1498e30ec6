"""The kernels that are measured and their sizes: those of examples/kernels, and a few that only move memory."""

from __future__ import annotations

import sys
from pathlib import Path

EXAMPLES_FOLDER = Path(__file__).parent.parent / "examples" / "kernels"
sys.path.append(str(EXAMPLES_FOLDER))

from catalogue import EXAMPLES, Example, Launch, Work, blocks, kernel, normal  # noqa: E402

import podium  # noqa: E402

__all__ = ["MEMORY_BOUND", "WORKLOADS", "Example", "Launch", "Work", "size_of"]

MEMORY = Path(__file__).parent / "cpu" / "memory.cu"

MEMORY_BOUND = ("copy", "triad", "saxpy")


def prepare_copy(n: int) -> Work:
    x = normal(n)
    result = podium.empty(n)
    launch = Launch(podium.kernel(MEMORY, "copy"), blocks(n, 256), 256, (n, podium.asarray(x), result))
    return Work((launch,), result, x, f"{n}", bytes=2 * x.nbytes)


def prepare_triad(n: int) -> Work:
    b, s = normal(n), 0.5
    c, result = b[::-1].copy(), podium.empty(n)
    arguments = (n, s, podium.asarray(b), podium.asarray(c), result)
    launch = Launch(podium.kernel(MEMORY, "triad"), blocks(n, 256), 256, arguments)
    return Work((launch,), result, b + s * c, f"{n}", bytes=3 * b.nbytes, operations=2 * n)


def prepare_wide_matmul(size: int) -> Work:
    work = EXAMPLES["matmul"].prepare(size)
    *_, m, n, _k = work.launches[0].arguments
    product = kernel("matmul.cu", "matmul<float, 32>")
    launch = Launch(product, (blocks(n, 32), blocks(m, 32)), (32, 32), work.launches[0].arguments)
    return Work((launch,), work.output, work.expected, work.shape, work.bytes, work.operations)


_MEMORY, _MATMUL = EXAMPLES["saxpy"], EXAMPLES["matmul"]

WORKLOADS: dict[str, Example] = {
    "copy": Example("copy", "memory.cu", _MEMORY.sizes, prepare_copy, 0, "nothing is computed"),
    "triad": Example("triad", "memory.cu", _MEMORY.sizes, prepare_triad, _MEMORY.tolerance, _MEMORY.because),
    **EXAMPLES,
    "matmul-32": Example(
        "matmul-32", "matmul.cu", _MATMUL.sizes, prepare_wide_matmul, _MATMUL.tolerance, _MATMUL.because
    ),
}

# For figures: arrays larger than the caches where memory is what counts, and else as large as takes tens of
# milliseconds. None is a multiple of a block.
_LONG = 16_777_259
_SIZES = {
    "copy": _LONG,
    "triad": _LONG,
    "saxpy": _LONG,
    "saxpy-float4": _LONG,
    "sum": _LONG,
    "largest": _LONG,
    "warp-sum": _LONG,
    "scan": _LONG,
    "histogram": 4_000_037,
    "matmul": 603,
    "matmul-32": 603,
    "softmax": 1_001,
    "layer-norm": 1_001,
    "stencil": 2_003,
    "transpose": 2_003,
    "mandelbrot": 703,
    "radix-sort": 1_000_003,
    "attention": 803,
    "causal-attention": 803,
}


# For many short samples: of a machine that others use, some have all cores.
_SHORT = {"mandelbrot": 203, "matmul": 303, "triad": _LONG}


def size_of(name: str, size: str) -> int:
    """Return how large a kernel's work is: "small" or "medium" as in the examples, "figures", or "short"."""
    example = WORKLOADS[name]
    if size == "short":
        return _SHORT.get(name, example.sizes["small"])
    return _SIZES.get(name, example.sizes["medium"]) if size == "figures" else example.sizes[size]
