"""Loading of one plug-in: whatever it does wrong is its own failure, told in one line and kept in full."""

from __future__ import annotations

import sys

import pytest
from plugin_distributions import PLUGIN, Site, failure, loaded

from podium._import_aware_lock import ImportAwareLock
from podium._plugin_loading import failure_text
from podium._plugins import Discovery

pytestmark = pytest.mark.usefixtures("well")


@pytest.fixture
def discovery(site: Site) -> Discovery:
    return Discovery(ImportAwareLock())


def test_package_is_absent(site: Site, discovery: Discovery) -> None:
    """Metadata without its package is recorded as such (DISC-01)."""
    site.add_metadata("podium-gone", "1.0", "[podium]\ngone = podium_gone.plugin\n")
    text = failure(discovery, "gone")
    assert text == "its package is not importable: ModuleNotFoundError: No module named 'podium_gone'"


def test_module_of_the_package_is_absent(site: Site, discovery: Discovery) -> None:
    """A package of which a part is missing is not importable either (DISC-01)."""
    package = site.install("half")
    (site.folder / package / "driver.py").unlink()
    assert "its package is not importable" in failure(discovery, "half")
    assert "podium_half.driver" in failure(discovery, "half")


@pytest.mark.parametrize("place", ["plugin.py", "driver.py"])
def test_dependency_is_absent(site: Site, discovery: Discovery, place: str) -> None:
    """A missing dependency of a package that is there is named, wherever it is imported (DISC-01)."""
    package = site.install("needy")
    path = site.folder / package / place
    path.write_text("import vendor_runtime.api\n" + path.read_text())
    assert "it needs 'vendor_runtime', which cannot be found" in failure(discovery, "needy")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            "raise OSError('libvendor.so: undefined symbol: vendorInit')",
            "OSError: libvendor.so: undefined symbol: vend",
        ),
        ("raise RuntimeError('one\\n  two')", "RuntimeError: one two"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("raise SystemExit", "SystemExit"),
        ("class Panic(BaseException): pass\nraise Panic('out of cheese')", "Panic: out of cheese"),
        ("def f(:", "SyntaxError: "),
        ("assert False", "AssertionError"),
        ("raise type('Mute', (Exception,), {'__str__': lambda self: 1/0})()", "Mute: (the text of this error cannot"),
    ],
)
def test_import_raises(site: Site, discovery: Discovery, body: str, text: str) -> None:
    """Whatever importing a plug-in raises is its own failure, told in one line and kept in full (DISC-02, DISC-10)."""
    site.install("bad", plugin=body)
    assert failure(discovery, "bad").startswith(f"importing podium_bad.plugin failed: {text}")
    kept = loaded(discovery, "bad").traceback
    assert kept is not None
    assert "podium_bad" in kept
    assert kept.startswith("Traceback")


def test_interrupt_passes(site: Site, discovery: Discovery) -> None:
    """An interrupt by the user during an import is no failure of the plug-in, and discovery works afterwards."""
    site.install(
        "slow",
        plugin=PLUGIN + "\n    import builtins\n    if not hasattr(builtins, 'podium_test_ran'):"
        "\n        builtins.podium_test_ran = True\n        raise KeyboardInterrupt\n",
    )
    import builtins

    try:
        with pytest.raises(KeyboardInterrupt, match="^while the plug-in of backend 'slow' was loaded; PODIUM_DISABLED"):
            discovery.backend("slow")
        assert loaded(discovery, "slow").state == "ready"
    finally:
        del builtins.podium_test_ran  # type: ignore[attr-defined]


def test_original_error_is_in_the_message(site: Site, discovery: Discovery) -> None:
    """An error that was replaced by a generic one is told, too (DISC-10)."""
    site.install(
        "wrapped",
        plugin="""
        try:
            raise OSError("libvendor.so: undefined symbol: vendorInit")
        except OSError as error:
            raise ImportError("cannot load the backend") from error
        """,
    )
    text = failure(discovery, "wrapped")
    assert "ImportError: cannot load the backend <- OSError: libvendor.so: undefined symbol: vendorInit" in text


def test_failure_text_of_a_loop() -> None:
    """Errors that are each other's context are told once."""
    first, second = ValueError("first"), ValueError("second")
    first.__context__, second.__context__ = second, first
    assert failure_text(first) == "ValueError: first <- ValueError: second"


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("", "podium_bad.plugin states no PODIUM_API; podium 0.1.0 speaks plug-in API 1. Upgrade vendor-bad"),
        (
            "PODIUM_API = 99",
            "vendor-bad 7.0 needs a newer podium: it speaks plug-in API 99, but podium 0.1.0 speaks plug-in API 1. "
            "Upgrade podium",
        ),
        (
            "PODIUM_API = 0",
            "vendor-bad 7.0 speaks plug-in API 0, but podium 0.1.0 speaks plug-in API 1. Upgrade vendor-bad",
        ),
        ("PODIUM_API = '1'", "podium_bad.plugin states '1' as PODIUM_API, which is no integer"),
        ("PODIUM_API = True", "podium_bad.plugin states True as PODIUM_API, which is no integer"),
    ],
)
def test_api_version(
    site: Site, discovery: Discovery, monkeypatch: pytest.MonkeyPatch, stated: str, expected: str
) -> None:
    """Another plug-in API is told with both versions and the package to change, before anything is called (DISC-04)."""
    monkeypatch.setattr("podium._version.__version__", "0.1.0")
    plugin = PLUGIN.replace("PODIUM_API = 1", stated)
    site.install("bad", distribution="vendor-bad", version="7.0", plugin=plugin)
    assert failure(discovery, "bad").startswith(expected)
    assert "podium_bad.driver" not in sys.modules


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("podium_register_driver", "podium_registr_driver", "implements podium_registr_driver, which is no hook"),
        ("driver():", "driver(name):", "registering its hooks failed: PluginValidationError: Plugin 'bad' for hook"),
        ("    @hookimpl\n", "", "does not mark podium_register_driver with @hookimpl"),
        ("podium_register_driver", "register", "implements register, which is no hook"),
        ("@hookimpl\n    def podium_register_driver", "def unrelated", "has no podium_register_driver"),
        ("@hookimpl", "@hookimpl(wrapper=True)", "registering its hooks failed"),
        ("return FakeDriver", "yield FakeDriver", "podium_register_driver() returned <generator"),
        ("return FakeDriver", "raise SystemExit('no licence')", "podium_register_driver() failed: SystemExit: no lice"),
        ("return FakeDriver", "return None", "podium_register_driver() returned None, which is not a subclass of"),
        (
            "return FakeDriver",
            "return 'FakeDriver'",
            "returned 'FakeDriver', which is not a subclass of podium.backend",
        ),
        ("return FakeDriver", "return FakeDriver()", "which is not a subclass of podium.backend.Driver"),
        ("return FakeDriver", "return int", "returned <class 'int'>, which is not a subclass of podium.backend.Driver"),
    ],
)
def test_hooks_do_not_fit(site: Site, discovery: Discovery, old: str, new: str, expected: str) -> None:
    """A misspelt hook, wrong arguments, or a wrong result is the plug-in's own failure (DISC-08)."""
    assert old in PLUGIN
    site.install("bad", plugin=PLUGIN.replace(old, new))
    assert expected in failure(discovery, "bad")


def test_half_way_through_registration(site: Site, discovery: Discovery) -> None:
    """Of a plug-in that has a good hook and a bad one nothing is kept, and its good hook is not called (DISC-08)."""
    site.install("bad", plugin=PLUGIN + "\n    @hookimpl\n    def podium_register_drivers():\n        pass\n")
    assert "podium_register_drivers, which is no hook of podium; did you mean" in failure(discovery, "bad")
    assert "podium_bad.driver" not in sys.modules


def test_two_hooks(site: Site, discovery: Discovery) -> None:
    """A plug-in registers one driver."""
    again = "\n    @hookimpl(specname='podium_register_driver')\n    def again():\n        pass\n"
    site.install("bad", plugin=PLUGIN + again)
    assert "must have one podium_register_driver" in failure(discovery, "bad")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("FakeDriver.name = 'other'", "FakeDriver, whose name is 'other' and not 'bad', as the backend's is"),
        ("del FakeDriver.name", "FakeDriver, which does not set name"),
        ("FakeDriver.priority = 'high'", "FakeDriver, whose priority is 'high', which is no integer"),
        (
            "FakeDriver.environment = {'SPEED': ''}",
            "FakeDriver, whose environment {'SPEED': ''} is not texts by names in PODIUM_",
        ),
        ("FakeDriver.priority = True", "FakeDriver, whose priority is True, which is no integer"),
        ("del FakeDriver.priority, FakeDriver.launcher_cls", "FakeDriver, which does not set priority, launcher_cls"),
        ("FakeDriver.launcher_cls = int", "FakeDriver, whose launcher_cls <class 'int'> is no subclass of Launcher"),
        ("FakeDriver.launcher_cls = 5", "FakeDriver, whose launcher_cls 5 is no subclass of Launcher"),
        ("FakeDriver = type('Bare', (Driver,), {'load': print})", "Bare, which lacks allocate, compile, copy, "),
    ],
)
def test_driver_class_does_not_fit(site: Site, discovery: Discovery, change: str, expected: str) -> None:
    """A driver class that podium could not work with is told with what is wrong about it."""
    package = site.install("bad")
    path = site.folder / package / "driver.py"
    path.write_text(path.read_text() + change + "\n")
    assert failure(discovery, "bad").startswith(f"podium_register_driver() returned {expected}")


@pytest.mark.parametrize(
    "line", ["bad", "bad = ", "bad = podium_bad.plugin:thing", "bad = podium bad", "bad = .plugin"]
)
def test_entry_point_is_malformed(site: Site, discovery: Discovery, line: str) -> None:
    """An entry point that names no module is its own failure."""
    site.install("bad", entry_points=f"[podium]\n{line}\n")
    text = failure(discovery, "bad")
    assert text.startswith("its entry point 'bad")
    assert text.endswith("does not name a module")
