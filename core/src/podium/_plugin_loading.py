"""Loading of one plug-in: import and version of the plug-in API; later its hooks, and the driver class they return.

Whatever a plug-in does wrong becomes a `PluginFailure`, whose text is the reason and whose cause is the error itself.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from podium._entry_points import EntryPoint
from podium._import_aware_lock import modules_being_imported
from podium._plugin_api import adapted, spoken
from podium._settings import backend_prefix

if TYPE_CHECKING:
    import pluggy

    from podium.backend import Driver

__all__ = [
    "NotReady",
    "Plugin",
    "PluginFailure",
    "failure_text",
    "guarded",
    "load_plugin",
    "stated_api",
    "unfit",
]

T = TypeVar("T")

REGISTER, DETECT = "podium_register_driver", "podium_inactive_reason"

UNDER_WAY = ("circular import", "_DeadlockError")
"""What the import system says when it cannot wait for an import that is under way, in this thread or in two."""


class PluginFailure(Exception):
    """Why a plug-in cannot be used, in one line; its cause is the plug-in's own error, if there was one."""

    @property
    def traceback(self) -> str | None:
        """The full text of the plug-in's own error."""
        if self.__cause__ is None:
            return None
        from traceback import format_exception

        return "".join(format_exception(self.__cause__))


class NotReady(PluginFailure):
    """It is too early to ask the plug-in: it is being imported, or being asked, further up in the calling thread."""


def failure_text(error: BaseException) -> str:
    """Put an error into one line: its type and text, and those of the errors that it replaced."""
    texts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        try:
            text = " ".join(str(current).split())
        except Exception:  # an error of a plug-in may fail to say what it is
            text = "(the text of this error cannot be shown)"
        texts.append(f"{type(current).__name__}: {text}" if text else type(current).__name__)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return " <- ".join(texts)


def guarded(doing: str, action: Callable[[], T], package: str | None = None) -> T:
    """Call code of a plug-in; everything that it raises, but for an interrupt by the user, is a `PluginFailure`.

    That includes what is no `Exception`: a plug-in that calls `sys.exit` must not end the program. A `PluginFailure`
    says already what failed.
    """
    try:
        return action()
    except (KeyboardInterrupt, PluginFailure):
        raise
    except BaseException as error:
        text = failure_text(error)
        if isinstance(error, ModuleNotFoundError) and error.name and package:
            if error.name.partition(".")[0] == package:
                reason = f"its package is not importable: {text}"
            else:
                reason = f"it needs {error.name!r}, which cannot be found: {text}"
        else:
            reason = f"{doing} failed: {text}"
        if any(sign in text for sign in UNDER_WAY) and modules_being_imported():
            raise NotReady(f"it cannot be used before this import is done: {text}") from error
        raise PluginFailure(reason) from error


def stated_api(module: str) -> int | None:
    """Return the version of the plug-in API that a module states, if it is imported and states one."""
    imported = sys.modules.get(module)
    version = vars(imported).get("PODIUM_API") if _is_module(imported) else None
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def _is_module(imported: object) -> bool:
    """Tell whether what the import system has is a module: plug-ins can put anything there, and tests put None."""
    return issubclass(type(imported), ModuleType)


class Plugin:
    """A plug-in whose module is imported. Its hooks are registered when one is called, its driver imported by its own.

    `api` is the version of the plug-in API that it speaks, `priority` what it states as PODIUM_PRIORITY, None if that
    is left to the driver class. Every method raises `PluginFailure`; nothing of a plug-in that fails stays registered
    anywhere.
    """

    def __init__(self, entry: EntryPoint, module: ModuleType, api: int) -> None:
        self.entry = entry
        self.api = api
        self.priority = _stated_priority(module)
        self.detects = DETECT in vars(module)  # whether it has the hook that says why it cannot run here
        self._module = module
        self._package = entry.module.partition(".")[0]
        self._hooks: dict[str, Callable[[], object]] | None = None

    @property
    def answers(self) -> bool:
        """Whether the plug-in tells all that choosing asks, so that its driver's module need not be imported for it."""
        return self.priority is not None and self.detects

    def inactive_reason(self) -> object:
        """Call the hook that says why the backend cannot run here."""
        return guarded(f"{DETECT}()", self._hook(DETECT), self._package)

    def driver_class(self) -> type[Driver]:
        """Call the hook that returns the driver class, and look whether that is fit.

        That of a plug-in of an older API is adapted to podium's own.
        """
        returned = guarded(f"{REGISTER}()", self._hook(REGISTER), self._package)
        return guarded("looking at its driver class", lambda: self._fit(returned))

    def _fit(self, returned: object) -> type[Driver]:
        if isinstance(returned, type):
            stated = cast("type[Driver]", returned)
            returned = guarded(f"adapting it from plug-in API {self.api}", lambda: adapted(stated, self.api))
        reason = unfit(returned, self.entry.name)
        if reason is not None:
            raise PluginFailure(f"{REGISTER}() returned {reason}")
        driver_class = cast("type[Driver]", returned)
        if self.priority not in (None, driver_class.priority):
            raise PluginFailure(
                f"{REGISTER}() returned {driver_class.__name__}, whose priority is {driver_class.priority}, and "
                f"{self.entry.module} states {self.priority} as PODIUM_PRIORITY"
            )
        return driver_class

    def _hook(self, name: str) -> Callable[[], object]:
        hooks = self._hooks
        if hooks is None:
            hooks = self._hooks = _registered(self._module, self.entry)
        if name not in hooks:
            marked = f"does not mark {name} with @hookimpl" if name in vars(self._module) else f"has no {name}"
            raise PluginFailure(f"{self.entry.module} {marked}")
        return hooks[name]


def load_plugin(entry: EntryPoint) -> Plugin:
    """Import the module of an entry point, and look at what it states; calls no hook. Raises `PluginFailure`."""
    name = entry.module
    if not name or not all(part.isidentifier() for part in name.split(".")):
        line = f"{entry.name} = {entry.value}" if entry.value else entry.name
        raise PluginFailure(f"its entry point {line!r} does not name a module")
    if any((name + ".").startswith(module + ".") for module in modules_being_imported()):
        raise NotReady(f"{name} is being imported")
    module = guarded(f"importing {name}", lambda: import_module(name), name.partition(".")[0])
    if not _is_module(module):
        raise PluginFailure(f"{name} has put a {type(module).__name__} into sys.modules, which is no module")
    return guarded(f"looking at what {name} states", lambda: Plugin(entry, module, _check_api(module, entry)))


def _check_api(module: ModuleType, entry: EntryPoint) -> int:
    """Return the version of the plug-in API that a plug-in speaks. Raises `PluginFailure` if podium does not."""
    stated = vars(module).get("PODIUM_API")
    version = stated_api(module.__name__)
    versions = spoken()
    if version is not None and version in versions:
        return version
    from podium._version import __version__

    speaks = f"podium {__version__} speaks plug-in API {' and '.join(map(str, versions))}"
    if version is None:
        said = "states no PODIUM_API" if stated is None else f"states {stated!r} as PODIUM_API, which is no integer"
        raise PluginFailure(f"{module.__name__} {said}; {speaks}. Upgrade {entry.distribution}")
    owner = f"{entry.distribution} {entry.version}"
    if version > versions[-1]:
        wanted = _newer_podium(entry, __version__)
        raise PluginFailure(f"{owner} needs {wanted}: it speaks plug-in API {version}, but {speaks}. Upgrade podium")
    raise PluginFailure(f"{owner} speaks plug-in API {version}, but {speaks}. Upgrade {entry.distribution}")


def _newer_podium(entry: EntryPoint, version: str) -> str:
    """Say which podium a distribution requires, such as "podium>=0.3", if that is newer than `version`."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        required = requires(entry.distribution) or []
    except (PackageNotFoundError, ValueError):
        required = []
    for each in required:
        found = re.match(r"podium\s*(?:\[[^\]]*\])?\s*\(?\s*(?:>=|~=)\s*([0-9.]*[0-9])", each)
        if found is not None and _numbers(found[1]) > _numbers(version):
            return f"podium>={found[1]}"
    return "a newer podium"


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"[0-9]+", version)]


def _stated_priority(module: ModuleType) -> int | None:
    priority = vars(module).get("PODIUM_PRIORITY")
    if priority is not None and not _is_priority(priority):
        raise PluginFailure(f"{module.__name__} states {priority!r} as PODIUM_PRIORITY, which is no integer of 32 bits")
    return priority


def _is_priority(stated: object) -> bool:
    """Tell whether it is a number that can be compared and shown, which enormous ones cannot."""
    return isinstance(stated, int) and not isinstance(stated, bool) and -(1 << 31) <= stated < 1 << 31


def _registered(module: ModuleType, entry: EntryPoint) -> dict[str, Callable[[], object]]:
    """Register the hooks that a plug-in implements, and return them by name.

    Each plug-in has a plug-in manager of its own, so that one that fails half-way through leaves nothing behind, and
    one plug-in's hooks never see another's calls.
    """
    from podium import hookspecs

    plugins = _manager_class()(hookspecs.PROJECT)
    plugins.add_hookspecs(hookspecs)
    guarded("registering its hooks", lambda: plugins.register(module, entry.name))
    hooks: dict[str, Callable[[], object]] = {}
    for caller in plugins.get_hookcallers(module) or ():
        found = caller.get_hookimpls()
        if not caller.has_spec():
            if all(each.optionalhook for each in found):
                continue
            from difflib import get_close_matches

            meant = get_close_matches(caller.name, (REGISTER, DETECT), n=1, cutoff=0.0)[0]
            raise PluginFailure(
                f"{module.__name__} implements {caller.name}, which is no hook of podium; did you mean {meant}?"
            )
        if len(found) > 1 or found[0].hookwrapper or found[0].wrapper:
            raise PluginFailure(f"{module.__name__} must have one {caller.name}, which is no wrapper")
        hooks[caller.name] = partial(_only_answer, caller)
    return hooks


@cache
def _manager_class() -> type[pluggy.PluginManager]:
    import pluggy

    class PluginManager(pluggy.PluginManager):
        """Looks at fewer names: among fifty plug-ins, to look at all of them takes as long as to import them."""

        def parse_hookspec_opts(self, module_or_class: Any, name: str) -> pluggy.HookspecOpts | None:
            return super().parse_hookspec_opts(module_or_class, name) if name in (REGISTER, DETECT) else None

        def parse_hookimpl_opts(self, plugin: Any, name: str) -> pluggy.HookimplOpts | None:
            return None if name.startswith("__") else super().parse_hookimpl_opts(plugin, name)

    return PluginManager


def _only_answer(caller: pluggy.HookCaller) -> object:
    """Call a hook that one plug-in implements; pluggy gives a list, without the answer None."""
    answers: list[object] = caller()
    return answers[0] if answers else None


def unfit(driver_class: object, name: str) -> str | None:
    """Say what is wrong with the driver class of a backend; None if nothing is."""
    from podium.backend import Driver

    if not isinstance(driver_class, type) or not issubclass(driver_class, Driver):
        return f"{driver_class!r}, which is not a subclass of podium.backend.Driver"
    if missing := sorted(driver_class.__abstractmethods__):
        return f"{driver_class.__name__}, which lacks {', '.join(missing)}"
    stated = {key: _attribute(driver_class, key) for key in ("name", "priority", "launcher_cls", "dlpack_devices")}
    if absent := [key for key, value in stated.items() if value is None]:
        return f"{driver_class.__name__}, which does not set {', '.join(absent)}"
    if stated["name"] != name:
        return f"{driver_class.__name__}, whose name is {stated['name']!r} and not {name!r}, as the backend's is"
    if not _is_priority(stated["priority"]):
        return f"{driver_class.__name__}, whose priority is {stated['priority']!r}, which is no integer of 32 bits"
    if not _is_launcher(stated["launcher_cls"]):
        return f"{driver_class.__name__}, whose launcher_cls {stated['launcher_cls']!r} is no subclass of Launcher"
    # What it inherits has the name of the backend that it is made from.
    environment, prefix = vars(driver_class).get("environment", {}), backend_prefix(name)
    if not isinstance(environment, Mapping) or not all(
        isinstance(key, str) and isinstance(text, str) and key.startswith(prefix) for key, text in environment.items()
    ):
        return f"{driver_class.__name__}, whose environment {environment!r} is not texts by names in {prefix}"
    return None


def _attribute(driver_class: type[Driver], key: str) -> object:
    """Return an attribute as it stands in the class: asked for, a launcher that is given by name is imported."""
    return next((vars(each)[key] for each in driver_class.__mro__ if key in vars(each)), None)


def _is_launcher(stated: object) -> bool:
    from podium._deferred import DeferredLauncher

    if isinstance(stated, DeferredLauncher):
        return True
    from podium.backend import Launcher

    return isinstance(stated, type) and issubclass(stated, Launcher)
