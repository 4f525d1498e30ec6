"""The command line ``podium``: which commands there are, and how their errors and ends are told.

A command is a module with `add_arguments(parser)` and `run(options) -> int`; it is imported when it is asked for.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from types import ModuleType
from typing import TextIO

from podium._version import __version__

__all__ = ["main"]

_COMMANDS = {
    "doctor": "show the backends, devices, compilers and the cache, and what to do about what is wrong",
    "demo": "run two kernels on the device that podium chooses, check and time them",
    "bench": "measure what launches, start and copies cost on this machine",
    "run": "compile a kernel from a file, launch it, and print or save what it wrote",
    "compile": "compile a file without a device, and write the code to a file",
    "cache": "list, describe or clear the disk cache",
    "new-backend": "write a distribution for a backend of your own, to be filled in",
}

# argparse would take these for options; they are values of --arg.
_NEGATIVE = re.compile(r"-(?:[\d.]|inf|nan)", re.IGNORECASE)

INTERRUPTED = 130
BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 is success, 1 a failure that was told on standard error, 2 a wrong use of the command line, 130 an interrupt by
    the user, 141 a reader of the output that went away.
    """
    arguments = _joined(sys.argv[1:] if argv is None else argv)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the process was started with it closed
            nowhere = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, open(nowhere, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - it stays
    _accept_all_characters(sys.stdout)
    _accept_all_characters(sys.stderr)
    try:
        try:
            status = _run(arguments)
        except SystemExit as end:  # argparse ends this way: after --help, and after telling a wrong use
            status = end.code if isinstance(end.code, int) else 1
        sys.stdout.flush()
        return status
    except KeyboardInterrupt as interrupt:
        print(" ".join(["\npodium: interrupted", *map(str, interrupt.args)]), file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter would flush at exit and complain then.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _run(arguments: Sequence[str]) -> int:
    parser = _parser(arguments)
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    from podium._cli.failure import CommandError
    from podium.errors import PodiumError, PodiumWarning

    with _plain_warnings(PodiumWarning):
        try:
            return int(_module(options.command).run(options))
        except BrokenPipeError:
            raise
        except (PodiumError, PodiumWarning, CommandError, OSError, UnicodeDecodeError) as error:
            if getattr(options, "traceback", False) or _debugging():
                raise
            from podium._cli.failure import explain

            print(f"podium {options.command}: {explain(error)}", file=sys.stderr)
            return error.status if isinstance(error, CommandError) else 1


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--traceback", action="store_true", default=argparse.SUPPRESS, help="show the Python traceback of an error"
    )
    parser = argparse.ArgumentParser(
        prog="podium", description="Launch GPU kernels from Python, on any backend.", parents=[common]
    )
    parser.add_argument("--version", action="version", version=f"podium {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, summary in _COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", parents=[common]
        )
        if name in arguments:
            _module(name).add_arguments(command)
    return parser


def _module(command: str) -> ModuleType:
    return import_module(f"podium._cli.{command.replace('-', '_')}")


def _joined(arguments: Sequence[str]) -> list[str]:
    """Join ``--arg -1e5`` into one word."""
    joined: list[str] = []
    for word in arguments:
        if joined and joined[-1] == "--arg" and _NEGATIVE.match(word):
            joined[-1] = f"--arg={word}"
        else:
            joined.append(word)
    return joined


def _accept_all_characters(stream: TextIO) -> None:
    """Let a stream write every character: a name of a device must not end a command on a terminal that lacks it."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None and getattr(stream, "errors", None) == "strict":
        reconfigure(errors="backslashreplace")


def _debugging() -> bool:
    from podium import _settings
    from podium.errors import SettingError

    try:
        return _settings.debug()
    except SettingError:
        return False


@contextmanager
def _plain_warnings(ours: type[Warning]) -> Iterator[None]:
    """Show warnings of one category as plain lines, without the place in podium's code that they come from."""
    import warnings

    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, ours):
                print(f"podium: warning: {message}", file=sys.stderr)
            else:
                others(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield
