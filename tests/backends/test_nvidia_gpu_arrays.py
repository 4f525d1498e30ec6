"""Arrays of other libraries on a real NVIDIA GPU, and the errors for memory that a kernel cannot reach."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch_tensors import tensors_of_all_kinds

import podium
from podium.errors import ArrayDeviceError

from podium_nvidia.driver import NvidiaDriver

pytestmark = pytest.mark.gpu

KERNELS = Path(__file__).with_name("nvidia_gpu.cu")


def _torch() -> tuple[Any, Callable[[Any], list[float]]]:
    torch = pytest.importorskip("torch")
    return torch.ones(64, device="cuda"), lambda array: array.cpu().tolist()


def _cupy() -> tuple[Any, Callable[[Any], list[float]]]:
    cupy = pytest.importorskip("cupy")
    return cupy.ones(64, dtype="float32"), lambda array: array.get().tolist()


def _numba() -> tuple[Any, Callable[[Any], list[float]]]:
    cuda = pytest.importorskip("numba.cuda")
    import numpy

    return cuda.to_device(numpy.ones(64, numpy.float32)), lambda array: array.copy_to_host().tolist()


def _jax() -> tuple[Any, Callable[[Any], list[float]]]:
    jax = pytest.importorskip("jax")
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("jax has no GPU here")
    return jax.numpy.ones(64, dtype="float32"), lambda array: jax.device_get(array).tolist()


@pytest.mark.parametrize("library", [_torch, _cupy, _numba])
def test_arrays_of_other_libraries(gpu: NvidiaDriver, level: str, library: Any) -> None:
    """Arrays of PyTorch, CuPy and Numba are read and written where they are."""
    array, values = library()
    kernel = podium.module(KERNELS)["add_floats"]
    y = podium.asarray([2.0] * 64)
    for _ in range(3):
        kernel[2, 32](array, y, 64)
    podium.synchronize()
    assert values(array) == [7.0] * 64
    assert podium.recent_launches()[-1].device == 0


def test_tensors_read_without_their_table_are_read_alike(
    gpu: NvidiaDriver, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Generated launches read tensors of PyTorch by its C functions: address, device, stream or error are the table's."""
    torch = pytest.importorskip("torch")
    from podium import _tensor_reader

    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this PyTorch has no DLPack C exchange table")
    assert _tensor_reader.tensor_reader(torch.Tensor) is not None
    out, plain, stream = podium.empty(1, "u64"), torch.ones(4, device="cuda"), torch.cuda.Stream()
    launches = []
    for number, reader in enumerate((_tensor_reader.tensor_reader, lambda kind: None)):
        monkeypatch.setattr(_tensor_reader, "tensor_reader", reader)
        monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
        more = ", int more" * number  # a launcher of its own, which has seen no tensor yet
        source = f'extern "C" __global__ void where(const void* x, unsigned long long* out{more}) {{ *out = (unsigned long long)x; }}'
        kernel = podium.kernel(source)
        for tensor in (torch.nn.Parameter(plain), plain):
            kernel[1, 1](tensor, out, *[1] * number)
        launches.append((kernel[1, 1], [1] * number))

    def outcome(launch: Any, more: list[int], tensor: Any) -> object:
        try:
            for each in (plain, tensor, tensor):
                launch(each, out, *more)
        except Exception as error:
            return type(error), str(error).splitlines()[0]
        podium.synchronize()
        return out.tolist(), podium.recent_launches()[-1].device, podium.recent_launches()[-1].stream

    kinds = tensors_of_all_kinds(torch, "cuda")
    capfd.readouterr()
    outcomes: dict[str, list[object]] = {}
    with torch.cuda.stream(stream):
        for name, tensor in kinds.items():
            outcomes[name] = [outcome(launch, more, tensor) for launch, more in launches]
    assert {name: each for name, each in outcomes.items() if each[0] != each[1]} == {}
    assert "aoti" not in capfd.readouterr().err
    assert outcomes["a part"][0] == ([kinds["a part"].data_ptr()], 0, stream.cuda_stream)
    assert sum(isinstance(each[0][0], list) for each in outcomes.values()) > 20  # type: ignore[index]


def test_jax_arrays_are_read(gpu: NvidiaDriver, level: str) -> None:
    """Arrays of JAX, which nobody may write to, are read."""
    array, _ = _jax()
    x = podium.asarray([2.0] * 64)
    podium.module(KERNELS)["add_floats"][2, 32](x, array, 64)
    assert x.tolist() == [3.0] * 64


def test_the_stream_of_torch_is_used(gpu: NvidiaDriver, level: str) -> None:
    """CTX-08: inside a stream context of PyTorch a launch goes to that stream, and into its graphs."""
    torch = pytest.importorskip("torch")
    kernel = podium.module(KERNELS)["add_floats"]
    x, y = torch.ones(64, device="cuda"), torch.ones(64, device="cuda")
    kernel[2, 32](x, y, 64)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        kernel[2, 32](x, y, 64)
        assert podium.recent_launches()[-1].stream == stream.cuda_stream
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel[2, 32](x, y, 64)
        kernel[2, 32](x, y, 64)
    assert x.tolist() == [3.0] * 64
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    assert x.tolist() == [7.0] * 64
    kernel[2, 32](x, y, 64, stream=stream)
    assert podium.recent_launches()[-1].stream == stream.cuda_stream


def test_the_stream_of_cupy_is_used(gpu: NvidiaDriver, level: str) -> None:
    """CTX-08: launches go to CuPy's current stream, also to one that does not wait for the legacy stream."""
    cupy = pytest.importorskip("cupy")
    kernel = podium.module(KERNELS)["add_floats"]
    x, y = cupy.ones(64, dtype="float32"), cupy.ones(64, dtype="float32")
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    for count in (2.0, 3.0, 4.0):
        with stream:
            kernel[2, 32](x, y, 64)
            assert podium.recent_launches()[-1].stream == stream.ptr
            assert x.get(stream=stream).tolist() == [count] * 64


class Interfaced:
    """An array with ``__cuda_array_interface__`` only, whose owner works on it in a stream."""

    def __init__(self, array: podium.Array, stream: int) -> None:
        data = {"data": (array.ptr, False), "shape": array.shape, "typestr": "<i4"}
        self.__cuda_array_interface__ = {"version": 3, "stream": stream, **data}


def test_a_launch_waits_for_the_stream_of_an_array(gpu: NvidiaDriver, level: str) -> None:
    """CTX-10: a launch in a stream of its own sees what is still to be done in the array's stream when it is issued."""
    kernels = podium.module(KERNELS)
    flag, x = podium.empty(1, "i32", pinned=True), podium.asarray([0], "i32")
    word = ctypes.c_int.from_address(flag.ptr)  # copies would wait for the kernel that waits for it
    for name in ("wait_for", "add"):
        kernels[name].warm_up()
    theirs, mine = podium.Stream(), podium.Stream()
    for stream in (mine, mine, mine.handle):
        word.value = 0
        x.copy_from([0])
        kernels["wait_for"][1, 1](flag, x, stream=theirs)
        kernels["add"][1, 1](Interfaced(x, theirs.handle), 10, stream=stream)
        word.value = 1
        podium.synchronize()
        assert x.tolist() == [11] and podium.recent_launches()[-1].stream == mine.handle


def test_host_memory_is_an_error_of_its_own(gpu: NvidiaDriver, level: str) -> None:
    """ARG-11: an array of numpy, or of PyTorch on the CPU, is named as host memory; nothing is launched."""
    import numpy

    kernel, y = podium.module(KERNELS)["add_floats"], podium.asarray([2.0] * 64)
    arrays = [numpy.ones(64, numpy.float32)]
    try:
        import torch
    except ImportError:
        pass
    else:
        arrays.append(torch.ones(64))  # type: ignore[arg-type]
    for array in arrays:
        with pytest.raises(ArrayDeviceError, match="host memory") as caught:
            kernel[2, 32](y, array, 64)
        assert caught.value.kind == "host"


def test_pinned_memory_of_torch_is_reached(gpu: NvidiaDriver, level: str) -> None:
    """Host memory that PyTorch has pinned is memory that a kernel can reach, by its address."""
    torch = pytest.importorskip("torch")
    x = torch.ones(64).pin_memory()
    assert gpu.pointer_device(x.data_ptr()) == (3, 0)
    podium.module(KERNELS)["add_floats"][2, 32](x.data_ptr(), podium.asarray([2.0] * 64), 64)
    podium.synchronize()
    assert x.tolist() == [3.0] * 64


@pytest.mark.filterwarnings("ignore:.*Profiler clears events")  # said once in a process, of profiles with cycles
def test_the_profiler_of_torch_names_kernels(gpu: NvidiaDriver, level: str) -> None:
    """A launch stands in a profile by the name that its source gives it, template arguments included."""
    torch = pytest.importorskip("torch")
    scale = podium.kernel(
        "template <int N> __global__ void scale(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= N; }",
        "scale<3>",
    )
    add, x = podium.module(KERNELS)["add_floats"], torch.ones(64, device="cuda")
    for launch in (lambda: scale[1, 64](x, 64), lambda: add[2, 32](x, x, 64)):
        launch()  # compiled and loaded before anybody looks
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        scale[1, 64](x, 64)
        add[2, 32](x, x, 64)
        torch.cuda.synchronize()
    names = {event.name for event in profile.events()}
    assert any("scale<3>" in name for name in names), names
    assert any("add_floats" in name for name in names), names
