"""What is known of each backend, and which one podium chooses: gathered so that no plug-in can end the report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from traceback import format_exception
from typing import TYPE_CHECKING, Any, TypeVar

from podium import _settings
from podium._active import driver_config
from podium._cli.failure import CommandError
from podium._generated import template_text
from podium._plugin_loading import PluginFailure, guarded
from podium.errors import InactiveBackendError, PodiumError

if TYPE_CHECKING:
    from podium._cli.console import Console
    from podium._plugins import Backend
    from podium.backend import Driver, Launcher

__all__ = ["Answer", "BackendReport", "Choice", "answer_of", "ask", "known_backends", "show_backends", "survey"]

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """What a driver said: a `value`, or the `error` that came instead."""

    value: Any = None
    error: str | None = None


def ask(doing: str, question: Callable[[], object], owner: str = "the backend") -> Answer:
    """Ask something that code of a plug-in answers; whatever it raises, but for an interrupt, becomes the error.

    What is no error of podium is told as a bug of the `owner`.
    """
    try:
        return Answer(guarded(doing, question))
    except PluginFailure as failure:
        if isinstance(failure.__cause__, PodiumError):
            return Answer(error=str(failure.__cause__))
        return Answer(error=f"{failure}. This is a bug of {owner}")


def answer_of(driver: Driver, doing: str, question: Callable[[], T]) -> T:
    """Ask a driver something that a command cannot go on without.

    Raises the error of podium that it raises, and `CommandError` for what is a bug of the backend.
    """
    try:
        return guarded(doing, question)
    except PluginFailure as failure:
        if isinstance(failure.__cause__, PodiumError):
            raise failure.__cause__ from None
        raise CommandError(f"backend {driver.name!r}: {failure}. This is a bug of the backend") from failure.__cause__


@dataclass(frozen=True)
class BackendReport:
    """One backend. `state` is active, inactive, failed, disabled or unready; only an active one has no `reason`.

    `toolchains` has, for each language, the compiler or why there is none; `launcher` the template of its generated
    launchers, if there are any, or what is wrong with that. `devices` and `versions` are of an active backend, such as
    the version of its driver; `traceback` is the whole error of a broken one.
    """

    name: str
    distribution: str
    version: str
    state: str
    reason: str | None = None
    traceback: str | None = None
    priority: int | None = None
    api: int | None = None
    toolchains: dict[str, Answer] | None = None
    launcher: Answer | None = None
    devices: Answer | None = None
    versions: Answer | None = None

    @property
    def active(self) -> bool:
        """Whether the backend can be chosen."""
        return self.state == "active"


@dataclass(frozen=True)
class Choice:
    """The backend that podium chooses and why; without a backend, `why` is the error."""

    backend: str | None
    why: str


def survey(*, detailed: bool) -> tuple[list[BackendReport], Choice]:
    """Report on every backend, sorted by name, and choose one as a program would.

    `detailed` also asks for devices and compilers, and makes drivers for that.
    """
    # Chosen first, as a program would; looking at them all settles each, and PODIUM_STRICT_PLUGINS then has no effect.
    answer = ask("choosing a backend", driver_config.resolve)
    with _lenient():
        reports = [_report(backend, detailed=detailed) for backend in driver_config.backends()]
    if answer.error is not None:
        return reports, Choice(None, answer.error)
    return reports, Choice(answer.value.name, _why(answer.value.name, reports))


def known_backends() -> list[Backend]:
    """Return all backends, the broken ones included, whatever PODIUM_STRICT_PLUGINS says."""
    with _lenient():
        return driver_config.backends()


def _why(name: str, reports: list[BackendReport]) -> str:
    if name == _settings.backend():
        return "PODIUM_BACKEND names it"
    # the chosen one may have failed since
    active = [report for report in reports if report.active or report.name == name]
    active.sort(key=lambda report: -(report.priority or 0))
    if not active or active[0].name != name:
        return "it was named by the caller"
    if len(active) == 1:
        return "it is the only active one"
    listed = ", ".join(f"{report.name} {report.priority}" for report in active[1:])
    return f"its priority {active[0].priority} is the highest of the active ones (then: {listed})"


def show_backends(console: Console, reports: list[BackendReport], chosen: Choice) -> None:
    """Print the table of the backends, and the one that is chosen."""
    if reports:
        rows = [
            (
                f"{report.name} *" if report.name == chosen.backend else report.name,
                f"{report.distribution} {report.version}".strip(),
                report.state,
                "" if report.priority is None else str(report.priority),
                report.reason or "",
            )
            for report in reports
        ]
        console.table(("backend", "distribution", "state", "priority", "reason"), rows)
    else:
        console.line("none is installed")
    if chosen.backend is not None:
        console.line(f"* chosen: {chosen.backend}, since {chosen.why}")


def _report(backend: Backend, *, detailed: bool) -> BackendReport:
    answer = backend.probe()
    report = BackendReport(
        name=backend.name,
        distribution=backend.distribution,
        version=backend.version,
        state=answer.state,
        reason=answer.reason,
        traceback=answer.traceback,
        priority=backend.priority,
        api=backend.api,
    )
    if not detailed or backend.driver_class is None:
        return report
    try:
        driver = driver_config.get(backend.name)
    except PodiumError as error:
        if not report.active:
            return report
        reason = error.reason if isinstance(error, InactiveBackendError) else str(error)
        return replace(report, state="failed", reason=reason, traceback="".join(format_exception(error)))
    launcher_class = ask("launcher_cls", lambda: driver.launcher_cls)
    if launcher_class.error is not None:
        return replace(report, state="failed", reason=launcher_class.error) if report.active else report
    return replace(
        report,
        toolchains={language: _toolchain(driver, language) for language in sorted(driver.languages)},
        launcher=ask("template", lambda: _template(launcher_class.value)),
        devices=ask("devices()", lambda: _devices(driver)) if report.active else None,
        versions=ask("versions()", lambda: {str(name): str(each) for name, each in driver.versions().items()})
        if report.active
        else None,
    )


def _toolchain(driver: Driver, language: str) -> Answer:
    return ask(f"toolchain({language!r})", lambda: str(driver.toolchain(language)))


def _template(launcher_class: type[Launcher]) -> str | None:
    if not launcher_class.generated_level:
        return None
    template_text(launcher_class.template)
    return str(launcher_class.template)


def _devices(driver: Driver) -> list[dict[str, object]]:
    return [
        {
            "index": device.index,
            "name": device.name,
            "target": str(device.target),
            "memory": device.memory,
            "max_grid": list(device.max_grid),
            "max_block": list(device.max_block),
            "max_threads": device.max_threads,
            "max_shared": device.max_shared,
            "max_cluster": device.max_cluster,
            "max_parameter_bytes": device.max_parameter_bytes,
        }
        for device in driver.devices()
    ]


@contextmanager
def _lenient() -> Iterator[None]:
    variable = "PODIUM_STRICT_PLUGINS"
    strict = os.environ.pop(variable, None)
    try:
        yield
    finally:
        if strict is not None:
            os.environ[variable] = strict
