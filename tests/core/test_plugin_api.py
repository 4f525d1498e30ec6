"""The versions of the plug-in API: older plug-ins go on working, newer ones say what they need, and C says the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from plugin_distributions import PLUGIN, Site

from podium import _plugin_api
from podium._extension import INCLUDE_DIR
from podium._plugin_api import ADAPTATIONS, spoken
from podium.backend import HostCompiler
from podium.errors import CompileError

# A podium of the future: version 2 has a method that version 1 had not, and version 3 calls it otherwise.
FUTURE = """
import json, warnings
from podium import _plugin_api
_plugin_api.API_VERSION = 3

def to_second(driver_class):
    return type(driver_class.__name__, (driver_class,), {"second": lambda self: "second"})

def to_third(driver_class):
    if hasattr(driver_class, "third"):
        return driver_class
    return type(driver_class.__name__, (driver_class,), {"third": lambda self: "third, by " + self.second()})

_plugin_api.ADAPTATIONS.update({
    1: _plugin_api.Adaptation(to_second, until="0.7"),
    2: _plugin_api.Adaptation(to_third, until="0.9"),
})
import podium

def use(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            with podium.use(name):
                said = podium.driver.resolve().third()
    return said, [(each.category.__name__, str(each.message)) for each in caught]
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Backends of five versions of the plug-in API, all of which can run."""
    site = Site(tmp_path / "site")
    second, third = ("\n    FakeDriver.second = lambda self: 'its own'", "\n    FakeDriver.third = lambda self: 'own'")
    for name, version, more in (
        ("zero", 0, ""),
        ("one", 1, ""),
        ("two", 2, second),
        ("three", 3, second + third),
        ("four", 4, ""),
    ):
        plugin = PLUGIN.replace("PODIUM_API = 1", f"PODIUM_API = {version}")
        plugin = plugin.replace("\n        return", f"{more.replace('    Fake', '        Fake')}\n        return")
        site.install(name, plugin=plugin, priority=version)
        with open(site.folder / f"podium_{name}-1.0.dist-info" / "METADATA", "a") as metadata:
            metadata.write(f"Requires-Dist: numpy\nRequires-Dist: podium>=0.{version + 4}; python_version > '3'\n")
    return site


def test_an_older_plug_in_goes_on_working(site: Site) -> None:
    """DISC-04: a backend of an older plug-in API is adapted, version by version, and says once until when that is so."""
    done = site.run(FUTURE + "print(json.dumps([use(name) for name in ('one', 'two', 'three')]))\n")
    assert done.returncode == 0, done.stderr
    one, two, three = json.loads(done.stdout)
    text = "Backend '{0}' (podium-{0} 1.0): it speaks plug-in API {1}, which podium {2} will no longer speak. Upgrade podium-{0}"
    assert one == ["third, by second", [["PodiumDeprecationWarning", text.format("one", 1, "0.7")]]]
    assert two == ["third, by its own", [["PodiumDeprecationWarning", text.format("two", 2, "0.9")]]]
    assert three == ["own", []]


def test_the_doctor_tells_what_is_too_old_what_is_too_new_and_what_is_about_to_go(site: Site) -> None:
    """DISC-04: a plug-in API that is not spoken is the backend's reason, and one that will not be is among what to do."""
    done = site.run(
        FUTURE
        + "podium._version.__version__ = '0.5'\n"
        + "import sys; from podium._cli import main; sys.exit(main(['doctor', '--json']))\n"
    )
    report = json.loads(done.stdout)
    reasons = {each["name"]: each["reason"] for each in report["backends"]}
    speaks = "but podium 0.5 speaks plug-in API 1 and 2 and 3"
    assert reasons == {
        "zero": f"podium-zero 1.0 speaks plug-in API 0, {speaks}. Upgrade podium-zero",
        "one": None,
        "two": None,
        "three": None,
        "four": f"podium-four 1.0 needs podium>=0.8: it speaks plug-in API 4, {speaks}. Upgrade podium",
    }
    ends = [each for each in report["findings"] if "no longer" in each["problem"]]
    assert [(each["subject"], each["problem"], each["action"]) for each in ends] == [
        ("backend one", "it speaks plug-in API 1, which podium 0.7 will no longer speak", "upgrade podium-one"),
        ("backend two", "it speaks plug-in API 2, which podium 0.9 will no longer speak", "upgrade podium-two"),
    ]


def test_a_gap_ends_what_is_spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version from which nothing leads on is not spoken, whatever there is before it."""
    monkeypatch.setattr(_plugin_api, "API_VERSION", 5)
    for version in (2, 4):
        monkeypatch.setitem(ADAPTATIONS, version, ADAPTATIONS.get(1))
    assert list(spoken()) == [4, 5]


def template(states: str) -> str:
    return f'{states}#define PODIUM_HOST_MEMORY 0\n#include "podium_lock.h"\n'


def test_the_c_of_a_backend_states_a_version_that_the_headers_have() -> None:
    """A template without PODIUM_API, or with one that podium does not speak, is refused by the compiler in these words."""
    header = (INCLUDE_DIR / "podium_launch.h").read_text()
    numbers = dict(re.findall(r"#define (PODIUM_(?:OLDEST_)?API_VERSION) (\d+)", header))
    versions = spoken()
    assert numbers == {"PODIUM_API_VERSION": str(versions[-1]), "PODIUM_OLDEST_API_VERSION": str(versions[0])}
    compiler = HostCompiler.find("c")
    flags = ["-E", "-std=c11", f"-I{INCLUDE_DIR}", "-DPODIUM_PYTHON_MINOR=13"]
    for version in versions:
        compiler.run({"launch.c": template(f"#define PODIUM_API {version}\n")}, "launch.c", flags)
    for states, text in (
        ("", "#define PODIUM_API 1, before the first include"),
        (f"#define PODIUM_API {versions[-1] + 1}\n", "upgrade podium"),
        (f"#define PODIUM_API {versions[0] - 1}\n", "an older plug-in API than this podium still has"),
    ):
        with pytest.raises(CompileError, match="launch.c") as caught:
            compiler.run({"launch.c": template(states)}, "launch.c", flags)
        assert text in caught.value.log
