"""What HIP does with kernels, memory and mistakes: the same tests on the stand-in and on AMD's own runtime.

The stand-in is thereby held to what the real one was seen to do.
"""

from __future__ import annotations

import ctypes
import os
import struct

import pytest
from amd_kernels import KERNELS, SOURCE, code
from recording.hip.compiling import MISSING
from recording.hip.machine import Machine, StandIn

SCALARS = struct.pack("=bBhHiIqQfd?", -1, 200, -3, 40000, -5, 6, -7, 1 << 63, 1.5, -2.5, True)
SIZES = [1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1]


def split(data: bytes, sizes: list[int]) -> list[bytes]:
    """Cut bytes into arguments."""
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    return [data[end - size : end] for end, size in zip(ends, sizes)]


def launched(hip: Machine, name: str, arguments: list[bytes], **more: object) -> None:
    """Launch a kernel and check that each argument is where the kernel looks for it."""
    runtime = hip.runtime
    function = runtime.function(code(hip), name)
    before = len(hip.dispatches())
    assert runtime.launch(function, (3, 2, 1), (64, 2, 1), arguments, **more) == 0  # type: ignore[arg-type]
    (dispatch,) = hip.dispatches()[before:]
    assert (dispatch.grid, dispatch.block) == ((3, 2, 1), (64, 2, 1))
    places = KERNELS[name].places()
    assert [dispatch.argument(at, it.size) for at, it in places] == arguments
    assert dispatch.group == KERNELS[name].group + int(more.get("shared", 0))  # type: ignore[call-overload]


def test_a_device_says_what_it_is(hip: Machine) -> None:
    """Count, wave size and limits of launches; y and z have one block more than with CUDA."""
    runtime = hip.runtime
    status, count = runtime.out("hipGetDeviceCount")
    assert status == 0 and count == (2 if isinstance(hip, StandIn) else 1)
    asked = {10: None, 26: 1024, 28: 1024, 29: 2**31 - 1, 30: 65536, 31: 65536, 56: 1024, 74: 65536, 87: hip.wave}
    for attribute, expected in asked.items():
        status, value = runtime.out("hipDeviceGetAttribute", attribute, 0)
        assert status == 0 and expected in (None, value), attribute
    assert runtime.out("hipDeviceGetAttribute", 87, count)[0] == 101
    assert runtime.out("hipDeviceGetAttribute", 99999, 0)[0] == 1
    assert runtime.hipSetDevice(count) == runtime.hipSetDevice(-1) == 101


def test_properties_have_the_layout_of_their_name(hip: Machine) -> None:
    """The plain name is the old layout in every version, and R0600, from HIP 6 on, the new one."""
    old, new = ctypes.create_string_buffer(4096), ctypes.create_string_buffer(4096)
    assert hip.runtime.hipGetDeviceProperties(old, 0) == 0
    assert old[396:].split(b"\0")[0].startswith(hip.arch.encode())
    assert struct.unpack_from("i", old, 276) == (hip.wave,)
    if hip.major < 6:
        assert not hasattr(hip.runtime.library, "hipGetDevicePropertiesR0600")
        return
    assert hip.runtime.hipGetDevicePropertiesR0600(new, 0) == 0
    assert new[1160:].split(b"\0")[0] == old[396:].split(b"\0")[0]
    assert struct.unpack_from("i", new, 308) == (hip.wave,)
    assert struct.unpack_from("Q", new, 296) == struct.unpack_from("Q", old, 264) == (65536,)


@pytest.mark.parametrize("name", ["saxpy", "scalars", "structs", "misaligned", "nothing"])
def test_arguments_arrive(hip: Machine, name: str) -> None:
    """Each argument's bytes, given by address, lie where the code object says."""
    arguments = {
        "saxpy": split(struct.pack("=QQfi", 4096, 8192, 2.5, 77), [8, 8, 4, 4]),
        "scalars": split(SCALARS, SIZES),
        "structs": [b"\x07", struct.pack("dii8x", 1.5, 2, 3), b"\x09", struct.pack("Q", 1 << 40)],
        "misaligned": [b"abcd", struct.pack("fff", 1, 2, 3), struct.pack("q", -1), struct.pack("Q", 3 << 33)],
        "nothing": [],
    }
    launched(hip, name, arguments[name])


def test_packed_arguments_arrive(hip: Machine) -> None:
    """In `extra` the arguments are taken from where the code object says."""
    runtime = hip.runtime
    function = runtime.function(code(hip), "misaligned")
    packed = struct.pack("4sfffqQ", b"abcd", 1, 2, 3, -1, 5)
    assert runtime.launch(function, (2, 1, 1), (32, 1, 1), None, extra=packed) == 0
    dispatch = hip.dispatches()[-1]
    places = KERNELS["misaligned"].places()
    assert [dispatch.argument(at, it.size) for at, it in places] == [packed[at : at + it.size] for at, it in places]


def test_shared_memory_is_static_and_dynamic(hip: Machine) -> None:
    """The device is told the sum."""
    launched(hip, "shared", split(struct.pack("=Qi", 4096, 1), [8, 4]), shared=1000)


def test_what_no_device_can_launch_is_refused(hip: Machine) -> None:
    """Shapes that cannot be, and arguments that are not there, are an invalid value; a launch bound is another status."""
    runtime = hip.runtime
    object_code = code(hip)
    plain, bounded = runtime.function(object_code, "nothing"), runtime.function(object_code, "bounded")
    one = (1, 1, 1)
    for grid, block in (
        ((0, 1, 1), one),
        ((1, 1, 0), one),
        (one, (0, 1, 1)),
        (one, (1025, 1, 1)),
        (one, (32, 33, 1)),
        ((1, 65537, 1), one),
        ((1, 1, 65537), one),
        ((1 << 31, 1, 1), one),
        ((1 << 22, 1, 1), (1024, 1, 1)),
    ):
        assert runtime.launch(plain, grid, block) == 1, (grid, block)
    assert runtime.launch(plain, (1, 65536, 1), one) == 0
    assert runtime.launch(plain, one, one, shared=65537) == 1
    pointer = [struct.pack("Q", 0)]
    assert runtime.launch(bounded, one, (257, 1, 1), pointer) == 719
    assert runtime.launch(bounded, one, (256, 1, 1), pointer) == 0
    assert runtime.launch(bounded, one, one, None) == 1
    assert runtime.launch(bounded, one, one, pointer, extra=pointer[0]) == 1
    assert len(hip.dispatches()) == 2


def test_code_that_does_not_belong_here_is_refused(hip: Machine) -> None:
    """Garbage is no image; code for another device has a status of its own; so has a name that is not in it."""
    runtime = hip.runtime
    assert runtime.load(b"no code object at all".ljust(4096, b"\0"))[0] == 200
    assert runtime.load(code(hip, "gfx1100" if hip.wave == 64 else "gfx942"))[0] == 209
    status, module = runtime.load(code(hip))
    assert status == 0
    assert runtime.out("hipModuleGetFunction", ctypes.c_void_p(module), b"none", kind=ctypes.c_void_p)[0] == 500
    assert runtime.out("hipModuleGetFunction", ctypes.c_void_p(module), b"", kind=ctypes.c_void_p)[0] == 1
    assert runtime.hipModuleUnload(ctypes.c_void_p(module)) == 0


def test_attributes_of_a_kernel_are_those_of_its_code(hip: Machine) -> None:
    """Threads in a block, static shared memory, and how much dynamic memory is left."""
    runtime = hip.runtime
    for name, most, group in (("bounded", 256, 0), ("shared", 1024, 256)):
        function = ctypes.c_void_p(runtime.function(code(hip), name))
        asked = [runtime.out("hipFuncGetAttribute", number, function) for number in (0, 1, 8)]
        assert asked == [(0, most), (0, group), (0, 65536 - group)]


def test_an_extended_launch(hip: Machine) -> None:
    """From HIP 7 on there is hipDrvLaunchKernelEx, whose grid is in blocks too."""
    runtime = hip.runtime
    assert hasattr(runtime.library, "hipDrvLaunchKernelEx") == (hip.major >= 7)
    if hip.major < 7:
        return
    function = runtime.function(code(hip), "saxpy")
    arguments = split(struct.pack("=QQfi", 4096, 8192, 2.5, 77), [8, 8, 4, 4])
    assert runtime.launch_extended(function, (3, 2, 1), (64, 2, 1), arguments) == 0
    dispatch = hip.dispatches()[-1]
    assert (dispatch.grid, dispatch.block) == ((3, 2, 1), (64, 2, 1))
    assert [dispatch.argument(at, it.size) for at, it in KERNELS["saxpy"].places()] == arguments


def test_a_cooperative_launch(hip: Machine) -> None:
    """It needs HIP 6 here, and a device that can: a modelled one cannot, and says so."""
    runtime = hip.runtime
    assert hasattr(runtime.library, "hipModuleLaunchCooperativeKernel") == (hip.major >= 6)
    if hip.major < 6:
        return
    function = runtime.function(code(hip), "nothing")
    if not isinstance(hip, StandIn):
        assert runtime.launch_cooperative(function, (2, 1, 1), (64, 1, 1)) == 719
        return
    assert runtime.launch_cooperative(function, (104, 1, 1), (1024, 1, 1)) == 0
    assert hip.recording.last().cooperative
    assert runtime.launch_cooperative(function, (1 << 20, 1, 1), (1024, 1, 1)) == 720
    hip.recording.set_cooperative(False)
    assert runtime.launch_cooperative(function, (2, 1, 1), (64, 1, 1)) == 719


def test_memory_is_allocated_copied_and_freed(hip: Machine) -> None:
    """What is copied to the device comes back, in parts too; nothing is a null pointer, and freed once."""
    runtime = hip.runtime
    size = ctypes.c_size_t(1000)
    address = runtime.handle("hipMalloc", size)
    data = os.urandom(1000)
    assert runtime.hipMemcpy(ctypes.c_void_p(address), data, size, 1) == 0
    back = ctypes.create_string_buffer(1000)
    assert runtime.hipMemcpy(back, ctypes.c_void_p(address), size, 2) == 0 and back.raw == data
    assert runtime.hipMemcpy(back, ctypes.c_void_p(address + 7), ctypes.c_size_t(13), 4) == 0
    assert back.raw[:13] == data[7:20]
    assert runtime.hipFree(ctypes.c_void_p(address)) == 0
    assert runtime.hipFree(ctypes.c_void_p(address)) == 1
    assert runtime.hipFree(None) == 0
    assert runtime.out("hipMalloc", ctypes.c_size_t(0), kind=ctypes.c_void_p) == (0, None)
    assert runtime.out("hipMalloc", ctypes.c_size_t(1 << 50), kind=ctypes.c_void_p)[0] == 2


def test_an_address_tells_its_memory(hip: Machine) -> None:
    """Device memory is 1 before HIP 6 and 2 since; memory of the host, pinned or not, is told from it."""
    runtime = hip.runtime
    device = runtime.handle("hipMalloc", ctypes.c_size_t(4096))
    host = runtime.handle("hipHostMalloc", ctypes.c_size_t(4096), 0)
    plain = ctypes.create_string_buffer(64)
    answers = []
    for address in (device + 100, host, ctypes.addressof(plain)):
        attributes = ctypes.create_string_buffer(64)
        status = runtime.hipPointerGetAttributes(attributes, ctypes.c_void_p(address))
        answers.append((status, *struct.unpack_from("ii", attributes)))
    if hip.major < 6:
        assert answers[:2] == [(0, 1, 0), (0, 0, 0)] and answers[2][0] == 1
    else:
        assert answers == [(0, 2, 0), (0, 1, 0), (0, 0, -2)]
    assert runtime.hipHostFree(ctypes.c_void_p(host)) == 0


def test_streams_and_events(hip: Machine) -> None:
    """A launch on a stream of its own, between two events; priorities are from 1 to -1."""
    runtime = hip.runtime
    least, greatest = ctypes.c_int(), ctypes.c_int()
    assert runtime.hipDeviceGetStreamPriorityRange(ctypes.byref(least), ctypes.byref(greatest)) == 0
    assert (least.value, greatest.value) == (1, -1)
    highest = -1 if isinstance(hip, StandIn) else 0  # a modelled device has no priorities
    stream = runtime.handle("hipStreamCreateWithPriority", 1, highest)
    start, end = (ctypes.c_void_p(runtime.handle("hipEventCreateWithFlags", 0)) for _ in range(2))
    handle = ctypes.c_void_p(stream)
    assert runtime.hipEventRecord(start, handle) == 0
    assert runtime.launch(runtime.function(code(hip), "nothing"), (2, 1, 1), (64, 1, 1), stream=stream) == 0
    assert runtime.hipEventRecord(end, handle) == runtime.hipEventSynchronize(end) == 0
    assert runtime.hipStreamSynchronize(handle) == runtime.hipStreamQuery(handle) == runtime.hipEventQuery(end) == 0
    assert runtime.hipStreamWaitEvent(None, end, 0) == 0
    elapsed = ctypes.c_float()
    assert runtime.hipEventElapsedTime(ctypes.byref(elapsed), start, end) == 0 and elapsed.value >= 0
    status = ctypes.c_int(9)
    assert runtime.hipStreamIsCapturing(handle, ctypes.byref(status)) == 0 and status.value == 0
    assert runtime.hipEventDestroy(start) == runtime.hipEventDestroy(end) == runtime.hipStreamDestroy(handle) == 0
    assert len(hip.dispatches()) == 1


def test_the_last_error(hip: Machine) -> None:
    """Before HIP 7 a call that succeeds clears it; since then it stays until it is asked for."""
    runtime = hip.runtime
    assert runtime.hipSetDevice(99) == 101
    assert runtime.hipPeekAtLastError() == 101
    assert runtime.hipSetDevice(0) == 0
    assert runtime.hipGetLastError() == (101 if hip.major >= 7 else 0)
    assert runtime.hipGetLastError() == 0


def test_statuses_have_names_and_texts(hip: Machine) -> None:
    """Before HIP 6 the text is the name."""
    library = hip.runtime.library
    assert library.hipGetErrorName(719) == b"hipErrorLaunchFailure"
    assert library.hipGetErrorString(719) == (
        b"unspecified launch failure" if hip.major >= 6 else b"hipErrorLaunchFailure"
    )
    assert library.hipGetErrorName(12345) == b"hipErrorUnknown"


def test_a_child_of_a_process_that_has_used_the_device(hip: Machine) -> None:
    """It counts the devices, and can do nothing with them; with a modelled one that does not show."""
    if not isinstance(hip, StandIn):
        pytest.skip("memory of a modelled device is the host's, and a child has it too")
    runtime = hip.runtime
    runtime.handle("hipMalloc", ctypes.c_size_t(64))
    child = os.fork()
    if not child:
        counted = runtime.out("hipGetDeviceCount")[0]
        status = runtime.out("hipMalloc", ctypes.c_size_t(64), kind=ctypes.c_void_p)[0]
        os._exit(counted * 16 + (status != 0))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_functions_by_name(hip: Machine) -> None:
    """From HIP 6 on hipGetProcAddress finds what there is."""
    runtime = hip.runtime
    if hip.major < 6:
        assert not hasattr(runtime.library, "hipGetProcAddress")
        return
    found = ctypes.c_void_p()
    state = ctypes.c_int(9)

    def address(name: str, version: int) -> int:
        given = (name.encode(), ctypes.byref(found), version, ctypes.c_uint64(0), ctypes.byref(state))
        assert (runtime.hipGetProcAddress(*given), state.value) in ((0, 0), (1, 1))
        return found.value or 0

    def exported(name: str) -> int | None:
        return ctypes.cast(getattr(runtime.library, name), ctypes.c_void_p).value

    assert address("hipMalloc", 60000000) == exported("hipMalloc")
    assert address("hipNothing", 60000000) == 0
    assert address("hipGetDeviceProperties", 500) == exported("hipGetDeviceProperties")
    assert address("hipGetDeviceProperties", 600) == exported("hipGetDevicePropertiesR0600")


def test_a_source_is_compiled_and_launched(hip: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """From text to arguments in the device's memory, with hipRTC where each version has it: in HIP 5, inside the runtime."""
    pytest.importorskip("podium_amd", reason="podium-amd is not installed")
    pytest.importorskip("rocm.bindings", reason="hip-python is not installed")
    if isinstance(hip, StandIn) and not os.environ["RECORDING_HIPRTC"]:
        pytest.skip(MISSING)
    import podium

    monkeypatch.setenv("PODIUM_LAUNCHER", "interpreted")
    kernel = podium.kernel(SOURCE, "misaligned")
    x = podium.asarray([1.0, 2.0])
    kernel[podium.LaunchConfig(2, 64)](7, struct.pack("fff", 1, 2, 3), -5, x)
    dispatch = hip.dispatches()[-1]
    places = KERNELS["misaligned"].places()
    expected = [struct.pack("i", 7), struct.pack("fff", 1, 2, 3), struct.pack("q", -5), struct.pack("Q", x.ptr)]
    assert [dispatch.argument(at, it.size) for at, it in places] == expected
    assert x.tolist() == [1.0, 2.0]
