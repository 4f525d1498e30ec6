"""The conformance suite on NVIDIA GPUs; it needs one."""

from __future__ import annotations

import pytest

from podium.backend import Driver
from podium.testing import Capabilities, DriverConformance

from podium_nvidia.driver import NvidiaDriver


@pytest.mark.gpu
class TestNvidia(DriverConformance):
    """The NVIDIA backend claims everything."""

    driver_class = NvidiaDriver
    capabilities = Capabilities(streams=True)
    compile_target = "nvidia:sm_90:32"

    def other_stream(self, driver: Driver) -> int:
        """Make a stream of the device that is current."""
        return driver.create_stream(driver.current_device(), 0)
