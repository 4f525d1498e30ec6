"""The conformance suite on HIP's runtime where there is no GPU: `pytest` runs this file in a process of its own.

SUITE says on what: "twins" is the stand-in with kernels that run, "model" is AMD's own runtime on a modelled device, and
"all" the whole suite on the stand-in, of which the tests of the AMD backend run a part.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from recording.hip.isolation import MODEL
from recording.hip.library import Recording
from recording.hip.machine import RUNTIME, Modelled

from podium.backend import Driver
from podium.testing import Capabilities, DriverConformance, RecordedLaunch
from podium.testing._conformance.dialect import Dialect
from podium.testing._conformance.grids import Grids
from podium.testing._conformance.kernels import Kernels
from podium.testing._conformance.loading import Loading
from podium.testing._conformance.streams import Streams
from podium.testing._conformance.timeline import Timeline

from podium_amd.driver import AmdDriver

KIND = os.environ["SUITE"]
SETTINGS = {"PODIUM_AMD_LIBHIP": "", "PODIUM_AMD_HIPRTC": ""}

if KIND == "model":
    machine = Modelled(Path(os.environ[RUNTIME]), Path(os.environ[MODEL]), "gfx1100")
    SETTINGS |= {"PODIUM_AMD_LIBHIP": machine.library, "PODIUM_AMD_HIPRTC": machine.compiler}
else:
    recording = Recording()
    recording.keep(4096)
    SETTINGS |= {name: os.environ[name] for name in SETTINGS}
if KIND == "twins":
    from recording.hip.twins import give_twins

    give_twins(recording)


PARTS: dict[str, tuple[type, ...]] = {
    "all": (DriverConformance,),
    "twins": (Dialect, Kernels),
    "model": (Grids, Loading, Streams, Timeline),
}


class TestAmd(*PARTS[KIND]):  # type: ignore[misc]
    """The contracts of all backends, for the AMD backend."""

    driver_class = AmdDriver
    capabilities = Capabilities(executes=KIND == "twins", records=KIND == "all")
    attribute_values: ClassVar[dict[str, int | tuple[int, ...]]] = {"priority": 0}

    @pytest.fixture(autouse=True)
    def on_the_machine(self, registered: None, monkeypatch: pytest.MonkeyPatch) -> None:
        """Name the runtime, after the suite has cleared all settings."""
        for name, value in SETTINGS.items():
            monkeypatch.setenv(name, value)

    def command(self, code: str, **settings: Any) -> tuple[list[str], dict[str, str]]:
        """Name it to further processes too."""
        return super().command(code, **settings, **SETTINGS)

    def recorded(self, driver: Driver) -> Sequence[RecordedLaunch]:
        """Return what reached the stand-in."""
        return [
            RecordedLaunch(
                launch.name,
                launch.device,
                launch.grid,
                launch.block,
                (1, 1, 1),
                launch.shared,
                0,
                launch.stream,
                launch.parameters,
                tuple((key, struct.unpack("=I", value[:4])) for key, value in launch.attributes),
            )
            for launch in recording.launches()
        ]
