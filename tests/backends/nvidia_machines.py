"""File trees that stand for machines with and without NVIDIA GPUs, and driver libraries that only know their version."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["KERNEL", "Machine", "driver_library", "python"]

KERNEL = "580.159.04"

_VERSION_FILE = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (builder@machine)
GCC version:  gcc version 11.4.0
"""

# Answers in forked children, so that each has a process of its own and none pays for starting Python.
_SERVER = """
import cuda.bindings, grp, importlib.util, json, os, pwd, sys
from podium_nvidia import detection, libcuda
for line in sys.stdin:
    root, variables, as_nobody = json.loads(line)
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        continue
    os.environ.clear()
    os.environ.update(variables)
    if as_nobody and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    print(detection.inactive_reason(root), flush=True)
    os._exit(0)
"""

# What a shell or a container may have set, and a test sets itself.
_SETTINGS = (
    "APPTAINER_CONTAINER",
    "CUDA_VISIBLE_DEVICES",
    "KUBERNETES_SERVICE_HOST",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "SINGULARITY_CONTAINER",
    "container",
)


@cache
def _compiled(version: int, status: int, soname: str, symbol: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "library.so"
        source = f"int {symbol}(int *version) {{ *version = {version}; return {status}; }}\n"
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(made), f"-Wl,-soname,{soname}"]
        subprocess.run(command, input=source, text=True, check=True)
        return made.read_bytes()


def driver_library(
    file: Path,
    version: int = 13000,
    status: int = 0,
    soname: str = "libcuda.so.1",
    symbol: str = "cuDriverGetVersion",
) -> Path:
    """Put a library at a path that says its version, as a driver does, or status 34, as a stub does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.write_bytes(_compiled(version, status, soname, symbol))
    return file


def python(program: str, *arguments: object, **variables: object) -> str:
    """Run a program in a new process, with only those of the settings that are given; return what it prints."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(variables), timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _environment(variables: dict[str, object]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _SETTINGS}
    return kept | {name: str(value) for name, value in variables.items()}


@cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen([sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)
    return server


class Machine:
    """A tree of files in which a machine's kernel, driver and container show."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, *names: str) -> Machine:
        """Make empty files."""
        for name in names:
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return self

    def kernel_driver(self, *gpus: str, version: str = KERNEL) -> Machine:
        """Load the kernel driver, which drives GPUs at these PCI addresses."""
        folder = self.root / "proc/driver/nvidia"
        (folder / "gpus").mkdir(parents=True)
        (folder / "version").write_text(_VERSION_FILE.format(version))
        (self.root / "sys/module/nvidia").mkdir(parents=True)
        return self.put(*(f"proc/driver/nvidia/gpus/{gpu}/information" for gpu in gpus))

    def pci(self, address: str, *, vendor: str = "0x10de", kind: str = "0x030200", driver: str = "") -> Machine:
        """Put a device on the PCI bus."""
        folder = self.root / "sys/bus/pci/devices" / address
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(vendor + "\n")
        (folder / "class").write_text(kind + "\n")
        if driver:
            (folder / "driver").symlink_to(f"../../drivers/{driver}")
        return self

    def library(self, folder: str = "usr/lib/x86_64-linux-gnu", release: str = KERNEL, **about: int) -> Machine:
        """Install the driver library, as distributions do: a file with its version, and a link."""
        file = driver_library(self.root / folder / f"libcuda.so.{release}", **about)
        (file.parent / "libcuda.so.1").symlink_to(file.name)
        return self

    def reason(self, *, as_nobody: bool = False, **variables: object) -> str:
        """Ask for the reason in a process that has not asked before, on wish as a user who is in no group."""
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        print(json.dumps([str(self.root), _environment(variables), as_nobody]), file=server.stdin, flush=True)
        return server.stdout.readline().strip()
