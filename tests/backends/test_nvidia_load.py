"""Loading code for NVIDIA GPUs, on the recording CUDA driver: limits, parameters, variables, errors, unloading."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest
from recording.cuda.library import Recording

import podium
from podium.backend import Entry, ObjectCode, Signature, Target
from podium.errors import LoadError

from podium_nvidia.driver import NvidiaDriver

SOURCE = """
__device__ int counter = 3;
__constant__ float table[4];
extern "C" __global__ void count(int* x, float a) { x[0] = counter + table[1] * a; }
extern "C" __global__ void reset(int n) { counter = n; }
"""
PLAIN = """
extern "C" __global__ void plain(int* x, float a, short n) { __shared__ int s[64]; s[n] = a; x[0] = s[n + 1]; }
"""
SM_90 = Target("nvidia", "sm_90", 32)


def driver() -> NvidiaDriver:
    """Return the driver, which the fixture `recording` has made the one to use."""
    found = podium.driver.resolve()
    assert isinstance(found, NvidiaDriver)
    return found


def compiled(source: str = PLAIN, name: str = "plain", target: Target = SM_90) -> ObjectCode:
    """Compile a kernel."""
    return podium.kernel(source, name).compile(target, driver())


def test_every_limit_is_raised_at_load(recording: Recording) -> None:
    """GRD-07: the largest dynamic shared memory beside the static one, and clusters that are not portable."""
    function = driver().load(compiled(), "plain", 0)
    assert function.attributes["shared"] == 256
    assert function.attributes["max_dynamic_shared"] == 232448 - 256
    assert function.max_threads == 1024 and function.attributes["registers"] > 0
    assert recording.calls()["cuKernelSetAttribute"] == 2
    assert recording.calls()["cuKernelGetFunction"] == 1, "the code is on the device when load returns"
    assert recording.counters()["functions"] == 1


def test_limits_only_go_up(recording: Recording) -> None:
    """GRD-07: a limit that is there already is not set again, and a device without more sets none."""
    recording.set_attributes({97: 48 << 10, 120: 0})
    driver().load(compiled(), "plain", 0)
    assert "cuKernelSetAttribute" not in recording.calls()


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("x: *i32, a: fp32", r"the binary has 3 parameters and the signature 2; number 2, of 2 bytes, is missing"),
        ("x: *i32, a: fp32, n: i16, m: i8", r"the binary has 3 parameters and the signature 4; parameter 'm' \(i8\)"),
        ("x: *i32, a: fp64, n: i16", r"parameter 'a' \(fp64\) has 8 bytes, and 4 in the binary, where it is number 1"),
        ("x: *i32, a: fp32, n: {i8,i8,i8}", r"parameter 'n' .* has 3 bytes, and 2 in the binary"),
    ],
)
def test_parameters_are_those_of_the_signature(recording: Recording, signature: str, message: str) -> None:
    """A binary with other parameters than the signature says is refused by the name of the first one."""
    code = compiled()
    wrong = replace(code, entries=(Entry("plain", Signature.parse(signature)),))
    with pytest.raises(LoadError, match=message):
        driver().load(wrong, "plain", 0)
    assert recording.counters()["libraries"] == 0, "what was loaded by then is given back"
    driver().load(code, "plain", 0)


def test_folded_parameters_and_scratch_pointers_count(recording: Recording) -> None:
    """A constexpr parameter is not in the binary; the pointers to scratch memory are, behind the others."""
    text = 'extern "C" __global__ void k(int* x, char* global, char* profile) { x[0] = *global + *profile; }'
    code = podium.kernel(text, "k", signature="x: *i32, global: *i8, profile: *i8").compile(SM_90, driver())
    entries = (Entry("k", Signature.parse("n: constexpr, x: *i32")),)
    metadata = {"global_scratch_size": 8, "profile_scratch_size": 0}
    driver().load(replace(code, entries=entries, metadata=metadata), "k", 0)
    with pytest.raises(LoadError, match="the binary has 3 parameters and the signature 2"):
        driver().load(replace(code, entries=entries, metadata={"global_scratch_size": 8}), "k", 0)


def test_a_device_of_another_architecture(recording: Recording) -> None:
    """LIF-09: both architectures and the driver's version are named, and what to do."""
    code = compiled()
    recording.set_attributes({75: 8, 76: 0})
    with pytest.raises(LoadError) as caught:
        driver().load(code, "plain", 0)
    text = str(caught.value)
    assert "CUDA_ERROR_NO_BINARY_FOR_GPU" in text and "built for sm_90" in text and "device 0 is sm_80" in text
    assert "CUDA 13.0" in text and "compile it for that" in text


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (222, "update the NVIDIA driver, or compile with a toolkit that is not newer"),
        (218, "The driver's compiler refuses the PTX"),
        (221, "libnvidia-ptxjitcompiler"),
        (200, "compile it again; or .* update the NVIDIA driver"),
        (2, "CUDA_ERROR_OUT_OF_MEMORY"),
        (700, "are lost to this process"),
    ],
)
def test_each_failure_says_which_side_to_change(recording: Recording, status: int, advice: str) -> None:
    """LIF-09, RTC-04: a status of the loader comes with its name, the versions and the next step."""
    code = compiled()
    with recording.failing("cuLibraryLoadData", status), pytest.raises(LoadError, match=advice) as caught:
        driver().load(code, "plain", 0)
    assert caught.value.kernel == "plain" and f"status {status}" in str(caught.value)
    driver().load(code, "plain", 0)


def test_a_fat_binary_without_code_for_the_device(recording: Recording) -> None:
    """LIF-09: what is said is not the target, which is the device's for want of another, but what is to be added."""
    code = compiled()
    code = podium.ObjectCode(code.code, "fatbin", code.target, code.entries)
    with recording.failing("cuLibraryLoadData", 209), pytest.raises(LoadError, match=r"none is for sm_90: add it"):
        driver().load(code, "plain", 0)


def test_damaged_code_and_names_that_are_not_there(recording: Recording) -> None:
    """LIF-05: bytes that are no code are refused, and a name that the binary lacks is answered with those it has."""
    code = compiled()
    for data in (b"", b"broken", code.code[:4], b"\x7fELF\1" + bytes(90), code.code[:63], bytes(len(code.code))):
        with pytest.raises(LoadError, match="plain"):
            driver().load(replace(code, code=data), "plain", 0)
    calls = recording.calls()["cuLibraryLoadData"]
    for length in range(4, len(code.code) - 8, 97):  # a real driver reads beyond the end
        with pytest.raises(LoadError, match="cut short"):
            driver().load(replace(code, code=code.code[:length]), "plain", 0)
    assert recording.calls()["cuLibraryLoadData"] == calls
    with pytest.raises(LoadError, match=r"no symbol 'lost'[\s\S]*The binary has: plain"):
        driver().load(replace(code, symbols={"plain": "lost"}), "plain", 0)
    assert recording.counters()["libraries"] == 0


@pytest.mark.parametrize("entry", ["cuLibraryGetKernel", "cuKernelGetParamInfo", "cuKernelGetAttribute"])
@pytest.mark.parametrize("status", [1, 2, 700])
def test_what_fails_behind_loading_leaves_nothing(recording: Recording, entry: str, status: int) -> None:
    """LIF-05: an error in any later step is a PodiumError, and the code that was loaded is given back."""
    code = compiled()
    driver().load(code, "plain", 0)
    before = recording.counters()
    recording.fail(entry, status)
    with pytest.raises(podium.errors.PodiumError):  # type: ignore[attr-defined]
        driver().load(code, "plain", 0)
    assert recording.counters() == before


def test_kernels_of_a_module_share_their_variables(recording: Recording) -> None:
    """A module with variables is loaded once; its variables have addresses and sizes, and go when nobody needs them."""
    module = podium.module(SOURCE)
    module["reset"][1, 1](5)
    module["count"][1, 1](None, 1.0)
    counter, table = module.variable("counter"), module.variable("table")
    assert recording.counters()["libraries"] == 1
    assert (counter.shape, table.shape, counter.nbytes, table.nbytes) == ((), (4,), 4, 16)
    assert counter.ptr and table.ptr
    del module
    gc.collect()
    assert recording.counters()["libraries"] == 1, "an array of a variable keeps the code"
    del counter, table
    gc.collect()
    assert recording.counters()["libraries"] == 0


def test_unloading_never_raises(recording: Recording) -> None:
    """LIF-02: code can be given back twice, after a fault, and whatever the driver says of it."""
    first, second, third = (driver().load(compiled(), "plain", 0) for _ in range(3))
    driver().unload(first, 0)
    driver().unload(first, 0)
    assert recording.counters()["libraries"] == 2
    with recording.failing("cuLibraryUnload", 700):
        driver().unload(second, 0)
    with recording.failing("cuCtxGetDevice", 700):
        driver().unload(third, 0)


def test_code_that_a_graph_may_launch_stays(recording: Recording, level: str) -> None:
    """LIF-04: unloading after a capture keeps the code for the graph; other code goes."""
    from cuda.bindings import driver as cuda

    captured, other = podium.kernel(PLAIN, "plain"), podium.kernel(PLAIN, "plain")
    stream = driver().create_stream(0, 0)
    for kernel in (captured, other):
        kernel[1, 32](None, 1.0, 2, stream=stream)
    assert cuda.cuStreamBeginCapture(stream, cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)[0] == 0
    for _ in range(2):
        captured[1, 32](None, 1.0, 2, stream=stream)
    _, graph = cuda.cuStreamEndCapture(stream)
    _, run = cuda.cuGraphInstantiate(graph, 0)
    assert recording.counters()["libraries"] == 2
    captured.unload()
    other.unload()
    assert recording.counters()["libraries"] == 1
    assert cuda.cuGraphLaunch(run, stream)[0] == 0
    assert recording.last().replayed and recording.last().name == "plain"


def test_code_is_loaded_on_the_launchs_device_only(recording: Recording, level: str) -> None:
    """CTX-05: nothing is made on a device that no launch goes to."""
    x = podium.asarray([1], device=1)
    podium.kernel(PLAIN, "plain")[1, 32](x, 1.0, 2)
    assert recording.last().device == 1
    assert recording.counters()["contexts"] == 1


def test_code_is_accepted_by_its_architecture() -> None:
    """A device takes its own code, older code of its generation, its own variant's, and PTX that is not newer."""
    accepts = NvidiaDriver().accepts
    device = Target("nvidia", "sm_89", 32)
    taken = {"sm_89", "sm_80", "sm_86", "sm_89a", "compute_75", "compute_89"}
    for arch in (*taken, "sm_90", "sm_75", "compute_90", "sm_90a", "gfx942", "sm_100f"):
        assert accepts(Target("nvidia", arch, 32), device) is (arch in taken), arch
    assert not accepts(Target("cpu", "sm_89", 32), device)
