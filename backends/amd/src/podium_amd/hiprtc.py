"""hipRTC, through hip-python: text in, a code object and a log out.

Before HIP 7, hipRTC ends the process if it does not know the architecture. So one that no device has shown to be right
is compiled for in a process of its own, once; then it is known. So is a text that is so long that what is nested in it
may be too much for the compiler's stack.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from podium.backend import ForkSafeLock
from podium.errors import ToolchainError
from podium.parts import ProcessEnded, call_apart, call_on_large_stack, can_call_apart

from podium_amd import bindings, library
from podium_amd.toolchain import hiprtc_path

__all__ = ["Compiled", "Hiprtc", "Refused", "UnknownArch", "load"]

_LONG = 64 << 10  # characters; what is nested in fewer goes onto the stack of `call_on_large_stack`
_REFUSING = 7  # the version of HIP from which on an unknown architecture is an error that is returned

# The compiler inside has options that are one for the process: two threads that compile end it, seen with HIP 5.2.
_turn = ForkSafeLock()


class Compiled(NamedTuple):
    """What hipRTC made: the code, the log, and the name that each name expression has in the code.

    An expression that names neither a kernel nor a variable, such as a function, has none.
    """

    code: bytes
    log: str
    lowered: dict[str, str]


class Refused(Exception):
    """hipRTC refused a source or an option; `log` is what it said, and `status` its own name for it."""

    def __init__(self, status: str, log: str) -> None:
        super().__init__(status, log)
        self.status, self.log = status, log


class UnknownArch(Exception):
    """hipRTC does not know an architecture: the process that asked it has ended; `text` is what it printed last."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@lru_cache(maxsize=1)
def load() -> Hiprtc:
    """Return the compiler of this process, opening it the first time. Raises `ToolchainError`."""
    return Hiprtc(hiprtc_path())


class Hiprtc:
    """The compiler: its file, and the architectures that are known to be known to it."""

    def __init__(self, path: str) -> None:
        """Open it. Raises `ToolchainError` if that cannot be."""
        self.path = path
        library.note_compiler(path)
        self._api: Any = bindings.hiprtc()
        with library.taking_along():
            works = self._api.has_symbol("hiprtcCompileProgram")
        if not works:
            raise ToolchainError(f"hipRTC cannot be opened, or is another library. It was found as {path}")
        version = re.search(r"libhiprtc\.so\.(\d+)", os.path.basename(os.path.realpath(path)))
        self._refuses = version is not None and int(version[1]) >= _REFUSING
        self._known: set[str] = set()

    def know(self, arch: str) -> None:
        """Note that an architecture is one that hipRTC knows."""
        self._known.add(arch)

    def compile(self, source: str, label: str, arch: str, options: Sequence[str], names: Sequence[str]) -> Compiled:
        """Compile a text. `names` are name expressions: of kernels, or ``&`` and the name of a variable.

        The interpreter lock is released. Raises `Refused`, `UnknownArch`, and `ToolchainError` if hipRTC itself is
        broken.
        """
        is_long = len(source) > _LONG and can_call_apart()
        if not is_long and (self._refuses or arch in self._known):
            return self.compile_here(source, label, options, names)
        if not can_call_apart():
            raise ToolchainError(
                "hipRTC before HIP 7 ends the process for an architecture that it does not know, so it is tried in "
                "another process first, and this Python, which is embedded, cannot start one. Compile elsewhere"
            )
        try:
            compiled = self._compile_apart(source, label, options, names)
        except ProcessEnded as ended:
            if self._refuses or arch in self._known:
                text = f"the process of hipRTC ended: {ended}. Something is nested too deeply"
                raise Refused(ended.how, text) from None
            raise UnknownArch(ended.output[-300:] or ended.how) from None
        self.know(arch)
        return compiled

    def compile_here(self, source: str, label: str, options: Sequence[str], names: Sequence[str]) -> Compiled:
        """Compile in this process, one at a time; it ends if the architecture is unknown to a hipRTC before HIP 7."""
        with _turn, library.taking_along():
            return self._compile(source, label, options, names)

    def _compile(self, source: str, label: str, options: Sequence[str], names: Sequence[str]) -> Compiled:
        api = self._api
        # A lone surrogate, as names of files may have, must not stop a compilation.
        text, name = (each.encode("utf-8", "surrogateescape") for each in (source, label))
        (program,) = self._call("hiprtcCreateProgram", text, name, 0, None, None)
        try:
            for each in names:
                self._call("hiprtcAddNameExpression", program, each.encode())
            arguments = [os.fsencode(each) for each in options]
            (result,) = call_on_large_stack(lambda: api.hiprtcCompileProgram(program, len(arguments), arguments))
            log = self._read("hiprtcGetProgramLog", program).rstrip(b"\0").decode("utf-8", "replace").strip("\n")
            if result.name != "HIPRTC_SUCCESS":
                raise Refused(result.name, log)
            code = self._read("hiprtcGetCode", program)
            lowered = {each: self._lowered(program, each) for each in names}
            return Compiled(code, log, {each: symbol for each, symbol in lowered.items() if symbol})
        finally:
            api.hiprtcDestroyProgram(program.createRef())

    def _compile_apart(self, source: str, label: str, options: Sequence[str], names: Sequence[str]) -> Compiled:
        """Compile in a process of its own. Raises `ProcessEnded` as well."""
        asked = self.path, source, label, list(options), list(names)
        answer: Compiled | Refused = call_apart(f"{__name__}:compile_apart", *asked)
        if isinstance(answer, Refused):
            raise answer
        return answer

    def _lowered(self, program: Any, name: str) -> str:
        result, lowered = self._api.hiprtcGetLoweredName(program, name.encode())
        if result.name != "HIPRTC_SUCCESS":
            return ""
        return lowered.decode() if isinstance(lowered, bytes) else str(lowered)

    def _read(self, function: str, program: Any) -> bytes:
        (size,) = self._call(f"{function}Size", program)
        data = bytearray(size)
        if size:
            self._call(function, program, data)
        return bytes(data)

    def _call(self, function: str, *arguments: Any) -> tuple[Any, ...]:
        try:
            result, *values = getattr(self._api, function)(*arguments)
        except RuntimeError as error:  # what hip-python raises if the library has no such function
            raise ToolchainError(f"hip-python cannot use hipRTC: {error}. It was found as {self.path}") from error
        if result.name != "HIPRTC_SUCCESS":
            raise ToolchainError(f"{function} of hipRTC failed with {result.name}. hipRTC was found as {self.path}")
        return tuple(values)


def compile_apart(
    path: str, source: str, label: str, options: Sequence[str], names: Sequence[str]
) -> Compiled | Refused:
    """Compile in a process that is there for nothing else, by the hipRTC that is given."""
    os.environ[library.COMPILER_VARIABLE] = path
    try:
        return load().compile_here(source, label, options, names)
    except Refused as refused:
        return refused
