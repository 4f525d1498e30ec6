"""Whether the parameters of compiled kernels are those of their signatures."""

from __future__ import annotations

from collections.abc import Mapping

from podium.backend import Program
from podium.errors import CompileError

from podium_nvidia.cubin import Cubin

__all__ = ["check_parameters"]


def check_parameters(code: bytes, program: Program, symbols: Mapping[str, str]) -> None:
    """Compare number, sizes and offsets of parameters with the signatures. Raises `CompileError`."""
    cubin = Cubin(code)
    kernels = {each.symbol: each for each in cubin.kernels}
    for entry in program.entries:
        kernel = kernels.get(symbols[entry.name])
        if kernel is None:
            continue
        passed, found = entry.signature.passed, kernel.parameters
        if len(passed) != len(found):
            raise _error(
                program, f"kernel {entry.name!r}: its signature has {len(passed)} parameters, the code has {len(found)}"
            )
        end, placed = 0, True
        for number, (parameter, (offset, size)) in enumerate(zip(passed, found), 1):
            kind = parameter.type
            expected = -(-end // kind.alignment) * kind.alignment
            end = expected + kind.size
            # A larger alignment counts from where the device has its constants, which differs between architectures.
            placed = placed and kind.alignment <= 16
            if size != kind.size or (placed and offset != expected):
                where = "" if not placed or offset == expected else f" at {offset} instead of {expected}"
                raise _error(
                    program,
                    f"kernel {entry.name!r}, parameter {parameter.name!r} (number {number}): the signature says {kind} "
                    f"of {kind.size} bytes, the code has {size} bytes{where}",
                )


def _error(program: Program, message: str) -> CompileError:
    return CompileError(f"{program.label}: {message}", program=program.label)
