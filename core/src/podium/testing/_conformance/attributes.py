"""Launch attributes of the backend's own, what is known of kernels and pointers, and how many blocks run at once."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

import podium
from podium.backend import Driver, LaunchConfig, Occupancy, Target
from podium.errors import LaunchConfigError
from podium.testing._conformance.child import add_kernel
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Attributes"]


@contract("Launcher")
class Attributes(Subject):
    """`Driver.attribute_keys` and `Driver.check`."""

    def test_attributes_are_features_with_numbers_of_their_own(self) -> None:
        """Each name in `attribute_keys` is a feature, and has a number of 32 bits that no other has."""
        stated = self.driver_class
        keys = stated.attribute_keys
        assert keys.keys() <= stated.features
        assert not keys.keys() & {"cluster", "cooperative", "dependent"}
        assert len(set(keys.values())) == len(keys) and all(0 <= key < 1 << 32 for key in keys.values())
        assert self.attribute_values.keys() <= keys.keys()

    @pytest.mark.needs("observes")
    def test_every_attribute_reaches_the_driver(self, driver: Driver, level: Level) -> None:
        """A launch has the attributes of its configuration, with their values, and none of another launch's."""
        kernel, x = add_kernel(), podium.asarray([0] * 8)
        launches: list[Any] = [*({name: value} for name, value in self.attribute_values.items()), {}]
        for attributes in launches:
            bound = kernel[LaunchConfig(2, 4, attributes=attributes)]
            for _ in range(2):
                bound(x, 1)
                self._check(driver, attributes)
        podium.synchronize()
        if self.capabilities.executes:
            assert x.tolist() == [2 * len(launches)] * 8
        level.check(kernel)

    @pytest.mark.needs("observes")
    def test_attributes_of_the_metadata_hold_for_every_launch(self, driver: Driver, level: Level) -> None:
        """What compiled code says of its attributes holds at the low-level launcher, too."""
        kernel, x = add_kernel(), podium.asarray([0] * 8)
        stream = driver.current_stream(driver.current_device())
        for name, value in self.attribute_values.items():
            metadata = {"name": "add", "block": 4, "attributes": {name: value}}
            launcher = driver.launcher_cls(kernel, metadata, driver)
            launcher(2, 1, 1, stream, kernel.load(), x, 1)
            self._check(driver, {name: value})
        podium.synchronize()
        if self.capabilities.executes:
            assert x.tolist() == [len(self.attribute_values)] * 8

    def test_attributes_that_are_none_are_refused(self, driver: Driver, level: Level) -> None:
        """An unknown name and a value that is no number of 32 bits are errors before anything is launched."""
        kernel, x = add_kernel(), podium.asarray([0])
        kernel[1, 1](x, 1)
        before = self.count(driver)
        with pytest.raises(LaunchConfigError, match="podium_no_such_attribute"):
            kernel[LaunchConfig(1, 1, attributes={"podium_no_such_attribute": 1})](x, 1)
        wrong: list[Any] = ["1", 1.0, None, 1 << 32, -(1 << 31) - 1, (), (1, 2, 3, 4), (1, "2")]
        for value in wrong:
            with pytest.raises(LaunchConfigError):
                LaunchConfig(1, 1, attributes={"priority": value})
        assert self.count(driver) == before

    def test_kernels_tell_what_the_backend_knows(self, driver: Driver) -> None:
        """`Kernel.attributes` has numbers under their names, among them the most threads of a block."""
        attributes = add_kernel().attributes()
        assert all(isinstance(name, str) and isinstance(value, int) for name, value in attributes.items())
        limit = driver.devices()[driver.current_device()].max_threads
        assert 0 < attributes["max_threads"] <= limit
        assert all(attributes.get(name, 0) >= 0 for name in ("registers", "shared", "local", "constant"))

    @pytest.mark.needs("occupancy")
    def test_occupancy(self, driver: Driver) -> None:
        """More threads or more shared memory in a block never let more blocks run at once."""
        kernel = add_kernel()
        device = driver.devices()[driver.current_device()]
        sizes = [size for size in (32, 64, 256, 1024) if size <= kernel.attributes()["max_threads"]]
        found = [kernel.occupancy(4, size) for size in sizes]
        found += [
            kernel.occupancy(4, sizes[-1], shared=shared) for shared in (device.max_shared // 2, device.max_shared)
        ]
        for each in found:
            assert isinstance(each, Occupancy) and each.multiprocessors > 0
            assert each.blocks_per_multiprocessor > 0
            assert 0 < each.max_active_blocks <= each.blocks_per_multiprocessor * each.multiprocessors
            assert each.max_active_clusters is None
        blocks = [each.blocks_per_multiprocessor for each in found]
        assert blocks == sorted(blocks, reverse=True)
        if "cluster" in driver.features and device.max_cluster > 1:
            clusters = kernel.occupancy(4, 32, cluster=2).max_active_clusters
            assert clusters is not None and clusters > 0
        for config in ((4, device.max_threads + 1), (0, 32), (-1, 32)):
            with pytest.raises(LaunchConfigError):
                kernel.occupancy(*config)

    @pytest.mark.needs("occupancy", "observes")
    def test_a_suggested_block_can_be_launched(self, driver: Driver) -> None:
        """A suggested block is within the kernel's limit, and a grid of the suggested size runs."""
        kernel = add_kernel()
        threads, blocks = kernel.suggested_block()
        assert 0 < threads <= kernel.attributes()["max_threads"] and blocks > 0
        x = podium.asarray([0] * threads * blocks)
        kernel[blocks, threads](x, 1)
        if self.capabilities.executes:
            assert x.tolist() == [1] * threads * blocks
        assert kernel.suggested_block(shared=1024)[0] > 0

    def test_versions_are_short_texts(self, driver: Driver) -> None:
        """`versions` maps names to texts, the same each time."""
        versions = driver.versions()
        assert all(isinstance(text, str) and text.strip() for pair in versions.items() for text in pair)
        assert all("\n" not in version for version in versions.values()) and dict(driver.versions()) == dict(versions)

    def test_a_device_accepts_its_own_target(self, driver: Driver) -> None:
        """A device takes code for its own target, and none of another backend."""
        for device in driver.devices():
            assert driver.accepts(device.target, device.target) is True
            other = Target("podium_other", device.target.arch, device.target.warp_size)
            assert driver.accepts(other, device.target) is False

    def test_pointers_are_known_or_not(self, driver: Driver) -> None:
        """`pointer_device` says of an array's memory what the array does, also of its middle, or that it is unknown."""
        x, host = podium.asarray([1, 2, 3]), ctypes.create_string_buffer(64)
        for address in (x.ptr, x.ptr + 8):
            assert driver.pointer_device(address) in (None, x.__dlpack_device__())
        assert driver.pointer_device(ctypes.addressof(host)) in (None, (1, 0))

    def _check(self, driver: Driver, attributes: dict[str, Any]) -> None:
        if not self.capabilities.records:
            return
        expected = []
        for name in sorted(attributes):
            value = attributes[name]
            numbers = value if isinstance(value, tuple) else (value,)
            expected.append((driver.attribute_keys[name], tuple(number & 0xFFFFFFFF for number in numbers)))
        assert self.last(driver).attributes == tuple(expected)
