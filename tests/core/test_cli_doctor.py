"""The doctor: it tells everything that there is to tell, and nothing that is broken can stop it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plugin_distributions import Site, site_at

from podium._active import driver_config
from podium._cache import reset_cache
from podium._cli import main
from podium._cli.report import Report
from podium._kernel import Kernel
from podium.backend import Device
from podium.errors import LoadError, OutOfResourcesError
from podium.testing import FakeDriver

# A driver whose devices can be asked for, on top of what the support module's driver refuses.
WORKING = """
    import podium_{name}.driver as made
    from podium.backend import Device, Target

    class FakeDriver(made.FakeDriver):
        name = {name!r}

        def toolchain(self, language):
            return "vendorcc 12.3\\nfile 1305592"

        def devices(self):
            return [Device(0, "Gizmo 9", Target({name!r}, "g9", 32), (7, 6, 5), (1024, 64, 2), 1024, 65536, 1 << 34)]
"""

PLUGIN = """
    from podium.hookspecs import hookimpl

    PODIUM_API = 1

    @hookimpl
    def podium_register_driver():
        from {package}.working import FakeDriver
        return FakeDriver
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Only what a test installs is installed."""
    with site_at(tmp_path / "site") as site:
        driver_config.rediscover()
        yield site
    driver_config.rediscover()


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(folder))
    reset_cache()
    yield folder
    reset_cache()


def install_working(site: Site, name: str, **options: Any) -> None:
    site.install(name, plugin=PLUGIN, files={"working.py": WORKING.format(name=name)}, **options)


def text(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(["doctor", *words]) == status
    return capsys.readouterr().out


def report(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> dict[str, Any]:
    found = json.loads(text(capsys, "--json", *words, status=status))
    assert isinstance(found, dict)
    assert found["healthy"] is (status == 0)
    return found


def backend(found: dict[str, Any], name: str) -> dict[str, Any]:
    (entry,) = [each for each in found["backends"] if each["name"] == name]
    assert isinstance(entry, dict)
    return entry


def problems(found: dict[str, Any], subject: str) -> list[str]:
    return [each["problem"] for each in found["findings"] if each["subject"] == subject]


def test_every_backend_is_told(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """ACT-02, DISC-01: name, distribution, version, state, priority and the whole reason of each backend are shown."""
    reason = (
        "the driver library libgizmo.so.1 cannot be opened: " + "no such file in any of many folders, " * 10 + "end"
    )
    install_working(site, "good")
    site.install("absent", distribution="vendor-absent", version="2.5", probe=f"return {reason!r}", priority=70)
    site.install("broken", plugin="import gizmo_runtime")
    site.install("raises", probe="raise OSError('bus error')")
    out = text(capsys)
    table = out.partition("Backends")[2].partition("\n\n")[0]
    rows = {line.split()[0]: line for line in table.splitlines() if line.strip()}
    assert rows["absent"].split()[1:5] == ["vendor-absent", "2.5", "inactive", "70"]
    assert rows["absent"].endswith(reason)
    assert "it needs 'gizmo_runtime', which cannot be found" in rows["broken"]
    assert "OSError: bus error" in rows["raises"]
    assert rows["good"].split()[:2] == ["good", "*"]
    assert "chosen: good, since it is the only active one" in out


def test_devices_and_toolchain(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """The devices of an active backend are shown with their limits, and the compiler for each language by its title."""
    install_working(site, "good")
    out = text(capsys)
    for shown in ("Gizmo 9", "good:g9:32", "16.0 GiB", "64.0 KiB", "1024x64x2", "7x6x5", "vendorcc 12.3"):
        assert shown in out
    assert "1305592" not in out
    found = backend(report(capsys), "good")
    assert found["toolchains"] == {"cuda": {"value": "vendorcc 12.3\nfile 1305592", "error": None}}
    (device,) = found["devices"]["value"]
    assert set(Device.__dataclass_fields__) == set(device)
    assert (device["name"], device["target"], device["max_grid"]) == ("Gizmo 9", "good:g9:32", [7, 6, 5])


def install_with_versions(site: Site, code: str) -> None:
    install_working(site, "good")
    path = site.folder / "podium_good" / "working.py"
    path.write_text(path.read_text() + f"\n    def versions(self):\n        {code}\n")


def test_versions(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """The versions that an active backend knows are shown."""
    install_with_versions(site, 'return {"driver": "580.95", "toolkit": "13.0"}')
    assert "good: driver 580.95, toolkit 13.0" in text(capsys)
    versions = backend(report(capsys), "good")["versions"]
    assert versions == {"value": {"driver": "580.95", "toolkit": "13.0"}, "error": None}


def test_versions_that_fail(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """A backend that fails at telling its versions is a finding."""
    install_with_versions(site, "raise OSError('gone')")
    assert any("does not tell its versions" in problem for problem in problems(report(capsys), "backend good"))


@pytest.mark.parametrize("level", ["devices", "toolchain"])
@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("__import__('podium.errors').errors.LoadError('the device is lost; reboot')", "the device is lost; reboot"),
        ("ZeroDivisionError('oops')", "failed: ZeroDivisionError: oops. This is a bug of the backend"),
        ("SystemExit(4)", "failed: SystemExit: 4. This is a bug of the backend"),
    ],
)
def test_a_driver_that_raises(
    level: str, error: str, shown: str, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a driver raises is told as a finding, and all else is still there."""
    install_working(site, "good")
    path = site.folder / "podium_good" / "working.py"
    path.write_text(path.read_text() + f"\n    def fail(self, *args):\n        raise {error}\n\n    {level} = fail\n")
    found = report(capsys, status=1)  # without devices or a compiler the backend is of no use
    answer = backend(found, "good")["devices"] if level == "devices" else backend(found, "good")["toolchains"]["cuda"]
    assert answer["value"] is None
    assert answer["error"].endswith(shown)
    assert any(shown in problem for problem in problems(found, "backend good"))
    assert shown in text(capsys, status=1)
    assert found["healthy"] is False


@pytest.mark.parametrize("command", ["bench", "demo"])
@pytest.mark.parametrize(
    ("devices", "told"),
    [
        ("[][0]", "backend 'good': .* failed: IndexError: list index out of range. This is a bug of the backend"),
        ("[]", "there is no device 0; backend 'good' has none"),
    ],
)
def test_commands_that_need_a_device(
    command: str, devices: str, told: str, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command that cannot go on without a device ends with one line that names the backend, and no traceback."""
    install_working(site, "good")
    path = site.folder / "podium_good" / "working.py"
    path.write_text(
        f"{path.read_text()}\n    def devices(self):\n        return {devices}\n"
        f"\n    def current_device(self):\n        return 0\n"
    )
    assert main([command]) == 1
    assert re.fullmatch(f"podium {command}: .*{told}\n", capsys.readouterr().err)


def test_a_driver_that_returns_nonsense(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Devices that are none are a bug of the backend, and no crash."""
    install_working(site, "good")
    path = site.folder / "podium_good" / "working.py"
    path.write_text(path.read_text() + "\n    def devices(self):\n        return [7, None]\n")
    assert "This is a bug of the backend" in backend(report(capsys, status=1), "good")["devices"]["error"]


def test_a_driver_that_cannot_be_made(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """A backend that says it is active, but whose driver cannot be made, is failed; there is then none to use."""
    site.install("good", construct="raise RuntimeError('no context')")
    found = report(capsys, status=1)
    assert backend(found, "good")["state"] == "failed"
    assert "no context" in backend(found, "good")["reason"]
    assert found["choice"]["backend"] is None


def test_no_backend_at_all(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Without any backend everything else is still told, and the exit code is 1."""
    out = text(capsys, status=1)
    assert "none is installed" in out
    assert "podium-cpu runs everywhere" in out.partition("What to do")[2]
    for shown in ("C compiler", "cache", "launchers"):
        assert shown in out


def test_no_active_backend(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """ACT-02: with no active backend the reasons of all stand under what to do."""
    site.install("gpu", probe="return 'there is no /dev/gizmo0'")
    found = report(capsys, status=1)
    assert found["choice"]["backend"] is None
    (problem,) = problems(found, "choice of the backend")
    assert "there is no /dev/gizmo0" in problem


def test_why_it_is_chosen(site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """ACT-03: the doctor says whether priority or PODIUM_BACKEND decided, and shows a tie as what is wrong."""
    install_working(site, "lesser", priority=10)
    install_working(site, "greater", priority=60)
    choice = report(capsys)["choice"]
    assert choice["backend"] == "greater"
    assert "60" in choice["why"] and "lesser 10" in choice["why"]
    monkeypatch.setenv("PODIUM_BACKEND", "lesser")
    driver_config.reset_active()
    assert report(capsys)["choice"] == {"backend": "lesser", "why": "PODIUM_BACKEND names it"}
    monkeypatch.setenv("PODIUM_BACKEND", "leser")
    driver_config.reset_active()
    found = report(capsys, status=1)
    assert "Did you mean 'lesser'?" in found["choice"]["why"]
    monkeypatch.delenv("PODIUM_BACKEND")
    driver_config.reset_active()
    install_working(site, "equal", priority=60)
    driver_config.rediscover()
    assert "are all active with priority 60" in report(capsys, status=1)["choice"]["why"]


def test_a_broken_backend_is_a_finding(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """DISC-02, DISC-06: a broken plug-in is told with advice; its traceback is in the JSON, and shown on request."""
    install_working(site, "good")
    site.install("bad", plugin="raise OSError('libgizmo.so: undefined symbol')")
    found = report(capsys)
    (finding,) = [each for each in found["findings"] if each["subject"] == "backend bad"]
    assert "undefined symbol" in finding["problem"]
    assert "PODIUM_DISABLED_PLUGINS=bad" in finding["action"]
    assert backend(found, "bad")["traceback"].startswith("Traceback")
    assert "Traceback" not in text(capsys)
    assert "Traceback (most recent call last)" in text(capsys, "--traceback")


def test_strict_mode_hides_nothing(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DISC-08: with PODIUM_STRICT_PLUGINS a program would fail: that is told, and all backends are listed."""
    install_working(site, "good")
    site.install("bad", plugin="raise OSError('libgizmo.so: undefined symbol')")
    monkeypatch.setenv("PODIUM_STRICT_PLUGINS", "1")
    found = report(capsys, status=1)
    assert "undefined symbol" in found["choice"]["why"]
    assert [each["name"] for each in found["backends"]] == ["bad", "good"]
    assert os.environ["PODIUM_STRICT_PLUGINS"] == "1"


def test_two_distributions_of_one_name(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """DISC-12: distributions that provide the same backend are both named."""
    site.install("twice", distribution="first-twice")
    site.add_metadata("second-twice", "3.0", "[podium]\ntwice = other.plugin\n")
    entry = backend(report(capsys, status=1), "twice")
    assert "first-twice 1.0" in entry["reason"] and "second-twice 3.0" in entry["reason"]


def test_a_disabled_backend(site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that was left out is listed as disabled."""
    install_working(site, "good")
    site.install("out")
    monkeypatch.setenv("PODIUM_DISABLED_PLUGINS", "out")
    assert backend(report(capsys), "out")["state"] == "disabled"


def test_what_plug_ins_print_is_kept_out(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON stays JSON when a plug-in prints while it is looked at."""
    install_working(site, "good")
    path = site.folder / "podium_good" / "__init__.py"
    path.write_text("print('Welcome to Gizmo!')\n")
    assert main(["doctor", "--json"]) == 0
    streams = capsys.readouterr()
    assert json.loads(streams.out)["choice"]["backend"] == "good"
    assert "Welcome to Gizmo!" in streams.err


VALUES = {
    "PODIUM_LAUNCHER": "fast",
    "PODIUM_CACHE_SIZE": "plenty",
    "PODIUM_CACHE_TRUSTED": "maybe",
    "PODIUM_DEBUG": "maybe",
    "PODIUM_STRICT_PLUGINS": "maybe",
}


@pytest.mark.parametrize("variable", VALUES)
def test_a_setting_that_means_nothing(variable: str, tmp_path: Path) -> None:
    """A variable with an impossible value is a finding, in a fresh process, and the report is whole."""
    code = "import sys; from podium._cli import main; sys.exit(main(['doctor', '--json']))"
    with site_at(tmp_path / "site") as site:
        install_working(site, "good")
        done = site.run(code, **{"PODIUM_CACHE_DIR": str(tmp_path / "cache"), variable: VALUES[variable]})
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    (entry,) = [each for each in found["environment"] if each["name"] == variable]
    assert VALUES[variable].lower() in entry["error"].lower()
    assert any(variable in each["problem"] for each in found["findings"])
    assert [each["name"] for each in found["backends"]] == ["good"]


def test_variables_that_are_set(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables of podium that are set are shown with their meaning; one that does not exist is told, with a guess."""
    install_working(site, "good")
    monkeypatch.setenv("PODIUM_LAUNCHER", "interpreted")
    monkeypatch.setenv("PODIUM_BACKENDS", "good")
    out = text(capsys)
    assert "PODIUM_LAUNCHER=interpreted  (auto (default), generated or interpreted" in out
    assert (
        "podium has no variable PODIUM_BACKENDS, and no installed backend has it; did you mean PODIUM_BACKEND?" in out
    )
    assert "level interpreted" in out


def test_variables_of_backends(site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that a backend lists are shown with their meaning, and near misses are told.

    Those of a backend that lists none, or that is broken, are not judged.
    """
    install_working(site, "good")
    path = site.folder / "podium_good" / "working.py"
    path.write_text(path.read_text() + "\n    environment = {'PODIUM_GOOD_SPEED': 'how fast it is'}\n")
    install_working(site, "my_gpu")
    site.install("bad", plugin="raise OSError('libgizmo.so: undefined symbol')")
    for name in ("GOOD_SPEED", "GOOD_SPED", "GOD_SPEED", "MY_GPU_SPEED", "BAD_SPEED"):
        monkeypatch.setenv(f"PODIUM_{name}", "7")
    monkeypatch.setenv("PODIUM_BACKEND", "good")
    environment = {each["name"]: each for each in report(capsys)["environment"]}
    assert environment["PODIUM_GOOD_SPEED"]["meaning"] == "how fast it is"
    assert [environment[f"PODIUM_{name}"]["error"] for name in ("GOOD_SPEED", "MY_GPU_SPEED", "BAD_SPEED")] == [
        None
    ] * 3
    expected = {
        "PODIUM_GOOD_SPED": "the backend good has no variable PODIUM_GOOD_SPED",
        "PODIUM_GOD_SPEED": "podium has no variable PODIUM_GOD_SPEED, and no installed backend has it",
    }
    for name, error in expected.items():
        assert environment[name]["error"] == f"{error}; did you mean PODIUM_GOOD_SPEED?"


def test_variables_of_the_cpu_backend(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU backend's own variables are no findings, and a misspelt one is."""
    driver = pytest.importorskip("podium_cpu.driver", reason="podium-cpu is not installed").CpuDriver
    values = {"PODIUM_CPU_THREADS": "2", "PODIUM_CPU_ASYNC": "0", "PODIUM_CPU_SANITIZE": ""}
    assert set(values) == set(driver.environment)
    for name, value in {**values, "PODIUM_CPU_THREDS": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PODIUM_BACKEND", "cpu")
    errors = {each["name"]: each["error"] for each in report(capsys)["environment"]}
    assert {name: errors[name] for name in values} == dict.fromkeys(values)
    assert errors["PODIUM_CPU_THREDS"].endswith("did you mean PODIUM_CPU_THREADS?")


def test_no_compiler(site: Site, capsys: pytest.CaptureFixture[str], no_compiler: None) -> None:
    """CC-01: missing compilers are told beforehand, with the variable and what to install; doctor succeeds."""
    install_working(site, "good")
    found = report(capsys)
    for compiler in found["compilers"]:
        assert compiler["command"] is None
        assert "apt install" in compiler["error"]
    assert found["launcher"]["can_generate"] is False
    (problem,) = problems(found, "launchers")
    assert "set CC" in problem
    (problem,) = problems(found, "C++ compiler")
    assert "CXX" in problem
    assert "launches stay on the interpreted level" in text(capsys)


def test_a_compiler_that_does_not_work(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, cache_folder: Path
) -> None:
    """CC-01: a C compiler that is there but fails is found out by really building something."""
    install_working(site, "good")
    compiler = cache_folder.parent / "cc-without-headers"
    compiler.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo halfcc 1.0 && exit 0\n'
        "echo 'x.c:1:1: fatal error: stdint.h: gone'; exit 1\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    found = report(capsys)
    assert found["compilers"][0]["version"] == "halfcc 1.0"
    (problem,) = problems(found, "launchers")
    assert "stdint.h" in problem


def test_compilers(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """The host compilers are shown with command and version, and that launchers can be generated."""
    install_working(site, "good")
    found = report(capsys)
    assert [each["language"] for each in found["compilers"]] == ["c", "c++"]
    assert all(each["command"] and each["version"] for each in found["compilers"])
    assert found["launcher"] == {"level": "auto", "can_generate": True, "reason": None}


def test_cache_health(site: Site, capsys: pytest.CaptureFixture[str], cache_folder: Path) -> None:
    """The cache is shown with folder, mode, entries, bytes and cap."""
    install_working(site, "good")
    cache = report(capsys)["cache"]
    assert (cache["folder"], cache["mode"], cache["reason"]) == (str(cache_folder), "disk", None)
    assert cache["entries"] >= 1
    assert cache["max_bytes"] == 1 << 30
    assert f"cache: {cache_folder}: read and written" in text(capsys)


def test_a_cache_folder_that_others_can_write(
    site: Site, capsys: pytest.CaptureFixture[str], cache_folder: Path
) -> None:
    """CAC-07: a refused cache folder is a finding with its reason, and not only a warning."""
    install_working(site, "good")
    cache_folder.mkdir()
    cache_folder.chmod(0o777)
    found = report(capsys)
    assert found["cache"]["mode"] == "memory"
    (problem,) = problems(found, "cache")
    assert "others can write to it" in problem
    assert "in memory only" in text(capsys)


def test_json_keys_are_documented(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Each key of the JSON object, on every level, stands in the docstring that promises it."""
    install_working(site, "good")
    site.install("bad", plugin="raise OSError")
    documented = Report.as_json.__doc__ or ""

    def check(value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                assert f"``{key}``" in documented or key in ("cuda", "PODIUM_API"), key
                check(inner)
        elif isinstance(value, list):
            for each in value:
                check(each)

    check(report(capsys, "--run", status=1))


def test_python_is_told(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """The versions of podium and of Python are shown."""
    python = report(capsys, status=1)["python"]
    assert python["version"] == ".".join(map(str, sys.version_info[:3]))
    assert python["executable"] == sys.executable


# ---- trial launches ----


def test_trial_launches_on_the_cpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """--run compiles and launches on each device at both levels, checks the result, and leaves the level as it was."""
    pytest.importorskip("podium_cpu", reason="podium-cpu is not installed")
    monkeypatch.setenv("PODIUM_BACKEND", "cpu")
    found = report(capsys, "--run")
    mine = [each for each in found["trials"] if each["backend"] == "cpu"]
    assert [(each["level"], each["outcome"], each["reason"]) for each in mine] == [
        ("interpreted", "passed", None),
        ("generated", "passed", None),
    ]
    assert all(each["seconds"] > 0 for each in mine)
    assert "PODIUM_LAUNCHER" not in os.environ
    assert "passed" in text(capsys, "--run").partition("Trial launches")[2]


def test_a_wrong_result_fails(site: Site, capsys: pytest.CaptureFixture[str], fake: FakeDriver) -> None:
    """A device that launches but computes nothing fails the trial, and the doctor with it."""
    found = report(capsys, "--run", status=1)
    assert {(each["device"], each["level"]) for each in found["trials"]} == {
        (0, "interpreted"),
        (0, "generated"),
        (1, "interpreted"),
        (1, "generated"),
    }
    assert all(each["outcome"] == "failed" and "wrong result" in each["reason"] for each in found["trials"])
    assert "wrong result: element 0 is 1.0" not in found["trials"][0]["reason"]  # that one is right by chance
    assert any("trial launch on fake device 1" in each["subject"] for each in found["findings"])


@pytest.mark.parametrize(
    ("error", "shown"),
    [(LoadError("the code is broken"), "the code is broken"), (ValueError("x"), "bug of the backend")],
)
def test_a_trial_that_raises(
    error: Exception,
    shown: str,
    site: Site,
    capsys: pytest.CaptureFixture[str],
    fake: FakeDriver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A launch that raises fails the trial with its error as the reason."""

    def load(self: FakeDriver, *args: object) -> None:
        raise error

    monkeypatch.setattr(FakeDriver, "load", load)
    found = report(capsys, "--run", status=1)
    assert all(shown in each["reason"] for each in found["trials"])


def test_a_trial_that_does_not_fit(
    site: Site, capsys: pytest.CaptureFixture[str], fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backend that refuses what its limits allow is told so, and nobody is sent to the cache."""

    def check(self: FakeDriver, kernel: str, *args: object) -> None:
        raise OutOfResourcesError(kernel, "something", 2, 1)

    monkeypatch.setattr(FakeDriver, "check", check)
    found = report(capsys, "--run", status=1)
    assert all(each["refused"] and "something is 2" in each["reason"] for each in found["trials"])
    actions = [each["action"] for each in found["findings"] if "trial launch" in each["subject"]]
    assert len(actions) == 4 and all("limits that the backend states" in each for each in actions)
    assert "cache" not in " ".join(actions)


def test_a_trial_at_another_level(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that did not run at the level it was to try has not passed."""
    pytest.importorskip("podium_cpu", reason="podium-cpu is not installed")
    monkeypatch.setenv("PODIUM_BACKEND", "cpu")
    monkeypatch.setattr(Kernel, "level", "interpreted")
    trials = [each for each in report(capsys, "--run", status=1)["trials"] if each["backend"] == "cpu"]
    assert [each["outcome"] for each in trials] == ["passed", "failed"]
    assert trials[1]["reason"] == "it ran at the interpreted level"


@pytest.mark.usefixtures("cold_builds")
def test_a_trial_without_a_compiler(
    site: Site, capsys: pytest.CaptureFixture[str], fake: FakeDriver, no_compiler: None
) -> None:
    """CC-01: without a C compiler the generated level is unavailable, which is no failure of the device."""
    outcomes = {each["level"]: each["outcome"] for each in report(capsys, "--run", status=1)["trials"]}
    assert outcomes == {"interpreted": "failed", "generated": "unavailable"}


def test_no_device_to_try(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is no device, --run says so."""
    out = text(capsys, "--run", status=1)
    assert "none: there is no device" in out


@pytest.mark.parametrize(("variable", "value"), [("PODIUM_CPU_SANITIZE", "nonsense"), ("PODIUM_CPU_THREADS", "many")])
def test_a_variable_that_a_backend_refuses(variable: str, value: str) -> None:
    """What is to be corrected is the variable, and not the backend that cannot be made with it."""
    pytest.importorskip("podium_cpu", reason="podium-cpu is not installed")
    variables = {**os.environ, "PODIUM_BACKEND": "cpu", variable: value}
    command = [sys.executable, "-m", "podium", "doctor"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    advice = done.stdout.partition("What to do")[2]
    assert f"backend cpu: {variable}='{value}' is not valid" in advice and done.returncode == 1
    assert f"correct it, or unset {variable}" in advice and "upgrade, repair" not in advice
