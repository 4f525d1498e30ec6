"""A stand-in for the CUDA driver: a libcuda.so.1 of C in this folder, which needs no GPU and records what is asked of it.

A process that uses it must never meet the real one: it has to be the one that cuda-python and the launchers open. So
either `PODIUM_NVIDIA_LIBCUDA` names it before they do (`environment()` makes the variables of a child process), or
`Recording` opens it first in this process.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from recording.builds import made

SOURCES = Path(__file__).parent
NEWEST = 13000
_OF_THE_VERSION = SOURCES / "entry.c"  # the one source in which versions differ
_ENTRY = re.compile(r"^(?:STREAM_)?ENTRY\((\w+), (\d+), (\w+)\)$", re.MULTILINE)


def entries() -> list[tuple[str, int, str]]:
    """Return what the library has: each function's name, the first driver with this version of it, and its symbol."""
    found = _ENTRY.findall((SOURCES / "entries.def").read_text(encoding="utf-8"))
    return [(name, int(since), symbol) for name, since, symbol in found]


def compiler() -> str | None:
    """Return the C compiler, or None."""
    return next((path for path in map(shutil.which, ("cc", "gcc", "clang")) if path), None)


def build(version: int = NEWEST, flags: tuple[str, ...] = ()) -> Path:
    """Compile the library as a driver of a version, 12040 for 12.4, and return its path; once for a run of the tests.

    What a driver of that version does not have is not exported either. Raises RuntimeError without a C compiler, and
    if there is a single warning.
    """
    key = hashlib.sha256(" ".join(flags).encode()).hexdigest()[:8]

    def compile_all(folder: Path) -> None:
        sources = [path for path in sorted(SOURCES.glob("*.c")) if path != _OF_THE_VERSION]
        _compile(folder, "-c", *flags, *map(str, sources))

    def link(folder: Path) -> None:
        symbols = [symbol for _, since, symbol in entries() if since <= version]
        listed = "".join(f"{name}; " for name in symbols)
        (folder / "exports").write_text(f"{{ global: podium_recording_*; {listed}local: *; }};\n")
        objects = map(str, sorted(made(f"cuda-{key}", compile_all).glob("*.o")))
        options = [f"-DPODIUM_RECORDING_VERSION={version}", "-shared", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic"]
        options += ["-Wl,--version-script=exports", "-o", "libcuda.so.1"]
        _compile(folder, *flags, *options, str(_OF_THE_VERSION), *objects, "-lpthread")

    return made(f"cuda-{version}-{key}", link) / "libcuda.so.1"


def _compile(folder: Path, *arguments: str) -> None:
    program = compiler()
    if program is None:
        raise RuntimeError("there is no C compiler for the recording library")
    # Without optimisation it takes a third of the time to compile, and is none too slow.
    command = [program, "-std=gnu11", "-O0", "-g", "-fPIC", "-Wall", "-Wextra", "-Werror", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the recording library does not compile:\n{done.stderr}")


def environment(path: Path | None = None, **settings: str) -> dict[str, str]:
    """Return the variables of a child process that shall meet this library and no GPU."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PODIUM_RECORDING_")}
    variables["PODIUM_NVIDIA_LIBCUDA"] = str(path or build())
    folders = [str(SOURCES.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables["PYTHONPATH"] = os.pathsep.join(folders)
    return {**variables, **settings}


class _Attribute(ctypes.Structure):
    _fields_: ClassVar = [("id", ctypes.c_uint32), ("unused", ctypes.c_uint32), ("value", ctypes.c_uint8 * 64)]


class _Parameter(ctypes.Structure):
    _fields_: ClassVar = [("offset", ctypes.c_uint32), ("size", ctypes.c_uint32)]


class _Launch(ctypes.Structure):
    """struct launch of state.h."""

    _fields_: ClassVar = [
        *((name, ctypes.c_uint64) for name in ("sequence", "function", "context", "stream", "thread")),
        ("device", ctypes.c_int32),
        ("entry", ctypes.c_uint32),
        *((name, ctypes.c_uint32 * 3) for name in ("grid", "block", "cluster")),
        *((name, ctypes.c_uint32) for name in ("shared", "captured", "attribute_count", "parameter_count")),
        *((name, ctypes.c_uint32) for name in ("parameter_bytes", "stale")),
        ("attributes", _Attribute * 16),
        ("name", ctypes.c_char * 256),
    ]


class _TensorMap(ctypes.Structure):
    """struct tensor_map of tensor_map.c."""

    _fields_: ClassVar = [
        *((name, ctypes.c_uint32) for name in ("im2col", "type", "rank", "interleave", "swizzle", "promotion")),
        *((name, ctypes.c_uint32) for name in ("fill", "channels", "pixels")),
        ("address", ctypes.c_uint64),
        *((name, ctypes.c_uint64 * 5) for name in ("sizes", "strides")),
        *((name, ctypes.c_uint32 * 5) for name in ("box", "element_strides")),
        *((name, ctypes.c_int32 * 5) for name in ("lower", "upper")),
    ]


Three = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """A launch as the driver was told of it."""

    sequence: int
    name: str
    entry: (
        str  # "cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel" or, for a node of a graph, who added it
    )
    device: int
    context: int
    stream: int
    function: int
    thread: int
    grid: Three
    block: Three
    cluster: Three
    shared: int
    attributes: tuple[tuple[int, bytes], ...]  # number and the 64 bytes of its value, in their order
    parameters: tuple[bytes, ...]  # each parameter's own bytes
    offsets: tuple[int, ...]
    packed: bytes  # all of them where the kernel finds them, with zeros between
    captured: bool  # put into a graph, and not run
    replayed: bool  # run by a graph
    stale: int  # how many parameters are addresses of freed device memory


class Recording:
    """The recording library, opened in this process, and what tests ask of it."""

    def __init__(self, path: Path | str | None = None) -> None:
        """Open the library, for all who ask for libcuda.so.1 later on in this process."""
        self.path = str(path or os.environ.get("PODIUM_NVIDIA_LIBCUDA") or build())
        library = self._library = ctypes.CDLL(self.path, mode=ctypes.RTLD_GLOBAL)
        library.podium_recording_fail.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64]
        library.podium_recording_calls.restype = ctypes.c_int64
        library.podium_recording_entry.restype = ctypes.c_char_p
        library.podium_recording_counter.restype = ctypes.c_char_p
        library.podium_recording_launch_count.restype = ctypes.c_uint64
        library.podium_recording_keep.argtypes = [ctypes.c_uint64]
        library.podium_recording_set_memory.argtypes = [ctypes.c_int, ctypes.c_uint64]
        sizes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
        library.podium_recording_launch.argtypes = sizes

    # ---- launches ----

    def function(self, name: str) -> Any:
        """Return an entry of the library, as ctypes calls it."""
        return getattr(self._library, name)

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
        data = ctypes.create_string_buffer(raw.parameter_bytes or 1)
        layout = (_Parameter * (raw.parameter_count or 1))()
        self._library.podium_recording_launch(sequence, ctypes.byref(raw), data, len(data), layout, len(layout))
        places = [(layout[i].offset, layout[i].size) for i in range(raw.parameter_count)]
        packed = data.raw[: raw.parameter_bytes]
        entry = self._library.podium_recording_entry(raw.entry)
        return Launch(
            **{name: getattr(raw, name) for name in ("sequence", "device", "context", "stream", "function", "thread")},
            **{name: tuple(getattr(raw, name)) for name in ("grid", "block", "cluster")},
            name=raw.name.decode(),
            entry=entry.decode(),
            shared=raw.shared,
            attributes=tuple((it.id, bytes(it.value)) for it in raw.attributes[: raw.attribute_count]),
            parameters=tuple(packed[offset : offset + size] for offset, size in places),
            offsets=tuple(offset for offset, _ in places),
            packed=packed,
            captured=raw.captured == 1,
            replayed=raw.captured == 2,
            stale=raw.stale,
        )

    def launches(self, since: int = 0) -> list[Launch]:
        """Return the launches behind number `since`, oldest first; all of them must still be kept."""
        return [self.launch(number) for number in range(since + 1, self.launch_count() + 1)]

    def last(self) -> Launch:
        """Return the latest launch."""
        return self.launch(self.launch_count())

    def tensor_map(self) -> dict[str, Any]:
        """Return what the latest tensor map was made of."""
        raw = _TensorMap()
        if not self._library.podium_recording_tensor_map(ctypes.byref(raw)):
            raise LookupError("no tensor map was made")
        values = {name: getattr(raw, name) for name, *_ in _TensorMap._fields_}
        return {name: value if isinstance(value, int) else tuple(value)[: raw.rank] for name, value in values.items()}

    # ---- calls ----

    def calls(self) -> dict[str, int]:
        """Return how often each entry was called since the last reset; entries that were not are left out."""
        names: list[bytes] = []
        while (name := self._library.podium_recording_entry(len(names))) is not None:
            names.append(name)
        counts = {name.decode(): self._library.podium_recording_calls(name) for name in names}
        return {name: count for name, count in counts.items() if count}

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
        """Let the next kernel that runs on a device fault: its context gives the status from then on, as on a real one."""
        self._library.podium_recording_fault(device, int(status))

    def set_busy(self, busy: bool = True) -> None:
        """Let streams and events say that they are not ready, until they are waited for."""
        self._library.podium_recording_set_busy(busy)

    # ---- what lives ----

    @contextmanager
    def full_queue(self) -> Iterator[Callable[[], None]]:
        """Let launches wait in the driver until the block ends; what it gives waits until one does.

        A launch that waits for long fails, with CUDA_ERROR_LAUNCH_TIMEOUT.
        """

        def wait() -> None:
            assert self._library.podium_recording_await_full(), "no launch came"

        self._library.podium_recording_set_full(1)
        try:
            yield wait
        finally:
            self._library.podium_recording_set_full(0)

    def counters(self) -> dict[str, int]:
        """Return how many contexts, modules, streams, allocations, ... live; `retained` counts primary contexts' users."""
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

    def context_depth(self) -> int:
        """Return how many contexts are on the stack of this thread."""
        depth: int = self._library.podium_recording_context_depth()
        return depth

    # ---- the machine ----

    def set_device_count(self, count: int) -> None:
        """Say how many devices there are, at most 16."""
        self._library.podium_recording_set_device_count(count)

    def set_attributes(self, values: Mapping[int, int], device: int = 0) -> None:
        """Set attributes of a device by their numbers. Raises KeyError for one that there is not."""
        for number, value in values.items():
            if self._library.podium_recording_set_attribute(device, int(number), value):
                raise KeyError(number)

    def set_memory(self, size: int, device: int = 0) -> None:
        """Set how many bytes of memory a device has."""
        self._library.podium_recording_set_memory(device, size)

    def set_peer(self, device: int, other: int, reachable: bool) -> None:
        """Say whether one device can access the memory of another."""
        self._library.podium_recording_set_peer(device, other, reachable)

    def reset(self) -> None:
        """Forget all objects, memory, launches and failures; what the devices are stays. Nobody may use the driver."""
        self._library.podium_recording_reset()
