"""A loop in C over a backend's own driver call: what launches are compared with, on any backend."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from podium import _state
from podium._extension import Extension
from podium._launcher_source import signature_source
from podium._status import status_error

if TYPE_CHECKING:
    from podium._kernel import Kernel

__all__ = ["driver_loop"]

_SOURCE = Path(__file__).parent / "driver_loop.c"
_Loop = ctypes.PYFUNCTYPE(
    ctypes.c_int,
    ctypes.c_uint64,
    ctypes.c_uint64,
    ctypes.c_uint32,
    ctypes.c_int,
    ctypes.c_uint64,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_double),
)


def driver_loop(
    kernel: Kernel, block: int, device: int, stream: int, values: Sequence[int], launches: int
) -> Callable[[], float]:
    """Make a function that launches one block so often and returns the seconds; parameters have eight bytes or less.

    It calls what the generated launcher of the backend calls, and nothing else. Raises `ToolchainError` if there is no
    C compiler, `CompileError` or `LoadError`; the function raises `LaunchError`.
    """
    launcher = kernel.binding().launcher
    template = launcher.template
    source = signature_source(launcher.signature.parameters, launcher.scratch_count)

    def common() -> str:
        return "\n".join([template.read_text(encoding="utf-8"), '#line 1 "driver_loop.c"', _SOURCE.read_text("utf-8")])

    files, folders = (template, _SOURCE), (template.parent, template.parent / "include")
    module = Extension("loop", "podium_driver_loop", source, files=files, folders=folders, common=common).build()
    loop = _Loop(module.address)
    state, function = _state.address(), kernel.load(device)
    held = (ctypes.c_uint64 * max(1, len(values)))(*values)
    base = ctypes.addressof(held)
    addresses = (ctypes.c_void_p * max(1, len(values)))(*(base + 8 * index for index in range(len(values))))
    seconds = ctypes.c_double()
    kept = module, held, kernel  # the function lives as long as what it points to

    def way() -> float:
        status = loop(state, function, block, device, stream, addresses, launches, ctypes.byref(seconds))
        if status:
            driver = kept[-1].binding().driver
            raise status_error(driver, status, kernel.name, device, (1, 1, 1), (block, 1, 1), stream)
        return seconds.value

    return way
