"""Kernels that are built for the sanitizers: what they find, where they say it is, and that a launch ends there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import podium
from podium.backend import HostCompiler
from podium.errors import LaunchError, LoadError, SettingError, ToolchainError

from podium_cpu.arena import arena
from podium_cpu.driver import CpuDriver
from podium_cpu.sanitizers import Sanitizers

SOURCE = r"""
__device__ int table[10];
struct pair { int a, b; };

__device__ float inside(const float *values, int index) {
  return values[index];
}
__global__ void reads(const float *in, float *out, int offset) {
  out[threadIdx.x] = inside(in, int(threadIdx.x) + offset);
}
__global__ void writes(float *data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n)
    data[i] = 1;
}
__global__ void bytes(char *data, int first, int count) {
  for (int i = 0; i < count; ++i) data[first + i] = 1;
}
__global__ void copies(pair *to, const pair *from) {
  to[threadIdx.x] = from[threadIdx.x + 1];
}
__global__ void add_all(int *to, int *from, int n) {
  atomicAdd(&to[threadIdx.x], from[threadIdx.x]);
  from[threadIdx.x] = to[threadIdx.x];
}
__global__ void fixed(float *data, int offset) {
  __shared__ float tile[32];
  float *p = tile;
  p[threadIdx.x + offset] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = tile[31 - threadIdx.x];
}
__global__ void turns(float *data, int times) {
  static __shared__ float tile[32];
  float *mine = data + 32 * blockIdx.x + threadIdx.x;
  for (int i = 0; i < times; ++i) {
    tile[threadIdx.x] = *mine;
    __syncthreads();
    *mine = tile[31 - threadIdx.x];
    __syncthreads();
  }
}
template <typename T> __global__ void generic(T *data, int offset) {
  __shared__ T tile[32];
  tile[threadIdx.x + offset] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = tile[31 - threadIdx.x];
}
__global__ void dynamic(float *data, int offset) {
  extern __shared__ float tile[];
  tile[threadIdx.x + offset] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
__global__ void local(float *data, int offset) {
  float values[5];
  for (int i = 0; i < 5; ++i) values[i] = data[i];
  float *p = values;
  __syncthreads();
  data[threadIdx.x] = p[threadIdx.x + offset];
}
__global__ void variable(int *data, int index) {
  int *p = table;
  p[index] += 1;
  data[0] = p[index];
}
__global__ void sum(int *data, int a, int b) {
  data[0] = a + b;
}
__global__ void shift(int *data, int a, int b) {
  data[0] = a << b;
}
__global__ void divide(int *data, int a, int b) {
  data[0] = a / b;
}
__global__ void constant_index(int *data, int index) {
  const int values[4] = {1, 2, 3, 4};
  data[0] = values[index];
}
"""

COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]


@pytest.fixture(params=COMPILERS)
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[podium.Module]:
    """The kernels above, built for both sanitizers with each compiler that is there."""
    monkeypatch.setenv("CXX", request.param)
    with podium.use("cpu", sanitize="address,undefined") as driver:
        # Kernels are kept for a driver; the compilers need one each.
        podium.set_active(driver)
        yield _modules.setdefault(request.param, podium.module(SOURCE, kernels=["generic<float>"]))
    podium.reset_active()


_modules: dict[str, podium.Module] = {}


def found(launch: Any, *args: Any, **keywords: Any) -> str:
    """Launch, and return what was found."""
    with pytest.raises(LaunchError) as caught:
        launch(*args, **keywords)
    assert caught.value.status_name == "PODIUM_CPU_ERROR_SANITIZER"
    return caught.value.status_text


def line_of(text: str) -> int:
    """Return the number of the line of the kernels above that has a text."""
    return next(number for number, line in enumerate(SOURCE.splitlines(), 1) if text in line)


def test_numpy_arrays_have_bounds(module: podium.Module) -> None:
    """An access beyond a numpy array is found at its line and column, in its thread, with the argument's name."""
    x, y = np.zeros(1000, np.float32), np.zeros(32, np.float32)
    launch = module["writes"][8, 128]
    launch(x, 999)
    assert (x == 1).all()
    text = found(launch, x, 1000)
    where = re.escape(f"<podium source>:{line_of('data[i] = 1;')}:13: ").replace("13", r"(5|13)")
    assert re.match(where + "the kernel writes 4 bytes right behind the end of the argument 'data', which has 4000 bytes, "
                    r"in thread \(104,0,0\) of block \(7,0,0\)$", text)  # fmt: skip
    reads = module["reads"][1, 32]
    reads(x, y, 1000 - 32)
    place = f"<podium source>:{line_of('return values')}:"
    for offset, position in ((990, "right behind the end"), (-7, "28 bytes before the beginning"),
                             (200000, "796000 bytes behind the end")):  # fmt: skip
        text = found(reads, x, y, offset)
        assert text.startswith(place) and f"reads 4 bytes {position} of the argument 'in'" in text
    # A view has the bounds of the view; the array behind it goes on.
    assert "the argument 'in', which has 400 bytes" in found(reads, x[100:200], y, 90)
    reads(x, y, 90)


@pytest.mark.parametrize("name", COMPILERS)
def test_the_thread_is_the_one_at_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sanitizer of addresses by itself, which leaves the loop over threads to the compiler, tells the right one."""
    monkeypatch.setenv("CXX", name)
    kernel = podium.kernel("__global__ void next(float *x, float *y) { y[threadIdx.x] = x[threadIdx.x + 1]; }")
    with podium.use(CpuDriver(sanitize="address")):
        text = found(kernel[1, 64], np.zeros(64, np.float32), np.zeros(64, np.float32))
    assert text.endswith("in thread (63,0,0) of block (0,0,0)")


def test_bounds_are_exact_to_the_byte(module: podium.Module) -> None:
    """No byte behind an array can be touched, whatever its length and alignment."""
    memory = np.zeros(64, np.int8)
    launch = module["bytes"][1, 1]
    for first in (0, 1, 5):
        for length in (1, 7, 8, 13):
            part = memory[first : first + length]
            launch(part, 0, length)
            assert "right behind the end" in found(launch, part, 0, length + 1)
            assert part.sum() == length and memory.sum() == length
            memory[:] = 0
    assert "before the beginning" in found(launch, memory, -1, 1)
    assert "right behind the end" in found(launch, memory[:0], 0, 1)


def test_arrays_of_podium_have_bounds(module: podium.Module) -> None:
    """Arrays of podium are checked like numpy's, and stay where they are."""
    x, y = podium.asarray([1.0] * 50), podium.empty(32)
    launch = module["reads"][1, 32]
    launch(x, y, 18)
    assert y.tolist() == [1.0] * 32
    assert "right behind the end of the argument 'in', which has 200 bytes" in found(launch, x, y, 19)
    assert "right behind the end of the argument 'out', which has 128 bytes" in found(module["reads"][1, 33], x, y, 0)
    address = x.ptr
    launch(address, y, 0)  # a number stands for memory that nobody has measured
    assert arena().nearest(address) is not None


def test_arrays_that_overlap_are_one(module: podium.Module) -> None:
    """A kernel sees through one argument what it writes through another that overlaps; all changes are there afterwards."""
    numbers = np.arange(10, dtype=np.int32)
    module["add_all"][1, 4](numbers[2:6], numbers[4:8], 4)
    expected = list(range(10))
    for i in range(4):
        expected[2 + i] += expected[4 + i]
        expected[4 + i] = expected[2 + i]
    assert numbers.tolist() == expected
    module["add_all"][1, 5](numbers, numbers, 5)
    assert numbers[:5].tolist() == [2 * each for each in expected[:5]]


def test_structures_are_accesses_too(module: podium.Module) -> None:
    """A copy of a structure is one access, of all of its bytes."""
    pairs, out = np.zeros((4, 2), np.int32), np.zeros((4, 2), np.int32)
    module["copies"][1, 3](out, pairs)
    assert "the argument 'from', which has 32 bytes" in found(module["copies"][1, 4], out, pairs)


def test_read_only_arrays_are_not_written(module: podium.Module) -> None:
    """What a kernel only reads may be in memory that cannot be written."""
    source = np.frombuffer(bytes(128), np.float32)
    y = np.ones(32, np.float32)
    module["reads"][1, 32](source, y, 0)
    assert y.tolist() == [0.0] * 32


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        ("fixed", "writes 4 bytes right behind the end of the variable 'tile', which has 128 bytes"),
        ("generic<float>", r"the index 32 is out of bounds for 'float ?\[32\]'"),
    ],
)
def test_shared_memory_has_bounds(module: podium.Module, kernel: str, text: str) -> None:
    """Shared arrays are checked, also in templates, and go on to work after a launch has ended in them."""
    y = np.arange(32, dtype=np.float32)
    launch = module[kernel][3, 32]
    assert re.search(rf"{text}, in thread \(31,0,0\) of block \(0,0,0\)", found(launch, y, 1))
    launch(y, 0)
    assert y.tolist() == list(range(31, -1, -1))


def test_blocks_run_one_after_another(module: podium.Module) -> None:
    """Shared memory is the block's own, in a launch of many blocks that take long."""
    y = np.tile(np.arange(32, dtype=np.float32), 2000)
    module["turns"][2000, 32](y, 50)
    assert (y.reshape(2000, 32) == np.arange(32)).all()


def test_dynamic_shared_memory_has_bounds(module: podium.Module) -> None:
    """A block may touch as much dynamic shared memory as the launch has asked for."""
    y = np.arange(32, dtype=np.float32)
    launch = module["dynamic"][2, 32]
    launch(y, 0, shared=128)
    for offset, shared in ((1, 128), (0, 126), (0, 0)):
        text = found(launch, y, offset, shared=shared)
        assert f"outside of the dynamic shared memory, of which the launch has asked for {shared} bytes" in text
    launch(y, 1, shared=132)


def test_local_and_global_variables_have_bounds(module: podium.Module) -> None:
    """Variables are named; an abandoned block leaves nothing that would be found in the next launch."""
    y, z = np.zeros(5, np.float32), np.zeros(1, np.int32)
    for _ in range(2):
        module["local"][2, 5](y, 0)
        text = found(module["local"][2, 5], y, 1)
        assert "reads 4 bytes right behind the end of the local variable 'values', which has 20 bytes" in text
    module["variable"][1, 1](z, 9)
    assert "right behind the end of the variable 'table', which has 40 bytes" in found(module["variable"][1, 1], z, 10)
    assert module.variable("table").tolist()[9] == 1


@pytest.mark.parametrize(
    ("kernel", "good", "bad", "text"),
    [
        ("sum", (1, 2), (2147483647, 1), "2147483647 + 1 does not fit into 'int'"),
        ("shift", (1, 31), (1, 32), "1 is shifted by 32 places, and 'int' has 32 bits"),
        ("shift", (0, 0), (1, -1), "1 is shifted by -1 places"),
        ("divide", (4, 2), (-4, 0), "-4 is divided by zero"),
    ],
)
def test_undefined_behaviour(
    module: podium.Module, kernel: str, good: tuple[int, int], bad: tuple[int, int], text: str
) -> None:
    """Overflow, shifts and division by zero are found where they stand, with the numbers."""
    out = np.zeros(1, np.int32)
    module[kernel][1, 1](out, *good)
    said = found(module[kernel][1, 1], out, *bad)
    line = line_of({"sum": "a + b", "shift": "a << b", "divide": "a / b"}[kernel])
    assert said.startswith(f"<podium source>:{line}:") and text in said


def test_null_pointers_and_constant_arrays(module: podium.Module) -> None:
    """A null pointer and an index out of a constant array are undefined behaviour, too."""
    out = np.zeros(1, np.int32)
    assert "a null pointer to 'int' is followed" in found(module["sum"][1, 1], None, 1, 2)
    assert re.search(
        r"index 4 is out of bounds for '(?:const )?int ?\[4\]'", found(module["constant_index"][1, 1], out, 4)
    )


def test_a_launch_ends_at_the_first_finding(module: podium.Module) -> None:
    """What comes behind it does not run, and the arrays have what was written before."""
    x = np.zeros(100, np.float32)
    found(module["writes"][4, 30], x, 1000)
    assert (x == 1).all()


def test_launches_from_several_threads(module: podium.Module) -> None:
    """Each thread is told what its own launch has found."""
    texts: dict[int, str] = {}

    def work(length: int) -> None:
        with podium.use("cpu", sanitize="address,undefined"):
            for _ in range(10):
                texts[length] = found(module["writes"][1, 256], np.zeros(length, np.float32), 500)

    threads = [threading.Thread(target=work, args=(length,)) for length in (10, 20, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"which has {4 * length} bytes" in text for length, text in texts.items()) and len(texts) == 3


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_launches_in_a_forked_child(module: podium.Module) -> None:
    """A child that is forked has the arena and what is found in it to itself."""
    x = podium.asarray([0.0] * 8)
    found(module["writes"][1, 9], x, 8)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            module["writes"][1, 8](x, 7)
            text = found(module["writes"][1, 9], np.zeros(8, np.float32), 8)
            status = 0 if "which has 32 bytes" in text and x.tolist() == [1.0] * 8 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_each_sanitizer_alone(compiler: HostCompiler) -> None:
    """Only what was asked for is looked at; code without checks has a place of its own in the cache."""
    x, out = np.zeros(10, np.float32), np.zeros(1, np.int32)
    writes, total = podium.kernel(SOURCE, "writes"), podium.kernel(SOURCE, "sum")
    with podium.use("cpu", sanitize="address") as address:
        found(writes[1, 64], x, 10)
        total[1, 1](out, 2147483647, 1)
    with podium.use("cpu", sanitize="undefined") as undefined:
        found(total[1, 1], out, 2147483647, 1)
        writes[1, 4](x, 10)
    plain = podium.driver.get("cpu")
    assert len({each.toolchain("cuda") for each in (address, undefined, plain)}) == 3


@pytest.fixture
def compiler() -> HostCompiler:
    try:
        return HostCompiler.find("c++")
    except ToolchainError as error:
        pytest.skip(f"this machine has no C++ compiler: {error}")


def test_the_variable_and_bad_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """PODIUM_CPU_SANITIZE is what drivers take where nobody says otherwise; an unknown name lists those there are."""
    monkeypatch.setenv("PODIUM_CPU_SANITIZE", " address ,undefined")
    checks = CpuDriver().checks
    assert checks is not None and str(checks.sanitizers) == "address,undefined"
    assert CpuDriver(sanitize="").checks is None
    with pytest.raises(
        ValueError,
        match="sanitize='thread': there is no sanitizer 'thread'; there are address and undefined, and none of races",
    ):
        CpuDriver(sanitize="thread")
    monkeypatch.setenv("PODIUM_CPU_SANITIZE", "memory")
    with pytest.raises(SettingError, match="PODIUM_CPU_SANITIZE='memory' is not valid: expected address, undefined"):
        CpuDriver()
    assert not Sanitizers.of("")


def test_no_room_for_the_shadow(compiler: HostCompiler, tmp_path: Path) -> None:
    """Where address space is limited, an error says what is needed, and kernels without checks go on to run."""
    program = (
        "import resource, podium\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 36, 1 << 36))\n"
        "kernel = podium.kernel('__global__ void k(int *p) { *p = 1; }')\n"
        "with podium.use('cpu', sanitize='address'):\n"
        "    try:\n"
        "        kernel.load()\n"
        "    except podium.errors.LoadError as error:\n"
        "        print(error)\n"
        "kernel.load()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "of address space" in done.stdout and "ulimit -v" in done.stdout
    assert issubclass(LoadError, podium.errors.PodiumError)
