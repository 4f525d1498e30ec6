"""What the toolkit's tools make, as object code: cubins, PTX and fat binaries from files or bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from podium.backend import Entry, ObjectCode, Signature, Target
from podium.errors import LoadError
from podium.parts import find_symbols, read_binary

from podium_nvidia.arch import WARP_SIZE, Arch
from podium_nvidia.cubin import Cubin, is_cubin
from podium_nvidia.cubin_check import flaw
from podium_nvidia.image import is_whole
from podium_nvidia.parameters import mismatch

__all__ = ["kind_of", "object_code", "ptx_arch", "ptx_kernels", "target_of"]

_MAGICS = {b"\xed\x43\x4e\x7f": "ltoir", b"\x50\xed\x55\xba": "fatbin", b"!<ar": "library"}

_PTX = re.compile(rb"(?m)^\s*\.version\s+\d")
_PTX_TARGET = re.compile(rb"(?m)^\s*\.target\s+sm_(\d+)([af]?)")
_PTX_ENTRY = re.compile(rb"\.entry\s+([A-Za-z_$%][\w$]*)")


def object_code(
    source: str | Path | bytes, kernels: Mapping[str, object], *, target: Target | str | None = None
) -> ObjectCode:
    """Take the bytes or the file of a cubin, of PTX or of a fat binary as object code for ``podium.kernel``.

    `kernels` maps names of kernels to their signatures, since binaries do not tell types. A name is the symbol, or
    that of a function without templates, such as ``lib::saxpy``. `target`, such as "sm_90", is read from the binary
    where it has one; a fat binary has several, and then it is the active device's.

    Raises `LoadError` if the bytes are something else, if a kernel is not in them, or if its parameters have other
    sizes than the signature says. What is to be linked first, see `podium_nvidia.link`.
    """
    data, label = read_binary(source)
    kind = kind_of(data)
    entries = tuple(Entry(name, Signature.parse(signature)) for name, signature in kernels.items())  # type: ignore[arg-type]
    if kind == "cubin":
        try:
            if not is_whole(data):
                raise ValueError("the cubin is damaged: it is cut short")
            cubin, damage = Cubin(data), flaw(data)
            if damage is not None:
                raise ValueError(f"the cubin is damaged: {damage}")
        except ValueError as error:
            raise LoadError(f"{label} cannot be read: {error}; make it again") from None
        found = Target("nvidia", str(cubin.arch), WARP_SIZE)
        symbols = find_symbols(entries, [each.symbol for each in cubin.kernels], label)
        _check_parameters(cubin, entries, symbols, label)
    elif kind == "ptx":
        found = Target("nvidia", str(ptx_arch(data)), WARP_SIZE)
        symbols = find_symbols(entries, ptx_kernels(data), label)
    elif kind == "fatbin":
        found, symbols = target_of(target), {}
    elif kind in ("object", "ltoir", "library", "host object"):
        raise LoadError(f"{label} is to be linked before it can be loaded: podium_nvidia.link([...])")
    else:
        raise LoadError(f"{label} is neither a cubin, nor PTX, nor a fat binary")
    return ObjectCode(data, kind, target_of(target) if target is not None else found, entries, symbols)


def kind_of(data: bytes) -> str | None:
    """Tell what bytes are: "cubin", "object" (a cubin to be linked), "ptx", "fatbin", "ltoir", "library", or None.

    A "host object" is a file of the host's compiler, which nvcc puts code for GPUs into.
    """
    if is_cubin(data):
        return "object" if data[16] == 1 else "cubin"
    if data[:4] == b"\x7fELF":
        return "host object"
    if data[:4] in _MAGICS:
        return _MAGICS[data[:4]]
    return "ptx" if _PTX.search(data[:4096]) else None


def ptx_arch(data: bytes) -> Arch:
    """Return the architecture that PTX is for. Raises `LoadError` if it does not say so."""
    match = _PTX_TARGET.search(data)
    if match is None:
        raise LoadError("The PTX has no line .target")
    return Arch(int(match[1]), match[2].decode(), "compute")


def ptx_kernels(data: bytes) -> list[str]:
    """Return the symbols of the kernels in PTX."""
    return [match[1].decode() for match in _PTX_ENTRY.finditer(data)]


def target_of(target: Target | str | None) -> Target:
    """Make a target from what users write, such as "sm_90"; None is the active device's. Raises ValueError."""
    if isinstance(target, Target):
        return target
    if target is None:
        import podium

        return podium.driver.get("nvidia").default_target()
    return Target.parse(target) if ":" in target else Target("nvidia", str(Arch.parse(target)), WARP_SIZE)


def _check_parameters(cubin: Cubin, entries: Iterable[Entry], symbols: Mapping[str, str], label: str) -> None:
    """Compare the parameters in a cubin with signatures. Raises `LoadError`."""
    for entry in entries:
        wrong = mismatch(cubin, entry, symbols.get(entry.name, entry.name))
        if wrong:
            raise LoadError(f"{label}: {wrong}", kernel=entry.name)
