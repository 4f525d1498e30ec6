"""The recording stand-in for libcuda.so.1: that its binary interface is CUDA's, and what it refuses."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from recording.cuda.calls import GROUPS
from recording.cuda.compare import answers
from recording.cuda.library import NEWEST, SOURCES, build, compiler, entries, environment

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler for the recording library")


def _include_folder() -> Path:
    """The folder with cuda.h of the toolkit wheels."""
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for folder in ("cu13/include", "cuda_runtime/include"):
            if (header := Path(root, folder, "cuda.h")).exists():
                version = re.search(r"#define CUDA_VERSION (\d+)", header.read_text(encoding="utf-8"))
                if version and int(version[1]) >= NEWEST:
                    return header.parent
    pytest.skip("cuda.h of CUDA 13 is not installed (nvidia-cuda-runtime)")


def _compile(source: Path, include: Path | None, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [str(compiler()), "-std=gnu11", "-Wall", "-Wextra", "-Werror", *flags, f"-I{SOURCES}", str(source)]
    if include:
        command += ["-DPODIUM_RECORDING_CUDA_H", f"-I{include}"]
    return subprocess.run(command, capture_output=True, text=True)


def test_every_function_has_the_prototype_of_the_vendors_header() -> None:
    """With cuda.h in place of the library's own declarations, the same sources compile without a warning."""
    include = _include_folder()
    for source in sorted(SOURCES.glob("*.c")):
        done = _compile(source, include, "-fsyntax-only")
        assert done.returncode == 0, done.stderr


def test_a_wrong_prototype_is_found(tmp_path: Path) -> None:
    """The comparison with cuda.h is one: a function with another parameter does not compile."""
    include = _include_folder()
    text = (SOURCES / "object.c").read_text(encoding="utf-8") + "CUresult cuMemFree_v2(int address);\n"
    (tmp_path / "wrong.c").write_text(text)
    assert "conflicting types" in _compile(tmp_path / "wrong.c", include, "-fsyntax-only").stderr


def test_numbers_and_layouts_are_those_of_the_vendors_header(tmp_path: Path) -> None:
    """Enumerators, and sizes and offsets of structs, are the same with cuda.h as with the library's declarations."""
    include = _include_folder()
    text = (SOURCES / "abi.h").read_text(encoding="utf-8")
    statuses = re.findall(r"^STATUS\((\w+),", (SOURCES / "statuses.def").read_text(encoding="utf-8"), re.MULTILINE)
    names = sorted({*re.findall(r"\b(CU_\w+|CUDA_\w+) = ", text), *statuses})
    # The end of the attributes of a function grows with each release.
    values = [(name, f"(long){name}") for name in names if name != "CU_FUNC_ATTRIBUTE_MAX"]
    structs = re.findall(r"typedef (?:struct|union) \{(.*?)\} (CU\w+);", text, re.DOTALL)
    for body, struct in structs:
        values.append((struct, f"(long)sizeof({struct})"))
        if struct != "CUlaunchAttributeValue":  # its members all lie at 0
            fields = re.findall(r"(\w+)(?:\[[^;]*\])?(?=[,;])", body)
            values += [(f"{struct}.{it}", f"(long)offsetof({struct}, {it})") for it in fields if it != "pad"]
    assert len(values) > 250
    lines = "".join(f'    printf("%s %ld\\n", "{name}", {value});\n' for name, value in values)
    source = tmp_path / "layout.c"
    source.write_text(f'#include <stdio.h>\n#include "abi.h"\nint main(void) {{\n{lines}    return 0;\n}}\n')
    outputs = []
    for number, header in enumerate((None, include)):
        done = _compile(source, header, "-o", str(tmp_path / f"layout{number}"))
        assert done.returncode == 0, done.stderr
        outputs.append(subprocess.run([str(tmp_path / f"layout{number}")], capture_output=True, text=True).stdout)
    assert outputs[0].splitlines() == outputs[1].splitlines()


def test_versions_of_entries_are_those_of_the_vendors_header() -> None:
    """Each entry is of a version that cudaTypedefs.h has for its name."""
    text = (_include_folder() / "cudaTypedefs.h").read_text(encoding="utf-8")
    text += (_include_folder() / "cudaProfilerTypedefs.h").read_text(encoding="utf-8")
    known = set(re.findall(r"PFN_(cu\w+?)_v(\d+)\)", text))
    assert [entry for entry in entries() if (entry[0], str(entry[1])) not in known] == []


def test_statuses_are_those_of_cuda_python() -> None:
    """cuda-python has every status of the library, with the same number."""
    driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
    rows = re.findall(r"^STATUS\((\w+), (\d+),", (SOURCES / "statuses.def").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 90
    assert [name for name, number in rows if getattr(driver.CUresult, name) != int(number)] == []


def _run(program: str, version: int = NEWEST, **settings: str) -> str:
    """Run a program on the library in a process of its own, after lines that make `recording`, `driver` and `ok`."""
    prelude = (
        "from recording.cuda.library import Recording\n"
        "recording = Recording()\n"
        "from cuda.bindings import driver\n"
        "R = driver.CUresult\n"
        "def ok(answer):\n"
        "    assert answer[0] == 0, answer\n"
        "    return answer[1] if len(answer) == 2 else answer[1:]\n"
    )
    command = [sys.executable, "-c", prelude + program]
    variables = environment(build(version), **settings)
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_nothing_works_before_initialisation() -> None:
    """As with the real driver, only what needs no device does; afterwards a thread still has no context."""
    assert _run(
        """
assert driver.cuDeviceGetCount()[0] == driver.cuMemAlloc(4)[0] == driver.cuCtxGetCurrent()[0] == 3
assert ok(driver.cuDriverGetVersion()) == 13000
assert ok(driver.cuGetErrorName(R(700))) == b"CUDA_ERROR_ILLEGAL_ADDRESS"
ok(driver.cuInit(0))
assert ok(driver.cuDeviceGetCount()) == 2
assert driver.cuMemAlloc(4)[0] == 201 and driver.cuCtxGetDevice()[0] == 201
assert driver.cuDeviceGet(2)[0] == 101
print("passed")
"""
    ).endswith("passed\n")


def test_a_driver_of_an_older_version_lacks_what_came_later() -> None:
    """A library built as 11.4 has neither cuLibrary nor cuLaunchKernelEx, not even for a loader that looks them up."""
    program = """
import ctypes
library = ctypes.CDLL(recording.path)
version = ctypes.c_int()
assert library.cuDriverGetVersion(ctypes.byref(version)) == 0 and version.value == 11040
assert not hasattr(library, "cuLibraryLoadData") and not hasattr(library, "cuLaunchKernelEx")
assert not hasattr(library, "cuGetProcAddress_v2")
place = ctypes.c_void_p()
assert library.cuGetProcAddress(b"cuLibraryLoadData", ctypes.byref(place), 13000, ctypes.c_uint64(0)) == 500
assert library.cuGetProcAddress(b"cuMemAlloc", ctypes.byref(place), 11030, ctypes.c_uint64(0)) == 0
assert place.value == ctypes.cast(library.cuMemAlloc_v2, ctypes.c_void_p).value
print("passed")
"""
    assert _run(program, version=11040).endswith("passed\n")


def test_the_form_of_a_function_is_that_of_the_version_asked_for() -> None:
    """cuGetProcAddress gives the newest form that is not newer than the version that the caller was written for."""
    program = """
import ctypes
library = ctypes.CDLL(recording.path)
def look_up(name, version, flags=0):
    place, found = ctypes.c_void_p(), ctypes.c_int()
    status = library.cuGetProcAddress_v2(name, ctypes.byref(place), version, ctypes.c_uint64(flags), ctypes.byref(found))
    return status, found.value, place.value
def address(symbol):
    return ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
assert look_up(b"cuCtxGetDevice", 12000) == (0, 0, address("cuCtxGetDevice"))
assert look_up(b"cuCtxGetDevice", 13000) == (0, 0, address("cuCtxGetDevice_v2"))
assert look_up(b"cuLibraryLoadData", 11080) == (500, 2, None)
assert look_up(b"cuNoSuchThing", 13000) == (500, 1, None)
assert look_up(b"cuLaunchKernel", 13000, flags=2) == (500, 1, None)
print("passed")
"""
    assert _run(program).endswith("passed\n")


def test_every_group_of_calls_runs_to_its_end() -> None:
    """What is compared with a real driver (tests/recording/cuda/compare.py) can be asked of the recording one."""
    ended = {group: answers(group, environment(build())) for group in GROUPS}
    assert {group: lines for group, lines in ended.items() if len(lines) < 5} == {}
    assert dict(ended["launches"])["cooperative 4225"] == "COOPERATIVE_LAUNCH_TOO_LARGE"
    assert dict(ended["captures"])["mode 0, alloc: end"] == "STREAM_CAPTURE_INVALIDATED"
