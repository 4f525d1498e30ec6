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

from podium_amd.code_object import CodeObject
from podium_amd.parameters import mismatch

__all__ = ["TritonKernel", "triton_kernel"]

_TENSOR_DESCRIPTOR = re.compile(r"tensordesc<([^\[>]*)\[([^\]]*)\]")

# What the names of element types in Triton's own language are in signatures.
_MLIR_TYPES = {"f16": "fp16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5"}
_FUNCTION = re.compile(r"tt\.func public @([\w$.]+)\((.*?)\) attributes", re.DOTALL)
_ARGUMENT = re.compile(r"%([\w$.]+): (!tt\.(?:ptr|tensordesc)<(?:[^<>]|<[^<>]*>)*>|[a-z]\w*)")


class TritonKernel:
    """A kernel of Triton's, called as Triton calls it: ``kernel[grid](*args)``; a grid is in programs.

    `kernel` is podium's, for everything else: ``kernel.load()``, ``kernel.run``. The size of a block and what else a
    launch has is known from Triton's metadata. Parameters that Triton folded into the code, those of type
    ``tl.constexpr`` and others that were 1, stand in the call as they do in Triton's, and their values have no effect.
    """

    def __init__(self, code: ObjectCode, descriptors: Sequence[int]) -> None:
        import podium

        self.kernel = podium.kernel(code, contiguous=False)
        self._descriptors = frozenset(descriptors)
        self._nested = any("." in name for name in self.kernel.signature.names)
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
        launch = self.kernel[grid, self._block]
        return _Nested(self, launch) if self._nested else launch

    def leaves(self, args: Sequence[Any], keywords: dict[str, Any]) -> list[Any]:
        """Return the values that arguments stand for, tuples and tensor descriptors one by one; take named ones out."""
        names = list(dict.fromkeys(name.partition(".")[0] for name in self.signature.names))
        ordered = [*args, *(keywords.pop(name) for name in names[len(args) :] if name in keywords)]
        result: list[Any] = []
        for position, value in enumerate(ordered):
            if position in self._descriptors:
                result += _describe(value)
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
    """Take a kernel that Triton compiled for an AMD GPU.

    `compiled` is what ``triton.compile(...)``, ``kernel.warmup(...)`` and ``kernel[grid](...)`` return; or the path of
    a ``.hsaco`` in Triton's cache folder, with its ``.json`` beside it. The signature of the latter is read from the
    ``.ttir`` beside it, where folded parameters are gone and integers have signs; `signature` beats it.

    Raises `LoadError` for what is no such kernel, or whose parameters are not those of the signature.
    """
    if isinstance(compiled, (str, Path)):
        data, metadata, types, constants = _read_files(Path(compiled), signature)
    else:
        data, metadata, types, constants = _read_object(compiled, signature)
    name = str(metadata["name"])
    described = _code_object(data, name)
    leaves, descriptors = _parameters(types, constants, metadata, name)
    entry = Entry(name, Signature.parse(leaves))
    found = described.kernel(name)
    if found is None:
        known = ", ".join(each.symbol for each in described.kernels)
        raise LoadError(f"The binary has no kernel {name!r}; it has: {known}", kernel=name)
    hidden = len(found.parameters) - len(entry.signature.passed)
    wrong = mismatch(found, entry, hidden if 0 < hidden <= 2 else 0)
    if wrong is not None:
        raise LoadError(f"{wrong}; at most two pointers to scratch memory can follow", kernel=name)
    if int(metadata.get("num_ctas") or 1) != 1:
        raise LoadError(f"{name}: its programs are clusters of blocks, which podium-amd does not launch", kernel=name)
    code = ObjectCode(
        data,
        "hsaco",
        Target("amd", str(described.arch or _arch(metadata, name)), found.wavefront_size),
        (entry,),
        metadata=_metadata(metadata, hidden),
    )
    return TritonKernel(code, descriptors)


def _read_object(compiled: Any, signature: Any) -> tuple[bytes, dict[str, Any], dict[str, Any], dict[Any, Any]]:
    try:
        data, given = compiled.asm["hsaco"], compiled.metadata
        source = compiled.src
        own = dict(source.signature) if signature is None else {}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise LoadError(
            f"{type(compiled).__name__} is not a kernel that Triton compiled for an AMD GPU: it has no hsaco, "
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
        data = path.with_suffix(".hsaco").read_bytes()
        metadata = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        metadata["name"]  # what is beside it may be anything
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LoadError(f"{path}: a kernel in Triton's cache is a .hsaco with a .json beside it: {error}") from None
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
        if kind.startswith("!tt.tensordesc"):
            raise SourceError(
                f"{path}: {argument} is a tensor descriptor; give the types of the parameters: signature="
            )
        types[argument.replace("$", "_")] = spelling
    return types


def _parameters(
    types: Mapping[str, Any], constants: Mapping[Any, Any], metadata: Mapping[str, Any], name: str
) -> tuple[dict[str, Any], list[int]]:
    """Return the signature as podium spells it, and the positions of tensor descriptors, which stand for an array."""
    if any(each is not None for each in metadata.get("tensordesc_meta") or ()):
        raise LoadError(
            f"{name}: its tensor descriptors are made by hardware, which podium-amd does not do", kernel=name
        )
    folded = {_path(key, list(types)) for key in constants}
    result: dict[str, Any] = {}
    descriptors: list[int] = []
    for position, (parameter, kind) in enumerate(types.items()):
        match = _TENSOR_DESCRIPTOR.match(kind) if isinstance(kind, str) else None
        if match is None:
            result[parameter] = _leaf(kind, (position,), folded)
            continue
        descriptors.append(position)
        axes = match[2].count(",") + 1
        result[parameter] = (f"*{match[1]}", *["i64"] * (2 * axes), "i1", *["i32"] * axes, *["i64"] * axes)
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
    return {"f32": "fp32", "u1": "i1"}.get(kind, kind)


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


def _metadata(metadata: Mapping[str, Any], hidden: int) -> dict[str, Any]:
    """Return what a launch needs of Triton's metadata; scratch pointers are those that the binary has."""
    kept = {
        "num_warps": int(metadata["num_warps"]),
        "shared": int(metadata.get("shared") or 0),
        "cooperative": bool(metadata.get("launch_cooperative_grid")),
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


def _describe(value: Any) -> Iterator[Any]:
    """Give what a tensor descriptor of Triton's stands for: the array itself, sizes and strides."""
    shape, strides = tuple(value.shape), tuple(value.strides)
    yield from (value.base, *shape, *strides, getattr(value, "padding", "zero") == "nan", *shape, *strides)
