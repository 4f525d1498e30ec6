"""What choosing a driver takes among many installed backends: distributions are made for it, each with its plug-in."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from podium._bench.comparison import compare
from podium._bench.processes import add_steps, run_steps
from podium._bench.report import Report
from podium._bench.turns import Times

__all__ = ["measure_installed"]

OTHERS = 49
TARGET_MS = 50

PLUGIN = """
from podium.backend import hookimpl

PODIUM_API = 1
PODIUM_PRIORITY = {priority}


@hookimpl
def podium_inactive_reason():
    from {package}.detection import inactive_reason

    return inactive_reason()


@hookimpl
def podium_register_driver():
    from {package}.driver import Chosen

    return Chosen
"""

DETECTION = """
def inactive_reason():
    return {reason!r}
"""

DRIVER = """
from podium.backend import Driver, deferred, deferred_launcher


class Chosen(Driver):
    name = {name!r}
    priority = {priority}
    launcher_cls = deferred_launcher("{package}.launcher:Chosen")
    dlpack_devices = frozenset({{1}})

    @classmethod
    def inactive_reason(cls):
        from {package}.detection import inactive_reason

        return inactive_reason()


for name in Driver.__abstractmethods__ - {{"inactive_reason"}}:
    setattr(Chosen, name, deferred(getattr(Driver, name), "{package}.device"))
Chosen.__abstractmethods__ = frozenset()
"""

# Time on processors, so that what else the machine does is not in it.
PROGRAM = """
import json, sys, time
{before}
begin = time.process_time()
{what}
print(json.dumps({{sys.argv[1]: time.process_time() - begin}}))
"""

PLUGGY = "import pluggy, alone"
ALONE = "the only backend"
UNASKED = f"{OTHERS} others, of lower priority"
ASKED = f"{OTHERS} others, of higher priority and inactive, each of which is asked"


def measure_installed(report: Report, processes: int) -> None:
    """Measure it in new processes, each kind in turn."""
    samples: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as base:
        folders = {
            ALONE: _install(Path(base, "alone"), 0, 0),
            UNASKED: _install(Path(base, "unasked"), OTHERS, 500),
            ASKED: _install(Path(base, "asked"), OTHERS, 700),
        }
        program = PROGRAM.format(before="import podium", what="assert podium.driver.resolve().name == 'chosen'")
        for number in range(processes + 1):
            steps = _run(PROGRAM.format(before="", what="import pluggy"), PLUGGY, folders[ALONE])
            for kind, folder in folders.items():
                steps |= _run(program, kind, folder)
            add_steps(samples, steps if number else {})  # the first processes leave compiled modules behind
    times = Times(samples)
    compare(
        report,
        "Choosing among installed backends, time on processors",
        times,
        what="installed",
        unit="ms",
        ours=folders,
    )
    what = f"choosing among {OTHERS + 1} backends, each of which is asked"
    report.target(what, TARGET_MS, 1e3 * times.median(ASKED), "ms")


def _run(program: str, kind: str, folder: Path) -> dict[str, float]:
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return run_steps(program, kind, environment={"PYTHONPATH": path, "PODIUM_BACKEND": ""})


def _install(folder: Path, others: int, priority: int) -> Path:
    """Install the backend that is chosen, of priority 600, and others whose detection says that they are inactive."""
    for number in range(others):
        _backend(folder, f"other{number}", priority, "there is no such device")
    _backend(folder, "chosen", 600, None)
    return folder


def _backend(folder: Path, name: str, priority: int, reason: str | None) -> None:
    package = f"podium_{name}"
    texts = {
        "__init__.py": "",
        "plugin.py": PLUGIN.format(package=package, priority=priority),
        "detection.py": DETECTION.format(reason=reason),
        "driver.py": DRIVER.format(package=package, name=name, priority=priority),
    }
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "entry_points.txt").write_text(f"[podium]\n{name} = {package}.plugin\n", encoding="utf-8")
    (folder / package).mkdir()
    for file, text in texts.items():
        (folder / package / file).write_text(text, encoding="utf-8")
