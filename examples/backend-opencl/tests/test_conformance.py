"""podium's conformance suite on the OpenCL backend."""

from __future__ import annotations

from podium.testing import DriverConformance

from podium_opencl.driver import OpenclDriver


class TestOpencl(DriverConformance):
    """What the backend does not claim is skipped, and counted."""

    driver_class = OpenclDriver
