"""NVTX ranges around launches, as a profiler sees them: a library of our own that NVTX loads in a profiler's place."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nvidia_machines import python

import podium_nvidia

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler for a stand-in profiler")

SETUP = """
import ctypes, os, sys, warnings
warnings.simplefilter("error")
import podium, podium_nvidia
from podium.testing import FakeDriver
driver = FakeDriver()
podium.set_active(driver)
scale = podium.kernel("__global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }")
x = podium.empty(4, "fp32")
def log():
    recorder = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
    recorder.nvtx_recorder_log.restype = ctypes.c_char_p
    return recorder.nvtx_recorder_log().decode()
"""


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the stand-in."""
    pytest.importorskip("nvtx", reason="the package nvtx is not installed")
    library = tmp_path_factory.mktemp("nvtx") / "recorder.so"
    source = Path(__file__).with_name("nvtx_recorder.c")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(library)], check=True
    )
    return library


def test_a_range_has_the_kernels_name(recorder: Path) -> None:
    """Each launch inside the block is a range of the kernel's name, at both levels, and none outside is."""
    program = (
        SETUP
        + """
scale[1, 4](x, 1.0)
with podium_nvidia.nvtx_ranges() as ranges:
    scale[(3, 5), 4](x, 1.0)
    ranges.start()
    scale[1, 4](x, 1.0)
scale[1, 4](x, 1.0)
ranges.stop()
print(log())
"""
    )
    for level in ("interpreted", "generated"):
        assert python(program, NVTX_INJECTION64_PATH=recorder, PODIUM_LAUNCHER=level).split("\n") == [
            "category 1 fake of podium",
            "push scale in podium, category 1, payload 15",
            "pop in podium",
            "push scale in podium, category 1, payload 1",
            "pop in podium",
        ]


def test_ranges_are_closed_whatever_happens(recorder: Path) -> None:
    """A launch that fails, and a hook that raises before or after the push, leave no range open and pop none twice."""
    program = (
        SETUP
        + """
def stop(event):
    raise RuntimeError("no launch")
with podium_nvidia.nvtx_ranges():
    podium.hooks.enter.add(stop)
    try: scale[1, 4](x, 1.0)
    except RuntimeError: pass
    podium.hooks.enter.remove(stop)
podium.hooks.enter.add(stop)
with podium_nvidia.nvtx_ranges():
    try: scale[1, 4](x, 1.0)
    except RuntimeError: pass
print(log())
"""
    )
    lines = python(program, NVTX_INJECTION64_PATH=recorder).split("\n")
    assert [line.split()[0] for line in lines] == ["category", "push", "pop"]


def test_nothing_is_added_where_no_profiler_listens() -> None:
    """Without a profiler the chains stay empty, so that launches are as quick as without ranges."""
    pytest.importorskip("nvtx", reason="the package nvtx is not installed")
    program = SETUP + "with podium_nvidia.nvtx_ranges(): print(podium.hooks.enter.any())"
    assert python(program) == "False"


def test_the_variable_puts_ranges_around_all(recorder: Path) -> None:
    """PODIUM_NVIDIA_NVTX=1 is looked at when the backend's driver is made, and begins the ranges once."""
    program = (
        SETUP
        + """
from podium_nvidia.driver import NvidiaDriver
NvidiaDriver()
NvidiaDriver()
scale[2, 4](x, 1.0)
print(log().count("push"))
"""
    )
    assert python(program, NVTX_INJECTION64_PATH=recorder, PODIUM_NVIDIA_NVTX="1") == "1"
    assert python(program, NVTX_INJECTION64_PATH=recorder, PODIUM_NVIDIA_NVTX="0") == "0"


def test_a_missing_package_is_named() -> None:
    """Who asks for ranges without the package is told what to install; the variable's error names the variable."""
    program = """
import sys
sys.modules["nvtx"] = None
from podium.errors import SettingError
from podium_nvidia.driver import NvidiaDriver
from podium_nvidia.nvtx import nvtx_ranges
for function, error in ((nvtx_ranges().start, ImportError), (NvidiaDriver, SettingError)):
    try: function()
    except error as raised: print(raised)
"""
    plain, setting = python(program, PODIUM_NVIDIA_NVTX="1").split("\n")
    assert "need the Python package nvtx" in plain and "pip install 'podium-nvidia[nvtx]'" in plain
    assert setting.startswith("PODIUM_NVIDIA_NVTX='1' is not valid") and "pip install" in setting


def test_names_are_imported_when_they_are_used() -> None:
    """PRF-05: importing the package, which a plug-in does, imports none of its modules."""
    program = "import sys, podium_nvidia; print([name for name in sys.modules if name.startswith('podium_nvidia.')])"
    assert python(program) == "['podium_nvidia._version']"
    assert callable(podium_nvidia.nvtx_ranges)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        podium_nvidia.nonsense  # noqa: B018
    assert sys.modules["podium_nvidia.nvtx"].nvtx_ranges is podium_nvidia.nvtx_ranges
