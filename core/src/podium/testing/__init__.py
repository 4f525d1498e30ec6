"""For tests: a driver without a device, and the conformance suite that every backend runs."""

from __future__ import annotations

from podium.testing._fake import FakeArray, FakeDriver, RecordedLaunch

__all__ = ["FakeArray", "FakeDriver", "RecordedLaunch"]
