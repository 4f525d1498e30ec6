"""The driver of the NVIDIA backend; so far it can tell whether it could run, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from podium.backend import (
    Buffer,
    Device,
    Driver,
    Function,
    LaunchConfig,
    Launcher,
    ObjectCode,
    Parameters,
    Program,
    Target,
)
from podium.errors import BackendError

from podium_nvidia import detection

__all__ = ["NvidiaDriver"]


class NvidiaDriver(Driver):
    """Runs kernels on NVIDIA GPUs."""

    name = "nvidia"
    priority = 100
    launcher_cls = Launcher
    dlpack_devices = frozenset({2, 3, 13})
    environment: ClassVar = {
        "PODIUM_NVIDIA_LIBCUDA": "the file of the CUDA driver library, instead of the one that the loader finds",
    }

    @classmethod
    def inactive_reason(cls) -> str | None:
        """Say why there is no NVIDIA GPU to use, and what to do."""
        return detection.inactive_reason()

    def toolchain(self, language: str) -> str:
        """Refuse."""
        raise self._unable()

    def devices(self) -> Sequence[Device]:
        """Refuse."""
        raise self._unable()

    def default_target(self) -> Target:
        """Refuse."""
        raise self._unable()

    def compile(self, program: Program, target: Target) -> ObjectCode:
        """Refuse."""
        raise self._unable()

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        """Refuse."""
        raise self._unable()

    def unload(self, function: Function, device: int) -> None:
        """Have nothing to release."""

    def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Buffer:
        """Refuse."""
        raise self._unable()

    def copy(self, destination: int, source: int, size: int, device: int, stream: int) -> None:
        """Refuse."""
        raise self._unable()

    def current_device(self) -> int:
        """Return 0."""
        return 0

    def current_stream(self, device: int) -> int:
        """Return 0."""
        return 0

    def synchronize(self, device: int, stream: int | None = None) -> int:
        """Have nothing to wait for."""
        return 0

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        """Refuse."""
        raise self._unable()

    def describe_status(self, status: int) -> tuple[str, str]:
        """Return the number."""
        return f"CUDA_ERROR_{status}", "unknown status"

    def _unable(self) -> BackendError:
        return BackendError("This version of podium-nvidia cannot run kernels")
