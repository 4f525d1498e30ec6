"""The host compiler's time for one launcher: with podium's declarations of Python, and with Python's headers."""

from __future__ import annotations

import resource
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import podium
from podium._bench.comparison import compare
from podium._bench.report import Report
from podium._bench.turns import Times
from podium._extension import INCLUDE_DIR
from podium._launcher_source import signature_source
from podium.backend import HostCompiler, Signature

__all__ = ["measure_compiler"]

TARGET_MS = 80
EACH = "for each signature, with podium's declarations"


def measure_compiler(report: Report, samples: int) -> None:
    """Measure time on processors, which other programs change less than time on the clock."""
    template = podium.driver.get("cpu").launcher_cls.template
    signature = Signature.parse("a: *fp32, b: *fp32, c: *fp32, n: i32")
    own = signature_source(signature.parameters, 0)
    common = template.read_text(encoding="utf-8")
    python = Path(sysconfig.get_path("include"))
    ways = {"with podium's declarations": [f"-DPODIUM_PYTHON_MINOR={sys.version_info.minor}"]}
    if (python / "Python.h").is_file():
        ways["with Python.h"] = ["-DPODIUM_USE_PYTHON_H", f"-I{python}"]
    compiler = HostCompiler.find("c")
    folders = [f"-I{each}" for each in (INCLUDE_DIR, template.parent, template.parent / "include")]
    flags = ["-std=c11", "-O2", "-fvisibility=hidden", "-fPIC", *folders]
    steps: dict[str, Callable[[], object]] = {}
    for way, more in ways.items():
        arguments = {"common.c": common}, "common.c", [*flags, *more, "-c"]
        objects = {"common.o": compiler.run(*arguments).data}
        steps[f"once on a machine, what all signatures have in common, {way}"] = (
            lambda arguments=arguments: compiler.run(*arguments)  # type: ignore[misc]
        )
        steps[f"for each signature, {way}"] = (
            lambda more=more, objects=objects: compiler.compile({"l.c": own}, "l.c", [*flags, *more], objects=objects)  # type: ignore[misc]
        )
    steps["an empty file"] = lambda: compiler.compile({"e.c": ""}, "e.c", flags)
    found: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(samples):
        for name, step in steps.items():
            found[name].append(_seconds(step))
    times = Times(found)
    compare(report, "The host compiler", times, what="one launcher, time on processors", unit="ms", ours=(EACH,))
    report.target("the host compiler for one launcher", TARGET_MS, 1e3 * times.median(EACH), "ms")


def _seconds(call: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
