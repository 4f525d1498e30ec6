"""What all tests share: a private cache, no settings from outside, and a process that a test before left no trace in."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from podium import _generated, _scratch, _state, _zig
from podium._active import driver_config
from podium._cache import reset_cache
from podium._hooks import hooks
from podium._plugins import probe
from podium.errors import BackendError
from podium.testing import FakeDriver

if TYPE_CHECKING:
    from podium_nvidia.driver import NvidiaDriver

# JAX would take three quarters of a GPU for itself, and keep them for as long as the process that ran its test lives.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

# Files of tests in which the Python has no part: most compile kernels and look at what comes out. One has them.
_NEWEST = {
    "test_amd_arguments",
    "test_amd_compile",
    "test_amd_detection",
    "test_amd_examples",
    "test_amd_library",
    "test_cli_bench",
    "test_cli_doctor",
    "test_conformance_use",
    "test_cpu_addresses",
    "test_cpu_groups",
    "test_cpu_headers",
    "test_cpu_intrinsics",
    "test_cpu_loops",
    "test_cpu_numbers",
    "test_cpu_refusals",
    "test_cpu_rows",
    "test_cpu_sanitize",
    "test_cpu_styles",
    "test_cpu_threads",
    "test_cpu_unseen",
    "test_cpu_warps",
    "test_cpu_zig",
    "test_docs",
    "test_instructions",
    "test_nvidia_sanitizers",
    "test_nvidia_start",
    "test_small_devices",
}
_OLDEST = {
    "test_amd_conformance",
    "test_amd_hiprtc",
    "test_amd_numbers",
    "test_amd_recording_abi",
    "test_amd_recording_library",
    "test_amd_runtime",
    "test_architecture",
    "test_benchmarks",
    "test_conformance_catches",
    "test_cpu_barriers",
    "test_cpu_compile",
    "test_cpu_debugger",
    "test_cpu_dialect",
    "test_cpu_races",
    "test_cpu_regions",
    "test_cpu_wild",
    "test_example_kernels",
    "test_examples",
    "test_nvidia_compile",
    "test_nvidia_examples",
    "test_nvidia_headers",
    "test_nvidia_link",
    "test_nvidia_recording_failures",
    "test_nvidia_recording_library",
    "test_nvidia_recording_model",
    "test_nvidia_recording_scale",
    "test_nvidia_toolkit",
    "test_nvidia_triton",
    "test_packaging",
    "test_source_robustness",
}


# Parts of the conformance suite in which a backend meets what differs from Python to Python: how threads are switched,
# how processes are started, and in which order they end. The CPU backend has them on both, and the rest on one: what a
# launch does with Python's objects is podium's, and the suite on the fake driver has that on both.
_OF_PYTHON = {"Processes", "Shutdown", "Threads"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave alone the files of which no test would be chosen: to import them all takes seconds."""
    left_out = {"not newest": _NEWEST, "not oldest": _OLDEST}.get(config.option.markexpr, ())
    return True if collection_path.stem in left_out else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in _NEWEST or item.path.stem.startswith("test_nvidia_gpu"):
            item.add_marker(pytest.mark.newest)
        elif item.path.stem in _OLDEST:
            item.add_marker(pytest.mark.oldest)
        elif item.path.stem == "test_cpu" and _part(item) not in _OF_PYTHON:
            item.add_marker(pytest.mark.newest)


def _part(item: pytest.Item) -> str:
    """Return the part of the conformance suite that a test is of."""
    assert isinstance(item, pytest.Function)
    return item.function.__qualname__.partition(".")[0]


def pytest_collection_finish() -> None:
    # The thousands of tests stay until the end: a search for cycles in a test need not go through them each time.
    gc.freeze()


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The cache folder of this test session: launchers are built once for all tests, and never taken from elsewhere."""
    given = os.environ.get("RECORDING_CACHE")  # in a child that runs one test: see tests/recording/isolation.py
    folder = Path(given) if given else tmp_path_factory.mktemp("podium-cache")
    with pytest.MonkeyPatch.context() as patched:
        # Between tests, too: a launcher that is being built in the background may be the first to ask for the cache.
        patched.setenv("PODIUM_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def clean_process(session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clear the variables of podium before a test, and hooks, switches and choices after it."""
    for variable in [name for name in os.environ if name.startswith("PODIUM_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(session_cache))
    yield
    for chain in (hooks.enter, hooks.exit, hooks.compile, hooks.load):
        chain.clear()
    _state.attend(_state.DEBUG, False)
    _scratch.set_allocator(None)
    driver_config.reset_active()


@pytest.fixture(params=["interpreted", "generated"])
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test at both launcher levels; the generated one is skipped without a C compiler."""
    name: str = request.param
    if name == "generated" and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("there is no C compiler for the generated level")
    monkeypatch.setenv("PODIUM_LAUNCHER", name)
    return name


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without a compiler: there is none on the path, in a variable, or in a Python package."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(_zig, "packaged_command", lambda language: None)


@pytest.fixture
def gpu() -> Iterator[NvidiaDriver]:
    """The NVIDIA driver, active during the test; without a GPU the test is skipped with the driver's own reason."""
    pytest.importorskip("podium_nvidia")
    from podium_nvidia.driver import NvidiaDriver

    reason = probe(NvidiaDriver).reason
    if reason is not None:
        pytest.skip(f"inactive here: {reason}")
    driver_config.set_active("nvidia")
    driver = driver_config.resolve()
    assert isinstance(driver, NvidiaDriver)
    yield driver
    driver_config.reset_active()


_versions = itertools.count(2)


@pytest.fixture
def fake() -> Iterator[FakeDriver]:
    """A new fake driver with two devices, registered and active during the test."""
    driver_config.register(FakeDriver)
    try:
        driver = driver_config.get("fake")
        driver_config.set_active(driver)
        assert isinstance(driver, FakeDriver)
        driver.version = str(next(_versions))  # so that no test finds in the cache what another has compiled
        yield driver
    finally:
        driver_config.reset_active()
        try:
            driver_config.unregister("fake")
        except BackendError:  # the test did it
            pass


@pytest.fixture
def cold_builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Forget all launcher modules, in memory and on disk, for a test of how they are built."""
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "cold-cache"))
    monkeypatch.setattr(_generated, "_builds", {})
    reset_cache()
    yield
    reset_cache()
