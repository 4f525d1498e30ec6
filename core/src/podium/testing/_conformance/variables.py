"""Variables of a module: ``__device__`` and ``__constant__`` ones, seen by all of its kernels and by the host."""

from __future__ import annotations

import gc
import struct
from itertools import pairwise

import pytest

import podium
from podium._element_types import element_type
from podium.backend import Driver
from podium.errors import SourceError
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Variables"]

_SOURCE = """
struct Params { int scale; float offset; };
__device__ unsigned int counter = 3;
__constant__ float table[16];
static __device__ int hidden[2][3] = {{1, 2, 3}, {4, 5, 6}};
__device__ Params params = {5, 0.5f};
__device__ float unused = 1.5f;
__global__ void count(unsigned int n) { if (threadIdx.x == 0) counter += n; }
__global__ void look(float* out) {
    out[0] = counter;
    out[1] = table[3];
    out[2] = hidden[1][2];
    out[3] = params.scale + params.offset;
}
__global__ void touch(int* x) { x[0] += 1; }
"""
_NAMED = """
namespace inner { __device__ int table[2] = {5, 6}; }
template <int N> __global__ void add() { if (threadIdx.x == 0) inner::table[1] += N; }
"""


@contract("One kernel source", "globals", "variables", "structs")
class Variables(Subject):
    """`Driver.load_beside` and `Driver.variable`, through `Module.variable`."""

    def test_a_variable_is_an_array_in_its_own_memory(self, driver: Driver) -> None:
        """A variable is an array with the type and shape of its declaration, and holds what the host writes into it."""
        import numpy

        module = self._module()
        declared = {
            "counter": ("u32", ()),
            "table": ("fp32", (16,)),
            "hidden": ("i32", (2, 3)),
            "params": ("u8", (8,)),
            "unused": ("fp32", ()),
        }
        assert module.variable_names == tuple(declared)
        for name, (dtype, shape) in declared.items():
            array = module.variable(name)
            assert (array.dtype, array.shape, array.device) == (dtype, shape, driver.current_device())
            data = bytes(range(1, array.nbytes + 1))
            array.copy_from(numpy.frombuffer(data, element_type(dtype).numpy).reshape(shape))
            assert module.variable(name).tobytes() == array.tobytes() == data
            assert module.variable(name).ptr == array.ptr > 0

    def test_variables_do_not_overlap(self, driver: Driver) -> None:
        """Each variable has memory of its own, in each module, and a module of equal source has other memory."""
        arrays = [
            module.variable(name) for module in (self._module(), self._module()) for name in module.variable_names
        ]
        spans = sorted((array.ptr, array.ptr + array.nbytes) for array in arrays)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans)), spans

    @pytest.mark.needs("compiles", "executes")
    def test_variables_begin_with_the_values_of_the_source(self, driver: Driver) -> None:
        """Before any launch a variable has what it is initialised with, or zeros; also one that no kernel uses."""
        module = self._module()
        assert module.variable("counter").tolist() == 3
        assert module.variable("table").tolist() == [0.0] * 16
        assert module.variable("hidden").tolist() == [[1, 2, 3], [4, 5, 6]]
        assert module.variable("params").tobytes() == struct.pack("=if", 5, 0.5)
        assert module.variable("unused").tolist() == 1.5

    @pytest.mark.needs("compiles", "executes")
    def test_kernels_of_a_module_share_variables(self, driver: Driver, level: Level) -> None:
        """What one kernel or the host writes, every other kernel of the module sees, and none of another module."""
        module, other, out = self._module(), self._module(), podium.empty(4)
        module["count"][1, 8](4)
        assert module.variable("counter").tolist() == 7
        module.variable("table").copy_from([float(number * number) for number in range(16)])
        module.variable("hidden").copy_from([[0, 0, 0], [0, 0, 60]])
        module.variable("params").copy_from(struct.pack("=if", 7, 0.25))
        module["look"][1, 1](out)
        assert out.tolist() == [7.0, 9.0, 60.0, 7.25]
        other["look"][1, 1](out)
        assert out.tolist() == [3.0, 0.0, 6.0, 5.5]
        level.check(module["look"])

    @pytest.mark.needs("compiles", "executes", "templates", "namespaces")
    def test_variables_in_namespaces_and_kernels_that_are_templates(self, driver: Driver) -> None:
        """A variable in a namespace has its qualified name, or its last part, and instances of templates share it."""
        module = podium.module(_NAMED, kernels=["add<10>", "add<3>"])
        module["add<10>"][1, 8]()
        module["add<3>"][1, 8]()
        assert module.variable("inner::table").tolist() == module.variable("table").tolist() == [5, 19]

    @pytest.mark.needs("observes")
    def test_a_variable_is_an_argument_of_kernels(self, driver: Driver, level: Level) -> None:
        """A kernel is given the memory of a variable, as of every array."""
        module = self._module()
        x = module.variable("hidden")
        x.copy_from([[41, 2, 3], [4, 5, 6]])
        module["touch"][1, 1](x)
        if self.capabilities.executes:
            assert x.tolist() == [[42, 2, 3], [4, 5, 6]]
        if self.capabilities.records:
            assert self.last(driver).parameters == (struct.pack("=Q", x.ptr),)
        level.check(module["touch"])

    def test_an_array_keeps_the_code_of_its_variable(self, driver: Driver) -> None:
        """The memory of a variable is there while an array of it is, also after the module was unloaded or is gone."""
        module = self._module()
        kept = module.variable("counter")
        kept.copy_from(77)
        module.unload()
        fresh = module.variable("counter")
        assert fresh.ptr != kept.ptr and kept.tolist() == 77
        fresh.copy_from(78)
        del module
        gc.collect()
        assert (kept.tolist(), fresh.tolist()) == (77, 78)

    @pytest.mark.needs("observes")
    def test_kernels_go_on_after_the_module_was_unloaded(self, driver: Driver, level: Level) -> None:
        """After `Module.unload()` a launch that was kept loads the code again, with new variables."""
        module = self._module()
        launch = module["count"][1, 1]
        for _ in range(2):
            launch(4)
            launch(5)
            if self.capabilities.compiles and self.capabilities.executes:
                assert module.variable("counter").tolist() == 12
            module.unload()

    @pytest.mark.needs("templates", "namespaces")
    def test_kernels_that_were_not_compiled_with_the_others_are_refused(self, driver: Driver) -> None:
        """An instance of a template that was not named before is an error that says how to name it."""
        with pytest.raises(SourceError, match=r'kernels=\["add<11>"\]'):
            podium.module(_NAMED, kernels=["add<10>"])["add<11>"].load()

    def _module(self) -> podium.Module:
        return podium.module(_SOURCE)
