"""The automatic choice of the active driver, and what is said of the backends that were passed over."""

from __future__ import annotations

import warnings

import pytest
from plugin_distributions import Site

from podium._active import DriverConfig
from podium.errors import (
    AmbiguousBackendError,
    InactiveBackendError,
    NoActiveBackendError,
    PodiumWarning,
)


def test_highest_priority(config: DriverConfig, site: Site) -> None:
    """The active backend with the highest priority is chosen; no lower one is asked (ACT-03, ACT-04, PRF-05)."""
    assert config.resolve().name == config.preferred() == "gpu"
    assert (site.calls("gpu"), site.calls("other"), site.calls("host")) == (["probe", "construct"], [], [])


def test_falls_back(config: DriverConfig, site: Site) -> None:
    """Below an inactive backend the next is asked; the CPU is the last; a clean fallback warns of nothing (ACT-04)."""
    site.install("absent", priority=200, probe="return 'no device node'")
    assert config.resolve().name == "gpu"
    assert (site.calls("absent"), site.calls("host")) == (["probe"], [])


def test_choice_asks_one_thing_only(config: DriverConfig, site: Site) -> None:
    """Choosing calls `inactive_reason` and the constructor; every other method of these drivers raises.

    So nothing is initialised or enumerated by it (ACT-05, ACT-08).
    """
    assert config.resolve() is config.resolve() is config.active
    assert site.calls("gpu") == ["probe", "construct"]


def test_none_active(site: Site) -> None:
    """Without an active backend each one is listed with its distribution and reason (ACT-02)."""
    site.install("absent", probe="return 'no device node /dev/gpu'")
    site.install("raises", distribution="vendor-raises", probe="raise OSError('libvendor.so: bad ELF')")
    site.install("broken", plugin="raise RuntimeError('half installed')")
    site.install("ctor", probe="return None", construct="raise SystemExit('no licence')")
    config = DriverConfig()
    with pytest.raises(NoActiveBackendError) as raised:
        config.resolve()
    assert raised.value.reasons == {
        "absent": ("podium-absent", "no device node /dev/gpu"),
        "broken": ("podium-broken", "importing podium_broken.plugin failed: RuntimeError: half installed"),
        "ctor": ("podium-ctor", "FakeDriver() failed: SystemExit: no licence"),
        "raises": ("vendor-raises", "inactive_reason() failed: OSError: libvendor.so: bad ELF"),
    }
    assert "raises (vendor-raises): inactive_reason() failed: OSError" in str(raised.value)
    assert config.preferred() is None
    assert config.chosen() is None


def test_no_backend_installed(site: Site) -> None:
    """Without any backend the error says what to install (ACT-02)."""
    with pytest.raises(NoActiveBackendError, match=r"No backend is installed. Install one; podium-cpu runs everywhere"):
        DriverConfig().resolve()


def test_tie(config: DriverConfig, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two active backends at the top are an error that says how to choose; choosing ends it (ACT-03)."""
    site.install("gpu2", priority=100)
    with pytest.raises(AmbiguousBackendError, match="PODIUM_BACKEND=gpu") as raised:
        config.resolve()
    assert (raised.value.names, raised.value.priority) == (("gpu", "gpu2"), 100)
    assert config.preferred() is None
    monkeypatch.setenv("PODIUM_BACKEND", "gpu2")
    assert config.resolve().name == "gpu2"


def test_tie_below_the_top(config: DriverConfig, site: Site) -> None:
    """Equal priorities matter neither below the top nor where only one of them is active (ACT-03)."""
    site.install("gpu2", priority=100, probe="return 'no device'")
    site.install("other2")
    assert config.resolve().name == "gpu"


@pytest.mark.parametrize(
    ("probe", "reason"),
    [
        ("raise OSError('bad ELF')", "inactive_reason() failed: OSError: bad ELF"),
        ("raise SystemExit(1)", "inactive_reason() failed: SystemExit: 1"),
        ("return ''", "inactive_reason() returned '', neither a reason nor None"),
        ("return False", "inactive_reason() returned False, neither a reason nor None"),
    ],
)
def test_probe_is_broken(site: Site, probe: str, reason: str) -> None:
    """A probe that raises or answers nonsense is a reason, and costs no other backend (DISC-02, DISC-05)."""
    site.install("bad", priority=100, probe=probe)
    site.install("host", priority=0)
    config = DriverConfig()
    with pytest.warns(PodiumWarning) as caught:
        assert config.resolve().name == "host"
    assert f"bad (podium-bad): {reason}. Repair or remove that" in str(caught[0].message)
    with pytest.raises(InactiveBackendError) as raised:
        config.resolve("bad")
    assert raised.value.reason == reason


def test_probe_keeps_the_traceback(site: Site) -> None:
    """What a probe raised is there in full, on request (DISC-02)."""
    site.install("bad", probe="raise OSError('bad ELF')")
    answer = DriverConfig().backends()[0].probe()
    assert answer.state == "failed"
    assert answer.traceback is not None
    assert "podium_bad" in answer.traceback
    assert "bad ELF" in answer.traceback


def test_reason_is_one_line(site: Site) -> None:
    """A reason over several lines is put into one."""
    site.install("absent", probe="return 'no device:\\n  none'")
    assert [backend.reason() for backend in DriverConfig().backends()] == ["no device: none"]


def test_warns_once(site: Site) -> None:
    """One warning, at the caller's own line, when broken backends are passed over for a lesser one (DISC-06)."""
    site.install("bad", plugin="raise OSError('half installed')")
    site.install("worse", plugin="raise OSError('not installed at all')")
    site.install("host", priority=0)
    config = DriverConfig()
    assert config.preferred() == "host"
    with pytest.warns(PodiumWarning, match="podium uses backend 'host', because") as caught:
        assert config.active.name == "host"
    assert len(caught) == 1
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert "bad (podium-bad)" in text
    assert "half installed" in text
    assert "worse (podium-worse)" in text
    assert text.endswith("or leave it out with PODIUM_DISABLED_PLUGINS=bad,worse")
    config.reset_active()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert config.resolve().name == "host"


def test_no_warning_beside_a_gpu(site: Site, config: DriverConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken plug-in that would not have been preferred anyway, or is disabled, is not warned of (DISC-06)."""
    site.install("bad", plugin="raise OSError('half installed')")
    site.install("low", priority=10, probe="raise OSError")
    assert config.resolve().name == "gpu"
    site.uninstall("gpu")
    site.uninstall("other")
    monkeypatch.setenv("PODIUM_DISABLED_PLUGINS", "bad,low")
    config.rediscover()
    assert config.resolve().name == "host"


def test_warning_as_error_does_not_stick(site: Site) -> None:
    """Where warnings are errors the choice is made all the same, and holds from the next time on (DISC-06)."""
    site.install("bad", plugin="raise OSError")
    site.install("host", priority=0)
    config = DriverConfig()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PodiumWarning):
            config.resolve()
    assert config.resolve().name == "host"


def test_negative_answer_is_not_kept(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that comes up later is chosen then; a choice that was made stays."""
    site.install("late", probe="return os.environ.get('PODIUM_TEST_REASON')")
    config = DriverConfig()
    monkeypatch.setenv("PODIUM_TEST_REASON", "the device is asleep")
    for _ in range(2):
        with pytest.raises(NoActiveBackendError, match="the device is asleep"):
            config.resolve()
    monkeypatch.delenv("PODIUM_TEST_REASON")
    assert config.resolve().name == "late"
    monkeypatch.setenv("PODIUM_TEST_REASON", "the device is asleep")
    assert config.resolve().name == config.active.name == "late"
    config.reset_active()
    with pytest.raises(NoActiveBackendError):
        config.resolve()


def test_choice_during_an_import_is_not_kept(site: Site) -> None:
    """A plug-in that asks for the active driver while it is loaded does not fix the choice for others (DISC-09)."""
    site.install("host", priority=0)
    (site.folder / "podium_test_asks.py").write_text("")
    import podium_test_asks  # type: ignore[import-not-found]

    told: list[str] = []
    config = DriverConfig()
    podium_test_asks.ask = lambda: told.append(config.active.name)
    package = site.install("gpu", priority=100)
    path = site.folder / package / "driver.py"
    path.write_text("import podium_test_asks\npodium_test_asks.ask()\n" + path.read_text())
    assert config.resolve().name == "gpu"
    assert told == ["host"]


def test_choice_by_a_backend_that_is_imported_directly(site: Site) -> None:
    """A backend's own module that asks for the active driver while imported does not fix the choice (DISC-09)."""
    site.install("host", priority=0)
    (site.folder / "podium_test_asks.py").write_text("")
    import podium_test_asks

    told: list[str] = []
    config = DriverConfig()
    podium_test_asks.ask = lambda: told.append(config.active.name)
    site.install("gpu", priority=100, files={"__init__.py": "import podium_test_asks; podium_test_asks.ask()"})
    __import__("podium_gpu")
    assert told == ["host"]
    assert config.chosen() is None
    assert config.active.name == "gpu"


def test_probe_that_asks_for_the_active_driver(site: Site) -> None:
    """A probe that asks what is active gets an answer without itself, and its own counts afterwards."""
    site.install("host", priority=0)
    (site.folder / "podium_test_asks.py").write_text("")
    import podium_test_asks

    config = DriverConfig()
    told: list[str] = []
    podium_test_asks.ask = lambda: told.append(config.active.name)
    site.install("gpu", priority=100, probe="import podium_test_asks; podium_test_asks.ask()")
    assert config.resolve().name == "gpu"
    assert told == ["host"]
