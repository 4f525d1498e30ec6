"""Access of devices to each other's memory, enabled where it is first needed."""

from __future__ import annotations

import ctypes

from podium.backend import ForkSafeLock

from podium_amd import context
from podium_amd.api import check, hip
from podium_amd.status import ALREADY_ENABLED, take_last_error

__all__ = ["can_access"]

_lock = ForkSafeLock()
_enabled: set[tuple[int, int]] = set()


def can_access(device: int, peer: int) -> bool:
    """Tell whether kernels on a device can reach memory of a peer; if so they can from then on.

    Raises `BackendError`.
    """
    if device == peer or (device, peer) in _enabled:
        return True
    possible = ctypes.c_int()
    check(hip().hipDeviceCanAccessPeer(ctypes.byref(possible), device, peer), f"access of {device} to {peer}")
    if not possible.value:
        return False
    with _lock, context.current(device):
        status = hip().hipDeviceEnablePeerAccess(peer, 0)
        if status == ALREADY_ENABLED:
            take_last_error()
        else:
            check(status, f"access of device {device} to device {peer}")
        _enabled.add((device, peer))
    return True
