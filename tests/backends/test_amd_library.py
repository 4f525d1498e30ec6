"""The HIP runtime library: which copy a process uses, in which order it is looked for, and how hip-python gets it."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from amd_machines import python, runtime_library

pytest.importorskip("podium_amd", reason="podium-amd is not installed")
pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler for runtime libraries"),
    pytest.mark.skipif(importlib.util.find_spec("rocm") is None, reason="hip-python is not installed"),
]

ASK = """
import ctypes, os, sys
from podium.errors import BackendError
from podium_amd import library
def ask():
    try:
        print(library.path(), library.abi())
    except BackendError as error:
        print("refused:", error)
"""


def test_the_loader_is_asked_for_versioned_names(tmp_path: Path) -> None:
    """LIB-01: the newest version that the loader knows is taken; distributions ship no plain name."""
    for abi in (5, 6, 7):
        file = runtime_library(tmp_path / f"libamdhip64.so.{abi}", abi)
        assert python(ASK + "ask()", LD_LIBRARY_PATH=tmp_path) == f"{file} {abi}"


def test_what_hip_python_would_open_comes_first(tmp_path: Path) -> None:
    """LIB-07: ROCM_PATH and the plain name count, as for hip-python itself, before the versioned names."""
    runtime_library(tmp_path / "default/libamdhip64.so.7")
    mine = runtime_library(tmp_path / "rocm/lib/libamdhip64.so", 6)
    folders = {"LD_LIBRARY_PATH": tmp_path / "default", "ROCM_PATH": tmp_path / "rocm"}
    assert python(ASK + "ask()", **folders) == f"{mine} 6"


def test_the_variable_beats_all(tmp_path: Path) -> None:
    """LIB-03: PODIUM_AMD_LIBHIP comes first; a file that is none is an error."""
    runtime_library(tmp_path / "rocm/lib/libamdhip64.so", 6)
    file = runtime_library(tmp_path / "mine.so")
    assert python(ASK + "ask()", ROCM_PATH=tmp_path / "rocm", PODIUM_AMD_LIBHIP=file) == f"{file} 7"
    told = python(ASK + "ask()", PODIUM_AMD_LIBHIP=tmp_path / "none.so")
    assert told.startswith("refused: PODIUM_AMD_LIBHIP names what cannot be used:")


def test_a_copy_that_the_process_has_is_used(tmp_path: Path) -> None:
    """LIB-06: a framework's copy, whatever it is called, is used, and no second one is opened beside it."""
    runtime_library(tmp_path / "default/libamdhip64.so.7")
    for name in ("libamdhip64.so", "libamdhip64-3f2a.so.6.1"):
        file = runtime_library(tmp_path / "torch" / name, 6, soname=name)
        program = ASK + "ctypes.CDLL(sys.argv[1]); ask(); print(len(library.mapped()))"
        assert python(program, file, LD_LIBRARY_PATH=tmp_path / "default").split("\n") == [f"{file} 6", "1"]
        told = python(program, file, PODIUM_AMD_LIBHIP=tmp_path / "default/libamdhip64.so.7")
        assert f"this process has {file} open already" in told


def test_two_copies_are_an_error_that_names_both(tmp_path: Path) -> None:
    """LIB-06: with two copies in a process, memory of the one is nothing to the other: it is refused, with both names."""
    one = runtime_library(tmp_path / "one/libamdhip64.so.7")
    other = runtime_library(tmp_path / "other/libamdhip64.so.6", 6)
    told = python(ASK + "list(map(ctypes.CDLL, sys.argv[1:])); ask()", one, other)
    assert (
        told.startswith("refused: This process has 2 copies of the HIP runtime open") and f"{one} and {other}" in told
    )


def test_a_copy_of_another_name_counts(tmp_path: Path) -> None:
    """LIB-06: the variable's file may be called anything, and a copy beside it, or named later, is a second one."""
    file = runtime_library(tmp_path / "mine.so")
    other = runtime_library(tmp_path / "other/libamdhip64.so.6", 6)
    program = ASK + "ask(); ctypes.CDLL(sys.argv[1]); library.path = library.mapped; library.abi = str; ask()"
    assert f"2 copies of the HIP runtime open, {file} and {other}" in python(program, other, PODIUM_AMD_LIBHIP=file)
    program = ASK + f"ask(); os.environ[library.VARIABLE] = {str(other)!r}; ask()"
    assert f"this process has {file} open already" in python(program, PODIUM_AMD_LIBHIP=file)


def test_the_variable_may_have_a_name_for_the_loader(tmp_path: Path) -> None:
    """LIB-03: a bare name means the copy that the process has open under it."""
    file = runtime_library(tmp_path / "libamdhip64.so.6", 6)
    program = ASK + "ctypes.CDLL(sys.argv[1]); ask()"
    folder = {"LD_LIBRARY_PATH": tmp_path}
    assert python(program, file, PODIUM_AMD_LIBHIP="libamdhip64.so.6", **folder) == f"{file} 6"


@pytest.mark.parametrize("error", ["RuntimeError", "OSError"])
def test_a_broken_hip_python_is_an_error_of_podiums(tmp_path: Path, error: str) -> None:
    """DISC-05: whatever hip-python raises when it is imported, the library is found, and what needs hip-python says why."""
    file = runtime_library(tmp_path / "libamdhip64.so.6", 6)
    (tmp_path / "broken/rocm").mkdir(parents=True)
    (tmp_path / "broken/rocm/__init__.py").write_text(f"raise {error}('on purpose')\n")
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from podium.errors import PodiumError
from podium_amd import bindings, detection, library
print(library.path())
for ask in (bindings.hip, bindings.hiprtc):
    try:
        ask()
    except PodiumError as refusal:
        print(type(refusal).__name__, "on purpose" in str(refusal))
sys.path = [sys.argv[1], *(path for path in sys.path if "site-packages" not in path)]
print(detection._package_reason())
"""
    variables = {"LD_LIBRARY_PATH": tmp_path, "PODIUM_AMD_HIPRTC": file}
    lines = python(program, tmp_path / "broken", **variables).split("\n")
    assert lines[:3] == [str(file), "BackendError True", "ToolchainError True"]
    assert lines[3].startswith(f"hip-python cannot be imported: {error}: on purpose. Run: pip install")


def test_a_copy_that_compiles_is_no_second_one(tmp_path: Path) -> None:
    """Before HIP 6, hipRTC is in the runtime library; one that is opened to compile is not taken for a runtime."""
    runtime = runtime_library(tmp_path / "libamdhip64.so.7")
    compiler = runtime_library(tmp_path / "old/libamdhip64.so.5", 5)
    program = ASK + "library.note_compiler(sys.argv[1]); ctypes.CDLL(sys.argv[1]); ask(); print(library.mapped())"
    assert python(program, compiler, PODIUM_AMD_LIBHIP=runtime).split("\n") == [f"{runtime} 7", f"['{runtime}']"]


def test_hip_python_opens_what_it_is_told_to(tmp_path: Path) -> None:
    """hip-python looks for its library in its first call, by a function that podium replaces: pinned, since undocumented."""
    runtime_library(tmp_path / "rocm/lib/libamdhip64.so", 6)
    file = runtime_library(tmp_path / "mine.so.7")
    program = """
import sys
from podium_amd import bindings, library
hip = bindings.hip()
print(hip.has_symbol("hipDrvLaunchKernelEx"), hip.has_symbol("hipInit"), bindings.own_path("amdhip64"))
with open("/proc/self/maps") as lines:
    print(any("rocm/lib/libamdhip64" in line for line in lines), library.path())
"""
    lines = python(program, ROCM_PATH=tmp_path / "rocm", PODIUM_AMD_LIBHIP=file).split("\n")
    assert lines == [f"True False {tmp_path}/rocm/lib/libamdhip64.so", f"False {file}"]


def test_hip_python_that_was_used_before_decides(tmp_path: Path) -> None:
    """LIB-06: a program that called hip-python before podium has that copy in the process, and podium takes it."""
    file = runtime_library(tmp_path / "rocm/lib/libamdhip64.so", 6)
    runtime_library(tmp_path / "default/libamdhip64.so.7")
    program = """
from rocm.bindings import hip
assert hip.has_symbol("hipModuleLaunchKernel")
from podium_amd import bindings, library
print(library.path(), bindings.hip() is hip)
"""
    told = python(program, ROCM_PATH=tmp_path / "rocm", LD_LIBRARY_PATH=tmp_path / "default")
    assert told == f"{file} True"
