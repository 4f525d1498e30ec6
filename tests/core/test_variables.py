"""Variables of modules on the fake driver: what is compiled together, loaded once and unloaded; at both levels."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import struct
import threading
from pathlib import Path
from typing import Any

import numpy
import pytest
from fake_launching import host_driver_class

import podium
from podium import _state
from podium._cache import default_cache
from podium.backend import Function, ObjectCode
from podium.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ForkedProcessError,
    LaunchConfigError,
    LoadError,
    SourceError,
)
from podium.testing import FakeDriver

SOURCE = """
struct Params { int scale; double offset; };
__device__ unsigned int counter;
__constant__ float table[4];
__device__ const float constant[] = {1, 2};
namespace ns { inline namespace v1 { __managed__ Params params; } __device__ int4 wide[2]; }
__device__ Unknown unknown;
__global__ void first(int n) {}
namespace ns { __global__ void second(float* x) {} }
template <class T> __global__ void third(T* x) {}
__global__ void unclear(Unknown x) {}
"""


@pytest.fixture
def module(fake: FakeDriver) -> podium.Module:
    return podium.module(SOURCE, kernels=["third<float>"])


# ---- What is compiled ----


def test_all_kernels_are_one_program(fake: FakeDriver, module: podium.Module, level: str) -> None:
    """A source with variables is compiled once, with its plain kernels, the named instances and the variables."""
    assert module.variable_names == ("counter", "table", "ns::v1::params", "ns::wide", "unknown")
    module["first"][1, 1](1)
    module["third<float>"][1, 1](None)
    module.kernel("ns::second", signature="x: *fp32")[1, 1](None)
    (program,) = fake.compiled
    assert [entry.name for entry in program.entries] == ["first", "ns::second", "third<float>"]
    assert [str(variable) for variable in program.variables] == [
        "counter: u32",
        "table: [4xfp32]",
        "ns::v1::params: {i32,fp64}",
        "ns::wide: [2x{i32,i32,i32,i32}@16]",
    ]
    assert [launch.kernel for launch in fake.launches] == ["first", "third<float>", "ns::second"]
    assert module["first"].level == level


def test_sources_without_variables_are_compiled_kernel_by_kernel(fake: FakeDriver) -> None:
    """Without variables that can change, each kernel is a program of its own, whatever names are given."""
    source = "__device__ const int n = 3; __device__ int f(); __global__ void a() {} __global__ void b() {}"
    module = podium.module(source, kernels=["b"])
    module["a"].load()
    assert [[entry.name for entry in program.entries] for program in fake.compiled] == [["a"]]
    assert module.variable_names == () and module.program is None


def test_a_kernel_that_is_declared_alone_is_compiled_alone(fake: FakeDriver) -> None:
    """`podium.kernel` makes a module of one kernel, template or not, with or without constants, with variables."""
    kernel = podium.kernel(SOURCE, "third<int>")
    kernel[1, 1](None)
    folded = podium.kernel(SOURCE, "first", constants={"n": 3})
    folded[1, 1]()
    assert [[entry.name for entry in program.entries] for program in fake.compiled] == [["third<int>"], ["first"]]
    assert all(len(program.variables) == 4 for program in fake.compiled)
    assert kernel.module.variable("counter").ptr != folded.module.variable("counter").ptr
    assert len(fake.compiled) == 2
    with pytest.raises(SourceError, match=r"made by podium.kernel for third<int> alone.*podium.module\(source\)"):
        kernel.module["first"].load()


def test_names_are_found_as_those_of_kernels_are(module: podium.Module) -> None:
    """A variable or a kernel is found by its full name, without inline namespaces, or by its end."""
    first = module.variable("params")
    for name in ("ns::params", "ns::v1::params", "v1::params", "::ns::v1::params", " ns :: params"):
        assert module.variable(name).ptr == first.ptr
    assert module["second"].name == module["ns::second"].name == "ns::second"
    assert module.kernel("second", signature="*fp32").name == "ns::second"
    assert module["third< float >"].name == "third<float>"
    with pytest.raises(SourceError):
        module.variable("::params")


def test_kernels_outside_of_the_program_are_refused(fake: FakeDriver, module: podium.Module) -> None:
    """What was not named before is an error that lists the kernels and says what to write; nothing is compiled."""
    with pytest.raises(
        SourceError, match=r"share the variables counter, table.*first, ns::second, third<float>"
    ) as one:
        module["third<double>"][1, 1]
    assert 'podium.module(source, kernels=["third<double>"])' in str(one.value) and one.value.kernel == "third<double>"
    with pytest.raises(SourceError, match=r'kernels=\{"unclear": "x: opaque\[8,8\]"\}'):
        module.kernel("unclear", signature="x: opaque[8,8]").load()
    with pytest.raises(SourceError, match="is not clear"):
        module["unclear"].load()
    with pytest.raises(SourceError, match="has no kernel 'nowhere'"):
        module["nowhere"].load()
    with pytest.raises(SourceError, match=r"cannot have constants here.*podium.kernel\(source, name, constants"):
        module.kernel("first", constants={"n": 1}).load()
    with pytest.raises(SourceError, match=r'podium.module\(source, kernels=\{"first": "n: i64"\}\)'):
        module.kernel("first", signature="n: i64").load()
    assert fake.compiled == []


def test_signatures_that_are_given_before(fake: FakeDriver) -> None:
    """`kernels` may map names to signatures, for kernels that cannot be read or are to have another one."""
    module = podium.module(SOURCE, kernels={"unclear": "x: opaque[8,8]", "first": "n: u32", "third<int>": None})
    module["unclear"][1, 1](bytes(8))
    module["third<int>"][1, 1](None)
    entries = {entry.name: str(entry.signature) for entry in fake.compiled[0].entries}
    assert entries == {
        "first": "n: u32",
        "ns::second": "x: *fp32",
        "unclear": "x: opaque[8,8]",
        "third<int>": "x: *i32",
    }


def test_types_that_are_given(fake: FakeDriver) -> None:
    """`variables` gives types where the source has none, such as for headers, and beats what the source says."""
    module = podium.module(SOURCE, variables={"unknown": "[3xi16]", "table": "opaque[16,4]", "lib::header": "*fp32"})
    assert module.variable("unknown").shape == (3,) and module.variable("unknown").dtype == "i16"
    assert (module.variable("table").dtype, module.variable("table").shape) == ("u8", (16,))
    assert module.variable("header").dtype == "u64"
    plain = podium.module("__global__ void a() {} __global__ void b() {}", variables={"x": "i32"})
    plain["a"][1, 1]()
    assert plain.variable("x").shape == () and [entry.name for entry in fake.compiled[-1].entries] == ["a", "b"]


def test_languages_other_than_cuda(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a language that podium does not read, kernels and variables are those that are given."""
    monkeypatch.setattr(FakeDriver, "languages", frozenset({"cuda", "ptx"}))
    module = podium.module(".global\n", language="ptx", kernels={"k": "*fp32", "j": ""}, variables={"x": "[2xi32]"})
    module["j"][1, 1]()
    assert module.variable("x").shape == (2,) and fake.launches[-1].kernel == "j"
    with pytest.raises(SourceError, match="give name= and signature="):
        module["l"].load()


def test_what_is_no_list_or_mapping_is_refused() -> None:
    """Names of kernels are a list, types of variables a mapping; names are checked before they get near a compiler."""
    wrong: list[Any] = [{"kernels": "k"}, {"variables": "x"}, {"variables": ["x"]}]
    for given in wrong:
        with pytest.raises(TypeError, match=next(iter(given))):
            podium.module(SOURCE, **given)
    for name in ("x; int y", "x)", "", 'a"b', "x\n#include"):
        with pytest.raises(SourceError):
            podium.module(SOURCE, variables={name: "i32"})
        with pytest.raises(SourceError):
            podium.module(SOURCE, kernels=[name]).variable("counter")
    code = ObjectCode.from_bytes(b"x", name="k", signature="", format="fake", target=FakeDriver().default_target())
    with pytest.raises(TypeError, match="compiled already"):
        podium.module(code, kernels=["k"])


# ---- Variables as arrays ----


def test_variables_that_cannot_be_had(fake: FakeDriver, module: podium.Module) -> None:
    """An unknown variable lists those there are, one of unknown type says what to write, and none says where to look."""
    with pytest.raises(SourceError) as caught:
        module.variable("countr")
    assert "Did you mean 'counter'?" in str(caught.value) and "table (line 4)" in str(caught.value)
    with pytest.raises(SourceError, match="has no variable 'constant'.*Constants are not among them"):
        module.variable("constant")
    with pytest.raises(SourceError, match=r'unknown \(line 7\).*not in this source.*variables=\{"unknown"'):
        module.variable("unknown")
    with pytest.raises(SourceError, match="is a string"):
        module.variable(3)  # type: ignore[arg-type]
    two = podium.module("namespace a { __device__ int x; } namespace b { __device__ int x; } __global__ void k() {}")
    with pytest.raises(SourceError, match="'x' is the name of 2 variables.*a::x, b::x"):
        two.variable("x")
    with pytest.raises(SourceError, match="The source has no variables"):
        podium.module("__global__ void k() {}").variable("x")
    with pytest.raises(LoadError, match=r"no kernel to load it with.*kernels=\["):
        podium.module("__device__ int x; template <int N> __global__ void k() {}").variable("x")
    with pytest.raises(LaunchConfigError, match="no device 7"):
        module.variable("counter", device=7)
    assert fake.compiled == []


@pytest.fixture(params=["device", "host"])
def memory(request: pytest.FixtureRequest, fake: FakeDriver) -> Any:
    """The module on a driver with memory of its own, and on one with the host's."""
    with podium.use(fake if request.param == "device" else host_driver_class()()):
        yield podium.module(SOURCE)


def test_values_are_written_and_read(memory: podium.Module) -> None:
    """`copy_from` takes what `asarray` takes, of the same shape; structs also anything with as many bytes."""
    table = memory.variable("table")
    for values in ([1, 2.5, 3, 4], numpy.array([1, 2.5, 3, 4], numpy.float32), podium.asarray([1.0, 2.5, 3.0, 4.0])):
        table.copy_from([0, 0, 0, 0])
        table.copy_from(values)
        assert memory.variable("table").tolist() == table.numpy().tolist() == [1, 2.5, 3, 4]
    memory.variable("counter").copy_from(7)
    assert memory.variable("counter").tolist() == 7
    memory.variable("counter").copy_from(numpy.uint32(8))
    assert memory.variable("counter").numpy() == 8
    wide = numpy.arange(8, dtype=numpy.int32).reshape(2, 4)
    memory.variable("wide").copy_from(wide)
    assert (memory.variable("wide").numpy() == wide).all()
    memory.variable("wide").copy_from(wide.tobytes())
    assert (memory.variable("wide").numpy() == wide).all()

    class Params(ctypes.Structure):
        _fields_ = [("scale", ctypes.c_int), ("offset", ctypes.c_double)]

    record = numpy.zeros((), [("scale", "i4"), ("gap", "i4"), ("offset", "f8")])
    record["scale"], record["offset"] = 3, 0.5
    params = memory.variable("params")
    for value in (Params(3, 0.5), record, record[()], struct.pack("=i4xd", 3, 0.5), list(record.tobytes())):
        params.copy_from(bytes(16))
        params.copy_from(value)
        assert params.tobytes() == struct.pack("=i4xd", 3, 0.5)


def test_values_that_do_not_fit_change_nothing(memory: podium.Module) -> None:
    """Another shape, another element type and numbers out of range are errors that name the variable.

    Nothing is written then.
    """
    table, counter, params = (memory.variable(name) for name in ("table", "counter", "params"))
    table.copy_from([1, 2, 3, 4])
    wrong: list[tuple[podium.Array, Any, type[Exception], str]] = [
        (table, [1, 2, 3], ArgumentValueError, r"shape \(3,\)"),
        (table, 1.0, ArgumentValueError, r"shape \(\)"),
        (table, [[1, 2], [3, 4]], ArgumentValueError, "shapes must be the same"),
        (table, numpy.zeros(4), ArgumentTypeError, "fp64, not fp32"),
        (table, podium.asarray([1, 2, 3, 4]), ArgumentTypeError, "i32, not fp32"),
        (table, bytes(16), ArgumentValueError, r"shape \(16,\)"),
        (table, "text", ArgumentTypeError, "str"),
        (counter, -1, ArgumentValueError, "between 0"),
        (counter, 1.5, ArgumentTypeError, "integer"),
        (params, bytes(15), ArgumentValueError, r"shape \(15,\)"),
    ]
    for array, value, error, words in wrong:
        with pytest.raises(error, match=words) as caught:
            array.copy_from(value)
        name = {id(table): "table", id(counter): "counter", id(params): "ns::v1::params"}[id(array)]
        assert str(caught.value).startswith("copy_from into <podium array "), caught.value
        assert f"of the variable {name} on" in str(caught.value)
    assert table.tolist() == [1, 2, 3, 4] and counter.tolist() == 0


def test_writing_waits_for_the_launches_before(fake: FakeDriver, module: podium.Module) -> None:
    """An error of earlier work shows when a variable is written, and the value is not lost on the way."""
    counter = module.variable("counter")
    fake.sync_status = 5
    with pytest.raises(podium.errors.LaunchError):  # type: ignore[attr-defined]
        counter.copy_from(3)
    counter.copy_from(3)
    assert counter.tolist() == 3


def test_a_variable_is_passed_as_its_address(fake: FakeDriver, module: podium.Module, level: str) -> None:
    """A kernel is given the address of the variable itself, at both levels."""
    table = module.variable("table")
    module["ns::second"][1, 1](table)
    assert fake.launches[-1].parameters == (struct.pack("=Q", table.ptr),)
    (memory,) = fake.variables.values()
    assert (memory["table"].ptr, memory["table"].size) == (table.ptr, 16)
    assert module["second"].level == level


def test_a_variable_of_another_size_is_an_error(fake: FakeDriver) -> None:
    """If the code says another size than the type, the error has both and what to write; nothing is touched."""

    class Larger(FakeDriver):
        def variable(self, function: Function, code: ObjectCode, name: str, device: int) -> tuple[int, int]:
            return super().variable(function, code, name, device)[0], 64

    with podium.use(Larger()), pytest.raises(LoadError, match=r"table has 64 bytes.*has 16.*\"opaque\[64,1\]\""):
        podium.module(SOURCE).variable("table")


# ---- Loading and unloading ----


def test_each_device_and_driver_has_its_own(fake: FakeDriver, module: podium.Module, level: str) -> None:
    """Code is loaded once for each device, however many kernels and variables are used there."""
    other = FakeDriver()
    other.version = fake.version
    for _ in range(2):
        for device in (0, 1):
            module["first"].load(device)
            module["second"].load(device)
            assert module.variable("counter", device=device).device == device
        with podium.use(other):
            module["first"][1, 1](1)
            module.variable("table")
    assert len(fake.variables) == 2 and len(other.variables) == 1
    assert sorted(fake.loaded.values()) == [("first", 0), ("first", 1), ("ns::second", 0), ("ns::second", 1)]
    assert len(fake.compiled) == 1 and other.compiled == []  # found in the cache


def test_code_is_unloaded_once_when_nobody_needs_it(fake: FakeDriver, level: str) -> None:
    """LIF-04: a kept launch or an array keeps the code; then it is given back with one call, exactly once."""
    module = podium.module(SOURCE)
    launch, array = module["first"][1, 1], module.variable("counter")
    module["second"][1, 1](None)
    del module
    gc.collect()
    launch(1)
    del launch
    gc.collect()
    assert fake.unloaded == []
    array.copy_from(5)
    assert array.tolist() == 5
    del array
    gc.collect()
    assert sorted(fake.unloaded) == ["first", "ns::second"] and fake.loaded == {} == fake.variables


def test_unloading_a_module_and_launching_again(fake: FakeDriver, module: podium.Module, level: str) -> None:
    """LIF-04: after `unload` kept launches use new code and new variables; an array keeps the old ones."""
    launch, low_level = module["first"][1, 1], module["first"].run
    launch(1)
    launch(1)
    old, handles = module.variable("counter"), set(fake.loaded)
    old.copy_from(3)
    module.unload()
    assert fake.unloaded == []
    for call in (launch, module["first"][1, 1]):
        call(1)
    low_level(1, 1, 1, 0, module["first"].function, 1)
    assert len(fake.variables) == 2 and len(set(fake.loaded) - handles) == 1
    assert module.variable("counter").ptr != old.ptr and old.tolist() == 3
    del old
    gc.collect()
    assert len(fake.variables) == 1 and not handles & set(fake.loaded)
    module.unload()
    module.unload()
    assert fake.loaded == {} and fake.unloaded == ["first", "first"]


def test_unloading_a_kernel_leaves_the_variables(fake: FakeDriver, module: podium.Module) -> None:
    """A kernel of a module with variables gives back only its own handle; the values stay."""
    module["first"][1, 1](1)
    module.variable("counter").copy_from(3)
    module["first"].unload()
    module["first"][1, 1](1)
    assert module.variable("counter").tolist() == 3 and fake.unloaded == [] and len(fake.variables) == 1


def test_threads_that_begin_together(fake: FakeDriver, module: podium.Module, level: str) -> None:
    """CTX-01: kernels and variables that threads ask for at once are compiled once and loaded once."""
    barrier, errors = threading.Barrier(12), []

    def work(number: int) -> None:
        try:
            barrier.wait()
            if number % 3 == 0:
                module.variable("counter")
            module[("first", "third<float>")[number % 2]][1, 1](None if number % 2 else 1)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and len(fake.compiled) == 1 and len(fake.variables) == 1
    assert sorted(name for name, _ in fake.loaded.values()) == ["first", "third<float>"]


def test_damaged_code_in_the_cache_is_compiled_anew(fake: FakeDriver, module: podium.Module) -> None:
    """CAC-12: code that does not load is quarantined, and the module is compiled once more."""
    before = {entry.key for entry in default_cache().entries()}
    module["first"].compile()
    (key,) = [
        entry.key for entry in default_cache().entries() if entry.key.startswith("kernel") and entry.key not in before
    ]
    stored = default_cache().get(key)
    assert stored is not None
    good = ObjectCode.from_bytes(stored)
    broken = ObjectCode(b"broken", "fake", good.target, good.entries, variables=good.variables)
    default_cache().put(key, broken.to_bytes())
    again = podium.module(SOURCE, kernels=["third<float>"])
    again["first"][1, 1](1)
    assert again.variable("counter").shape == () and len(fake.compiled) == 2


def test_object_code_has_its_variables(fake: FakeDriver, module: podium.Module) -> None:
    """Object code carries names and types of its variables; for a vendor's binary they are given."""
    code = ObjectCode.from_bytes(module["first"].compile().to_bytes())
    assert code == module["first"].compile() and len(code.variables) == 4
    loaded = podium.module(code)
    assert loaded.variable_names == ("counter", "table", "ns::v1::params", "ns::wide")
    loaded["first"][1, 1](1)
    loaded["third<float>"][1, 1](None)
    assert loaded.variable("table").shape == (4,) and len(fake.variables) == 1
    with pytest.raises(SourceError, match="has no variable 'nowhere'"):
        loaded.variable("nowhere")
    target = fake.default_target()
    binary = ObjectCode.from_bytes(b"x", name="k", signature="", format="fake", target=target)
    assert podium.module(binary, variables={"x": "[3xi32]"}).variable("x").shape == (3,)
    with pytest.raises(SourceError, match="This object code has no variables"):
        podium.module(binary).variable("x")
    other = ObjectCode(b"", "fake", type(target)("fake", "fake_2", 32), code.entries, variables=code.variables)
    with pytest.raises(LoadError, match="fake_2"):
        podium.module(other).variable("table")


def test_a_backend_without_access_says_so(fake: FakeDriver) -> None:
    """A backend that leaves the two methods out runs one kernel, and refuses a second one and the variables."""

    class Plain(FakeDriver):
        load_beside = podium.backend.Driver.load_beside  # type: ignore[attr-defined]
        variable = podium.backend.Driver.variable  # type: ignore[attr-defined]

    with podium.use(Plain()):
        module = podium.module(SOURCE)
        module["first"][1, 1](1)
        with pytest.raises(LoadError, match="ns::second: backend 'fake' cannot load several kernels.*podium.kernel"):
            module["second"][1, 1](None)
        with pytest.raises(LoadError, match="'fake' gives no access to variables such as table"):
            module.variable("table")
        podium.kernel(SOURCE, "ns::second")[1, 1](None)


def test_nothing_is_loaded_in_a_capture_or_after_a_fork(
    fake: FakeDriver, module: podium.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCR-08, LIF-07: asking for a variable then is an error as launching is; once loaded, a capture does not matter."""
    fake.captured = True
    with pytest.raises(LoadError, match="counter is not loaded.*captured"):
        module.variable("counter")
    fake.captured = False
    module.variable("counter")
    fake.captured = True
    assert module.variable("counter").shape == ()
    monkeypatch.setattr(_state, "forked_from", lambda backend: 1)
    with pytest.raises(ForkedProcessError):
        podium.module(SOURCE).variable("counter")


def test_copies_have_variables_of_their_own(fake: FakeDriver, module: podium.Module, tmp_path: Path) -> None:
    """A module that is pickled or copied is another module; kernels that are pickled with it stay its kernels."""
    module["first"][1, 1](1)
    again, kernel, alone = pickle.loads(
        pickle.dumps((module, module["first"], podium.kernel(SOURCE, "first", constants={"n": 1})))
    )
    assert kernel.module is again
    kernel[1, 1](1)
    again["second"][1, 1](None)
    alone[1, 1]()
    assert again.variable("counter").ptr != module.variable("counter").ptr
    assert len(fake.variables) == 3
    assert copy.copy(module).variable("table").ptr != module.variable("table").ptr
    assert copy.deepcopy(alone).name == "first" and copy.deepcopy(alone)[1, 1]() is None


def test_a_warm_process_reads_no_source(
    fake: FakeDriver, module: podium.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAC-15: what was read of variables and kernels is kept in the cache."""
    module.variable("counter")
    module["third<float>"].load()
    monkeypatch.setattr("podium._source._module.parse_module", None)
    monkeypatch.setattr("podium._source._parse.parse_kernel", None)
    again = podium.module(SOURCE, kernels=["third<float>"])
    again["third<float>"][1, 1](None)
    assert again.variable("table").shape == (4,) and len(fake.compiled) == 1
