"""The conformance suite on NVIDIA GPUs; it needs one."""

from __future__ import annotations

from typing import ClassVar

import pytest

from podium.testing import DriverConformance

from podium_nvidia.driver import NvidiaDriver


@pytest.mark.gpu
class TestNvidia(DriverConformance):
    """The NVIDIA backend claims everything."""

    driver_class = NvidiaDriver
    compile_target = "nvidia:sm_90:32"
    attribute_values: ClassVar = {
        "memory_sync_domain": 0,
        "non_portable_cluster": 1,
        "priority": -1,
        "shared_memory_carveout": 50,
    }
