"""What tests of backends share: those on the recording CUDA driver run in processes of their own."""

from __future__ import annotations

from recording.isolation import pytest_pyfunc_call, recording, recording_server

__all__ = ["pytest_pyfunc_call", "recording", "recording_server"]
