"""Kernels on the fake driver: grids, arguments by name, devices, loading, unloading, threads; at both levels."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy
import pytest
from fake_launching import exchange, exchange_type, generated_modules

import podium
from podium import LaunchConfig, _state
from podium._cache import default_cache
from podium.backend import Function, ObjectCode, Program, Target, deferred_launcher
from podium.errors import (
    ArgumentCountError,
    ArgumentTypeError,
    ArgumentValueError,
    CompileError,
    LaunchConfigError,
    LaunchError,
    LoadError,
    OutOfResourcesError,
    SourceError,
)
from podium.testing import FakeArray, FakeDriver, RecordedLaunch

SOURCE = "__global__ void k(float* x, int n) {}"


@pytest.fixture
def kernel(fake: FakeDriver, level: str) -> podium.Kernel:
    return podium.kernel(SOURCE)


def last(driver: FakeDriver) -> RecordedLaunch:
    return driver.launches[-1]


# ---- Grids and blocks ----


class Size(tuple):  # type: ignore[type-arg]
    """As array libraries have them for shapes."""


@pytest.mark.parametrize(
    ("key", "grid", "block"),
    [
        ((3, 4), (3, 1, 1), (4, 1, 1)),
        (((3,), (4,)), (3, 1, 1), (4, 1, 1)),
        (((3, 2), (4, 5)), (3, 2, 1), (4, 5, 1)),
        (((3, 2, 6), (4, 5, 7)), (3, 2, 6), (4, 5, 7)),
        (([3, 2], [4, 5]), (3, 2, 1), (4, 5, 1)),
        ((numpy.int64(3), numpy.uint8(4)), (3, 1, 1), (4, 1, 1)),
        ((numpy.array([3, 2]), numpy.array(4)), (3, 2, 1), (4, 1, 1)),
        ((Size((3, 2)), Size((4,))), (3, 2, 1), (4, 1, 1)),
        ((range(2, 4), 4), (2, 3, 1), (4, 1, 1)),
        ((lambda arguments: 3, 4), (3, 1, 1), (4, 1, 1)),
        ((lambda arguments: (arguments["n"], 2), (4,)), (7, 2, 1), (4, 1, 1)),
        ((lambda arguments: [arguments["n"] + 1], [4, 2]), (8, 1, 1), (4, 2, 1)),
        ((lambda arguments: (each for each in (2, 5)), 4), (2, 5, 1), (4, 1, 1)),
        (LaunchConfig(3, (4, 2)), (3, 1, 1), (4, 2, 1)),
    ],
)
def test_grids_and_blocks_of_every_form(
    fake: FakeDriver, kernel: podium.Kernel, key: Any, grid: Any, block: Any
) -> None:
    """A grid or a block is an integer or one to three of them; cold, warm and through a kept launch alike."""
    launch = kernel[key]
    for call in (launch, launch, kernel[key], kernel[key]):
        if "generator" in str(key):
            continue
        call(4096, 7)
    assert {(each.grid, each.block) for each in fake.launches} == {(grid, block)}
    assert len(fake.launches) == 4


@pytest.mark.parametrize(
    "key",
    [1, (1,), (1, 2, 3), "ab", None, slice(1), (1.5, 1), (1, 1.5), ("1", 1), (None, 1), (1, None), ((1, 2, 3, 4), 1), ((), 1),
     (1, ()), (1, "4"), (-1, 1), (1, -1), (1, 0), ((1, -2), 1), ((1, 2.5), 1), (numpy.float32(2), 1), (object(), 1)],
    ids=repr,
)  # fmt: skip
def test_grids_and_blocks_that_cannot_be(fake: FakeDriver, kernel: podium.Kernel, key: Any) -> None:
    """GRD-04: what is no grid or no block is an error when the launch is made, each time."""
    for _ in range(2):
        with pytest.raises(LaunchConfigError):
            kernel[key](None, 1)
    assert fake.launches == []


@pytest.mark.parametrize(
    ("key", "equal"),
    [
        ((3, 4), [(3.0, 4), (3, 4.0), (numpy.float64(3), 4), (Fraction(3), 4), (3 + 0j, 4)]),
        (((3, 2), (4, 5)), [((3.0, 2), (4, 5)), ((3, 2), (4, 5.0)), (Size((3, 2.0)), (4, 5))]),
        (((3, 2), 4), [((3, 2), 4.0), ((3, 2.0), 4)]),
    ],
    ids=repr,
)
def test_what_equals_a_grid_is_not_one(fake: FakeDriver, kernel: podium.Kernel, key: Any, equal: list[Any]) -> None:
    """GRD-04: a float is refused also where the integer that equals it was launched before, at both levels."""
    kernel[key](None, 1)
    kernel.warm_up()
    kernel[key](None, 1)
    for each in equal:
        with pytest.raises(LaunchConfigError, match="must be an integer"):
            kernel[each](None, 1)
    for alike in (key, tuple(numpy.int64(x) if isinstance(x, int) else Size(x) for x in key)):
        assert kernel[alike] is kernel[key]
    kernel[key](None, 1, shared=16)
    with pytest.raises(LaunchConfigError, match="shared must be a number of bytes"):
        kernel[key](None, 1, shared=16.0)
    assert len(fake.launches) == 3


@pytest.mark.parametrize("result", [1.5, None, "3", (1, 2, 3, 4), -1, (1, None), []])
def test_a_computed_grid_is_checked(fake: FakeDriver, kernel: podium.Kernel, result: Any) -> None:
    """GRD-04: a function that returns no grid is an error of the launch."""
    with pytest.raises(LaunchConfigError):
        kernel[lambda arguments: result, 1](None, 1)


def test_a_computed_grid_sees_the_arguments_by_name(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """The function gets all arguments of the call by the names of the parameters, however they were given."""
    seen: list[Any] = []

    def grid(arguments: Any) -> int:
        seen.append(dict(arguments))
        return 1

    kernel[grid, 1](None, n=3)
    kernel[grid, 1](n=4, x=None)
    assert seen == [{"x": None, "n": 3}, {"x": None, "n": 4}]
    with pytest.raises(ArgumentCountError):
        kernel[grid, 1](None)
    with pytest.raises(ZeroDivisionError):
        kernel[lambda arguments: 1 // 0, 1](None, 1)
    assert "computed from the arguments" in repr(kernel[grid, 1])


def test_a_mutable_grid_is_read_at_each_use(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """An object that may change between launches is never taken for the grid that it was."""

    class Mutable:
        sizes = (2, 3)

        def __iter__(self) -> Any:
            return iter(self.sizes)

    grid = Mutable()
    kernel[grid, 1](None, 1)
    grid.sizes = (4, 5)
    kernel[grid, 1](None, 1)
    assert [each.grid for each in fake.launches] == [(2, 3, 1), (4, 5, 1)]


def test_limits_of_the_device(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """GRD-01, GRD-06, GRD-08: grid, block and shared memory beyond the device are typed errors with value and limit."""
    with pytest.raises(
        LaunchConfigError, match=r"k: grid.y is 65536, the device takes at most 65535; put the long axis"
    ):
        kernel[(1, 65536), 1](None, 1)
    with pytest.raises(LaunchConfigError, match=r"grid.x is 2147483648"):
        kernel[2147483648, 1](None, 1)
    with pytest.raises(LaunchConfigError, match=r"grid.x is 4294967299"):
        kernel[(1 << 32) + 3, 1](None, 1)
    with pytest.raises(OutOfResourcesError, match=r"block.z is 65, the limit is 64"):
        kernel[1, (1, 1, 65)](None, 1)
    with pytest.raises(OutOfResourcesError, match=r"threads in a block of \(32, 33, 1\) is 1056, the limit is 1024"):
        kernel[1, (32, 33)](None, 1)
    with pytest.raises(OutOfResourcesError, match=r"shared memory in bytes is 100001, the limit is 100000"):
        kernel[1, 1](None, 1, shared=100_001)
    with pytest.raises(OutOfResourcesError, match=r"blocks in a cluster is 16, the limit is 8"):
        kernel[LaunchConfig(16, 1, cluster=16)](None, 1)
    assert fake.launches == [] and fake.compiled == []
    kernel[(2147483647, 65535, 65535), 1024](None, 1)
    kernel[1, (4, 4, 64)](None, 1, shared=100_000)
    assert len(fake.launches) == 2


def test_shared_memory_of_the_kernel_counts(fake: FakeDriver, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """GRD-08: what a backend says of the largest dynamic shared memory of a kernel holds for its launches."""
    load = fake.load
    own = {"shared": 400, "max_dynamic_shared": 600}
    monkeypatch.setattr(fake, "load", lambda *what: replace(load(*what), attributes=own))
    kernel = podium.kernel("__global__ void with_shared() {}")
    kernel[1, 1](shared=600)
    for _ in range(2):
        with pytest.raises(
            OutOfResourcesError, match="dynamic shared memory in bytes is 601, the limit is 600"
        ) as caught:
            kernel[1, 1](shared=601)
    assert "device 0 has 1000 for a block, and the kernel itself takes 400" in str(caught.value)
    assert len(fake.launches) == 1


def test_limits_of_the_kernel_itself(fake: FakeDriver, level: str) -> None:
    """GRD-06: a kernel that cannot have as many threads as the device says so with its own limit, warm or cold."""
    kernel = podium.kernel("__global__ void small_blocks() {}")
    kernel[1, 512]()
    for _ in range(2):
        with pytest.raises(OutOfResourcesError, match="the limit is 512; the limit of this kernel on this device"):
            kernel[1, 513]()
    assert len(fake.launches) == 1


def test_an_empty_grid_does_nothing_at_all(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """GRD-03: over zero blocks nothing is compiled, loaded or launched and no hook fires, cold and warm; checks hold."""
    events: list[object] = []
    for chain in (podium.hooks.enter, podium.hooks.exit, podium.hooks.compile, podium.hooks.load):
        chain.add(events.append)  # type: ignore[attr-defined]
    for grid in (0, (1, 0), (5, 1, 0), lambda arguments: 0):
        kernel[grid, 32](None, 1)
    assert events == [] and fake.compiled == [] and fake.loaded == {} and fake.launches == []
    with pytest.raises(ArgumentTypeError):
        kernel[0, 32](None, "n")
    with pytest.raises(OutOfResourcesError):
        kernel[0, 2000](None, 1)
    kernel[1, 32](None, 1)
    events.clear()
    kernel[0, 32](None, 1)
    podium.hooks.enter.clear()
    podium.hooks.exit.clear()
    kernel[0, 32](None, 1)
    assert events == [] and len(fake.launches) == 1


def test_launch_attributes(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """GRD-09: cluster, cooperative and dependent launches reach the driver; a feature it lacks is an error at once."""
    kernel[LaunchConfig(4, 2, cluster=2, cooperative=True, dependent=True, shared=9)](None, 1)
    launch = last(fake)
    assert (launch.cluster, launch.flags, launch.shared) == ((2, 1, 1), 3, 9)
    with pytest.raises(
        LaunchConfigError,
        match="no launch feature 'carveout'; it has: cluster, cooperative, dependent, preferred_cluster, priority",
    ):
        kernel[LaunchConfig(1, 1, attributes={"carveout": 1})]
    with pytest.raises(LaunchConfigError, match=r"an argument of its own: LaunchConfig\(grid, block, cluster=\.\.\.\)"):
        kernel[LaunchConfig(1, 1, attributes={"cluster": 2})]


def test_attributes_of_a_backend_reach_the_driver(fake: FakeDriver, kernel: podium.Kernel, level: str) -> None:
    """GRD-09: attributes of the backend's own, one to three numbers of 32 bits, reach the driver from both levels."""
    launch = kernel[LaunchConfig(1, 1, attributes={"priority": -5, "preferred_cluster": (2, 1, 1)})]
    for _ in range(3):
        launch(None, 1)
    kernel[LaunchConfig(1, 1, attributes={"priority": (1 << 32) - 1})](None, 1)
    kernel[1, 1](None, 1)
    kernel[LaunchConfig(1, 1, attributes={"priority": -(1 << 31), "preferred_cluster": (7,)})](None, 1)
    assert kernel.level == level
    keys = FakeDriver.attribute_keys
    both = ((keys["preferred_cluster"], (2, 1, 1)), (keys["priority"], (0xFFFFFFFB,)))
    assert [each.attributes for each in fake.launches] == [both] * 3 + [
        ((keys["priority"], (0xFFFFFFFF,)),),
        (),
        ((keys["preferred_cluster"], (7,)), (keys["priority"], (1 << 31,))),
    ]


def test_a_driver_can_refuse_a_shape_once_for_each_device(level: str) -> None:
    """GRD-09: `Driver.check` sees each configuration and device before the first launch there, and not again."""
    seen: list[tuple[str, int, Any, int]] = []

    class Checking(FakeDriver):
        def check(self, kernel: str, function: Function, config: LaunchConfig, device: int) -> None:
            seen.append((kernel, function.handle, config.grid, device))
            if config.grid[0] > 8:
                raise LaunchConfigError(
                    f"{kernel}: grid.x is {config.grid[0]}, and 8 blocks fit at once", kernel=kernel
                )

    driver = Checking()
    kernel = podium.kernel(SOURCE)
    binding = kernel.binding(driver)
    with pytest.raises(LaunchConfigError, match="8 blocks fit at once"):
        binding.get((9, 1))(FakeArray(64), 1)
    seen.clear()
    for _ in range(3):
        binding.get((8, 1))(FakeArray(64), 1)
    binding.get((8, 1))(FakeArray(64, 1), 1)
    assert [(grid, device) for _, _, grid, device in seen] == [((8, 1, 1), 0), ((8, 1, 1), 1)]
    assert len(driver.launches) == 4


def test_object_code_says_how_it_is_launched(fake: FakeDriver, level: str) -> None:
    """GRD-10: launch attributes that a compiler put into the metadata hold after a round trip through bytes."""
    plain = podium.kernel(SOURCE).compile()
    metadata = {"cooperative": True, "shared": 77, "num_ctas": 2}
    code = ObjectCode(plain.code, plain.format, plain.target, plain.entries, metadata=metadata)
    kernel = podium.kernel(ObjectCode.from_bytes(code.to_bytes()))
    for _ in range(2):
        kernel[4, 32](None, 1)
        assert (last(fake).flags, last(fake).shared, last(fake).cluster) == (1, 77, (2, 1, 1))
    kernel[4, 32](None, 1, shared=5)
    assert (last(fake).flags, last(fake).shared) == (1, 5)


# ---- Arguments ----


def test_arguments_by_name(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """Arguments come by position, by name, or both, in any order."""
    for arguments, keywords in (((64, 5), {}), ((64,), {"n": 5}), ((), {"n": 5, "x": 64})):
        kernel[1, 1](*arguments, **keywords)
        assert [int.from_bytes(each, "little") for each in last(fake).parameters] == [64, 5]


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((), {}, "takes 2 arguments, got 0: missing 'x', 'n'"),
        ((None,), {}, "takes 2 arguments, got 1: missing 'n'"),
        ((None, 1, 2), {}, "takes 2 arguments, got 3: 1 too many"),
        ((None,), {"m": 1}, "has no parameter 'm'"),
        ((None, 1), {"n": 1}, "got 'n' by position and by name"),
        ((), {"n": 1}, "missing 'x'"),
        ((None, 1, 2), {"m": 3}, "has no parameter 'm'"),
        ((None,), {"Stream": 3, "n": 1}, "has no parameter 'Stream'"),
    ],
)
def test_misnamed_arguments(
    fake: FakeDriver, kernel: podium.Kernel, arguments: Any, keywords: Any, message: str
) -> None:
    """ARG-09: too few, too many, unknown or doubled arguments show the signature, in every way to call."""
    for launch in (kernel[1, 1], kernel[1, 1], kernel[lambda arguments: 1, 1]):
        for more in ({}, {"stream": 5}, {"shared": 8}):
            with pytest.raises(ArgumentCountError, match=message) as caught:
                launch(*arguments, **keywords, **more)
            assert isinstance(caught.value, TypeError)
    assert fake.launches == []


def test_stream_and_shared_for_one_call(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """`stream` and `shared` hold for the call that names them, and not for the next."""
    launch = kernel[1, 1]
    for _ in range(2):
        launch(None, 1, stream=55, shared=16)
        assert (last(fake).stream, last(fake).shared) == (55, 16)
        launch(None, n=1, stream=0)
        assert (last(fake).stream, last(fake).shared) == (0, 0)
        launch(None, 1)
        assert (last(fake).stream, last(fake).shared) == (7000, 0)
        launch(None, 1, stream=None)
        assert last(fake).stream == 7000
    for bad in (-1, "s", 1.5):
        with pytest.raises((ArgumentTypeError, ArgumentValueError)):
            launch(None, 1, stream=bad)
        with pytest.raises(LaunchConfigError):
            launch(None, 1, shared=bad)
    kernel[lambda arguments: 2, 1](None, 1, stream=55, shared=16)
    assert (last(fake).stream, last(fake).shared, last(fake).grid) == (55, 16, (2, 1, 1))


def test_many_variants_do_not_pile_up(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """Launches with ever new grids, streams or shared sizes keep a bounded number of launch objects."""
    launch = kernel[1, 1]
    for index in range(600):
        launch(None, 1, stream=index)
    assert last(fake).stream == 599
    binding = kernel.binding()
    for index in range(4200):
        binding.get((index + 1, 1))
    assert len(binding._launches) <= 4096 and len(binding._keys) <= 4096
    kernel[4200, 1](None, 1)
    launch(None, 1)
    assert [each.grid[0] for each in fake.launches[-2:]] == [4200, 1]


def test_errors_name_the_kernel_and_the_parameter(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """ARG-02: kernel, argument, value and type stand in the message, with the names of the source."""
    with pytest.raises(ArgumentValueError, match=r"k: argument 1 \('n'\) expects i32, got 2147483648 \(int\)"):
        kernel[1, 1](None, 2147483648)
    with pytest.raises(ArgumentTypeError, match=r"k: argument 0 \('x'\) expects \*fp32, got 1.5 \(float\)"):
        kernel[1, 1](1.5, 1)


def test_grids_that_cannot_be_name_the_kernel(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """GRD-04: the error for a grid, a block or shared memory names the kernel, in the message and as an attribute."""
    launch = kernel[1, 1]
    attempts: list[Callable[[], object]] = [
        lambda: kernel[-1, 1],
        lambda: kernel[1, 0],
        lambda: kernel[1, (1, 2.5)],
        lambda: kernel[1],
        lambda: launch(None, 1, shared=-1),
        lambda: kernel[lambda arguments: -1, 1](None, 1),
        lambda: kernel[1, 1](FakeArray(64, 5), 1),
    ]
    for attempt in attempts:
        with pytest.raises(LaunchConfigError, match="^k: ") as caught:
            attempt()
        assert caught.value.kernel == "k"
        assert str(caught.value).count("k: ") == 1


# ---- What a kernel is ----


def test_declaring_costs_nothing_and_chooses_no_driver() -> None:
    """ACT-01: a kernel can be declared, printed, copied and asked for its signature without any driver."""
    kernel = podium.kernel(SOURCE)
    assert (kernel.name, str(kernel.signature)) == ("k", "x: *fp32, n: i32")
    assert repr(kernel) and repr(kernel.module)
    assert podium.driver.chosen() is None


def test_a_kernel_prints_its_name_once_it_is_known() -> None:
    """The name stands in the text as soon as it was given or read; printing reads no source."""
    assert "not read yet" in repr(podium.kernel(SOURCE)) and "kernel k " in repr(podium.kernel(SOURCE, "k"))
    kernel = podium.kernel(SOURCE)
    assert "not read yet" in repr(kernel) and "declaration" not in kernel.__dict__
    assert kernel.name == "k" and "<podium kernel k of " in repr(kernel)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_kernels_and_modules_are_copied_and_pickled(fake: FakeDriver, level: str, again: Callable[[Any], Any]) -> None:
    """TUN-01: a kernel that was used comes out of a pickle or a copy with all that was declared, and launches."""
    kernel = podium.kernel(SOURCE, constants={"n": 5}, contiguous=False, defines={"A": 1})
    kernel[1, 1](64)
    template = podium.kernel("template <int N> __global__ void t(int* p) {}", "t<4>", signature="p: *u32")
    for number, each in enumerate((kernel, template)):
        copied = again(each)
        assert copied is not each and repr(copied).startswith("<podium kernel")
        copied[1, 1](64)
        assert (copied.name, copied.signature, copied.metadata) == (each.name, each.signature, each.metadata)
        assert copied.module.options == each.module.options
        assert len(fake.launches) == number + 2 and len(last(fake).parameters) == 1
    module = podium.module(SOURCE)
    module["k"][1, 1](64, 1)
    copied_module = again(module)
    copied_module["k"][1, 1](64, 2)
    assert copied_module.names == ("k",) and last(fake).parameters[1] == (2).to_bytes(4, "little")


def test_kernels_travel_to_another_process(fake: FakeDriver, level: str, tmp_path: Path) -> None:
    """TUN-01: another process unpickles kernels, also those of a file and of object code, and launches them."""
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    kernels: list[Any] = [podium.kernel(SOURCE), podium.kernel(path), podium.kernel(podium.kernel(SOURCE).compile())]
    for each in kernels:
        each[1, 1](None, 1)
    pickled = pickle.dumps([*kernels, podium.module(path)])
    path.unlink()  # the text has been read
    (tmp_path / "pickled").write_bytes(pickled)
    program = """
        import pathlib, pickle, sys, podium
        from podium.testing import FakeDriver
        driver = FakeDriver()
        podium.set_active(driver)
        *kernels, module = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())
        for each in [*kernels, module["k"]]:
            each[1, 1](64, 9)
        print(len(driver.launches), {each.parameters[1][0] for each in driver.launches})
    """
    assert run_python(program, str(tmp_path / "pickled")).split() == ["4", "{9}"]


@pytest.mark.parametrize("defines", [["A"], "A", [("A", 1)], {"A"}, 5])
def test_defines_are_a_mapping(defines: Any) -> None:
    """Macros that are no mapping are a type error that shows what is taken."""
    with pytest.raises(TypeError, match="defines takes a mapping of macros to values, such as {'TILE': 16}"):
        podium.kernel(SOURCE, defines=defines)


@pytest.mark.parametrize("most", [0, -1, True, 32.0, "32"])
def test_a_bound_of_registers_is_a_number(most: Any) -> None:
    """Compilers take 0 and -1 for no bound, and say of the others that they know no such option."""
    with pytest.raises(ValueError, match="max_registers takes a number of registers from 1 on, not"):
        podium.kernel(SOURCE, max_registers=most)


@pytest.mark.parametrize("std", ["17", 17, "C11"])
def test_a_standard_is_one_of_cpp(std: Any) -> None:
    """A number alone is no standard, and the error shows one."""
    with pytest.raises(ValueError, match=r"such as 'c\+\+17' or 'gnu\+\+17', not '?(17|C11)"):
        podium.kernel(SOURCE, std=std)


def test_a_macro_does_not_go_on_in_the_next_line() -> None:
    """A backslash at the end would make a part of the value of what comes next, another macro or the source."""
    with pytest.raises(ValueError, match="The value of the macro A must not end with a backslash"):
        podium.kernel(SOURCE, defines={"A": "1\\", "B": 2})


@pytest.mark.parametrize("options", [{"flags": ["-O\0"]}, {"include_dirs": ["a\0"]}, {"defines": {"A": "\0"}}])
def test_options_with_nul(options: dict[str, Any]) -> None:
    """The character NUL ends a command's argument, so it is a value error where it was given, not later."""
    with pytest.raises(ValueError, match="NUL|must be one line"):
        podium.kernel(SOURCE, **options)


@pytest.mark.parametrize("flag", ["-I", "-D", "-include", "-isystem"])
def test_a_last_flag_that_lacks_its_other_half(flag: str) -> None:
    """A flag that takes the next one must have it: at the end it would take what podium puts behind it."""
    with pytest.raises(ValueError, match=f"The last of the flags, '{flag}', lacks what it is about"):
        podium.kernel(SOURCE, flags=["-O1", flag])
    podium.kernel(SOURCE, flags=[flag, "folder"])


def test_a_launcher_that_cannot_be_imported() -> None:
    """A launcher class that is given by name, and is not there, is an error of podium that names kernel and backend."""
    absent = deferred_launcher("podium_absent.launcher:AbsentLauncher")
    driver = type("Incomplete", (FakeDriver,), {"launcher_cls": absent})()
    with (
        podium.use(driver),
        pytest.raises(LoadError, match="k: the launcher of backend 'fake' cannot be imported: No mod"),
    ):
        podium.kernel(SOURCE, name="k")[1, 1](None, 1)


def test_a_target_of_another_backend(fake: FakeDriver) -> None:
    """A target and a driver that do not go together are told as such."""
    kernel = podium.kernel(SOURCE, name="k")
    with pytest.raises(CompileError, match="the target cpu:x86-64:32 is one of backend 'cpu', .* is of 'fake'"):
        kernel.compile("cpu:x86-64:32", driver=fake)


def test_macros_among_the_flags_reach_the_parser(fake: FakeDriver, level: str) -> None:
    """A macro in `flags` chooses the declaration that is read, as it does for the compiler; `defines` do the same."""
    source = """
    #ifdef WIDE
    __global__ void k(double* x, long long n) {}
    #else
    __global__ void k(float* x, int n) {}
    #endif
    """
    forms: list[dict[str, Any]] = [{"flags": ["-DWIDE"]}, {"flags": ["-DWIDE=1"]}, {"defines": {"WIDE": None}}]
    for options in forms:
        assert str(podium.kernel(source, **options).signature) == "x: *fp64, n: i64"
    source = "__global__ void k(T* x) {}"
    assert str(podium.kernel(source, flags=["-g", "-DT=double"]).signature) == "x: *fp64"
    assert str(podium.kernel(source, flags=["-DT=unsigned"]).signature) == "x: *u32"
    assert str(podium.kernel(source, flags=["-DTT=double"]).signature) != "x: *fp64"


def test_a_kernel_is_not_called_without_a_grid(kernel: podium.Kernel) -> None:
    """Calling a kernel without a grid says how it is done."""
    with pytest.raises(TypeError, match=r"k needs a grid and a block: kernel\[grid, block\]"):
        kernel(None, 1)


def test_modules_have_several_kernels(fake: FakeDriver, level: str, tmp_path: Path) -> None:
    """A module gives its kernels by name, each once, from text or from a file."""
    path = tmp_path / "two.cu"
    path.write_text("__global__ void a(int n) {}\n__global__ void b(float x) {}\n")
    for source in (path, str(path), path.read_text()):
        module = podium.module(source)
        assert module.names == ("a", "b")
        assert module["a"] is module["a"]
        module["a"][1, 1](1)
        module.kernel("b")[1, 1](2.0)
        assert last(fake).kernel == "b"
    with pytest.raises(SourceError):
        module["c"][1, 1]()
    with pytest.raises(SourceError):
        podium.kernel(path)[1, 1](1)
    path.write_bytes("// naïve\n__global__ void a(int n) {}\n".encode("latin-1"))
    with pytest.raises(SourceError, match=r"two\.cu: byte 0xef in line 1 is not UTF-8"):
        podium.module(path)
    path.write_bytes(ObjectCode(b"\xff", "fake", Target("fake", "fake_1", 32), ()).to_bytes())
    with pytest.raises(
        SourceError, match=r"no source but object code: podium\.kernel\(podium\.ObjectCode\.from_file\("
    ):
        podium.module(path)


def test_object_code_is_a_kernel(fake: FakeDriver, level: str) -> None:
    """Compiled bytes with their signature launch like source; options and a wrong name are errors."""
    code = ObjectCode.from_bytes(
        b"binary", name="k", signature="x: *fp32, n: i32", format="fake", target=Target("fake", "fake_1", 32)
    )
    kernel = podium.kernel(code)
    kernel[1, 1](64, n=2)
    assert fake.compiled == [] and last(fake).kernel == "k"
    with pytest.raises(LoadError, match="No kernel 'z' in this object code; it has: k"):
        podium.kernel(code, "z")[1, 1]()
    with pytest.raises(TypeError, match="compiled already"):
        podium.kernel(code, fast_math=True)
    other = ObjectCode.from_bytes(b"binary", name="k", signature="", format="fake", target=Target("fake", "fake_2", 32))
    with pytest.raises(LoadError, match="built for fake:fake_2:32, the device 0 .* is fake:fake_1:32"):
        podium.kernel(other)[1, 1]()
    spelled = ObjectCode.from_bytes(b"binary", name="k", signature="", format="fake", target="fake:fake_1:32")
    podium.kernel(spelled)[1, 1]()
    with pytest.raises(LoadError, match="the code is broken"):
        podium.kernel(ObjectCode(b"broken", "fake", Target("fake", "fake_1", 32), code.entries))[1, 1](None, 1)


def test_constants_leave_the_call(fake: FakeDriver, level: str) -> None:
    """Constants of a kernel are folded into the program and no longer in the call."""
    kernel = podium.kernel(SOURCE, constants={"n": 5})
    kernel[1, 1](64)
    assert len(last(fake).parameters) == 1
    with pytest.raises(ArgumentCountError):
        kernel[1, 1](64, 5)


def test_the_low_level_launcher_of_a_kernel(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """`run` and `function` are what compilers' own launch code uses, and stay plain attributes."""
    kernel.run(2, 3, 4, 9, kernel.function, 64, 5)
    assert (last(fake).grid, last(fake).stream) == ((2, 3, 4), 9)
    assert kernel.run is kernel.run
    assert len(fake.loaded) == 1


def test_the_function_is_that_of_the_driver_of_run(level: str) -> None:
    """CTX-07: `run` and `function` go together: both stay with the driver on which `run` was made."""
    first, second = FakeDriver(), FakeDriver()
    kernel = podium.kernel(SOURCE)
    with podium.use(first):
        run = kernel.run
        assert kernel.function in first.loaded
    with podium.use(second):
        assert kernel.run is run
        kernel.run(1, 1, 1, 0, kernel.function, None, 1)
        assert kernel.function in first.loaded
    assert (len(first.launches), len(second.launches), second.loaded) == (1, 0, {})


# ---- Compiling and loading ----


def test_failures_to_compile_reach_the_launch_each_time(fake: FakeDriver, level: str) -> None:
    """LIF-10: a compile error is raised by every launch as the compiler's own, with nothing internal in front of it."""
    kernel = podium.kernel(f"#error here\n{SOURCE}", "k", signature="x: *fp32, n: i32")
    for _ in range(2):
        with pytest.raises(CompileError, match="#error") as caught:
            kernel[1, 1](None, 1)
        assert (
            caught.value.__cause__ is None and caught.value.__suppress_context__
        ) or caught.value.__context__ is None
    assert fake.loaded == {}


def test_a_target_may_be_spelled(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """What `podium compile --target` takes, `compile` takes, too; a text that is no target is an error."""
    assert kernel.compile("fake:other_2:64").target == Target("fake", "other_2", 64)
    with pytest.raises(ValueError, match="spelled backend:arch:warp_size"):
        kernel.compile("other_2")
    with pytest.raises(ValueError, match="the threads of a warp are missing: fake:other_2:32, or 64"):
        kernel.compile("fake:other_2")


def test_an_option_of_the_launch_among_the_arguments(fake: FakeDriver, kernel: podium.Kernel, level: str) -> None:
    """A cluster given like an argument is sent to the `LaunchConfig`."""
    with pytest.raises(ArgumentCountError, match=r"no parameter 'cluster'.*LaunchConfig\(grid, block, cluster=...\)"):
        kernel[1, 1](None, 1, cluster=2)


def test_code_is_compiled_once_and_loaded_once_per_device(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """CTX-04, CTX-05: handles belong to devices; code is compiled once per target, loaded where it is launched only."""
    kernel[1, 1](FakeArray(64, 1), 1)
    assert [device for _, device in fake.loaded.values()] == [1]
    launch = kernel[1, 1]
    for device in (1, 0, 1, 0):
        launch(FakeArray(64, device), 1)
        assert last(fake).device == device  # that of the function that was launched
        assert last(fake).stream == 7000 + device
    assert sorted(device for _, device in fake.loaded.values()) == [0, 1]
    assert len(fake.compiled) == 1


def test_two_drivers_at_once(level: str) -> None:
    """CTX-07, ACT-09: nothing of a driver is kept in the kernel itself; each driver has its own code and functions."""
    kernel, drivers = podium.kernel(SOURCE), [FakeDriver(), FakeDriver()]
    launches = []
    for driver in drivers:
        with podium.use(driver):
            launches.append(kernel[1, 1])
            kernel[1, 1](None, 1)
    for launch in launches:
        launch(None, 1)
    assert [len(driver.launches) for driver in drivers] == [2, 2]
    assert [len(driver.loaded) for driver in drivers] == [1, 1]


def test_a_device_that_does_not_exist(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """An array that claims a device beyond those of the driver is an error that counts them."""
    for device in (2, 16, 99):
        with pytest.raises(LaunchConfigError, match=f"there is no device {device}; backend 'fake' has 2"):
            kernel[1, 1](FakeArray(64, device), 1)
    for wrong in (2, -1, 1 << 9999, 0.0, "0", [], FakeArray(64, 0)):
        for ask in (kernel.load, kernel.attributes, lambda device: kernel.occupancy(1, 1, device=device)):
            with pytest.raises(LaunchConfigError, match="k: there is no device"):
                ask(wrong)  # type: ignore[arg-type]


def test_many_devices(level: str) -> None:
    """CTX-04: beyond the devices that the C code keeps functions for, every launch still finds its own."""

    class Crowd(FakeDriver):
        device_count = 40

    driver = Crowd()
    launch = podium.kernel(SOURCE).binding(driver).get((1, 1))
    for _ in range(2):
        for device in range(40):
            launch(FakeArray(64, device), 1)
            assert last(driver).device == device
    assert len(driver.loaded) == 40


def test_unloading_and_launching_again(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """LIF-04: after unload() the next launch loads again, through kept launches too, and uses no old handle."""
    launch, low_level = kernel[1, 1], kernel.run
    launch(FakeArray(64, 0), 1)
    launch(FakeArray(64, 1), 1)
    handles = set(fake.loaded)
    kernel.unload()
    assert fake.unloaded == ["k", "k"] and fake.loaded == {}
    kernel.unload()
    assert len(fake.unloaded) == 2
    for call in (launch, kernel[1, 1]):
        call(FakeArray(64, 0), 1)
        call(FakeArray(64, 1), 1)
    assert len(fake.loaded) == 2 and not handles & set(fake.loaded)
    assert len(fake.launches) == 6
    low_level(1, 1, 1, 0, kernel.function, 64, 1)
    assert len(fake.loaded) == 2


class Loaded(int):
    """A device's number that knows whether what was loaded there, this one time, still is."""

    live = True


class Watched(FakeDriver):
    """A driver that calls back before it unloads, and counts the launches of what was unloaded."""

    def __init__(self) -> None:
        super().__init__()
        self.before_unload: Callable[[], object] = lambda: None
        self.stale = 0

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        return super().load(code, name, Loaded(device))

    def unload(self, function: Function, device: int) -> None:
        self.before_unload()
        self.loaded[function.handle][1].live = False  # type: ignore[attr-defined]
        super().unload(function, device)

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        self.stale += not device.live  # type: ignore[attr-defined]
        return super()._record(name, device, shape, stream, values)


def test_a_launch_while_its_code_is_being_unloaded(level: str) -> None:
    """LIF-04: a kept launch that is called in the middle of unload() loads anew, and keeps the new function."""
    driver = Watched()
    kernel = podium.kernel(SOURCE)
    launch = kernel.binding(driver).get((1, 1))
    launch(None, 1)
    launch(None, 1)
    driver.before_unload = lambda: launch(None, 1)
    kernel.unload()
    assert driver.unloaded == ["k"] and len(driver.loaded) == 1
    driver.before_unload = lambda: None
    launch(None, 1)
    kernel.binding(driver).get((1, 1))(None, 1)
    assert (len(driver.launches), driver.stale, len(driver.loaded)) == (5, 0, 1)
    kernel.unload()
    assert driver.loaded == {} and driver.unloaded == ["k", "k"]


def test_an_unload_while_a_launch_looks_its_function_up(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIF-04: a function that is released while a launch has just found it is not kept for the next one."""
    driver = Watched()
    kernel = podium.kernel(SOURCE)
    binding = kernel.binding(driver)
    launch, load = binding.get((1, 1)), binding.load

    def interrupted(device: int, stream: int | None = None) -> Function:
        function = load(device, stream)
        monkeypatch.setattr(binding, "load", load)
        kernel.unload()  # as other threads do, of which one then launches
        launch(None, 1)
        return function

    monkeypatch.setattr(binding, "load", interrupted)
    launch(None, 1)
    assert len(driver.launches) == 2 and driver.stale == 0  # the one that was under way has what it found
    launch(None, 1)
    launch(None, 1)
    assert (len(driver.launches), driver.stale, len(driver.loaded)) == (4, 0, 2)
    kernel.unload()
    assert driver.loaded == {}


class Unloading(Watched):
    """A driver in whose next launch another thread unloads the kernel."""

    def __init__(self, unload: Callable[[], object]) -> None:
        super().__init__()
        self._other, self.armed = unload, False

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        if self.armed:
            self.armed = False
            self._other()
        return super()._record(name, device, shape, stream, values)


def test_code_stays_while_a_launch_has_it(level: str) -> None:
    """LIF-04: the driver uses a function that goes meanwhile, and an H200's ends the process: what a launch has is kept.

    It goes with the next unload(), or with the kernel.
    """
    kernel = podium.kernel(SOURCE)
    driver = Unloading(kernel.unload)
    launch = kernel.binding(driver).get((1, 1))
    for _ in range(3):
        launch(None, 1)
    for unloads in range(1, 3):
        driver.armed = True
        launch(None, 5)
        assert (driver.unloaded, driver.stale) == ([], 0)
        launch(None, 6)
        assert len(driver.loaded) == unloads + 1
    kernel.unload()
    assert driver.unloaded == ["k"] * 3 and driver.loaded == {}
    driver.armed = True
    launch(None, 7)
    with pytest.raises(ArgumentTypeError):
        launch(None, "no")  # what fails is not under way for ever
    del kernel, launch
    driver._other = lambda: None
    gc.collect()
    assert driver.unloaded == ["k"] * 4 and driver.loaded == {}


def test_a_dropped_kernel_is_unloaded_once(fake: FakeDriver, level: str) -> None:
    """LIF-04: when a kernel dies its code is released on every device, once; a kept launch keeps it alive."""
    kernel = podium.kernel(SOURCE)
    launch = kernel[1, 1]
    launch(FakeArray(64, 0), 1)
    launch(FakeArray(64, 1), 1)
    dead = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert fake.unloaded == []
    launch(FakeArray(64, 0), 1)
    del launch
    gc.collect()
    assert dead() is None
    assert fake.unloaded == ["k", "k"] and fake.loaded == {}


def test_a_kernel_whose_load_failed_is_dropped_quietly(fake: FakeDriver, level: str) -> None:
    """LIF-05: the finalizer copes with a kernel that never got as far as being loaded."""
    code = ObjectCode.from_bytes(b"broken", name="k", signature="", format="fake", target=Target("fake", "fake_1", 32))
    kernel = podium.kernel(code)
    with pytest.raises(LoadError):
        kernel[1, 1]()
    del kernel
    gc.collect()
    with pytest.raises(podium.errors.SignatureError):  # type: ignore[attr-defined]
        podium.kernel(SOURCE, signature="?")
    gc.collect()
    assert fake.unloaded == []


def test_a_raising_load_hook_leaks_no_code(fake: FakeDriver, level: str) -> None:
    """LIF-04: code that was loaded before a hook failed is used by the next launch, and unloaded in the end."""

    def fail(event: object) -> None:
        raise ZeroDivisionError("hook")

    kernel = podium.kernel(SOURCE)
    podium.hooks.load.add(fail)
    with pytest.raises(ZeroDivisionError):
        kernel[1, 1](None, 1)
    podium.hooks.load.remove(fail)
    kernel[1, 1](None, 1)
    assert len(fake.loaded) == 1
    kernel.unload()
    assert fake.loaded == {}


def run_python(program: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(program), *arguments]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return run.stdout


def test_nothing_is_unloaded_at_exit(level: str) -> None:
    """LIF-02: at interpreter exit no finalizer calls a driver that may be gone; nothing is printed."""
    program = """
        import podium
        from podium.testing import FakeDriver
        class Printing(FakeDriver):
            def unload(self, function, device):
                print("unloaded")
        podium.set_active(Printing())
        kept = podium.kernel("__global__ void k(float* x, int n) {}")
        launch = kept[1, 1]
        launch(None, 1)
        podium.kernel("__global__ void k(float* x, int n) {}")[1, 1](None, 1)
        print("end")
    """
    assert run_python(program).split()[-1] == "end"


def test_object_code_of_a_warm_process_needs_no_parser(level: str, tmp_path: Path) -> None:
    """ACT-11: with a warm cache the declaration and the code come from the cache: no compile, no parser imported."""
    program = """
        import sys, podium
        from podium.testing import FakeDriver
        driver = FakeDriver()
        podium.set_active(driver)
        podium.kernel("__global__ void k(float* warm, int n) {}")[1, 1](None, 1)
        print(len(driver.compiled), "tree_sitter" in sys.modules, len(driver.launches))
    """
    assert run_python(program).split()[2] == "1"
    assert run_python(program).split() == ["0", "False", "1"]


class Damaging(FakeDriver):
    """A driver whose first codes do not load, as if the cache had kept them of a system that was another one."""

    def __init__(self, damaged: int) -> None:
        super().__init__()
        self.damaged, self.attempts = damaged, 0

    def compile(self, program: Program, target: Target) -> ObjectCode:
        code = super().compile(program, target)
        if len(self.compiled) > self.damaged:
            return code
        return ObjectCode(b"broken", code.format, code.target, code.entries)

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        self.attempts += 1
        return super().load(code, name, device)


def damaging(damaged: int) -> Damaging:
    """Make a driver, and put its first code for SOURCE into the cache, which has no other of it."""
    driver = Damaging(damaged)
    podium.kernel(SOURCE).compile(driver=driver)
    assert len(driver.compiled) == 1
    return driver


def quarantined() -> int:
    folder = default_cache().folder
    assert folder is not None
    return sum("the code is broken" in path.read_text() for path in folder.rglob("quarantine/*.txt"))


def test_cached_code_that_does_not_load_is_compiled_again(level: str, cold_builds: None) -> None:
    """CAC-12: what the cache has and the driver does not load is set aside, compiled anew exactly once, and works."""
    driver = damaging(1)
    kernel = podium.kernel(SOURCE)
    launch = kernel.binding(driver).get((1, 1))
    launch(None, 1)
    launch(FakeArray(64, 1), 1)
    assert (len(driver.launches), len(driver.compiled), driver.attempts, quarantined()) == (2, 2, 3, 1)
    kernel.unload()
    launch(None, 1)  # the kernel has the new code, and so has the cache
    podium.kernel(SOURCE).binding(driver).get((1, 1))(None, 1)
    assert (len(driver.launches), len(driver.compiled), driver.attempts, quarantined()) == (4, 2, 5, 1)


def test_code_that_never_loads_is_compiled_again_once(level: str, cold_builds: None) -> None:
    """CAC-12: if the new code does not load either, the error of the driver is raised: nothing is tried for ever."""
    driver = damaging(2)
    launch = podium.kernel(SOURCE).binding(driver).get((1, 1))
    with pytest.raises(LoadError, match="k: the code is broken") as caught:
        launch(None, 1)
    assert (len(driver.compiled), driver.attempts) == (2, 2)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    launch(None, 1)
    assert (len(driver.launches), len(driver.compiled), driver.attempts) == (1, 3, 4)


def test_object_code_that_does_not_load_raises_as_it_is(level: str, cold_builds: None) -> None:
    """CAC-12: code that the user brings is not podium's to compile again; the error of the driver comes each time."""
    driver = damaging(1)
    launch = podium.kernel(podium.kernel(SOURCE).compile(driver=driver)).binding(driver).get((1, 1))
    for attempt in (1, 2):
        with pytest.raises(LoadError, match="k: the code is broken"):
            launch(None, 1)
        assert (driver.attempts, len(driver.compiled), quarantined()) == (attempt, 1, 0)


def test_a_header_that_is_edited_while_it_is_compiled(level: str, cold_builds: None, tmp_path: Path) -> None:
    """CAC-14: code compiled while a header changed is used, and not kept for the content that the header had before."""
    header = tmp_path / "size.h"
    header.write_text("one")
    path = tmp_path / "k.cu"
    path.write_text('#include "size.h"\n' + SOURCE)

    class Editing(FakeDriver):
        edited = False

        def compile(self, program: Program, target: Target) -> ObjectCode:
            code = super().compile(program, target)
            if not self.edited:
                self.edited = True
                header.write_text("two")
            return ObjectCode(header.read_bytes(), code.format, code.target, code.entries)

    driver = Editing()
    podium.kernel(path).binding(driver).get((1, 1))(None, 1)
    assert len(driver.launches) == 1
    header.write_text("one")
    assert podium.kernel(path).compile(driver=driver).code == b"one"
    assert podium.kernel(path).compile(driver=driver).code == b"one"
    assert len(driver.compiled) == 2  # the second result stands for its content


# ---- Capture ----


class Capturing(FakeDriver):
    """A driver on which some streams are being captured."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: set[int] = set()

    def capturing(self, device: int, stream: int) -> bool:
        return stream in self.streams


def test_a_first_launch_inside_a_capture_says_warm_up(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """SCR-08: under capture nothing is compiled or loaded; the error says what to do; a warm kernel launches."""
    fake.captured = True
    for launch in (lambda: kernel[1, 1](None, 1), lambda: kernel[1, 1](None, 1, stream=5), kernel.load):
        with pytest.raises(LoadError, match=r"being captured into a graph.*kernel.load\(\) or launch it once before"):
            launch()
    assert fake.compiled == [] and fake.loaded == {}
    fake.captured = False
    kernel.load()
    fake.captured = True
    kernel[1, 1](None, 1)
    with podium.debugging():
        fake.sync_status = 5  # waiting would break the capture, so nobody asks
        kernel[1, 1](None, 1)
    assert fake.sync_status == 5 and len(fake.launches) == 2


def test_the_stream_of_the_launch_is_the_one_asked_about(level: str) -> None:
    """SCR-08: explicit streams, the streams of array libraries and the driver's own are each recognised as captured."""
    driver, library = Capturing(), exchange_type()
    exchange().set_stream(0, 900)

    def cold() -> Any:
        return podium.kernel(SOURCE).binding(driver).get((1, 1))

    array = library(64, 1)
    for captured, call in (
        (55, lambda launch: launch(None, 1, stream=55)),
        (901, lambda launch: launch(array, 1)),
        (7000, lambda launch: launch(None, 1)),
        (7001, lambda launch: launch(FakeArray(64, 1), 1)),
    ):
        driver.streams = {captured}
        with pytest.raises(LoadError, match="captured"):
            call(cold())
        driver.streams = {1}
        call(cold())
        assert last(driver).stream == captured


# ---- Records and statuses ----


def test_the_last_launches_are_recorded(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """LIF-08: recent_launches() tells the last launches of the process with grid, block, device and stream."""
    for index in range(1, 71):
        kernel[index, 2](FakeArray(64, index % 2), 1, stream=index)
    recent = podium.recent_launches()
    assert len(recent) == 64
    assert [each.grid[0] for each in recent] == list(range(7, 71))
    assert (recent[-1].kernel, recent[-1].backend) == ("k", "fake") and recent[-1].block == (2, 1, 1)
    assert (recent[-1].device, recent[-1].stream) == (0, 70)
    assert recent[-1].number == recent[0].number + 63
    assert "k grid (70, 1, 1) block (2, 1, 1) on fake device 0 stream 0x46" in str(recent[-1])


def test_an_error_status_lists_the_last_launches(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """LIF-08, LIF-09: an error says that an earlier launch may be at fault and lists the last ones, itself included."""
    kernel[3, 1](None, 1)
    fake.next_status = 700
    with pytest.raises(LaunchError) as caught:
        kernel[4, 1](None, 1)
    error = caught.value
    assert error.status == 700 and error.grid == (4, 1, 1)
    assert "an earlier launch may be at fault; PODIUM_DEBUG=1 finds out which" in str(error)
    assert "k grid (3, 1, 1)" in error.recent[-2] and "k grid (4, 1, 1)" in error.recent[-1]
    assert pickle.loads(pickle.dumps(error)).recent == error.recent
    kernel[5, 1](None, 1)


# ---- Threads and numbers ----


def in_threads(count: int, function: Callable[[], object]) -> list[BaseException]:
    """Run a function in threads that all begin at once; return what was raised."""
    barrier, errors = threading.Barrier(count), []

    def work() -> None:
        barrier.wait()
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_threads_that_launch_first_together(fake: FakeDriver, level: str) -> None:
    """TUN-04, CTX-01: sixteen threads launch a cold kernel at once: one compile, one load, every launch right."""
    kernel = podium.kernel(SOURCE)

    def work() -> None:
        for index in range(50):
            kernel[1, 1](None, index)

    assert in_threads(16, work) == []
    assert len(fake.compiled) == 1 and len(fake.loaded) == 1
    assert len(fake.launches) == 800
    counts = [int.from_bytes(each.parameters[1], "little") for each in fake.launches]
    assert sorted(counts) == sorted(list(range(50)) * 16)


def test_threads_that_launch_while_others_unload(fake: FakeDriver, level: str) -> None:
    """LIF-04: loads that were given back are found again under contention; nothing is unloaded twice."""
    kernel = podium.kernel(SOURCE)
    kernel.load()

    def work() -> None:
        for _ in range(30):
            kernel.load()
            kernel.unload()

    assert in_threads(4, work) == []
    kernel.unload()
    assert fake.loaded == {}


def test_many_kernels_share_one_build(fake: FakeDriver, cold_builds: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """PRF-04: fifty kernels with one signature shape make one module, whatever their names and pointer types."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
    kernels = []
    for index in range(50):
        element = ("float", "int", "double")[index % 3]
        kernels.append(podium.kernel(f"__global__ void k{index}({element}* a{index}, int n) {{}}"))
        kernels[-1][1, 1](None, index)
    assert generated_modules() == 1
    assert len({each.kernel for each in fake.launches}) == 50
    assert all(each.level == "generated" for each in kernels)


def test_a_kernel_has_a_level(fake: FakeDriver, kernel: podium.Kernel, level: str) -> None:
    """warm_up() brings a kernel to the level that its launches then have."""
    kernel.warm_up()
    assert kernel.level == level
    kernel.warm_up(1)
    assert len(fake.loaded) == 2


def test_kernels_cannot_be_launched_from_a_copy_of_the_handle(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """Launch objects print what they are; a function given by a driver is a plain value."""
    launch = kernel[(2, 3), 32]
    assert "grid (2, 3, 1)" in repr(launch) or "podium_launcher.Launch" in repr(launch)
    function = Function(5)
    assert copy.copy(function) == function
    assert _state.attended() == 0
