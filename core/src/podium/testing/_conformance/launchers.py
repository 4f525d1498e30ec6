"""The low-level launcher, called as compilers call it, and what a driver's failure becomes."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import podium
from podium.backend import Driver, LaunchConfig, Launcher, Parameters
from podium.errors import (
    ArgumentCountError,
    ArgumentTypeError,
    ArgumentValueError,
    LaunchConfigError,
    LaunchError,
    SignatureError,
)
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Launchers", "refused_block"]

_SOURCE = """
extern "C" __global__ void put(int* x, int a, int b, int c) {
    int i = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (threadIdx.x == 0) x[i] = a + 10 * b + 100 * c + 1000 * blockDim.x;
}
"""
_HEADERS = Path(podium.__file__).parent / "include"
_STANDARD = {f"{name}.h" for name in ("stddef stdint stdbool stdio stdlib string math float limits inttypes").split()}
_STANDARD |= {f"{name}.h" for name in ("errno time assert stdarg dlfcn unistd pthread sched sys/types windows").split()}
_TYPES = {"x": "*i32", "a": "i32", "b": "i32", "c": "i32"}


def refused_block(driver: Driver, launcher: Launcher) -> int:
    """Give a launcher a block that no driver takes, behind the back of podium's own check; return its threads."""
    threads = driver.devices()[driver.current_device()].max_threads + 1
    launcher.block = (threads, 1, 1)
    return threads


@contract("Launcher")
class Launchers(Subject):
    """``launcher(grid_x, grid_y, grid_z, stream, function, *args)``."""

    def make(
        self, driver: Driver, signature: Any = None, constants: Any = None, **metadata: Any
    ) -> tuple[Launcher, int]:
        """Return a launcher for the kernel above, and the handle to call it with."""
        self.kernel = podium.kernel(_SOURCE, "put", signature=_TYPES)
        src = SimpleNamespace(signature=signature or _TYPES, constants=constants or {})
        launcher = driver.launcher_cls(src, {"name": "put", "block": 1, **metadata}, driver)
        return launcher, self.kernel.load()

    @pytest.mark.needs("observes")
    def test_it_launches_like_a_compilers_launcher(self, driver: Driver, level: Level) -> None:
        """The grid is given by axis, the stream as an integer, the function by the handle that `load` gave."""
        warp = self.threads(driver, 32)
        warps = max(1, self.threads(driver, 2 * warp) // warp)
        launcher, function = self.make(driver, num_warps=warps, warp_size=warp, block=None)
        limit = driver.devices()[driver.current_device()].max_grid
        grid = x, y, z = min(2, limit[0]), min(3, limit[1]), min(4, limit[2])
        out = podium.asarray([0] * (x * y * z))
        stream = driver.current_stream(driver.current_device())
        launcher(*grid, stream, function, out, 1, 2, 3)
        threads = warps * warp
        self._check_put(driver, out, [321 + 1000 * threads] * (x * y * z), (grid, (threads, 1, 1), stream))
        assert launcher.level == level.name

    @pytest.mark.needs("observes")
    def test_metadata_may_be_an_object(self, driver: Driver, level: Level) -> None:
        """`metadata` is a mapping or an object with attributes, as compilers have it, and states the warp size."""
        _, function = self.make(driver)
        metadata = SimpleNamespace(name="put", num_warps=2, num_ctas=1, shared=0, target=SimpleNamespace(warp_size=4))
        launcher = driver.launcher_cls(SimpleNamespace(signature=_TYPES), metadata, driver)
        x = podium.asarray([0])
        launcher(1, 1, 1, driver.current_stream(driver.current_device()), function, x, 1, 2, 3)
        self._check_put(driver, x, [8321], ((1, 1, 1), (8, 1, 1), None))

    @pytest.mark.needs("observes")
    @pytest.mark.parametrize("key", ["b", 2, (2,)], ids=["name", "position", "path"])
    def test_constants_are_in_the_call_and_not_in_the_binary(self, driver: Driver, level: Level, key: Any) -> None:
        """A constant, given by name, position or index path, is accepted in the call and not passed on."""
        signature = {"x": "*i32", "a": "i32", "folded": "i32", "b": "i32", "c": "i32"}
        launcher, function = self.make(driver, signature, {"folded" if key == "b" else key: 99})
        x = podium.asarray([0])
        launcher(1, 1, 1, 0, function, x, 1, 99, 2, 3)
        self._check_put(driver, x, [1321], None)
        with pytest.raises(ArgumentCountError):
            launcher(1, 1, 1, 0, function, x, 1, 2, 3)

    @pytest.mark.needs("observes")
    def test_tuples_are_flattened(self, driver: Driver, level: Level) -> None:
        """A tuple in the signature takes a tuple, nested too, whose members are passed one by one."""
        signature = {"x": "*i32", "pair": ("i32", ("i32", "i32"))}
        launcher, function = self.make(driver, signature)
        x = podium.asarray([0])
        launcher(1, 1, 1, 0, function, x, (1, (2, 3)))
        self._check_put(driver, x, [1321], None)
        for wrong in ((1, (2,)), (1, 2), 5):
            with pytest.raises(ArgumentCountError):
                launcher(1, 1, 1, 0, function, x, wrong)

    def test_its_checks_are_those_of_every_launch(self, driver: Driver, level: Level) -> None:
        """Arguments, their number, grid, stream and function are checked; an empty grid does nothing.

        Rows GRD-03, ARG-09.
        """
        launcher, function = self.make(driver)
        x = podium.asarray([0])
        good = (1, 1, 1, 0, function, x, 1, 2, 3)
        launcher(*good)
        before = self.count(driver)
        limit = driver.devices()[0].max_grid
        wrong: list[tuple[type[Exception], tuple[Any, ...]]] = [
            (LaunchConfigError, (-1, *good[1:])),
            (LaunchConfigError, (1, limit[1] + 1, *good[2:])),
            (LaunchConfigError, (1, 1, limit[2] + 1, *good[3:])),
            (LaunchConfigError, (1.5, *good[1:])),
            (LaunchConfigError, (*good[:4], 0, *good[5:])),
            (LaunchConfigError, (*good[:4], "x", *good[5:])),
            (ArgumentTypeError, (*good[:3], "stream", *good[4:])),
            (ArgumentValueError, (*good[:3], -5, *good[4:])),
            (ArgumentCountError, good[:-1]),
            (ArgumentCountError, (*good, 4)),
            (ArgumentTypeError, (*good[:-1], "x")),
            (ArgumentValueError, (*good[:-1], 1 << 31)),
        ]
        for kind, args in wrong:
            with pytest.raises(kind):
                launcher(*args)
        for grid in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
            launcher(*grid, *good[3:])
        assert self.count(driver) == before

    def test_signatures_that_are_none_are_refused(self, driver: Driver, level: Level) -> None:
        """A type that is unknown, or a constant that names nothing, is refused when the launcher is made.

        Rows ARG-16.
        """
        for signature, constants in (({"x": "i33"}, {}), ({"x": "float"}, {}), ({"x": "i32"}, {"y": 1})):
            with pytest.raises(SignatureError):
                driver.launcher_cls(SimpleNamespace(signature=signature, constants=constants), {"name": "put"}, driver)

    def test_a_launch_that_the_driver_refuses_is_an_error(self, driver: Driver, level: Level) -> None:
        """A status that is not 0 becomes LaunchError with name, text, kernel, backend, device and shape.

        Rows LIF-09.
        """
        launcher, function = self.make(driver)
        threads = refused_block(driver, launcher)
        x = podium.asarray([0, 0])
        before = self.count(driver)
        with pytest.raises(LaunchError) as caught:
            launcher(2, 1, 1, 0, function, x, 1, 2, 3)
        error = caught.value
        assert error.status != 0 and (error.status_name, error.status_text) == driver.describe_status(error.status)
        assert (error.kernel, error.backend) == ("put", self.driver_class.name)
        assert (error.device, error.grid, error.block) == (driver.current_device(), (2, 1, 1), (threads, 1, 1))
        assert error.status_name in str(error) and "put" in str(error)
        assert self.count(driver) == before
        launcher, function = self.make(driver)
        launcher(1, 1, 1, 0, function, x, 1, 2, 3)
        podium.synchronize()

    def test_launch_returns_the_status(self, driver: Driver) -> None:
        """`Driver.launch` returns 0 for a launch that was taken and the vendor's status for one that was refused."""
        device = driver.current_device()
        _, function = self.make(driver)
        x = podium.asarray([0])
        data = struct.pack("=Qiii", x.ptr, 1, 2, 3)
        parameters = Parameters(data, (0, 8, 12, 16))
        stream = driver.current_stream(device)
        assert driver.launch(function, LaunchConfig(1, 1), device, stream, parameters) == 0
        assert driver.synchronize(device, stream) == 0
        if self.capabilities.executes:
            assert x.tolist() == [1321]
        threads = driver.devices()[device].max_threads + 1
        status = driver.launch(function, LaunchConfig(1, threads), device, stream, parameters)
        assert isinstance(status, int) and status != 0
        assert driver.launch(function, LaunchConfig(1, 1), device, stream, parameters) == 0

    @pytest.mark.needs("observes", "cluster")
    def test_grids_are_counted_in_clusters(self, driver: Driver, level: Level) -> None:
        """With ``num_ctas`` in the metadata the grid of a call counts clusters, and the launch has them."""
        launcher, function = self.make(driver, num_ctas=2)
        x = podium.asarray([0] * 6)
        launcher(3, 1, 1, 0, function, x, 1, 2, 3)
        self._check_put(driver, x, [1321] * 6, ((6, 1, 1), (1, 1, 1), None))
        if self.capabilities.records:
            assert self.last(driver).cluster == (2, 1, 1)

    @pytest.mark.needs("generated_level")
    def test_the_template_needs_no_vendors_headers(self) -> None:
        """The C template includes podium's headers, its own folder's and those of the C standard library, no others."""
        template = self.driver_class.launcher_cls.template
        pending, seen = [template], set[str]()
        own = {path.name: path for path in template.parent.rglob("*.h")}
        podiums = {path.name for path in _HEADERS.iterdir()}
        while pending:
            text = pending.pop().read_text(encoding="utf-8")
            for kind, name in re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', text, re.MULTILINE):
                if name in own and name not in seen:
                    pending.append(own[name])
                seen.add(name)
                known = name in own or name in podiums or (kind == "<" and name in _STANDARD)
                assert known, f"{template.name} includes {name}"

    def _check_put(self, driver: Driver, x: Any, expected: list[int], shape: Any) -> None:
        podium.synchronize()
        if self.capabilities.executes:
            assert x.tolist() == expected
        if self.capabilities.records:
            launch = self.last(driver)
            assert launch.parameters == (struct.pack("=Q", x.ptr), *(struct.pack("=i", each) for each in (1, 2, 3)))
            if shape is not None:
                grid, block, stream = shape
                assert (launch.grid, launch.block) == (grid, block)
                assert stream is None or launch.stream == stream
