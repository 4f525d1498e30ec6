"""What tests of backends share: those on recording drivers run in processes of their own."""

from __future__ import annotations

from recording.hip.isolation import hip, hip_machine, hip_server, hip_servers
from recording.isolation import pytest_pyfunc_call, recording, recording_server

__all__ = ["hip", "hip_machine", "hip_server", "hip_servers", "pytest_pyfunc_call", "recording", "recording_server"]
