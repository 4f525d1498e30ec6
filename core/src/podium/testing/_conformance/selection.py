"""Selection: the ways in which a user names the backend."""

from __future__ import annotations

import struct

import pytest

import podium
from podium.backend import Driver
from podium.errors import UnknownBackendError
from podium.testing._conformance.child import add_kernel
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject, bad
from podium.testing._fake import FakeDriver, FakeLauncher

__all__ = ["OtherDriver", "Selection"]


class OtherLauncher(FakeLauncher):
    """The launcher of the other backend."""

    backend = "podium_other"


class OtherDriver(FakeDriver):
    """Another backend, which a program uses beside the one under test."""

    name = "podium_other"
    priority = -1000
    launcher_cls = OtherLauncher


@contract("Selection")
class Selection(Subject):
    """How the backend is chosen."""

    def test_use_chooses_it_for_a_block(self, driver: Driver) -> None:
        """`podium.use(name)` chooses the backend for the block, and only there."""
        podium.driver.set_active(None)
        with podium.use(self.driver_class.name) as chosen:
            assert type(chosen) is self.driver_class
            assert podium.driver.active is chosen
        assert podium.driver.chosen() is None

    def test_set_active_chooses_it(self, driver: Driver) -> None:
        """`podium.set_active(name)` chooses the one driver that there is of the backend."""
        podium.set_active(self.driver_class.name)
        assert podium.driver.resolve() is driver
        assert podium.driver.active.name == self.driver_class.name

    def test_the_variable_chooses_it(self, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        """PODIUM_BACKEND chooses the backend."""
        podium.reset_active()
        monkeypatch.setenv("PODIUM_BACKEND", self.driver_class.name)
        assert podium.driver.resolve() is driver

    def test_the_variable_chooses_it_in_a_new_process(self, driver: Driver, compiled: None) -> None:
        """PODIUM_BACKEND is enough for a launch, and nothing else need be said."""
        process = self.python("child.launch_add(executes)\nprint(podium.driver.active.name)")
        assert process.returncode == 0, bad(process)
        assert process.stdout.strip() == self.driver_class.name

    @pytest.mark.needs("observes")
    def test_two_backends_at_once(self, driver: Driver, level: Level) -> None:
        """One program launches on this backend and on another in turn, and each launch goes where it should."""
        podium.driver.register(OtherDriver)
        try:
            kernel, x = add_kernel(), podium.asarray([1, 2])
            for step in range(3):
                kernel[1, 2](x, 10)
                with podium.use(OtherDriver.name) as other:
                    y = podium.asarray([0])
                    kernel[1, 1](y, 1)
                    assert isinstance(other, OtherDriver) and len(other.launches) == step + 1
                    assert other.launches[-1].parameters == (struct.pack("=Q", y.ptr), struct.pack("=i", 1))
                if self.capabilities.records:
                    assert self.last(driver).parameters == (struct.pack("=Q", x.ptr), struct.pack("=i", 10))
            if self.capabilities.executes:
                assert x.tolist() == [31, 32]
            level.check(kernel)
        finally:
            podium.driver.unregister(OtherDriver.name)

    def test_a_misspelt_name_is_never_replaced(self, driver: Driver) -> None:
        """A name that is nearly the backend's is an error that suggests it.

        Rows DISC-06.
        """
        with pytest.raises(UnknownBackendError) as caught:
            podium.set_active(self.driver_class.name + "x")
        assert self.driver_class.name in caught.value.known
        assert podium.driver.resolve() is driver
