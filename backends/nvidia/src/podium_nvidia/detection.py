"""Whether this machine has an NVIDIA GPU that podium can use, found out without waking its driver.

Asking must be safe before a fork and must leave the mask of visible devices open, so nothing is initialised here, no
process is started, and no answer is kept. The management library (NVML) is not asked: initialising it wakes GPUs that
nobody uses, which takes seconds on some machines, and it knows nothing that decides the question beyond what the
kernel driver shows in the file system.
"""

from __future__ import annotations

import errno
import os
import re
import sys

from podium.errors import BackendError

from podium_nvidia.system import System, is_version

__all__ = ["OLDEST_DRIVER", "inactive_reason"]

OLDEST_DRIVER = 11030
"""The oldest CUDA version that a driver must serve: the first one with cuGetProcAddress."""

_CONTAINER = (
    "Start the container with GPUs: docker run --gpus all, podman run --device nvidia.com/gpu=all, apptainer --nv, "
    "or a limit of nvidia.com/gpu in Kubernetes"
)
_DRIVER = "Install NVIDIA's driver, from your distribution or from NVIDIA"


def inactive_reason(root: str = "/") -> str | None:
    """Say why podium cannot use an NVIDIA GPU here, and what to do; None if it can.

    `root` stands for the root of the file system. Where PODIUM_NVIDIA_LIBCUDA names the driver library, what that one
    needs of the system is its own affair, and the signs of NVIDIA's kernel driver are not asked for.
    """
    system = System(root)
    named = bool(os.environ.get("PODIUM_NVIDIA_LIBCUDA"))
    if not named and os.name != "nt" and (reason := _device_reason(system)) is not None:
        return reason
    count = None if named or system.is_wsl else len(system.gpus)
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        from podium_nvidia.visible_devices import hiding_reason

        if (reason := hiding_reason(count)) is not None:
            return reason
    from podium_nvidia import libcuda  # which needs ctypes, and a machine without a GPU does not

    try:
        copy = libcuda.find(root)
    except BackendError as error:
        return str(error) if named else f"{error}. {_library_advice(system)}"
    return _version_reason(copy.version or 0, copy.path, named, system) or _package_reason()


def _device_reason(system: System) -> str | None:
    """Say what is wrong with the GPU's nodes."""
    if system.has_control:
        return _node_reason(system)
    if system.is_wsl or system.is_tegra:
        return None
    if system.has_kernel_driver:
        version = system.kernel_driver_version or "of unknown version"
        if system.is_container:
            return (
                f"this container was given no NVIDIA GPU: the machine has NVIDIA's kernel driver {version}, and "
                f"/dev/nvidiactl is not there.{_void()} {_CONTAINER}"
            )
        if not system.gpus:
            return (
                f"NVIDIA's kernel driver {version} is loaded and drives no GPU. `dmesg` says why, in lines with NVRM: "
                f"the GPU may be too old for this driver, or another program may have it, such as a virtual machine"
            )
        return None if system.makes_nodes else _missing_nodes(f"kernel driver {version} is loaded")
    unused = system.pci_gpus
    if not unused:
        return (
            f"there is no NVIDIA GPU: no /dev/nvidiactl, no kernel driver, and none on the PCI bus. {_absent(system)}"
        )
    address, other = next(iter(unused.items()))
    if other is None and system.makes_nodes:
        return None
    state = f"the kernel driver {other!r} has it" if other else "no kernel driver is loaded for it"
    if system.is_container:
        return f"the machine has an NVIDIA GPU ({address}), and {state}. {_DRIVER}, on the machine. {_CONTAINER}"
    return f"there is an NVIDIA GPU ({address}), and {state}. {_DRIVER}; if it is installed, run: sudo modprobe nvidia"


def _node_reason(system: System) -> str | None:
    if (refused := system.refusal("/dev/nvidiactl")) is not None:
        text = f"/dev/nvidiactl cannot be opened: {refused.strerror}"
        if refused.errno == errno.EPERM:
            return (
                f"{text}. The device control group of this container or service forbids it, which also happens when "
                f"systemd is reloaded under a running container: restart the container. {_CONTAINER}"
            )
        if refused.errno == errno.EACCES:
            return f"{text}. It is {system.owner('/dev/nvidiactl')}'s: become a member of that group, or ask its owner"
        return f"{text}. The kernel driver may be gone, or another one than when the node was made: restart the machine"
    nodes = system.nodes
    if not nodes:
        if system.is_container:
            return f"this container was given no NVIDIA GPU: there is no /dev/nvidia0.{_void()} {_CONTAINER}"
        if system.is_tegra or (system.gpus and system.makes_nodes):
            return None
        return _missing_nodes("/dev/nvidiactl is there")
    if not any(map(system.may_open, nodes)):
        return (
            f"{' and '.join(nodes)} may not be read and written by this user. The owner is {system.owner(nodes[0])}: "
            f"become a member of that group, or ask for access"
        )
    if system.is_container and not (system.has_memory_node or system.is_tegra or system.makes_nodes):
        return (
            f"this container has {nodes[0]} and not /dev/nvidia-uvm, which CUDA needs as well: pass it on, too, with "
            f"--device /dev/nvidia-uvm. {_CONTAINER}"
        )
    return None


def _missing_nodes(but: str) -> str:
    return f"{but}, and there is no /dev/nvidia0. Let root make the device nodes: sudo nvidia-modprobe -c 0 -u"


def _absent(system: System) -> str:
    if system.is_container:
        return f"If the machine has one, its driver must be installed there. {_CONTAINER}"
    return f"If there is one: {_DRIVER[0].lower()}{_DRIVER[1:]}"


def _void() -> str:
    """Name the variable by which the container's runtime was told to give no GPU."""
    value = os.environ.get("NVIDIA_VISIBLE_DEVICES")
    return f" NVIDIA_VISIBLE_DEVICES={value} asks for none." if value in ("", "void", "none") else ""


def _library_advice(system: System) -> str:
    if system.is_wsl:
        return "WSL has it from Windows, in /usr/lib/wsl/lib: install NVIDIA's driver in Windows, then: wsl --shutdown"
    if system.is_container:
        capabilities = os.environ.get("NVIDIA_DRIVER_CAPABILITIES")
        if capabilities and not {"compute", "all"} & set(re.split(r"[\s,]+", capabilities)):
            return f"NVIDIA_DRIVER_CAPABILITIES={capabilities} leaves it out: add compute to the variable"
        return f"The container's runtime brings it in. {_CONTAINER}"
    return (
        "It belongs to NVIDIA's driver: install the driver's package for computing (libcuda1, libnvidia-compute-NNN or "
        "nvidia-driver-cuda-libs), or name the file by PODIUM_NVIDIA_LIBCUDA"
    )


def _version_reason(version: int, path: str, named: bool, system: System) -> str | None:
    if version < OLDEST_DRIVER:
        return (
            f"the driver is too old: {path} serves CUDA {version // 1000}.{version % 1000 // 10}, and podium needs "
            f"{OLDEST_DRIVER // 1000}.{OLDEST_DRIVER % 1000 // 10}. Update NVIDIA's driver"
        )
    kernel, file = system.kernel_driver_version, os.path.realpath(path)
    own = file.rpartition(".so.")[2]
    # A compatibility library is newer than the kernel driver on purpose, and lies in a folder that says so.
    if named or kernel is None or not is_version(own) or own == kernel or "compat" in file:
        return None
    return (
        f"the driver is of two versions: {file} is {own}, and the kernel driver is {kernel}. Restart the machine or "
        f"the container, which is enough after an update; if both are right, name the library by PODIUM_NVIDIA_LIBCUDA"
    )


def _package_reason() -> str | None:
    """Say that cuda-python is missing: it is a dependency, which an installation without them leaves out."""
    # Where packages usually are, it is seen at once; importlib.util costs more to import than all else here.
    if any(os.path.isdir(os.path.join(folder, "cuda", "bindings")) for folder in sys.path):
        return None
    from importlib.util import find_spec

    try:
        found = find_spec("cuda.bindings") is not None
    except ImportError:
        found = False
    return None if found else "cuda-python is not installed. Run: pip install cuda-python"
