"""Access of devices to each other's memory, enabled where it is first needed."""

from __future__ import annotations

import ctypes

from podium.backend import ForkSafeLock

from podium_nvidia import context
from podium_nvidia.api import check, driver
from podium_nvidia.status import ALREADY_ENABLED

__all__ = ["can_access"]

_lock = ForkSafeLock()
_enabled: set[tuple[int, int]] = set()


def can_access(device: int, peer: int) -> bool:
    """Tell whether kernels on a device can reach memory of a peer; if so they can from then on.

    Access is that of the contexts that launches and allocations use. Raises `BackendError`.
    """
    if device == peer or (device, peer) in _enabled:
        return True
    possible = ctypes.c_int()
    check(driver().cuDeviceCanAccessPeer(ctypes.byref(possible), device, peer), f"access of {device} to {peer}")
    if not possible.value:
        return False
    with _lock, context.current(device):
        status = driver().cuCtxEnablePeerAccess(context.primary(peer), 0)
        if status != ALREADY_ENABLED:
            check(status, f"access of device {device} to device {peer}")
        _enabled.add((device, peer))
    return True
