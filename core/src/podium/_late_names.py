"""Names of a module that are imported when they are first asked for."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # packages import this as they are imported themselves, and typing would be most of its cost
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["late_names"]


def late_names(module: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and the ``__dir__`` of a module whose names other modules define.

    `homes` has the names, with spaces between them, by the module that defines them, which is imported when one of
    its names is first asked for; ``dir()`` gives ``__all__``. Type checkers see the imports, and so tell a name that
    there is not::

        if TYPE_CHECKING:
            from mybackend.binaries import object_code
        else:
            __getattr__, __dir__ = late_names(__name__, {"mybackend.binaries": "object_code"})

    What importing raises reaches the caller each time.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def look_up(name: str) -> object:
        owner = sys.modules[module]
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=owner)
        from importlib import import_module

        value: object = getattr(import_module(home_of[name]), name)
        setattr(owner, name, value)
        return value

    def public() -> list[str]:
        return sorted(sys.modules[module].__all__)

    return look_up, public
