"""The conformance suite on the CPU backend."""

from __future__ import annotations

from podium.testing import DriverConformance

from podium_cpu.driver import CpuDriver


class TestCpu(DriverConformance):
    """The CPU backend claims everything but streams, of which it has one."""

    driver_class = CpuDriver
