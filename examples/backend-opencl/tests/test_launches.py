"""Launches of OpenCL C as it is, at both levels: the driver by itself, without the translation of CUDA's dialect."""

from __future__ import annotations

import ctypes
import struct
import threading
from pathlib import Path

import numpy as np
import pytest

import podium
from podium.backend import Driver, HostCompiler, SharedLibrary
from podium.errors import CompileError, LaunchConfigError, LaunchError, LoadError, ToolchainError

import podium_opencl

SOURCE = """
struct pair { ulong address; int value; };
__kernel void saxpy(__global float *y, __global const float *x, float a, int n) {
    int i = get_global_id(0);
    if (i < n) y[i] += a * x[i];
}
__kernel void put(__global int *x, int value) { x[get_global_id(0)] = value; }
__kernel void add(__global int *x, int n, int value) { if (get_global_id(0) < n) x[get_global_id(0)] += value; }
__kernel void through(struct pair to) { ((__global int *)to.address)[get_global_id(0)] = to.value; }
__kernel void reversed(__global int *x, __local int *own) {
    int i = get_local_id(0), n = get_local_size(0);
    own[i] = x[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    x[i] = own[n - 1 - i];
}
__kernel void is_null(__global int *out, __global int *x) { out[0] = x == 0; }
"""


def kernel(name: str, signature: str) -> podium.Kernel:
    """Declare a kernel of the source above."""
    return podium.kernel(SOURCE, name, signature=signature, language="opencl")


def test_a_kernel_computes_what_numpy_does(opencl: Driver, level: str) -> None:
    """Arrays are passed as addresses, numbers as bytes; the level is the one that was asked for."""
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    there, saxpy = podium.asarray(y), kernel("saxpy", "y: *fp32, x: *kfp32, a: fp32, n: i32")
    for _ in range(3):
        saxpy[8, 128](there, podium.asarray(x), 2.0, 1000)
        y += 2 * x
    assert (there.numpy() == y).all()
    assert saxpy.level == level


def test_pointers_may_lie_inside_of_memory_and_in_structs(opencl: Driver, level: str) -> None:
    """An address in the middle of an allocation, one inside a struct, and a null pointer arrive as they are."""
    x = podium.asarray([0] * 8)
    kernel("put", "x: *i32, value: i32")[1, 2](x.ptr + 8, 5)
    kernel("through", "to: {*i32,i32}")[1, 3](struct.pack("=Qi4x", x.ptr + 20, 7))
    assert x.tolist() == [0, 0, 5, 5, 0, 7, 7, 7]
    out = podium.asarray([7])
    for pointer, expected in ((None, 1), (x, 0)):
        kernel("is_null", "out: *i32, x: *i32")[1, 1](out, pointer)
        assert out.tolist() == [expected]


def test_dynamic_shared_memory_is_the_last_parameter(opencl: Driver, level: str) -> None:
    """A kernel with one parameter more than its signature is given local memory of the launch's size."""
    x = podium.asarray(list(range(64)))
    reversed_ = kernel("reversed", "x: *i32")
    reversed_[1, 64](x, shared=256)
    assert x.tolist() == list(range(63, -1, -1))
    most = opencl.devices()[0].max_shared
    with pytest.raises(LaunchConfigError):
        reversed_[1, 64](x, shared=most + 1)


def test_threads_do_not_mix_the_arguments_of_a_kernel(opencl: Driver, level: str) -> None:
    """Twenty threads, more than the launcher keeps kernels of OpenCL, launch one kernel on arrays of their own.

    Each launch counts: one that was given the array or the number of another thread is missing in a sum.
    """
    add = kernel("add", "x: *i32, n: i32, value: i32")
    arrays = [podium.asarray([0] * 4) for _ in range(20)]
    add[1, 4](arrays[0], 4, 0)
    start, turns = threading.Barrier(len(arrays)), {"interpreted": 300, "generated": 2000}[level]

    def work(index: int) -> None:
        stream = podium.Stream(driver=opencl)
        start.wait()
        for _ in range(turns):
            add[1, 4](arrays[index], 4, index + 1, stream=stream)
        stream.synchronize()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(arrays))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [array.tolist() for array in arrays] == [[turns * (index + 1)] * 4 for index in range(len(arrays))]


def test_a_refused_launch_has_the_name_of_its_status(opencl: Driver, level: str) -> None:
    """A launcher whose signature has fewer parameters than the kernel is told so by OpenCL's own word."""
    x, put = podium.asarray([0]), kernel("put", "x: *i32, value: i32")
    function = put.load()
    with pytest.raises(LaunchError) as caught:
        opencl.launcher_cls(_Source({"x": "*i32"}), {"name": "put", "block": 1}, opencl)(1, 1, 1, 0, function, x)
    assert (caught.value.status, caught.value.status_name) == (-52, "CL_INVALID_KERNEL_ARGS")


class _Source:
    def __init__(self, signature: dict[str, str]) -> None:
        self.signature = signature


def test_the_handle_of_code_that_is_gone_is_refused(opencl: Driver, level: str) -> None:
    """A launcher that is given the handle of a kernel that was unloaded says so, and touches nothing."""
    x, put = podium.asarray([0]), kernel("put", "x: *i32, value: i32")
    function = put.load()
    launcher = opencl.launcher_cls(_Source({"x": "*i32", "value": "i32"}), {"name": "put", "block": 1}, opencl)
    launcher(1, 1, 1, 0, function, x, 5)
    put.unload()
    for _ in range(3):
        with pytest.raises(LaunchError) as caught:
            launcher(1, 1, 1, 0, function, x, 6)
        assert caught.value.status_name == "CL_INVALID_KERNEL"
    assert x.tolist() == [5]


def test_a_mistake_is_found_at_its_place(opencl: Driver) -> None:
    """What the OpenCL compiler says has the file, the line and the column in the user's source."""
    source = "__kernel void f(__global int *x) {\n    x[0] = nowhere;\n}\n"
    with pytest.raises(CompileError) as caught:
        podium.kernel(source, "f", signature="x: *i32", language="opencl").compile()
    (place, *_) = caught.value.diagnostics
    assert (place.file, place.line, place.column) == ("<podium source>", 2, 12)
    assert "nowhere" in place.message and "nowhere" in str(caught.value) and "nowhere" in caught.value.log


def test_a_signature_that_is_not_the_kernels_is_refused(opencl: Driver) -> None:
    """The number of parameters is compared when the kernel is loaded; the error has both numbers."""
    for signature in ("x: *i32", "x: *i32, value: i32, more: i32"):
        with pytest.raises(LoadError, match="parameters"):
            podium.kernel(
                "__kernel void put(__global int *x, int a) { x[0] = a; }", "put", signature=signature, language="opencl"
            ).load()


@pytest.mark.parametrize("language", ["opencl", "cuda"])
def test_a_pointer_is_not_passed_for_a_value(opencl: Driver, language: str) -> None:
    """A signature with a number where the kernel has a pointer, or the other way round, is refused when it is compiled.

    OpenCL would take the bytes of the number for one of its own handles, and read where they point to.
    """
    kernel, space = ("__kernel", "__global ") if language == "opencl" else ("__global__", "")
    source = f"{kernel} void f({space}int *x, long n) {{ x[0] = n; }}"
    for signature, message in (
        ("x: i64, n: i64", r"parameter 0 \(x\) is i64 in the signature, and a pointer to global memory in the source"),
        ("x: *i32, n: *i32", r"parameter 1 \(n\) is \*i32 in the signature, and a value in the source"),
    ):
        with pytest.raises(CompileError, match=message):
            podium.kernel(source, "f", signature=signature, language=language).compile()


def test_more_shared_memory_than_the_device_has_is_refused(opencl: Driver) -> None:
    """What a kernel shares is compared with the device when it is loaded; PoCL would end the process at the launch."""
    most = opencl.devices()[0].max_shared
    source = f"__kernel void f(__global int *x) {{ __local int s[{most}]; s[x[0]] = 1; x[1] = s[x[2]]; }}"
    with pytest.raises(LoadError, match=rf"has {4 * most} bytes of shared memory, and device 0 has {most}"):
        podium.kernel(source, "f", signature="x: *i32", language="opencl").load()


def test_devices_that_do_not_reach_everything_are_told_of_the_memory(
    opencl: Driver, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it has to be, all memory of the device is declared before a launch; if that fails there is none."""
    from podium_opencl import launch
    from podium_opencl.function import find

    x, put = podium.asarray([0] * 4), kernel("through", "to: {*i32,i32}")
    put[1, 1](struct.pack("=Qi4x", x.ptr, 1))
    loaded = find(put.load())
    assert loaded is not None
    loaded.declares = True
    loaded.record.declares = 1
    for _ in range(3):
        put[1, 4](struct.pack("=Qi4x", x.ptr, 9))
    assert x.tolist() == [9] * 4
    monkeypatch.setattr(launch, "declare_memory", lambda kernel, device: -59)
    with pytest.raises(LaunchError, match="CL_INVALID_OPERATION"):
        put[1, 4](struct.pack("=Qi4x", x.ptr, 8))
    assert x.tolist() == [9] * 4


def test_the_record_of_a_kernel_is_the_same_in_c() -> None:
    """The structure that the generated C reads has its members where the driver puts them."""
    from podium_opencl.function import KernelRecord

    names = [name for name, *_ in KernelRecord._fields_]
    places = ", ".join(f"offsetof(struct podium_opencl_kernel, {name})" for name in names)
    source = (
        '#include "podium_opencl.h"\n'
        f"const size_t places[] = {{{places}, sizeof(struct podium_opencl_kernel)}};\n"
        "void *used[] = {podium_opencl_take, podium_opencl_give_back, podium_opencl_set, podium_opencl_enqueue};\n"
    )
    folder = Path(podium_opencl.__file__).parent
    try:
        data = HostCompiler.find("c").compile({"places.c": source}, "places.c", [f"-I{folder}"])
    except ToolchainError as error:
        pytest.skip(f"there is no C compiler: {error}")
    library = SharedLibrary.from_bytes("places", data)
    found = (ctypes.c_size_t * (len(names) + 1)).from_address(library.address("places"))
    assert list(found) == [*(getattr(KernelRecord, name).offset for name in names), ctypes.sizeof(KernelRecord)]
