"""What AMD's kernel driver leaves in the file system: its device file, the nodes of its topology, the render nodes."""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

__all__ = ["Node", "System"]

_VENDOR = "0x1002"
_CLASSES = ("0x03", "0x12")  # PCI classes of graphics cards, and of accelerators without a display
_NODES = "sys/class/kfd/kfd/topology/nodes"
_CONTAINER_FILES = (".dockerenv", "run/.containerenv", ".singularity.d")
_CONTAINER_VARIABLES = ("container", "KUBERNETES_SERVICE_HOST", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")


class Node(NamedTuple):
    """A GPU in the topology: the number of its node, its version such as 90402 for gfx942, and its render node."""

    number: int
    version: int
    render: str


class System:
    """The machine, as its file system below `root` shows it. Every question is answered anew."""

    def __init__(self, root: str = "/") -> None:
        self.root = root

    @property
    def has_kfd(self) -> bool:
        """Whether the device file of the driver for computing is there, /dev/kfd."""
        return self._exists("dev/kfd")

    @property
    def is_wsl(self) -> bool:
        """Whether this is Windows' subsystem for Linux with a GPU of any vendor: it has one device file for all."""
        return self._exists("dev/dxg")

    @property
    def is_container(self) -> bool:
        """Whether there are signs of a container."""
        return any(map(self._exists, _CONTAINER_FILES)) or any(map(os.environ.get, _CONTAINER_VARIABLES))

    @property
    def has_kernel_driver(self) -> bool:
        """Whether the kernel driver is loaded; a container sees this of the machine that it is on."""
        return self._exists("sys/module/amdgpu")

    @property
    def has_topology(self) -> bool:
        """Whether the driver for computing shows its topology."""
        return self._exists(_NODES)

    @property
    def gpus(self) -> list[Node]:
        """The GPUs of the topology that this process may know of; a node of a processor has 0 for the id of its GPU."""
        found = []
        for name in self._list(_NODES):
            if not name.isdecimal() or self._read(f"{_NODES}/{name}/gpu_id").strip() in ("", "0"):
                continue
            lines = (line.split() for line in self._read(f"{_NODES}/{name}/properties").splitlines())
            properties = {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdecimal()}
            if properties:
                render = f"/dev/dri/renderD{properties.get('drm_render_minor', 0)}"
                found.append(Node(int(name), properties.get("gfx_target_version", 0), render))
        return sorted(found)

    @property
    def pci_gpus(self) -> dict[str, str | None]:
        """The PCI addresses of all of AMD's GPUs, each with the name of the kernel driver that has it, if any."""
        found = {}
        for address in self._list("sys/bus/pci/devices"):
            folder = f"sys/bus/pci/devices/{address}"
            if self._read(f"{folder}/vendor").strip() == _VENDOR and self._read(f"{folder}/class").startswith(_CLASSES):
                link = os.path.join(self.root, folder, "driver")
                found[address] = os.path.basename(os.path.realpath(link)) if os.path.lexists(link) else None
        return found

    def exists(self, node: str) -> bool:
        """Tell whether there is a node."""
        return self._exists(node.lstrip("/"))

    def may_open(self, node: str) -> bool:
        """Tell whether the permissions of a node allow its use. To open /dev/kfd would make the process known there."""
        return os.access(os.path.join(self.root, node.lstrip("/")), os.R_OK | os.W_OK)

    def owner(self, node: str) -> tuple[str, str]:
        """Return the user and the group that a node belongs to, ("root", "render"), or their numbers."""
        from grp import getgrgid
        from pwd import getpwuid

        try:
            status = os.stat(os.path.join(self.root, node.lstrip("/")))
        except OSError as error:
            return errno.errorcode.get(error.errno or 0, "nobody"), "nobody"
        try:
            return getpwuid(status.st_uid).pw_name, getgrgid(status.st_gid).gr_name
        except KeyError:
            return str(status.st_uid), str(status.st_gid)

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
                return file.read(16384)
        except OSError:
            return ""
