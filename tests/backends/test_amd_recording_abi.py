"""The recording stand-in for HIP's runtime: that its binary interface is HIP's, by AMD's own headers and libraries."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recording.hip.library import MAJORS, SOURCES, build, command, compiler, compiler_entries, entries, sources
from recording.hip.machine import RUNTIME, library_folder

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler for the recording HIP runtime")


def _headers(major: int) -> Path:
    """The folder of AMD's headers of a version: fetched, installed, or in Triton's wheel."""
    places = [Path(os.environ[RUNTIME], "headers", str(major), "usr/include")] if os.environ.get(RUNTIME) else []
    places.append(Path("/usr/include"))
    places += [Path(folder, "triton/backends/amd/include") for folder in sys.path]
    for place in places:
        version = place / "hip/hip_version.h"
        if version.exists() and f"#define HIP_VERSION_MAJOR {major}\n" in version.read_text(encoding="utf-8"):
            return place
    pytest.skip(f"AMD's headers of HIP {major} are not here: run tests/recording/hip/fetch.py, and set {RUNTIME}")


def _against(headers: Path, major: int, *flags: str) -> list[str]:
    return command(str(compiler()), major, "-DRECORDING_HIP_HEADERS", f"-I{SOURCES}", "-isystem", str(headers), *flags)


@pytest.mark.parametrize("major", MAJORS)
def test_every_function_has_the_prototype_of_amds_header(major: int, tmp_path: Path) -> None:
    """With AMD's headers in place of the library's own declarations, the sources compile; a wrong one would not."""
    headers = _headers(major)
    for source in sorted(SOURCES.glob("*.c")):
        done = subprocess.run([*_against(headers, major), "-fsyntax-only", source], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    (tmp_path / "wrong.c").write_text('#include "abi.h"\nhipError_t hipFree(int address);\n')
    line = [*_against(headers, major), "-fsyntax-only", tmp_path / "wrong.c"]
    assert "conflicting types" in subprocess.run(line, capture_output=True, text=True).stderr


@pytest.mark.parametrize("major", MAJORS)
def test_numbers_and_layouts_are_those_of_amds_header(major: int, tmp_path: Path) -> None:
    """Enumerators, sizes, offsets of members and the places of properties are the same with AMD's headers."""
    headers = _headers(major)
    text = (SOURCES / "abi.h").read_text(encoding="utf-8")
    statuses = re.findall(r"^STATUS\((\w+),", (SOURCES / "statuses.def").read_text(encoding="utf-8"), re.MULTILINE)
    later = {"hipErrorInvalidChannelDescriptor", "hipErrorInvalidTexture"}  # which are not in all versions
    names = sorted({*re.findall(r"\b(hip[A-Z]\w+|HIP_[A-Z_]+) = \d", text), *statuses} - later)
    since = {6: ("Unregistered", "TypeManaged", "PoolsSupported", "HIP_GET_PROC"), 7: ("hipLaunchAttribute",)}
    lacking = [part for first, parts in since.items() if first > major for part in parts]
    values = [(name, f"(long){name}") for name in names if not any(part in name for part in lacking)]
    members = {"hipPointerAttribute_t": ("device", "devicePointer", "hostPointer", "isManaged", "allocationFlags")}
    if major >= 7:
        members["hipLaunchAttribute"] = ("id", "val")
        members["HIP_LAUNCH_CONFIG"] = ("gridDimX", "blockDimX", "sharedMemBytes", "hStream", "attrs", "numAttrs")
    for struct_name, fields in members.items():
        values.append((struct_name, f"(long)sizeof({struct_name})"))
        values += [(f"{struct_name}.{field}", f"(long)offsetof({struct_name}, {field})") for field in fields]
    values.append(("old properties", "(long)sizeof(hipDeviceProp_tR0000)"))
    if major >= 6:
        values.append(("new properties", "(long)sizeof(hipDeviceProp_tR0600)"))
    lines = "".join(f'    printf("%s %ld\\n", "{name}", {value});\n' for name, value in values)
    source = tmp_path / "layout.c"
    source.write_text(f'#include <stdio.h>\n#include "abi.h"\nint main(void) {{\n{lines}    return 0;\n}}\n')
    outputs = []
    for number, line in enumerate((command(str(compiler()), major, f"-I{SOURCES}"), _against(headers, major))):
        program = str(tmp_path / f"layout{number}")
        done = subprocess.run([*line, str(source), "-o", program], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        outputs.append(subprocess.run([program], capture_output=True, text=True).stdout.splitlines())
    assert len(outputs[0]) > 120
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("major", MAJORS)
def test_properties_are_where_amds_header_has_them(major: int, tmp_path: Path) -> None:
    """Each property of a device that the library fills in has the place and the size of that member."""
    headers = _headers(major)
    kind = "hipDeviceProp_tR0600" if major >= 6 else "hipDeviceProp_t"
    place = "new_place" if major >= 6 else "old_place"
    source = tmp_path / "properties.c"
    source.write_text(
        f'#include "abi.h"\n#define PROPERTY(name, old_place, new_place, bytes, expression) \\\n'
        f"    _Static_assert(offsetof({kind}, name) == {place}, #name); \\\n"
        f'    _Static_assert(sizeof((({kind} *)0)->name) == bytes, #name);\n#include "properties.def"\n'
        f'_Static_assert(offsetof({kind}, gcnArchName) == {1160 if major >= 6 else 396}, "gcnArchName");\n'
    )
    line = [*_against(headers, major), "-fsyntax-only", str(source)]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def symbols(library: Path) -> set[str]:
    done = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    return {line.split()[2].partition("@")[0] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("major", MAJORS)
def test_it_has_no_function_that_the_real_one_lacks(major: int) -> None:
    """Of HIP's names the stand-in exports those that its table has, and the real library of that version has them all."""
    if shutil.which("nm") is None:
        pytest.skip("there is no nm")
    own = {name for name in symbols(build(major)) if name.startswith("hip")}
    assert own == {*entries(major), *(compiler_entries() if major < 7 else ())}
    fetched = Path(os.environ.get(RUNTIME, "/nowhere"))
    folders = (
        [library_folder(fetched)]
        if major == 7
        else [fetched / f"library/{major}/usr/lib" / library_folder(fetched).name]
    )
    folders.append(Path("/usr/lib", library_folder(fetched).name))
    real = next((path for folder in folders if (path := folder / f"libamdhip64.so.{major}").exists()), None)
    if real is None:
        pytest.skip(f"libamdhip64.so.{major} is not here: run tests/recording/hip/fetch.py, and set {RUNTIME}")
    assert own - symbols(real) == set()
    if major >= 7:  # the functions of which the backend must do without elsewhere
        assert "hiprtcCompileProgram" not in symbols(real)


@pytest.mark.parametrize("major", MAJORS)
def test_other_compilers_have_no_warning_either(major: int) -> None:
    """gcc and clang, whichever of them are here, compile all sources with warnings as errors."""
    programs = [program for program in ("gcc", "clang") if shutil.which(program)]
    if not programs:
        pytest.skip("there is neither gcc nor clang")
    for program in programs:
        line = [*command(program, major), "-fsyntax-only", *map(str, [*sources(major), SOURCES / "hiprtc.c"])]
        done = subprocess.run(line, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
