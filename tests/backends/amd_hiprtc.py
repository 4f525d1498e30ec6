"""The real hipRTC of this machine; where there is none, modules that import this are skipped with podium's own reason."""

from __future__ import annotations

import pytest

from podium.errors import ToolchainError

__all__ = ["PATH"]

pytest.importorskip("rocm.bindings.hiprtc", reason="hip-python is not installed")

from podium_amd import toolchain

try:
    PATH = toolchain.hiprtc_path()
except ToolchainError as error:
    pytest.skip(f"hipRTC is not installed: {error}", allow_module_level=True)
