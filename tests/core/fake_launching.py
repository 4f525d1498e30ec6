"""Launchers of the fake driver at a chosen level, and what became of a launch in a form that can be compared."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from podium import _generated
from podium._extension import Extension
from podium.backend import Driver, Entry, Launcher, ObjectCode, Signature
from podium.errors import ArgumentError
from podium.testing import FakeDriver, RecordedLaunch

FAKE_DEVICE_TYPE = 12  # DLPack's kDLExtDev

LEVELS = ("interpreted", "generated")

SCALARS = ("i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32", "fp64")


@dataclass
class Source:
    """What a compiler hands to a launcher."""

    signature: Any
    constants: Mapping[Any, Any] = field(default_factory=dict)
    name: str = "k"


@contextmanager
def pinned(level: str) -> Iterator[None]:
    """Make the launchers that are made inside at this level."""
    before = os.environ.get("PODIUM_LAUNCHER")
    os.environ["PODIUM_LAUNCHER"] = level
    try:
        yield
    finally:
        if before is None:
            del os.environ["PODIUM_LAUNCHER"]
        else:
            os.environ["PODIUM_LAUNCHER"] = before


def make_launcher(
    driver: Driver,
    signature: Any,
    *,
    level: str | None = None,
    constants: Mapping[Any, Any] | None = None,
    **metadata: Any,
) -> Launcher:
    """Make a launcher on the driver; at the level of PODIUM_LAUNCHER unless one is given."""
    with pinned(level or os.environ["PODIUM_LAUNCHER"]):
        block = {} if "num_warps" in metadata else {"block": 1}
        return driver.launcher_cls(Source(signature, constants or {}), {**block, **metadata}, driver)


def load(driver: Driver, signature: Signature, name: str = "k", device: int = 0) -> int:
    """Load a kernel of that signature on the fake driver and return its handle."""
    code = ObjectCode(b"", "fake", driver.default_target(), (Entry(name, signature),))
    return driver.load(code, name, device).handle


class Pair:
    """One signature at both levels, each of which must do what the other does."""

    def __init__(self, signature: Any, driver: FakeDriver | None = None, **options: Any) -> None:
        self.driver = driver or FakeDriver()
        self.launchers = {level: make_launcher(self.driver, signature, level=level, **options) for level in LEVELS}
        self.function = load(self.driver, self.launchers["interpreted"].signature)
        for level, launcher in self.launchers.items():
            assert launcher.level == level

    def outcomes(self, *args: Any, grid: tuple[Any, Any, Any] = (1, 1, 1), stream: Any = 0) -> list[Any]:
        """Launch at each level; return what each recorded, or the error it raised."""
        return [
            outcome(self.driver, lambda: launcher(*grid, stream, self.function, *args))  # noqa: B023
            for launcher in self.launchers.values()
        ]

    def same(self, *args: Any, **options: Any) -> Any:
        """Launch at each level, require the same outcome, and return it."""
        interpreted, generated = self.outcomes(*args, **options)
        assert interpreted == generated
        return interpreted


@dataclass(frozen=True)
class Failure:
    """An error, taken apart so that two can be compared."""

    kind: type[BaseException]
    message: str
    attributes: tuple[tuple[str, str], ...]


def outcome(driver: FakeDriver, launch: Callable[[], object]) -> list[RecordedLaunch] | Failure:
    """Launch and return what was recorded; or what was raised, after which nothing may have been recorded."""
    before = len(driver.launches)
    try:
        launch()
    except Exception as error:
        assert len(driver.launches) == before
        attributes = error.__dict__ if isinstance(error, ArgumentError) else {}
        return Failure(type(error), str(error), tuple(sorted((name, repr(each)) for name, each in attributes.items())))
    return driver.launches[before:]


def bytes_of(launches: Any) -> tuple[bytes, ...]:
    """Return the parameters of the one launch there is."""
    assert not isinstance(launches, Failure), launches.message
    (launch,) = launches
    parameters: tuple[bytes, ...] = launch.parameters
    return parameters


def generated_modules() -> int:
    """Count the launcher modules of this process."""
    return sum(build.module is not None for build in _generated._builds.values())


@lru_cache(maxsize=1)
def exchange() -> Any:
    """The C library of tests/core/exchange.c, whose arrays have a DLPack C exchange table."""
    return Extension("exchange", "exchange", (Path(__file__).parent / "exchange.c").read_text()).build()


class ExchangeArray:
    """An array of a library that has the DLPack C exchange table."""

    __dlpack_c_exchange_api__: Any = None

    def __init__(
        self,
        address: int = 4096,
        device: int = 0,
        *,
        device_type: int = FAKE_DEVICE_TYPE,
        shape: tuple[int, ...] = (4,),
        strides: tuple[int, ...] | None = None,
        dtype: tuple[int, int] = (2, 32),
        lanes: int = 1,
        offset: int = 0,
        outcome: int = 0,
    ) -> None:
        if strides is None:
            outcome, strides = outcome or 3, ()
        self.fields = (outcome, address, device_type, device, len(shape), *dtype, lanes, offset, *shape, *strides)


def exchange_type(table: int = 0) -> type[ExchangeArray]:
    """Make a new type of arrays with that table: 0 a plain one, 1 without streams, 2 of a later version, 3 empty."""
    return type("ExchangeArray", (ExchangeArray,), {"__dlpack_c_exchange_api__": exchange().table(table)})


@lru_cache(maxsize=1)
def host_driver_class() -> type[FakeDriver]:
    """A fake driver whose kernels reach host memory, as those of a CPU do."""
    template = FakeDriver.launcher_cls.template
    text = template.read_text().replace("#define PODIUM_HOST_MEMORY 0", "#define PODIUM_HOST_MEMORY 1")
    text = text.replace(f"device_type == {FAKE_DEVICE_TYPE}", "device_type == 1")
    assert text != template.read_text()
    path = Path(tempfile.mkdtemp(prefix="podium-host-")) / "host_launch.c.in"
    atexit.register(shutil.rmtree, path.parent)
    path.write_text(text)

    class HostLauncher(FakeDriver.launcher_cls):  # type: ignore[name-defined, misc]
        backend = "host"
        template = path

    class HostDriver(FakeDriver):
        name = "host"
        launcher_cls = HostLauncher
        dlpack_devices = frozenset({1})
        host_memory = True

    return HostDriver
