"""The CUDA driver library: which copy a process uses, in which order it is looked for, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from nvidia_machines import driver_library, python

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler for driver libraries")

ASK = """
import ctypes, os, sys
from podium.errors import BackendError
from podium_nvidia import libcuda
def ask():
    try:
        print(libcuda.path(), libcuda.version())
    except BackendError as error:
        print("refused:", error)
"""


def test_the_loader_is_asked_for_the_versioned_name(tmp_path: Path) -> None:
    """LIB-01, LIB-03: LD_LIBRARY_PATH counts, by libcuda.so.1 and never by the name for linking."""
    file = driver_library(tmp_path / "libcuda.so.1", 12040)
    driver_library(tmp_path / "libcuda.so", 99990)
    program = ASK + "ask(); print(libcuda.tried()); print(libcuda.library() is libcuda.library())"
    lines = python(program, LD_LIBRARY_PATH=tmp_path).split("\n")
    assert lines == [f"{file} 12040", f"['libcuda.so.1: opened, {file}']", "True"]


def test_the_variable_beats_the_loader(tmp_path: Path) -> None:
    """LIB-03: PODIUM_NVIDIA_LIBCUDA comes first, and who opens the library by its name then gets this copy."""
    driver_library(tmp_path / "default" / "libcuda.so.1", 12040)
    file = driver_library(tmp_path / "mine.so", 13000)
    program = ASK + "ask(); ask(); print(ctypes.CDLL('libcuda.so.1')._handle == libcuda.library()._handle)"
    lines = python(program, LD_LIBRARY_PATH=tmp_path / "default", PODIUM_NVIDIA_LIBCUDA=file).split("\n")
    assert lines == [f"{file} 13000", f"{file} 13000", "True"]


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    """The loader's words on a file whose name is no UTF-8 cannot be read; it is not there all the same."""
    lines = python(
        ASK + "ask()", PODIUM_NVIDIA_LIBCUDA=tmp_path / "\udc80.so", PYTHONIOENCODING="utf-8:backslashreplace"
    )
    assert lines.startswith("refused: PODIUM_NVIDIA_LIBCUDA names what cannot be used:")


def test_a_copy_that_the_process_has_is_used(tmp_path: Path) -> None:
    """LIB-04, LIB-06: whoever opened the library first decides, and a second copy is not opened beside it."""
    file = driver_library(tmp_path / "framework" / "libcuda.so.550", 12040)
    driver_library(tmp_path / "default" / "libcuda.so.1", 13000)
    program = ASK + "ctypes.CDLL(sys.argv[1]); ask(); print(libcuda.tried())"
    lines = python(program, file, LD_LIBRARY_PATH=tmp_path / "default").split("\n")
    assert lines == [f"{file} 12040", f"['{file}: open in this process already']"]


def test_a_copy_that_differs_from_the_variable_is_refused(tmp_path: Path) -> None:
    """LIB-06: a process that has another copy than the one named is told of both; the same file by a link is fine."""
    had = driver_library(tmp_path / "framework" / "libcuda.so.1", 12040)
    named = driver_library(tmp_path / "named.so", 13000)
    link = tmp_path / "link.so"
    link.symlink_to(had)
    program = (
        ASK
        + """
ctypes.CDLL(sys.argv[1])
for os.environ["PODIUM_NVIDIA_LIBCUDA"] in sys.argv[2:]:
    ask()
del os.environ["PODIUM_NVIDIA_LIBCUDA"]
ask()
os.environ["PODIUM_NVIDIA_LIBCUDA"] = sys.argv[2]
ask()
"""
    )
    refused, linked, without, late = python(program, had, named, link).split("\n")
    assert str(named) in refused
    assert str(had) in refused
    assert linked == without == f"{had} 12040"
    assert late == refused


def test_what_is_named_must_be_a_driver_library(tmp_path: Path) -> None:
    """A file that is missing, no library, another library, a stub, or of another SONAME is told for what it is."""
    text = tmp_path / "text.so"
    text.write_text("no library")
    cases = {
        tmp_path / "missing.so": "cannot open shared object file",
        text: "text.so: ",
        driver_library(tmp_path / "other.so", symbol="cuInit"): "has no cuDriverGetVersion",
        driver_library(tmp_path / "stub.so", status=34): "the stub that programs are linked with",
        driver_library(tmp_path / "named.so", soname="libother.so.1"): "whose SONAME is not libcuda.so.1",
    }
    program = ASK + "for os.environ['PODIUM_NVIDIA_LIBCUDA'] in sys.argv[1:]: ask()"
    for line, (file, part) in zip(python(program, *cases).split("\n"), cases.items(), strict=True):
        assert line.startswith("refused: PODIUM_NVIDIA_LIBCUDA names ")
        assert str(file) in line
        assert part in line


def test_what_was_not_found_is_looked_for_again(tmp_path: Path) -> None:
    """ACT-02: a search without a result is not kept, and its error lists what was tried."""
    folder = tmp_path / "usr/lib64"
    program = (
        ASK
        + """
def find():
    try:
        print(libcuda.find(sys.argv[1]).path)
    except BackendError as error:
        print(error, libcuda.tried())
find()
os.rename(sys.argv[1] + "/usr/lib64/later", sys.argv[1] + "/usr/lib64/libcuda.so.1")
find()
"""
    )
    driver_library(folder / "later")
    first, second = python(program, tmp_path).split("\n")
    assert first.startswith("libcuda.so.1 was not found. Tried: ")
    assert second == str(folder / "libcuda.so.1")


def test_a_stub_that_the_loader_finds_is_passed_over(tmp_path: Path) -> None:
    """LIB-01: a stub on the library path does not stay open, where the driver's own library would be hidden by it."""
    driver_library(tmp_path / "stubs" / "libcuda.so.1", status=34)
    real = driver_library(tmp_path / "real" / "libcuda.so.1", 12040)
    program = (
        ASK
        + """
libcuda.FOLDERS = (sys.argv[1].lstrip("/"),)
ask()
print(ctypes.CDLL("libcuda.so.1")._handle == libcuda.library()._handle)
"""
    )
    lines = python(program, real.parent, LD_LIBRARY_PATH=tmp_path / "stubs").split("\n")
    assert lines == [f"{real} 12040", "True"]
