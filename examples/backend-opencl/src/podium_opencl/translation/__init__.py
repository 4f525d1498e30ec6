"""The kernel language, a dialect of C++, translated to OpenCL C 1.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.backend import Program
from podium.errors import CompileError, Diagnostic

from podium_opencl.translation.body import MOST_EXCHANGING
from podium_opencl.translation.parser import parse
from podium_opencl.translation.preprocessor import preprocess
from podium_opencl.translation.refusal import Place, Refusal
from podium_opencl.translation.whole import TranslationUnit

if TYPE_CHECKING:
    from podium_opencl.facts import DeviceFacts

__all__ = ["KernelTranslation", "Translation", "VariablePlace", "translate"]

_STANDARDS = {"11": "201103L", "14": "201402L", "17": "201703L", "20": "202002L", "23": "202302L"}


@dataclass(frozen=True)
class KernelTranslation:
    """A kernel of the output.

    `symbol` is its name there; `uses_variables` and `dynamic_shared` tell whether parameters for the variables and for
    dynamic shared memory stand behind the user's; `max_threads` is that of a block, None if only the device knows it.
    """

    symbol: str
    dynamic_shared: bool
    uses_variables: bool
    max_threads: int | None = None


@dataclass(frozen=True)
class VariablePlace:
    """Where a variable lies in the block that has them, and its size; in bytes."""

    offset: int
    size: int


@dataclass(frozen=True)
class Translation:
    """A program in OpenCL C.

    `variables_bytes` is the size of the block that has the variables, which the kernel named `initialiser` fills.
    """

    source: str
    kernels: Mapping[str, KernelTranslation]
    variables: Mapping[str, VariablePlace]
    variables_bytes: int
    initialiser: str | None
    build_options: tuple[str, ...]


def translate(program: Program, facts: DeviceFacts) -> Translation:
    """Translate a program in the kernel language for a device.

    Raises `CompileError` with the place for what is wrong and for what podium-opencl has not.
    """
    try:
        return _translated(program, facts)
    except Refusal as refusal:
        place = refusal.place or Place(program.label, 1)
        message = f"{place.file}:{place.line}:{place.column}: error: {refusal.reason}"
        raise CompileError(
            f"{program.label} does not compile for OpenCL: {message}",
            log=message + "\n",
            diagnostics=(Diagnostic(place.file, place.line, place.column, "error", refusal.reason),),
            program=program.label,
        ) from None
    except RecursionError:
        raise CompileError(
            f"{program.label} nests more deeply than podium-opencl can follow", program=program.label
        ) from None


def _translated(program: Program, facts: DeviceFacts) -> Translation:
    options = program.options
    standard = _STANDARDS.get(options.std.removeprefix("c++").removeprefix("gnu++"))
    if standard is None:
        raise Refusal(f"podium-opencl does not know the standard {options.std!r}")
    macros = [("__cplusplus", standard), ("__CUDACC__", "1"), ("__CUDA_ARCH__", "800"), *options.defines]
    text = preprocess(program.source, program.label, program.path, options.include_dirs, macros)
    unit = TranslationUnit(text, parse(text.text), facts.extensions, facts.warp_size)
    places = unit.lay_out([each.name for each in program.variables])
    kernels: dict[str, KernelTranslation] = {}
    for entry in program.entries:
        symbol, made, most = unit.kernel(entry.name)
        if "podium_exchange" in made.implicit:
            most = min(most or MOST_EXCHANGING, MOST_EXCHANGING)
        kernels[entry.name] = KernelTranslation(
            symbol, "podium_shared" in made.implicit, "podium_variables" in made.implicit, max_threads=most
        )
    initialiser = unit.initialiser()
    build_options = ["-cl-std=CL1.2"]
    build_options += ["-cl-fast-relaxed-math"] if options.fast_math else []
    build_options += ["-cl-opt-disable"] if options.debug else []
    for flag in options.flags:
        if any(each.isspace() for each in flag):
            raise Refusal(f"OpenCL's compilers take no option with a blank in it: {flag!r}")
        build_options.append(flag)
    return Translation(
        unit.output(),
        kernels,
        {name: VariablePlace(*place) for name, place in places.items()},
        unit.variables_bytes,
        initialiser,
        tuple(build_options),
    )
