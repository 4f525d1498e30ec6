"""The serial backend under podium's conformance suite."""

from __future__ import annotations

from podium.testing import Capabilities, DriverConformance

from podium_serial.driver import SerialDriver


class TestSerial(DriverConformance):
    """What the backend does not claim is skipped, and counted."""

    driver_class = SerialDriver
    capabilities = Capabilities().without("shared_memory", "barriers", "atomics", "warps", "half", "variables")
