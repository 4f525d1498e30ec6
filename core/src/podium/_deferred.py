"""Parts of a driver class that are named, and imported when they are needed: methods, and the launcher class."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from podium._launcher import Launcher

    _Method = TypeVar("_Method", bound=Callable[..., Any])

__all__ = ["DeferredLauncher", "deferred", "deferred_launcher"]


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


class DeferredLauncher:
    """Stands for a launcher class in a driver class, and puts that in its own place when it is first asked for."""

    def __init__(self, place: str) -> None:
        self._module, _, self._name = place.partition(":")
        self._owner: type | None = None
        self._attribute = ""

    def __set_name__(self, owner: type, attribute: str) -> None:
        self._owner, self._attribute = owner, attribute

    def __get__(self, instance: object, owner: type) -> type[Launcher]:
        from podium._launcher import Launcher

        found: object = getattr(__import__(self._module, fromlist=(self._name,)), self._name)
        if not isinstance(found, type) or not issubclass(found, Launcher):
            place = f"{self._module}:{self._name}"
            raise TypeError(
                f"{owner.__name__}.launcher_cls names {place}, which is {found!r} and no subclass of "
                f"podium.backend.Launcher"
            )
        if self._owner is not None:
            setattr(self._owner, self._attribute, found)
        return found


def deferred_launcher(place: str) -> type[Launcher]:
    """Give `Driver.launcher_cls` by name, "mybackend.launcher:MyLauncher": it is imported when it is first needed.

    Choosing a driver is then quicker by what launches need; it pays where initialising the vendor's driver leaves time
    for that (`import_early`). Whatever importing it raises reaches the first launch.
    """
    return DeferredLauncher(place)  # type: ignore[return-value]  # which a driver class and its instances get of it
