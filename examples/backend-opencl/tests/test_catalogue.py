"""The example kernels of podium's repository, written for GPUs: right on OpenCL, at both levels and awkward sizes."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from podium.backend import Driver

FOLDER = Path(__file__).parents[2] / "kernels"


def load(name: str) -> ModuleType:
    """Import a module of the folder, which is no package: programs there are run as they are."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


if not FOLDER.is_dir():
    pytest.skip("the example kernels are in podium's repository", allow_module_level=True)
catalogue = load("catalogue")


@pytest.mark.parametrize("name", catalogue.EXAMPLES)
def test_a_kernel_computes_what_numpy_does(name: str, opencl: Driver, level: str) -> None:
    """With no element, with one, and thrice with a number that is no multiple of the block, since threads may race."""
    example = catalogue.EXAMPLES[name]
    for size in (0, 1, *[example.sizes["small"]] * 3):
        work = example.prepare(size)
        work.run()
        error = example.check(work)
        assert error <= example.tolerance, f"size {work.shape}: {error}"
        assert {launch.kernel.level for launch in work.launches} == {level}
