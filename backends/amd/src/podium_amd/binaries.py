"""What other compilers made, as object code: code objects and bundles from files or bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from podium.backend import Entry, ObjectCode, Signature, Target, is_whole
from podium.errors import LoadError
from podium.parts import find_symbols, read_binary

from podium_amd.arch import Arch, warp_size_of
from podium_amd.code_object import CodeObject, is_bundle, is_code_object
from podium_amd.parameters import mismatch

__all__ = ["object_code", "target_of"]


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
    data, label = read_binary(source)
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
