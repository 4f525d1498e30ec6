"""What the tests share: the backend, also where it is not installed, a cache, and no settings from outside."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import podium
from podium.errors import BackendError, UnknownBackendError

if find_spec("podium_opencl") is None:
    sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

# PoCL shows its device twice, so that tests of several devices have something to run on; what it compiles for itself
# goes away with the tests.
os.environ.setdefault("POCL_DEVICES", "pthread pthread")
if "POCL_CACHE_DIR" not in os.environ:
    os.environ["POCL_CACHE_DIR"] = tempfile.mkdtemp(prefix="podium-opencl-")
    atexit.register(shutil.rmtree, os.environ["POCL_CACHE_DIR"], ignore_errors=True)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers that podium's repository chooses tests by, for where its settings are not used."""
    config.addinivalue_line("markers", "newest: what is the same with each Python, and is run on the newest")
    config.addinivalue_line(
        "markers", "oldest: the same, on the oldest; with both, it is left out of podium's own checks"
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests: what they look at is the same with each Python, and so the suite has one and all else the other.

    Those with a warm cache, which are about podium, are left out where podium itself is checked.
    """
    if Path(__file__).parent not in item.path.parents:
        return
    is_suite = item.path.stem == "test_conformance"
    item.add_marker(pytest.mark.newest if is_suite else pytest.mark.oldest)
    if is_suite and "-warm" in item.name:
        item.add_marker(pytest.mark.oldest)


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for variable in [name for name in os.environ if name.startswith("PODIUM_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "podium-cache"))


@pytest.fixture
def registered() -> Iterator[None]:
    """Make the backend known to podium, if no distribution does."""
    from podium_opencl.driver import OpenclDriver

    try:
        podium.driver.get("opencl")
    except UnknownBackendError:
        podium.driver.register(OpenclDriver)
        yield
        podium.driver.unregister("opencl")
    except BackendError:
        yield
    else:
        yield


@pytest.fixture
def opencl(registered: None) -> Iterator[podium.backend.Driver]:
    """The driver, active in the test; where it cannot run, the test is skipped with its reason."""
    from podium_opencl.driver import OpenclDriver

    reason = OpenclDriver.inactive_reason()
    if reason is not None:
        pytest.skip(f"OpenCL is inactive here: {reason}")
    with podium.use("opencl") as driver:
        yield driver


@pytest.fixture(params=["interpreted", "generated"])
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each launcher level."""
    name = str(request.param)
    monkeypatch.setenv("PODIUM_LAUNCHER", name)
    return name
