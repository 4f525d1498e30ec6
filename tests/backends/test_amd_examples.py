"""Every example kernel compiles for AMD GPUs by the real hipRTC, for warps of 64 threads and of 32."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import podium
from podium import Target

pytest.importorskip("numpy", reason="the examples need numpy")
pytest.importorskip("podium_cpu", reason="the examples are described with arrays of the CPU backend")
pytest.importorskip("podium_amd", reason="podium-amd is not installed")

import amd_hiprtc  # noqa: F401 - skips without hipRTC

from podium_amd.code_object import CodeObject
from podium_amd.compiler import compile_program
from podium_amd.parameters import mismatch

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "kernels"))
from catalogue import EXAMPLES

TARGETS = (Target("amd", "gfx90a", 64), Target("amd", "gfx1030", 32))


def _kernels() -> list[podium.Kernel]:
    """Return each kernel that the examples launch."""
    found = {}
    with podium.use("cpu"):
        for example in EXAMPLES.values():
            for launch in example.prepare(example.sizes["small"]).launches:
                found[f"{example.file}: {launch.kernel.name}"] = launch.kernel
    return list(found.values())


def test_every_example_compiles_for_warps_of_both_sizes() -> None:
    """Each kernel, with the template arguments it is launched with, compiles; the code is what signature and target say."""
    kernels = _kernels()
    assert len(kernels) >= 20
    for kernel in kernels:
        entry = kernel.declaration.program.entries[0]
        for target in TARGETS:
            code = compile_program(kernel.declaration.program, target)
            found = CodeObject(code.code).kernel(code.symbol(kernel.name))
            assert code.format == "hsaco" and found is not None
            assert mismatch(found, entry) is None
            assert (found.wavefront_size, found.spilled_registers) == (target.warp_size, 0)
