"""The runtime that every library of kernels is linked with: compiled once, and kept in podium's cache."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from podium.backend import HostCompiler
from podium.errors import PodiumError

from podium_cpu.toolchain import RUNTIME, headers_digest

__all__ = ["RuntimeObject"]

# At the second level of optimisation the first kernel on a machine would wait longer, and no barrier take less time.
_FLAGS = (
    *("-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-pthread", "-c"),
    "-D_GLIBCXX_INCLUDE_NEXT_C_HEADERS",  # the C library's headers as they are, without what libstdc++ adds to them
)

# What must be the same for the runtime and for kernels: the kind of machine, and what a sanitizer adds to code.
_COMMON_FLAGS = ("-m", "--target", "-target", "-fsanitize", "-fno-sanitize", "-DPODIUM_CPU_", "--sysroot", "-isysroot")


class RuntimeObject:
    """The runtime as an object file, for a compiler and for the flags of a kernel."""

    def __init__(self, compiler: HostCompiler, flags: Sequence[str]) -> None:
        self._compiler = compiler
        # The processor's level is none of them: the runtime is not where time goes.
        common = [flag for flag in flags if flag.startswith(_COMMON_FLAGS) and not flag.startswith("-march")]
        source = f'#include "{os.path.join(RUNTIME, "runtime.cpp")}"\n'
        self._arguments = ({"runtime.cpp": source}, "runtime.cpp", [*_FLAGS, *common], headers_digest())
        self._data = b""
        self._failure: PodiumError | None = None
        self._thread = threading.Thread(target=self._run, name="podium-cpu-runtime")

    def recall(self) -> bytes | None:
        """Return the object file if it is in the cache."""
        return self._compiler.recall(*self._arguments)

    def start(self) -> None:
        """Begin to compile it, in a thread of its own."""
        self._thread.start()

    def finish(self) -> bytes:
        """Wait for it. Raises `ToolchainError` or `CompileError`."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._data

    def _run(self) -> None:
        try:
            self._data = self._compiler.run_cached(*self._arguments)
        except PodiumError as error:
            self._failure = error
