"""Machines with HIP for tests: the stand-in in each of its versions, or AMD's runtime on a modelled device.

What both have in common is `Machine`: a test that asks no more than that runs on either.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import sysconfig
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from recording.hip.library import Recording, command, compiler
from recording.hip.model.topology import GPUS, write_topology
from recording.hip.runtime import Runtime

RUNTIME = "RECORDING_HIP_RUNTIME"  # the folder of fetch.py
MODEL = Path(__file__).parent / "model"

Three = tuple[int, int, int]


@dataclass(frozen=True)
class Dispatch:
    """A launch as it reaches a device."""

    grid: Three  # in blocks
    block: Three
    group: int  # bytes of shared memory, static and dynamic
    kernarg: bytes  # the segment of the arguments, as long as it is known

    def argument(self, offset: int, size: int) -> bytes:
        """Return the bytes of an argument; those between arguments mean nothing."""
        return self.kernarg[offset : offset + size]


class Machine(ABC):
    """A process's HIP runtime and its devices."""

    major: int
    arch: str
    wave: int
    library: str
    compiler: str
    """The file of hipRTC; it may lack one behind it."""

    @functools.cached_property
    def runtime(self) -> Runtime:
        """HIP's functions by ctypes."""
        return Runtime(self.library)

    @abstractmethod
    def dispatches(self) -> list[Dispatch]:
        """Return the launches of kernels so far, the runtime's own left out, when they have reached the device."""


class StandIn(Machine):
    """The recording runtime, opened in this process."""

    def __init__(self, library: str, hiprtc: str) -> None:
        """Open it as `environment` has prepared it."""
        self.recording = Recording(library)
        self.major = self.recording.major
        self.library, self.compiler = library, hiprtc
        self.arch = "gfx90a"
        self.wave = 64

    def dispatches(self) -> list[Dispatch]:
        """Return what was launched; shared memory is the dynamic one and that of the code object."""
        return [
            Dispatch(launch.grid, launch.block, launch.group, launch.packed)
            for launch in self.recording.launches()
            if not launch.captured
        ]


class _Dispatch(ctypes.Structure):
    """struct dispatch of model.c."""

    _fields_: ClassVar = [
        *((name, ctypes.c_uint64) for name in ("sequence", "kernel_object")),
        *((name, ctypes.c_uint32 * 3) for name in ("workgroup", "grid")),
        *((name, ctypes.c_uint32) for name in ("dimensions", "private_bytes", "group_bytes")),
        *((name, ctypes.c_uint32) for name in ("kernarg_bytes", "barrier", "is_copy")),
    ]


class Modelled(Machine):
    """AMD's own runtime in this process, with one device in software that runs no kernel."""

    major = 7

    def __init__(self, folder: Path, model: Path, arch: str) -> None:
        """Say what the runtime shall find, before anything opens it."""
        libraries = library_folder(folder.resolve())
        self.arch, self.wave = arch, GPUS[arch].wave
        self.library, self.compiler = str(libraries / "libamdhip64.so.7"), str(libraries / "libhiprtc.so.7")
        topology = write_topology(Path(tempfile.mkdtemp(prefix="podium-topology-")), GPUS[arch])
        os.environ |= {"HSA_MODEL_TOPOLOGY": str(topology), "HSA_MODEL_LIB": str(model), "HSA_ENABLE_SDMA": "0"}
        self._model = ctypes.CDLL(str(model))
        self._model.podium_model_count.restype = ctypes.c_uint64
        self._model.podium_model_dispatch.argtypes = [
            ctypes.c_uint64,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_size_t,
        ]

    def dispatches(self) -> list[Dispatch]:
        """Wait for the device, and return the packets that it was given."""
        assert self.runtime.hipDeviceSynchronize() == 0
        found = [self._dispatch(number) for number in range(1, self._model.podium_model_count() + 1)]
        return [dispatch for dispatch in found if dispatch is not None]

    def _dispatch(self, number: int) -> Dispatch | None:
        raw, kernarg = _Dispatch(), ctypes.create_string_buffer(4096)
        if not self._model.podium_model_dispatch(number, ctypes.byref(raw), kernarg, len(kernarg)):
            raise LookupError(f"dispatch {number} is not kept")
        if raw.is_copy:
            return None
        block = tuple(raw.workgroup)
        assert all(items % size == 0 for items, size in zip(raw.grid, block))
        grid = tuple(items // size for items, size in zip(raw.grid, block))
        return Dispatch(grid, block, raw.group_bytes, kernarg.raw[: raw.kernarg_bytes])  # type: ignore[arg-type]


def library_folder(folder: Path) -> Path:
    """Return where fetch.py has put the libraries of the runtime."""
    return folder / "runtime/usr/lib" / sysconfig.get_config_var("MULTIARCH")


def interpreter(folder: Path, executable: str, preloaded: Path) -> list[str]:
    """Return how a Python is started that can open the runtime: by the C library that came with it, which is newer."""
    libraries = library_folder(folder)
    multiarch = libraries.name
    path = f"{libraries}:/lib/{multiarch}:/usr/lib/{multiarch}"
    real = os.path.realpath(executable)
    options = ["--argv0", executable, "--library-path", path, "--preload", str(preloaded)]
    return [str(libraries / "ld-linux-x86-64.so.2"), *options, real]


def build_model(folder: Path) -> tuple[Path, Path]:
    """Compile the model of the device, and what is preloaded beside it, into a folder."""
    program = compiler()
    assert program is not None
    built = []
    for name, flags in (("model", ["-fvisibility=hidden"]), ("clearing", ["-fno-builtin"])):
        out = folder / f"libpodium-{name}.so"
        line = command(program, 7, "-O1", "-fPIC", "-shared", *flags, str(MODEL / f"{name}.c"), "-lpthread", "-ldl")
        done = subprocess.run([*line, "-o", str(out)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the model of a device does not compile:\n{done.stderr}")
        built.append(out)
    return built[0], built[1]


def why_no_model() -> str | None:
    """Say why there is no runtime to run on a modelled device; None if there is."""
    given = os.environ.get(RUNTIME)
    if not given:
        return f"{RUNTIME} names no folder of tests/recording/hip/fetch.py"
    if not (library_folder(Path(given)) / "libamdhip64.so.7").exists():
        return f"{RUNTIME}={given} has no libamdhip64.so.7: run tests/recording/hip/fetch.py"
    return None if shutil.which("cc") or compiler() else "there is no C compiler for the model of the device"
