"""The error for code that the driver does not load: which side to change, and what the driver's compiler said."""

from __future__ import annotations

from podium.backend import ObjectCode
from podium.errors import LoadError

from podium_nvidia.device import capability
from podium_nvidia.status import (
    INVALID_IMAGE,
    INVALID_PTX,
    INVALID_SOURCE,
    JIT_COMPILER_NOT_FOUND,
    NO_BINARY,
    NOT_FOUND,
    STICKY,
    UNSUPPORTED_PTX_VERSION,
    describe,
    driver_version,
    launch_error,
)

__all__ = ["load_error"]


def load_error(status: int, log: str, code: ObjectCode, name: str, device: int) -> LoadError:
    """Make the error for a status of the driver; `log` is what more there is to say."""
    if status in STICKY:  # it is about work before, not about the code
        return LoadError(str(launch_error(status, f"loading {name}", device)), kernel=name, backend="nvidia")
    status_name, text = describe(status)
    message = (
        f"{name}: {status_name}: {text} (status {status}; {code.format} built for {code.target.arch}, device {device} "
        f"is sm_{capability(device)}, driver {driver_version()})"
    )
    advice = _advice(status, code, name, device)
    message += f". {advice}" if advice else ""
    message += f"\n{log}" if log else ""
    return LoadError(message, kernel=name, backend="nvidia")


def _advice(status: int, code: ObjectCode, name: str, device: int) -> str:
    if status == UNSUPPORTED_PTX_VERSION:
        return (
            "The toolkit that made this PTX is newer than the driver: update the NVIDIA driver, or compile with a "
            "toolkit that is not newer than the CUDA version of the driver"
        )
    if status in (NO_BINARY, INVALID_IMAGE, INVALID_SOURCE):
        own = f"sm_{capability(device)}"
        if code.format == "fatbin" and status == NO_BINARY:
            return f"Of the code in the fat binary none is for {own}: add it where the binary is made"
        if code.target.arch == own and status != NO_BINARY:
            return (
                "The bytes are damaged: compile it again; or the toolkit that made them is newer than the driver: "
                "update the NVIDIA driver, or compile with a toolkit that is not newer than its CUDA version"
            )
        return f"It was built for {code.target.arch} and is to run on {own}: compile it for that"
    if status == INVALID_PTX:
        return "The driver's compiler refuses the PTX; what it said follows"
    if status == JIT_COMPILER_NOT_FOUND:
        return "The driver's PTX compiler (libnvidia-ptxjitcompiler) is not installed: compile to a cubin"
    if status == NOT_FOUND:
        return f"The binary has no symbol {code.symbol(name)!r}"
    return ""
