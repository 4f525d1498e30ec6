"""An OpenCL backend of podium: runs kernels of the CUDA dialect on OpenCL devices with shared virtual memory."""

from __future__ import annotations

from podium_opencl._version import __version__

__all__ = ["__version__"]
