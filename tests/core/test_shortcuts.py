"""What generated launches do without Python: find a bound launch, read a stream, podium's arrays, exported ones, ints."""

from __future__ import annotations

import contextvars
import gc
import inspect
import itertools
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import numpy
import pytest
from fake_launching import (
    INTERFACES,
    InterfaceArray,
    Pair,
    bytes_of,
    exchange,
    exchange_type,
    host_driver_class,
    knowing_driver_class,
    load,
    make_launcher,
)

import podium
from podium import LaunchConfig
from podium._arguments import Slot
from podium._binding import Binding
from podium._kernel import Kernel
from podium._launch import Launch
from podium._packing import Packer
from podium.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, ArrayDeviceError, LaunchConfigError
from podium.testing import FakeArray, FakeDriver

SOURCE = "__global__ void k(float* x, int n) {}"


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")


@pytest.fixture
def kernel(fake: FakeDriver, generated: None) -> Kernel:
    """A kernel that was launched with several grids, so that C knows them."""
    made = podium.kernel(SOURCE)
    for grid in (1, 2, (3, 4), (3, 4, 5)):
        for block in (1, (8, 2)):
            for _ in range(2):
                made[grid, block](None, 1)
    return made


def counting(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[Any]:
    """Note each call of a method."""
    calls: list[Any] = []
    original = getattr(owner, name)

    def counted(self: Any, *args: Any, **keywords: Any) -> Any:
        calls.append(args)
        return original(self, *args, **keywords)

    monkeypatch.setattr(owner, name, counted)
    return calls


# ---- kernel[grid, block] ----


def test_known_launches_are_found_without_python(
    kernel: Kernel, fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grid and a block of ints that were launched before are found in C, whether they are the same objects or equal."""
    looked_up = counting(monkeypatch, Binding, "get")
    for grid in (1, 2, (3, 4), (3, 4, 5), 2, 2, 1):
        for block in (1, (8, 2)):
            launch = kernel[grid, block]
            assert type(launch).__name__ == "Launch" and not isinstance(launch, Launch)
            assert kernel[grid, block] is launch is kernel[eval(repr((grid, block)))]
            launch(None, 1)
            assert fake.launches[-1].grid == (grid if isinstance(grid, tuple) else (grid,)) + (1,) * (
                3 - len(grid) if isinstance(grid, tuple) else 2
            )
    assert looked_up == []


def test_the_last_launch_is_found_by_the_number(
    kernel: Kernel, fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GRD-01: a grid that is computed anew each time finds its launch, and one that is near finds another."""
    sizes = ("70000", "70001", "70000", str((1 << 30) + 3), str((1 << 30) + 4), str((1 << 30) + 3), "3")
    for size in sizes:
        kernel[int(size), int("64")](None, 1)
    looked_up = counting(monkeypatch, Binding, "get")
    for size in sizes:
        for _ in range(2):
            kernel[int(size), int("64")](None, 1)
            assert fake.launches[-1].grid == (int(size), 1, 1) and fake.launches[-1].block == (64, 1, 1)
    assert looked_up == []


def test_a_kernel_without_a_table_and_subclasses_of_kernels(kernel: Kernel, fake: FakeDriver) -> None:
    """C reads the table where it lies in a kernel, there or not; a class may have a look-up of its own in front."""
    keys: list[Any] = []

    class Noting(Kernel):
        def __getitem__(self, key: Any) -> Callable[..., None]:
            keys.append(key)
            return super().__getitem__(key)

    class Plain(Kernel):
        pass

    del kernel._shortcut
    for made in (kernel, Noting(kernel.module, None), Plain(kernel.module, None)):
        for _ in range(3):
            made[2, 1](None, 1)
            assert fake.launches[-1].grid == (2, 1, 1)
    assert keys == [(2, 1)] * 3
    assert inspect.signature(Kernel.__getitem__).parameters.keys() == {"self", "key"}


@pytest.mark.parametrize(
    "key",
    [
        (1.0, 1),
        (1, 1.0),
        ((3, 4.0), 1),
        (Fraction(1), 1),
        (numpy.float32(1), 1),
        ((3, 4), numpy.float64(1)),
        (1 + 0j, 1),
    ],
)
def test_what_equals_an_int_is_none(kernel: Kernel, key: Any) -> None:
    """GRD-04: a float that equals the integer of a known launch is refused, though it has the integer's hash."""
    kernel[1, 1](None, 1)
    with pytest.raises(LaunchConfigError):
        kernel[key]


@pytest.mark.parametrize(
    ("key", "grid"),
    [
        ((True, 1), (1, 1, 1)),
        ((numpy.int32(2), 1), (2, 1, 1)),
        (([3, 4], 1), (3, 4, 1)),
        ((numpy.array([3, 4]), 1), (3, 4, 1)),
        ((lambda arguments: arguments["n"] + 5, 1), (6, 1, 1)),
        (LaunchConfig(7, 1), (7, 1, 1)),
        ((iter([2, 2]), 1), (2, 2, 1)),
    ],
)
def test_other_keys_go_to_python(
    kernel: Kernel, fake: FakeDriver, monkeypatch: pytest.MonkeyPatch, key: Any, grid: tuple[int, int, int]
) -> None:
    """GRD-01: everything else that a key can be means what it always means."""
    looked_up = counting(monkeypatch, Binding, "get")
    kernel[key](None, 1)
    assert fake.launches[-1].grid == grid
    assert len(looked_up) >= 1


@pytest.mark.parametrize("key", [1, (1,), (1, 1, 1), "ab", None, [1, 1], {}])
def test_wrong_keys_are_refused_alike(kernel: Kernel, key: Any) -> None:
    """A key that is no pair is refused with the words of the method in Python."""
    with pytest.raises(LaunchConfigError, match=r"write kernel\[grid, block\]"):
        kernel[key]


def test_a_list_in_a_key_is_read_each_time(kernel: Kernel, fake: FakeDriver) -> None:
    """GRD-01: the same list with other numbers in it is another grid."""
    grid = [2, 3]
    for size in (3, 4, 3):
        grid[1] = size
        kernel[grid, 1](None, 1)
        assert fake.launches[-1].grid == (2, size, 1)


def test_the_active_driver_decides(kernel: Kernel, fake: FakeDriver) -> None:
    """SEL-05: one kernel launches on whatever driver is active: by use, by set_active, in other threads and contexts."""
    other, third = FakeDriver(), FakeDriver()

    def where() -> FakeDriver:
        before = {id(driver): len(driver.launches) for driver in (fake, other, third)}
        kernel[1, 1](None, 1)
        kernel[1, 1](None, 1)
        (driver,) = (each for each in (fake, other, third) if len(each.launches) == before[id(each)] + 2)
        return driver

    assert where() is fake
    with podium.use(other):
        assert where() is other
        inside = contextvars.copy_context()
        with podium.use(fake):
            assert where() is fake
        assert where() is other
        found: list[FakeDriver] = []
        podium.set_active(third)
        try:
            thread = threading.Thread(target=lambda: found.append(where()))
            thread.start()
            thread.join()
            assert found == [third]
            assert where() is other
        finally:
            podium.set_active(None)
    assert where() is fake
    assert inside.run(where) is other
    assert where() is fake

    def steps() -> Iterator[FakeDriver]:
        with podium.use(other):
            yield where()

    generator = steps()
    assert next(generator) is other and where() is other
    thread = threading.Thread(target=generator.close)
    thread.start()
    thread.join()
    assert where() is fake


def test_a_choice_that_is_taken_back_is_not_remembered(
    kernel: Kernel, fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEL-02: after reset_active the driver is chosen anew, though the kernel knows launches of the one before."""
    other = FakeDriver()
    context = contextvars.Context()  # one without `use`

    def launches() -> int:
        kernel[1, 1](None, 1)
        return len(other.launches)

    podium.set_active(other)
    try:
        assert [context.run(launches) for _ in range(3)] == [1, 2, 3]
        podium.reset_active()
        monkeypatch.setenv("PODIUM_BACKEND", "no-such-backend")
        with pytest.raises(podium.errors.UnknownBackendError):  # type: ignore[attr-defined]
            context.run(launches)
    finally:
        podium.reset_active()


def test_kernels_with_shortcuts_are_unloaded_and_freed(kernel: Kernel, fake: FakeDriver) -> None:
    """LIF-04: neither unloading nor freeing a kernel minds what C remembers of it."""
    launch = kernel[2, 1]
    kernel.unload()
    assert kernel[2, 1] is launch
    kernel[2, 1](None, 1)
    assert len(fake.unloaded) == 1 and len(fake.loaded) == 1
    copied = pickle.loads(pickle.dumps(kernel))
    assert type(copied) is Kernel
    copied[2, 1](None, 1)
    assert Kernel.__getitem__(copied, (2, 1)) is copied.__getitem__((2, 1))
    with pytest.raises(TypeError):
        Kernel.__getitem__(object(), (2, 1))  # type: ignore[arg-type]


def test_many_grids_do_not_fill_memory(fake: FakeDriver, generated: None) -> None:
    """Scale: launches that are forgotten, when there are too many, are made anew."""
    kernel = podium.kernel(SOURCE)
    for index in range(1, 5000):
        kernel[index, 1](None, 1)
        assert fake.launches[-1].grid == (index, 1, 1)
    binding = kernel.binding()
    assert len(binding._launches) < 5000
    gone = weakref.ref(kernel)
    del kernel, binding
    gc.collect()
    assert gone() is None


# ---- launcher(grid_x, grid_y, grid_z, stream, function, *args) ----


def frames(work: Callable[[], object]) -> list[str]:
    """Return the names of podium's functions in Python that something runs, those of the fake driver left out."""
    names: list[str] = []
    home = str(Path(podium.__file__).parent)

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and home in map(str, path.parents) and path.parent.name != "testing":
            names.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return names


def test_no_python_runs_in_a_launch(kernel: Kernel, fake: FakeDriver) -> None:
    """However a kernel is launched, with plain arguments, no function of podium's in Python takes part.

    Only what a kind of arrays is read with is asked for in Python, once.
    """
    function, launch, run, library = kernel.function, kernel[1, 1], kernel.run, exchange_type()()
    array, before = podium.empty(4), len(fake.launches)
    run(1, 1, 1, 0, function, array, 1)
    run(1, 1, 1, 0, function, library, 1)

    def launches() -> None:
        kernel[1, 1](array, 1)
        kernel[(3, 4), 1](library, 1, stream=5)
        launch(4096, 1)
        run(2, 1, 1, 5, function, array, 1)

    assert frames(launches) == []
    assert len(fake.launches) == before + 6
    assert "order" in frames(lambda: launch(4096, n=1))


def test_launchers_are_called_the_same(fake: FakeDriver, level: str) -> None:
    """A launcher in Python takes what it always takes, whoever makes the call: nested arguments, no keywords, no less."""
    nested = make_launcher(fake, ("i32", ("*fp32", "i32")), constants={(1, 1): 7})
    function = load(fake, nested.signature)
    for _ in range(2):
        nested(1, 1, 1, 0, function, 5, (None, 7))
        assert fake.launches[-1].parameters == ((5).to_bytes(4, "little"), bytes(8))
    plain = make_launcher(fake, "i32")
    function = load(fake, plain.signature)
    for _ in range(2):
        plain(1, 1, 1, 0, function, 5)
        for wrong in (
            lambda: plain(1, 1, 1),
            lambda: plain(1, 1, 1, 0, function),
            lambda: plain(1, 1, 1, 0, function, "x"),
        ):
            with pytest.raises((TypeError, ArgumentError)):
                wrong()
        with pytest.raises(TypeError):
            plain(1, 1, 1, 0, function, x=5)
    assert list(inspect.signature(plain).parameters)[:5] == ["grid_x", "grid_y", "grid_z", "stream", "function"]


def test_arrays_like_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What C saw last makes no difference: arrays of several libraries and devices launch, or fail, as in Python."""
    exchange().set_stream(0, 900)
    one, two, silent = exchange_type(), exchange_type(), exchange_type(1)
    arrays = (one(64), one(128, 1), two(192), silent(256), InterfaceArray(512, stream=5), None)
    found: dict[str, list[Any]] = {"interpreted": [], "generated": []}
    for level, outcomes in found.items():
        monkeypatch.setenv("PODIUM_LAUNCHER", level)
        driver = knowing_driver_class()()
        with podium.use(driver):
            launch = podium.kernel("__global__ void k(float* x, float* y, float* z) {}")[1, 1]
            for order in itertools.product(arrays, repeat=3):
                try:
                    launch(*order)
                except ArgumentError as error:
                    outcomes.append(type(error))
                else:
                    made = driver.launches[-1]
                    outcomes.append((made.device, made.stream, made.parameters))
    assert found["interpreted"] == found["generated"]
    assert {outcome[1] for outcome in found["generated"] if isinstance(outcome, tuple)} == {5, 900, 901, 7000}


# ---- stream= ----


class Streaming:
    """A stream of a library, in one of the forms of ``__cuda_stream__``."""

    def __init__(self, pair: Any) -> None:
        self.pair = pair

    def __cuda_stream__(self) -> Any:
        if isinstance(self.pair, Exception):
            raise self.pair
        return self.pair


class Attributed:
    __cuda_stream__ = (0, 77)


def test_explicit_streams_stay_in_c(kernel: Kernel, fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """STR-01: a stream that is given as an int, None or an object is read without leaving C."""
    launch = kernel[1, 1]
    slow = counting(monkeypatch, Launch, "_with_keywords")
    own = podium.Stream()
    exchange().set_stream(0, 900)
    array = exchange_type()()
    for stream, handle in (
        (0, 0), (5, 5), (2**63, 2**63), (2**64 - 1, 2**64 - 1), (Streaming((0, 9)), 9), (own, own.handle), (None, 7000),
    ):  # fmt: skip
        launch(FakeArray(64), 1, stream=stream)
        assert fake.launches[-1].stream == handle
        launch(array, 1, stream=stream)
        assert fake.launches[-1].stream == (900 if stream is None else handle)
    assert slow == []


def test_streams_mean_the_same_at_both_levels(fake: FakeDriver, level: str) -> None:
    """STR-01: what a stream can be, and what it cannot, does not depend on the level."""
    launch = podium.kernel(SOURCE)[1, 1]
    launch(None, 1)
    for stream, handle in ((Attributed(), 77), (numpy.int64(3), None), (Streaming((0, 4)), 4), (True, None)):
        if handle is None:
            with pytest.raises(ArgumentTypeError):
                launch(None, 1, stream=stream)
        else:
            launch(None, 1, stream=stream)
            assert fake.launches[-1].stream == handle
    for bad in (-1, 2**64, 1.5, "x", object(), Streaming(None), Streaming((1, 2)), Streaming((0, -1)), Streaming((0,)),
                Streaming([0, 1]), Streaming((0, "x"))):  # fmt: skip
        with pytest.raises(ArgumentError):
            launch(None, 1, stream=bad)
    with pytest.raises(ZeroDivisionError):
        launch(None, 1, stream=Streaming(ZeroDivisionError()))
    with pytest.raises(ArgumentError):
        launch(None, stream=5)
    with pytest.raises(ArgumentError):
        launch(None, 1, strem=5)
    variant = launch  # of another size of shared memory, and with arguments by name
    variant(None, n=1, stream=6)
    variant(None, 1, shared=16, stream=8)
    assert [(each.stream, each.shared) for each in fake.launches[-2:]] == [(6, 0), (8, 16)]


def test_an_explicit_stream_reaches_launches_over_several_devices(fake: FakeDriver, level: str) -> None:
    """STR-01: arrays on two devices, for which Python decides, do not lose the stream."""
    fake.peers = True
    launch = podium.kernel("__global__ void k(float* x, float* y) {}")[1, 1]
    for _ in range(2):
        launch(FakeArray(64, 1), FakeArray(64, 0), stream=5)
        assert (fake.launches[-1].device, fake.launches[-1].stream) == (1, 5)


# ---- podium's own arrays ----


@pytest.mark.parametrize("memory", ["device", "host"])
def test_own_arrays_are_read_without_python(
    fake: FakeDriver, generated: None, monkeypatch: pytest.MonkeyPatch, memory: str
) -> None:
    """DLP-01: from its second launch on an array of podium's is read in C: address, device, and on which driver."""
    located = counting(monkeypatch, Packer, "locate")
    driver = fake if memory == "device" else host_driver_class()()
    with podium.use(driver):
        kernel = podium.kernel(SOURCE)
        device = int(memory == "device")
        array = podium.empty(4, device=device)
        for count in range(4):
            kernel[1, 1](array, 1)
            launch = driver.launches[-1]
            assert launch.parameters[0] == array.ptr.to_bytes(8, "little") and launch.device == device
            if count == 1:
                located.clear()
        assert located == []
        copied = pickle.loads(pickle.dumps(array))
        assert copied.ptr != array.ptr
        for _ in range(2):
            kernel[1, 1](copied, 1)
            assert driver.launches[-1].parameters[0] == copied.ptr.to_bytes(8, "little")


def test_own_arrays_out_of_reach_are_refused_every_time(fake: FakeDriver, level: str) -> None:
    """MEM-01: an array in memory that the driver does not reach is no less out of reach when C knows its place."""
    host = host_driver_class()()
    with podium.use(host):
        array, kernel = podium.empty(4), podium.kernel(SOURCE)
        for _ in range(2):
            kernel[1, 1](array, 1)
    kernel = podium.kernel(SOURCE)
    for _ in range(3):
        with pytest.raises(ArrayDeviceError):
            kernel[1, 1](array, 1)


def test_pinned_arrays_and_subclasses(fake: FakeDriver, level: str) -> None:
    """Pinned arrays tell no device; what a class of the user's adds to an array changes nothing."""
    kernel = podium.kernel(SOURCE)
    pinned = podium.empty(4, pinned=True)

    class Named:
        def __init__(self, array: podium.Array) -> None:
            self.array = array

        @property
        def _podium_place(self) -> bytes:
            raise AttributeError

        def _podium_location(self) -> Any:
            return self.array._podium_location()

    for _ in range(3):
        for value in (pinned, Named(pinned)):
            kernel[1, 1](value, 1)
            launch = fake.launches[-1]
            assert launch.parameters[0] == pinned.ptr.to_bytes(8, "little") and launch.device == 0


# ---- Arrays that speak DLPack ----


class Asked(FakeArray):
    """It notes what it is asked, and may refuse to answer."""

    def __init__(self, *args: Any, refusal: Exception | None = None) -> None:
        super().__init__(*args)
        self.asked: list[Any] = []
        self.refusal = refusal

    def __dlpack__(self, **keywords: Any) -> Any:
        self.asked.append(keywords)
        if self.refusal is not None:
            raise self.refusal
        return super().__dlpack__(**keywords)


def test_exported_arrays_are_read_without_podiums_python(
    fake: FakeDriver, generated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DLP-02: C asks an array once, for the stream of its own device, and the capsule is gone after the launch."""
    located = counting(monkeypatch, Packer, "locate")
    fake.peers = True
    kernel = podium.kernel("__global__ void k(const float* x, float* y, float* z) {}")
    kernel[1, 1](None, None, None)
    located.clear()
    first, second = Asked(64, 1), Asked(128, 1)
    references = sys.getrefcount(first)
    kernel[1, 1](first, None, second)
    launch = fake.launches[-1]
    assert launch.parameters == tuple(each.to_bytes(8, "little") for each in (64, 0, 128)) and launch.device == 1
    assert first.asked == second.asked == [{"max_version": (1, 1), "stream": 7001}]
    assert sys.getrefcount(first) == references and located == []
    kernel[1, 1](first, Asked(32, 0), second, stream=9)
    assert (fake.launches[-1].device, fake.launches[-1].stream) == (1, 9)


@pytest.mark.parametrize("refusal", [BufferError("no"), ValueError("no"), ZeroDivisionError()])
def test_arrays_that_refuse_do_so_alike(fake: FakeDriver, level: str, refusal: Exception) -> None:
    """LIF-10: what an array raises when it is asked comes out, or is no array; at both levels the same."""
    kernel = podium.kernel(SOURCE)
    expected: type[Exception] = ArgumentTypeError if isinstance(refusal, BufferError) else type(refusal)
    for _ in range(3):
        with pytest.raises(expected):
            kernel[1, 1](Asked(64, refusal=refusal), 1)
    kernel[1, 1](FakeArray(64), 1)
    assert len(fake.launches) == 1


class Interrupted:
    """It interrupts, as Ctrl-C does, when one of its attributes is first asked for; then it is an array and a stream."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name not in ("__cuda_stream__", "__cuda_array_interface__", "__dlpack_device__", "__dlpack__"):
            raise AttributeError(name)
        if name == self.name:
            self.name = ""
            raise KeyboardInterrupt
        return lambda **keywords: (0, 5) if name == "__cuda_stream__" else getattr(FakeArray(64), name)(**keywords)


def test_an_interrupt_is_not_lost(fake: FakeDriver, level: str) -> None:
    """Ctrl-C while an array or a stream is asked ends the launch; it is no answer, to be asked for again."""

    def array(*names: str) -> Any:
        """Make an array whose type has these attributes, and whose last one interrupts."""
        asked = {name: property(lambda self, name=name: self.__getattr__(name)) for name in names}
        return type("Array", (Interrupted,), asked)(names[-1])

    kernel, knowing = podium.kernel(SOURCE), knowing_driver_class()()
    kernel[1, 1](FakeArray(64), 1)
    launches: list[Callable[[], object]] = [
        lambda: kernel[1, 1](array("__dlpack_device__", "__dlpack__"), 1),
        lambda: kernel[1, 1](array("__dlpack__", "__dlpack_device__"), 1),
        lambda: kernel[1, 1](FakeArray(64), 1, stream=Interrupted("__cuda_stream__")),
        lambda: kernel.binding(knowing).get((1, 1))(array("__cuda_array_interface__"), 1),
    ]
    for launch in launches:
        with pytest.raises(KeyboardInterrupt):
            launch()
    assert len(fake.launches) == 1 and knowing.launches == []


# ---- Arrays with __cuda_array_interface__ ----


def test_interfaces_mean_the_same_at_both_levels() -> None:
    """DLP-04: whatever such an interface says, right or wrong, each level takes and refuses the same."""
    for signature in ("*fp32", "*kfp32"):
        both = Pair(signature, knowing_driver_class()())
        results = [both.same(InterfaceArray(**fields)) for fields in INTERFACES]
        assert sum(isinstance(result, list) for result in results) > 12
    raising = both.same(InterfaceArray(**{"raise": 1}))
    assert raising.kind is ZeroDivisionError


def test_interfaces_are_read_without_python(generated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """CTX-10: C reads address and stream, and asks the driver for the device of the address."""
    located = counting(monkeypatch, Packer, "locate")
    driver = knowing_driver_class()()
    with podium.use(driver):
        kernel = podium.kernel("__global__ void k(float* x, const float* y) {}")
        kernel[1, 1](None, None)
        for array, other, device, stream in (
            (InterfaceArray(4096), None, 0, 7000),
            (InterfaceArray(2**32, stream=5), InterfaceArray(2**33, True, stream=5), 1, 5),
            (InterfaceArray(2**32), InterfaceArray(2**33, True, stream=6), 1, 6),
        ):
            kernel[1, 1](array, other)
            launch = driver.launches[-1]
            assert (launch.device, launch.stream) == (device, stream)
            assert launch.parameters[0] == array.fields["data"][0].to_bytes(8, "little")
        assert located == []
        kernel[1, 1](InterfaceArray(2**32, stream=5), InterfaceArray(2**33, True, stream=6))
        assert driver.launches[-1].stream == 5 and located  # Python lets the one stream wait for the other


# ---- The interpreted level ----


def test_plain_arguments_need_no_closer_look(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays with an exchange table, own ones, None, addresses, ints and floats are converted straight away in Python."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "interpreted")
    kernel = podium.kernel("__global__ void k(float* x, float* y, float* z, float* w, int n, float a, bool b) {}")
    array, Library = podium.empty(4, device=1), exchange_type()
    exchange().set_stream(0, 900)
    for _ in range(2):
        kernel[1, 1](array, None, 64, 64, 1, 0.5, True)
    closer = counting(monkeypatch, Packer, "locate")
    encoded = counting(monkeypatch, Slot, "encode")
    kernel[1, 1](array, None, 2**64 - 1, Library(4096, 1, shape=(2, 3), strides=(3, 1), offset=8), -(2**31), 0.5, True)
    launch = fake.launches[-1]
    assert closer == encoded == []
    assert [int.from_bytes(each, "little") for each in launch.parameters[:4]] == [array.ptr, 0, 2**64 - 1, 4104]
    assert (launch.device, launch.stream) == (1, 901)
    with podium.debugging(), pytest.raises(ArgumentTypeError, match="debugging is on"):
        kernel[1, 1](Library(dtype=(0, 32)), None, None, None, 1, 0.5, True)
    with pytest.raises(ArgumentValueError, match="not C-contiguous"):
        kernel[1, 1](Library(shape=(2, 2), strides=(1, 2)), None, None, None, 1, 0.5, True)
    with pytest.raises(ArgumentValueError, match="between"):
        kernel[1, 1](None, None, None, None, 2**31, 0.5, True)


def test_types_of_arrays_need_no_hash(fake: FakeDriver, level: str) -> None:
    """What is known of a type is kept by the type itself, whatever its class makes of equality and hash."""

    class Kind(type):
        def __eq__(cls, other: object) -> bool:
            raise ZeroDivisionError

        __hash__ = None  # type: ignore[assignment]

    array = Kind("Array", (FakeArray,), {})(64)
    kernel = podium.kernel(SOURCE)
    for _ in range(3):
        kernel[1, 1](array, 1)
        assert fake.launches[-1].parameters[0] == (64).to_bytes(8, "little")


# ---- Ints ----


@pytest.mark.parametrize("name", ["i64", "u64", "i32", "u32", "i8", "*fp32"])
def test_ints_of_every_length(name: str) -> None:
    """ARG-03: C reads ints of one digit, two and more, of each sign, to the very ends of their range."""
    both = Pair(name)
    for bits in (0, 1, 7, 8, 15, 29, 30, 31, 32, 33, 59, 60, 61, 62, 63, 64, 65, 90, 120):
        for value in (2**bits - 1, 2**bits, 2**bits + 1):
            for signed in (value, -value):
                result = both.same(signed)
                if isinstance(result, list):
                    size = len(bytes_of(result)[0])
                    assert int.from_bytes(bytes_of(result)[0], "little") == signed % (1 << 8 * size)
