"""nvJitLink, through cuda-python, in a process of its own: what is damaged may end that one.

It trusts what it is given: LTO-IR and relocatable code that are damaged make it read and write anywhere.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from podium.errors import ToolchainError
from podium.parts import call_apart, can_call_apart

from podium_nvidia.toolkit import find_library

__all__ = ["Linked", "Refused", "is_there", "link"]

# nvJitLink's own numbers for what it is given.
_INPUT_TYPES = {"cubin": 1, "object": 1, "ptx": 2, "ltoir": 3, "fatbin": 4, "host object": 5, "library": 6}

_PATIENCE = 1800  # seconds; of some damage nvJitLink never comes to an end


class Linked(NamedTuple):
    """What nvJitLink made: a cubin, and the log."""

    code: bytes
    log: str


class Refused(Exception):
    """nvJitLink refused its options, if `of_options` is true, or its inputs; `log` is what it said."""

    def __init__(self, log: str, of_options: bool, version: tuple[int, int]) -> None:
        super().__init__(log, of_options, version)
        self.log, self.of_options, self.version = log, of_options, version


def is_there() -> bool:
    """Tell whether there is an nvJitLink to use."""
    return find_library("nvJitLink") is not None


def link(inputs: Sequence[tuple[str, bytes, str]], options: Sequence[str]) -> Linked:
    """Link inputs, each with its kind, its bytes and its label.

    A program that cannot start another Python, such as one that is frozen, links in its own process.

    Raises `Refused`, `ToolchainError` if nvJitLink is not there or does not work, and `ProcessEnded` if it ended the
    process that it was in.
    """
    path = find_library("nvJitLink")
    if path is None:
        raise ToolchainError(
            "Linking needs nvJitLink, and there is none. Install it: pip install 'podium-nvidia[nvrtc]'; or set "
            "CUDA_HOME to a CUDA toolkit"
        )
    answer: Linked | Refused
    if can_call_apart():
        answer = call_apart(f"{__name__}:link_here", path, list(inputs), list(options), patience=_PATIENCE)
    else:
        answer = link_here(path, inputs, options)
    if isinstance(answer, Refused):
        raise answer
    return answer


def link_here(path: str, inputs: Sequence[tuple[str, bytes, str]], options: Sequence[str]) -> Linked | Refused:
    """Link in this process, by the library that is given; return what came out. Raises `ToolchainError`."""
    api = _open(path)
    major, minor = api.version()
    try:
        handle = api.create(len(options), list(options))
    except api.nvJitLinkError as error:
        return Refused(str(error), True, (major, minor))
    try:
        for kind, data, label in inputs:
            api.add_data(handle, _INPUT_TYPES[kind], data, len(data), label)
        api.complete(handle)
        code = bytearray(api.get_linked_cubin_size(handle))
        api.get_linked_cubin(handle, code)
        return Linked(bytes(code), _log(api.get_info_log_size, api.get_info_log, handle))
    except api.nvJitLinkError as error:
        log = _log(api.get_error_log_size, api.get_error_log, handle)
        return Refused(log or str(error), False, (major, minor))
    finally:
        api.destroy(handle)


def _log(size: Any, read: Any, handle: int) -> str:
    length = size(handle)
    if not length:
        return ""
    text = bytearray(length)
    read(handle, text)
    return text.rstrip(b"\0\n").decode("utf-8", "replace")


def _open(path: str) -> Any:
    try:
        ctypes.CDLL(path)  # cuda-python takes the copy that is open
    except OSError as error:
        raise ToolchainError(f"nvJitLink cannot be opened: {error}. It was found as {path}") from None
    try:
        from cuda.bindings import nvjitlink

        nvjitlink.version()
    except (ImportError, RuntimeError) as error:
        raise ToolchainError(f"cuda-python cannot use nvJitLink: {error}. It was found as {path}") from error
    return nvjitlink
