"""What is wrong, and what to do about it: read off a report of the doctor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium._plugin_api import farewell

if TYPE_CHECKING:
    from podium._cli.report import Report

__all__ = ["Finding", "findings"]


@dataclass(frozen=True)
class Finding:
    """A problem with something, and what to do; where the problem's text says that itself, `action` is empty."""

    subject: str
    problem: str
    action: str = ""


def findings(report: Report) -> list[Finding]:
    """List the problems of a report, settings first: one that means nothing is the cause of other problems."""
    of_backends = [*_choice(report), *_backends(report), *_distributions(report)]
    return [*_settings(report), *of_backends, *_trials(report), *_host(report), *_cache(report)]


def _choice(report: Report) -> Iterator[Finding]:
    if report.choice.backend is None:
        yield Finding("choice of the backend", report.choice.why)


def _backends(report: Report) -> Iterator[Finding]:
    for backend in report.backends:
        subject = f"backend {backend.name}"
        if backend.state == "failed":
            reason = backend.reason or "it is broken"
            wrong = next((each.name for each in report.environment if reason.startswith(f"{each.name}=")), None)
            action = (
                f"correct it, or unset {wrong}"
                if wrong is not None
                else f"upgrade, repair or remove {backend.distribution}, or leave it out with "
                f"PODIUM_DISABLED_PLUGINS={backend.name}; podium doctor --traceback shows the whole error"
            )
            yield Finding(subject, reason, action)
        if (end := farewell(backend.api)) is not None:
            yield Finding(subject, end, f"upgrade {backend.distribution}")
        if not backend.active:
            continue
        if backend.devices is not None and backend.devices.error is not None:
            yield Finding(
                subject,
                f"its devices cannot be listed: {backend.devices.error}",
                "mend that, or choose another backend with PODIUM_BACKEND",
            )
        elif backend.devices is not None and not backend.devices.value:
            yield Finding(subject, "it is active but has no devices", f"report this to {backend.distribution}")
        if backend.versions is not None and backend.versions.error is not None:
            yield Finding(subject, f"it does not tell its versions: {backend.versions.error}")
        if backend.launcher is not None and backend.launcher.error is not None:
            yield Finding(
                subject,
                f"its launchers cannot be generated: {backend.launcher.error}",
                "until then launches stay on the interpreted level, which is slower and does the same",
            )
        for language, answer in (backend.toolchains or {}).items():
            if answer.error is not None:
                yield Finding(subject, f"it cannot compile {language}: {answer.error}")


def _distributions(report: Report) -> Iterator[Finding]:
    for each in report.distributions:
        yield Finding(f"{each.name} in {each.folder}", each.problem)


def _trials(report: Report) -> Iterator[Finding]:
    for trial in report.trials or ():
        if trial.outcome == "failed":
            action = (
                "PODIUM_DEBUG=1 tells more of a launch that fails; podium cache clear removes code that may be stale"
            )
            if trial.refused:
                distribution = next(each.distribution for each in report.backends if each.name == trial.backend)
                action = f"the launch keeps to the limits that the backend states: report this to {distribution}"
            yield Finding(
                f"trial launch on {trial.backend} device {trial.device}, {trial.level} level",
                trial.reason or "it failed",
                action,
            )


def _host(report: Report) -> Iterator[Finding]:
    c_compiler = next((each for each in report.compilers if each.language == "c"), None)
    if not report.launcher.can_generate and report.launcher.reason:
        yield Finding(
            "launchers",
            f"none can be generated: {report.launcher.reason}",
            "until that is mended launches stay on the interpreted level, which is slower and does the same",
        )
    elif c_compiler is not None and c_compiler.error is not None:
        yield Finding("C compiler", c_compiler.error)
    for compiler in report.compilers:
        if compiler.language == "c++" and compiler.error is not None:
            yield Finding("C++ compiler", compiler.error, "only backends that compile kernels for the host need it")


def _cache(report: Report) -> Iterator[Finding]:
    cache = report.cache
    if cache["error"] is not None:
        yield Finding("cache", str(cache["error"]))
    elif cache["mode"] != "disk":
        consequence = "nothing new is kept" if cache["mode"] == "read-only" else "it is in memory only"
        yield Finding(
            "cache",
            f"{consequence}, so each process compiles again: {cache['reason']}",
            "mend the folder, or set PODIUM_CACHE_DIR to a folder that is yours alone",
        )
    elif cache["reason"] is not None:
        yield Finding("cache", str(cache["reason"]), f"the cache is in {cache['folder']} instead")


def _settings(report: Report) -> Iterator[Finding]:
    for variable in report.environment:
        if variable.error is not None:
            yield Finding(variable.name, variable.error, f"correct it, or unset {variable.name}")
