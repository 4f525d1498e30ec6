"""Captures and graphs, at both levels: on a driver that has graphs, and on one whose launches podium makes again."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import ctypes
import gc
import os
import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

import podium
from podium import LaunchConfig, _state
from podium._active import driver_config
from podium._launcher import Launcher
from podium.errors import (
    ArgumentCountError,
    ArgumentTypeError,
    ArgumentValueError,
    ArrayDeviceError,
    CaptureError,
    ForkedProcessError,
    LaunchConfigError,
    LaunchError,
    LoadError,
    OutOfResourcesError,
)
from podium.testing import FakeArray, FakeDriver

SOURCE = """
__global__ void k(float* x, int n) {}
__global__ void other(int grid) {}
__global__ void small_blocks(int n) {}
"""


class WithoutGraphs(FakeDriver):
    """The fake driver without graphs of its own."""

    features = FakeDriver.features - {"graphs"}


@pytest.fixture(params=["driver", "noted"])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeDriver]:
    """A fake driver that has graphs, and one that has none."""
    kind = FakeDriver if request.param == "driver" else WithoutGraphs
    driver_config.register(kind)
    try:
        driver = driver_config.get("fake")
        driver_config.set_active(driver)
        assert isinstance(driver, FakeDriver)
        yield driver
    finally:
        driver_config.reset_active()
        driver_config.unregister("fake")


def kernel(name: str = "k") -> podium.Kernel:
    """A kernel that has been launched, so that it can be captured."""
    made = podium.module(SOURCE).kernel(name)
    made.load()
    return made


def numbers(fake: FakeDriver) -> list[int]:
    """The last argument of each launch since this was asked last."""
    found = [int.from_bytes(launch.parameters[-1], "little", signed=True) for launch in fake.launches]
    fake.launches.clear()
    return found


def test_a_graph_replays_what_was_captured(fake: FakeDriver, level: str) -> None:
    """Nothing is launched in a capture; each replay launches everything, in its stream, with the same bytes."""
    launch, x = kernel()[(2, 3), 64], FakeArray(0x1000)
    launch(x, 7)
    launch(x, 8)
    plain = fake.launches[-1]
    fake.launches.clear()
    with podium.capture() as graph:
        launch(x, 8)
        launch(x=x, n=9)
        launch(x, n=10, shared=256)
    assert fake.launches == []
    assert [each.arguments[1] for each in graph.launches] == [8, 9, 10]
    assert repr(graph) == "<podium graph of 3 launches (k, k, k) on fake device 0>"
    assert repr(graph.launches[0]) == "<captured launch of k: grid (2, 3, 1), block (64, 1, 1)>"
    for replay in (graph.replay, graph, lambda: graph.replay(stream=None), graph.replay):
        replay()
        assert fake.launches[0] == plain and fake.launches[2].shared == 256
        assert numbers(fake) == [8, 9, 10]
    stream = podium.Stream()
    for given in (stream, stream.handle):
        graph.replay(stream=given)
        graph(given)
        assert {each.stream for each in fake.launches} == {stream.handle} and numbers(fake) == [8, 9, 10] * 2
    with podium.capture(stream=stream) as graph:
        launch(x, 1)
    assert graph.stream is stream
    graph.replay()
    graph.replay()
    assert {each.stream for each in fake.launches} == {stream.handle}


class OneDevice(WithoutGraphs):
    """A driver without graphs and with one device: addresses tell where a launch goes."""

    device_count = 1


def test_noted_launches_are_made_in_c(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay of what podium notes takes the generated launches, if all have one, and hands over the same bytes."""
    fake, x = OneDevice(), FakeArray(0x1000)
    with podium.use(fake):
        plain = kernel()
        half = podium.kernel("__global__ void h(float x) {}", signature={"x": "fp16"})
        half.load()

        def work() -> None:
            plain[2, 32](x, -7)
            plain[LaunchConfig(4, 8, cluster=2, attributes={"priority": -1})](None, 8)

        for _ in range(3):
            work()
            half[1, 1](1.5)
        wanted = [replace(launch, stream=0x77) for launch in fake.launches[-3:]]
        with podium.capture() as graph:
            work()
        with podium.capture() as other:
            work()
            half[1, 1](1.5)
        in_python: list[str] = []
        fire = Launcher.fire
        monkeypatch.setattr(Launcher, "fire", lambda self, *args: in_python.append(self.name) or fire(self, *args))
        for made, count, expected in (
            (graph, 2, [] if level == "generated" else ["k", "k"]),
            (other, 3, ["k", "k", "h"]),
        ):
            fake.launches.clear()
            in_python.clear()
            made.replay(stream=0x77)
            assert fake.launches == wanted[:count] and in_python == expected
        graph.launches[0].update(n=9, grid=3)
        graph.launches[1].update(grid=0)
        fake.launches.clear()
        graph.replay()
        (launch,) = fake.launches
        assert launch.grid == (3, 1, 1) and launch.parameters[1] == (9).to_bytes(4, "little")
        in_python.clear()
        with podium.debugging():
            graph.replay()
        assert in_python == ["k"]


def test_a_replay_keeps_what_an_update_puts_away(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIF-04: arrays that a replay under way reads are kept for its stream, also when the graph has others by then."""
    kept: list[object] = []
    monkeypatch.setattr(OneDevice, "host_memory", True)
    monkeypatch.setattr(OneDevice, "keep_alive", lambda self, objects, device, stream: kept.extend(objects))
    x, y = FakeArray(0x1000), FakeArray(0x2000)
    with podium.use(OneDevice()):
        with podium.capture() as graph:
            kernel()[1, 1](x, 1)
        for _ in range(2):
            graph.replay(stream=0x77)
        graph.launches[0].update(x=y)
        assert x in kept and y not in kept
        graph.replay(stream=0x77)
        assert y in kept


def test_bytes_are_those_of_the_capture(fake: FakeDriver) -> None:
    """What a caller does with an argument after the launch does not change the graph."""
    fields = podium.kernel("__global__ void f(pair p) {}", signature={"p": "{i32,i32}"})
    fields.load()

    class Pair(ctypes.Structure):
        _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_int))

    value = Pair(1, 2)
    with podium.capture() as graph:
        fields[1, 1](value)
    value.a = 100
    graph.replay()
    assert fake.launches[-1].parameters == (bytes(Pair(1, 2)),)


def test_updates_change_what_they_name(fake: FakeDriver, level: str) -> None:
    """An update takes all arguments, or some by name, and sizes; the rest stays, also for those that come after."""
    x, y = FakeArray(0x1000), FakeArray(0x2000)
    launch = kernel()[4, 64]
    with podium.capture() as graph:
        launch(x, 1)
        launch(x, 2)
    first, second = graph.launches
    for _ in range(2):
        graph.replay()
    first.update(y, 10)
    second.update(n=20)
    fake.launches.clear()
    graph.replay()
    assert [int.from_bytes(each.parameters[0], "little") for each in fake.launches] == [0x2000, 0x1000]
    assert numbers(fake) == [10, 20] and first.arguments == (y, 10)
    first.update(x, grid=lambda arguments: arguments["n"] // 2, n=16, block=(8, 8), shared=128)
    graph.replay()
    one, two = fake.launches
    assert (one.grid, one.block, one.shared, two.grid) == ((8, 1, 1), (8, 8, 1), 128, (4, 1, 1))
    assert (first.grid, first.block, first.shared) == ((8, 1, 1), (8, 8, 1), 128)
    numbers(fake)
    first.update(grid=0)
    graph.replay()
    assert numbers(fake) == [20]
    first.update(grid=1)
    graph.replay()
    assert numbers(fake) == [16, 20]


def test_a_parameter_with_the_name_of_a_size(fake: FakeDriver) -> None:
    """A parameter that is called grid is changed by position."""
    made = kernel("other")
    with podium.capture() as graph:
        made[1, 1](5)
    graph.launches[0].update(6, grid=2)
    graph.replay()
    assert fake.launches[-1].grid == (2, 1, 1) and numbers(fake)[-1] == 6


def test_updates_are_checked_as_launches_are(fake: FakeDriver) -> None:
    """Types, values, counts, names, devices and sizes that cannot be are errors, and nothing changes."""
    with podium.capture() as graph:
        kernel()[4, 64](FakeArray(0x1000), 1)
        kernel("small_blocks")[1, 1](2)
    launch, small = graph.launches
    wrong = [
        (ArgumentTypeError, lambda: launch.update(n="1")),
        (ArgumentTypeError, lambda: launch.update(x=1.5)),
        (ArgumentValueError, lambda: launch.update(n=1 << 31)),
        (ArgumentCountError, lambda: launch.update(FakeArray(0x1000))),
        (ArgumentCountError, lambda: launch.update(FakeArray(0x1000), 1, 2)),
        (ArgumentCountError, lambda: launch.update(FakeArray(0x1000), 1, n=2)),
        (ArgumentCountError, lambda: launch.update(m=1)),
        (ArrayDeviceError, lambda: launch.update(x=FakeArray(0x1000, device=1))),
        (LaunchConfigError, lambda: launch.update(grid=-1)),
        (LaunchConfigError, lambda: launch.update(grid=(1, 1 << 20))),
        (LaunchConfigError, lambda: launch.update(block=0)),
        (OutOfResourcesError, lambda: launch.update(block=2048)),
        (OutOfResourcesError, lambda: launch.update(shared=1 << 20)),
        (OutOfResourcesError, lambda: small.update(block=1024)),
    ]
    for kind, update in wrong:
        with pytest.raises(kind, match="^(k|small_blocks)"):
            update()
    graph.replay()
    assert (fake.launches[0].grid, fake.launches[0].block) == ((4, 1, 1), (64, 1, 1)) and numbers(fake) == [1, 2]


def test_launches_of_compilers_are_captured(fake: FakeDriver, level: str) -> None:
    """A launcher that is called with a function is captured, with scratch memory, clusters and its own counting."""
    source = type("Source", (), {"signature": {"x": "*fp32", "n": "i32"}})
    metadata = {"name": "low", "num_warps": 2, "num_ctas": 2, "global_scratch_size": 64, "global_scratch_align": 64}
    launcher = fake.launcher_cls(source, metadata, fake)
    function, x = kernel().load(), FakeArray(0x1000)
    launcher(3, 1, 1, 0, function, x, 1)
    fake.launches.clear()
    with podium.capture() as graph:
        launcher(3, 1, 1, None, function, x, 2)
        launcher(0, 1, 1, None, function, x, 3)
        launcher(3, 1, 1, graph.stream, function, x, 4)
        with pytest.raises(CaptureError, match="takes no part"):
            launcher(3, 1, 1, 0x77, function, x, 5)
    assert len(graph.launches) == 2
    graph.replay()
    one, two = fake.launches
    assert (one.grid, one.block, one.cluster) == ((6, 1, 1), (64, 1, 1), (2, 1, 1))
    assert len(one.parameters) == 3 and [int.from_bytes(each.parameters[1], "little") for each in (one, two)] == [2, 4]
    graph.launches[0].update(n=9, grid=(5, 1, 1))
    graph.launches[1].update(grid=0)
    fake.launches.clear()
    graph.replay()
    assert [launch.grid for launch in fake.launches] == [(10, 1, 1)]
    with pytest.raises(LaunchConfigError, match="low"):
        graph.launches[0].update(grid=(1, 1 << 20, 1))


def test_tuples_are_updated_as_they_are_launched(fake: FakeDriver) -> None:
    """A launcher whose arguments are nested takes them nested in an update, or flat, as the graph keeps them."""
    source = type("Source", (), {"signature": {"x": "*fp32", "pair": ("i32", "i32")}})
    launcher, function = fake.launcher_cls(source, {"name": "low", "block": 1}, fake), kernel().load()
    with podium.capture() as graph:
        launcher(1, 1, 1, None, function, None, (1, 2))
    (launch,) = graph.launches
    for change, wanted in (
        (lambda: launch.update(None, (3, 4)), 4),
        (lambda: launch.update(*launch.arguments), 4),
        (lambda: launch.update(**{"pair.1": 5}), 5),
    ):
        change()
        graph.replay()
        assert numbers(fake) == [wanted]
    with pytest.raises(ArgumentCountError, match="a tuple of 2 values is needed"):
        launch.update(None, (1, 2, 3))


def test_scratch_memory_lives_with_a_drivers_graph(level: str) -> None:
    """SCR-06: what an allocator gave is kept as long as the graph, and asked for anew where a grid has grown."""
    fake = FakeDriver()
    source = type("Source", (), {"signature": {"n": "i32"}})
    metadata = {"name": "low", "block": 1, "global_scratch_size": 64}
    launcher = fake.launcher_cls(source, metadata, fake)
    given: list[tuple[int, int]] = []

    class Buffer:
        def __init__(self, size: int, stream: int) -> None:
            given.append((size, stream))
            self.ptr = 0x1000 * len(given)

        def __del__(self) -> None:
            given.append((0, self.ptr))

    with podium.use(fake), podium.use_allocator(lambda size, alignment, stream: Buffer(size, stream)):
        function = podium.module(SOURCE).kernel("other").load()
        with podium.capture() as graph:
            launcher(4, 1, 1, None, function, 1)
        stream = graph.stream.handle
        graph.replay()
        graph.replay()
        graph.launches[0].update(2)
        graph.launches[0].update(grid=2)
        assert given == [(256, stream)]
        graph.launches[0].update(grid=8)
        assert given == [(256, stream), (512, stream), (0, 0x1000)]
        graph.replay()
        assert fake.launches[-1].parameters[1] == (0x2000).to_bytes(8, "little")
    del graph
    gc.collect()
    assert given[-1] == (0, 0x2000)


def test_streams_take_part_by_events(fake: FakeDriver, level: str) -> None:
    """CTX-08: a stream that waits for an event of the capture is captured; one that does not is refused."""
    made, x = kernel(), FakeArray(0x1000)
    stream, alien = podium.Stream(), podium.Stream()
    outside = alien.record()
    with podium.capture() as graph:
        made[1, 1](x, 1)
        with pytest.raises(CaptureError, match="takes no part"):
            made[1, 1](x, 0, stream=stream)
        stream.wait(graph.stream.record())
        made[1, 1](x, 2, stream=stream)
        event = podium.Event()
        event.record(stream)
        graph.stream.wait(event)
        with pytest.raises(CaptureError, match="no place in the capture"):
            stream.wait(outside)
        alien.wait(outside)
        alien.record().synchronize()
        made[1, 1](x, 3)
    graph.replay()
    assert numbers(fake) == [1, 2, 3]
    with pytest.raises(CaptureError, match="a place in a capture"):
        alien.wait(event)
    for use in (event.synchronize, lambda: event.done, lambda: event.elapsed(outside)):
        with pytest.raises(CaptureError, match="recorded in a capture"):
            use()
    event.record(alien)
    event.synchronize()
    assert event.done and outside.elapsed(event) >= 0


def test_work_that_nobody_waits_for(fake: FakeDriver) -> None:
    """The stream of the capture has to wait for all others in the end."""
    made, stream = kernel("other"), podium.Stream()

    def capture(step: int) -> podium.Graph:
        with podium.capture() as graph:
            stream.wait(graph.stream.record())
            made[1, 1](1, stream=stream)
            early = stream.record()
            made[1, 1](2, stream=stream)
            if step:
                graph.stream.wait(early if step == 1 else stream.record())
        return graph

    for step in (0, 1):
        if step == 0 or "graphs" not in fake.features:  # the fake driver does not look closely
            with pytest.raises(CaptureError, match=r"graph\.stream\.wait\(stream\.record\(\)\)|FAKE_ERROR_904|904"):
                capture(step)
    capture(2).replay()
    assert numbers(fake) == [1, 2]


def test_what_cannot_be_done_in_a_capture(fake: FakeDriver) -> None:
    """SCR-07: captures in captures, waiting, replays, and updates are refused, and the capture goes on."""
    made, x = kernel("other"), podium.asarray([1.0])
    with podium.capture() as before:
        made[1, 1](1)
    with podium.capture() as graph:
        refused = {
            "goes on here already": lambda: podium.capture().__enter__(),
            "wait for the whole device": podium.synchronize,
            "for the whole device": x.tolist,
            "nothing to wait for": graph.stream.synchronize,
            "no graph can be replayed": before.replay,
            "other: inside a capture": lambda: before.launches[0].update(2),
            "its capture has not ended yet": graph.replay,
            "has not ended": lambda: graph.launches,
        }
        for text, work in refused.items():
            with pytest.raises(CaptureError, match=text):
                work()
        podium.Stream().synchronize()
        podium.asarray([1.0])
        made[1, 1](3)
        assert repr(graph) == "<podium graph that is being captured on fake device 0>"
    assert not _state.attended() & _state.CAPTURES
    graph.replay()
    assert numbers(fake) == [3]


def test_what_fails_in_a_capture_ends_it(fake: FakeDriver) -> None:
    """An error leaves no capture behind, and no graph; what the driver refuses is in the error."""
    made = kernel("other")
    with pytest.raises(ZeroDivisionError), podium.capture() as graph:
        made[1, 1](1 // 0)
    assert not _state.attended() & _state.CAPTURES and fake.graphs == {}
    assert repr(graph) == "<podium graph whose capture failed on fake device 0>"
    for use in (graph.replay, graph, lambda: graph.launches):
        with pytest.raises(CaptureError, match="its capture failed"):
            use()
    made[1, 1](5)
    assert numbers(fake) == [5]


def test_what_a_driver_refuses(level: str) -> None:
    """Statuses of a launch in a capture, of its end, of a replay and of an update are errors that say what failed."""
    fake = FakeDriver()
    with podium.use(fake):
        made = kernel("other")

        def capture(launch: int, end: int) -> podium.Graph:
            with podium.capture() as graph:
                fake.next_status = launch
                made[1, 1](1)
                fake.next_status = end
            return graph

        with pytest.raises(LaunchError, match="other: FAKE_ERROR_3"):
            capture(3, 0)
        with pytest.raises(CaptureError, match="told to fail with 4") as caught:
            capture(0, 4)
        assert (caught.value.backend, caught.value.status, caught.value.status_name) == ("fake", 4, "FAKE_ERROR_4")
        with pytest.raises(CaptureError, match="default stream"), podium.capture(stream=7000):
            pass
        graph = capture(0, 0)
        for _ in range(2):
            graph.replay()
        fake.next_status = 5
        if level == "generated":
            graph.replay()  # C makes it again in Python, where it works
            fake.next_status = 0
        else:
            with pytest.raises(LaunchError, match=r"graph of 1 launch \(other\): FAKE_ERROR_5"):
                graph.replay()
        fake.next_status = 6
        with pytest.raises(LaunchError, match="other: FAKE_ERROR_6"):
            graph.launches[0].update(9)
        fake.launches.clear()
        graph.replay()
        assert numbers(fake) == [1] and graph.launches[0].arguments == (1,)


def test_a_replay_into_the_capture_of_others(level: str) -> None:
    """A driver's graph is no part of another one: the error says so, at both levels, and nothing is launched."""
    fake = FakeDriver()
    with podium.use(fake):
        made = kernel("other")
        with podium.capture() as graph:
            made[1, 1](1)
        for _ in range(2):
            graph.replay()
        fake.launches.clear()
        fake.captured = True
        for replay in (graph.replay, graph):
            with pytest.raises(CaptureError, match="captured by somebody else") as caught:
                replay()
            assert caught.value.status == 900 and fake.launches == []


def test_nothing_is_loaded_in_a_drivers_capture() -> None:
    """SCR-08: a kernel that is not loaded is an error that says to load it before."""
    fake = FakeDriver()
    with podium.use(fake):
        cold = podium.module(SOURCE).kernel("other")
        with podium.capture() as graph:
            with pytest.raises(LoadError, match=r"Call kernel\.load\(\)"):
                cold[1, 1](1)
            kernel_loaded = podium.module(SOURCE).kernel("other")
            kernel_loaded.load()
            kernel_loaded[1, 1](2)
        graph.replay()
        assert numbers(fake) == [2]


def test_other_threads_and_drivers_are_not_captured(fake: FakeDriver, level: str) -> None:
    """Launches elsewhere are made meanwhile, and two threads capture graphs of their own."""
    made = kernel("other")
    made[1, 1](0)
    fake.launches.clear()
    another = FakeDriver()
    graphs: dict[int, podium.Graph] = {}
    barrier = threading.Barrier(3)

    def work(number: int) -> None:
        with podium.use(fake):
            barrier.wait(60)
            if number == 2:
                made[1, 1](number)
            else:
                with podium.capture() as graph:
                    barrier.wait(60)
                    made[1, 1](number)
                graphs[number] = graph
            if number == 2:
                barrier.wait(60)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers(fake) == [2]
    graphs[0].replay()
    graphs[1].replay()
    assert numbers(fake) == [0, 1]
    with podium.capture() as graph:
        with podium.use(another):
            kernel("other")[1, 1](7)
        made[1, 1](8)
    assert numbers(another) == [7] and numbers(fake) == []
    graph.replay()
    assert numbers(fake) == [8]


def test_a_task_outlives_the_capture_that_it_was_started_in(fake: FakeDriver) -> None:
    """What a task launches is captured while the block goes on, and launched when it has ended."""
    made = kernel("other")

    async def work() -> podium.Graph:
        ended = asyncio.Event()

        async def task() -> None:
            made[1, 1](1)
            await ended.wait()
            with podium.capture(), podium.use(fake):
                pass
            made[1, 1](2)

        with podium.capture() as graph:
            started = asyncio.create_task(task())
            await asyncio.sleep(0)
        with podium.capture():
            made[1, 1](3)
            ended.set()
            await started
        return graph

    graph = asyncio.run(work())
    assert numbers(fake) == [2]
    graph.replay()
    assert numbers(fake) == [1]


def test_a_capture_that_ends_elsewhere_leaves_the_one_there(fake: FakeDriver) -> None:
    """A generator that is closed inside another capture ends its own, and what follows goes on being captured."""
    made = kernel("other")

    def part() -> Iterator[podium.Graph]:
        with podium.capture() as graph:
            yield graph

    other = part()
    contextvars.copy_context().run(next, other)
    with podium.capture() as graph:
        made[1, 1](1)
        other.close()
        made[1, 1](2)
    assert fake.launches == []
    graph.replay()
    assert numbers(fake) == [1, 2]


def test_nobody_waits_while_a_capture_begins() -> None:
    """SCR-07: other threads are refused to wait for the device from before the driver captures; and no longer if it does not."""
    told: list[str] = []

    class Watched(FakeDriver):
        def begin_capture(self, device: int, stream: int) -> None:
            thread = threading.Thread(target=wait)
            thread.start()
            thread.join()
            super().begin_capture(device, stream)

    def wait() -> None:
        try:
            with podium.use(fake):
                podium.synchronize()
        except CaptureError as error:
            told.append(str(error))

    fake = Watched()
    with podium.use(fake):
        with podium.capture():
            pass
        with pytest.raises(CaptureError, match="default stream"), podium.capture(stream=fake.current_stream(0)):
            pass
        podium.synchronize()
    assert len(told) == 2 and all("elsewhere" in text for text in told) and not _state.attended()


def test_a_launch_stays_on_its_device(fake: FakeDriver) -> None:
    """CTX-04: a capture is of one device, and others take part by streams of theirs, where the driver has graphs."""
    made = kernel()
    made.load(1)
    far, near = FakeArray(0x1000, device=1), FakeArray(0x2000)
    stream = podium.Stream(1)
    with podium.capture() as graph:
        with pytest.raises(CaptureError, match="device 1"):
            made[1, 1](far, 1)
        made[1, 1](near, 2)
        stream.wait(graph.stream.record())
        if "graphs" in fake.features:
            made[1, 1](far, 3, stream=stream)
        else:
            with pytest.raises(CaptureError, match="has one device"):
                made[1, 1](far, 3, stream=stream)
        graph.stream.wait(stream.record())
    graph.replay()
    assert [launch.device for launch in fake.launches] == [0, 1][: len(graph.launches)]
    with podium.capture(device=1) as graph:
        made[1, 1](far, 4)
    assert graph.device == graph.stream.device == 1
    graph.replay()
    assert (fake.launches[-1].launched_on, fake.launches[-1].stream) == (1, 7001)


def test_hooks_see_launches_when_they_are_given_to_the_driver(fake: FakeDriver, level: str) -> None:
    """With graphs of the driver that is once, in the capture; else it is in each replay."""
    made = kernel("other")
    seen: list[int] = []
    podium.hooks.enter.add(lambda event: seen.append(int(event.arguments[0].value)))  # type: ignore[call-overload]
    with podium.capture() as graph:
        made[1, 1](1)
        made[1, 1](2)
    in_capture = len(seen)
    for _ in range(2):
        graph.replay()
    assert in_capture == (2 if "graphs" in fake.features else 0)
    assert seen == [1, 2] * (1 if in_capture else 2)
    assert numbers(fake) == [1, 2] * 2


def test_debugging_waits_for_replays(fake: FakeDriver, level: str) -> None:
    """A fault in a replay is told by the replay, which names what was launched."""
    made = kernel("other")
    with podium.debugging():
        with podium.capture() as graph:
            made[1, 1](1)
        graph.replay()
        fake.sync_status = 9
        with pytest.raises(LaunchError, match=r"^(graph of 1 launch \(other\)|other): FAKE_ERROR_9"):
            graph.replay()


def test_a_graph_keeps_what_it_needs_and_no_longer(fake: FakeDriver, level: str) -> None:
    """LIF-04: arguments live as long as the graph, or one of its launches; the driver's graph is given back then."""
    gone: list[str] = []

    class Array(FakeArray):
        def __del__(self) -> None:
            gone.append("array")

    made = kernel()
    with podium.capture() as graph:
        made[1, 1](Array(0x1000), 1)
    made.unload()
    for _ in range(3):
        graph.replay()
    gc.collect()
    assert gone == [] and len(numbers(fake)) == 3
    graph.launches[0].update(x=FakeArray(0x2000))
    gc.collect()
    assert gone == ["array"]
    launches = graph.launches
    del graph
    assert bool(fake.graphs) == ("graphs" in fake.features)
    launches[0].update(n=4)
    del launches
    assert fake.graphs == {}


def test_an_empty_graph_does_nothing(fake: FakeDriver) -> None:
    """A graph without launches can be replayed; launches of empty grids are none."""
    made = kernel("other")
    with podium.capture() as graph:
        made[0, 1](1)
    graph.replay()
    graph()
    assert graph.launches == () and repr(graph) == "<podium empty graph on fake device 0>" and fake.launches == []


def test_graphs_cannot_be_copied(fake: FakeDriver) -> None:
    """A graph belongs to one process."""
    with podium.capture() as graph:
        kernel("other")[1, 1](1)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        for each in (graph, graph.launches[0]):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                duplicate(each)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_is_refused(fake: FakeDriver, level: str) -> None:
    """A child of a process that used the driver gets an error from replays and updates, and gives nothing back."""
    made = kernel("other")
    with podium.capture() as graph:
        made[1, 1](1)
    for _ in range(2):
        graph.replay()
    child = os.fork()
    if not child:
        try:
            for use in (graph.replay, graph, lambda: graph.launches[0].update(2)):
                with pytest.raises(ForkedProcessError):
                    use()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
