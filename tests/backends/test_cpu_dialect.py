"""The CUDA dialect as a language on the CPU backend: templates, qualifiers, headers, standards, sanitizers."""

from __future__ import annotations

import array
import ctypes
import math
import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cpu_kernels import (
    ASSERT,
    BARRIER_ENTRIES,
    BARRIERS,
    SUCCESS,
    TRAP,
    Kernels,
    cpu_driver,
    host_compiler,
    ints,
    zeros,
)

from podium.backend import HostCompiler, LaunchConfig, Parameters
from podium.errors import CompileError

from podium_cpu.runtime_object import RuntimeObject


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    return host_compiler()


LANGUAGE = """
#include <cuda_runtime.h>
#include <math_constants.h>
#include <assert.h>
#include <cassert>
#include <memory>
#include <cmath>
#include <vector>
#include <algorithm>
#include <type_traits>
__constant__ float table[4] = {1, 2, 3, 4};
__device__ int counter = 5;
__device__ __forceinline__ float square(float x) { return x * x; }
__host__ __device__ __noinline__ float twice(float x) { return 2 * x; }
struct Pair { double a; int b; };
namespace ns {
template <class T, int N> struct Op { static __device__ T apply(T x) { return x * N; } };
template <class T, template <class, int> class O, int N> struct Use {};
template <class T, int N> __global__ void scale(T *__restrict__ p, const __grid_constant__ int n) {
#pragma unroll 4
  for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = Op<T, N>::apply(p[i]);
}
}
template <class Operation> __global__ void generic(float *p) { p[0] = Operation::apply(p[0]); }
extern "C" __global__ void misc(float *out, Pair pair, bool flag, long long wide, unsigned char narrow) {
  __builtin_assume(out != nullptr);
  assert(out != nullptr && std::is_same<int, int>::value);
  out[0] = table[2] + square(3) + twice(4) + counter;
  out[1] = pair.a + pair.b + flag + wide + narrow;
  out[2] = CUDART_PI_F + std::sqrt(4.0f) + std::max(1, 2);
  out[3] = CUDART_INF_F > 1e30f;
  auto add = [=] __device__(float x) { return x + out[0]; };
  out[4] = add(1);
}
extern "C" __global__ void says(int n) { if (threadIdx.x == 1) printf("kernel says %d\\n", n); }
extern "C" __global__ void fails(int n) { __syncthreads(); assert(n < 3 && "too large"); }
extern "C" __global__ void traps(int n) { if (threadIdx.x == n) __trap(); __syncthreads(); }
"""

LANGUAGE_ENTRIES = {
    "ns::scale<float, 3>": "p: *fp32, n: i32",
    "::ns::scale<int, 1>": "p: *i32, n: i32",
    "generic<ns::Op<float, 7>>": "p: *fp32",
    "misc": "out: *fp32, pair: {fp64,i32}, flag: i1, wide: i64, narrow: u8",
    "says": "n: i32",
    "fails": "n: i32",
    "traps": "n: i32",
}


@pytest.fixture(scope="module")
def language() -> Kernels:
    return Kernels(LANGUAGE, LANGUAGE_ENTRIES)


def test_templates_by_name_expression(language: Kernels) -> None:
    """Kernels in namespaces and templates are instantiated by their name expressions."""
    data = array.array("f", [1, 2, 3])
    assert language("ns::scale<float, 3>", 1, 2, data, 3) == SUCCESS
    assert data.tolist() == [3, 6, 9]
    numbers = ints([4, 5])
    assert language("::ns::scale<int, 1>", 1, 2, numbers, 2) == SUCCESS
    assert numbers.tolist() == [4, 5]
    assert language("generic<ns::Op<float, 7>>", 1, 1, data) == SUCCESS
    assert data[0] == 21


def test_qualifiers_parameters_and_standard_headers(language: Kernels) -> None:
    """Qualifiers mean something sensible, parameters of every kind arrive, and standard headers can be included."""
    out = zeros("f", 5)
    pair = struct.pack("=di4x", 1.5, 2)
    assert language("misc", 1, 1, out, pair, True, 1 << 20, 255) == SUCCESS
    assert out.tolist()[:2] == [3 + 9 + 8 + 5, 1.5 + 2 + 1 + (1 << 20) + 255]
    assert out[2] == pytest.approx(math.pi + 2 + 2) and out[3] == 1 and out[4] == out[0] + 1


def test_printf_is_written_when_the_device_is_waited_for(language: Kernels, capfd: pytest.CaptureFixture[str]) -> None:
    """What a kernel prints is there after a synchronisation, as on a GPU."""
    assert language("says", 1, 3, 42) == SUCCESS
    assert language.driver.synchronize(0) == 0
    assert capfd.readouterr().out == "kernel says 42\n"


def test_assertions_end_the_launch(language: Kernels, capfd: pytest.CaptureFixture[str]) -> None:
    """LIF-08: a failed assertion says where it is and which thread it was; the process goes on."""
    assert language("fails", 2, 4, 2) == SUCCESS
    assert language("fails", 2, 4, 5) == ASSERT
    said = capfd.readouterr().err
    assert "<podium source>:36: fails: block: [0,0,0]" in said and "thread: [" in said and "too large" in said
    assert language("fails", 1, 4, 2) == SUCCESS
    assert language("traps", 1, 4, 2) == TRAP
    assert language("traps", 1, 4, 9) == SUCCESS


def test_assertions_can_be_switched_off() -> None:
    """NDEBUG removes assertions, with and without the header."""
    source = "__global__ void k(int n) {{ assert(n < 0); }}\n"
    for text in (source, "#include <cassert>\n" + source):
        text = text.replace("{{", "{").replace("}}", "}")
        assert Kernels(text, {"k": "i32"}, defines={"NDEBUG": None})("k", 1, 1, 5) == SUCCESS


@pytest.mark.parametrize("std", ["c++11", "c++14", "c++17", "c++20", "gnu++17"])
def test_language_standards(std: str) -> None:
    """The dialect works in every standard of C++ that kernels are written in."""
    source = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" + BARRIERS
    data = ints(range(64))
    assert Kernels(source, BARRIER_ENTRIES, std=std)("reverse", 1, 64, data) == SUCCESS
    assert data.tolist() == list(range(63, -1, -1))


def test_kernels_of_one_source_share_its_variables() -> None:
    """Kernels that were compiled together see the same __device__ variables."""
    source = "__device__ int v; __global__ void put(int n) { v = n; } __global__ void take(int *p) { *p = v; }"
    kernels = Kernels(source, {"put": "i32", "take": "*i32"})
    out = ints([0])
    assert kernels("put", 1, 1, 31) == SUCCESS
    assert kernels("take", 1, 1, out) == SUCCESS and out[0] == 31


def test_arguments_are_not_changed_by_stores() -> None:
    """Each thread gets the arguments of the launch, also if a kernel assigns to its parameters."""
    source = "__global__ void k(int *p, int n) { p[threadIdx.x] = n; n = -1; p = nullptr; __syncthreads(); }"
    out = ints([0] * 70)
    assert Kernels(source, {"k": "*i32, i32"})("k", 1, 70, out, 8) == SUCCESS
    assert out.tolist() == [8] * 70


def test_folded_parameters_are_not_in_the_binary() -> None:
    """A constexpr parameter of a signature is no parameter of the kernel."""
    kernels = Kernels("__global__ void k(int *p) { *p = N; }", {"k": "n: constexpr, p: *i32"}, defines={"N": 6})
    out = ints([0])
    data = struct.pack("=Q", out.buffer_info()[0])
    status = kernels.driver.launch(kernels.functions["k"].handle, LaunchConfig(1, 1), 0, 0, Parameters(data, (0,)))
    assert status == SUCCESS and out[0] == 6


def test_integers_of_the_source_itself() -> None:
    """A source for NVRTC may define the types of the C library itself, which has them already, and of another type."""
    declarations = [
        "typedef long long int int64_t; typedef unsigned long long uint64_t;",
        "using int64_t = long long; using uint64_t = unsigned long long int;",
        "namespace mine { typedef long long int64_t; typedef unsigned long long uint64_t; }",
    ]
    for declaration in declarations:
        source = declaration + "__global__ void k(int64_t *p, uint64_t n) { int64_t a = n; *p = a; }"
        out = zeros("q", 1)
        assert Kernels(source, {"k": "*i64, u64"})("k", 1, 1, out, 7) == SUCCESS and out[0] == 7


def test_hip_header() -> None:
    """The names that HIP adds: its indices, its macro for dynamic shared memory, its warp functions without masks."""
    source = """
    #include <hip/hip_runtime.h>
    #include <hip/hip_fp16.h>
    #include <hip/hip_bf16.h>
    extern "C" __global__ void k(int *p) {
      HIP_DYNAMIC_SHARED(int, s)
      s[hipThreadIdx_x] = hipThreadIdx_x;
      __syncthreads();
      int v = __shfl_down(s[hipThreadIdx_x], 1) + (__ballot(1) == 0xffffffffull) + __any(hipThreadIdx_x == 3);
      p[hipThreadIdx_x] = v + __all(1) + (int)(float)half(1.0f) + (int)(float)__hip_bfloat16(2.0f);
    }
    """
    out = ints([0] * 32)
    assert Kernels(source, {"k": "*i32"})("k", 1, 32, out, shared=128) == SUCCESS
    assert out.tolist() == [min(i + 1, 31) + 6 for i in range(32)]


# ---- the headers themselves ----

SANITIZED = """
#include <stdio.h>
int main() {
  static int data[3 * 257];
  int *p = data;
  void *parameters[] = {&p};
  podium_cpu_launch launch = {{3, 1, 1}, {257, 1, 1}, 0};
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 3 * 257; ++i) data[i] = i;
    if (podium_cpu::podium_entry<decltype(&reverse), &reverse>::podium_run(&launch, parameters)) return 2;
    for (int i = 0; i < 257; ++i) if (data[257 + i] != 257 + 256 - i) return 3;
  }
  podium_cpu_launch wrong = {{3, 1, 1}, {64, 1, 1}, 0};
  if (podium_cpu::podium_entry<decltype(&different_barriers), &different_barriers>::podium_run(&wrong, parameters) != 3)
    return 4;
  puts("right");
}
"""


@pytest.fixture
def executable(tmp_path: Path, compiler: HostCompiler) -> Callable[[str, list[str]], Path]:
    """Build a program out of kernels and a main function, as users would to debug with a sanitizer."""
    include = Path(cpu_driver.__file__).parent / "include"

    def build(source: str, flags: list[str]) -> Path:
        path = tmp_path / "program"
        every = ["-std=c++17", "-g", f"-I{include / 'dialect'}", "-include", str(include / "podium_cpu.h"), "-pthread"]
        runtime = RuntimeObject(compiler, flags)
        runtime.start()
        objects = {"runtime.o": runtime.finish()}
        path.write_bytes(compiler.run({"main.cpp": source}, "main.cpp", [*every, *flags], objects=objects).data)
        path.chmod(0o755)
        return path

    return build


@pytest.mark.parametrize("level", ["-O1", "-O3"])
def test_sanitizers_find_nothing(executable: Callable[[str, list[str]], Path], level: str) -> None:
    """The headers are clean under the sanitizers for addresses and for undefined behaviour."""
    flags = [level, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    try:
        executable("int main() {}\n", flags)
    except CompileError as error:
        pytest.skip(f"the compiler has no sanitizers: {error}")
    path = executable(BARRIERS + SANITIZED, flags)
    ran = subprocess.run([str(path)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "right\n"), ran.stderr


def test_headers_are_free_of_warnings(executable: Callable[[str, list[str]], Path]) -> None:
    """The headers do not trip over warnings that users make errors for their own source."""
    headers = ("cuda_runtime.h", "cuda_fp16.h", "math_constants.h", "hip/hip_runtime.h", "hip/hip_bf16.h")
    source = "".join(f"#include <{name}>\n" for name in headers) + "int main() {}\n"
    executable(source, ["-Wall", "-Wextra", "-Werror"])


def test_statuses_are_those_of_the_header() -> None:
    """LIF-09: every status that compiled code returns has a name and a text, and the names are the header's."""
    text = (Path(cpu_driver.__file__).parent / "include" / "podium_cpu_launch.h").read_text()
    found = {int(number): name for name, number in re.findall(r"(PODIUM_CPU_(?:SUCCESS|ERROR_\w+)) = (\d+)", text)}
    driver = cpu_driver.CpuDriver()
    assert found == {number: driver.describe_status(number)[0] for number in range(len(found))}
    assert all(driver.describe_status(number)[1] for number in found)
    assert "999" in driver.describe_status(999)[0]


def test_ctypes_structure_matches_the_header(executable: Callable[[str, list[str]], Path]) -> None:
    """The shape that Python hands over has the layout of the C structure."""
    source = "typedef podium_cpu_launch shape;\n"
    source += 'int main() { printf("%zu %zu", sizeof(shape), offsetof(shape, shared)); }'
    ran = subprocess.run([str(executable(source, []))], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{ctypes.sizeof(cpu_driver._Launch)} {cpu_driver._Launch.shared.offset}"
