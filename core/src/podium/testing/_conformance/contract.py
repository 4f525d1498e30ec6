"""Marking the tests of an area with their contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

__all__ = ["contract"]

_Class = TypeVar("_Class", bound=type)


def contract(area: str, *needs: str) -> Callable[[_Class], _Class]:
    """Mark every test of a class with the section of the contracts that it belongs to, and with what it needs.

    The tests are marked and not the class: a mark on a class holds for every class that inherits from it, and the
    whole suite is one class.
    """

    def mark(owner: _Class) -> _Class:
        for name, function in list(vars(owner).items()):
            if name.startswith("test_"):
                marked = pytest.mark.contract(area)(function)
                setattr(owner, name, pytest.mark.needs(*needs)(marked) if needs else marked)
        return owner

    return mark
