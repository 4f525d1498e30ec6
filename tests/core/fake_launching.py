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


@lru_cache(maxsize=1)
def knowing_driver_class() -> type[FakeDriver]:
    """A fake driver that knows the memory at an address, in C as well, as CUDA's does: device 1 begins at 2**32."""
    template = FakeDriver.launcher_cls.template
    text = template.read_text().replace(
        "#define PODIUM_HOST_MEMORY 0", "#define PODIUM_HOST_MEMORY 0\n#define PODIUM_DRIVER_POINTER 1"
    )
    function = """
static int podium_driver_pointer(uint64_t address, int32_t *device_type, int32_t *device) {
    if (address % 16 != 0) return -1;
    *device_type = 12;
    *device = address >> 32 != 0;
    return 0;
}
"""
    assert text.count('#include "podium_module.h"') == 1
    text = text.replace('#include "podium_module.h"', function + '\n#include "podium_module.h"')
    path = Path(tempfile.mkdtemp(prefix="podium-knowing-")) / "knowing_launch.c.in"
    atexit.register(shutil.rmtree, path.parent)
    path.write_text(text)

    class KnowingLauncher(FakeDriver.launcher_cls):  # type: ignore[name-defined, misc]
        backend = "knowing"
        template = path

    class KnowingDriver(FakeDriver):
        name = "knowing"
        launcher_cls = KnowingLauncher

        def pointer_device(self, address: int) -> tuple[int, int] | None:
            return (1, 0) if address % 16 else (FAKE_DEVICE_TYPE, int(address >> 32 != 0))

    return KnowingDriver


class InterfaceArray:
    """An array of a library that has ``__cuda_array_interface__`` and nothing else."""

    def __init__(self, address: object = 4096, readonly: object = False, **fields: Any) -> None:
        known = {"version": 3, "shape": (4,), "typestr": "<f4", "data": (address, readonly), **fields}
        self.fields = {name: value for name, value in known.items() if value is not ...}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if "raise" in self.fields:
            raise ZeroDivisionError
        return self.fields


INTERFACES: list[dict[str, Any]] = [
    {}, {"address": 2**32}, {"address": 2**63}, {"address": 2**64 - 16}, {"address": 2**64}, {"address": -16}, {"address": None},
    {"address": 4097}, {"address": "x"}, {"address": True}, {"readonly": True}, {"readonly": 1}, {"readonly": None}, {"strides": None},
    {"strides": (4,)}, {"strides": (8,)}, {"strides": "x"}, {"mask": None}, {"mask": object()}, {"stream": None}, {"stream": 5},
    {"stream": 2**64 - 1}, {"stream": 2**64}, {"stream": -1}, {"stream": "x"}, {"stream": 1.5}, {"shape": ...}, {"shape": 4},
    {"shape": [4]}, {"shape": ()}, {"typestr": ...}, {"typestr": 4}, {"typestr": ""}, {"typestr": "<"}, {"typestr": "<f"},
    {"typestr": "f4"}, {"typestr": ">f4"}, {"typestr": "|u1"}, {"typestr": "<M8[ns]"}, {"typestr": "<f4x"}, {"typestr": "|V12"},
    {"typestr": "=i8"}, {"data": ...}, {"data": ()}, {"data": (4096,)}, {"data": [4096, False]}, {"data": (4096, False, 1)},
    {"data": None}, {"version": ...}, {"raise": 1}, {"typestr": "\ud800f4"},
]  # fmt: skip
"""What such an interface can say, right and wrong: the arguments of `InterfaceArray`."""
