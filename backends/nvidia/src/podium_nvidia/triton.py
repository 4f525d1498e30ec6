"""Kernels that Triton compiled for NVIDIA GPUs, with the tensor maps that its descriptors stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.backend import Target
from podium.errors import LoadError
from podium.triton import TritonBinary, TritonKernel

from podium_nvidia.arch import WARP_SIZE, Arch
from podium_nvidia.cubin import Cubin

__all__ = ["TritonKernel", "triton_kernel"]

_FIRST_WITH_LETTER = 90  # for these, Triton compiles for the one architecture

_TENSOR_MAP = "opaque[128,64]"

# The element types of tensor maps as Triton numbers them.
_ELEMENTS = ("u8", "u16", "u32", "i32", "u64", "i64", "fp16", "fp32", "fp32-ftz", "fp64", "bf16", "tf32", "tf32-ftz")
_SWIZZLES = ("none", "32", "64", "128")


def triton_kernel(compiled: Any, *, signature: Any = None) -> TritonKernel:
    """Take a kernel that Triton compiled for an NVIDIA GPU.

    `compiled` is what ``triton.compile(...)``, ``kernel.warmup(...)`` and ``kernel[grid](...)`` return; or the path of
    a ``.cubin`` in Triton's cache folder, with its ``.json`` beside it. The signature of the latter is read from the
    ``.ttir`` beside it, where folded parameters are gone and integers have signs; `signature` beats it.

    Raises `LoadError` for what is no such kernel, or whose parameters are not those of the signature.
    """
    binary = TritonBinary.read(
        compiled,
        format="cubin",
        device="an NVIDIA GPU",
        signature=signature,
        descriptor=_TENSOR_MAP,
        spellings={"nvTmaDesc": _TENSOR_MAP},
    )
    name, passed = binary.name, binary.signature.passed
    cubin = _cubin(binary.data, name)
    found = cubin.kernel(name)
    if found is None:
        known = ", ".join(each.symbol for each in cubin.kernels)
        raise LoadError(f"The binary has no kernel {name!r}; it has: {known}", kernel=name)
    hidden = len(found.parameters) - len(passed)
    sizes = tuple(each.type.size for each in passed)
    if not 0 <= hidden <= 2 or found.parameters != (*sizes, *(8,) * hidden):
        raise LoadError(
            f"{name}: the parameters of the binary have {list(found.parameters)} bytes, those of the signature "
            f"({binary.signature}) {list(sizes)}, and at most two pointers to scratch memory can follow",
            kernel=name,
        )
    target = Target("nvidia", str(_arch(cubin)), int(binary.metadata.get("warp_size") or WARP_SIZE))
    return TritonKernel(binary.object_code(target, hidden), binary.descriptors, _tensor_map)


def _cubin(data: bytes, name: str) -> Cubin:
    try:
        return Cubin(data)
    except ValueError as error:
        raise LoadError(f"{name}: {error}", kernel=name) from None


def _arch(cubin: Cubin) -> Arch:
    arch = cubin.arch
    return Arch(arch.number, arch.letter or ("a" if arch.number >= _FIRST_WITH_LETTER else ""))


def _tensor_map(value: Any, about: Mapping[str, Any]) -> Any:
    """Make the tensor map that a tensor descriptor of Triton's stands for."""
    from podium_nvidia.tma import tensor_map

    if about.get("fp4_padded"):
        raise LoadError("Tensor descriptors of padded elements of four bits cannot be passed")
    view = _View(value.base, tuple(value.shape), tuple(value.strides), int(about["elem_size"]))
    return tensor_map(
        view,
        tuple(about["block_size"]),
        swizzle=_SWIZZLES[about["swizzle"]],
        l2_promotion="128",
        fill="nan" if getattr(value, "padding", "zero") == "nan" else "zeros",
        dtype=_ELEMENTS[about["elem_type"]],
    )


class _View:
    """An array at the address of another, with sizes and strides of its own."""

    def __init__(self, base: Any, shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> None:
        self.base = base
        self.__cuda_array_interface__ = {
            "version": 3,
            "data": (int(base.data_ptr()), False),
            "shape": shape,
            "strides": tuple(size * each for each in strides),
            "typestr": f"<u{size}" if size > 1 else "|u1",
        }
