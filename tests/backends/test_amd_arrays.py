"""Arrays of other libraries on AMD and on NVIDIA: each backend takes its own, and says whose the other's are."""

from __future__ import annotations

import ctypes
import struct
import sys
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from amd_launching import kernel
from recording.hip.isolation import STAND_INS
from recording.hip.machine import StandIn

import podium
from podium._arrays import locate
from podium.errors import ArrayDeviceError

pytest.importorskip("podium_amd", reason="podium-amd is not installed")
pytest.importorskip("rocm.bindings.hip", reason="hip-python is not installed")


@pytest.fixture(params=(STAND_INS[0], STAND_INS[-1]))
def hip_machine(request: pytest.FixtureRequest) -> str:
    """The oldest and the newest stand-in: they number the kinds of memory otherwise."""
    name: str = request.param
    return name


class Interface:
    """An array that says where it is by ``__cuda_array_interface__`` alone."""

    def __init__(self, address: int, shape: tuple[int, ...] = (4,), stream: int | None = None) -> None:
        self.__cuda_array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": shape,
            "typestr": "<f4",
            "stream": stream,
        }


class Exported:
    """An array that has DLPack without an exchange table, as old versions of libraries have it."""

    def __init__(self, array: Any, place: tuple[int, int]) -> None:
        self.array, self.place = array, place
        self.asked: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place

    def __dlpack__(self, **keywords: Any) -> object:
        self.asked.append(keywords.get("stream"))
        return self.array.__dlpack__(**keywords)


def first_pointer(hip: StandIn) -> int:
    address: int = struct.unpack("=Q", hip.recording.last().parameters[0])[0]
    return address


def test_arrays_of_rocm_are_taken(hip: StandIn, level: str) -> None:
    """CTX-10: DLPack's devices of ROCm, and the CUDA array interface where HIP knows the memory, also of device 1."""
    saxpy = kernel(hip, "saxpy")
    for device in (0, 1):
        x = podium.empty(4, "fp32", device=device)
        exported = Exported(x, (10, device))
        for array in (x, exported, Interface(x.ptr), Interface(x.ptr, stream=1)):
            saxpy[1, 64](array, 0, 1.0, 0)
            launch = hip.recording.last()
            assert (first_pointer(hip), launch.device, launch.stream) == (x.ptr, device, 0)
        assert exported.asked == [0]  # the default stream, in ROCm's numbering
    pinned = podium.empty(4, "fp32", pinned=True)
    saxpy[1, 64](pinned, Interface(0, (0,)), 1.0, 0)
    assert first_pointer(hip) == pinned.ptr


def test_arrays_of_cuda_are_refused_by_name(hip: StandIn, level: str) -> None:
    """ARG-11: memory that is not HIP's is another vendor's if its array says so, and the host's if that says so."""
    saxpy = kernel(hip, "saxpy")
    host = ctypes.create_string_buffer(16)
    foreign = "cuda memory, which the backend 'amd' does not reach"
    for array in (Exported(None, (2, 0)), Interface(ctypes.addressof(host))):
        with pytest.raises(ArrayDeviceError, match=foreign):
            saxpy[1, 64](array, 0, 1.0, 0)
    with pytest.raises(ArrayDeviceError, match="it is in host memory; copy it to the device first"):
        saxpy[1, 64](numpy.zeros(4, "f4"), 0, 1.0, 0)


def test_tensors_of_torch_for_rocm_are_no_cuda_arrays(
    hip: StandIn, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTX-10: torch for ROCm calls its devices "cuda" and has CUDA's interface; its version says whose its tensors are."""

    class Tensor(Interface):
        pass

    torch = SimpleNamespace(Tensor=Tensor, version=SimpleNamespace(hip="7.2.53211"))
    monkeypatch.setitem(sys.modules, "torch", torch)
    x = podium.empty(4, "fp32")
    kernel(hip, "saxpy")[1, 64](Tensor(x.ptr), Tensor(0, (0,)), 1.0, 0)
    assert first_pointer(hip) == x.ptr


def test_podiums_own_arrays_are_exported_as_rocms(hip: StandIn) -> None:
    """Who takes an array by DLPack sees the device type of ROCm; streams are given in its numbering."""
    x = podium.empty(4, "fp32", device=1)
    assert tuple(map(int, x.__dlpack_device__())) == (10, 1)
    assert podium.driver.get("amd").dlpack_stream(2) == 0


def test_nvidias_backend_refuses_arrays_of_rocm() -> None:
    """ARG-11: an NVIDIA backend beside it does not claim them: neither by DLPack nor by the interface of torch for ROCm."""
    nvidia = pytest.importorskip("podium_nvidia.driver", reason="podium-nvidia is not installed").NvidiaDriver
    from podium_amd.driver import AmdDriver

    assert not nvidia.dlpack_devices & AmdDriver.dlpack_devices
    found = locate(Exported(None, (10, 0)), False, nvidia.dlpack_devices)
    assert found is not None and (found.device_type, found.address) == (10, 0)
