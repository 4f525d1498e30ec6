"""The error for code that the runtime does not load: which side to change."""

from __future__ import annotations

from podium.backend import ObjectCode
from podium.errors import LoadError

from podium_amd.arch import Arch
from podium_amd.device import target
from podium_amd.status import (
    INVALID_IMAGE,
    INVALID_KERNEL_FILE,
    NO_BINARY,
    NOT_FOUND,
    STICKY,
    describe,
    hip_version,
    launch_error,
    take_last_error,
)

__all__ = ["load_error"]


def load_error(status: int, known: str, code: ObjectCode, name: str, device: int) -> LoadError:
    """Make the error for a status of the runtime; `known` is what more there is to say."""
    if status in STICKY:  # it is about work before, not about the code
        return LoadError(str(launch_error(status, f"loading {name}", device)), kernel=name, backend="amd")
    take_last_error()
    status_name, text = describe(status)
    message = (
        f"{name}: {status_name}: {text} (status {status}; {code.format} built for {code.target.arch}, device {device} "
        f"is {target(device).arch}, HIP {hip_version()})"
    )
    message += "".join(f". {each}" for each in (_advice(status, code, name, device), known) if each)
    return LoadError(message, kernel=name, backend="amd")


def _advice(status: int, code: ObjectCode, name: str, device: int) -> str:
    if status in (NO_BINARY, INVALID_IMAGE, INVALID_KERNEL_FILE):
        own = target(device).arch
        if _runs_on(code.target.arch, own) and status != NO_BINARY:
            return "The bytes are damaged, or a newer compiler made them than the runtime knows: compile it again"
        return f"It was built for {code.target.arch} and is to run on {own}: compile it for that"
    if status == NOT_FOUND:
        return f"The code object has no symbol {code.symbol(name)!r}"
    return ""


def _runs_on(code: str, device: str) -> bool:
    try:
        return Arch.parse(code).runs_on(Arch.parse(device))
    except ValueError:
        return False
