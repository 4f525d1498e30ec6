"""The real hipRTC, by ctypes: in a process of its own, since an architecture that it does not know ends the process.

Programs are compiled once in a session and kept beside its cache.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SONAMES = ("libhiprtc.so.7", "libhiprtc.so.6", "libamdhip64.so.5")  # before HIP 6, hipRTC is in the runtime
MISSING = (
    "there is no hipRTC on this machine: Debian has it in libamdhip64-5, and fetch.py in tests/recording/hip gets one"
)


_FIND = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.hiprtcCompileProgram
name = sys.argv[1].rpartition(".so")[0]
print(next(line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if name in line))
"""


@functools.cache
def hiprtc() -> str | None:
    """Return the file of the real hipRTC that the loader finds, or None."""
    for name in SONAMES:
        done = subprocess.run([sys.executable, "-c", _FIND, name], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
    return None


def compiled(library: str, source: str, arch: str, options: Sequence[str] = ()) -> bytes:
    """Return the code object of a source for an architecture. Raises CompileFailed with the log."""
    key = hashlib.sha256("\0".join((library, source, arch, *options)).encode()).hexdigest()
    folder = Path(os.environ.get("RECORDING_CACHE") or os.environ["PODIUM_CACHE_DIR"]) / "recording-hip"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / key
    if not kept.exists():
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(_compile(library, source, arch, options))
        Path(file.name).replace(kept)
    return kept.read_bytes()


class CompileFailed(Exception):
    """hipRTC gave a status; the text is its log, or what the process said when it ended."""


def _compile(library: str, source: str, arch: str, options: Sequence[str]) -> bytes:
    if _opens(library):
        line = [sys.executable, __file__, library, arch, *options]
        done = subprocess.run(line, input=source.encode(), capture_output=True)
        if done.returncode:
            raise CompileFailed(done.stderr.decode(errors="replace") or f"hipRTC ended with {done.returncode}")
        return done.stdout
    return compile_here(library, source, arch, options)


def _opens(library: str) -> bool:
    """Tell whether a child of this process, on the system's own C library, can open the file too."""
    line = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({library!r})"]
    return subprocess.run(line, capture_output=True).returncode == 0


def compile_here(library: str, source: str, arch: str, options: Sequence[str] = ()) -> bytes:
    """Compile in this process. Raises CompileFailed with the log."""
    hiprtc = ctypes.CDLL(library)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    _check(hiprtc.hiprtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None))
    given = [f"--gpu-architecture={arch}".encode(), *(option.encode() for option in options)]
    status = hiprtc.hiprtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
    if status:
        hiprtc.hiprtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        hiprtc.hiprtcGetProgramLog(program, log)
        raise CompileFailed(f"hiprtcCompileProgram gave {status}\n{log.value.decode(errors='replace')}")
    _check(hiprtc.hiprtcGetCodeSize(program, ctypes.byref(size)))
    code = ctypes.create_string_buffer(size.value)
    _check(hiprtc.hiprtcGetCode(program, code))
    _check(hiprtc.hiprtcDestroyProgram(ctypes.byref(program)))
    return code.raw


def _check(status: int) -> None:
    if status:
        raise CompileFailed(f"hipRTC gave {status}")


if __name__ == "__main__":
    try:
        output = compile_here(sys.argv[1], sys.stdin.read(), sys.argv[2], sys.argv[3:])
    except CompileFailed as failure:
        sys.exit(str(failure))
    sys.stdout.buffer.write(output)
