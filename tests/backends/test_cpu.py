"""The conformance suite on the CPU backend."""

from __future__ import annotations

from podium.testing import DriverConformance

from podium_cpu.driver import CpuDriver


class TestCpu(DriverConformance):
    """The CPU backend claims everything."""

    driver_class = CpuDriver
