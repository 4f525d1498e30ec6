"""For tests: a driver without a device, and the conformance suite that every backend runs.

A backend's whole test file::

    from podium.testing import DriverConformance

    class TestMine(DriverConformance):
        driver_class = MyDriver

Names are imported when first used, since pytest loads this package in every run to find podium's plug-in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.testing._capabilities import Capabilities
    from podium.testing._fake import FakeArray, FakeDriver, RecordedLaunch
    from podium.testing.conformance import DriverConformance
else:
    from podium._late_names import late_names

    __getattr__, __dir__ = late_names(
        __name__,
        {
            "podium.testing._capabilities": "Capabilities",
            "podium.testing._fake": "FakeArray FakeDriver RecordedLaunch",
            "podium.testing.conformance": "DriverConformance",
        },
    )

__all__ = ["Capabilities", "DriverConformance", "FakeArray", "FakeDriver", "RecordedLaunch"]
