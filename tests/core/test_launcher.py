"""The low-level launcher, called as a compiler calls it: grids, streams, constants, tuples, scratch, statuses."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from fake_launching import LEVELS, Failure, Pair, Source, bytes_of, load, make_launcher, pinned

import podium
from podium import _state
from podium.backend import Launcher, Signature, Target
from podium.errors import (
    ArgumentCountError,
    ArgumentTypeError,
    ArgumentValueError,
    ArrayDeviceError,
    LaunchConfigError,
    LaunchError,
    LoadError,
    OutOfResourcesError,
    SettingError,
    SignatureError,
)
from podium.testing import FakeArray, FakeDriver


@pytest.fixture(scope="module")
def plain() -> Pair:
    return Pair({"x": "*fp32", "n": "i32"}, num_warps=2, shared=48)


# ---- Grid ----


def test_a_launch_arrives_as_it_was_made(plain: Pair) -> None:
    """Grid, block in warps, shared bytes, stream and parameters reach the driver alike from both levels."""
    (launch,) = plain.same(4096, 7, grid=(2, 3, 4), stream=99)
    assert (launch.grid, launch.block, launch.cluster) == ((2, 3, 4), (64, 1, 1), (1, 1, 1))
    assert (launch.shared, launch.stream, launch.flags, launch.device) == (48, 99, 0, 0)
    assert launch.parameters == ((4096).to_bytes(8, "little"), (7).to_bytes(4, "little"))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_each_axis_has_its_own_limit(plain: Pair, axis: int) -> None:
    """GRD-01: the largest grid of each axis passes, one more is an error with axis, value and limit."""
    limit = FakeDriver().devices()[0].max_grid[axis]
    grid: list[int] = [1, 1, 1]
    grid[axis] = limit
    (launch,) = plain.same(None, 0, grid=tuple(grid))
    assert launch.grid == tuple(grid)
    for size in (limit + 1, 1 << 32, (1 << 32) + 1, 1 << 64, 10**30):
        grid[axis] = size
        failure = plain.same(None, 0, grid=tuple(grid))
        assert failure.kind is LaunchConfigError
        assert f"grid.{'xyz'[axis]} is {size}, the device takes at most {limit}" in failure.message


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_negative_grid_is_an_error_that_names_the_axis(plain: Pair, axis: int) -> None:
    """GRD-04: a negative axis is a ValueError with the axis, in every path and beside an empty axis too."""
    for other in (1, 0):
        grid: list[int] = [other] * 3
        grid[axis] = -1
        failure = plain.same(None, 0, grid=tuple(grid))
        assert issubclass(failure.kind, ValueError) and issubclass(failure.kind, LaunchConfigError)
        assert f"grid.{'xyz'[axis]} is -1" in failure.message


@pytest.mark.parametrize("grid", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 0)])
def test_an_empty_grid_checks_and_does_nothing(plain: Pair, grid: tuple[int, int, int]) -> None:
    """GRD-03: an empty grid launches nothing and calls no hook, but wrong arguments are still errors."""
    seen: list[object] = []
    podium.hooks.enter.add(seen.append)
    assert plain.same(None, 1, grid=grid) == []
    assert seen == []
    podium.hooks.enter.clear()
    assert plain.same(None, 1, grid=grid) == []
    assert plain.same(None, 1 << 40, grid=grid).kind is ArgumentValueError


@pytest.mark.parametrize("size", [1.0, 1.5, "1", None, numpy.float32(1), (1,), object()])
def test_a_grid_is_made_of_integers(plain: Pair, size: object) -> None:
    """GRD-04: what is no integer is refused by name; floats are not rounded."""
    failure = plain.same(None, 1, grid=(1, size, 1))
    assert failure.kind is LaunchConfigError
    assert "grid.y must be an integer" in failure.message


def test_integers_of_every_kind_make_a_grid(plain: Pair) -> None:
    """numpy integers, bools and subclasses of int count as integers."""
    (launch,) = plain.same(None, 1, grid=(numpy.int64(3), True, numpy.uint8(2)))
    assert launch.grid == (3, 1, 2)


def test_bad_handles_are_refused(plain: Pair) -> None:
    """A function that load() cannot have given is an error at both levels, never a jump to it."""
    for function in (0, -1, 1 << 64, None, "f", 1.0, True):
        for launcher in plain.launchers.values():
            with pytest.raises(LaunchConfigError, match="function must be the handle"):
                launcher(1, 1, 1, 0, function, None, 1)  # type: ignore[arg-type]


def test_keywords_are_refused_alike(plain: Pair) -> None:
    """The low-level call has no names for arguments: both levels say so with a TypeError."""
    for launcher in plain.launchers.values():
        with pytest.raises(TypeError):
            launcher(1, 1, 1, 0, plain.function, None, n=1)  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            launcher(1, 1, 1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        plain.launchers["generated"].generated(1, 1, 1)


# ---- Streams ----


def test_streams_of_every_form(plain: Pair) -> None:
    """A stream is None for the default one, an int, or an object with __cuda_stream__."""

    class Method:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 77

    class Attribute:
        __cuda_stream__ = (0, 78)

    for stream, handle in (
        (None, 0),
        (0, 0),
        (5, 5),
        ((1 << 64) - 1, (1 << 64) - 1),
        (Method(), 77),
        (Attribute(), 78),
    ):
        (launch,) = plain.same(None, 1, stream=stream)
        assert launch.stream == handle


@pytest.mark.parametrize(
    ("stream", "kind"),
    [
        ("s", ArgumentTypeError),
        (1.0, ArgumentTypeError),
        (True, ArgumentTypeError),
        (-1, ArgumentValueError),
        (1 << 64, ArgumentValueError),
        (SimpleNamespace(__cuda_stream__=(1, 5)), ArgumentValueError),
        (SimpleNamespace(__cuda_stream__=(0, -5)), ArgumentValueError),
        (SimpleNamespace(__cuda_stream__=5), ArgumentTypeError),
        (SimpleNamespace(__cuda_stream__=lambda: "ab"), ArgumentTypeError),
        (SimpleNamespace(__cuda_stream__=lambda: (0, "b")), ArgumentTypeError),
    ],
)
def test_what_is_no_stream(plain: Pair, stream: object, kind: type[Exception]) -> None:
    """A stream of another form is an error of the argument "stream"."""
    failure = plain.same(None, 1, stream=stream)
    assert failure.kind is kind
    assert dict(failure.attributes)["argument"] == "'stream'"


# ---- Metadata ----


def test_metadata_is_a_mapping_or_an_object() -> None:
    """Compilers hand over dictionaries or objects with attributes; both mean the same."""
    driver = FakeDriver()
    entries = {"name": "other", "num_warps": 8, "target": Target("fake", "fake_1", 64), "shared": 5}
    with pinned("interpreted"):
        for metadata in (entries, SimpleNamespace(**entries)):
            launcher = driver.launcher_cls(Source("*fp32"), metadata, driver)
            assert (launcher.name, launcher.block, launcher.shared) == ("other", (512, 1, 1), 5)


def test_without_a_driver_the_registered_one_is_taken(fake: FakeDriver, level: str) -> None:
    """Launcher(src, metadata) alone, the shape of other compilers' launchers, launches on its backend's driver."""
    launcher = FakeDriver.launcher_cls(Source({"n": "i32"}), {"num_warps": 4})
    launcher(1, 1, 1, 0, load(fake, launcher.signature), 5)
    assert fake.launches[0].parameters == ((5).to_bytes(4, "little"),)
    assert launcher.level == level


@pytest.mark.parametrize(
    ("metadata", "cluster", "flags"),
    [
        ({"num_ctas": 2}, (2, 1, 1), 0),
        ({"num_ctas": 4, "launch_cooperative_grid": True}, (4, 1, 1), 1),
        ({"launch_pdl": True}, (1, 1, 1), 2),
        ({"cooperative": True, "dependent": True}, (1, 1, 1), 3),
    ],
)
def test_clusters_and_attributes(metadata: dict[str, Any], cluster: tuple[int, int, int], flags: int) -> None:
    """GRD-10: num_ctas multiplies the grid by the cluster; launch attributes reach the driver from both levels."""
    (launch,) = Pair("i32", **metadata).same(1, grid=(5, 2, 1))
    assert launch.cluster == cluster
    assert launch.grid == (5 * cluster[0], 2, 1)
    assert launch.flags == flags


def test_a_grid_in_clusters_is_limited_in_clusters() -> None:
    """GRD-01: the limit on blocks holds after multiplying with the cluster; nothing wraps around at 32 bits."""
    both = Pair("i32", num_ctas=8)
    limit = 2147483647 // 8
    (launch,) = both.same(1, grid=(limit, 1, 1))
    assert launch.grid == (limit * 8, 1, 1)
    for size in (limit + 1, 1 << 29, 1 << 30, (1 << 31) - 1):
        failure = both.same(1, grid=(size, 1, 1))
        assert failure.kind is LaunchConfigError and f"grid.x is {size}" in failure.message


def test_an_explicit_cluster_counts_the_grid_in_blocks() -> None:
    """With `cluster` the grid is already counted in blocks."""
    (launch,) = Pair("i32", cluster=(2, 2, 1)).same(1, grid=(4, 4, 1))
    assert (launch.grid, launch.cluster) == ((4, 4, 1), (2, 2, 1))


def test_a_block_that_is_not_known_is_an_error() -> None:
    """Metadata that says neither `block` nor `num_warps` is refused: a guess would run threads nobody asked for."""
    for metadata in ({}, {"blok": 3}):
        with (
            pytest.raises(LaunchConfigError, match="says neither block nor num_warps") as caught,
            pinned("interpreted"),
        ):
            FakeDriver.launcher_cls(Source("i32"), metadata, FakeDriver())
        assert caught.value.axis == "block"


def test_features_that_the_backend_lacks_are_refused_when_the_launcher_is_made() -> None:
    """A launch feature that the driver does not have is an error that lists those it has."""

    class Plain(FakeDriver):
        features = frozenset({"dependent"})

    driver = Plain()
    for metadata in ({"num_warps": 1, "num_ctas": 2}, {"block": 32, "cooperative": True}):
        with pytest.raises(LaunchConfigError, match="has no launch feature .*it has: dependent"), pinned("interpreted"):
            driver.launcher_cls(Source("i32"), metadata, driver)
    driver.features = frozenset()  # type: ignore[misc]
    with pytest.raises(LaunchConfigError, match="has the launch feature 'dependent', and not with the options"):
        driver.launcher_cls(Source("i32"), {"block": 32, "dependent": True}, driver)


@pytest.mark.parametrize(
    ("metadata", "resource"),
    [
        ({"block": 1025}, "block.x"),
        ({"num_warps": 64}, "block.x"),
        ({"block": (1, 1, 65)}, "block.z"),
        ({"block": (32, 33, 1)}, "threads in a block"),
        ({"shared": 100_001}, "shared memory"),
        ({"num_ctas": 16}, "blocks in a cluster"),
    ],
)
def test_what_the_device_does_not_have(metadata: dict[str, Any], resource: str) -> None:
    """GRD-06, GRD-08: too large a block, cluster or shared memory is a typed error with both numbers, at both levels."""
    both = Pair("i32", **metadata)
    failure = both.same(1)
    assert failure.kind is OutOfResourcesError
    assert resource in failure.message and "k:" in failure.message and "the limit is" in failure.message
    assert both.same("x").kind is OutOfResourcesError


@pytest.mark.parametrize(
    "metadata", [{"block": 0}, {"block": (1, 2, 3, 4)}, {"block": -1}, {"shared": -1}, {"cluster": 0}]
)
def test_blocks_that_cannot_be(metadata: dict[str, Any]) -> None:
    """A block, cluster or shared size that no device has is refused when the launcher is made."""
    with pytest.raises(LaunchConfigError):
        make_launcher(FakeDriver(), "i32", level="interpreted", **metadata)


def test_parameters_have_a_total_size() -> None:
    """ARG-15: the device's limit holds for all parameters together; the stack of the caller is never at risk."""
    (launch,) = Pair({"s": "opaque[4032,64]", "n": "i64"}).same(bytes(4032), 1)
    assert launch.parameters[0] == bytes(4032)
    # the gap before an aligned parameter counts
    assert Pair({"n": "i64", "s": "opaque[4096,64]"}).same(1, bytes(4096)).kind is LoadError
    assert Pair({"n": "i8", "s": "opaque[4064,32]"}).same(1, bytes(4064))[0].parameters[1] == bytes(4064)
    with pytest.raises(SignatureError, match="put them into an array"):
        make_launcher(FakeDriver(), {"s": "opaque[999999999,1]"}, level="interpreted")


@pytest.mark.parametrize("count", [0, 1, 58, 256])
def test_there_is_no_fixed_number_of_arguments(count: int) -> None:
    """ARG-15: none, 58 and 256 arguments of mixed types pass, each where it belongs."""
    names = ["*fp32", "i32", "fp64", "u8", "bf16"]
    signature = [names[index % 5] for index in range(count)]
    values: list[Any] = [(index * 16, index, float(index), index % 256, 1.0)[index % 5] for index in range(count)]
    parameters = bytes_of(Pair(signature).same(*values))
    assert len(parameters) == count
    for index, data in enumerate(parameters[:: 5 if count else 1]):
        assert int.from_bytes(data, "little") == index * 5 * 16


# ---- Constants and tuples ----


@pytest.mark.parametrize("constants", [{"b": 1}, {1: 1}, {(1,): 1}])
def test_constants_by_name_position_and_path(constants: dict[Any, int]) -> None:
    """A folded parameter is named by name, position or index path: it stays in the call and leaves the binary."""
    both = Pair({"a": "i32", "b": "i32", "c": "i32"}, constants=constants)
    assert bytes_of(both.same(1, 2, 3)) == ((1).to_bytes(4, "little"), (3).to_bytes(4, "little"))
    assert bytes_of(both.same(1, object(), 3)) == ((1).to_bytes(4, "little"), (3).to_bytes(4, "little"))
    assert both.same(1, 3).kind is ArgumentCountError


def test_constants_inside_tuples() -> None:
    """A path leads into nested tuples; the name or path of a tuple folds all of it."""
    signature = {"t": ("i32", ("i32", "i32")), "n": "i32"}
    one = Pair(signature, constants={(0, 1, 0): 5})
    assert bytes_of(one.same((1, (2, 3)), 4)) == tuple(each.to_bytes(4, "little") for each in (1, 3, 4))
    for constants in ({"t": 0}, {0: 0}, {(0,): 0}):
        assert bytes_of(Pair(signature, constants=constants).same((1, (2, 3)), 4)) == ((4).to_bytes(4, "little"),)
    inner = Pair(signature, constants={(0, 1): 0})
    assert bytes_of(inner.same((1, (2, 3)), 4)) == tuple(each.to_bytes(4, "little") for each in (1, 4))


@pytest.mark.parametrize("key", ["z", 9, -1, (0, 0), 1.5, None, "a."])
def test_a_constant_that_names_nothing(key: Any) -> None:
    """A constant for a parameter that does not exist is an error when the launcher is made."""
    with pytest.raises(SignatureError, match="none of the parameters"):
        make_launcher(FakeDriver(), {"a": "i32"}, level="interpreted", constants={key: 1})


def test_tuples_are_flattened_in_the_call() -> None:
    """Tuple arguments pass their members in order; one of another length or type says what is needed."""
    both = Pair({"t": ("i32", ("fp32", "*fp32")), "n": "u8"})
    (launch,) = both.same((1, [2.0, 16]), 3)
    assert [len(each) for each in launch.parameters] == [4, 4, 8, 1]
    for value in (1, (1,), (1, (2.0,)), (1, 2, 3), None, "ab", (1, 5)):
        failure = both.same(value, 3)
        assert failure.kind is ArgumentCountError and "a tuple of 2 values is needed" in failure.message
    assert both.same((1, (2.0, 16))).kind is ArgumentCountError
    assert "missing 'n'" in both.same((1, (2.0, 16))).message
    assert both.same((1, (2.0, 16)), 3, 4).kind is ArgumentCountError
    assert both.same((1, ((2.0,), 16)), 3).kind is ArgumentTypeError
    assert dict(both.same((1, ((2.0,), 16)), 3).attributes)["argument"] == "'t.1.0'"


# ---- Devices ----


def test_the_device_is_that_of_the_first_array() -> None:
    """CTX-04, ARG-11: a launch goes to the device of its arrays; without peer access to another one it says so."""
    both = Pair({"a": "*fp32", "b": "*fp32", "c": "i32"})
    (launch,) = both.same(FakeArray(64, 1), FakeArray(128, 1), 1)
    assert _state.recent_launches()[-1].device == 1
    failure = both.same(FakeArray(64, 1), FakeArray(128, 0), 1)
    assert failure.kind is ArrayDeviceError
    assert dict(failure.attributes)["kind"] == "'peer'"
    assert "argument 1 ('b') is on device 0, but the launch is on device 1" in failure.message
    both.driver.peers = True
    (launch,) = both.same(FakeArray(64, 1), FakeArray(128, 0), 1)
    assert launch.parameters[:2] == ((64).to_bytes(8, "little"), (128).to_bytes(8, "little"))
    assert _state.recent_launches()[-1].device == 1


def test_the_first_wrong_argument_is_the_one_reported() -> None:
    """Both levels look at every argument's own type before they look at where the arrays are."""
    both = Pair({"a": "*fp32", "b": "*fp32", "c": "i32"})
    assert both.same(FakeArray(64, 0), FakeArray(64, 1), "x").kind is ArgumentTypeError
    assert both.same(FakeArray(64, 0), "x", "y").kind is ArgumentTypeError
    assert "'b'" in both.same(FakeArray(64, 0), "x", "y").message


# ---- Statuses ----


@pytest.mark.parametrize("status", [1, 719, -1, -(1 << 31), (1 << 31) - 1])
def test_a_status_becomes_an_error_that_says_everything(status: int) -> None:
    """LIF-09: a refused launch carries status, its name and text, kernel, backend, device, grid, block and stream."""
    both = Pair({"x": "*fp32"}, block=(4, 2, 1), name="doomed")
    for launcher in both.launchers.values():
        both.driver.next_status = status
        with pytest.raises(LaunchError) as caught:
            launcher(3, 1, 1, 0xAB, both.function, FakeArray(64, 1))
        error = caught.value
        assert (error.status, error.status_name) == (status, f"FAKE_ERROR_{status}")
        assert (error.kernel, error.backend, error.device) == ("doomed", "fake", 1)
        assert (error.grid, error.block) == ((3, 1, 1), (4, 2, 1))
        for part in ("doomed", f"FAKE_ERROR_{status}", "told to fail", "device 1", "(3, 1, 1)", "(4, 2, 1)", "0xab"):
            assert part in str(error)
        assert error.recent and "doomed" in error.recent[-1]


# ---- Levels ----


def test_levels_can_be_pinned(level: str) -> None:
    """PODIUM_LAUNCHER pins a level: from the first launch on, and told by `level` before it."""
    launcher = make_launcher(FakeDriver(), "i32")
    assert launcher.level == level
    launcher.wait()
    assert launcher.level == level


def test_an_unknown_level_is_a_setting_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A level that does not exist is an error that lists those that do."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "fast")
    with pytest.raises(SettingError, match="auto, generated or interpreted"):
        make_launcher(FakeDriver(), "i32")


def test_a_launcher_moves_over_when_its_module_is_ready() -> None:
    """On auto the launcher begins interpreted and is generated once the module is there, with the same results."""
    driver = FakeDriver()
    launcher = make_launcher(driver, ["i32", "u16", "i32"], level="auto")
    function = load(driver, launcher.signature)
    launcher(1, 1, 1, 0, function, 1, 2, 3)
    launcher.wait()
    assert launcher.level == "generated"
    launcher(1, 1, 1, 0, function, 1, 2, 3)
    assert driver.launches[0] == driver.launches[1]


def test_launchers_of_one_shape_share_their_module() -> None:
    """PRF-04: pointer types, names and constness make no shape of their own; widths do."""
    driver = FakeDriver()

    def module_of(signature: Any) -> Any:
        launcher = make_launcher(driver, signature, level="generated")
        launcher.promote()
        return type(launcher.generated)

    assert module_of({"a": "*fp32", "b": "i32"}) is module_of({"x": "*i8", "y": "i32"})
    assert module_of({"s": "{fp32,fp32}"}) is module_of({"s": "{i32,i32}"})
    assert module_of("*fp32, i32") is not module_of("*fp32, i64")
    assert module_of("*fp32") is not module_of("*kfp32")
    assert module_of("{fp32,fp32}") is not module_of("{fp32,fp32}@8")


def test_a_dropped_launcher_is_collected(level: str) -> None:
    """LIF-04: a launcher, its C object and its bound methods are one cycle that the collector takes apart."""
    driver = FakeDriver()
    launcher = make_launcher(driver, "*fp32, i32")
    launcher(1, 1, 1, 0, load(driver, launcher.signature), None, 1)
    dead = weakref.ref(launcher)
    del launcher
    gc.collect()
    assert dead() is None


def test_the_c_object_survives_its_python_owner() -> None:
    """LIF-03: the generated callable keeps all that it needs, also after its module object is gone."""
    driver = FakeDriver()
    launcher = make_launcher(driver, "*fp32, i32", level="generated")
    function = load(driver, launcher.signature)
    launcher.promote()
    call = launcher.generated
    del launcher
    gc.collect()
    call(1, 1, 1, 0, function, None, 5)
    with pytest.raises(ArgumentTypeError):
        call(1, 1, 1, 0, function, None, "x")
    assert driver.launches[0].parameters[1] == (5).to_bytes(4, "little")


def test_generated_c_holds_no_name_of_the_user() -> None:
    """What users can name stays out of the generated source; only shapes get in."""
    from podium._launcher_source import signature_source

    one = Signature.parse({"system_exit": "*fp32", "n": "{fp32,i32}"})
    two = Signature.parse({"a": "*i8", "b": "{i32,i32}"})
    assert signature_source(one.parameters, 1) == signature_source(two.parameters, 1)


def test_only_the_init_function_is_exported(tmp_path: Path) -> None:
    """A launcher's shared library exports its init function and nothing that could meet another's symbols."""
    from podium._extension import INCLUDE_DIR
    from podium._launcher_source import signature_source

    (tmp_path / "common.c").write_text(FakeDriver.launcher_cls.template.read_text())
    (tmp_path / "launcher.c").write_text(signature_source(Signature.parse("*fp32, i32").parameters, 1))
    minor = f"-DPODIUM_PYTHON_MINOR={sys.version_info.minor}"
    command = ["cc", "-std=c11", "-fPIC", "-shared", "-fvisibility=hidden", minor, f"-I{INCLUDE_DIR}"]
    subprocess.run([*command, "launcher.c", "common.c", "-o", "launcher.so"], cwd=tmp_path, check=True)
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", "launcher.so"], cwd=tmp_path, check=True, capture_output=True
    )
    names = [line.split()[-1] for line in symbols.stdout.decode().splitlines()]
    assert [name for name in names if not name.startswith(("_init", "_fini"))] == ["PyInit_podium_launcher"]


def test_a_parameter_in_another_place_does_not_compile(tmp_path: Path) -> None:
    """A launcher whose struct and whose binary would differ in a parameter's place or size is not built."""
    from podium._extension import INCLUDE_DIR
    from podium._launcher_source import signature_source

    source = signature_source(Signature.parse("*fp32, i8, {i32,i32,i32}, fp64").parameters, 1)
    minor = f"-DPODIUM_PYTHON_MINOR={sys.version_info.minor}"
    for right, wrong in (
        ("", ""),
        ("(p1, 8, 1)", "(p1, 9, 1)"),
        ("(p2, 12, 12)", "(p2, 12, 8)"),
        ("(p3, 24,", "(p3, 32,"),
    ):
        assert right in source
        (tmp_path / "launcher.c").write_text(source.replace(right, wrong) if right else source)
        command = ["cc", "-std=c11", "-fsyntax-only", minor, f"-I{INCLUDE_DIR}", "launcher.c"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode == 0) == (right == ""), done.stderr
        assert not right or "a parameter is not where podium and the kernel have it" in done.stderr


def test_the_first_launch_in_a_fresh_process_needs_no_array() -> None:
    """CTX-03: a kernel without any argument is the very first thing that a process does, at both levels."""
    program = """
        import podium
        from podium.testing import FakeDriver
        from podium.backend import Entry, ObjectCode, Signature
        driver = FakeDriver()
        class Source: signature = ()
        launcher = driver.launcher_cls(Source, {"block": 1}, driver)
        code = ObjectCode(b"", "fake", driver.default_target(), (Entry("k", Signature.parse(())),))
        launcher(1, 1, 1, 0, driver.load(code, "k", 0).handle)
        print(len(driver.launches), launcher.level)
    """
    for level in LEVELS:
        with pinned(level):
            run = subprocess.run(
                [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
            )
        assert run.stdout.split() == ["1", level]


def test_wrong_owners_are_refused_in_c() -> None:
    """The C types check what they are made from: a failure while one is made is an error and leaks no crash."""
    driver = FakeDriver()
    launcher = make_launcher(driver, "u32", level="generated")
    launcher.promote()
    kind, launch_kind = type(launcher.generated), launcher._launch_type
    for arguments in ((), (5,), (SimpleNamespace(),), (launcher.packer,)):
        with pytest.raises((IndexError, AttributeError)):
            kind(*arguments)
    for arguments in ((), (launcher.generated,), (1, 2, 3, 4), (launcher.generated, 1, 2, 3)):
        with pytest.raises((IndexError, AttributeError, TypeError)):
            launch_kind(*arguments)
    assert isinstance(launcher, Launcher)


def test_failures_compare(plain: Pair) -> None:
    """The comparison of the levels would see a difference: an outcome holds kind, words and attributes."""
    failure = plain.same(None, "x")
    assert isinstance(failure, Failure)
    assert failure != plain.same(None, "y")
