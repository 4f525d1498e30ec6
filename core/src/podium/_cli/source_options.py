"""The options that commands share which take a kernel's source, and the module that they lead to."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from podium._cli.failure import CommandError

if TYPE_CHECKING:
    from podium._module import Module

__all__ = ["add_source_arguments", "open_module"]

_OBJECT_CODE = b"podium object "


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file and how it is compiled."""
    parser.add_argument("file", metavar="FILE", type=Path, help="CUDA-dialect source, or object code of podium compile")
    parser.add_argument(
        "--define", "-D", metavar="NAME[=VALUE]", action="append", default=[], type=_define, help="define a macro"
    )
    parser.add_argument("--include", "-I", metavar="DIR", action="append", default=[], help="look for headers there")
    parser.add_argument(
        "--signature",
        metavar="TYPES",
        type=_signature,
        help="parameter types, such as '*fp32, n: i32', in place of those in the source",
    )
    parser.add_argument("--backend", metavar="NAME", help="the backend, in place of the one that podium chooses")


def open_module(options: argparse.Namespace, kernels: Iterable[str] = ()) -> Module:
    """Return the module of the file, for these kernels. Raises OSError or UnicodeDecodeError if it cannot be read.

    Compile options with object code are a `CommandError`.
    """
    from podium._module import Module
    from podium._object_code import ObjectCode

    with options.file.open("rb") as file:
        if file.read(len(_OBJECT_CODE)) == _OBJECT_CODE:
            if options.define or options.include:
                raise CommandError(f"{options.file} is compiled already: --define and --include do nothing", status=2)
            return Module(ObjectCode.from_file(options.file))
    wanted = dict.fromkeys(kernels, options.signature)
    return Module(options.file, kernels=wanted, defines=dict(options.define), include_dirs=options.include)


def _define(text: str) -> tuple[str, str | None]:
    from podium._program import Options

    name, equals, value = text.partition("=")
    pair = (name, value if equals else None)
    try:
        Options.of(defines=dict([pair]))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return pair


def _signature(text: str) -> str:
    from podium._signature import Signature
    from podium.errors import SignatureError

    try:
        Signature.parse(text)
    except SignatureError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
