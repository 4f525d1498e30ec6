"""For tests: a driver without a device, and the conformance suite that every backend runs.

A backend's whole test file::

    from podium.testing import DriverConformance

    class TestMine(DriverConformance):
        driver_class = MyDriver

Names are imported when first used, since pytest loads this package in every run to find podium's plug-in.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.testing._capabilities import Capabilities
    from podium.testing._fake import FakeArray, FakeDriver, RecordedLaunch
    from podium.testing.conformance import DriverConformance

__all__ = ["Capabilities", "DriverConformance", "FakeArray", "FakeDriver", "RecordedLaunch"]

_HOMES = {
    "Capabilities": "_capabilities",
    "DriverConformance": "conformance",
    "FakeArray": "_fake",
    "FakeDriver": "_fake",
    "RecordedLaunch": "_fake",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'podium.testing' has no attribute {name!r}")
    value: object = getattr(import_module(f"podium.testing.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
