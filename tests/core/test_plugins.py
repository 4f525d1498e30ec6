"""Discovery: each plug-in is loaded in its own guard, on first need, and its failure is kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from plugin_distributions import PLUGIN, Site, failure, loaded, site_at

from podium._import_aware_lock import ImportAwareLock
from podium._plugins import BY_HAND, Backend, Discovery
from podium.errors import BackendError, PluginError

pytestmark = pytest.mark.usefixtures("well")


@pytest.fixture
def discovery(site: Site) -> Discovery:
    return Discovery(ImportAwareLock())


def test_healthy_backend(site: Site, discovery: Discovery) -> None:
    """A backend knows its name, distribution, version, module, API and driver class (DISC-03)."""
    site.install("alpha", distribution="vendor-alpha", version="2.5")
    alpha = loaded(discovery, "alpha")
    assert (alpha.distribution, alpha.version, alpha.module) == ("vendor-alpha", "2.5", "podium_alpha.plugin")
    assert (alpha.state, alpha.failure, alpha.traceback, alpha.api) == ("ready", None, None, 1)
    assert alpha.driver_class is sys.modules["podium_alpha.driver"].FakeDriver
    assert alpha.priority == 50
    assert alpha.reason() is None


def test_folders_are_not_backends(site: Site, discovery: Discovery) -> None:
    """A package without an entry point of an installed distribution is no backend (DISC-03)."""
    site.install("left")
    (site.folder / "podium_left-1.0.dist-info" / "entry_points.txt").unlink()
    assert discovery.names() == ["well"]


def test_disabled(site: Site, discovery: Discovery, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that PODIUM_DISABLED_PLUGINS names is listed and not imported (DISC-08)."""
    site.install("off", plugin="raise OSError")
    monkeypatch.setenv("PODIUM_DISABLED_PLUGINS", " off , other")
    monkeypatch.setenv("PODIUM_STRICT_PLUGINS", "1")
    off = loaded(discovery, "off")
    assert (off.state, off.failure) == ("disabled", "disabled by PODIUM_DISABLED_PLUGINS")
    assert off.reason() == off.failure
    assert "podium_off" not in sys.modules


def test_strict(site: Site, discovery: Discovery, monkeypatch: pytest.MonkeyPatch) -> None:
    """For plug-in authors the first failure is raised, from the original error, each time (DISC-08)."""
    site.install("bad", plugin="raise OSError('no such thing')")
    monkeypatch.setenv("PODIUM_STRICT_PLUGINS", "1")
    for _ in range(2):
        with pytest.raises(PluginError, match=r"Plug-in 'bad' of podium-bad failed to load: .*no such thing") as raised:
            discovery.backends()
        assert isinstance(raised.value.__cause__, OSError)
    well = discovery.backend("well")
    assert well is not None
    assert well.state == "ready"


def test_two_distributions_claim_one_name(site: Site, discovery: Discovery) -> None:
    """Neither of two distributions with one backend name wins silently (DISC-12)."""
    site.install("twice", distribution="vendor-one", version="1.5")
    site.add_metadata("vendor-two", "2.5", "[podium]\ntwice = podium_twice.plugin\n")
    twice = loaded(discovery, "twice")
    assert failure(discovery, "twice") == "it is provided by vendor-one 1.5 and by vendor-two 2.5; remove all but one"
    assert (twice.distribution, twice.version) == ("vendor-one and vendor-two", "1.5 and 2.5")
    assert "podium_twice" not in sys.modules


def test_one_distribution_claims_a_name_twice(site: Site, discovery: Discovery) -> None:
    """A distribution with two entry points of one name is told with both modules, neither of which is imported."""
    lines = "[podium]\ntwice = podium_twice.plugin\ntwice = podium_twice.other\n"
    site.install("twice", distribution="vendor-one", version="1.5", entry_points=lines)
    assert failure(discovery, "twice") == (
        "vendor-one 1.5 has more than one entry point of this name: twice = podium_twice.plugin and "
        "twice = podium_twice.other; install another version of it"
    )
    assert loaded(discovery, "twice").distribution == "vendor-one"
    assert "podium_twice" not in sys.modules


def test_one_distribution_seen_twice(
    site: Site, discovery: Discovery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same distribution in two folders of sys.path is one backend, from the first (DISC-12)."""
    site.install("same", version="1.0")
    with site_at(tmp_path / "in front") as front:
        front.install("same", version="2.0")
        with monkeypatch.context() as patch:
            patch.setattr(sys, "path", [*sys.path, str(front.folder)])
            same = loaded(discovery, "same")
        assert (same.state, same.version) == ("ready", "2.0")
        assert Path(sys.modules["podium_same.driver"].__file__ or "").is_relative_to(front.folder)


def test_one_module_for_two_names(site: Site, discovery: Discovery) -> None:
    """A plug-in whose driver has another name than the entry point fails under that name only."""
    site.install("alpha", entry_points="[podium]\nalpha = podium_alpha.plugin\nbeta = podium_alpha.plugin\n")
    assert "whose name is 'alpha' and not 'beta'" in failure(discovery, "beta")
    assert loaded(discovery, "alpha").state == "ready"


def test_rediscover_sees_changes(site: Site, discovery: Discovery) -> None:
    """After rediscovery a mended import works, and backends that came or went are seen; before it nothing changes."""
    package = site.install("bad", plugin="raise OSError")
    assert failure(discovery, "bad")
    (site.folder / package / "plugin.py").write_text(dedent(PLUGIN.replace("{package}", package)))
    before = site.folder.stat()
    site.install("late")
    os.utime(site.folder, ns=(before.st_atime_ns, before.st_mtime_ns))  # as a quick installer may leave it
    assert discovery.names() == ["bad", "well"]
    assert failure(discovery, "bad")
    discovery.rediscover()
    assert discovery.names() == ["bad", "late", "well"]
    assert loaded(discovery, "bad").state == loaded(discovery, "late").state == "ready"
    site.uninstall("late")
    late = discovery.backend("late")
    assert late is not None
    assert late.reason() is None
    discovery.rediscover()
    assert discovery.backend("late") is None


def driver_of(site: Site, name: str, discovery: Discovery) -> type:
    backend = loaded(discovery, name)
    assert backend.driver_class is not None
    return backend.driver_class


def test_register_by_hand(site: Site, discovery: Discovery) -> None:
    """A driver class can be registered without an entry point, and unregistered again."""
    hand = type("ByHand", (driver_of(site, "well", discovery),), {"name": "hand", "priority": 7})
    discovery.register(hand)
    discovery.register(hand)
    assert loaded(discovery, "hand") == Backend("hand", BY_HAND, "", hand.__module__, "ready", hand)
    discovery.rediscover()
    assert discovery.names() == ["hand", "well"]
    assert discovery.unregister("hand") is hand
    assert discovery.names() == ["well"]
    assert discovery.backend("hand") is None
    with pytest.raises(BackendError, match="'hand' was not registered by hand; those that were: none"):
        discovery.unregister("hand")


def test_register_by_hand_refuses(site: Site, discovery: Discovery) -> None:
    """What is no usable driver class, or has a name that is taken, is refused at once."""
    base = driver_of(site, "well", discovery)
    discovery.register(type("One", (base,), {"name": "hand"}))
    with pytest.raises(
        PluginError, match=r"'hand' of .registered by hand.*One.* is registered under this name already"
    ):
        discovery.register(type("Two", (base,), {"name": "hand"}))
    with pytest.raises(PluginError, match=r"got <class 'int'>, which is not a subclass of podium.backend.Driver"):
        discovery.register(int)  # type: ignore[arg-type]
    with pytest.raises(PluginError, match="got Three, whose priority is 'high'"):
        discovery.register(type("Three", (base,), {"name": "three", "priority": "high"}))
    assert discovery.names() == ["hand", "well"]


def test_by_hand_against_installed(site: Site, discovery: Discovery, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is also installed is ambiguous, unless the installed one is disabled (DISC-12)."""
    site.install("both", version="3.0")
    hand = type("ByHand", (driver_of(site, "well", discovery),), {"name": "both"})
    discovery.register(hand)
    expected = "it is provided by podium-both 3.0 and by (registered by hand); remove all but one"
    assert failure(discovery, "both") == expected
    monkeypatch.setenv("PODIUM_DISABLED_PLUGINS", "both")
    discovery.rediscover()
    assert loaded(discovery, "both").driver_class is hand


def test_fifty_backends(site: Site, discovery: Discovery) -> None:
    """A backend that is named is loaded alone; loading all imports no vendor library (PRF-05)."""
    site.uninstall("well")
    for index in range(50):
        site.install(f"vendor{index}", files={"runtime.py": "raise AssertionError('the vendor library was imported')"})

    def imported() -> set[str]:
        return {name for name in sys.modules if name.startswith("podium_vendor")}

    assert len(discovery.names()) == 50
    assert imported() == set()
    assert discovery.backend("vendor7") is not None
    assert imported() == {"podium_vendor7", "podium_vendor7.plugin", "podium_vendor7.driver"}
    assert [backend.state for backend in discovery.backends()] == ["ready"] * 50
    assert len(imported()) == 150
    assert not any(site.calls(f"vendor{index}") for index in range(50))
