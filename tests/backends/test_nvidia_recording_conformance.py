"""What the conformance suite asks of streams, events, attributes, memory and occupancy, on the recording CUDA driver."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from recording.cuda.library import build, compiler, environment

pytest.importorskip("podium_nvidia", reason="podium-nvidia is not installed")

_SUITE = """
import struct
from recording.cuda.library import Recording
from podium.testing import Capabilities, DriverConformance, RecordedLaunch
from podium_nvidia import detection
from podium_nvidia.driver import NvidiaDriver

detection.inactive_reason = lambda: None
RECORDING = Recording()
RECORDING.keep(4096)


class TestNvidia(DriverConformance):
    driver_class = NvidiaDriver
    capabilities = Capabilities(executes=False, records=True)
    attribute_values = {"priority": -1, "memory_sync_domain": 0, "shared_memory_carveout": 50}

    def recorded(self, driver):
        return [
            RecordedLaunch(
                each.name, each.device, each.grid, each.block, each.cluster, each.shared, 0, each.stream, each.parameters,
                tuple((key, struct.unpack("=I", value[:4])) for key, value in each.attributes),
            )
            for each in RECORDING.launches()
        ]
"""

# One level with an empty cache and the other; what a backend shares with all others is tested on those.
_CHOSEN = "not warm and (attribute or stream or event or elapsed or occupancy or suggest or pinned or made_of or pointer or capture or graph)"


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler for the recording library")
def test_the_suite_holds_on_the_recording_driver(tmp_path: Path) -> None:
    """The contracts of what GPUs have beside launches hold, as far as they show without running a kernel."""
    (tmp_path / "test_suite.py").write_text(_SUITE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "test_suite.py", "-k", _CHOSEN],
        cwd=tmp_path,
        env=environment(build()),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) >= 30, done.stdout[-6000:]
