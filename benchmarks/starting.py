"""What a process pays before its first kernel: import podium, and the choice of the driver, beside a bare Python."""

from __future__ import annotations

import tempfile

from podium._bench.comparison import compare
from podium._bench.processes import STEPS, add_steps, run_steps, whole_process
from podium._bench.report import Report
from podium._bench.turns import Times

__all__ = ["measure_start"]

IMPORT_TARGET_MS, CHOICE_TARGET_MS = 30, 20

BARE, IMPORT = "bare Python, start to end", "import podium, start to end"
CHOICE, PLUGGY = "choosing the driver, after the import", "of it pluggy, imported alone"

PROGRAMS = {
    CHOICE: f"import podium\n{STEPS}\npodium.driver.resolve()\nmark({CHOICE!r})\nprint(json.dumps(steps))",
    PLUGGY: f"{STEPS}\nimport pluggy\nmark({PLUGGY!r})\nprint(json.dumps(steps))",
}


def measure_start(report: Report, processes: int) -> None:
    """Measure it in new processes, each kind in turn."""
    samples: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PODIUM_CACHE_DIR": folder}
        run_steps(PROGRAMS[CHOICE], environment=environment)  # which leaves compiled modules behind
        for _ in range(processes):
            for name, code in ((BARE, "pass"), (IMPORT, "import podium")):
                add_steps(samples, {name: whole_process(code, environment)})
            for program in PROGRAMS.values():
                add_steps(samples, run_steps(program, environment=environment))
    times = Times(samples)
    compare(report, "Start", times, what="processes", unit="ms", ours=(IMPORT, CHOICE))
    report.target("import podium over bare Python", IMPORT_TARGET_MS, 1e3 * times.beside(IMPORT, BARE), "ms")
    report.target("choosing the driver", CHOICE_TARGET_MS, 1e3 * times.median(CHOICE), "ms")
