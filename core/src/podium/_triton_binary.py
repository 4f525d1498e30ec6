"""What Triton compiled, at hand as an object or as files in its cache folder: read without Triton."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from podium._object_code import ObjectCode
from podium._program import Entry
from podium._record import record
from podium._signature import Signature, Type
from podium._target import Target
from podium.errors import LoadError, SignatureError, SourceError

__all__ = ["TritonBinary"]

_TENSOR_DESCRIPTOR = re.compile(r"tensordesc<([^\[>]*)\[([^\]]*)\]")

# What the names of element types in Triton's own language are in signatures.
_MLIR_TYPES = {"f16": "fp16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5"}
_FUNCTION = re.compile(r"tt\.func public @([\w$.]+)\((.*?)\) attributes", re.DOTALL)
_ARGUMENT = re.compile(r"%([\w$.]+): (!tt\.(?:ptr|tensordesc)<(?:[^<>]|<[^<>]*>)*>|[a-z]\w*)")

# What Triton writes in signatures where podium writes something else.
_SPELLINGS = {"f32": "fp32", "u1": "i1"}

_Types = dict[str, Any]


@record(frozen=True)
class TritonBinary:
    """What Triton compiled: the bytes, and what its metadata and its signature say of the kernel in them.

    `format` is what Triton calls the bytes, as "cubin"; `metadata` is Triton's. In `signature` tuples and tensor
    descriptors are taken apart, and folded parameters are constexpr. `descriptors` has the positions of parameters that
    are tensor descriptors, each with what Triton says of the one that the device's own is made of, or None where the
    kernel takes the array itself.
    """

    data: bytes
    format: str
    name: str
    metadata: Mapping[str, Any]
    signature: Signature
    descriptors: Mapping[int, Mapping[str, Any] | None]

    @classmethod
    def read(
        cls,
        compiled: Any,
        *,
        format: str,
        device: str,
        signature: Any = None,
        descriptor: str | None = None,
        spellings: Mapping[str, str] = MappingProxyType({}),
    ) -> TritonBinary:
        """Read what ``triton.compile(...)`` and the like return, or a file in Triton's cache with its .json beside it.

        `device` is what messages call the devices, as in "an NVIDIA GPU"; `descriptor` is the type of the tensor
        descriptors that the devices themselves have, such as "opaque[128,64]", or None if they have none; `spellings`
        are types that Triton has for these devices alone. The signature of a file is read from the ``.ttir`` beside it;
        `signature` beats both. Raises `LoadError`, and `SourceError` for a ``.ttir`` that does not tell the types.
        """
        reader = _Reader(format, device, descriptor, {**_SPELLINGS, **spellings})
        if isinstance(compiled, (str, Path)):
            data, metadata, types, constants = reader.files(Path(compiled), signature)
        else:
            data, metadata, types, constants = reader.object(compiled, signature)
        name = str(_of_metadata(metadata, "name", str))
        _of_metadata(metadata, "num_warps", int)
        leaves, descriptors = reader.parameters(types, constants, metadata, name)
        return cls(data, format, name, metadata, Signature.parse(leaves), descriptors)

    def object_code(self, target: Target, hidden: int) -> ObjectCode:
        """Return it as object code, with what a launch needs of the metadata.

        `hidden` is the number of parameters that the binary has beyond the signature, at most two: pointers to scratch
        memory, of which the first is for the kernel and the second for a profiler.
        """
        metadata = self.metadata
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
        return ObjectCode(self.data, self.format, target, (Entry(self.name, self.signature),), metadata=kept)


class _Reader:
    """Reads what Triton made for one kind of device."""

    def __init__(self, format: str, device: str, descriptor: str | None, spellings: Mapping[str, str]) -> None:
        self._format, self._device, self._descriptor, self._spellings = format, device, descriptor, spellings

    def object(self, compiled: Any, signature: Any) -> tuple[bytes, dict[str, Any], _Types, dict[Any, Any]]:
        """Return bytes, metadata, types by parameter and constants of what Triton's compiler returned."""
        try:
            data, given = compiled.asm[self._format], compiled.metadata
            source = compiled.src
            own = dict(source.signature) if signature is None else {}
        except (AttributeError, KeyError, TypeError, ValueError):
            raise LoadError(
                f"{type(compiled).__name__} is not a kernel that Triton compiled for {self._device}: it has no "
                f"{self._format}, metadata and src. triton.compile(...), kernel.warmup(...) and kernel[grid](...) "
                f"return one"
            ) from None
        metadata = dict(given) if isinstance(given, Mapping) else given._asdict()
        types = own if signature is None else _given(signature)
        constants = dict(getattr(source, "constants", None) or {}) if signature is None else {}
        names = getattr(getattr(source, "fn", None), "arg_names", None) or []
        named = {_parameter_name(key, names): kind for key, kind in types.items()}
        if signature is None and set(named) <= set(names):  # older versions leave out what is constexpr
            named = {name: named.get(name, "constexpr") for name in names}
        return bytes(data), metadata, named, constants

    def files(self, path: Path, signature: Any) -> tuple[bytes, dict[str, Any], _Types, dict[Any, Any]]:
        """Return the same of files in Triton's cache."""
        try:
            data = path.with_suffix(f".{self._format}").read_bytes()
            metadata = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            metadata["name"]  # what is beside it may be anything
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LoadError(
                f"{path}: a kernel in Triton's cache is a .{self._format} with a .json beside it: {error}"
            ) from None
        if signature is not None:
            return data, metadata, _given(signature), {}
        text = path.with_suffix(".ttir")
        if not text.exists():
            raise LoadError(
                f"{path}: without {text.name} beside it, the types of the parameters are not known: signature="
            )
        return data, metadata, self._types_of_text(text.read_text(encoding="utf-8"), metadata["name"], text), {}

    def _types_of_text(self, text: str, name: str, path: Path) -> _Types:
        """Read the parameters of a function in Triton's own language."""
        match = next((each for each in _FUNCTION.finditer(text) if each[1] == name), None)
        if match is None:
            raise SourceError(
                f"{path}: there is no function {name}; give the types of the parameters yourself: signature="
            )
        types = {}
        for argument, kind in _ARGUMENT.findall(match[2]):
            pointee = re.fullmatch(r"!tt\.ptr<(!?[\w.]+).*>", kind)
            spelling = f"*{_pointee(pointee[1])}" if pointee else _MLIR_TYPES.get(kind, kind)
            if kind.startswith("!tt.tensordesc"):
                if self._descriptor is None:
                    raise SourceError(
                        f"{path}: {argument} is a tensor descriptor; give the types of the parameters: signature="
                    )
                spelling = self._descriptor
            types[argument.replace("$", "_")] = spelling
        return types

    def parameters(
        self, types: Mapping[str, Any], constants: Mapping[Any, Any], metadata: Mapping[str, Any], name: str
    ) -> tuple[dict[str, Any], dict[int, Mapping[str, Any] | None]]:
        """Return the signature as podium spells it, and what is known of the tensor descriptors, by position."""
        described = metadata.get("tensordesc_meta") or ()
        if self._descriptor is None and any(each is not None for each in described):
            raise LoadError(
                f"{name}: its tensor descriptors are made by hardware, which podium does not do for {self._device}",
                kernel=name,
            )
        folded = {_path(key, list(types)) for key in constants}
        result: dict[str, Any] = {}
        descriptors: dict[int, Mapping[str, Any] | None] = {}
        for position, (parameter, kind) in enumerate(types.items()):
            match = _TENSOR_DESCRIPTOR.match(kind) if isinstance(kind, str) else None
            if match is None:
                result[parameter] = self._leaf(kind, (position,), folded)
                continue
            about = described[len(descriptors)] if described else None
            descriptors[position] = about
            axes = match[2].count(",") + 1
            first = [self._descriptor] if about is not None else [f"*{match[1]}", *["i64"] * (2 * axes), "i1"]
            result[parameter] = (*first, *["i32"] * axes, *["i64"] * axes)
        return result, descriptors

    def _leaf(self, kind: Any, path: tuple[int, ...], folded: set[tuple[int, ...]]) -> Any:
        if any(path[: len(each)] == each for each in folded) and not isinstance(kind, (tuple, list)):
            return "constexpr"
        if isinstance(kind, (tuple, list)):
            return tuple(self._leaf(each, (*path, index), folded) for index, each in enumerate(kind))
        return self._spellings.get(kind, kind)


def _of_metadata(metadata: Mapping[str, Any], key: str, kind: type) -> Any:
    """Return what a launch cannot do without. Raises `LoadError`."""
    try:
        return kind(metadata[key])
    except (KeyError, TypeError, ValueError):
        found = repr(metadata[key]) if key in metadata else "missing"
        raise LoadError(f"Triton's metadata of a kernel has {key}, and here it is {found}; compile it anew") from None


def _pointee(element: str) -> str:
    """Spell what a pointer leads to; void for a type that podium has no name for, since only an address is passed."""
    try:
        return Type.parse(f"*{_MLIR_TYPES.get(element, element)}").spelling[1:]
    except SignatureError:
        return "void"


def _given(signature: Any) -> _Types:
    parsed = Signature.parse(signature)
    return {each.name: each.type.spelling for each in parsed}


def _parameter_name(key: Any, names: Sequence[str]) -> str:
    """Return the name of a parameter; some sources only number them."""
    if isinstance(key, str):
        return key
    return names[key] if key < len(names) else f"arg{key}"


def _path(key: Any, names: list[str]) -> tuple[int, ...]:
    """Return the index path of a constant, which may be named."""
    if isinstance(key, str):
        return (names.index(key),)
    return tuple(key) if isinstance(key, (tuple, list)) else (int(key),)
