"""What makes the backend inactive, told without a call of OpenCL; and what is found out when OpenCL is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from podium.backend import Driver

from podium_opencl.detection import inactive_reason, platform_reason

# Says what asking has loaded and started.
_QUIET = """
import json, os, sys
from podium_opencl.plugin import podium_inactive_reason
reason = podium_inactive_reason()
maps = open("/proc/self/maps").read().lower() if os.path.exists("/proc/self/maps") else ""
opened = [name for name in ("libopencl", "libpocl") if name in maps]
print(json.dumps([reason, sorted({"pyopencl", "numpy"} & set(sys.modules)), opened]))
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a pyopencl, on a system that has no platform."""
    monkeypatch.delenv("OCL_ICD_VENDORS", raising=False)
    monkeypatch.setenv("OPENCL_VENDOR_PATH", str(tmp_path / "vendors"))
    folder = tmp_path / "pyopencl"
    (folder / ".libs").mkdir(parents=True)
    return folder


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, with this one's path."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **environment}
    return subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=200)


def test_no_platform_is_a_reason_that_says_what_to_do(package: Path) -> None:
    """Without a file that names a platform, the reason has the folders that were looked into, and PoCL."""
    reason = platform_reason(package)
    assert reason is not None
    assert str(package / ".libs") in reason and "vendors" in reason and "podium-opencl[pocl]" in reason


def test_a_platform_of_a_wheel_is_found(package: Path) -> None:
    """A wheel such as PoCL's puts its file, and its library, beside the library of pyopencl."""
    (package / ".libs" / "pocl.icd").write_text("libpocl.so\n")
    (package / ".libs" / "libpocl.so").write_text("")
    assert platform_reason(package) is None


def test_a_platform_whose_library_is_gone_is_named(package: Path, tmp_path: Path) -> None:
    """A file that names a library which is not there does not count; the reason has both names."""
    (tmp_path / "vendors").mkdir()
    file = tmp_path / "vendors" / "gone.icd"
    file.write_text("/nowhere/libgone.so\n")
    reason = platform_reason(package)
    assert reason is not None and f"{file} names /nowhere/libgone.so" in reason
    file.write_text("")
    reason = platform_reason(package)
    assert reason is not None and "names no library" in reason
    file.write_text("libknown.so.1\n")  # the dynamic linker knows where, and is not asked
    assert platform_reason(package) is None


def test_a_wrong_variable_is_named(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OCL_ICD_VENDORS names a folder, a file, or the library itself; one that is not there hides all platforms."""
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "absent"))
    reason = platform_reason(package)
    assert reason is not None and "OCL_ICD_VENDORS" in reason and "absent" in reason
    library = tmp_path / "libpocl.so"
    library.write_text("")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(library))
    assert platform_reason(package) is None


def test_asking_starts_nothing() -> None:
    """To ask neither imports pyopencl nor opens an OpenCL library, so that a fork after it is safe."""
    done = run(_QUIET)
    assert done.returncode == 0, done.stderr
    reason, imported, opened = json.loads(done.stdout)
    assert (reason, imported, opened) == (inactive_reason(), [], [])


def test_a_process_that_used_no_device_ends_without_starting_one() -> None:
    """At its end a process waits for the devices that it has opened, and opens none for that."""
    done = run("import atexit, sys, podium_opencl.stream\natexit._run_exitfuncs()\nprint('pyopencl' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


def test_no_pyopencl_is_a_reason(tmp_path: Path) -> None:
    """Without pyopencl the backend says how to install it."""
    done = run(
        "import sys; sys.modules['pyopencl'] = None\n"
        "from podium_opencl.plugin import podium_inactive_reason; print(podium_inactive_reason())"
    )
    assert done.stdout.strip() == "pyopencl is not installed: pip install pyopencl", done.stderr


def test_a_platform_that_is_not_there_is_refused_by_name(opencl: Driver) -> None:
    """PODIUM_OPENCL_PLATFORM that fits no platform is an error with the names of those that there are."""
    done = run(
        "from podium_opencl.driver import OpenclDriver\n"
        "try:\n    OpenclDriver().devices()\n"
        "except Exception as error:\n    print(type(error).__name__, error)",
        PODIUM_OPENCL_PLATFORM="no such platform",
    )
    assert done.stdout.startswith("SettingError PODIUM_OPENCL_PLATFORM='no such platform'"), done.stderr
    assert "Portable Computing Language" in done.stdout or "there are:" in done.stdout


def test_devices_of_two_drivers_are_two_architectures(opencl: Driver) -> None:
    """Where two platforms have a device of one name, the version tells whose binaries are whose."""
    from podium_opencl.device import OpenDevice, open_device, tell_apart

    same, other = (OpenDevice(index, open_device(0).handle) for index in (0, 1))
    tell_apart([same, other])
    assert same.arch == other.arch == opencl.default_target().arch
    other.versions = {**other.versions, "driver": "9.1 beta"}
    tell_apart([same, other])
    assert other.target.arch == f"{opencl.default_target().arch}.9.1-beta" != same.target.arch


_FIRST_USE = """
from podium_opencl.driver import OpenclDriver
try:
    print(len(OpenclDriver().devices()))
except Exception as error:
    print(type(error).__name__, error)
print(OpenclDriver.inactive_reason())
"""


def test_devices_that_cannot_be_used_are_told_one_by_one(opencl: Driver) -> None:
    """A device without shared virtual memory, or one that cannot be opened, is left out, with the others going on.

    Where none is left, the first use is an error that has the reason of each, and so is the reason from then on.
    """
    done = run(
        "import podium_opencl.device as device\n"
        "make, tried = device.OpenDevice.make_queue, []\n"
        "def fail(self):\n"
        "    tried.append(self)\n"
        "    if len(tried) > 1:\n        return make(self)\n"
        "    return device.opencl().CommandQueue(self.context, self.handle, properties=1 << 40)\n"
        "device.OpenDevice.make_queue = fail\n" + _FIRST_USE
    )
    left = len(opencl.devices()) - 1
    first, second = done.stdout.splitlines()
    assert (first, second) == (str(left), "None") if left else "cannot be opened: CL_" in first, done.stderr
    done = run("import podium_opencl.device as device\ndevice._has_svm = lambda handle: False\n" + _FIRST_USE)
    first, second = done.stdout.splitlines()
    assert first == f"BackendError {second}" and "has no shared virtual memory" in second, done.stderr


def test_a_broken_pyopencl_is_the_reason_from_then_on(tmp_path: Path) -> None:
    """Whatever importing it raises, the first use is an error of the backend's, with what to do."""
    (tmp_path / "pyopencl").mkdir()
    (tmp_path / "pyopencl" / "__init__.py").write_text("raise RuntimeError('on purpose')\n")
    (tmp_path / "libpocl.so").write_text("")
    done = run(
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n" + _FIRST_USE,
        OCL_ICD_VENDORS=str(tmp_path / "libpocl.so"),
    )
    first, second = done.stdout.splitlines()
    assert first == f"BackendError {second}", done.stderr
    assert "RuntimeError: on purpose" in second and "pip install pyopencl" in second
