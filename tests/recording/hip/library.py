"""A stand-in for AMD's HIP runtime: libamdhip64 of C in this folder, which needs no GPU and records what is asked of it.

It comes as HIP 5, 6 and 7, which differ in what they export, in layouts and in statuses. `install` makes a folder as an
installation of ROCm has it. A process that uses the stand-in must never meet the real one: `environment` makes the
variables of a child process.

Device memory is the host's. A kernel does nothing, unless it has a twin: a function that podium's CPU backend has made
of the same source.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from recording.builds import made

SOURCES = Path(__file__).parent
MAJORS = (5, 6, 7)
NEWEST = MAJORS[-1]
_ENTRY = re.compile(r"^ENTRY\((\w+), (\d+), [01]\)$", re.MULTILINE)


def entries(major: int = NEWEST) -> list[str]:
    """Return the names of the functions that the runtime of a major version has here, hipRTC's not among them."""
    found = _ENTRY.findall((SOURCES / "entries.def").read_text(encoding="utf-8"))
    return [name for name, first in found if int(first) <= major]


def compiler_entries() -> list[str]:
    """Return the names of hipRTC's functions."""
    return sorted({"hiprtcGetErrorString", *re.findall(r"^FORWARD\((\w+),", _text("hiprtc.c"), re.MULTILINE)})


def _text(name: str) -> str:
    return (SOURCES / name).read_text(encoding="utf-8")


def compiler() -> str | None:
    """Return the C compiler, or None."""
    return next((path for path in map(shutil.which, ("cc", "gcc", "clang")) if path), None)


def sources(major: int) -> list[Path]:
    """Return the sources of libamdhip64: before HIP 7 it has hipRTC in it."""
    return [path for path in sorted(SOURCES.glob("*.c")) if path.stem != "hiprtc" or major < 7]


def command(program: str, major: int, *flags: str) -> list[str]:
    """Return the command that compiles sources for a major version, with no warning left."""
    return [program, "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-DRECORDING_HIP_MAJOR={major}", *flags]


def _link(program: str, files: list[Path], out: Path, symbols: list[str], flags: tuple[str, ...], major: int) -> None:
    exports = out.with_name(f"{out.name}.exports")
    exports.write_text(f"{{ global: {''.join(f'{name}; ' for name in symbols)}local: *; }};\n")
    line = command(program, major, "-O0", "-fPIC", "-shared", *flags, f"-Wl,-soname,{out.name}", "-Wl,-Bsymbolic")
    line += [f"-Wl,--version-script={exports}", *map(str, files), "-lpthread", "-ldl", "-o", str(out)]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the recording HIP runtime does not compile:\n{done.stderr}")
    out.with_name(out.name.rpartition(".")[0]).symlink_to(out.name)  # libamdhip64.so, which hip-python looks for


def install(major: int = NEWEST, flags: tuple[str, ...] = (), program: str | None = None) -> Path:
    """Compile the libraries of a major version, once for a run of the tests; return the folder above their `lib`.

    Raises RuntimeError without a C compiler, and if there is a single warning.
    """
    program = program or compiler()
    if program is None:
        raise RuntimeError("there is no C compiler for the recording HIP runtime")
    key = hashlib.sha256(" ".join((program, *flags)).encode()).hexdigest()[:8]
    return made(f"rocm-{major}-{key}", functools.partial(_install, major, flags, program))


def _install(major: int, flags: tuple[str, ...], program: str, folder: Path) -> None:
    (folder / "lib").mkdir()
    inside = ["podium_recording_*", *entries(major), *(compiler_entries() if major < 7 else ())]
    _link(program, sources(major), folder / "lib" / f"libamdhip64.so.{major}", inside, flags, major)
    if major >= 6:
        out = folder / "lib" / f"libhiprtc.so.{major}"
        _link(program, [SOURCES / "hiprtc.c"], out, compiler_entries(), flags, major)


def build(major: int = NEWEST) -> Path:
    """Return the file of the runtime of a major version."""
    return install(major) / "lib" / f"libamdhip64.so.{major}"


def compiler_library(major: int = NEWEST) -> Path:
    """Return the file that has hipRTC: before HIP 6 it is the runtime itself."""
    return install(major) / "lib" / (f"libhiprtc.so.{major}" if major >= 6 else f"libamdhip64.so.{major}")


def environment(
    major: int = NEWEST,
    *,
    devices: int = 2,
    arch: str = "gfx90a:sramecc+:xnack-",
    hiprtc: Path | None = None,
    fail: str = "",
    **settings: str,
) -> dict[str, str]:
    """Return the variables of a child process that shall meet this runtime and no GPU.

    `devices` and `arch` say what there is, `hiprtc` is the file of a real hipRTC, and `fail` names calls that fail the
    first time, such as "hipMalloc=2".
    """
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("RECORDING_", "PODIUM_AMD_"))
    }
    variables |= {"RECORDING_HIP_DEVICES": str(devices), "RECORDING_HIP_ARCH": arch, "RECORDING_HIP_FAIL": fail}
    variables |= {"RECORDING_HIPRTC": str(hiprtc or ""), "ROCM_PATH": str(install(major))}
    variables |= {"PODIUM_AMD_LIBHIP": str(build(major)), "PODIUM_AMD_HIPRTC": str(compiler_library(major))}
    folders = [str(SOURCES.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables["PYTHONPATH"] = os.pathsep.join(folders)
    return {**variables, **settings}


class _Attribute(ctypes.Structure):
    _fields_: ClassVar = [("id", ctypes.c_uint32), ("unused", ctypes.c_uint32), ("value", ctypes.c_uint8 * 64)]


class _Argument(ctypes.Structure):
    _fields_: ClassVar = [
        *((name, ctypes.c_uint32) for name in ("offset", "size")),
        *((name, ctypes.c_bool) for name in ("hidden", "pointer")),
    ]


class _Launch(ctypes.Structure):
    """struct launch of state.h."""

    _fields_: ClassVar = [
        *((name, ctypes.c_uint64) for name in ("sequence", "function", "stream", "thread")),
        ("device", ctypes.c_int32),
        ("entry", ctypes.c_uint32),
        *((name, ctypes.c_uint32 * 3) for name in ("grid", "block")),
        *(
            (name, ctypes.c_uint32)
            for name in ("shared", "group", "cooperative", "captured", "through_buffer", "reserved")
        ),
        *((name, ctypes.c_uint32) for name in ("attribute_count", "argument_count", "kernarg_size", "argument_bytes")),
        ("attributes", _Attribute * 8),
        ("name", ctypes.c_char * 256),
    ]


Three = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """A launch as the runtime was told of it."""

    sequence: int
    name: str
    entry: str  # "hipModuleLaunchKernel", "hipDrvLaunchKernelEx", ... or "hipGraphLaunch"
    device: int
    stream: int
    function: int
    thread: int
    grid: Three  # in blocks
    block: Three
    shared: int  # dynamic, in bytes
    group: int  # with the static bytes of the kernel
    cooperative: bool
    captured: bool  # put into a graph, and not run
    through_buffer: bool  # the arguments came packed, in `extra`
    attributes: tuple[tuple[int, bytes], ...]  # number and the 64 bytes of its value, in their order
    parameters: tuple[bytes, ...]  # each argument's own bytes
    offsets: tuple[int, ...]
    packed: bytes  # all of them where the kernel finds them, with zeros between
    kernarg_size: int  # with the hidden arguments


class Recording:
    """The stand-in, opened in this process, and what tests ask of it."""

    def __init__(self, path: Path | str | None = None) -> None:
        """Open the runtime: the given one, or that of PODIUM_AMD_LIBHIP, or the newest."""
        self.path = str(path or os.environ.get("PODIUM_AMD_LIBHIP") or build())
        self.major = int(self.path.rpartition(".")[2])
        library = self._library = ctypes.CDLL(self.path)
        library.podium_recording_fail.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64]
        library.podium_recording_calls.restype = ctypes.c_int64
        library.podium_recording_entry.restype = ctypes.c_char_p
        library.podium_recording_counter.restype = ctypes.c_char_p
        library.podium_recording_launch_count.restype = ctypes.c_uint64
        library.podium_recording_call_count.restype = ctypes.c_uint64
        library.podium_recording_call.argtypes = [ctypes.c_uint64, *[ctypes.POINTER(ctypes.c_int)] * 3]
        library.podium_recording_keep.argtypes = [ctypes.c_uint64]
        library.podium_recording_set_memory.argtypes = [ctypes.c_int, ctypes.c_uint64]
        library.podium_recording_twin.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
        sizes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
        library.podium_recording_launch.argtypes = sizes

    # ---- launches ----

    def launch_count(self) -> int:
        """Return how many launches there were since the last reset, captured ones and those of graphs included."""
        count: int = self._library.podium_recording_launch_count()
        return count

    def keep(self, launches: int) -> None:
        """Keep so many launches from now on, and forget those before."""
        self._library.podium_recording_keep(launches)

    def launch(self, sequence: int) -> Launch:
        """Return a launch by its number, which begins with 1. Raises LookupError if it is kept no longer."""
        raw = _Launch()
        if not self._library.podium_recording_launch(sequence, ctypes.byref(raw), None, 0, None, 0):
            raise LookupError(f"launch {sequence} of {self.launch_count()} is not kept")
        data = ctypes.create_string_buffer(raw.argument_bytes or 1)
        layout = (_Argument * (raw.argument_count or 1))()
        self._library.podium_recording_launch(sequence, ctypes.byref(raw), data, len(data), layout, len(layout))
        places = [(layout[i].offset, layout[i].size) for i in range(raw.argument_count)]
        packed = data.raw[: raw.argument_bytes]
        plain = ("sequence", "device", "stream", "function", "thread", "shared", "group", "kernarg_size")
        return Launch(
            **{name: getattr(raw, name) for name in plain},
            **{name: tuple(getattr(raw, name)) for name in ("grid", "block")},
            **{name: bool(getattr(raw, name)) for name in ("cooperative", "captured", "through_buffer")},
            name=raw.name.decode(),
            entry=self._library.podium_recording_entry(raw.entry).decode(),
            attributes=tuple((it.id, bytes(it.value)) for it in raw.attributes[: raw.attribute_count]),
            parameters=tuple(packed[offset : offset + size] for offset, size in places),
            offsets=tuple(offset for offset, _ in places),
            packed=packed,
        )

    def launches(self, since: int = 0) -> list[Launch]:
        """Return the launches behind number `since`, oldest first; all of them must still be kept."""
        return [self.launch(number) for number in range(since + 1, self.launch_count() + 1)]

    def last(self) -> Launch:
        """Return the latest launch."""
        return self.launch(self.launch_count())

    def twin(self, kernel: str, address: int) -> None:
        """Run a function that podium's CPU backend has compiled wherever a kernel of this name is launched; 0: no more."""
        self._library.podium_recording_twin(kernel.encode(), address)

    # ---- calls ----

    def calls(self) -> dict[str, int]:
        """Return how often each entry was called since the last reset; entries that were not are left out."""
        names: list[bytes] = []
        while (name := self._library.podium_recording_entry(len(names))) is not None:
            names.append(name)
        counts = {name.decode(): self._library.podium_recording_calls(name) for name in names}
        return {name: count for name, count in counts.items() if count}

    def call_count(self) -> int:
        """Return how many calls there were since the last reset; those that only ask for errors are not among them."""
        count: int = self._library.podium_recording_call_count()
        return count

    def trace(self, since: int = 0) -> list[tuple[str, int, int]]:
        """Return the calls behind number `since`: entry, status, and the device that was current when it returned."""
        result = []
        numbers = (ctypes.c_int(), ctypes.c_int(), ctypes.c_int())
        for sequence in range(since + 1, self.call_count() + 1):
            if not self._library.podium_recording_call(sequence, *numbers):
                raise LookupError(f"call {sequence} of {self.call_count()} is not kept")
            entry, status, device = (number.value for number in numbers)
            result.append((self._library.podium_recording_entry(entry).decode(), status, device))
        return result

    def fail(self, name: str, status: int, nth: int = 1) -> None:
        """Let the nth call of an entry from now give a status and do nothing. Raises KeyError for an unknown entry."""
        if self._library.podium_recording_fail(name.encode(), int(status), nth):
            raise KeyError(name)

    @contextmanager
    def failing(self, name: str, status: int, nth: int = 1) -> Iterator[None]:
        """Do what `fail` does, and take it back at the end."""
        self.fail(name, status, nth)
        try:
            yield
        finally:
            self.fail(name, 0, 0)

    def fault(self, status: int, device: int = 0) -> None:
        """Let the next kernel that runs on a device fail: whoever waits for it then, or launches, gets the status."""
        self._library.podium_recording_fault(device, int(status))

    def set_busy(self, busy: bool = True) -> None:
        """Let streams and events say that they are not ready, until they are waited for."""
        self._library.podium_recording_set_busy(busy)

    # ---- what lives ----

    def counters(self) -> dict[str, int]:
        """Return how many modules, streams, events and allocations live, and of how many bytes."""
        return self._counters(0)

    def created(self) -> dict[str, int]:
        """Return how many of each there have ever been; memory is not counted."""
        return self._counters(1)

    def _counters(self, which: int) -> dict[str, int]:
        result: dict[str, int] = {}
        numbers = (ctypes.c_uint64(), ctypes.c_uint64())
        while name := self._library.podium_recording_counter(len(result), *map(ctypes.byref, numbers)):
            result[name.decode()] = numbers[which].value
        return result

    # ---- the machine ----

    def set_device_count(self, count: int) -> None:
        """Say how many devices there are, at most 8."""
        self._library.podium_recording_set_device_count(count)

    def set_arch(self, arch: str, device: int = 0) -> None:
        """Make a device one of another architecture, such as "gfx1100". Raises ValueError for what is none."""
        if self._library.podium_recording_set_arch(device, arch.encode()):
            raise ValueError(arch)

    def set_memory(self, size: int, device: int = 0) -> None:
        """Set how many bytes of memory a device has."""
        self._library.podium_recording_set_memory(device, size)

    def set_cooperative(self, can: bool, device: int = 0) -> None:
        """Say whether a device can launch cooperatively."""
        self._library.podium_recording_set_cooperative(device, can)

    def set_peer(self, device: int, other: int, reachable: bool) -> None:
        """Say whether one device can access the memory of another."""
        self._library.podium_recording_set_peer(device, other, reachable)

    def reset(self) -> None:
        """Forget all objects, memory, launches and failures; what the devices are stays. Nobody may use the runtime."""
        self._library.podium_recording_reset()
