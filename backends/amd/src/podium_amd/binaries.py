"""What other compilers made, as object code: code objects and bundles from files or bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from podium.backend import Entry, ObjectCode, Signature, Target
from podium.errors import LoadError

from podium_amd.arch import Arch, warp_size_of
from podium_amd.code_object import CodeObject, is_bundle, is_code_object
from podium_amd.image import is_whole
from podium_amd.parameters import mismatch

__all__ = ["find_symbols", "object_code", "read", "target_of"]


def object_code(
    source: str | Path | bytes, kernels: Mapping[str, object], *, target: Target | str | None = None
) -> ObjectCode:
    """Take the bytes or the file of a code object, or of a bundle of them, as object code for ``podium.kernel``.

    `kernels` maps names of kernels to their signatures, since binaries do not tell types. A name is the symbol, or
    that of a function without templates, such as ``lib::saxpy``. `target`, such as "gfx942", is read from the binary;
    a bundle has several, and then it is the active device's.

    Raises `LoadError` if the bytes are something else, if a kernel is not in them, or if its parameters are not those
    that the signature says.
    """
    data, label = read(source)
    entries = tuple(Entry(name, Signature.parse(signature)) for name, signature in kernels.items())  # type: ignore[arg-type]
    if is_bundle(data):
        return ObjectCode(data, "bundle", target_of(target), entries)
    if not is_code_object(data):
        raise LoadError(f"{label} is neither a code object for AMD GPUs nor a bundle of them")
    try:
        if not is_whole(data):
            raise ValueError("it is cut short")
        code = CodeObject(data)
    except ValueError as error:
        raise LoadError(f"{label} cannot be read: {error}; make it again") from None
    symbols = find_symbols(entries, [each.symbol for each in code.kernels], label)
    warps = {each.wavefront_size for each in code.kernels}
    for entry in entries:
        kernel = code.kernel(symbols.get(entry.name, entry.name))
        wrong = mismatch(kernel, entry) if kernel is not None else None
        if wrong:
            raise LoadError(f"{label}: {wrong}", kernel=entry.name)
    if target is not None:
        return ObjectCode(data, "hsaco", target_of(target), entries, symbols)
    if code.arch is None:
        raise LoadError(f"{label} does not say what it was made for; give it, target='gfx942'")
    found = Target("amd", str(code.arch), warps.pop() if len(warps) == 1 else warp_size_of(code.arch))
    return ObjectCode(data, "hsaco", found, entries, symbols)


def read(source: str | Path | bytes) -> tuple[bytes, str]:
    """Return the bytes of a file, or bytes as they are, and what to call them. Raises `LoadError`."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), "The binary"
    try:
        return Path(source).read_bytes(), os.fspath(source)
    except OSError as error:
        raise LoadError(f"{os.fspath(source)} cannot be read: {error.strerror or error}") from None


def target_of(target: Target | str | None) -> Target:
    """Make a target from what users write, such as "gfx942"; None is the active device's. Raises ValueError."""
    if isinstance(target, Target):
        return target
    if target is None:
        import podium

        return podium.driver.get("amd").default_target()
    if target.startswith("amd:"):
        return Target.parse(target)
    arch = Arch.parse(target)
    return Target("amd", str(arch), warp_size_of(arch))


def find_symbols(entries: Iterable[Entry], symbols: Iterable[str], label: str) -> dict[str, str]:
    """Return the symbols of entries that are named as in C++. Raises `LoadError` for one that is not there."""
    known = list(symbols)
    found = {}
    for entry in entries:
        if entry.name in known:
            continue
        parts = entry.name.split("::")
        nested = "".join(f"{len(part)}{part}" for part in parts)
        beginning = f"_Z{nested}" if len(parts) == 1 else f"_ZN{nested}E"
        fitting = [each for each in known if each.startswith(beginning)]
        if len(fitting) != 1:
            names = ", ".join(known) or "none"
            raise LoadError(f"{label} has no kernel {entry.name!r}; it has: {names}", kernel=entry.name)
        found[entry.name] = fitting[0]
    return found
