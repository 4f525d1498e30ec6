"""Launches on the stand-in of each version of HIP: which calls they make, what is refused, what is left behind."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

import pytest
from amd_kernels import code
from amd_launching import VALUES, expected, kernel
from recording.hip.isolation import STAND_INS
from recording.hip.machine import StandIn

import podium
from podium.errors import LaunchConfigError, LaunchError, LoadError, OutOfResourcesError

pytest.importorskip("podium_amd", reason="podium-amd is not installed")
pytest.importorskip("rocm.bindings.hip", reason="hip-python is not installed")


def told(hip: StandIn, work: Callable[[], object]) -> list[tuple[str, int, int]]:
    """Return the calls that something makes: entry, status, and the device that was current then."""
    before = hip.recording.call_count()
    work()
    return hip.recording.trace(before)


def forget_attributes() -> None:
    from podium_amd import device

    device.attribute.cache_clear()


@pytest.fixture(params=STAND_INS)
def hip_machine(request: pytest.FixtureRequest) -> str:
    """The stand-ins alone: a modelled device records no calls."""
    name: str = request.param
    return name


def test_which_function_launches(hip: StandIn, level: str) -> None:
    """Plain launches, cooperative ones and those with attributes go to the function for them, if this version has it."""
    saxpy = kernel(hip, "saxpy")
    launches = {
        "hipModuleLaunchKernel": podium.LaunchConfig(4, 64),
        "hipModuleLaunchCooperativeKernel": podium.LaunchConfig(4, 64, cooperative=True),
        "hipDrvLaunchKernelEx": podium.LaunchConfig(4, 64, cooperative=True, attributes={"priority": -1}),
    }
    since = {"hipModuleLaunchKernel": 5, "hipModuleLaunchCooperativeKernel": 6, "hipDrvLaunchKernelEx": 7}
    for entry, config in launches.items():
        if hip.major < since[entry]:
            with pytest.raises(LaunchConfigError, match=r"needs HIP [57]\.\d or later, and this runtime is"):
                saxpy[config](0, 0, 1.0, 0)
            continue
        saxpy[config](0, 0, 1.0, 0)
        launch = hip.recording.last()
        assert (launch.entry, launch.cooperative, launch.through_buffer) == (entry, config.cooperative, False)
        words = {number: struct.unpack_from("=i", value)[0] for number, value in launch.attributes}
        assert words == ({2: 1, 8: -1} if config.attributes else {})


def test_a_launch_leaves_the_current_device_as_it_was(hip: StandIn, level: str) -> None:
    """CTX-02: code is loaded and launched with its device current, and the thread's own device is current afterwards."""
    saxpy, driver = kernel(hip, "saxpy"), podium.driver.get("amd")
    there = podium.empty(4, "fp32", device=1)
    saxpy[1, 64](there, there, 1.0, 4)
    calls = told(hip, lambda: saxpy[1, 64](there, there, 1.0, 4))
    assert [name for name, _, _ in calls if name in ("hipSetDevice", "hipModuleLaunchKernel")] == [
        "hipSetDevice",
        "hipModuleLaunchKernel",
        "hipSetDevice",
    ]
    assert hip.recording.last().device == 1
    assert driver.current_device() == 0
    before = told(hip, lambda: kernel(hip, "saxpy").load(device=1))
    assert {device for name, _, device in before if name in ("hipModuleLoadData", "hipModuleGetFunction")} == {1}
    assert driver.current_device() == 0
    hip.recording.fail("hipModuleLaunchKernel", 1)
    with pytest.raises(LaunchError):
        saxpy[1, 64](there, there, 1.0, 4)
    assert driver.current_device() == 0


def test_a_refused_launch_is_an_error_that_says_all(hip: StandIn, level: str) -> None:
    """ERR-01: name, text and advice of the status, the kernel, the device, the shape; and HIP keeps no error of it."""
    saxpy = kernel(hip, "saxpy")
    saxpy[1, 64](0, 0, 1.0, 0)
    hip.recording.fail("hipModuleLaunchKernel", 719)
    with pytest.raises(LaunchError) as caught:
        saxpy[2, 64](0, 0, 1.0, 0)
    error = caught.value
    assert (error.status, error.status_name, error.device, error.grid) == (719, "hipErrorLaunchFailure", 0, (2, 1, 1))
    assert "saxpy" in str(error) and "gfx90a" in str(error) and "HIP " in str(error)
    assert hip.runtime.hipPeekAtLastError() == 0


def test_a_status_without_a_name_is_an_error_too(hip: StandIn, level: str) -> None:
    """ERR-02: a status that hip-python has no name for is that of the error, and the thread's device is as it was."""
    saxpy = kernel(hip, "saxpy")
    there = podium.empty(4, "fp32", device=1)
    saxpy[1, 64](there, there, 1.0, 4)
    for entry in ("hipModuleLaunchKernel", "hipSetDevice", "hipGetDevice"):
        hip.recording.fail(entry, 12345)
        with pytest.raises(LaunchError) as caught:
            saxpy[1, 64](there, there, 1.0, 4)
        hip.recording.fail(entry, 0, 0)
        assert caught.value.status == 12345
        assert (hip.runtime.hipPeekAtLastError(), podium.driver.get("amd").current_device()) == (0, 0)


def test_limits_are_looked_at_before_the_launch(hip: StandIn, level: str) -> None:
    """LIM-01: threads of a block and of a grid, shared memory and cooperative grids are refused with the limit's value."""
    before = hip.recording.launch_count()
    saxpy, shared, bounded = (kernel(hip, name) for name in ("saxpy", "shared", "bounded"))
    with pytest.raises(OutOfResourcesError, match="512") as caught:
        bounded[1, 512](0)
    assert caught.value.limit == 256
    with pytest.raises(OutOfResourcesError, match="65536 for a block, and the kernel itself takes 256"):
        shared[podium.LaunchConfig(1, 64, shared=65500)](0, 0)
    with pytest.raises(LaunchConfigError, match=r"grid\.x is 4194304 blocks of 1024 threads"):
        saxpy[4194304, 1024](0, 0, 1.0, 0)
    with pytest.raises(LaunchConfigError, match=r"grid\.y is 65537"):
        saxpy[(1, 65537), 64](0, 0, 1.0, 0)
    if hip.major >= 6:
        with pytest.raises(OutOfResourcesError, match="blocks in a cooperative grid"):
            saxpy[podium.LaunchConfig(1 << 20, 1024, cooperative=True)](0, 0, 1.0, 0)
        hip.recording.set_cooperative(False)
        forget_attributes()
        with pytest.raises(LaunchConfigError, match="runs no cooperative grids"):
            saxpy[podium.LaunchConfig(2, 64, cooperative=True)](0, 0, 1.0, 0)
    assert hip.recording.launch_count() == before


def test_streams_of_all_numberings(hip: StandIn, level: str) -> None:
    """CTX-09: 1 is the default stream by CUDA's numbering, which older versions of HIP take for an address; 2 the thread's."""
    saxpy = kernel(hip, "saxpy")
    own = podium.Stream()
    for stream, arrives in ((0, 0), (1, 0), (2, 2), (own, own.handle), (None, 0)):
        saxpy[1, 64](0, 0, 1.0, 0, stream=stream)
        assert hip.recording.last().stream == arrives
    with podium.use("amd", default_stream="per-thread"):
        kernel(hip, "saxpy")[1, 64](0, 0, 1.0, 0)
        assert hip.recording.last().stream == 2


def test_streams_in_the_numbering_of_dlpack() -> None:
    """CTX-09: for ROCm, 0 is the default stream of DLPack, and 1 and 2, which are CUDA's, are not allowed."""
    from podium_amd.stream import dlpack_stream

    assert [dlpack_stream(stream) for stream in (0, 1, 2, 3, 1 << 40)] == [0, 0, 0, 3, 1 << 40]


def test_code_that_does_not_fit_is_refused(hip: StandIn) -> None:
    """RTC-06: code for another architecture says for which it was built and on which it is to run; ARG-09: a signature
    that is not the code's is refused before anything is launched."""
    with pytest.raises(LoadError) as caught:
        kernel(hip, "saxpy", arch="gfx1100").load()
    assert "gfx1100" in str(caught.value) and "gfx90a" in str(caught.value)
    for signature, words in (
        ("*fp32,*kfp32,fp32", "its signature has 3 parameters, the code has 4"),
        ("*fp32,*kfp32,fp64,i32", "parameter 'arg2' .*says fp64 of 8 bytes, the code has 4 bytes"),
        ("*fp32,u64,fp32,i32", "parameter 'arg1' .*says u64, the code has a pointer"),
    ):
        with pytest.raises(LoadError, match=words):
            kernel(hip, "saxpy", signature=signature).load()
    assert hip.recording.counters()["modules"] == 0


def bundle(hip: StandIn, *archs: str) -> bytes:
    """Make what hipcc makes of code objects for the host and for some architectures."""
    names = ["host-x86_64-unknown-linux--", *(f"hipv4-amdgcn-amd-amdhsa--{arch}" for arch in archs)]
    parts = [b"", *(code(hip, arch) for arch in archs)]
    place = 32 + sum(24 + len(name) for name in names)
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names))
    for name, part in zip(names, parts):
        head += struct.pack("<3Q", place, len(part), len(name)) + name.encode()
        place += len(part)
    return head + b"".join(parts)


def test_a_bundle_is_compared_with_the_signature_too(hip: StandIn) -> None:
    """ARG-09: what a bundle has for the device is read, whatever else is in it; one cut short is an error of its own."""
    from podium_amd.arch import Arch
    from podium_amd.binaries import object_code
    from podium_amd.code_object import unbundled

    data, device = bundle(hip, "gfx1100", "gfx90a:xnack+", "gfx90a"), Arch.parse("gfx90a:sramecc+:xnack-")
    assert unbundled(data, device) == code(hip, "gfx90a")
    assert unbundled(data, Arch.parse("gfx906")) is unbundled(data[:60], device) is None
    for length, words in (
        (len(data), "its signature has 3 parameters, the code has 4"),
        (len(data) - 40, "cannot be read"),
    ):
        kernel_of_bundle = podium.kernel(object_code(data[:length], {"saxpy": "*fp32,*kfp32,fp32"}))
        with pytest.raises(LoadError, match=words):
            kernel_of_bundle.load()
    assert hip.recording.counters()["modules"] == 0


def test_a_segment_too_short_for_the_parameters_is_refused() -> None:
    """ARG-09: the runtime reserves as many bytes for parameters as the code says, and writes what the launch has."""
    from podium.backend import Entry, Signature

    from podium_amd.code_object import CodeObjectKernel, KernelParameter
    from podium_amd.parameters import mismatch

    parameters = (KernelParameter(0, 8, True), KernelParameter(8, 4, False))
    entry = Entry("k", Signature.parse("*fp32,i32"))
    for size, wrong in ((12, None), (11, "kernel 'k': the code has 11 bytes for parameters, which take 12")):
        assert mismatch(CodeObjectKernel("k", parameters, size, 64, 1024, 0, 0, 8, 0, 8, 0), entry) == wrong


def test_a_graph_keeps_the_code_that_it_launches(hip: StandIn, level: str) -> None:
    """GPH-01: a kernel that was launched into a graph is not unloaded, since the graph can be replayed at any time."""
    runtime = hip.runtime
    captured, other = kernel(hip, "saxpy"), kernel(hip, "nothing")
    captured.load(), other.load()
    stream = podium.Stream()
    graph = ctypes.c_void_p()
    assert runtime.hipStreamBeginCapture(ctypes.c_void_p(stream.handle), 2) == 0
    captured[1, 64](0, 0, 1.0, 0, stream=stream)
    with pytest.raises(LoadError, match="being captured"):
        kernel(hip, "shared")[1, 64](0, 0, stream=stream)
    assert runtime.hipStreamEndCapture(ctypes.c_void_p(stream.handle), ctypes.byref(graph)) == 0
    assert hip.recording.last().captured
    modules = hip.recording.counters()["modules"]
    captured.unload(), other.unload()
    assert hip.recording.counters()["modules"] == modules - 1


def test_scratch_pointers_follow_the_arguments(hip: StandIn, level: str) -> None:
    """A compiler's launcher hands the addresses of scratch memory over behind the arguments, as much as its blocks need."""
    from podium.backend import Entry, ObjectCode, Signature, Target

    driver = podium.driver.get("amd")
    types = "i8,{fp64,[3xi32]},i8"
    metadata = {"global_scratch_size": 48, "global_scratch_align": 128}
    target = Target("amd", hip.arch, hip.wave)
    made = ObjectCode(code(hip), "hsaco", target, (Entry("structs", Signature.parse(types)),), metadata=metadata)
    function = driver.load(made, "structs", 0)
    launcher = driver.launcher_cls(made.entry("structs"), {"num_warps": 2, "warp_size": 64, **metadata}, driver)
    asked: list[tuple[int, int]] = []

    def allocate(size: int, alignment: int, stream: int | None) -> int:
        asked.append((size, alignment))
        return 0x7000

    with podium.use_allocator(allocate):
        launcher(5, 1, 1, 0, function.handle, *VALUES["structs"][:3])
    launch = hip.recording.last()
    assert asked == [(240, 128)]
    assert (launch.block, launch.parameters) == ((128, 1, 1), (*expected("structs")[:3], struct.pack("=Q", 0x7000)))
    driver.unload(function, 0)


def test_hip_pythons_defects_are_those_that_podium_goes_around(hip: StandIn) -> None:
    """hip-python 10 aligns a struct in a tuple for `extra` to its size, and its attribute has no value: both pinned."""
    from podium_amd import api, bindings

    class Triple(ctypes.Structure):
        _fields_ = [("x", ctypes.c_float), ("y", ctypes.c_float), ("z", ctypes.c_float)]

    api.hip()
    python = bindings.hip()
    function = kernel(hip, "misaligned")
    function[1, 64](*VALUES["misaligned"])
    right = hip.recording.last()
    extra = (ctypes.c_int(9), Triple(1, 2, 3), ctypes.c_longlong(-11), ctypes.c_void_p(0x4000))
    (status,) = python.hipModuleLaunchKernel(right.function, 1, 1, 1, 64, 1, 1, 0, None, None, extra)
    wrong = hip.recording.last()
    assert (int(status), wrong.through_buffer) == (0, True)
    assert right.parameters == tuple(expected("misaligned")) and wrong.parameters != right.parameters
    assert not any("val" in name for name in python.hipLaunchAttribute_st.PROPERTIES())
