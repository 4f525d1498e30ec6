"""Plug-ins that say by themselves what choosing asks, so that only the driver that is chosen is imported."""

from __future__ import annotations

import re
import sys

import pytest
from plugin_distributions import ANSWERING_PLUGIN, PLUGIN, Site

from podium._active import DriverConfig
from podium.errors import (
    AmbiguousBackendError,
    InactiveBackendError,
    NoActiveBackendError,
    PluginError,
    PodiumWarning,
)

ABSENT = "return 'no device node'"


def answering(
    site: Site,
    name: str,
    priority: object = 50,
    *,
    plugin: str = ANSWERING_PLUGIN,
    probe: str = "return None",
    driver: str | None = None,
) -> None:
    """Install a backend whose plug-in answers; `driver` is the text of the driver's module."""
    files = None if driver is None else {"driver.py": driver}
    site.install(name, plugin=plugin, priority=priority, probe=probe, files=files)


def test_fifty_backends(site: Site) -> None:
    """Of fifty installed backends one driver is imported; of the others the plug-in, and detection if asked (PRF-05)."""
    for index in range(50):
        answering(site, f"vendor{index}", priority=index, probe=ABSENT if index > 45 else "return None")
    config = DriverConfig()
    assert config.resolve().name == "vendor45"
    plugins = {f"vendor{index}.plugin" for index in range(50)}
    asked = {f"vendor{index}.detection" for index in range(45, 50)}
    assert site.imported() == {*plugins, *asked, "vendor45.driver"}
    assert [site.calls(f"vendor{index}") for index in (46, 45, 44)] == [["detect"], ["detect", "construct"], []]


def test_a_named_backend_is_the_only_one_that_is_imported(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a backend that was named the plug-in is asked and then the driver made; no other is looked at (PRF-05)."""
    for index in range(50):
        answering(site, f"vendor{index}")
    monkeypatch.setenv("PODIUM_BACKEND", "vendor7")
    assert DriverConfig().resolve().name == "vendor7"
    assert site.imported() == {"vendor7.plugin", "vendor7.detection", "vendor7.driver"}
    assert site.calls("vendor7") == ["detect", "construct"]


def test_a_named_backend_that_is_inactive(site: Site) -> None:
    """The plug-in's reason is the error; the driver is not imported for it, and may be broken (ACT-02)."""
    answering(site, "gpu", probe=ABSENT, driver="raise OSError('libvendor.so is missing')")
    config = DriverConfig()
    for _ in range(2):
        with pytest.raises(InactiveBackendError, match="no device node"), config.use("gpu"):
            pass
    assert site.imported() == {"gpu.plugin", "gpu.detection"}
    with pytest.raises(InactiveBackendError, match="libvendor.so is missing"):
        config.get("gpu")


def test_older_plugins_are_chosen_as_before(site: Site) -> None:
    """A plug-in that states nothing is asked through its driver, and has its place among the others (DISC-04)."""
    site.install("old", priority=60)
    answering(site, "above", priority=70, probe=ABSENT)
    answering(site, "below", priority=50)
    assert DriverConfig().resolve().name == "old"
    assert site.imported() == {"old.plugin", "old.driver", "above.plugin", "above.detection", "below.plugin"}
    assert site.calls("old") == ["probe", "construct"]


@pytest.mark.parametrize("left_out", ["PODIUM_PRIORITY", "podium_inactive_reason"])
def test_half_an_answer(site: Site, left_out: str) -> None:
    """A plug-in that states its priority or its reason, and not both, is asked through its driver for the other."""
    answering(
        site,
        "half",
        plugin=ANSWERING_PLUGIN.replace(left_out, "something_else").replace("@hookimpl\n    def some", "def some"),
    )
    answering(site, "top", priority=100)
    config = DriverConfig()
    assert config.resolve().name == "top"
    assert "half.driver" in site.imported()
    assert config.resolve("half").priority == 50


def test_the_plugin_says_another_priority_than_the_driver(site: Site) -> None:
    """A priority that is not the driver's is told with both, and costs that backend alone."""
    answering(site, "bad", plugin=ANSWERING_PLUGIN.replace("{priority!r}", "100"))
    answering(site, "host", priority=0)
    config = DriverConfig()
    expected = r"returned FakeDriver, whose priority is 50, and podium_bad.plugin states 100 as PODIUM_PRIORITY"
    with pytest.warns(PodiumWarning, match=expected):
        assert config.resolve().name == "host"
    assert [backend.priority for backend in config.backends()] == [100, 0]


@pytest.mark.parametrize("stated", ["'high'", "True", "1.5", "2147483648"])
def test_the_priority_is_no_integer(site: Site, stated: str) -> None:
    """What is stated as priority and is none is told before the driver is imported."""
    answering(site, "bad", plugin=ANSWERING_PLUGIN.replace("{priority!r}", stated))
    with pytest.raises(
        InactiveBackendError, match=f"plugin states {stated} as PODIUM_PRIORITY, which is no integer of 32 bits"
    ):
        DriverConfig().resolve("bad")
    assert site.imported() == {"bad.plugin"}


STATES = "    PODIUM_PRIORITY ="
NUMBER = "    class Number({base}):\n        def {method}(self, *other): raise ArithmeticError('not today')\n"
RAISES = "looking at what podium_bad.plugin states failed: ArithmeticError: not today"
PLACED = "podium_bad.plugin has put a {} into sys.modules, which is no module"


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        (NUMBER.format(base="", method="__repr__") + STATES + " Number()", RAISES),
        (NUMBER.format(base="int", method="__lt__") + STATES + " Number(50)", RAISES),
        (NUMBER.format(base="", method="__repr__") + "    PODIUM_API = Number()", RAISES),
        (STATES + " 10 ** 5000", "looking at what podium_bad.plugin states failed: ValueError: Exceeds the limit"),
        (
            "    PODIUM_API = 10 ** 5000",
            "looking at what podium_bad.plugin states failed: ValueError: Exceeds the limit",
        ),
        ("    import sys\n    sys.modules[__name__] = None", PLACED.format("NoneType")),
        ("    import sys\n    sys.modules[__name__] = 7", PLACED.format("int")),
    ],
)
def test_what_is_stated_cannot_be_looked_at(
    site: Site, monkeypatch: pytest.MonkeyPatch, plugin: str, reason: str
) -> None:
    """DISC-02: what a plug-in states may fail when it is compared or shown; that costs its own backend alone."""
    monkeypatch.setitem(sys.modules, "podium_bad.plugin", None)  # and puts back what the plug-in has put there
    del sys.modules["podium_bad.plugin"]
    answering(site, "bad", plugin=f"{ANSWERING_PLUGIN}\n{plugin}\n")
    answering(site, "host", priority=0)
    config = DriverConfig()
    with pytest.warns(PodiumWarning, match=re.escape(reason)):
        assert config.resolve().name == "host"
    bad, host = config.backends()
    assert (bad.state, host.state) == ("failed", "ready")


def test_a_module_that_is_kept_from_being_imported(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """DISC-02: None in `sys.modules` makes an import fail; that of a plug-in costs its own backend alone."""
    answering(site, "bad")
    answering(site, "host", priority=0)
    monkeypatch.setitem(sys.modules, "podium_bad.plugin", None)
    with pytest.warns(PodiumWarning, match="import of podium_bad.plugin halted"):
        assert DriverConfig().resolve().name == "host"


@pytest.mark.parametrize(
    ("probe", "reason"),
    [
        ("raise OSError('bad ELF')", "podium_inactive_reason() failed: OSError: bad ELF"),
        ("raise SystemExit(1)", "podium_inactive_reason() failed: SystemExit: 1"),
        ("import vendor_runtime", "it needs 'vendor_runtime', which cannot be found: ModuleNotFoundError: No module"),
        ("return ' '", "podium_inactive_reason() returned ' ', neither a reason nor None"),
        ("return False", "podium_inactive_reason() returned False, neither a reason nor None"),
        (
            "return type('Odd', (), {'__repr__': lambda self: 1 / 0})()",
            "podium_inactive_reason() failed: ZeroDivisionError: division by zero",
        ),
        (
            "return type('Odd', (str,), {'strip': lambda self: 1 / 0})('x')",
            "podium_inactive_reason() failed: ZeroDivisionError: division by zero",
        ),
    ],
)
def test_the_answer_is_broken(site: Site, probe: str, reason: str) -> None:
    """A hook that raises or answers nonsense is that backend's reason, with a warning, and no other's (DISC-02)."""
    answering(site, "bad", priority=100, probe=probe)
    answering(site, "host", priority=0)
    config = DriverConfig()
    with pytest.warns(PodiumWarning) as caught:
        assert config.resolve().name == "host"
    assert f"bad (podium-bad): {reason}" in str(caught[0].message)
    assert "bad.driver" not in site.imported()


def test_an_active_backend_whose_driver_is_broken(site: Site) -> None:
    """The next one is chosen, with a warning that has the driver's error; a clean one of lower priority warns of none."""
    answering(site, "bad", priority=100, driver="raise OSError('libvendor.so: undefined symbol')")
    answering(site, "host", priority=0)
    answering(site, "lower", priority=-1, driver="raise OSError('never imported')")
    config = DriverConfig()
    with pytest.warns(PodiumWarning, match="libvendor.so: undefined symbol") as caught:
        assert config.resolve().name == "host"
    assert "PODIUM_DISABLED_PLUGINS=bad" in str(caught[0].message) and "lower" not in str(caught[0].message)
    with pytest.raises(InactiveBackendError, match="undefined symbol"):
        config.set_active("bad")
    states = {backend.name: (backend.state, backend.priority) for backend in config.backends()}
    assert states == {"bad": ("failed", 100), "host": ("ready", 0), "lower": ("failed", -1)}


def test_a_tie_with_a_broken_driver_is_none(site: Site) -> None:
    """Of two that say they can run, the one whose driver cannot be imported does not count; two sound ones do (ACT-03)."""
    answering(site, "one")
    answering(site, "two", driver="raise OSError('half installed')")
    assert DriverConfig().resolve().name == "one"
    answering(site, "three")
    with pytest.raises(AmbiguousBackendError) as raised:
        DriverConfig().resolve()
    assert raised.value.names == ("one", "three")


def test_none_is_active(site: Site) -> None:
    """Every reason is listed, without a driver's module being imported (ACT-02)."""
    answering(site, "gpu", probe=ABSENT)
    answering(site, "other", probe="raise OSError('bad ELF')")
    with pytest.raises(NoActiveBackendError) as raised:
        DriverConfig().resolve()
    assert raised.value.reasons == {
        "gpu": ("podium-gpu", "no device node"),
        "other": ("podium-other", "podium_inactive_reason() failed: OSError: bad ELF"),
    }
    assert not any(name.endswith(".driver") for name in site.imported())


def test_all_are_loaded_to_be_reported_on(site: Site) -> None:
    """`backends()` has the driver class of each; asked again, each one is asked by its plug-in (ACT-10)."""
    answering(site, "gpu", probe=ABSENT)
    answering(site, "host", priority=0)
    config = DriverConfig()
    assert config.resolve().name == "host"
    assert [backend.state for backend in config.backends()] == ["ready", "ready"]
    assert [backend.reason() for backend in config.backends()] == ["no device node", None]
    assert site.calls("gpu") == ["detect", "detect"]


def test_strict_loads_all(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """With PODIUM_STRICT_PLUGINS the broken driver of a backend that would not be chosen is raised, too (DISC-08)."""
    answering(site, "bad", priority=-5, driver="raise OSError('half installed')")
    answering(site, "host", priority=0)
    monkeypatch.setenv("PODIUM_STRICT_PLUGINS", "1")
    with pytest.raises(PluginError, match="half installed"):
        DriverConfig().resolve()


def test_the_hook_asks_for_itself(site: Site) -> None:
    """A hook that asks which backend is active is told of the others, and is not called again (DISC-09)."""
    answering(site, "host", priority=0)
    answering(site, "asks", probe="import podium; global told; told = podium.driver.preferred(); return 'no device'")
    import podium

    with pytest.MonkeyPatch.context() as patch:
        config = DriverConfig()
        patch.setattr(podium, "driver", config)
        assert config.resolve().name == "host"
        import podium_asks.detection  # type: ignore[import-not-found]

        assert podium_asks.detection.told == "host"


def test_a_misspelt_hook(site: Site) -> None:
    """The hook that was meant is named (DISC-08)."""
    answering(site, "bad", plugin=ANSWERING_PLUGIN.replace("podium_inactive_reason", "podium_inactive_reasons"))
    with pytest.raises(InactiveBackendError, match=r"no hook of podium; did you mean podium_inactive_reason\?"):
        DriverConfig().resolve("bad")


@pytest.mark.parametrize("hook", ["podium_inactive_reason", "podium_register_driver"])
def test_a_hook_without_its_mark(site: Site, hook: str) -> None:
    """A function that has a hook's name and is not marked as one is told, with a warning if it is asked (DISC-08)."""
    unmarked = ANSWERING_PLUGIN.replace(f"    @hookimpl\n    def {hook}", f"    def {hook}")
    assert unmarked != ANSWERING_PLUGIN
    answering(site, "bad", plugin=unmarked)
    answering(site, "host", priority=0)
    config = DriverConfig()
    with pytest.warns(PodiumWarning, match=f"podium_bad.plugin does not mark {hook} with @hookimpl"):
        assert config.resolve().name == "host"
    with pytest.raises(InactiveBackendError, match=f"does not mark {hook} with @hookimpl"):
        config.resolve("bad")


def test_hooks_and_names_of_a_later_podium_are_ignored(site: Site) -> None:
    """A plug-in for several podiums marks hooks that an older one lacks as optional; unknown names are its own (DISC-04)."""
    later = "\n    PODIUM_LATER = 1\n\n    @hookimpl(optionalhook=True)\n    def podium_later(device):\n        pass\n"
    site.install("new", plugin=PLUGIN + later)
    assert DriverConfig().resolve().name == "new"


def test_rediscovery_sees_a_mended_driver(site: Site) -> None:
    """A driver that was mended is imported after `rediscover`, with the plug-in's answers as before."""
    answering(site, "gpu", driver="raise OSError('half installed')")
    config = DriverConfig()
    with pytest.raises(NoActiveBackendError, match="half installed"):
        config.resolve()
    site.uninstall("gpu")
    answering(site, "gpu")
    config.rediscover()
    assert config.resolve().name == "gpu"


def test_an_interrupt_says_which_plug_in_was_asked(site: Site) -> None:
    """Nothing guards against a plug-in that hangs; Ctrl-C ends that, and says whose it was and how to leave it out."""
    answering(site, "hangs", probe="raise KeyboardInterrupt  # the user has waited long enough")
    with pytest.raises(KeyboardInterrupt) as caught:
        DriverConfig().resolve()
    said = "while backend 'hangs' of podium-hangs was asked if it can run; PODIUM_DISABLED_PLUGINS=hangs leaves it out"
    assert str(caught.value) == said
