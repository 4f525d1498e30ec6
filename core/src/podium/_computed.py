"""Properties that are computed when they are first read, without a lock.

Up to Python 3.11 `functools.cached_property` has one lock for all objects of a class. A thread that asks one kernel
would wait while another thread compiles another one, and a child that was forked meanwhile would wait for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import cached_property as computed

__all__ = ["computed"]

if not TYPE_CHECKING:

    class computed:  # noqa: N801  # it is written as `property` is
        """Make a method a property that is computed when it is first read, and from then on is a plain attribute.

        Threads may compute it at once; all of them get what the first one to end has computed.
        """

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            return vars(instance).setdefault(self._name, self._compute(instance))
