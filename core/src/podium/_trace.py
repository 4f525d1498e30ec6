"""A trace of launches, compiles and loads in the Chrome trace format: open the file in a trace viewer."""

from __future__ import annotations

import atexit
import json
import math
import os
import threading
import time
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import IO

from podium import _settings
from podium._hooks import CompileEvent, LaunchEvent, LoadEvent, hooks
from podium.errors import SettingError

__all__ = ["Trace", "start_from_environment", "trace"]


class Trace:
    """Writes events to a file from `start` to `stop`, or inside a ``with`` block.

    The durations are host time: of a launch on a device that runs on its own, what enqueuing it took. The file is a
    valid trace at any moment, also after a crash: the format lets the closing bracket be missing.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file: IO[str] | None = None
        self._process = 0
        self._lock = threading.Lock()

    def start(self) -> Trace:
        """Create the file and begin. Raises OSError if the file cannot be written; does nothing if it has begun."""
        if self._file is not None:
            return self
        self._file = self.path.open("w", encoding="utf-8")
        self._file.write("[\n")
        self._file.flush()  # nothing may wait in the buffer, since a forked child has it, too
        self._process = os.getpid()
        hooks.exit.add(self._launched)
        hooks.compile.add(self._compiled)
        hooks.load.add(self._loaded)
        return self

    def stop(self) -> None:
        """End the trace and close the file; nothing happens the second time."""
        if self._file is None:
            return
        hooks.exit.remove(self._launched)
        hooks.compile.remove(self._compiled)
        hooks.load.remove(self._loaded)
        with self._lock:
            if self._process == os.getpid():
                end = {
                    "name": "end of trace",
                    "ph": "i",
                    "ts": time.perf_counter() * 1e6,
                    "pid": self._process,
                    "s": "p",
                }
                self._file.write(json.dumps(end) + "\n]\n")
            self._file.close()
            self._file = None

    def __enter__(self) -> Trace:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _launched(self, event: LaunchEvent) -> None:
        seconds = event.seconds or 0.0
        details = {
            "backend": event.backend,
            "device": event.device,
            "stream": hex(event.stream),
            "grid": list(event.grid),
            "block": list(event.block),
            "shared": event.shared,
            "arguments": {
                info.name: hex(info.address) if info.address is not None else _json_value(info.value)
                for info in event.arguments
            },
        }
        if event.error is not None:
            details["error"] = str(event.error)
        self._write("launch", event.kernel, time.perf_counter() - seconds, seconds, details)

    def _compiled(self, event: CompileEvent) -> None:
        self._write(
            "compile", event.kernel, event.start, event.seconds, {"target": event.target, "cached": event.cached}
        )

    def _loaded(self, event: LoadEvent) -> None:
        details = {"backend": event.backend, "device": event.device}
        self._write("load", event.kernel, event.start, event.seconds, details)

    def _write(self, category: str, name: str, start: float, seconds: float, details: dict[str, object]) -> None:
        record = {
            "name": name if category == "launch" else f"{category} {name}",
            "cat": category,
            "ph": "X",
            "ts": round(start * 1e6, 3),  # microseconds
            "dur": round(seconds * 1e6, 3),
            "pid": os.getpid(),
            "tid": threading.get_native_id(),
            "args": details,
        }
        with self._lock:
            # a forked child shares the file with its parent; only the parent writes
            if self._file is not None and self._process == os.getpid():
                self._file.write(json.dumps(record, default=str) + ",\n")
                self._file.flush()


def _json_value(value: object) -> object:
    """JSON has neither infinities nor NaN."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def trace(path: str | Path) -> Trace:
    """Write a trace of everything inside ``with podium.trace(path):``. PODIUM_TRACE=path traces the whole process."""
    return Trace(path)


@lru_cache(maxsize=1)
def start_from_environment() -> None:
    """Begin the trace that PODIUM_TRACE asks for, the first time that a launcher is made."""
    path = _settings.trace_file()
    if path is None:
        return
    try:
        atexit.register(Trace(path).start().stop)
    except OSError as error:
        raise SettingError("PODIUM_TRACE", str(path), f"a file that can be written ({error.strerror})") from None
