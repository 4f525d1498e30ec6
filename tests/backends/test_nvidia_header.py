"""What the NVIDIA backend declares of the CUDA driver by hand, compared with NVIDIA's own header and cuda-python."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
from pathlib import Path

import pytest
from recording.cuda.library import compiler

from podium._extension import INCLUDE_DIR

pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")

import cuda.bindings.driver as cuda

from podium_nvidia import (
    attribute_keys,
    attributes,
    context,
    default_stream,
    device,
    event,
    function,
    graph,
    launcher,
    memory,
    occupancy,
    status,
    stream,
)

TEMPLATE = Path(launcher.__file__).with_name("launch.c.in")


def cuda_include() -> Path:
    """Return the folder of cuda.h from the toolkit's wheels; skip if there is none."""
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        for found in sorted(Path(folder).glob("*/include/cuda.h")):
            return found.parent
    pytest.skip("the CUDA headers are not installed (pip install 'podium-nvidia[nvrtc]')")


NODE = "CUDA_KERNEL_NODE_PARAMS_v2"
STRUCTS = {
    ("struct podium_nvidia_attribute", "CUlaunchAttribute"): {"id": "id", "value": "value"},
    ("struct podium_nvidia_config", "CUlaunchConfig"): {
        "grid[0]": "gridDimX",
        "grid[1]": "gridDimY",
        "grid[2]": "gridDimZ",
        "block[0]": "blockDimX",
        "block[2]": "blockDimZ",
        "shared": "sharedMemBytes",
        "stream": "hStream",
        "attributes": "attrs",
        "attribute_count": "numAttrs",
    },
}
NUMBERS = {
    "PODIUM_NVIDIA_SUCCESS": "CUDA_SUCCESS",
    "PODIUM_NVIDIA_INVALID_CONTEXT": "CUDA_ERROR_INVALID_CONTEXT",
    "PODIUM_NVIDIA_CONTEXT_IS_DESTROYED": "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    "PODIUM_NVIDIA_NOT_SUPPORTED": "CUDA_ERROR_NOT_SUPPORTED",
    "PODIUM_NVIDIA_STREAM_CAPTURE_UNSUPPORTED": "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
    "PODIUM_NVIDIA_UNKNOWN": "CUDA_ERROR_UNKNOWN",
    "PODIUM_NVIDIA_COOPERATIVE": "CU_LAUNCH_ATTRIBUTE_COOPERATIVE",
    "PODIUM_NVIDIA_CLUSTER_DIMENSION": "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION",
    "PODIUM_NVIDIA_PROGRAMMATIC_STREAM_SERIALIZATION": "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION",
    "PODIUM_NVIDIA_MEMORY_TYPE": "CU_POINTER_ATTRIBUTE_MEMORY_TYPE",
    "PODIUM_NVIDIA_IS_MANAGED": "CU_POINTER_ATTRIBUTE_IS_MANAGED",
    "PODIUM_NVIDIA_DEVICE_ORDINAL": "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL",
    "PODIUM_NVIDIA_HOST_MEMORY": "CU_MEMORYTYPE_HOST",
    "PODIUM_NVIDIA_DEVICE_MEMORY": "CU_MEMORYTYPE_DEVICE",
    "PODIUM_NVIDIA_PER_THREAD_STREAM": "(uintptr_t)CU_STREAM_PER_THREAD",
    "offsetof(CUlaunchAttributeValue, clusterDim)": "0",
    "offsetof(CUlaunchAttributeValue, priority)": "0",
}
FUNCTIONS = {
    "launch": "cuLaunchKernel",
    "launch_ex": "cuLaunchKernelEx",
    "launch_cooperative": "cuLaunchCooperativeKernel",
    "is_capturing": "cuStreamIsCapturing",
    "get_device": "cuCtxGetDevice",
    "get_current": "cuCtxGetCurrent",
    "set_current": "cuCtxSetCurrent",
    "push_current": "cuCtxPushCurrent",
    "pop_current": "cuCtxPopCurrent",
    "pointer_attributes": "cuPointerGetAttributes",
    "launch_graph": "cuGraphLaunch",
}


def test_declarations_are_those_of_cuda_h(tmp_path: Path) -> None:
    """Structs have NVIDIA's sizes and offsets, numbers its values, and functions as many arguments."""
    if (program := compiler()) is None:
        pytest.skip("there is no C compiler")
    lines = [
        "#define PODIUM_API 1",
        "#define PODIUM_HOST_MEMORY 0",
        "#include <cuda.h>",
        '#include "podium_nvidia_driver.h"',
    ]
    for (own, theirs), members in STRUCTS.items():
        lines.append(f'_Static_assert(sizeof({own}) == sizeof({theirs}), "{own}");')
        lines += (
            f'_Static_assert(offsetof({own}, {a}) == offsetof({theirs}, {b}), "{a}");' for a, b in members.items()
        )
    lines += (f'_Static_assert((long)({a}) == (long)({b}), "{a}");' for a, b in NUMBERS.items())
    lines.append(f'_Static_assert(sizeof({NODE}) == {graph._SIZE}, "size");')
    end = graph._CHANGED_AT + graph._CHANGED.size
    places = {
        "gridDimX": graph._CHANGED_AT,
        "sharedMemBytes": 32,
        "kernelParams": end - 16,
        "extra": end - 8,
        "kern": end,
    }
    lines += (f'_Static_assert(offsetof({NODE}, {name}) == {at}, "{name}");' for name, at in places.items())
    # The types of handles differ, the number of arguments must not: a call of the one is a call of the other.
    for member, name in FUNCTIONS.items():
        lines.append(f"void *{member}_real(void) {{ return (void *){name}; }}")
        lines.append(f"void *{member}_own(void) {{ return (void *)podium_nvidia.{member}; }}")
    source = tmp_path / "compare.c"
    source.write_text("\n".join(lines) + "\n")
    folders = [f"-I{INCLUDE_DIR}", f"-I{TEMPLATE.parent / 'include'}", f"-I{cuda_include()}"]
    command = [program, "-std=gnu11", "-fsyntax-only", "-Wno-unused-function", "-DPODIUM_PYTHON_MINOR=12", *folders]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_functions_are_in_the_order_of_the_struct() -> None:
    """`entry_points` gives the addresses in the order in which the struct of the header has them."""
    text = (TEMPLATE.parent / "include" / "podium_nvidia_driver.h").read_text()
    body = text[text.index("struct podium_nvidia_driver {") : text.index("} podium_nvidia;")]
    members = [line.split("(*")[1].split(")")[0] for line in body.splitlines() if "(*" in line]
    assert [FUNCTIONS[member] for member in members] == list(launcher._FUNCTIONS)


def test_structures_of_ctypes_have_the_same_sizes() -> None:
    """The two structures that are laid out in Python are as long as those of the C header."""
    assert ctypes.sizeof(attributes.LaunchAttribute) == 72
    assert attributes.LaunchAttribute.value.offset == 8
    assert ctypes.sizeof(occupancy._LaunchConfig) == 56
    assert occupancy._LaunchConfig.stream.offset == 32 and occupancy._LaunchConfig.attribute_count.offset == 48


def test_numbers_are_those_of_cuda_python() -> None:
    """Every number of the driver that the backend writes down is that of the name in cuda-python."""
    for name in status.__all__:
        number = getattr(status, name)
        if isinstance(number, int):
            spelled = {"NO_BINARY": "NO_BINARY_FOR_GPU", "ALREADY_ENABLED": "PEER_ACCESS_ALREADY_ENABLED"}
            spelled |= {name: f"STREAM_{name}"} if name.startswith("CAPTURE_") else {}
            full = "CUDA_SUCCESS" if name == "SUCCESS" else f"CUDA_ERROR_{spelled.get(name, name)}"
            assert number == getattr(cuda.CUresult, full), name
    for each in device.Attribute:
        assert each == getattr(cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{each.name}")
    launch = cuda.CUlaunchAttributeID
    names = {
        "CARVEOUT": "PREFERRED_SHARED_MEMORY_CARVEOUT",
        "CLUSTER": "CLUSTER_DIMENSION",
        "CLUSTER_POLICY": "CLUSTER_SCHEDULING_POLICY_PREFERENCE",
        "COOPERATIVE": "COOPERATIVE",
        "DEPENDENT": "PROGRAMMATIC_STREAM_SERIALIZATION",
        "IGNORE": "IGNORE",
        "MEMORY_DOMAIN": "MEM_SYNC_DOMAIN",
        "PREFERRED_CLUSTER": "PREFERRED_CLUSTER_DIMENSION",
        "PRIORITY": "PRIORITY",
    }
    for name, theirs in names.items():
        known = getattr(launch, f"CU_LAUNCH_ATTRIBUTE_{theirs}", None)  # cuda-python 12.6 has no name for some
        assert known is None or getattr(attribute_keys, name) == known, name
    kernel = {
        "max_threads": "MAX_THREADS_PER_BLOCK",
        "shared": "SHARED_SIZE_BYTES",
        "constant": "CONST_SIZE_BYTES",
        "local": "LOCAL_SIZE_BYTES",
        "registers": "NUM_REGS",
        "ptx_version": "PTX_VERSION",
        "binary_version": "BINARY_VERSION",
        "cluster_x": "REQUIRED_CLUSTER_WIDTH",
        "cluster_y": "REQUIRED_CLUSTER_HEIGHT",
        "cluster_z": "REQUIRED_CLUSTER_DEPTH",
    }
    for name, number in {**function._ATTRIBUTES, **function._CLUSTER_ATTRIBUTES}.items():
        assert number == getattr(cuda.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{kernel[name]}"), name
    others = [
        (function._MAX_DYNAMIC_SHARED, cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
        (function._NON_PORTABLE_CLUSTER, cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED),
        (function._INFO_LOG, cuda.CUjit_option.CU_JIT_INFO_LOG_BUFFER),
        (function._INFO_LOG_SIZE, cuda.CUjit_option.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES),
        (function._ERROR_LOG, cuda.CUjit_option.CU_JIT_ERROR_LOG_BUFFER),
        (function._ERROR_LOG_SIZE, cuda.CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES),
        (context._RELAXED, cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED),
        (graph._RELAXED, cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED),
        (graph._ACTIVE, cuda.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE),
        (graph._AUTO_FREE, cuda.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH),
        (graph._NODE_PRIORITY, cuda.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY),
        (default_stream.PER_THREAD, cuda.CU_STREAM_PER_THREAD),
        (stream._NON_BLOCKING, cuda.CUstream_flags.CU_STREAM_NON_BLOCKING),
        (event._DISABLE_TIMING, cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING),
        (memory._MEMORY_TYPE, cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE),
        (memory._IS_MANAGED, cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED),
        (memory._DEVICE_ORDINAL, cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL),
        (memory._HOST_MEMORY, cuda.CUmemorytype.CU_MEMORYTYPE_HOST),
        (memory._DEVICE_MEMORY, cuda.CUmemorytype.CU_MEMORYTYPE_DEVICE),
        (memory._PORTABLE_AND_MAPPED, cuda.CU_MEMHOSTALLOC_PORTABLE | cuda.CU_MEMHOSTALLOC_DEVICEMAP),
    ]
    for own, theirs in others:
        assert int(own) == int(theirs), theirs
