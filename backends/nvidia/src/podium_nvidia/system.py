"""What NVIDIA's kernel driver leaves in the file system: device nodes, its version, the GPUs that it drives."""

from __future__ import annotations

import errno
import os

__all__ = ["System", "is_version"]

_VENDOR = "0x10de"
_DISPLAY = "0x03"  # the PCI class of graphics cards and of accelerators without a display
_CONTAINER_FILES = (".dockerenv", "run/.containerenv", ".singularity.d")
_CONTAINER_VARIABLES = ("container", "KUBERNETES_SERVICE_HOST", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")


def is_version(word: str) -> bool:
    """Tell whether a word is the version of a driver, such as "580.159.04"; a date or an address is none."""
    parts = word.split(".")
    return 2 <= len(parts) <= 3 and all(map(str.isdecimal, parts)) and len(parts[0]) == 3 and len(parts[-1]) <= 3


class System:
    """The machine, as its file system below `root` shows it. Every question is answered anew."""

    def __init__(self, root: str = "/") -> None:
        self.root = root

    @property
    def nodes(self) -> list[str]:
        """The device nodes of GPUs, such as /dev/nvidia0."""
        return [f"/dev/{name}" for name in self._list("dev") if name[:6] == "nvidia" and name[6:].isdecimal()]

    @property
    def has_control(self) -> bool:
        """Whether the node of the kernel driver itself is there, /dev/nvidiactl."""
        return self._exists("dev/nvidiactl")

    @property
    def has_memory_node(self) -> bool:
        """Whether the node of the driver's memory manager is there, /dev/nvidia-uvm."""
        return self._exists("dev/nvidia-uvm")

    @property
    def is_wsl(self) -> bool:
        """Whether this is Windows' subsystem for Linux with a GPU of any vendor: it has one node for all."""
        return self._exists("dev/dxg")

    @property
    def is_tegra(self) -> bool:
        """Whether the GPU is part of a Jetson's processor: it has nodes with other names."""
        return any(map(self._exists, ("dev/nvhost-gpu", "dev/nvgpu/igpu0", "dev/nvmap")))

    @property
    def is_container(self) -> bool:
        """Whether there are signs of a container."""
        return any(map(self._exists, _CONTAINER_FILES)) or any(map(os.environ.get, _CONTAINER_VARIABLES))

    @property
    def has_kernel_driver(self) -> bool:
        """Whether the kernel driver is loaded; a container sees this of the machine that it is on."""
        return self._exists("proc/driver/nvidia/version") or self._exists("sys/module/nvidia")

    @property
    def kernel_driver_version(self) -> str | None:
        """The version of the kernel driver, such as "580.159.04"."""
        return next(filter(is_version, self._read("proc/driver/nvidia/version").split()), None)

    @property
    def gpus(self) -> list[str]:
        """The PCI addresses of the GPUs that the kernel driver drives."""
        return self._list("proc/driver/nvidia/gpus")

    @property
    def pci_gpus(self) -> dict[str, str | None]:
        """The PCI addresses of all of NVIDIA's GPUs, each with the name of the kernel driver that has it, if any."""
        found = {}
        for address in self._list("sys/bus/pci/devices"):
            folder = f"sys/bus/pci/devices/{address}"
            if self._read(f"{folder}/vendor").strip() == _VENDOR and self._read(f"{folder}/class").startswith(_DISPLAY):
                link = os.path.join(self.root, folder, "driver")
                found[address] = os.path.basename(os.path.realpath(link)) if os.path.lexists(link) else None
        return found

    @property
    def makes_nodes(self) -> bool:
        """Whether the first use of the driver loads it and makes its nodes: a program does so that runs as root."""
        try:
            mode = os.stat(os.path.join(self.root, "usr/bin/nvidia-modprobe")).st_mode
        except OSError:
            return False
        return bool(mode & 0o4000) or os.geteuid() == 0

    def refusal(self, node: str) -> OSError | None:
        """Open a node as the driver library will, and close it; return the error if that fails.

        Only for the node of the kernel driver itself, for which this does nothing: that of a GPU would be woken.
        """
        try:
            os.close(os.open(os.path.join(self.root, node.lstrip("/")), os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            return error
        return None

    def may_open(self, node: str) -> bool:
        """Tell whether the permissions of a node allow its use."""
        return os.access(os.path.join(self.root, node.lstrip("/")), os.R_OK | os.W_OK)

    def owner(self, node: str) -> str:
        """Return whose a node is, "root:video"."""
        from grp import getgrgid
        from pwd import getpwuid

        try:
            status = os.stat(os.path.join(self.root, node.lstrip("/")))
            return f"{getpwuid(status.st_uid).pw_name}:{getgrgid(status.st_gid).gr_name}"
        except KeyError:
            return f"{status.st_uid}:{status.st_gid}"
        except OSError as error:
            return errno.errorcode.get(error.errno or 0, "nobody")

    def _exists(self, name: str) -> bool:
        return os.path.exists(os.path.join(self.root, name))

    def _list(self, name: str) -> list[str]:
        try:
            return sorted(os.listdir(os.path.join(self.root, name)))
        except OSError:
            return []

    def _read(self, name: str) -> str:
        try:
            with open(os.path.join(self.root, name), encoding="utf-8", errors="replace") as file:
                return file.read(4096)
        except OSError:
            return ""
