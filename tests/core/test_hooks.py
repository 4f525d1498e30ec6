"""Hooks see every launch, compile and load, in order, at both levels and whenever they were added."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest
from fake_launching import load, make_launcher

import podium
from podium import _state
from podium._hooks import CompileEvent, LaunchEvent, LoadEvent
from podium.errors import ArgumentTypeError, LaunchError
from podium.testing import FakeArray, FakeDriver

SOURCE = "__global__ void k(float* x, int n, double a) {}"


@pytest.fixture
def launch(fake: FakeDriver, level: str) -> Any:
    """A kept launch of a warm kernel."""
    kernel = podium.kernel(SOURCE)
    kernel[3, (4, 2)](None, 1, 2.0)
    fake.launches.clear()
    return kernel[3, (4, 2)]


def test_a_hook_added_after_the_first_launch_sees_the_next(fake: FakeDriver, launch: Any) -> None:
    """HKS-01: every launch looks at the hooks: kept launches, fresh ones, and the low-level launcher."""
    seen: list[Any] = []
    launch(None, 1, 2.0)
    podium.hooks.enter.add(seen.append)
    launch(None, 1, 2.0)
    assert len(seen) == 1
    launch(None, n=1, a=2.0)
    launch(None, 1, 2.0, stream=4)
    low_level = make_launcher(fake, "i32")
    low_level(1, 1, 1, 0, load(fake, low_level.signature), 1)
    assert len(seen) == 4
    podium.hooks.enter.remove(seen.append)
    launch(None, 1, 2.0)
    low_level(1, 1, 1, 0, load(fake, low_level.signature), 1)
    assert len(seen) == 4
    assert len(fake.launches) == 7


def test_what_a_hook_is_told(fake: FakeDriver, launch: Any) -> None:
    """Hooks get kernel, backend, device, stream, grid, block, shared bytes and what is known of the arguments."""
    events: list[LaunchEvent] = []
    podium.hooks.enter.add(events.append)
    launch(FakeArray(0x40, 1), True, 2, stream=9, shared=16)
    (event,) = events
    assert (event.kernel, event.backend, event.device, event.stream) == ("k", "fake", 1, 9)
    assert (event.grid, event.block, event.shared) == ((3, 1, 1), (4, 2, 1), 16)
    x, n, a = event.arguments
    assert (x.name, x.type, x.address, x.value) == ("x", "*fp32", 0x40, None)
    assert (n.name, n.type, n.address, n.value) == ("n", "i32", None, True)
    assert (a.name, a.type, a.address, a.value) == ("a", "fp64", None, 2)


def test_enter_in_order_and_exit_in_reverse(fake: FakeDriver, launch: Any) -> None:
    """HKS-06: several tools form a chain: entered first to last, left last to first, around the driver's call."""
    order: list[str] = []
    for name in "ab":
        podium.hooks.enter.add(lambda event, name=name: order.append(f"enter {name} {len(fake.launches)}"))
        podium.hooks.exit.add(lambda event, name=name: order.append(f"exit {name} {len(fake.launches)}"))
    launch(None, 1, 2.0)
    assert order == ["enter a 0", "enter b 0", "exit b 1", "exit a 1"]


def test_enter_and_exit_share_one_event(launch: Any) -> None:
    """What a hook keeps in `data` at enter is there at exit, with the seconds that the launch took."""
    ends: list[LaunchEvent] = []

    def enter(event: LaunchEvent) -> None:
        assert event.seconds is None and event.error is None
        event.data["mine"] = 5

    podium.hooks.enter.add(enter)
    podium.hooks.exit.add(ends.append)
    launch(None, 1, 2.0)
    assert ends[0].data == {"mine": 5}
    assert ends[0].seconds is not None and ends[0].seconds >= 0
    assert ends[0].error is None


def test_removal_is_by_identity(launch: Any) -> None:
    """HKS-06: the function added last is removed first; equal functions are not mixed up; a stranger is an error."""

    class Equal:
        def __init__(self) -> None:
            self.calls = 0

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = object.__hash__

        def __call__(self, event: object) -> None:
            self.calls += 1

    first, second = Equal(), Equal()
    chain = podium.hooks.enter
    chain.add(first)
    chain.add(second)
    chain.add(first)
    chain.remove(second)
    launch(None, 1, 2.0)
    assert (first.calls, second.calls) == (2, 0)
    chain.add(second)
    chain.add(first)
    chain.remove(first)  # the one added last
    assert [each is first for each in chain.functions()] == [True, True, False]
    chain.remove(second)
    chain.remove(first)
    assert chain.functions() == (first,) and chain.any()
    chain.remove(first)
    assert not chain.any()
    for function in (first, print, None):
        with pytest.raises(ValueError, match="is not among the hooks"):
            chain.remove(function)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a function of one argument"):
        chain.add(5)  # type: ignore[arg-type]
    assert _state.attended() == 0


def test_functions_and_methods_of_classes(launch: Any) -> None:
    """HKS-03: a plain function that lives on a class, a bound method and a class method get one argument each."""
    seen: list[Any] = []

    class Tool:
        def function(event: Any) -> None:  # type: ignore[misc]  # noqa: N805
            seen.append(("function", event))

        def method(self, event: Any) -> None:
            seen.append(("method", event))

        @classmethod
        def of_class(cls, event: Any) -> None:
            seen.append(("class", event))

    tool = Tool()
    for hook in (Tool.function, tool.method, Tool.of_class):
        podium.hooks.enter.add(hook)
    launch(None, 1, 2.0)
    assert [name for name, _ in seen] == ["function", "method", "class"]
    assert all(isinstance(event, LaunchEvent) for _, event in seen)
    podium.hooks.enter.remove(tool.method)  # a new object each time, but the same method
    podium.hooks.enter.remove(Tool.of_class)
    assert podium.hooks.enter.functions() == (Tool.function,)


def test_hooks_are_told_by_a_method_only() -> None:
    """HKS-02: whether there are hooks is a method; a chain is never None and has no truth of its own to trust."""
    for chain in (podium.hooks.enter, podium.hooks.exit, podium.hooks.compile, podium.hooks.load):
        assert chain.any() is False
        assert chain.functions() == ()


@pytest.mark.parametrize("error", [ZeroDivisionError("enter"), KeyboardInterrupt()])
def test_an_enter_hook_that_raises_stops_the_launch(fake: FakeDriver, launch: Any, error: BaseException) -> None:
    """HKS-05: the launch does not happen, later enter hooks do not run, all exit hooks do and see the error."""
    ends: list[LaunchEvent] = []
    entered: list[object] = []

    def fail(event: object) -> None:
        raise error

    podium.hooks.enter.add(fail)
    podium.hooks.enter.add(entered.append)
    podium.hooks.exit.add(ends.append)
    with pytest.raises(type(error)):
        launch(None, 1, 2.0)
    assert fake.launches == [] and entered == []
    assert ends[0].error is error
    podium.hooks.enter.remove(fail)
    launch(None, 1, 2.0)
    assert len(fake.launches) == 1


def test_all_exit_hooks_run_though_some_raise(fake: FakeDriver, launch: Any) -> None:
    """HKS-05: an exit hook that raises neither undoes the launch nor keeps the others from their work."""
    order: list[str] = []

    def failing(name: str) -> Any:
        def fail(event: object) -> None:
            order.append(name)
            raise RuntimeError(name)

        return fail

    podium.hooks.exit.add(lambda event: order.append("first added"))
    podium.hooks.exit.add(failing("b"))
    podium.hooks.exit.add(failing("c"))
    with pytest.raises(RuntimeError, match="b") as caught:
        launch(None, 1, 2.0)
    assert order == ["c", "b", "first added"]
    assert str(caught.value.__context__) == "c"
    assert len(fake.launches) == 1


def test_exit_hooks_see_a_refused_launch(fake: FakeDriver, launch: Any) -> None:
    """A status of the driver reaches the exit hooks as the error that the caller gets."""
    ends: list[LaunchEvent] = []
    podium.hooks.exit.add(ends.append)
    fake.next_status = 5
    with pytest.raises(LaunchError) as caught:
        launch(None, 1, 2.0)
    assert ends[0].error is caught.value


def test_wrong_arguments_are_no_launch(launch: Any) -> None:
    """Arguments are checked before any hook runs: what is no launch is not shown as one."""
    seen: list[object] = []
    podium.hooks.enter.add(seen.append)
    podium.hooks.exit.add(seen.append)
    with pytest.raises(ArgumentTypeError):
        launch(None, "n", 2.0)
    assert seen == []


def test_hooks_may_change_the_hooks(fake: FakeDriver, launch: Any) -> None:
    """A hook that removes itself runs once; one added by a hook runs from the next launch on."""
    calls: list[str] = []

    def once(event: object) -> None:
        calls.append("once")
        podium.hooks.enter.remove(once)
        podium.hooks.enter.add(lambda event: calls.append("later"))

    podium.hooks.enter.add(once)
    launch(None, 1, 2.0)
    assert calls == ["once"]
    launch(None, 1, 2.0)
    assert calls == ["once", "later"]


def test_hooks_may_launch(fake: FakeDriver, launch: Any) -> None:
    """A hook that launches a kernel itself gets its own event and no endless loop of podium's making."""
    other = podium.kernel("__global__ void other() {}")
    depth: list[str] = []

    def enter(event: LaunchEvent) -> None:
        depth.append(event.kernel)
        if event.kernel == "k":
            other[1, 1]()

    podium.hooks.enter.add(enter)
    launch(None, 1, 2.0)
    assert depth == ["k", "other"]
    assert [each.kernel for each in fake.launches] == ["other", "k"]


def test_hooks_see_the_launches_of_all_threads_and_tasks(fake: FakeDriver, launch: Any) -> None:
    """Hooks belong to the process: launches in other threads and tasks are seen, too."""
    seen: list[int] = []
    podium.hooks.enter.add(lambda event: seen.append(threading.get_ident()))
    thread = threading.Thread(target=launch, args=(None, 1, 2.0))
    thread.start()
    thread.join()

    async def task() -> None:
        launch(None, 1, 2.0)

    asyncio.run(task())
    assert len(seen) == 2 and len(set(seen)) == 2


def test_compile_and_load_hooks(fake: FakeDriver, level: str) -> None:
    """A compile is reported once per target, cached or not, a load once per device."""
    compiles: list[CompileEvent] = []
    loads: list[LoadEvent] = []
    podium.hooks.compile.add(compiles.append)
    podium.hooks.load.add(loads.append)
    for cached in (False, True):
        kernel = podium.kernel(SOURCE)
        for device in (0, 1, 0):
            kernel[1, 1](FakeArray(64, device), 1, 2.0)
        event = compiles.pop()
        assert (event.kernel, event.target, event.cached) == ("k", "fake:fake_1:32", cached)
        assert event.seconds >= 0 and compiles == []
        assert [(each.kernel, each.backend, each.device) for each in loads] == [("k", "fake", 0), ("k", "fake", 1)]
        loads.clear()


def test_without_hooks_nobody_is_asked(
    fake: FakeDriver, launch: Any, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HKS-01: with no hooks the generated level calls no Python at all for a plain launch."""
    calls: list[str] = []
    original = FakeDriver.launch

    def counted(self: FakeDriver, *args: Any) -> int:
        calls.append("launch")
        return original(self, *args)

    monkeypatch.setattr(FakeDriver, "launch", counted)
    launch(None, 1, 2.0)
    assert calls == (["launch"] if level == "interpreted" else [])
    podium.hooks.enter.add(lambda event: None)
    launch(None, 1, 2.0)
    assert len(calls) == (2 if level == "interpreted" else 1)


def test_hooks_that_come_while_others_go_are_seen(
    fake: FakeDriver, launch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HKS-01: an exit hook removed at the moment at which an enter hook is added does not hide the new one."""
    attend = _state.attend
    seen: list[Any] = []
    threads: list[threading.Thread] = []

    def interrupted(reason: int, wanted: bool) -> None:
        """Let another thread add a hook between the look at the chains and what comes of it."""
        monkeypatch.setattr(_state, "attend", attend)
        thread = threading.Thread(target=podium.hooks.enter.add, args=(seen.append,))
        thread.start()
        thread.join(0.5)  # it waits for this one to be done with, or is through at once
        threads.append(thread)
        attend(reason, wanted)

    podium.hooks.exit.add(print)
    monkeypatch.setattr(_state, "attend", interrupted)
    podium.hooks.exit.remove(print)
    for thread in threads:
        thread.join()
    launch(None, 1, 2.0)
    assert len(threads) == 1 and len(seen) == 1
    podium.hooks.enter.remove(seen.append)
    assert not _state.attended()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_while_hooks_are_being_changed() -> None:
    """ACT-06, HKS-01: a child forked while another thread adds a hook adds and removes its own, and does not hang."""
    program = """
        import os, signal, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # it forks beside a thread: that is the point
        import podium
        from podium import _state
        attend, inside, go_on = _state.attend, threading.Event(), threading.Event()

        def blocked(reason, wanted):
            inside.set()
            go_on.wait()
            attend(reason, wanted)

        _state.attend = blocked
        thread = threading.Thread(target=podium.hooks.enter.add, args=(print,))
        thread.start()
        inside.wait()
        _state.attend = attend
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            podium.hooks.enter.clear()
            podium.hooks.exit.add(repr)
            assert _state.attended() & _state.HOOKS
            podium.hooks.exit.remove(repr)
            assert not _state.attended() & _state.HOOKS
            os._exit(7)
        status = os.waitpid(child, 0)[1]
        go_on.set()
        thread.join()
        assert _state.attended() & _state.HOOKS
        print(os.WEXITSTATUS(status) if os.WIFEXITED(status) else "hung")
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120)
    assert (run.stdout.split(), run.stderr) == (["7"], "")
