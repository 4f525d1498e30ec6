"""Every example kernel compiles for NVIDIA GPUs, from the oldest architecture that NVRTC knows to the newest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import podium
from podium import Target

pytest.importorskip("numpy", reason="the examples need numpy")
pytest.importorskip("podium_cpu", reason="the examples are described with arrays of the CPU backend")

import nvidia_compile  # noqa: F401 - skips without NVRTC

from podium_nvidia import nvrtc
from podium_nvidia.compiler import compile_program
from podium_nvidia.cubin import Cubin

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "kernels"))
from catalogue import EXAMPLES


def _kernels() -> dict[str, podium.Kernel]:
    """Return each kernel that the examples launch, by file and name."""
    found = {}
    with podium.use("cpu"):
        for example in EXAMPLES.values():
            for launch in example.prepare(example.sizes["small"]).launches:
                found[f"{example.file}: {launch.kernel.name}"] = launch.kernel
    return found


def test_every_example_compiles_from_the_oldest_architecture_to_the_newest() -> None:
    """Each kernel, with the template arguments it is launched with, compiles for both ends; the code fits its signature."""
    supported = nvrtc.load().supported
    kernels = _kernels()
    assert len(kernels) >= 20
    for kernel in kernels.values():
        for number in (supported[0], supported[-1]):
            code = compile_program(kernel.declaration.program, Target("nvidia", f"sm_{number}", 32))
            found = Cubin(code.code).kernel(code.symbol(kernel.name))
            assert code.format == "cubin" and found is not None
            assert list(found.parameters) == [each.type.size for each in kernel.signature.passed]
