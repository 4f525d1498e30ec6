"""Fake installed distributions: real folders on `sys.path` that hold a package and its metadata."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from unittest.mock import patch

import podium._plugins
from podium._entry_points import EntryPoint, installed_entry_points
from podium._plugins import Backend, Discovery

__all__ = ["ANSWERING_PLUGIN", "PLUGIN", "Site", "failure", "loaded", "only_fake_distributions", "site_at"]

PLUGIN = """
    from podium.hookspecs import hookimpl

    PODIUM_API = 1

    @hookimpl
    def podium_register_driver():
        from {package}.driver import FakeDriver
        return FakeDriver
"""

ANSWERING_PLUGIN = (
    PLUGIN
    + """
    PODIUM_PRIORITY = {priority!r}

    @hookimpl
    def podium_inactive_reason():
        from {package}.detection import inactive_reason
        return inactive_reason()
"""
)
"""One that tells what choosing asks without its driver."""

DETECTION = """
    calls = []

    def inactive_reason():
        calls.append("detect")
        {probe}
"""

DRIVER = """
    import os
    from podium.backend import Driver, Launcher

    calls = []

    class FakeLauncher(Launcher):
        generated_level = False

    def refuse(name):
        def method(self, *args, **kwargs):
            raise NotImplementedError(name)
        return method

    class Refusing(Driver):
        pass

    for name in Driver.__abstractmethods__:
        setattr(Refusing, name, refuse(name))

    class FakeDriver(Refusing):
        name = {name!r}
        priority = {priority!r}
        launcher_cls = FakeLauncher
        dlpack_devices = frozenset({{1}})

        def __init__(self):
            calls.append("construct")
            {construct}

        @classmethod
        def inactive_reason(cls):
            calls.append("probe")
            {probe}
"""


class Site:
    """A folder of installed distributions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def install(
        self,
        name: str,
        *,
        distribution: str | None = None,
        version: str = "1.0",
        package: str | None = None,
        plugin: str = PLUGIN,
        files: Mapping[str, str] | None = None,
        entry_points: str | None = None,
        priority: object = 50,
        probe: str = "return None",
        construct: str = "pass",
    ) -> str:
        """Install a backend and return the name of its package.

        `plugin` is the text of the module that the entry point names, `files` has further ones of the package;
        `probe` and `construct` are the bodies of the driver's `inactive_reason` and `__init__`. The module `detection`,
        which only `ANSWERING_PLUGIN` imports, has the same `inactive_reason`.
        """
        package = package or f"podium_{name}"
        self.add_metadata(
            distribution or f"podium-{name}", version, entry_points or f"[podium]\n{name} = {package}.plugin\n"
        )
        texts = {
            "__init__.py": "",
            "plugin.py": plugin.replace("{package}", package).replace("{priority!r}", repr(priority)),
            "detection.py": dedent(DETECTION).format(probe=probe),
            "driver.py": dedent(DRIVER).format(name=name, priority=priority, probe=probe, construct=construct),
            **(files or {}),
        }
        (self.folder / package).mkdir(exist_ok=True)
        for file, text in texts.items():
            (self.folder / package / file).write_text(dedent(text))
        return package

    def add_metadata(self, distribution: str, version: str, entry_points: str) -> Path:
        """Write only the metadata of a distribution."""
        folder = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (folder / "entry_points.txt").write_text(entry_points)
        return folder

    def uninstall(self, name: str) -> None:
        """Remove a backend's package and metadata."""
        shutil.rmtree(self.folder / f"podium_{name}")
        for metadata in self.folder.glob(f"podium_{name}-*.dist-info"):
            shutil.rmtree(metadata)

    def calls(self, name: str) -> list[str]:
        """Return what was asked of a backend's detection, and then of its driver class; nothing if not imported."""
        modules = [sys.modules.get(f"podium_{name}.{each}") for each in ("detection", "driver")]
        return [call for module in modules if module is not None for call in module.calls]

    def imported(self) -> set[str]:
        """Return which modules of the backends are imported, as "name.module"; packages themselves are left out."""
        return {
            name.removeprefix("podium_") for name, module in sys.modules.items() if self._has(module) and "." in name
        }

    def _has(self, module: object) -> bool:
        return str(getattr(module, "__file__", None) or "").startswith(str(self.folder))

    def run(self, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program in a process of its own that sees this folder's distributions."""
        prelude = "import plugin_distributions as fakes\nonly = fakes.only_fake_distributions()\nonly.__enter__()\n"
        roots = [str(self.folder), str(Path(__file__).parent), *map(str, {Path(p).parent for p in podium.__path__})]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PODIUM_")}
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", prelude + dedent(code)],
            env={**kept, **environment, "PYTHONPATH": os.pathsep.join(roots)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@contextmanager
def only_fake_distributions() -> Iterator[None]:
    """Hide the backends that are really installed beside the tests."""
    real_folders = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    with patch.object(sys, "path", real_folders):
        hidden = {entry.distribution for entry in installed_entry_points("podium")}

    def fakes(group: str) -> list[EntryPoint]:
        return [entry for entry in installed_entry_points(group) if entry.distribution not in hidden]

    with patch.object(podium._plugins, "installed_entry_points", fakes):
        yield


@contextmanager
def site_at(folder: Path) -> Iterator[Site]:
    """Put a new folder of distributions at the front of `sys.path`, and take it and its modules away afterwards."""
    site = Site(folder)
    sys.path.insert(0, str(folder))
    try:
        with only_fake_distributions():
            yield site
    finally:
        sys.path.remove(str(folder))
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


def loaded(discovery: Discovery, name: str) -> Backend:
    """Return a backend, having checked that the one beside it is not affected by it."""
    backends = {backend.name: backend for backend in discovery.backends()}
    assert backends["well"].state == "ready"
    return backends[name]


def failure(discovery: Discovery, name: str) -> str:
    """Return why a backend failed, having checked that it did and that the one beside it did not."""
    backend = loaded(discovery, name)
    assert (backend.state, backend.driver_class) == ("failed", None)
    assert backend.failure is not None
    assert "\n" not in backend.failure
    assert backend.reason() == backend.failure
    return backend.failure
