"""The CPU backend of podium: runs kernels of the CUDA dialect on the host."""

from __future__ import annotations

from podium_cpu._version import __version__

__all__ = ["__version__"]
