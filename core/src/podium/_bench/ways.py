"""Launches as users write them, many in one call, so that the clock is read seldom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["bound", "repeated", "streamed", "subscripted"]


def repeated(launch: Callable[..., object], count: int, *arguments: object) -> Callable[[], None]:
    """Make a function that launches so often, with any number of arguments."""

    def way() -> None:
        for _ in range(count):
            launch(*arguments)

    return way


def bound(launch: Callable[..., object], count: int, a: object, b: object, c: object, n: object) -> Callable[[], None]:
    """Make a function that launches so often as users write it, with the configuration kept."""

    def way() -> None:
        for _ in range(count):
            launch(a, b, c, n)

    return way


def streamed(
    launch: Callable[..., object], stream: object, count: int, a: object, b: object, c: object, n: object
) -> Callable[[], None]:
    """Make a function that launches so often in a stream that each call names."""

    def way() -> None:
        for _ in range(count):
            launch(a, b, c, n, stream=stream)

    return way


def subscripted(
    kernel: Any, grid: int, block: int, count: int, a: object, b: object, c: object, n: object
) -> Callable[[], None]:
    """Make a function that launches so often as users write it, the configuration said each time."""

    def way() -> None:
        for _ in range(count):
            kernel[grid, block](a, b, c, n)

    return way
