"""``podium run``: launch one kernel of a file with arguments from the command line."""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium._cli.argument import GRAMMAR, parse_argument
from podium._cli.console import Console
from podium._cli.elements import elements_text
from podium._cli.failure import CommandError, need_numpy
from podium._cli.quantity import duration_text
from podium._cli.source_options import add_source_arguments, open_module

if TYPE_CHECKING:
    from podium._kernel import Kernel
    from podium._memory import Array
    from podium.backend import Driver

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    add_source_arguments(parser)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = GRAMMAR
    parser.add_argument("--kernel", metavar="NAME", help="the kernel; can be left out if there is only one")
    parser.add_argument("--grid", metavar="X[,Y[,Z]]", type=_axes, default=(1,), help="blocks, such as 4 or 4,1,1")
    parser.add_argument("--block", metavar="X[,Y[,Z]]", type=_axes, default=(1,), help="threads in a block")
    parser.add_argument("--shared", metavar="BYTES", type=_count, default=0, help="dynamic shared memory of a block")
    parser.add_argument(
        "--arg",
        metavar="VALUE",
        dest="args",
        action="append",
        default=[],
        type=parse_argument,
        help="an argument, in order; the forms are below",
    )
    parser.add_argument("--device", metavar="N", type=_count, help="the device; needs an array among the arguments")
    parser.add_argument("--repeat", metavar="N", type=_positive, default=1, help="launch so often, and time it")
    parser.add_argument(
        "--print",
        metavar="NAME",
        dest="printed",
        action="extend",
        nargs="+",
        default=[],
        help="print these arrays, by parameter name, and not all that changed",
    )
    parser.add_argument(
        "--save",
        metavar="NAME=FILE",
        dest="saved",
        action="append",
        default=[],
        type=_save,
        help="save an array, by parameter name, for numpy.load",
    )


def run(options: argparse.Namespace) -> int:
    """Launch, then print the arrays that changed, or those that were asked for."""
    import podium

    if options.saved:
        need_numpy("--save")
    module = open_module(options, [options.kernel] if options.kernel is not None else [])
    chosen = podium.use(options.backend) if options.backend is not None else contextlib.nullcontext()
    with chosen:
        driver = podium.driver.resolve()
        kernel = module.kernel(options.kernel, signature=options.signature)
        names = kernel.signature.names
        for name in (*options.printed, *(name for name, _ in options.saved)):
            if name not in names:
                raise CommandError(f"{kernel.name} has no parameter {name!r}; it has: {', '.join(names)}", status=2)
        args = [argument.make(driver, options.device) for argument in options.args]
        arrays = {name: value for name, value in zip(names, args) if isinstance(value, podium.Array)}
        if options.device is not None and not arrays:
            raise CommandError("--device says where arrays are made, and no argument is one", status=2)
        for name in (*options.printed, *(name for name, _ in options.saved)):
            if name not in arrays:
                raise CommandError(f"{name!r} of {kernel.name} is given no array", status=2)
        before = {name: array.tobytes() for name, array in arrays.items()}
        console = Console()
        _launch(console, driver, kernel, args, arrays, options)
        shown = options.printed or [name for name, array in arrays.items() if array.tobytes() != before[name]]
        if not shown and not options.saved:
            console.line("no array changed")
        for name in shown if options.printed or not options.saved else ():
            _print(console, name, arrays[name])
        for name, path in options.saved:
            _save_array(path, arrays[name])
            console.line(f"{name}: saved to {path}")
    return 0


def _launch(
    console: Console,
    driver: Driver,
    kernel: Kernel,
    args: Sequence[Any],
    arrays: dict[str, Array],
    options: argparse.Namespace,
) -> None:
    import podium

    device = next((array.device for array in arrays.values()), None)
    launch = kernel[podium.LaunchConfig(options.grid, options.block, shared=options.shared)]

    def once() -> float:
        start = time.perf_counter()
        launch(*args)
        podium.synchronize(device)
        return time.perf_counter() - start

    with console.progress(f"Compiling {kernel.name}"), podium.debugging():
        # Arrays of other types than the kernel's would make it read and write beyond them.
        first = once()
    where = driver.current_device() if device is None else device
    console.line(f"{kernel.name}({kernel.signature}) on {driver.name} device {where}: {duration_text(first)} at first")
    if options.repeat > 1:
        times = _repeat(once, options.repeat - 1)
        console.line(
            f"then {len(times)} times: {duration_text(statistics.median(times))} in the median, "
            f"{duration_text(min(times))} at best, {kernel.level} launcher"
        )


def _repeat(once: Callable[[], float], times: int) -> list[float]:
    return [once() for _ in range(times)]


def _print(console: Console, name: str, array: Array) -> None:
    text = elements_text(array.tolist())
    separator = "\n" if "\n" in text else " "
    console.line(f"{name}: {array.dtype}[{', '.join(map(str, array.shape))}] ={separator}{text}")


def _save_array(path: Path, array: Array) -> None:
    numpy = need_numpy("--save")
    with path.open("wb") as file:  # numpy.save would add .npy to a name without it
        numpy.save(file, array.numpy(), allow_pickle=False)


def _axes(text: str) -> tuple[int, ...]:
    parts = text.replace("x", ",").split(",")
    if not 1 <= len(parts) <= 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not one to three numbers, such as 4 or 4,1,1")
    return tuple(map(int, parts))


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return int(text)


def _positive(text: str) -> int:
    number = _count(text)
    if number == 0:
        raise argparse.ArgumentTypeError("it must be at least 1")
    return number


def _save(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=FILE")
    return name, Path(path)
