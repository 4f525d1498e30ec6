"""``podium doctor``: what podium finds on this machine, what it would choose, and what to do about what is wrong."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator

from podium._cli.backend_report import BackendReport, show_backends
from podium._cli.console import Console
from podium._cli.findings import findings
from podium._cli.quantity import bytes_text, duration_text, shape_text
from podium._cli.report import Report, make_report
from podium.errors import PodiumWarning

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("--run", action="store_true", help="also launch a small kernel on each active device")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead; its keys stay the same")


def run(options: argparse.Namespace) -> int:
    """Print the report.

    Returns 1 if no backend can be used, the chosen one has no device or cannot compile, or a trial launch failed.

    The keys of the JSON object are those of `podium._cli.report.Report.as_json`.
    """
    console = Console()
    with warnings.catch_warnings():
        # What podium warns of is in the report.
        warnings.simplefilter("ignore", PodiumWarning)
        if options.json:
            report = make_report(trying=options.run, progress=Console.silent)
        else:
            report = make_report(trying=options.run, progress=console.progress)
    if options.json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        _show(console, report, tracebacks=getattr(options, "traceback", False))
    return 0 if report.healthy else 1


def _show(console: Console, report: Report, *, tracebacks: bool) -> None:
    python = report.python
    console.line(f"podium {report.podium}, {python['implementation']} {python['version']} on {python['system']}")
    console.line(f"Python: {python['executable']}")
    console.heading("Backends")
    show_backends(console, report.backends, report.choice)
    _show_devices(console, report)
    for backend in report.backends:
        versions = backend.versions.value if backend.versions is not None else None
        if versions:
            console.line(f"{backend.name}: {', '.join(f'{name} {version}' for name, version in versions.items())}")
    toolchains = [line for backend in report.backends for line in _toolchain_lines(backend)]
    if toolchains:
        console.heading("Toolchains")
        for line in toolchains:
            console.line(line)
    console.heading("This machine")
    for name, text in _machine_rows(report):
        console.line(f"{name}: {text}")
    if report.environment:
        console.heading("Environment variables that are set")
        for variable in report.environment:
            meaning = f"  ({variable.meaning})" if variable.meaning else ""
            console.line(f"{variable.name}={variable.value}{meaning}")
    _show_trials(console, report)
    _show_findings(console, report)
    if tracebacks:
        for backend in report.backends:
            if backend.traceback is not None:
                console.heading(f"The error of backend {backend.name}")
                console.line(backend.traceback.rstrip())


def _show_devices(console: Console, report: Report) -> None:
    rows: list[tuple[str, ...]] = []
    axes: dict[str, list[str]] = {}
    for backend in report.backends:
        for device in (backend.devices.value if backend.devices is not None else None) or ():
            title = f"{backend.name} {device['index']}"
            memory, shared = bytes_text(device["memory"]), bytes_text(device["max_shared"])
            rows.append((title, device["target"], memory, str(device["max_threads"]), shared, device["name"]))
            block, grid = shape_text(device["max_block"]), shape_text(device["max_grid"])
            axes.setdefault(f"a block has at most {block} threads, a grid at most {grid} blocks", []).append(title)
    if rows:
        console.heading("Devices")
        console.table(("device", "target", "memory", "threads", "shared", "name"), rows)
        for text, titles in axes.items():
            console.line(f"{', '.join(titles)}: {text}")


def _toolchain_lines(backend: BackendReport) -> Iterator[str]:
    for language, answer in (backend.toolchains or {}).items():
        if answer.error is None:
            title, _, _ = answer.value.partition("\n")  # what follows is for keys of the cache
            yield f"{backend.name}, {language}: {title}"
        elif backend.active:
            yield f"{backend.name}, {language}: none: {answer.error}"


def _machine_rows(report: Report) -> Iterator[tuple[str, str]]:
    for compiler in report.compilers:
        found = f"none: {compiler.error}" if compiler.error is not None else f"{compiler.command} ({compiler.version})"
        yield f"{compiler.language.upper()} compiler", found
    launcher = report.launcher
    can = "can be generated" if launcher.can_generate else f"cannot be generated: {launcher.reason}"
    yield "launchers", f"level {launcher.level or 'not valid'}; they {can}"
    cache = report.cache
    if cache["error"] is not None:
        yield "cache", str(cache["error"])
        return
    held, cap = bytes_text(_int(cache["bytes"])), bytes_text(_int(cache["max_bytes"]))
    mode = {"disk": "read and written", "read-only": "read only", "memory": "in memory only"}[str(cache["mode"])]
    yield "cache", f"{cache['folder'] or 'no folder'}: {mode}, {cache['entries']} entries, {held} of at most {cap}"
    if cache["reason"] is not None:
        yield "cache, reason", str(cache["reason"])


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _show_trials(console: Console, report: Report) -> None:
    if report.trials is None:
        return
    console.heading("Trial launches")
    if not report.trials:
        console.line("none: there is no device")
        return
    rows = [
        (
            f"{trial.backend} {trial.device}",
            trial.level,
            trial.outcome,
            "" if trial.seconds is None else duration_text(trial.seconds),
            trial.reason or "",
        )
        for trial in report.trials
    ]
    console.table(("device", "level", "outcome", "time", "reason"), rows)


def _show_findings(console: Console, report: Report) -> None:
    found = findings(report)
    console.heading("What to do")
    if not found:
        console.line("nothing: all is well", style="green")
    for each in found:
        console.line(f"- {each.subject}: {each.problem}")
        if each.action:
            console.line(f"  {each.action}")
