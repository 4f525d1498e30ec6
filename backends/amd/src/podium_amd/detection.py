"""Whether this machine has an AMD GPU that podium can use, found out without initialising HIP.

Asking must be safe before a fork and must leave the masks of visible devices open, so no function of the library is
called here, no process is started, and no answer is kept. AMD's management library is not asked: a copy of its own has
made other libraries see no device. The count of devices on first use is the last word.
"""

from __future__ import annotations

import os
import sys

from podium.errors import BackendError

from podium_amd import visible_devices
from podium_amd.system import System

__all__ = ["inactive_reason"]

_LIBHIP = "PODIUM_AMD_LIBHIP"
_CONTAINER = (
    "Start the container with GPUs: docker run --device /dev/kfd --device /dev/dri --group-add render, podman with the "
    "same, apptainer --rocm, or a limit of amd.com/gpu in Kubernetes"
)
_DRIVER = "Install the amdgpu driver, from your distribution's kernel or from AMD"


def inactive_reason(root: str = "/") -> str | None:
    """Say why podium cannot use an AMD GPU here, and what to do; None if it can.

    `root` stands for the root of the file system. Where PODIUM_AMD_LIBHIP names the library, what that one needs of
    the system is its own affair, and the signs of the kernel driver are not asked for.
    """
    if not sys.platform.startswith("linux"):
        return f"podium-amd is for Linux, and this is {sys.platform}"
    system = System(root)
    named = bool(os.environ.get(_LIBHIP))
    if not named and (reason := _device_reason(system)) is not None:
        return reason
    from podium_amd import library  # which needs ctypes, and a machine without a GPU does not

    try:
        copy = library.find()
    except BackendError as error:
        return str(error) if named else f"{error}. {_library_advice(system)}"
    count = None if named or system.is_wsl else len(system.gpus)
    return visible_devices.hiding_reason(count, copy.abi) or _package_reason()


def _device_reason(system: System) -> str | None:
    """Say what is wrong with the GPU's device files."""
    if system.is_wsl:
        return None
    if not system.has_kfd:
        return _absent_reason(system)
    if not system.may_open("/dev/kfd"):
        user, group = system.owner("/dev/kfd")
        return (
            f"/dev/kfd may not be read and written by this user. It is {user}:{group}'s. {_membership(system, group)}"
        )
    if not system.has_topology:
        return None
    gpus = system.gpus
    if not gpus:
        if system.is_container:
            return f"this container was given no AMD GPU: /dev/kfd is there, and its topology has none. {_CONTAINER}"
        return (
            "/dev/kfd is there, and its topology has no GPU: the kernel driver drives none for computing. `dmesg` says "
            "why, in lines with kfd or amdgpu: the GPU may be too old, or another program may have it, such as a "
            "virtual machine"
        )
    present = [gpu.render for gpu in gpus if system.exists(gpu.render)]
    if not present:
        nodes = " and ".join(gpu.render for gpu in gpus)
        if system.is_container:
            return f"this container has /dev/kfd and not {nodes}, which HIP needs as well. {_CONTAINER}"
        return f"/dev/kfd is there, and not {nodes}, which HIP needs as well. Load the kernel driver anew, or restart"
    if not any(map(system.may_open, present)):
        user, group = system.owner(present[0])
        return (
            f"{' and '.join(present)} may not be read and written by this user. The owner is {user}:{group}. "
            f"{_membership(system, group)}"
        )
    return None


def _membership(system: System, group: str) -> str:
    if system.is_container:
        return (
            f"Start the container with --group-add {group}; the number of the group on the machine counts, not its name"
        )
    return f"Become a member of the group, and log in anew: sudo usermod -aG {group} $USER"


def _absent_reason(system: System) -> str:
    unused = system.pci_gpus
    if system.is_container and (system.has_kernel_driver or unused):
        return f"this container was given no AMD GPU: the machine has one, and /dev/kfd is not there. {_CONTAINER}"
    if not unused:
        text = "there is no AMD GPU: no /dev/kfd, and none on the PCI bus"
        if system.is_container:
            return f"{text}. If the machine has one, its driver must be installed there. {_CONTAINER}"
        return f"{text}. If there is one: {_DRIVER[0].lower()}{_DRIVER[1:]}"
    address, driver = next(iter(unused.items()))
    if driver == "amdgpu":
        return (
            f"there is an AMD GPU ({address}) with the driver amdgpu, and no /dev/kfd: the kernel was built without "
            f"the driver for computing (CONFIG_HSA_AMD), or the GPU is too old for it"
        )
    state = f"the kernel driver {driver!r} has it" if driver else "no kernel driver is loaded for it"
    return f"there is an AMD GPU ({address}), and {state}. {_DRIVER}; if it is installed, run: sudo modprobe amdgpu"


def _library_advice(system: System) -> str:
    if system.is_container:
        return "Take an image with ROCm, or install its HIP runtime in the container"
    return (
        f"It is the HIP runtime: install ROCm's package hip-runtime-amd, Debian's libamdhip64-5, -6 or -7, or name the "
        f"file by {_LIBHIP}"
    )


def _package_reason() -> str | None:
    """Say that hip-python is missing or broken: it is a dependency, which an installation without them leaves out."""
    # Where packages usually are, it is seen at once; importlib.util costs more to import than all else here.
    if any(os.path.isdir(os.path.join(folder, "rocm", "bindings")) for folder in sys.path):
        return None
    from importlib.util import find_spec

    from podium_amd.bindings import FAILURES

    try:
        found = find_spec("rocm.bindings.hip") is not None
    except ImportError:
        found = False
    except FAILURES as error:
        return (
            f"hip-python cannot be imported: {type(error).__name__}: {error}. Run: pip install --force-reinstall "
            f"'hip-python>=10.0.0.0.1.2,<11'"
        )
    return None if found else "hip-python is not installed. Run: pip install 'hip-python>=10.0.0.0.1.2,<11'"
