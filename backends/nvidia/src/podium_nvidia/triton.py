"""Kernels that Triton compiled: its binary and metadata, launched by podium.

Triton itself is not imported: what it made tells everything, whether it is at hand as an object or as files in Triton's
cache folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from podium.backend import Entry, ObjectCode, Signature, Target
from podium.errors import LoadError, SourceError

from podium_nvidia.arch import Arch
from podium_nvidia.cubin import Cubin

__all__ = ["TritonKernel", "triton_kernel"]

_FIRST_WITH_LETTER = 90  # for these, Triton compiles for the one architecture

_TENSOR_DESCRIPTOR = re.compile(r"tensordesc<([^\[>]*)\[([^\]]*)\]")
_TENSOR_MAP = "opaque[128,64]"

# What the names of element types in Triton's own language are in signatures.
_MLIR_TYPES = {"f16": "fp16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5"}
_FUNCTION = re.compile(r"tt\.func public @([\w$.]+)\((.*?)\) attributes", re.DOTALL)
_ARGUMENT = re.compile(r"%([\w$.]+): (!tt\.(?:ptr|tensordesc)<(?:[^<>]|<[^<>]*>)*>|[a-z]\w*)")

# The element types of tensor maps as Triton numbers them.
_ELEMENTS = ("u8", "u16", "u32", "i32", "u64", "i64", "fp16", "fp32", "fp32-ftz", "fp64", "bf16", "tf32", "tf32-ftz")
_SWIZZLES = ("none", "32", "64", "128")


class TritonKernel:
    """A kernel of Triton's, called as Triton calls it: ``kernel[grid](*args)``; a grid is in programs.

    `kernel` is podium's, for everything else: ``kernel.load()``, ``kernel.run``. The size of a block and what else a
    launch has is known from Triton's metadata. Parameters that Triton folded into the code, those of type
    ``tl.constexpr`` and others that were 1, stand in the call as they do in Triton's, and their values have no effect.
    """

    def __init__(self, code: ObjectCode, descriptors: Mapping[int, Mapping[str, Any] | None]) -> None:
        import podium

        self.kernel = podium.kernel(code, contiguous=False)
        self._descriptors = dict(descriptors)
        self._nested = any("." in name for name in self.kernel.signature.names)
        self._ctas = code.metadata["num_ctas"]
        self._block = code.metadata["num_warps"] * code.target.warp_size

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.name

    @property
    def signature(self) -> Signature:
        """The types and names of its parameters, those of tensor descriptors and tuples one by one."""
        return self.kernel.signature

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        if callable(grid):
            function = grid
            launch = self.kernel[lambda arguments: self._scaled(function(arguments)), self._block]
        else:
            launch = self.kernel[self._scaled(grid), self._block]
        return _Nested(self, launch) if self._nested else launch

    def _scaled(self, grid: Any) -> tuple[Any, ...]:
        """Turn programs into blocks: a program has as many as Triton's num_ctas says."""
        sizes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        return (sizes[0] * self._ctas, *sizes[1:]) if self._ctas != 1 and sizes else sizes

    def leaves(self, args: Sequence[Any], keywords: dict[str, Any]) -> list[Any]:
        """Return the values that arguments stand for, tuples and tensor descriptors one by one; take named ones out."""
        names = list(dict.fromkeys(name.partition(".")[0] for name in self.signature.names))
        ordered = [*args, *(keywords.pop(name) for name in names[len(args) :] if name in keywords)]
        result: list[Any] = []
        for position, value in enumerate(ordered):
            if position in self._descriptors:
                result += _describe(value, self._descriptors[position])
            else:
                result += _flatten(value)
        return result

    def __repr__(self) -> str:
        return f"<Triton kernel {self.name}>"


class _Nested:
    """A launch whose arguments have tuples or tensor descriptors among them."""

    def __init__(self, kernel: TritonKernel, launch: Callable[..., None]) -> None:
        self._kernel, self._launch = kernel, launch

    def __call__(self, *args: Any, **keywords: Any) -> None:
        values = self._kernel.leaves(args, keywords)  # before the rest of the keywords are passed on
        self._launch(*values, **keywords)


def triton_kernel(compiled: Any, *, signature: Any = None) -> TritonKernel:
    """Take a kernel that Triton compiled for an NVIDIA GPU.

    `compiled` is what ``triton.compile(...)``, ``kernel.warmup(...)`` and ``kernel[grid](...)`` return; or the path of
    a ``.cubin`` in Triton's cache folder, with its ``.json`` beside it. The signature of the latter is read from the
    ``.ttir`` beside it, where folded parameters are gone and integers have signs; `signature` beats it.

    Raises `LoadError` for what is no such kernel, or whose parameters are not those of the signature.
    """
    if isinstance(compiled, (str, Path)):
        data, metadata, types, constants = _read_files(Path(compiled), signature)
    else:
        data, metadata, types, constants = _read_object(compiled, signature)
    name = str(metadata["name"])
    cubin = _cubin(data, name)
    described = metadata.get("tensordesc_meta") or ()
    leaves, descriptors = _parameters(types, constants, described)
    parameters = Signature.parse(leaves)
    found = cubin.kernel(name)
    if found is None:
        raise LoadError(
            f"The binary has no kernel {name!r}; it has: {', '.join(each.symbol for each in cubin.kernels)}"
        )
    hidden = len(found.parameters) - len(parameters.passed)
    sizes = tuple(each.type.size for each in parameters.passed)
    if not 0 <= hidden <= 2 or found.parameters != (*sizes, *(8,) * hidden):
        raise LoadError(
            f"{name}: the parameters of the binary have {list(found.parameters)} bytes, those of the signature "
            f"({parameters}) {list(sizes)}, and at most two pointers to scratch memory can follow",
            kernel=name,
        )
    code = ObjectCode(
        data,
        "cubin",
        Target("nvidia", str(_arch(cubin, metadata)), int(metadata.get("warp_size") or 32)),
        (Entry(name, parameters),),
        metadata=_metadata(metadata, hidden),
    )
    return TritonKernel(code, descriptors)


def _read_object(compiled: Any, signature: Any) -> tuple[bytes, dict[str, Any], dict[str, Any], dict[Any, Any]]:
    try:
        data, given = compiled.asm["cubin"], compiled.metadata
        source = compiled.src
        own = dict(source.signature) if signature is None else {}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise LoadError(
            f"{type(compiled).__name__} is not a kernel that Triton compiled for an NVIDIA GPU: it has no cubin, "
            f"metadata and src. triton.compile(...), kernel.warmup(...) and kernel[grid](...) return one"
        ) from None
    metadata = dict(given) if isinstance(given, Mapping) else given._asdict()
    types = own if signature is None else _given(signature)
    constants = dict(getattr(source, "constants", None) or {}) if signature is None else {}
    names = getattr(getattr(source, "fn", None), "arg_names", None) or []
    named = {_parameter_name(key, names): kind for key, kind in types.items()}
    if signature is None and set(named) <= set(names):  # older versions leave out what is constexpr
        named = {name: named.get(name, "constexpr") for name in names}
    return bytes(data), metadata, named, constants


def _parameter_name(key: Any, names: Sequence[str]) -> str:
    """Return the name of a parameter; some sources only number them."""
    if isinstance(key, str):
        return key
    return names[key] if key < len(names) else f"arg{key}"


def _read_files(path: Path, signature: Any) -> tuple[bytes, dict[str, Any], dict[str, Any], dict[Any, Any]]:
    try:
        data = path.with_suffix(".cubin").read_bytes()
        metadata = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        metadata["name"]  # what is beside it may be anything
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LoadError(f"{path}: a kernel in Triton's cache is a .cubin with a .json beside it: {error}") from None
    if signature is not None:
        return data, metadata, _given(signature), {}
    text = path.with_suffix(".ttir")
    if not text.exists():
        raise LoadError(f"{path}: without {text.name} beside it, the types of the parameters are not known: signature=")
    return data, metadata, _types_of_text(text.read_text(encoding="utf-8"), metadata["name"], text), {}


def _given(signature: Any) -> dict[str, Any]:
    parsed = Signature.parse(signature)
    return {each.name: each.type.spelling for each in parsed}


def _types_of_text(text: str, name: str, path: Path) -> dict[str, Any]:
    """Read the parameters of a function in Triton's own language."""
    match = next((each for each in _FUNCTION.finditer(text) if each[1] == name), None)
    if match is None:
        raise SourceError(f"{path}: there is no function {name}; give the types of the parameters yourself: signature=")
    types = {}
    for argument, kind in _ARGUMENT.findall(match[2]):
        pointee = re.fullmatch(r"!tt\.ptr<(\w+).*>", kind)
        element = pointee[1] if pointee else kind
        spelling = ("*" if pointee else "") + _MLIR_TYPES.get(element, element)
        types[argument.replace("$", "_")] = _TENSOR_MAP if kind.startswith("!tt.tensordesc") else spelling
    return types


def _parameters(
    types: Mapping[str, Any], constants: Mapping[Any, Any], described: Any
) -> tuple[dict[str, Any], dict[int, Mapping[str, Any] | None]]:
    """Return the signature as podium spells it, and what is known of the tensor descriptors, by position."""
    folded = {_path(key, list(types)) for key in constants}
    result: dict[str, Any] = {}
    descriptors: dict[int, Mapping[str, Any] | None] = {}
    for position, (name, kind) in enumerate(types.items()):
        match = _TENSOR_DESCRIPTOR.match(kind) if isinstance(kind, str) else None
        if match is None:
            result[name] = _leaf(kind, (position,), folded)
            continue
        about = described[len(descriptors)] if described else None
        descriptors[position] = about
        axes = match[2].count(",") + 1
        first = [_TENSOR_MAP] if about is not None else [f"*{match[1]}", *["i64"] * (2 * axes), "i1"]
        result[name] = (*first, *["i32"] * axes, *["i64"] * axes)
    return result, descriptors


def _path(key: Any, names: list[str]) -> tuple[int, ...]:
    """Return the index path of a constant, which may be named."""
    if isinstance(key, str):
        return (names.index(key),)
    return tuple(key) if isinstance(key, (tuple, list)) else (int(key),)


def _leaf(kind: Any, path: tuple[int, ...], folded: set[tuple[int, ...]]) -> Any:
    if any(path[: len(each)] == each for each in folded) and not isinstance(kind, (tuple, list)):
        return "constexpr"
    if isinstance(kind, (tuple, list)):
        return tuple(_leaf(each, (*path, index), folded) for index, each in enumerate(kind))
    return {"nvTmaDesc": _TENSOR_MAP, "f32": "fp32", "u1": "i1"}.get(kind, kind)


def _cubin(data: bytes, name: str) -> Cubin:
    try:
        return Cubin(data)
    except ValueError as error:
        raise LoadError(f"{name}: {error}", kernel=name) from None


def _arch(cubin: Cubin, metadata: Mapping[str, Any]) -> Arch:
    arch = cubin.arch
    return Arch(arch.number, arch.letter or ("a" if arch.number >= _FIRST_WITH_LETTER else ""))


def _metadata(metadata: Mapping[str, Any], hidden: int) -> dict[str, Any]:
    """Return what a launch needs of Triton's metadata; scratch pointers are those that the binary has."""
    kept = {
        "num_warps": int(metadata["num_warps"]),
        "num_ctas": int(metadata.get("num_ctas") or 1),
        "shared": int(metadata.get("shared") or 0),
        "cooperative": bool(metadata.get("launch_cooperative_grid")),
        "dependent": bool(metadata.get("launch_pdl")),
        "block": None,
    }
    for which in ("global", "profile")[:hidden]:
        kept[f"{which}_scratch_size"] = int(metadata.get(f"{which}_scratch_size") or 0)
        kept[f"{which}_scratch_align"] = int(metadata.get(f"{which}_scratch_align") or 1)
    return kept


def _flatten(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _flatten(each)
    else:
        yield value


def _describe(value: Any, about: Mapping[str, Any] | None) -> Iterator[Any]:
    """Give what a tensor descriptor of Triton's stands for: a tensor map or the array itself, sizes and strides."""
    shape, strides = tuple(value.shape), tuple(value.strides)
    if about is None:
        yield from (value.base, *shape, *strides, getattr(value, "padding", "zero") == "nan")
    else:
        yield _tensor_map(value, shape, strides, about)
    yield from (*shape, *strides)


def _tensor_map(value: Any, shape: tuple[int, ...], strides: tuple[int, ...], about: Mapping[str, Any]) -> Any:
    from podium_nvidia.tma import tensor_map

    if about.get("fp4_padded"):
        raise LoadError("Tensor descriptors of padded elements of four bits cannot be passed")
    view = _View(value.base, shape, strides, int(about["elem_size"]))
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
