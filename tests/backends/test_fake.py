"""The conformance suite on the fake driver: it executes nothing, and records what reaches it."""

from __future__ import annotations

from podium.backend import Driver
from podium.testing import Capabilities, DriverConformance, FakeDriver


class TestFake(DriverConformance):
    """The fake driver."""

    driver_class = FakeDriver
    capabilities = Capabilities(executes=False, compiles=False, records=True, streams=True)

    def other_stream(self, driver: Driver) -> int:
        """Any number is a stream of the fake driver."""
        return 0x1234
