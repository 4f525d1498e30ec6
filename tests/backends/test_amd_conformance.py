"""What the conformance suite asks of launches, streams, events, attributes and memory, on the stand-in for HIP.

hipRTC is the real one, so the code objects are, too; what a kernel computes is not seen here.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from recording.hip.library import compiler, environment

pytest.importorskip("podium_amd", reason="podium-amd is not installed")

from amd_hiprtc import PATH

_SUITE = """
import struct
from recording.hip.library import Recording
from podium.testing import Capabilities, DriverConformance, RecordedLaunch
from podium_amd import detection
from podium_amd.driver import AmdDriver

detection.inactive_reason = lambda: None
RECORDING = Recording()
RECORDING.keep(4096)


class TestAmd(DriverConformance):
    driver_class = AmdDriver
    capabilities = Capabilities(executes=False, records=True)
    attribute_values = {"priority": -1}

    def recorded(self, driver):
        return [
            RecordedLaunch(
                each.name, each.device, each.grid, each.block, (1, 1, 1), each.shared, 0, each.stream, each.parameters,
                tuple((key, struct.unpack("=I", value[:4])) for key, value in each.attributes),
            )
            for each in RECORDING.launches()
        ]
"""

# One level with an empty cache and the other; what a backend shares with all others is tested on those.
_CHOSEN = (
    "not warm and not new_process and (attribute or stream or event or elapsed or occupancy or suggest or pinned or "
    "made_of or pointer or "
    "mixed_types or structs or launcher or status or too_much_memory or targets or pickled or variable)"
)


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler for the recording HIP runtime")
def test_the_suite_holds_on_the_stand_in(tmp_path: Path) -> None:
    """The contracts of launches and of what GPUs have beside them hold, as far as they show without running a kernel."""
    (tmp_path / "test_suite.py").write_text(_SUITE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "test_suite.py", "-k", _CHOSEN],
        cwd=tmp_path,
        env=environment(hiprtc=Path(PATH)),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
