"""``podium compile``: source in, object code or a vendor's binary out. Needs no device."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from podium._cli.console import Console
from podium._cli.failure import CommandError
from podium._cli.quantity import bytes_text
from podium._cli.source_options import add_source_arguments, open_module
from podium._program import Entry
from podium._target import Target
from podium.errors import PodiumError

if TYPE_CHECKING:
    from podium._module import Module
    from podium._object_code import ObjectCode
    from podium._program import Program
    from podium.backend import Driver

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    add_source_arguments(parser)
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        dest="kernels",
        action="append",
        default=[],
        help="a kernel, or a template with its arguments; all kernels that are no templates if left out",
    )
    parser.add_argument(
        "--target", metavar="BACKEND:ARCH:WARP", type=_target, help="what to compile for, such as nvidia:sm_90:32"
    )
    parser.add_argument(
        "--output", "-o", metavar="OUT", type=Path, help="the file to write; else FILE with another suffix"
    )
    parser.add_argument(
        "--emit",
        choices=("object", "binary"),
        default="object",
        help="podium's object code, which carries signatures and target (default), or the bare binary",
    )


def run(options: argparse.Namespace) -> int:
    """Compile and write the file; print its kernels, their signatures, the target and the size."""
    if options.target is not None and options.backend is not None:
        raise CommandError("give --target or --backend, not both", status=2)
    module = open_module(options)
    console = Console()
    if module.code is not None:
        raise CommandError(f"{options.file} is object code already, for {module.code.target}", status=2)
    driver = _driver(options)
    program = _program(module, options)
    target = options.target or _default_target(driver)
    with console.progress(f"Compiling {options.file} for {target}"):
        code = _compile(driver, program, target)
    data = code.to_bytes() if options.emit == "object" else code.code
    suffix = ".podium" if options.emit == "object" else f".{code.format}"
    output: Path = options.output or options.file.with_suffix(suffix)
    if output.exists() and output.samefile(options.file):
        raise CommandError(f"{output} is the source itself; give another name with -o", status=2)
    output.write_bytes(data)
    for entry in code.entries:
        symbol = code.symbol(entry.name)
        renamed = f", symbol {symbol}" if symbol != entry.name else ""
        console.line(f"kernel: {entry.name}({entry.signature}){renamed}")
    for variable in code.variables:
        console.line(f"variable: {variable}")
    console.line(f"target: {code.target}")
    console.line(f"format: {code.format}, {bytes_text(len(code.code))}")
    if code.log.strip():
        console.line(f"the compiler said: {code.log.strip()}")
    console.line(f"wrote {output}, {bytes_text(len(data))}")
    return 0


def _driver(options: argparse.Namespace) -> Driver:
    from podium._active import driver_config

    name = options.target.backend if options.target is not None else options.backend
    # One that is named need not be able to run here.
    return driver_config.get(name) if name is not None else driver_config.resolve()


def _default_target(driver: Driver) -> Target:
    """Return the target for what is here. Raises `CommandError` where only a device could tell, and there is none."""
    try:
        return driver.default_target()
    except PodiumError as error:
        raise CommandError(
            f"{driver.inactive_reason() or error}. To compile without a device, name what for: "
            f"--target {driver.name}:ARCH:WARP in place of --backend"
        ) from error


def _program(module: Module, options: argparse.Namespace) -> Program:
    """Put all kernels that are wanted into one program."""
    names = options.kernels or _plain_names(module, options)
    if options.signature is not None and len(names) != 1:
        raise CommandError(f"--signature is that of one kernel; choose it with --kernel: {', '.join(names)}", status=2)
    module = open_module(options, names)
    found = [module.kernel(name, signature=options.signature).declaration for name in names]
    if any(each.program.source != found[0].program.source for each in found):
        raise CommandError(f"{', '.join(names)} cannot be in one program; compile them one by one with --kernel")
    return replace(found[0].program, entries=tuple(Entry(each.name, each.signature) for each in found))


def _plain_names(module: Module, options: argparse.Namespace) -> list[str]:
    """Name the kernels that are no templates; a template says nothing of which of its instances are wanted."""
    from podium._source import find_kernels

    found = find_kernels(module.source, defines=module.options.defines)
    names = [kernel.name for kernel in found if not kernel.template_parameters]
    if names:
        return names
    if found:
        raise CommandError(
            f"All kernels in {options.file} are templates: {', '.join(kernel.name for kernel in found)}. "
            f"Choose an instance, such as --kernel '{found[0].name}<...>'",
            status=2,
        )
    raise CommandError(f"There is no kernel in {options.file}: a kernel is declared with __global__")


def _compile(driver: Driver, program: Program, target: Target) -> ObjectCode:
    from podium._compile import compile_program

    return compile_program(driver, program, target)


def _target(text: str) -> Target:
    try:
        return Target.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
