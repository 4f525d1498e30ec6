"""Several real backends in one environment: damaged one by one, and removed while a process runs.

Everything is installed from wheels, in folders of its own. The NVIDIA backend is on the recording driver.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from installed import Environment
from recording.cuda.library import build, compiler
from together import BACKENDS, Damage, Report, Site, doctors, wheels

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the recording library is for Linux"),
    pytest.mark.skipif(compiler() is None, reason="there is no C compiler for the recording library"),
    pytest.mark.oldest,
]


@dataclass(frozen=True)
class Installed:
    """An environment with all backends, the wheels that they came from, and the recording CUDA driver."""

    environment: Environment
    wheels: dict[str, Path]
    libcuda: Path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the core and all backends from wheels."""
    folder = tmp_path_factory.mktemp("together")
    made = wheels(folder / "wheels")
    return Installed(Environment.make(folder, made.values()), made, build())


# ---- Each of them broken ----


@dataclass(frozen=True)
class Case:
    """A damage to one backend, and what the doctor must say: state, reason and advice; None if it is in no row."""

    backend: str
    damage: Damage
    state: str | None
    reason: str | None = None
    advice: str | None = None
    version: str = "0.1.0"
    distribution: str | None = None


def _second_distribution(site: Site) -> None:
    other = site.folder / "other_vendor-2.5.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other-vendor\nVersion: 2.5\n")
    (other / "entry_points.txt").write_text(f"[podium]\n{site.name} = podium_{site.name}.plugin\n")


def _rest_of_an_upgrade(site: Site) -> None:
    site.metadata.rename(site.folder / f"~{site.metadata.name[1:]}")


def _folder_in_place_of(name: str) -> Damage:
    def damage(site: Site) -> None:
        (site.metadata / name).unlink()
        (site.metadata / name).mkdir()

    return damage


def _raising(error: str) -> str:
    return f"raise {error}"


CASES = {
    # the plug-in's module
    "missing dependency": Case("nvidia", lambda site: site.write("plugin.py", "import no_such_library"), "failed", "it needs 'no_such_library', which cannot be found"),
    "syntax error": Case("amd", lambda site: site.write("plugin.py", "def f(:"), "failed", "importing podium_amd.plugin failed: SyntaxError"),
    "ends the program": Case("nvidia", lambda site: site.write("plugin.py", "import sys; sys.exit(0)"), "failed", "importing podium_nvidia.plugin failed: SystemExit: 0"),
    "cancelled": Case("serial", lambda site: site.write("plugin.py", "import asyncio\nraise asyncio.CancelledError('x')"), "failed", "importing podium_serial.plugin failed: CancelledError: x"),
    "endless recursion": Case("opencl", lambda site: site.write("plugin.py", "def f(): f()\nf()"), "failed", "importing podium_opencl.plugin failed: RecursionError"),
    "zeros in the file": Case("cpu", lambda site: site.write("plugin.py", "\0" * 100), "failed", "importing podium_cpu.plugin failed: SyntaxError|source code string cannot contain null bytes"),
    "newer plug-in API": Case("nvidia", lambda site: site.replace("plugin.py", "PODIUM_API = 1", "PODIUM_API = 2"), "failed", "podium-nvidia 0.1.0 needs a newer podium: it speaks plug-in API 2, but podium 0.1.0 speaks plug-in API 1. Upgrade podium$"),
    "no plug-in API": Case("serial", lambda site: site.replace("plugin.py", "PODIUM_API = 1", ""), "failed", "podium_serial.plugin states no PODIUM_API"),
    # the driver's
    "driver imports what is missing": Case("nvidia", lambda site: site.write("driver.py", "import no_such_library"), "failed", "it needs 'no_such_library'"),
    "method missing": Case("cpu", lambda site: site.replace("driver.py", "def describe_status", "def describe_statuses"), "failed", "returned CpuDriver, which lacks describe_status"),
    "another name": Case("opencl", lambda site: site.replace("driver.py", 'name = "opencl"', 'name = "other"'), "failed", "whose name is 'other' and not 'opencl'"),
    "launcher missing": Case("nvidia", lambda site: (site.package / "launcher.py").unlink(), "failed", r"launcher_cls failed: ModuleNotFoundError: No module named 'podium_nvidia.launcher'. This is a bug of the backend"),
    "launcher of a third party missing": Case("serial", lambda site: (site.package / "launcher.py").unlink(), "failed", "its package is not importable: .*No module named 'podium_serial.launcher'"),
    "cannot be made": Case("nvidia", lambda site: site.method("__init__", _raising("OSError('no bus')")), "failed", r"NvidiaDriver\(\) failed: OSError: no bus$"),
    "ends the program when made": Case("serial", lambda site: site.method("__init__", _raising("SystemExit('bye')")), "failed", r"SerialDriver\(\) failed: SystemExit: bye$"),
    # whether it can run
    "reason raises": Case("nvidia", lambda site: site.reason(_raising("OSError('the\\nbus')")), "failed", r"inactive_reason\(\) failed: OSError: the bus$"),
    "reason ends the program": Case("cpu", lambda site: site.reason(_raising("SystemExit(3)")), "failed", r"inactive_reason\(\) failed: SystemExit: 3$"),
    "reason is a number": Case("nvidia", lambda site: site.reason("return 42"), "failed", "returned 42, neither a reason nor None"),
    "reason is empty": Case("serial", lambda site: site.reason("return ' '"), "failed", "returned ' ', neither a reason nor None"),
    # devices and launchers
    "devices raise": Case("nvidia", lambda site: site.method("devices", _raising("ZeroDivisionError('no bus')")), "active", None, r"devices cannot be listed: devices\(\) failed: ZeroDivisionError: no bus. This is a bug of the backend"),
    "no devices": Case("cpu", lambda site: site.method("devices", "return []"), "active", None, "it is active but has no devices: report this to podium-cpu"),
    "template missing": Case("nvidia", lambda site: (site.package / "launch.c.in").unlink(), "active", None, r"launchers cannot be generated: the template .*launch.c.in.* Install it again"),
    # what pip has left
    "package missing": Case("nvidia", lambda site: shutil.rmtree(site.package), "failed", "its package is not importable: ModuleNotFoundError: No module named 'podium_nvidia'"),
    "package without its modules": Case("amd", lambda site: [path.unlink() for path in site.package.rglob("*.py")], "failed", "its package is not importable: .*No module named 'podium_amd.plugin'"),
    "METADATA missing": Case("cpu", lambda site: (site.metadata / "METADATA").unlink(), "active", None, "its metadata are gone, so it can be neither upgraded nor removed"),
    "entry points missing": Case("nvidia", lambda site: (site.metadata / "entry_points.txt").unlink(), None, None, "its entry_points.txt is gone, so its backends are not seen. Install it again"),
    "entry points are no text": Case("serial", lambda site: (site.metadata / "entry_points.txt").write_bytes(b"\xff\xfe\0" * 99), None, None, "its entry_points.txt cannot be read .*utf-8"),
    "entry points are a folder": Case("nvidia", _folder_in_place_of("entry_points.txt"), None, None, "its entry_points.txt cannot be read .*Is a directory"),
    "entry points without a section": Case("cpu", lambda site: site.write("entry_points.txt", "cpu = podium_cpu.plugin\n"), None, None, "its entry_points.txt has the line 'cpu = podium_cpu.plugin', which names no entry point"),
    "entry point without a module": Case("nvidia", lambda site: site.write("entry_points.txt", "[podium]\nnvidia\n"), "failed", "its entry point 'nvidia' does not name a module"),
    "entry point twice, the same": Case("nvidia", lambda site: site.write("entry_points.txt", "[podium]\nnvidia = podium_nvidia.plugin\n" * 2), "active"),
    "entry point twice, another": Case("cpu", lambda site: site.write("entry_points.txt", "[podium]\ncpu = podium_cpu.plugin\ncpu = podium_cpu.other\n"), "failed", "podium-cpu 0.1.0"),
    "rest of an upgrade": Case("nvidia", lambda site: shutil.copytree(site.metadata, site.folder / "~odium_nvidia-0.0.9.dist-info"), "active", None, "~odium_nvidia-0.0.9.dist-info in .*it is what an interrupted installation has left, and counts as none"),
    "only the rest of an upgrade": Case("cpu", _rest_of_an_upgrade, None, None, "~odium_cpu-0.1.0.dist-info in .*it is what an interrupted installation has left"),
    "two versions": Case("serial", lambda site: shutil.copytree(site.metadata, site.folder / "podium_serial-0.0.9.dist-info"), "active", None, "podium_serial-0.1.0.dist-info in .*: podium_serial-0.0.9.dist-info is there, too, so its version may be either", version="0.0.9"),
    "metadata missing": Case("opencl", lambda site: shutil.rmtree(site.metadata), None),
    "two distributions": Case("nvidia", _second_distribution, "failed", "it is provided by other-vendor 2.5 and by podium-nvidia 0.1.0; remove all but one", distribution="other-vendor and podium-nvidia", version="2.5 and 0.1.0"),
}  # fmt: skip


@pytest.fixture(scope="module")
def reports(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """What the doctor says of each case, and without damage under the name of "whole"."""
    folder = tmp_path_factory.mktemp("sites")
    packages = installed.environment.packages
    made = {"whole": Site.make(folder / "whole", packages, "cpu")}
    for index, (name, case) in enumerate(CASES.items()):
        made[name] = Site.make(folder / str(index), packages, case.backend)
        case.damage(made[name])
    answers = doctors(
        installed.environment,
        [site.folder for site in made.values()],
        folder / "answers",
        PODIUM_NVIDIA_LIBCUDA=str(installed.libcuda),
    )
    return {name: answers[site.folder] for name, site in made.items()}


def test_the_doctor_of_a_whole_environment(reports: dict[str, Report]) -> None:
    """All backends are there with distribution and version, and the GPU's is the chosen one."""
    whole = reports["whole"]
    assert [each["name"] for each in whole.data["backends"]] == list(BACKENDS)
    rows = {name: whole.row(name) or () for name in BACKENDS}
    assert {name: row[:2] for name, row in rows.items()} == {name: (f"podium-{name}", "0.1.0") for name in BACKENDS}
    for name in ("cpu", "nvidia", "serial"):
        assert rows[name][2:] == ("active", None)
    assert (whole.chosen, whole.status, whole.data["distributions"]) == ("nvidia", 0, [])


@pytest.mark.parametrize("name", CASES)
def test_one_of_them_is_damaged(reports: dict[str, Report], name: str) -> None:
    """DISC-01, DISC-02, DISC-03: the others are as ever, and the table and the advice tell what is the matter."""
    case, report, whole = CASES[name], reports[name], reports["whole"]
    for other in BACKENDS:
        if other != case.backend:
            assert report.row(other) == whole.row(other)
    row = report.row(case.backend)
    if case.state is None:
        assert row is None
    else:
        assert row is not None, report.findings
        assert row[:2] == (case.distribution or f"podium-{case.backend}", case.version)
        assert re.fullmatch(case.state, row[2]), row
        assert (case.reason is None) or re.search(case.reason, row[3]), row
    if row is not None and row[2] == "failed":
        assert f"backend {case.backend}: {row[3]}" in report.findings
    assert case.advice is None or re.search(case.advice, report.findings), report.findings
    is_told_later = name == "launcher missing"  # a program that has no kernel yet does not need it
    expected = (
        "nvidia" if case.backend != "nvidia" or is_told_later or (row is not None and row[2] == "active") else "cpu"
    )
    if expected == "cpu" and (opencl := whole.row("opencl")) is not None and opencl[2] == "active":
        expected = "opencl"
    assert report.chosen == expected
    is_unusable = name in ("devices raise", "launcher missing")
    assert report.status == int(is_unusable), report.findings


# ---- Removed, put back and upgraded while a process runs ----

BEGIN = """
import json, os, subprocess, sys, warnings
import podium
from podium.errors import PodiumError

commands = json.loads(sys.argv[1])

def pip(name):
    kept = {each: value for each, value in os.environ.items() if not each.startswith("PYTHON")}
    subprocess.run(commands[name], env=kept, check=True, capture_output=True)

def kernel(name, parameters):
    return podium.kernel(f'extern "C" __global__ void {name}({parameters}) {{ y[threadIdx.x] += 1; }}')

def launch(made, backend, *more):
    # as a program that has been told, or what it was told: an error of podium and nothing else
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with podium.use(backend):
                y = podium.asarray([1.0, 2.0])
                for _ in range(3):
                    made[1, 2](y, *more)
                made.warm_up()
                made[1, 2](y, *more)
                podium.synchronize()
                return y.tolist(), [str(each.message) for each in caught]
        except PodiumError as error:
            return type(error).__name__, str(error)

def states():
    return {each.name: each.probe().state for each in podium.driver.backends() if each.name in wanted}

wanted = ("cpu", "nvidia", "serial")
told = {}
"""

REMOVED = (
    BEGIN
    + """
told["at first"] = states()
first = {name: kernel(f"first_{name}", "float *y") for name in ("cpu", "serial")}
for name, made in first.items():
    told[f"{name} before"] = launch(made, name)
pip("uninstall")
for name, made in first.items():
    told[f"{name} goes on"] = launch(made, name)
    told[f"{name} anew"] = launch(kernel(f"other_{name}", "float *y, int a, double b"), name, 1, 2.0)
told["nvidia, never used"] = launch(kernel("gpu", "float *y"), "nvidia")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    told["chosen"] = podium.driver.resolve().name
    told["why"] = [str(each.message) for each in caught]
podium.driver.rediscover()
told["then"] = states()
told["serial, rediscovered"] = launch(first["serial"], "serial")
doctor = subprocess.run([sys.executable, "-m", "podium", "doctor", "--json"], capture_output=True, text=True)
told["doctor"] = [each["name"] for each in json.loads(doctor.stdout)["backends"] if each["name"] in wanted]
pip("install")
podium.driver.rediscover()
told["again"] = states()
for name in wanted:
    told[f"{name} again"] = launch(kernel(f"third_{name}", "float *y"), name)
print(json.dumps(told))
"""
)


def _run(
    installed: Installed, environment: Environment, program: str, commands: dict[str, list[str]]
) -> dict[str, Any]:
    libcuda = str(installed.libcuda)
    printed = environment.run("-c", program, json.dumps(commands), PODIUM_NVIDIA_LIBCUDA=libcuda)
    told: dict[str, Any] = json.loads(printed)
    return told


def test_removed_and_put_back_while_a_process_runs(installed: Installed, tmp_path: Path) -> None:
    """CAC-12: what was compiled goes on, what cannot be made any more is an error of podium; put back, all is well."""
    environment = installed.environment.copy(tmp_path)
    names = ("cpu", "nvidia", "serial")
    commands = {
        "uninstall": [*environment.pip_command("uninstall"), *(f"podium-{name}" for name in names)],
        "install": [*environment.pip_command("install"), *(str(installed.wheels[name]) for name in names)],
    }
    told = _run(installed, environment, REMOVED, commands)
    assert told["at first"] == told["again"] == dict.fromkeys(names, "active")
    for name in ("cpu", "serial"):
        assert told[f"{name} before"] == told[f"{name} goes on"] == [[5.0, 6.0], []]
        assert told[f"{name} again"] == [[5.0, 6.0], []]
    assert told["nvidia again"] == [[1.0, 2.0], []]  # the recording driver runs no kernel
    kind, message = told["cpu anew"]
    assert kind == "ToolchainError" and "it was removed while this process runs. Install it again" in message
    values, notices = told["serial anew"]
    assert values == [5.0, 6.0] and len(notices) == 1
    assert "stay on the interpreted level" in notices[0] and "was removed, or is not whole" in notices[0]
    kind, message = told["nvidia, never used"]
    assert kind == "InactiveBackendError" and "podium-nvidia was removed" in message, message
    assert told["chosen"] in ("opencl", "cpu") and "podium-nvidia was removed" in told["why"][0]
    assert told["then"] == {} and told["doctor"] == []
    assert told["serial, rediscovered"][0] == "UnknownBackendError"


UPGRADED = (
    BEGIN
    + """
first = {name: kernel(f"first_{name}", "float *y") for name in ("cpu", "serial")}
for name, made in first.items():
    told[f"{name} before"] = launch(made, name)
pip("upgrade")
for name, made in first.items():
    told[f"{name} goes on"] = launch(made, name)
    told[f"{name} anew"] = launch(kernel(f"other_{name}", "float *y, int a, double b"), name, 1, 2.0)
podium.driver.rediscover()
told["versions"] = {each.name: each.version for each in podium.driver.backends() if each.name in first}
print(json.dumps(told))
"""
)


def _next_version(wheel: Path, folder: Path) -> Path:
    """Make the wheel of another version, in which each file of the package is another one."""
    name = wheel.name.replace("-0.1.0-", "-0.2.0-")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(folder / name, "w") as new:
        for item in old.namelist():
            data = old.read(item)
            if item.endswith((".h", ".hpp", ".cpp", ".c.in")):
                data += b"\n// of the next version\n"
            elif item.endswith("METADATA"):
                data = data.replace(b"Version: 0.1.0", b"Version: 0.2.0")
            if not item.endswith("RECORD"):
                new.writestr(item.replace("-0.1.0.dist-info", "-0.2.0.dist-info"), data)
            else:
                lines = [f"{each},,\n".replace("-0.1.0.dist-info", "-0.2.0.dist-info") for each in old.namelist()]
                new.writestr(item.replace("-0.1.0.dist-info", "-0.2.0.dist-info"), "".join(lines))
    return folder / name


def test_upgraded_while_a_process_runs(installed: Installed, tmp_path: Path) -> None:
    """CAC-12: a process goes on with what it has, builds nothing of two versions, and a new process has the new one."""
    environment = installed.environment.copy(tmp_path / "environment")
    upgraded = [str(_next_version(installed.wheels[name], tmp_path)) for name in ("cpu", "serial")]
    told = _run(installed, environment, UPGRADED, {"upgrade": [*environment.pip_command("install"), *upgraded]})
    for name in ("cpu", "serial"):
        assert told[f"{name} before"] == told[f"{name} goes on"] == [[5.0, 6.0], []]
    kind, message = told["cpu anew"]
    assert kind == "ToolchainError" and "was upgraded or changed since this process began to use it" in message
    values, notices = told["serial anew"]
    assert values == [5.0, 6.0] and "have changed since this process began to use them" in notices[0]
    assert told["versions"] == {"cpu": "0.2.0", "serial": "0.2.0"}
    doctor = json.loads(environment.run("-m", "podium", "doctor", "--json"))
    versions = {each["name"]: (each["version"], each["state"]) for each in doctor["backends"]}
    assert versions["cpu"] == versions["serial"] == ("0.2.0", "active") and doctor["healthy"]
