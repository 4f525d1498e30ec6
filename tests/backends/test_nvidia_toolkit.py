"""Which toolkit is used: found without opening it, whole, and the same that cuda-python uses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from nvidia_compile import ADD

from podium_nvidia import toolchain, toolkit

NVRTC = Path(toolkit.find_library("nvrtc") or "")
HEADERS = [Path(each) for each in toolkit.include_folders(str(NVRTC))]

PRELUDE = """
import sys
sys.path[:] = PATHS
from podium_nvidia import toolkit
toolkit.INSTALLED = toolkit.LOADER_TABLE = "/nowhere"
from podium import Target
from podium.backend import Entry, Program, Signature
from podium.errors import PodiumError
def compiled(head=""):
    from podium_nvidia.compiler import compile_program
    program = Program(head + SOURCE, "cuda", (Entry("add", Signature.parse("x: *fp32, n: i32")),))
    return compile_program(program, Target("nvidia", "sm_90", 32))
def error(head=""):
    try:
        compiled(head)
    except PodiumError as caught:
        return f"{type(caught).__name__}: {caught}"
    raise AssertionError("it compiled")
"""

SITE = Path(sysconfig.get_path("purelib"))


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder of packages like this interpreter's, but with no wheel of the toolkit in it."""
    folder = tmp_path / "packages"
    folder.mkdir()
    for each in SITE.iterdir():
        if not each.name.startswith(("nvidia", "__pycache__")) and each.suffix != ".pth":
            (folder / each.name).symlink_to(each)
    return folder


def wheel(packages: Path, *, builtins: bool = True, headers: tuple[str, ...] = ()) -> Path:
    """Put a copy of NVRTC where a wheel has it, and some folders of headers; return the library's file."""
    library = packages / "nvidia" / "cu13" / "lib" / NVRTC.name
    library.parent.mkdir(parents=True)
    _copy(NVRTC, library)
    if builtins:
        for each in NVRTC.resolve().parent.glob("libnvrtc-builtins.so.*"):
            _copy(each, library.parent / each.name)
    for marker in headers:
        source = next(each for each in HEADERS if (each / marker).exists())
        place = packages / "nvidia" / "cu13" / ("include/cccl" if "/" in marker else "include")
        place.parent.mkdir(parents=True, exist_ok=True)
        if "/" in marker:
            place.symlink_to(source)
        else:  # without CCCL, which lies inside
            place.mkdir(exist_ok=True)
            for each in source.iterdir():
                if each.name not in ("cccl", "nv"):
                    (place / each.name).symlink_to(each)
    return library


def _copy(source: Path, target: Path) -> None:
    """Make another file of the same content: a link, since NVRTC is large, or a copy on another file system."""
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)


def run(packages: Path, program: str, **variables: str) -> str:
    """Run a program in a process that knows the packages and this checkout, and no toolkit but those of the variables."""
    own = [each for each in sys.path if each and "site-packages" not in each and not each.startswith(str(SITE))]
    paths = [*own, *_sources(), str(packages)]
    text = PRELUDE.replace("PATHS", repr(paths)).replace("SOURCE", repr(ADD)) + program
    hidden = ("CUDA", "LD_LIBRARY_PATH", "CONDA", "PYTHONPATH", "PODIUM")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment |= {"PATH": "/nowhere", **variables}
    done = subprocess.run([sys.executable, "-S", "-c", text], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _sources() -> list[str]:
    import podium

    import podium_nvidia

    return [str(Path(each.__file__).parents[1]) for each in (podium, podium_nvidia)]


def test_without_nvrtc_the_error_says_what_to_install(packages: Path) -> None:
    """Neither a wheel nor a toolkit: the error names both ways, for the cache key as for the compilation."""
    text = run(packages, "print(error())")
    assert text.startswith("ToolchainError: CUDA C++ is compiled by NVRTC, and there is none.")
    assert "pip install 'podium-nvidia[nvrtc]'" in text and "set CUDA_HOME to a CUDA toolkit" in text
    text = run(
        packages,
        "from podium_nvidia.toolchain import toolchain\ntry:\n  toolchain('cuda')\nexcept PodiumError as e: print(e)",
    )
    assert "pip install 'podium-nvidia[nvrtc]'" in text


def test_the_name_of_the_toolchain_costs_no_library(packages: Path) -> None:
    """Cache keys name the files of NVRTC and of the headers; nothing is opened, nor cuda-python imported (CAC-14)."""
    library = wheel(packages, headers=("cuda_fp16.h",))
    program = (
        "from podium_nvidia.toolchain import toolchain\n"
        "print(toolchain('cuda'))\n"
        "assert not [each for each in sys.modules if each.startswith('cuda')], sys.modules\n"
        "assert 'libnvrtc' not in open('/proc/self/maps').read()\n"
        "assert toolchain('ptx') != toolchain('cuda')\n"
    )
    first = run(packages, program)
    assert str(library) in first and "libnvrtc-builtins" in first and "cuda_fp16.h" in first
    library.unlink()
    shutil.copyfile(NVRTC, library)
    assert run(packages, program) != first


def test_the_builtins_come_from_the_folder_of_nvrtc(packages: Path) -> None:
    """NVRTC and its companion are one version from one folder; without it, the error names the folder (RTC-02)."""
    library = wheel(packages)
    maps = "text = open('/proc/self/maps').read()\nprint(sorted({line.split()[-1] for line in text.splitlines() if 'nvrtc' in line}))"
    files = run(packages, f"compiled()\n{maps}")
    assert files.count(str(library.parent)) == 2 and "builtins" in files
    for each in library.parent.glob("*builtins*"):
        each.unlink()
    text = run(packages, "print(error())")
    assert text.startswith("ToolchainError: NVRTC needs libnvrtc-builtins.so.")
    assert f"in {library.parent}, where there is: none" in text


def test_the_variable_names_another_nvrtc(packages: Path, tmp_path: Path) -> None:
    """PODIUM_NVIDIA_NVRTC beats the wheels; a file that is not there is an error of the variable."""
    wheel(packages)
    other = wheel(tmp_path / "elsewhere")
    program = "compiled()\nfrom podium_nvidia import nvrtc\nprint(nvrtc.load().path)"
    assert run(packages, program, PODIUM_NVIDIA_NVRTC=str(other)) == f"{other}\n"
    assert "SettingError: PODIUM_NVIDIA_NVRTC='/no/lib'" in run(
        packages, "print(error())", PODIUM_NVIDIA_NVRTC="/no/lib"
    )


def test_an_installed_toolkit_is_found_by_its_variable(packages: Path, tmp_path: Path) -> None:
    """CUDA_HOME leads to NVRTC and to the headers beside it, those of CCCL included."""
    home = tmp_path / "toolkit"
    made = wheel(tmp_path / "made", headers=("cuda_fp16.h", "cuda/std/version"))
    home.mkdir()
    made.parent.rename(home / "lib64")
    (made.parents[1] / "include").rename(home / "include")
    program = "compiled('#include <cuda_fp16.h>\\n#include <cuda/std/cstdint>\\n')\nfrom podium_nvidia import nvrtc\nprint(nvrtc.load().path)"
    assert run(packages, program, CUDA_HOME=str(home)) == f"{home / 'lib64' / NVRTC.name}\n"


def test_parts_that_the_wheels_have_not_come_from_the_toolkit(packages: Path, tmp_path: Path) -> None:
    """NVRTC and the runtime's headers from wheels, CCCL from an installed toolkit: each part is looked for by itself."""
    wheel(packages, headers=("cuda_fp16.h",))
    home = tmp_path / "toolkit"
    made = wheel(tmp_path / "made", headers=("cuda_fp16.h", "cuda/std/version"))
    home.mkdir()
    (made.parents[1] / "include").rename(home / "include")
    run(packages, "compiled('#include <cooperative_groups.h>\\n')", CUDA_HOME=str(home))


def test_missing_headers_are_named_with_their_package(packages: Path) -> None:
    """NVRTC alone: half floats name the runtime's headers, cuda/std names CCCL (RTC-01)."""
    wheel(packages)
    text = run(packages, "print(error('#include <cuda_fp16.h>\\n'))")
    assert "<cuda_fp16.h> belongs to the headers of the CUDA runtime" in text and "cuda-toolkit[cudart]" in text
    text = run(packages, "print(error('#include <cuda/std/array>\\n'))")
    assert "<cuda/std/array> belongs to CCCL" in text and "pip install 'podium-nvidia[nvrtc]'" in text
    text = run(packages, "print(error('#include <crt/no_such.h>\\n'))")
    assert "<crt/no_such.h> belongs to the headers of the compiler" in text
    assert "'cuda-toolkit[crt]'" in text and "for CUDA 12 'cuda-toolkit[nvcc]'" in text


def test_a_copy_that_the_process_has_is_the_one_that_is_used(packages: Path, tmp_path: Path) -> None:
    """Where another library has opened an NVRTC before, cuda-python takes that one, and so does the cache key."""
    wheel(packages)
    other = wheel(tmp_path / "elsewhere")
    program = (
        f"import ctypes\nctypes.CDLL({str(other)!r})\n"
        "from podium_nvidia.toolchain import toolchain\nassert {0!r} in toolchain('cuda')\ncompiled()\n"
        "from podium_nvidia import nvrtc\nprint(nvrtc.load().path)"
    ).replace("{0!r}", repr(str(other)))
    assert run(packages, program) == f"{other}\n"


def test_the_variable_beats_a_copy_that_the_process_has(packages: Path, tmp_path: Path) -> None:
    """LIB-03: PODIUM_NVIDIA_NVRTC is looked at first; naming another copy than cuda-python would use is an error."""
    named, other = wheel(packages), tmp_path / NVRTC.name
    shutil.copyfile(NVRTC, other)
    program = (
        f"import ctypes, os\nctypes.CDLL({str(other)!r})\nprint(error())\n"
        f"os.environ['PODIUM_NVIDIA_NVRTC'] = {str(other)!r}\n"
        "try: compiled()\nexcept PodiumError as missing: assert 'builtins' in str(missing), missing\n"
        "from podium_nvidia import nvrtc\nprint(nvrtc.load().path)"
    )
    error, used = run(packages, program, PODIUM_NVIDIA_NVRTC=str(named)).splitlines()
    assert error.startswith(f"ToolchainError: PODIUM_NVIDIA_NVRTC names {named}, but this process has {other} open")
    assert used == str(other)


def test_a_copy_that_comes_later_does_not_get_under_the_key_of_another(packages: Path, tmp_path: Path) -> None:
    """If cuda-python would use another copy than the key names, nothing is compiled, and the error says what to do."""
    wheel(packages)
    other = tmp_path / NVRTC.name
    shutil.copyfile(NVRTC, other)  # another file, not only another name of the same
    program = f"from podium_nvidia.toolchain import toolchain\ntoolchain('cuda')\nimport ctypes\nctypes.CDLL({str(other)!r})\nprint(error())"
    text = run(packages, program)
    assert f"This process has opened {other} after podium had chosen" in text and "PODIUM_NVIDIA_NVRTC=" in text


def test_what_was_foreseen_holds_while_all_is_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CAC-14: the toolchain's name is that of before if nothing has changed; headers that came in front are in it."""
    for known in ("_known", "_foreseen"):
        monkeypatch.setattr(toolchain, known, {})
    toolchain.foresee()
    described = toolchain.toolchain("cuda")
    assert [described] == list(toolchain._foreseen.values())
    header = tmp_path / "nvidia" / "cu13" / "include" / "cuda_fp16.h"
    header.parent.mkdir(parents=True)
    header.write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    toolchain._known.clear()
    assert str(header) in toolchain.toolchain("cuda")
    assert str(header) not in described
    title = toolchain.toolchain("cuda").partition("\n")[0]
    assert re.match(rf"NVRTC \d+\.\d+ \({toolchain.nvrtc_path()}\), headers in {header.parent}(, |$)", title)
    assert re.match(r"nvJitLink \d+.* \(.*libnvJitLink.so", toolchain.toolchain("ptx"))
