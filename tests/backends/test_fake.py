"""The conformance suite on the fake driver: it executes nothing, and records what reaches it."""

from __future__ import annotations

from typing import ClassVar

from podium.testing import Capabilities, DriverConformance, FakeDriver


class TestFake(DriverConformance):
    """The fake driver."""

    driver_class = FakeDriver
    capabilities = Capabilities(executes=False, compiles=False, records=True)
    attribute_values: ClassVar = {"priority": -2, "preferred_cluster": (2, 1, 1)}
