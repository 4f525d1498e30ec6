"""The driver protocol: what each method returns, and that it goes on returning it."""

from __future__ import annotations

import ctypes
from itertools import pairwise
from pathlib import Path

import pytest

import podium
from podium.backend import Device, Driver, Target
from podium.errors import OutOfResourcesError, ToolchainError
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Subject, bad

__all__ = ["Protocol"]

_TOO_MUCH = 1 << 60
_UNKNOWN_STATUSES = (123_456_789, -1, 1 << 31)


@contract("Driver protocol")
class Protocol(Subject):
    """The methods that are not about one kernel."""

    def test_what_the_class_states(self) -> None:
        """The class states name, priority, launcher, languages, features and DLPack devices, each of the right type."""
        stated = self.driver_class
        assert isinstance(stated.name, str) and stated.name.isidentifier() and stated.name == stated.name.lower()
        assert isinstance(stated.priority, int)
        assert isinstance(stated.languages, frozenset) and stated.languages
        assert isinstance(stated.features, frozenset)
        assert isinstance(stated.dlpack_devices, frozenset) and all(isinstance(n, int) for n in stated.dlpack_devices)
        assert stated.launcher_cls.backend == stated.name
        assert stated.launcher_cls.template.is_file()

    def test_the_toolchain_stays_the_same(self, compiler: Driver, tmp_path: Path) -> None:
        """The toolchain has one text per language, the same in each call and in each process.

        Rows CAC-14, CAC-15.
        """
        for language in sorted(self.driver_class.languages):
            try:
                text = compiler.toolchain(language)
            except ToolchainError:
                continue
            assert isinstance(text, str) and text.strip()
            assert [compiler.toolchain(language) for _ in range(3)] == [text] * 3
            process = self.python(
                f"print(podium.driver.get(driver_class.name).toolchain({language!r}), end='')", cache=tmp_path
            )
            assert process.returncode == 0, bad(process)
            assert process.stdout == text

    def test_devices_are_listed_by_index_with_their_limits(self, driver: Driver) -> None:
        """`devices()` lists the devices in the order of their index, with limits above zero, and stays the same."""
        devices = list(driver.devices())
        assert devices, "an active backend has a device"
        assert [device.index for device in devices] == list(range(len(devices)))
        for device in devices:
            assert isinstance(device, Device) and device.name
            assert device.target.backend == self.driver_class.name
            limits = (*device.max_grid, *device.max_block, device.max_threads, device.memory, device.max_cluster)
            assert all(isinstance(limit, int) and limit > 0 for limit in limits), limits
            assert device.max_shared >= 0 and device.max_parameter_bytes >= 1024
        assert list(driver.devices()) == devices

    def test_targets_survive_being_written_down(self, driver: Driver) -> None:
        """The default target is one of a device, and `Target.parse` reads back what `str` writes.

        Rows CAC-21, RTC-06.
        """
        targets = [driver.default_target(), *(device.target for device in driver.devices())]
        assert targets[0] in targets[1:]
        for target in targets:
            assert target.backend == self.driver_class.name and target.arch and target.warp_size > 0
            assert Target.parse(str(target)) == target

    def test_the_current_device_and_stream_are_plain_integers(self, driver: Driver) -> None:
        """`current_device()` is the index of a device and `current_stream()` an unsigned handle.

        Rows ACT-12, CTX-03.
        """
        device = driver.current_device()
        assert isinstance(device, int) and 0 <= device < len(driver.devices())
        stream = driver.current_stream(device)
        assert isinstance(stream, int) and 0 <= stream < 1 << 64
        assert driver.capturing(device, stream) is False
        assert driver.can_access(device, device) is True
        mapped = driver.dlpack_stream(stream)
        assert mapped is None or isinstance(mapped, int)

    @pytest.mark.parametrize("alignment", [1, 16, 256, 4096])
    def test_allocate_gives_aligned_memory(self, driver: Driver, alignment: int) -> None:
        """`allocate` returns memory of at least the size and with the alignment that was asked for, never shared."""
        device = driver.current_device()
        stream = driver.current_stream(device)
        buffers = [driver.allocate(1000, alignment, device, stream) for _ in range(3)]
        for buffer in buffers:
            assert buffer.ptr > 0 and buffer.ptr % alignment == 0
            assert buffer.size >= 1000
        starts = sorted(buffer.ptr for buffer in buffers)
        assert all(second - first >= 1000 for first, second in pairwise(starts)), "buffers overlap"

    def test_copy_goes_in_every_direction(self, driver: Driver) -> None:
        """`copy` moves bytes from the host to the device, on the device, and back, and is done when it returns."""
        device = driver.current_device()
        stream = driver.current_stream(device)
        data = bytes(range(256)) * 5 + b"end"
        first, second = (driver.allocate(len(data), 256, device, stream) for _ in range(2))
        source, result = ctypes.create_string_buffer(data, len(data)), ctypes.create_string_buffer(len(data))
        driver.copy(first.ptr, ctypes.addressof(source), len(data), device, stream)
        driver.copy(second.ptr, first.ptr, len(data), device, stream)
        driver.copy(ctypes.addressof(result), second.ptr, len(data), device, stream)
        assert result.raw == data

    def test_arrays_go_from_one_device_to_another(self, driver: Driver) -> None:
        """Arrays are copied between the first two devices in both directions, whether these reach each other or not."""
        if len(driver.devices()) < 2:
            pytest.skip("there is one device")
        values = list(range(1000))
        first = podium.asarray(values, device=0, driver=driver)
        second = podium.asarray(first, device=1, driver=driver)
        first.copy_from([0] * len(values))
        assert second.device == 1 and second.tolist() == values
        first.copy_from(second)
        assert first.tolist() == values

    def test_too_much_memory_is_an_error_that_says_how_much(self, driver: Driver) -> None:
        """`allocate` raises OutOfResourcesError for what no device has, and works afterwards."""
        device = driver.current_device()
        stream = driver.current_stream(device)
        with pytest.raises(OutOfResourcesError) as caught:
            driver.allocate(_TOO_MUCH, 256, device, stream)
        assert caught.value.required == _TOO_MUCH
        assert driver.allocate(16, 16, device, stream).ptr > 0

    def test_waiting_for_nothing_succeeds(self, driver: Driver) -> None:
        """`synchronize` returns status 0 for an idle device, whole and by stream."""
        device = driver.current_device()
        assert driver.synchronize(device) == 0
        assert driver.synchronize(device, driver.current_stream(device)) == 0

    @pytest.mark.parametrize("status", [0, 1, *_UNKNOWN_STATUSES])
    def test_every_status_has_a_name_and_a_text(self, driver: Driver, status: int) -> None:
        """`describe_status` names every status, also success and those that it has never heard of.

        Rows LIF-09.
        """
        described = driver.describe_status(status)
        assert isinstance(described, tuple) and len(described) == 2
        assert all(isinstance(text, str) and text.strip() for text in described), described
