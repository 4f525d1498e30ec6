"""Constants and tuples as compilers hand them over: folded parameters are marked, tuples become their members."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from podium._arguments import describe
from podium._signature import Signature
from podium.errors import ArgumentCountError, SignatureError

__all__ = ["Nesting", "flatten", "fold_constants", "nesting"]

Nesting = tuple[Any, ...]
"""The tuple structure of a signature: for each parameter None, or again a structure."""


def fold_constants(signature: Signature, constants: Mapping[Any, Any]) -> Signature:
    """Mark the parameters that constants name as ``constexpr``.

    A key is a name, a position, or an index path such as ``(1, 0)``; of a tuple it means all members.
    Raises `SignatureError` for a key that names nothing.
    """
    if not constants:
        return signature
    paths = _index_paths(signature)
    folded = {path for key in constants for path in _normalise(key, signature, paths)}
    return Signature.parse(
        {parameter.name: "constexpr" if path in folded else parameter.type for path, parameter in zip(paths, signature)}
    )


def nesting(signature: Any) -> Nesting | None:
    """Return the tuple structure of what a compiler gave as signature; None if there are no tuples in it."""
    if isinstance(signature, (str, Signature)):
        return None
    types = signature.values() if isinstance(signature, Mapping) else signature
    structure = tuple(_structure(each) for each in types)
    return structure if any(each is not None for each in structure) else None


def flatten(kernel: str, structure: Nesting, values: Iterable[Any]) -> Iterator[Any]:
    """Yield the leaves of arguments that are nested as the structure says. Raises `ArgumentCountError`."""
    missing = object()
    for inner, value in itertools.zip_longest(structure, values, fillvalue=missing):
        if value is missing:  # too few: what is there goes on, and the count is reported with the names
            return
        if inner is None or inner is missing:
            yield value
        elif isinstance(value, (tuple, list)) and isinstance(inner, tuple) and len(value) == len(inner):
            yield from flatten(kernel, inner, value)
        else:
            size = len(inner) if isinstance(inner, tuple) else 0
            raise ArgumentCountError(
                f"{kernel}: a tuple of {size} values is needed, got {describe(value)}", kernel=kernel
            )


def _index_paths(signature: Signature) -> list[tuple[int, ...]]:
    """Give the index path of each parameter: (2,) for a plain one, (1, 0) for the first member of a tuple."""
    tops: dict[str, int] = {}
    paths = []
    for name in signature.names:
        top, *rest = name.split(".")
        paths.append((tops.setdefault(top, len(tops)), *map(int, rest)))
    return paths


def _normalise(key: Any, signature: Signature, paths: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    if isinstance(key, str):
        found = [path for path, name in zip(paths, signature.names) if name == key or name.startswith(f"{key}.")]
    else:
        prefix = tuple(key) if isinstance(key, (tuple, list)) else (key,)
        found = [path for path in paths if path[: len(prefix)] == prefix]
    if not found:
        raise SignatureError(f"The constant {key!r} is none of the parameters: {signature}")
    return found


def _structure(spelling: Any) -> Nesting | None:
    return tuple(map(_structure, spelling)) if isinstance(spelling, (tuple, list)) else None
