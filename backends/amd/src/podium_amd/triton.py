"""Kernels that Triton compiled for AMD GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.backend import Entry, Target
from podium.errors import LoadError
from podium.triton import TritonBinary, TritonKernel

from podium_amd.code_object import CodeObject
from podium_amd.parameters import mismatch

__all__ = ["TritonKernel", "triton_kernel"]


def triton_kernel(compiled: Any, *, signature: Any = None) -> TritonKernel:
    """Take a kernel that Triton compiled for an AMD GPU.

    `compiled` is what ``triton.compile(...)``, ``kernel.warmup(...)`` and ``kernel[grid](...)`` return; or the path of
    a ``.hsaco`` in Triton's cache folder, with its ``.json`` beside it. The signature of the latter is read from the
    ``.ttir`` beside it, where folded parameters are gone and integers have signs; `signature` beats it.

    Raises `LoadError` for what is no such kernel, or whose parameters are not those of the signature.
    """
    binary = TritonBinary.read(compiled, format="hsaco", device="an AMD GPU", signature=signature)
    name = binary.name
    described = _code_object(binary.data, name)
    found = described.kernel(name)
    if found is None:
        known = ", ".join(each.symbol for each in described.kernels)
        raise LoadError(f"The binary has no kernel {name!r}; it has: {known}", kernel=name)
    hidden = len(found.parameters) - len(binary.signature.passed)
    wrong = mismatch(found, Entry(name, binary.signature), hidden if 0 < hidden <= 2 else 0)
    if wrong is not None:
        raise LoadError(f"{wrong}; at most two pointers to scratch memory can follow", kernel=name)
    if int(binary.metadata.get("num_ctas") or 1) != 1:
        raise LoadError(f"{name}: its programs are clusters of blocks, which podium-amd does not launch", kernel=name)
    target = Target("amd", str(described.arch or _arch(binary.metadata, name)), found.wavefront_size)
    return TritonKernel(binary.object_code(target, hidden), binary.descriptors)


def _code_object(data: bytes, name: str) -> CodeObject:
    try:
        return CodeObject(data)
    except ValueError as error:
        raise LoadError(f"{name}: {error}", kernel=name) from None


def _arch(metadata: Mapping[str, Any], name: str) -> str:
    target = metadata.get("target")
    arch = target.get("arch") if isinstance(target, Mapping) else getattr(target, "arch", None)
    if not arch:
        raise LoadError(f"{name}: neither the binary nor its metadata say for which architecture it is", kernel=name)
    return str(arch)
