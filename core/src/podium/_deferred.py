"""Methods of a driver that are functions of other modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Method = TypeVar("_Method", bound=Callable[..., Any])

__all__ = ["deferred"]


def deferred(method: _Method, place: str) -> _Method:
    """Make a method out of a function of another module, which is imported when the method is first called.

    ``create_stream = deferred(Driver.create_stream, "mybackend.stream")`` calls the function of that name there, with
    what the method gets and without the driver; behind a colon stands another name, as in "mybackend.memory:Memory".
    To type checkers it is the method of `Driver` that is given. What importing raises reaches the caller each time.
    """
    module, _, name = place.partition(":")
    name = name or method.__name__
    function: Callable[..., Any] | None = None

    def call(driver: object, *args: Any, **keywords: Any) -> Any:
        nonlocal function
        if function is None:
            function = getattr(__import__(module, fromlist=(name,)), name)
        return function(*args, **keywords)

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    call.__qualname__, call.__module__ = f"{module}.{name}", module
    return call  # type: ignore[return-value]  # it has the method's signature, as long as the function has
