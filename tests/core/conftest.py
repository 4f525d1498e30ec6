"""What several files of these tests start from: a cache, places for libraries, and installed backends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cache_files import PLENTY
from library_files import Build
from plugin_distributions import Site, site_at

from podium import _library
from podium._active import DriverConfig
from podium._cache import Cache, reset_cache

# ---- Caches ----


@pytest.fixture
def fresh_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the test a process that has told nothing of its cache yet and has no settings."""
    for variable in ("PODIUM_CACHE_DIR", "PODIUM_CACHE_SIZE", "PODIUM_CACHE_TRUSTED", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    reset_cache()
    yield
    reset_cache()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a cache; it does not exist yet."""
    return tmp_path / "cache"


@pytest.fixture
def cache(folder: Path) -> Cache:
    """A cache that is never full."""
    return Cache(folder, PLENTY)


# ---- Libraries ----


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles C to the bytes of a library, each source once for a file of tests."""
    return Build(tmp_path_factory.mktemp("build"))


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files of the test's own, in a process that has no memory of other places."""
    base = tmp_path / "tmp"
    base.mkdir(mode=0o700)
    monkeypatch.setenv("TMPDIR", str(base))
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(_library, "_forbidding", {})
    reset_cache()
    yield base
    reset_cache()


# ---- Backends ----


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A folder on the import path that distributions of backends can be installed into."""
    with site_at(tmp_path / "site") as site:
        yield site


@pytest.fixture
def well(site: Site) -> None:
    """A backend with which nothing is wrong."""
    site.install("well")


@pytest.fixture
def config(site: Site) -> DriverConfig:
    """The choice among a GPU backend, a lesser one, and a CPU backend, all of them active."""
    site.install("gpu", priority=100)
    site.install("other")
    site.install("host", priority=0)
    return DriverConfig()
