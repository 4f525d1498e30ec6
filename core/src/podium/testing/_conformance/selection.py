"""Selection: the ways in which a user names the backend."""

from __future__ import annotations

import pytest

import podium
from podium.backend import Driver
from podium.errors import UnknownBackendError
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Subject, bad

__all__ = ["Selection"]


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

    def test_a_misspelt_name_is_never_replaced(self, driver: Driver) -> None:
        """A name that is nearly the backend's is an error that suggests it.

        Rows DISC-06.
        """
        with pytest.raises(UnknownBackendError) as caught:
            podium.set_active(self.driver_class.name + "x")
        assert self.driver_class.name in caught.value.known
        assert podium.driver.resolve() is driver
