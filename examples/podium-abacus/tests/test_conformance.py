"""The backend under podium's suite for backends."""

from __future__ import annotations

from podium.testing import Capabilities, DriverConformance

from podium_abacus.driver import AbacusDriver


class TestAbacus(DriverConformance):
    """What the backend does not claim is skipped, and counted."""

    driver_class = AbacusDriver
    capabilities = Capabilities().without("shared_memory", "barriers", "atomics", "warps", "half", "variables")
    # Compiled for where there is no device, as in CI, so that more is tested there:
    # compile_target = "abacus:ARCH:WARP"
