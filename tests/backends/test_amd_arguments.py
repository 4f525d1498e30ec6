"""The arguments of launches on HIP, as they arrive: on the stand-in of each version and on AMD's own runtime."""

from __future__ import annotations

import pytest
from amd_launching import SIGNATURES, VALUES, expected, kernel
from recording.hip.machine import Machine

import podium
from podium.backend import Signature

pytest.importorskip("podium_amd", reason="podium-amd is not installed")
pytest.importorskip("rocm.bindings.hip", reason="hip-python is not installed")


def test_every_argument_arrives(hip: Machine, level: str) -> None:
    """Both levels hand over the same bytes, those of each type, with structs where C has them; and grid, block, LDS."""
    before = len(hip.dispatches())
    for name, values in VALUES.items():
        kernel(hip, name)[podium.LaunchConfig((3, 2, 1), (32, 2, 1), shared=128)](*values)
    found = hip.dispatches()[before:]
    assert len(found) == len(VALUES)
    for dispatch, name in zip(found, VALUES):
        static = 256 if name == "shared" else 0
        assert (dispatch.grid, dispatch.block, dispatch.group) == ((3, 2, 1), (32, 2, 1), 128 + static), name
        offset = 0
        for parameter, data in zip(Signature.parse(SIGNATURES[name]), expected(name)):
            offset = -(-offset // parameter.type.alignment) * parameter.type.alignment
            assert dispatch.argument(offset, len(data)) == data, name
            offset += len(data)
