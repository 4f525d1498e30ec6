"""Whether this machine has an NVIDIA GPU that podium can use, found out without waking its driver."""

from __future__ import annotations

import os

from podium.errors import BackendError

__all__ = ["inactive_reason"]


def inactive_reason(root: str = "/") -> str | None:
    """Say why there is no NVIDIA GPU to use, and what to do; None if there is one.

    `root` is the folder that stands for the root of the file system.
    """
    from podium_nvidia import libcuda

    if not os.environ.get(libcuda.VARIABLE) and not os.path.exists(os.path.join(root, "dev/nvidiactl")):
        return (
            "there is no NVIDIA GPU: /dev/nvidiactl does not exist. "
            + "Install NVIDIA's driver, or start the container with --gpus all"
        )
    try:
        libcuda.find(root)
    except BackendError as error:
        return str(error)
    return None
