"""What all parts of the suite share: the driver under test, the states that tests run in, and further processes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent
from types import MappingProxyType
from typing import Any, ClassVar

import pytest

import podium
from podium import _generated
from podium._cache import reset_cache
from podium._plugins import probe
from podium.backend import Driver, HostCompiler, Target
from podium.errors import ToolchainError, UnknownBackendError
from podium.testing._capabilities import Capabilities
from podium.testing._fake import RecordedLaunch
from podium.testing._report import UNCLAIMED

__all__ = ["TIMEOUT", "Level", "Subject", "bad", "forget", "require_host_compiler"]

TIMEOUT = 240
"""Seconds after which a process counts as hanging. A loaded machine must never come near it."""

# Kinds of cache entries: what is the same for all kernels, such as a backend's runtime and the part that launchers have
# in common; and the kernels themselves.
_COMMON, _KERNELS = "built", "kernel"


def bad(process: subprocess.CompletedProcess[str]) -> str:
    """Describe a process that did not end well, for the message of an assertion."""
    return f"exit status {process.returncode}\nstdout: {process.stdout}\nstderr: {process.stderr}"


@dataclass(frozen=True)
class Level:
    """A launcher level, and whether the disk cache holds all that the test needs ("warm") or not ("cold").

    A cold cache has what the tests before left that is the same for all kernels. On the generated level it also has the
    kernels that the test compiled on the interpreted one, so that a compiler has the launchers to do only. A test to
    which that matters calls `empty`.
    """

    name: str
    temperature: str
    cache: Path
    prepared: bool = True

    def check(self, kernel: podium.Kernel) -> None:
        """Assert that a kernel that was launched is on this level."""
        assert kernel.level == self.name, f"the launch was {kernel.level}, not {self.name}"

    def empty(self) -> None:
        """Have nothing at all in the cache, if it is cold."""
        if self.temperature == "cold":
            shutil.rmtree(self.cache, ignore_errors=True)
            forget()

    def cold(self) -> Level:
        """Return what the cold run of the test has in place of this."""
        return replace(self, temperature="cold")


class Subject:
    """The driver under test, and what it claims. A backend's test class sets `driver_class` and what differs."""

    driver_class: ClassVar[type[Driver]]
    """The driver class to test."""

    capabilities: ClassVar[Capabilities] = Capabilities()
    """What the driver claims; what is left out is skipped and counted as not claimed."""

    compile_target: ClassVar[str | None] = None
    """A target, such as mine:arch7:32, to compile for where the driver cannot run and so cannot name its own."""

    attribute_values: ClassVar[Mapping[str, int | tuple[int, ...]]] = MappingProxyType({})
    """A value for each launch attribute that can be tried on any launch; what is left out is not tried."""

    @classmethod
    def claims(cls, name: str) -> bool:
        """Tell whether the backend has a capability, a feature, or another thing that its classes say is there."""
        if hasattr(cls.capabilities, name):
            return bool(getattr(cls.capabilities, name))
        stated = cls.driver_class
        if name == "generated_level":
            return stated.launcher_cls.generated_level
        return name in stated.features or getattr(stated, name, False) is True  # not a method of that name

    def need(self, *names: str) -> None:
        """Skip the test, and say why, if the backend does not claim something."""
        for name in names:
            if not self.claims(name):
                pytest.skip(f"{UNCLAIMED}{name}")

    def recorded(self, driver: Driver) -> Sequence[RecordedLaunch]:
        """Return the launches that reached a driver that claims "records", oldest first."""
        launches: Sequence[RecordedLaunch] = driver.launches  # type: ignore[attr-defined]
        return launches

    # ---- fixtures ----

    @pytest.fixture(autouse=True)
    def registered(
        self,
        request: pytest.FixtureRequest,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> Iterator[None]:
        """Make the backend known to podium, if no distribution does, in an environment that sets nothing.

        The disk cache is the test's own, with what the tests before have left that is the same for all kernels.
        """
        if not hasattr(request.config.option, "podium_backend"):
            missing = "podium is not installed, and so its plug-in of pytest is missing: add -p podium.testing.plugin"
            request.session.shouldfail = missing
            pytest.fail(missing, pytrace=False)
        for variable in [name for name in os.environ if name.startswith("PODIUM_")]:
            monkeypatch.delenv(variable)
        cache, common = tmp_path / "cache", tmp_path_factory.getbasetemp() / "podium-common"
        monkeypatch.setenv("PODIUM_CACHE_DIR", str(cache))
        _copy_entries(common, cache, _COMMON)
        forget()
        name = self.driver_class.name
        by_hand = not self.installed
        if by_hand:
            podium.driver.register(self.driver_class)
        yield
        podium.driver.reset_active()
        if by_hand:
            podium.driver.unregister(name)
        forget()
        _copy_entries(cache, common, _COMMON)

    @property
    def installed(self) -> bool:
        """Whether a distribution provides the backend, with this very class."""
        try:
            provided = type(podium.driver.get(self.driver_class.name))
        except UnknownBackendError:
            return False
        assert provided is self.driver_class, f"{self.driver_class.name} is installed, but as {provided}"
        return True

    @pytest.fixture
    def driver(self, registered: None) -> Driver:
        """The active driver; where it cannot run, the test is skipped with its own reason."""
        answer = probe(self.driver_class)
        if answer.state == "failed":
            pytest.fail(answer.reason or "inactive_reason() is broken")
        if answer.reason is not None:
            pytest.skip(f"inactive here: {answer.reason}")
        podium.driver.set_active(self.driver_class.name)
        active: Driver = podium.driver.resolve()
        return active

    @pytest.fixture
    def target(self, registered: None) -> Target:
        """A target that the backend's compiler knows, for compiling on machines where the driver cannot run."""
        if probe(self.driver_class).reason is None:
            own: Target = podium.driver.get(self.driver_class.name).default_target()
            return own
        if self.compile_target is None:
            pytest.skip("inactive here, and the test class sets no compile_target")
        return Target.parse(self.compile_target)

    @pytest.fixture
    def compiler(self, registered: None, target: Target) -> Driver:
        """The driver as a compiler: it need not be able to run here."""
        driver: Driver = podium.driver.get(self.driver_class.name)
        try:
            driver.toolchain(min(self.driver_class.languages))
        except ToolchainError as error:
            pytest.skip(f"no compiler here: {error}")
        return driver

    @pytest.fixture(params=["interpreted-cold", "interpreted-warm", "generated-cold", "generated-warm"])
    def level(
        self,
        request: pytest.FixtureRequest,
        registered: None,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> Iterator[Level]:
        """Each launcher level, cold and warm: the warm run has the disk cache of the cold one, and new memory.

        Where the cold run was not chosen, or is another process's, pytest's plug-in of podium makes it first.
        """
        name, _, temperature = request.param.partition("-")
        if name == "generated":
            self.need("generated_level")
            require_host_compiler()
        base = tmp_path_factory.getbasetemp()
        interpreted, folder = (
            base / "podium" / hashlib.sha256(request.node.nodeid.replace(request.param, each).encode()).hexdigest()[:16]
            for each in ("interpreted", name)
        )
        ended = folder.with_suffix(".ended")
        prepared = temperature == "cold" or ended.exists()
        if temperature == "cold" or not prepared:
            shutil.rmtree(folder, ignore_errors=True)
            _copy_entries(base / "podium-common", folder, _COMMON)
            _copy_entries(interpreted, folder, _KERNELS)
        monkeypatch.setenv("PODIUM_LAUNCHER", name)
        monkeypatch.setenv("PODIUM_CACHE_DIR", str(folder))
        forget()
        yield Level(name, temperature, folder, prepared)
        _copy_entries(folder, base / "podium-common", _COMMON)
        ended.parent.mkdir(parents=True, exist_ok=True)
        ended.touch()

    @pytest.fixture
    def compiled(self, registered: None, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        """Have in the cache what other tests with this fixture have compiled; for programs that are not about that."""
        owner = f"{self.driver_class.__module__}.{self.driver_class.__qualname__}"
        cache, kept = tmp_path / "cache", tmp_path_factory.getbasetemp() / f"podium-{owner}"
        _copy_entries(kept, cache, _KERNELS)
        yield
        _copy_entries(cache, kept, _KERNELS)

    # ---- processes ----

    def python(
        self, code: str, *, cache: Path | None = None, level: str = "interpreted", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in a process of its own, where `driver_class` and `podium` are names already.

        It sees this process's import path, and its disk cache unless it is given another. A process that does not end
        fails the test, it does not hang it.
        """
        command, variables = self.command(code, cache=cache, level=level, **environment)
        try:
            return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired as error:
            pytest.fail(f"the process hangs: {error.stdout!r} {error.stderr!r}")

    def command(
        self, code: str, *, cache: Path | None = None, level: str = "interpreted", **environment: str
    ) -> tuple[list[str], dict[str, str]]:
        """Return the command and the environment of such a process."""
        owner = self.driver_class
        file = getattr(sys.modules.get(owner.__module__), "__file__", None)
        prelude = (
            "import podium\n"
            "from podium.testing._conformance import child\n"
            f"driver_class = child.adopt({owner.__module__!r}, {owner.__qualname__!r}, {file!r})\n"
            f"executes = {self.capabilities.executes}\n"
        )
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PODIUM_")}
        variables |= {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PODIUM_CACHE_DIR": os.environ["PODIUM_CACHE_DIR"] if cache is None else str(cache),
            "PODIUM_LAUNCHER": level,
            "PODIUM_BACKEND": owner.name,
            **environment,
        }
        return [sys.executable, "-c", prelude + dedent(code)], variables

    # ---- seeing what a launch did ----

    def array(self, values: Any, dtype: Any = None) -> Any:
        """Put values into an array of the active driver."""
        return podium.asarray(values, dtype)

    def threads(self, driver: Driver, wanted: int) -> int:
        """Return a number of threads for a block on one axis: as many as are wanted, or as many as there can be."""
        device = driver.devices()[driver.current_device()]
        return min(wanted, device.max_threads, device.max_block[0])

    def last(self, driver: Driver) -> RecordedLaunch:
        """Return the last launch that a recording driver saw."""
        launches = self.recorded(driver)
        assert launches, "no launch reached the driver"
        return launches[-1]

    def count(self, driver: Driver) -> int:
        """Return how many launches a recording driver has seen; 0 for others."""
        return len(self.recorded(driver)) if self.capabilities.records else 0


def forget() -> None:
    """Forget what this process keeps in memory of the disk cache, and what a test has left in podium."""
    for chain in (podium.hooks.enter, podium.hooks.exit, podium.hooks.compile, podium.hooks.load):
        chain.clear()
    reset_cache()
    _generated._builds.clear()


def _copy_entries(source: Path, folder: Path, kind: str) -> None:
    """Copy the entries of a kind from one cache to another, which saves the time of compilers."""
    for entry in source.glob(f"v*/*/{kind}-*"):
        copy = folder / entry.relative_to(source)
        if not copy.exists():
            for made in (folder.parent, folder, copy.parent.parent, copy.parent):
                made.mkdir(mode=0o700, exist_ok=True)
            # By one rename: a launcher that is being built meanwhile would take half an entry for a damaged one.
            part = folder / f"{entry.name}.{os.getpid()}"
            shutil.copy2(entry, part)
            part.replace(copy)


def require_host_compiler() -> None:
    """Skip the test where there is no C compiler for the generated level."""
    try:
        HostCompiler.find("c")
    except ToolchainError as error:
        pytest.skip(f"no host C compiler for the generated level: {error}")
