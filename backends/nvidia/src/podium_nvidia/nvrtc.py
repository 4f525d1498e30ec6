"""NVRTC, through cuda-python: text in, machine code and a log out."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from podium.backend import BackgroundCall
from podium.errors import ToolchainError
from podium.parts import ProcessEnded, call_apart, call_on_large_stack, can_call_apart

from podium_nvidia.options import makes_lto
from podium_nvidia.toolchain import nvrtc_path

__all__ = ["Compiled", "Nvrtc", "Refused", "compile_apart", "load"]

_LONG = 64 << 10  # characters; what is nested in fewer goes onto the stack of `call_on_large_stack`


class Compiled(NamedTuple):
    """What NVRTC made: the code, the log, and the name that each name expression has in the code."""

    code: bytes
    log: str
    lowered: dict[str, str]


class Refused(Exception):
    """NVRTC refused a source or an option; `log` is what it said, and `status` its own name for it."""

    def __init__(self, status: str, log: str) -> None:
        super().__init__(status, log)
        self.status, self.log = status, log


@lru_cache(maxsize=1)
def load() -> Nvrtc:
    """Return the compiler of this process, opening it the first time. Raises `ToolchainError`."""
    return Nvrtc(nvrtc_path())


class Nvrtc:
    """The compiler: its file, its version, and the architectures that it knows, in ascending order."""

    def __init__(self, path: str) -> None:
        """Open it. Raises `ToolchainError` if it cannot be opened, or if cuda-python has opened another one."""
        self.path = path
        # cuda-python takes the copy that is open, so it is this one, wherever it would have looked first. Opening needs
        # no Python and importing needs no NVRTC, so both go on at once.
        opening = BackgroundCall(lambda: ctypes.CDLL(path))
        try:
            from cuda.bindings import nvrtc
        except ImportError as error:
            raise ToolchainError(
                f"NVRTC is called through cuda-python, which cannot be imported: {error}. "
                f"Install it: pip install 'cuda-python>=12.6'"
            ) from error
        try:
            opening.result()
        except OSError as error:
            raise ToolchainError(f"NVRTC cannot be opened: {error}. It was found as {path}") from None
        self._api: Any = nvrtc
        try:
            _check_copy(path)
            major, minor = self._call("nvrtcVersion")
            (known,) = self._call("nvrtcGetSupportedArchs")
        except RuntimeError as error:  # what cuda-python raises if it finds no library, or one without a function
            raise ToolchainError(f"cuda-python cannot use NVRTC: {error}. It was found as {path}") from error
        self.version = (int(major), int(minor))
        _open_builtins(path, self.version)
        self.supported = sorted(known)

    def compile(self, source: str, label: str, options: Sequence[str], names: Sequence[str]) -> Compiled:
        """Compile a text. `names` are name expressions: of kernels, or ``&`` and the name of a variable.

        NVRTC goes down by what is nested deeper than its stack is. It has a large one here, and what is longer than
        that may be for is compiled in another process.

        The interpreter lock is released. Raises `Refused`, and `ToolchainError` if NVRTC itself is broken.
        """
        if len(source) <= _LONG or not can_call_apart():
            return self._compile(source, label, options, names)
        asked = self.path, source, label, list(options), list(names)
        try:
            answer: Compiled | Refused = call_apart(f"{__name__}:compile_apart", *asked)
        except ProcessEnded as ended:
            raise Refused(ended.how, f"the process of NVRTC ended: {ended}. Something is nested too deeply") from None
        if isinstance(answer, Refused):
            raise answer
        return answer

    def _compile(self, source: str, label: str, options: Sequence[str], names: Sequence[str]) -> Compiled:
        # A lone surrogate, as names of files may have, must not stop a compilation.
        text, name = (each.encode("utf-8", "surrogateescape") for each in (source, label))
        (program,) = self._call("nvrtcCreateProgram", text, name, 0, None, None)
        try:
            for each in names:
                self._call("nvrtcAddNameExpression", program, each.encode())
            arguments = [os.fsencode(each) for each in options]
            result, *_ = call_on_large_stack(lambda: self._api.nvrtcCompileProgram(program, len(arguments), arguments))
            log = self._read("nvrtcGetProgramLog", program).rstrip(b"\0").decode("utf-8", "replace").strip("\n")
            status = result.name
            if status == "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE":
                raise ToolchainError(_broken(self.path, log), log=log)
            if status != "NVRTC_SUCCESS":
                raise Refused(status, log)
            return Compiled(self._code(program, options), log, {each: self._lowered(program, each) for each in names})
        finally:
            self._api.nvrtcDestroyProgram(program)

    def _code(self, program: Any, options: Sequence[str]) -> bytes:
        if makes_lto(options):
            return self._read("nvrtcGetLTOIR", program)
        size, *_ = self._call("nvrtcGetCUBINSize", program)
        return self._read("nvrtcGetCUBIN", program) if size else self._read("nvrtcGetPTX", program).rstrip(b"\0")

    def _lowered(self, program: Any, name: str) -> str:
        (lowered,) = self._call("nvrtcGetLoweredName", program, name.encode())
        return str(lowered.decode())

    def _read(self, function: str, program: Any) -> bytes:
        (size,) = self._call(f"{function}Size", program)
        data = bytes(size)  # of zeros: a single byte is an object that the whole process shares, and stays what it is
        self._call(function, program, data)
        return data

    def _call(self, function: str, *arguments: Any) -> tuple[Any, ...]:
        result, *values = getattr(self._api, function)(*arguments)
        if result.name != "NVRTC_SUCCESS":
            raise ToolchainError(f"{function} of NVRTC failed with {result.name}. NVRTC was found as {self.path}")
        return tuple(values)


def compile_apart(
    path: str, source: str, label: str, options: Sequence[str], names: Sequence[str]
) -> Compiled | Refused:
    """Compile in a process that is there for nothing else, by the NVRTC that is given."""
    try:
        return Nvrtc(path)._compile(source, label, options, names)
    except Refused as refused:
        return refused


def _check_copy(path: str) -> None:
    """Make sure that cuda-python uses the copy that cache keys name."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
    except ImportError:  # before cuda-pathfinder, cuda-python asked the loader, which gives the copy that is open
        return
    used = load_nvidia_dynamic_lib("nvrtc").abs_path
    if used is not None and not os.path.samefile(used, path):
        raise ToolchainError(
            f"This process has opened {used} after podium had chosen {path}. Import podium's kernels after the library "
            f"that brings it, or name it by PODIUM_NVIDIA_NVRTC={used}"
        )


def _open_builtins(path: str, version: tuple[int, int]) -> None:
    """Open what NVRTC opens by its name alone: the library beside it, not one that the loader happens to find."""
    beside = os.path.join(os.path.dirname(os.path.realpath(path)), "libnvrtc-builtins.so.{}.{}".format(*version))
    if os.path.isfile(beside):
        try:
            ctypes.CDLL(beside)
        except OSError as error:
            raise ToolchainError(f"NVRTC's {beside} cannot be opened: {error}") from None


def _broken(path: str, log: str) -> str:
    folder = os.path.dirname(path)
    missing = re.search(r"libnvrtc-builtins\.so\.[\d.]*\d", log)
    if missing is None:
        return f"NVRTC does not work: {log}. It was found as {path}"
    found = ", ".join(sorted(each for each in os.listdir(folder) if "builtins" in each)) or "none"
    return (
        f"NVRTC needs {missing[0]} of its own version beside it in {folder}, where there is: {found}. Reinstall it: "
        f"pip install --force-reinstall 'podium-nvidia[nvrtc]'; or name a complete one by PODIUM_NVIDIA_NVRTC"
    )
