"""The version of podium-opencl; every distribution of this repository carries the same one."""

__version__ = "0.1.0"
