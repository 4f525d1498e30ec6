"""The doctor's report, as a value."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, redirect_stdout
from dataclasses import asdict, dataclass
from typing import Any

from podium._active import driver_config
from podium._cli.backend_report import BackendReport, Choice, known_backends, survey
from podium._cli.distribution_report import DistributionReport, distribution_reports
from podium._cli.findings import findings
from podium._cli.machine_report import (
    CompilerReport,
    LauncherReport,
    VariableReport,
    cache_report,
    compiler_reports,
    launcher_report,
    python_report,
    variable_reports,
)
from podium._cli.trial import Trial, try_device
from podium._version import __version__

__all__ = ["Report", "make_report"]


@dataclass(frozen=True)
class Report:
    """Everything that the doctor found: `distributions` are damaged ones, `trials` None where none were asked for."""

    podium: str
    python: dict[str, str]
    choice: Choice
    backends: list[BackendReport]
    distributions: list[DistributionReport]
    compilers: list[CompilerReport]
    launcher: LauncherReport
    cache: dict[str, object]
    environment: list[VariableReport]
    trials: list[Trial] | None

    @property
    def healthy(self) -> bool:
        """Whether there is a backend to use, with a device and a compiler, and no trial launch failed."""
        chosen = next((each for each in self.backends if each.name == self.choice.backend), None)
        if chosen is None or chosen.devices is None or not chosen.devices.value:
            return False
        compiles = any(answer.error is None for answer in (chosen.toolchains or {}).values())
        return compiles and all(trial.outcome != "failed" for trial in self.trials or ())

    def as_json(self) -> dict[str, Any]:
        """Return the report as what JSON can hold. These keys stay; others may come.

        ========================  ==============================================================================
        ``healthy``               whether there is a backend to use, with a device and a compiler, and no trial failed
        ``podium``                podium's version
        ``python``                ``version``, ``implementation``, ``executable``, ``system``
        ``choice``                ``backend``, the name of the chosen one or null, and ``why``
        ``backends``              list of ``name``, ``distribution``, ``version``, ``state`` (active, inactive,
                                  failed, disabled, unready), ``reason``, ``traceback``, ``priority``, ``api``,
                                  ``toolchains`` (by language: ``value`` or ``error``), ``launcher`` (``value``, the
                                  template of generated ones or null, or ``error``), ``devices`` (``value``, a
                                  list, or ``error``; null if not active). A device has ``index``, ``name``,
                                  ``target``, ``memory`` (bytes), ``max_grid``, ``max_block``, ``max_threads``,
                                  ``max_shared`` (bytes), ``max_cluster``, ``max_parameter_bytes``; ``versions``
                                  (``value``, texts by name, or ``error``; null if not active)
        ``distributions``         list of damaged ones: ``name`` of the metadata folder, ``folder``, ``problem``
        ``compilers``             list of ``language`` (c, c++), ``command``, ``version``, ``error``
        ``launcher``              ``level``, ``can_generate``, ``reason``
        ``cache``                 ``folder``, ``mode`` (disk, read-only, memory), ``reason``, ``entries``, ``bytes``,
                                  ``max_bytes``, ``error``; if that is not null it is the only key
        ``environment``           list of ``name``, ``value``, ``meaning``, ``error``
        ``trials``                null without ``--run``; list of ``backend``, ``device``, ``level``, ``outcome``
                                  (passed, failed, unavailable), ``seconds``, ``reason``, ``refused`` (whether the
                                  backend takes no launch of that shape)
        ``findings``              list of ``subject``, ``problem``, ``action``
        ========================  ==============================================================================
        """
        return {"healthy": self.healthy, **asdict(self), "findings": [asdict(each) for each in findings(self)]}


def make_report(*, trying: bool, progress: Callable[[str], AbstractContextManager[None]]) -> Report:
    """Look at everything, and with `trying` launch a kernel on each device at each level.

    What plug-ins print meanwhile goes to standard error.
    """
    with redirect_stdout(sys.stderr):
        with progress("Looking for backends and devices"):
            reports, chosen = survey(detailed=True)
        with progress("Asking the compilers"):
            compilers, launcher = compiler_reports(), launcher_report()
        trials = list(_trials(reports, progress)) if trying else None
        return Report(
            podium=__version__,
            python=python_report(),
            choice=chosen,
            backends=reports,
            distributions=distribution_reports(),
            compilers=compilers,
            launcher=launcher,
            cache=cache_report(),
            environment=variable_reports(known_backends()),
            trials=trials,
        )


def _trials(reports: list[BackendReport], progress: Callable[[str], AbstractContextManager[None]]) -> Iterator[Trial]:
    for report in reports:
        devices = report.devices.value if report.devices is not None else None
        if not devices:
            continue
        driver = driver_config.get(report.name)
        for device in devices:
            for level in ("interpreted", "generated"):
                with progress(f"Launching on {report.name} device {device['index']}, {level}"):
                    yield try_device(driver, device["index"], level)
