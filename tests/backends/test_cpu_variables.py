"""Variables of modules on the CPU backend: memory that kernels share and that the host reads and writes."""

from __future__ import annotations

import gc

import numpy
import pytest
from cpu_kernels import host_compiler

import podium
from podium.errors import CompileError, LoadError

SOURCE = """
struct Params { char small; double large; };
struct Node { Node *next; int value; };
__device__ unsigned long long total = 10;
static __device__ int hidden[2][3] = {{1, 2, 3}, {4, 5, 6}};
inline __device__ float shared_name = 1.5f;
namespace { __constant__ float taps[5]; }
namespace outer { namespace inner { __managed__ Params params = {1, 2.5}; __device__ bool flag; } }
extern "C" { __device__ unsigned char bytes[] = {1, 2, 3}; }
__device__ __align__(64) int aligned[3];
__device__ volatile int changing = 4;
__device__ int target[4];
__device__ int *address = target + 1;
__device__ Node node = {&node, 3};
__device__ float4 wide[2];
__device__ double never_used = 8.5;
extern __shared__ int dynamic[];
__shared__ int own;

__device__ float convolve(const float *x) {
  float sum = 0;
  for (int i = 0; i < 5; ++i) sum += taps[i] * x[i];
  return sum;
}
__global__ void add(int n) { atomicAdd(&total, (unsigned long long) n); }
__global__ void filter(const float *x, float *y) { y[threadIdx.x] = convolve(x + threadIdx.x); }
__global__ void sum_hidden(int *out) {
  own = 0;
  dynamic[threadIdx.x] = hidden[threadIdx.x / 3][threadIdx.x % 3];
  __syncthreads();
  if (threadIdx.x == 0) for (int i = 0; i < 6; ++i) own += dynamic[i];
  __syncthreads();
  out[threadIdx.x] = own;
}
__global__ void store(int value) { *address = value; changing = value; outer::inner::flag = true; wide[1].z = value; }
__global__ void look(double *out) {
  out[0] = outer::inner::params.small + outer::inner::params.large;
  out[1] = shared_name + node.next->value + (((size_t) aligned) % 64);
}
template <class T, int N> __global__ void scaled(T *out) { *out = (T) (total * N); }
"""


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    host_compiler()


@pytest.fixture
def module() -> podium.Module:
    podium.driver.set_active("cpu")
    return podium.module(SOURCE, kernels=["scaled<float, 3>"])


def test_variables_of_every_kind(module: podium.Module) -> None:
    """Static, inline, unnamed, aligned and unused ones are there, with the values and the types of the source."""
    expected = {
        "total": numpy.uint64(10),
        "hidden": numpy.array([[1, 2, 3], [4, 5, 6]], numpy.int32),
        "shared_name": numpy.float32(1.5),
        "taps": numpy.zeros(5, numpy.float32),
        "outer::inner::flag": numpy.bool_(False),
        "bytes": numpy.array([1, 2, 3], numpy.uint8),
        "aligned": numpy.zeros(3, numpy.int32),
        "changing": numpy.int32(4),
        "target": numpy.zeros(4, numpy.int32),
        "address": numpy.uint64(module.variable("target").ptr + 4),
        "wide": numpy.zeros((2, 4), numpy.float32),
        "never_used": numpy.float64(8.5),
    }
    assert set(module.variable_names) == {*expected, "outer::inner::params", "node"}
    for name, value in expected.items():
        found = module.variable(name).numpy()
        assert found.dtype == value.dtype and found.shape == value.shape and (found == value).all(), name
    params = numpy.frombuffer(module.variable("params").tobytes(), numpy.dtype("i1,V7,f8"))[0]
    assert (params[0], params[2]) == (1, 2.5)
    assert module.variable("node").ptr == int(module.variable("node").numpy()[:8].view(numpy.uint64)[0])


def test_kernels_and_the_host_share_them(module: podium.Module, level: str) -> None:
    """What blocks on all cores, other kernels and the host write, each of the others sees; at both levels."""
    module["add"][500, 3](2)
    assert module.variable("total").tolist() == 3010
    out = podium.empty(1)
    module["scaled<float, 3>"][1, 1](out)
    assert out.tolist() == [9030.0]
    module.variable("total").copy_from(4)
    module["scaled<float, 3>"][1, 1](out)
    assert out.tolist() == [12.0]

    taps, x = numpy.array([1, -2, 3, 0.5, 4], numpy.float32), numpy.arange(20, dtype=numpy.float32)
    module.variable("taps").copy_from(taps)
    y = numpy.zeros(16, numpy.float32)
    module["filter"][1, 16](x, y)
    assert numpy.allclose(y, numpy.correlate(x, taps))

    module["store"][1, 1](7)
    assert [module.variable(name).tolist() for name in ("target", "changing", "flag")] == [[0, 7, 0, 0], 7, True]
    assert module.variable("wide").tolist()[1] == [0, 0, 7, 0]
    numpy.asarray(module.variable("hidden"))[1, 2] = 60
    sums = numpy.zeros(6, numpy.int32)
    module["sum_hidden"][1, 6](sums, shared=24)
    assert sums.tolist() == [75] * 6
    module["sum_hidden"][1, 6](module.variable("hidden"), shared=24)
    assert module.variable("hidden").tolist() == [[75] * 3] * 2
    module.variable("params").copy_from(
        numpy.array((3, 0.25), numpy.dtype([("small", "i1"), ("large", "f8")], align=True))
    )
    values = numpy.zeros(2)
    module["look"][1, 1](values)
    assert values.tolist() == [3.25, 4.5]


def test_modules_of_equal_source_share_nothing(module: podium.Module) -> None:
    """Each module has its own variables, also those that C++ would merge; so has the code that is loaded anew."""
    other = podium.module(SOURCE, kernels=["scaled<float, 3>"])
    kept = {name: module.variable(name) for name in module.variable_names}
    for name in other.variable_names:
        assert other.variable(name).ptr != kept[name].ptr, name
    module["add"][1, 1](5)
    kept["shared_name"].copy_from(9)
    assert (other.variable("total").tolist(), other.variable("shared_name").tolist()) == (10, 1.5)
    module.unload()
    assert (module.variable("total").tolist(), kept["total"].tolist()) == (10, 15)
    view = numpy.asarray(kept["hidden"])
    del kept, other
    gc.collect()
    assert view.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_variables_that_are_given() -> None:
    """For variables of headers and of templates the type is given; it is compared with what the compiler made of it."""
    podium.driver.set_active("cpu")
    source = """
    template <class T> __device__ T value = T(3);
    struct Hidden { static int inside; };
    __device__ int Hidden::inside = 8;
    __global__ void k(float *x) { *x = value<float> + Hidden::inside; }
    """
    module = podium.module(source, variables={"value<float>": "fp32"})
    x = numpy.zeros(1, numpy.float32)
    module.variable("value<float>").copy_from(4.5)
    module.variable("Hidden::inside").copy_from(2)
    module["k"][1, 1](x)
    assert x[0] == 6.5
    with pytest.raises(LoadError, match=r"x has 12 bytes.*\[2xfp32\] has 8.*opaque\[12,1\]"):
        podium.module("__device__ float x[3]; __global__ void k() {}", variables={"x": "[2xfp32]"}).variable("x")


def test_what_is_no_variable_is_refused_where_it_stands() -> None:
    """A name that the source has not, shared memory, a function and an index are refused by the compiler, by name."""
    podium.driver.set_active("cpu")
    source = "__shared__ int own;\n__global__ void k() { own = 1; }\n"
    names = {"nowhere": "i32", "own": "i32", "k": "i32", "threadIdx": "opaque[12,4]"}
    with pytest.raises(CompileError) as caught:
        podium.module(source, variables=names).variable("own")
    text = str(caught.value)
    assert "there is no variable 'nowhere' in the source" in text
    assert "<podium source>:1:16: error: 'own' is not a variable whose memory is there for the whole module" in text
    assert "<podium source>:2:17: error: 'k' is not a variable" in text
    assert "'threadIdx' is not a variable" in "".join(each.message for each in caught.value.diagnostics)
