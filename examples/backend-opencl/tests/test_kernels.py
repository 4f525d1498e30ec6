"""The example kernels of the repository, as CUDA programmers write them, on an OpenCL device."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from podium.backend import Driver

_FOLDER = Path(__file__).parents[2] / "kernels"
_NAMES = (
    "saxpy saxpy-float4 matmul sum largest warp-sum scan histogram softmax layer-norm stencil transpose mandelbrot "
    "radix-sort attention causal-attention"
).split()

pytestmark = pytest.mark.newest


@pytest.mark.parametrize("name", _NAMES)
def test_an_example_kernel_computes_what_numpy_does(opencl: Driver, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are translated, with one element and with a number that is no multiple of the block."""
    monkeypatch.syspath_prepend(_FOLDER)
    from catalogue import EXAMPLES

    assert set(EXAMPLES) == set(_NAMES)
    example = EXAMPLES[name]
    for size in (1, example.sizes["small"]):
        work = example.prepare(size)
        for _ in range(3):
            work = example.prepare(size)
            work.run()
            error = example.check(work)
            assert error <= example.tolerance, f"size {work.shape}: {error}"
    sys.modules.pop("catalogue")
