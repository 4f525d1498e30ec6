"""What the AMD backend declares of HIP by hand, compared with hip-python, which is generated from AMD's own headers.

The stand-in for HIP, against which launches are tested, is compared with the headers themselves.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from recording.hip.library import compiler

from podium._extension import INCLUDE_DIR

pytest.importorskip("podium_amd", reason="podium-amd is not installed")
pytest.importorskip("rocm.bindings.hip", reason="hip-python is not installed")

import rocm.bindings.hip as hip

from podium_amd import (
    attribute_keys,
    attributes,
    context,
    default_stream,
    device,
    event,
    function,
    launcher,
    memory,
    status,
)

TEMPLATE = Path(launcher.__file__).with_name("launch.c.in")

STATUSES = {
    "hipErrorInvalidValue": status.INVALID_VALUE,
    "hipErrorOutOfMemory": status.OUT_OF_MEMORY,
    "hipErrorNoDevice": status.NO_DEVICE,
    "hipErrorInvalidImage": status.INVALID_IMAGE,
    "hipErrorNoBinaryForGpu": status.NO_BINARY,
    "hipErrorInvalidKernelFile": status.INVALID_KERNEL_FILE,
    "hipErrorNotFound": status.NOT_FOUND,
    "hipErrorNotReady": status.NOT_READY,
    "hipErrorPeerAccessAlreadyEnabled": status.ALREADY_ENABLED,
    "hipErrorStreamCaptureImplicit": status.CAPTURE_IMPLICIT,
}
DEVICE = {
    "CooperativeLaunch": device.Attribute.COOPERATIVE_LAUNCH,
    "MaxBlockDimX": device.Attribute.MAX_BLOCK_DIM_X,
    "MaxGridDimX": device.Attribute.MAX_GRID_DIM_X,
    "MaxThreadsPerBlock": device.Attribute.MAX_THREADS_PER_BLOCK,
    "MultiprocessorCount": device.Attribute.MULTIPROCESSOR_COUNT,
    "MaxSharedMemoryPerBlock": device.Attribute.MAX_SHARED_MEMORY_PER_BLOCK,
    "WarpSize": device.Attribute.WARP_SIZE,
    "MemoryPoolsSupported": device.Attribute.MEMORY_POOLS_SUPPORTED,
}
FUNCTION = {
    "MAX_THREADS_PER_BLOCK": "max_threads",
    "SHARED_SIZE_BYTES": "shared",
    "CONST_SIZE_BYTES": "constant",
    "LOCAL_SIZE_BYTES": "local",
    "NUM_REGS": "registers",
}


def test_the_numbers_are_hips() -> None:
    """Statuses, attributes, flags and kinds of memory have the numbers of AMD's headers."""
    assert {name: int(hip.hipError_t[name]) for name in STATUSES} == STATUSES
    assert {name: int(hip.hipDeviceAttribute_t[f"hipDeviceAttribute{name}"]) for name in DEVICE} == DEVICE
    for axis, name in enumerate("XYZ"):
        assert hip.hipDeviceAttribute_t[f"hipDeviceAttributeMaxGridDim{name}"] == DEVICE["MaxGridDimX"] + axis
        assert hip.hipDeviceAttribute_t[f"hipDeviceAttributeMaxBlockDim{name}"] == DEVICE["MaxBlockDimX"] + axis
    numbers = {key: int(hip.hipFunction_attribute[f"HIP_FUNC_ATTRIBUTE_{name}"]) for name, key in FUNCTION.items()}
    assert numbers == function._ATTRIBUTES
    assert hip.hipLaunchAttributeID.hipLaunchAttributeCooperative == attribute_keys.COOPERATIVE
    assert {"priority": hip.hipLaunchAttributeID.hipLaunchAttributePriority} == attribute_keys.KEYS
    kinds = {"host": ["Host"], "device": ["Device", "Managed", "Unified"]}
    found = {int(hip.hipMemoryType[f"hipMemoryType{name}"]): kind for kind, names in kinds.items() for name in names}
    assert found == memory._KINDS
    assert hip.hipMemcpyKind.hipMemcpyDefault == memory._ANY_DIRECTION
    assert hip.hipStreamCaptureMode.hipStreamCaptureModeRelaxed == context._RELAXED
    assert hip.hipEventDisableTiming == event._DISABLE_TIMING
    assert hip.hipHostMallocPortable | hip.hipHostMallocMapped == memory._PORTABLE_AND_MAPPED
    assert default_stream.PER_THREAD == 2


def test_structures_have_hips_sizes() -> None:
    """What HIP reads or fills has the size of AMD's headers; what later versions may add to has room behind it."""
    assert ctypes.sizeof(attributes.LaunchAttribute) == hip.hipLaunchAttribute_st().c_sizeof() == 72
    assert ctypes.sizeof(attributes.HipLaunchConfig) == hip.HIP_LAUNCH_CONFIG_st().c_sizeof() == 56
    assert ctypes.sizeof(memory._PointerAttributes) >= hip.hipPointerAttribute_t().c_sizeof()
    assert device._PROPERTIES["hipGetDevicePropertiesR0600"][0] == hip.hipDeviceProp_t().c_sizeof()
    assert max(size for size, _ in device._PROPERTIES.values()) < device._ROOM


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
@pytest.mark.parametrize("name", ["launch.c.in", "launch_per_thread.c.in"])
def test_the_launchers_file_has_no_warning(name: str, tmp_path: Path) -> None:
    """The C that is the same for all signatures compiles with every warning an error; its own assertions hold."""
    source = tmp_path / "launch.c"
    source.write_text(TEMPLATE.with_name(name).read_text())
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fsyntax-only"]
    folders = [f"-I{INCLUDE_DIR}", f"-I{TEMPLATE.parent / 'include'}", f"-I{TEMPLATE.parent}"]
    done = subprocess.run([compiler() or "cc", *flags, *folders, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
