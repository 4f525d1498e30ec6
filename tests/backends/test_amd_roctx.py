"""ROCTX ranges around launches, as a profiler sees them: a library of our own in the place of ROCm's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from amd_machines import python

pytest.importorskip("podium_amd", reason="podium-amd is not installed")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler for a stand-in library")

SOURCE = """
#include <stdio.h>
#include <string.h>
static char text[4096];
int roctxRangePushA(const char *name) { return snprintf(text + strlen(text), sizeof text / 2, "[%s|", name); }
int roctxRangePop(void) { strcat(text, "]"); return 0; }
const char *recorded(void) { return text; }
"""

PROGRAM = """
import ctypes, os, sys, warnings
warnings.simplefilter("error")
import podium, podium_amd
from podium_amd import roctx
from podium.testing import FakeDriver
driver = FakeDriver()
podium.set_active(driver)
scale = podium.kernel("__global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }")
x = podium.empty(4, "fp32")
def log():
    recorder = ctypes.CDLL(roctx.NAMES[0])
    recorder.recorded.restype = ctypes.c_char_p
    return recorder.recorded().decode()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the stand-in."""
    made = tmp_path_factory.mktemp("roctx")
    from podium_amd import roctx

    command = ["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-x", "c", "-", "-o", str(made / roctx.NAMES[0])]
    subprocess.run(command, input=SOURCE, text=True, check=True)
    return made


@pytest.mark.parametrize("level", ["interpreted", "generated"])
def test_a_range_has_the_kernels_name(folder: Path, level: str) -> None:
    """Each launch inside the block is a range with name, grid and block, at both levels, and none outside is."""
    program = """
scale[1, 4](x, 1.0)
with podium_amd.roctx_ranges() as ranges:
    scale[(3, 5), 4](x, 1.0)
    ranges.start()
scale[1, 4](x, 1.0)
ranges.stop()
print(log())
"""
    told = python(PROGRAM + program, LD_LIBRARY_PATH=folder, PODIUM_LAUNCHER=level)
    assert told == "[scale grid (3, 5, 1) block (4, 1, 1)|]"


def test_a_launch_that_fails_ends_its_range(folder: Path) -> None:
    """A range is closed by whatever way a launch ends; a hook before it that stops a launch leaves none open."""
    program = """
from podium.errors import LaunchError
with podium_amd.roctx_ranges():
    driver.next_status = 7
    try:
        scale[1, 4](x, 1.0)
    except LaunchError:
        pass
print(log())
"""
    assert python(PROGRAM + program, LD_LIBRARY_PATH=folder) == "[scale grid (1, 1, 1) block (4, 1, 1)|]"


def test_without_the_library_it_is_said_what_is_missing(tmp_path: Path) -> None:
    """The block and the variable need ROCm's library: without it each says so, and which package has it."""
    program = """
from podium.errors import SettingError
roctx.NAMES = ("librecorder-of-nothing.so.1",)
try:
    podium_amd.roctx_ranges().start()
except OSError as error:
    print("roctracer" in str(error))
os.environ["PODIUM_AMD_ROCTX"] = "1"
from podium_amd.driver import AmdDriver
try:
    AmdDriver()
except SettingError as error:
    print("PODIUM_AMD_ROCTX" in str(error))
"""
    assert python(PROGRAM + program).split("\n") == ["True", "True"]


def test_the_variable_is_for_the_whole_process(folder: Path) -> None:
    """PODIUM_AMD_ROCTX=1 puts ranges around all launches once the backend's driver has been made."""
    program = """
from podium_amd.driver import AmdDriver
AmdDriver()
scale[1, 4](x, 1.0)
print(log())
"""
    told = python(PROGRAM + program, LD_LIBRARY_PATH=folder, PODIUM_AMD_ROCTX="1")
    assert told == "[scale grid (1, 1, 1) block (4, 1, 1)|]"
