"""Whether the parameters of a compiled kernel are those of its signature: number, places, sizes, pointers."""

from __future__ import annotations

from podium.backend import Entry

from podium_amd.code_object import CodeObjectKernel

__all__ = ["mismatch"]

_ADDRESS = 8  # bytes of a pointer


def mismatch(kernel: CodeObjectKernel, entry: Entry, hidden: int = 0) -> str | None:
    """Compare a kernel's parameters with its signature, followed by `hidden` pointers; say what differs, or None.

    Whether a value is an int or a float, the code does not tell.
    """
    wanted = [
        (f"parameter {each.name!r}", str(each.type), each.type.size, each.type.alignment, each.type.kind == "pointer")
        for each in entry.signature.passed
    ]
    wanted += [("a pointer to scratch memory", "*i8", _ADDRESS, _ADDRESS, True)] * hidden
    found = kernel.parameters
    if len(wanted) != len(found):
        return f"kernel {entry.name!r}: its signature has {len(wanted)} parameters, the code has {len(found)}"
    end = 0
    for number, ((name, spelling, size, alignment, is_pointer), parameter) in enumerate(zip(wanted, found), 1):
        offset = -(-end // alignment) * alignment
        what = f"kernel {entry.name!r}, {name} (number {number}): the signature says {spelling}"
        if parameter.size != size:
            return f"{what} of {size} bytes, the code has {parameter.size} bytes"
        if parameter.is_pointer != is_pointer:
            return f"{what}, the code has {'a pointer' if parameter.is_pointer else 'a value that is no pointer'}"
        if parameter.offset != offset:
            return f"{what} at byte {offset}, the code has it at byte {parameter.offset}: is it aligned otherwise?"
        end = offset + size
    if kernel.parameter_bytes < end:
        return f"kernel {entry.name!r}: the code has {kernel.parameter_bytes} bytes for parameters, which take {end}"
    return None
