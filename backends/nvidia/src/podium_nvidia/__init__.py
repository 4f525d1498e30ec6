"""The NVIDIA backend of podium: compiles, loads and launches CUDA kernels on NVIDIA GPUs."""

from __future__ import annotations

from podium_nvidia._version import __version__

__all__ = ["__version__"]
