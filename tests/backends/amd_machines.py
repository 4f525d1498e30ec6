"""File trees that stand for machines with and without AMD GPUs, and runtime libraries that only have their names."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

__all__ = ["Machine", "python", "runtime_library"]

_SETTINGS = (
    "APPTAINER_CONTAINER",
    "CUDA_VISIBLE_DEVICES",
    "HIP_PATH",
    "HIP_VISIBLE_DEVICES",
    "KUBERNETES_SERVICE_HOST",
    "LD_LIBRARY_PATH",
    "PODIUM_AMD_HIPRTC",
    "PODIUM_AMD_LIBHIP",
    "ROCM_HOME",
    "ROCM_PATH",
    "ROCR_VISIBLE_DEVICES",
    "SINGULARITY_CONTAINER",
    "container",
)

# What tells the versions apart, beside what all have.
_SYMBOLS = {
    5: ("hipModuleLaunchKernel",),
    6: ("hipModuleLaunchKernel", "hipGetDevicePropertiesR0600"),
    7: ("hipModuleLaunchKernel", "hipGetDevicePropertiesR0600", "hipDrvLaunchKernelEx"),
}


@cache
def _compiled(symbols: tuple[str, ...], soname: str) -> bytes:
    # one that is called ends the process: looking for a library must call nothing
    source = "void abort(void);\n" + "".join(f"int {name}(void) {{ abort(); return 0; }}\n" for name in symbols)
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", "/dev/stdout", f"-Wl,-soname,{soname}"]
    made = subprocess.run(
        ["sh", "-c", f'f=$(mktemp); {" ".join(command[:-2])} "$f" {command[-1]} && cat "$f"; rm -f "$f"'],
        input=source.encode(),
        capture_output=True,
        check=True,
    )
    return made.stdout


def runtime_library(file: Path, abi: int = 7, soname: str | None = None) -> Path:
    """Put a library at a path that has the names of a version of the HIP runtime, 0 for none of them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.write_bytes(_compiled(_SYMBOLS.get(abi, ("other",)), soname or f"libamdhip64.so.{abi}"))
    return file


def python(program: str, *arguments: object, as_nobody: bool = False, **variables: object) -> str:
    """Run a program in a new process, with only those of the settings that are given; return what it prints."""
    if as_nobody and os.geteuid() == 0:
        program = (
            f"import grp, os, pwd, podium_amd.detection, importlib.util; os.setgroups([]); os.setgid(65534); "
            f"os.setuid(65534)\n{program}"
        )
    kept = {name: value for name, value in os.environ.items() if name not in _SETTINGS}
    given = {name: str(value) for name, value in variables.items()}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=kept | given, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


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

    def node(self, number: int, *, gpu: int = 0, version: int = 90402, minor: int = 128) -> Machine:
        """Put a node into the topology: a processor, or a GPU with an id of its own."""
        folder = self.root / f"sys/class/kfd/kfd/topology/nodes/{number}"
        folder.mkdir(parents=True)
        (folder / "gpu_id").write_text(f"{gpu}\n")
        values = {"cpu_cores_count": 0 if gpu else 16, "simd_count": 1216 if gpu else 0}
        values |= {"gfx_target_version": version, "drm_render_minor": minor} if gpu else {}
        (folder / "properties").write_text("".join(f"{name} {value}\n" for name, value in values.items()))
        return self

    def pci(self, address: str, *, vendor: str = "0x1002", kind: str = "0x120000", driver: str = "") -> Machine:
        """Put a device on the PCI bus."""
        folder = self.root / "sys/bus/pci/devices" / address
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(vendor + "\n")
        (folder / "class").write_text(kind + "\n")
        if driver:
            (folder / "driver").symlink_to(f"../../drivers/{driver}")
        return self

    def reason(self, *, as_nobody: bool = False, **variables: object) -> str:
        """Ask for the reason in a new process, on wish as a user who is in no group."""
        program = "from podium_amd.detection import inactive_reason; import sys; print(inactive_reason(sys.argv[1]))"
        variables.setdefault("LD_LIBRARY_PATH", runtime_library(self.root / "lib/libamdhip64.so.7").parent)
        return python(program, self.root, as_nobody=as_nobody, **variables)
