"""The interpreter lock, and what a launch asks the driver, on the recording CUDA driver."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from nvidia_recorded import kernels
from recording.cuda.library import Recording

import podium
from podium._state import _state


def test_a_full_queue_lets_other_threads_run(recording: Recording, level: str) -> None:
    """A launch or a replay that waits in the driver holds no interpreter lock: the thread that lets it go on can run."""
    module = kernels()
    arrays = [podium.empty(64, "fp32", device=device) for device in (0, 1)]
    stream = podium.Stream(device=1)
    module["saxpy"].load()
    with podium.capture() as graph:
        module["saxpy"][2, 32](arrays[0], arrays[0], 2.0, 64)
    launches: list[Callable[[], object]] = [
        lambda: module["saxpy"][2, 32](arrays[0], arrays[0], 2.0, 64),
        lambda: module["saxpy"][2, 32](arrays[1], arrays[1], 2.0, 64),
        lambda: module["saxpy"][2, 32](arrays[1], arrays[1], 2.0, 64, stream=stream),
        lambda: module["nothing"][podium.LaunchConfig(4, 32, cluster=2, cooperative=True)](),
        graph.replay,
        graph,
    ]
    problems: list[BaseException] = []

    def work(launch: Callable[[], object], is_warm: threading.Event, go: threading.Event) -> None:
        try:
            launch()
            is_warm.set()
            go.wait()
            launch()
        except BaseException as error:
            problems.append(error)
            is_warm.set()

    for launch in launches:
        before, is_warm, go = recording.launch_count(), threading.Event(), threading.Event()
        thread = threading.Thread(target=work, args=(launch, is_warm, go))
        thread.start()
        is_warm.wait()
        with recording.full_queue() as wait:
            go.set()
            wait()
        thread.join()
        assert problems == []
        assert recording.launch_count() == before + 2


def test_one_device_is_not_asked_for(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is one device, a launch in the default stream asks the driver nothing, and needs no context before."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
    recording.set_device_count(1)
    x = podium.empty(64, "fp32")
    kernel = kernels()["saxpy"]
    for _ in range(2):
        kernel[2, 32](x, x, 2.0, 64)
    launch = kernel[2, 32]
    before = recording.calls()
    for _ in range(5):
        launch(x, x, 2.0, 64)
        launch(x.ptr, None, 2.0, 64)
    now = recording.calls()
    assert {name: now[name] - before[name] for name in now if now[name] != before[name]} == {"cuLaunchKernel": 10}
    depths = []

    def work() -> None:
        for _ in range(3):
            launch(x, x, 2.0, 64)
            depths.append(recording.context_depth())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert depths == [1, 1, 1] and recording.counters()["retained"] == 1
    recording.fail("cuLaunchKernel", 201)
    with pytest.raises(podium.errors.LaunchError, match="INVALID_CONTEXT"):  # type: ignore[attr-defined]
        launch(x, x, 2.0, 64)


def test_a_thread_that_launches_alone_again_takes_no_turns(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once others have launched, a thread takes turns until it has launched 65536 times with none between."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
    launch = kernels()["nothing"][1, 32]
    launch()
    other = threading.Thread(target=launch)
    other.start()
    other.join()
    launch()
    first = _state.alone
    launch()
    assert first % 2 == 1 and _state.alone == first + (1 << 48)
    assert _state.turn != 0
    _state.alone |= 0xFFFF << 48  # as after as many
    launch()
    assert _state.alone == first % (1 << 48) - 1 and _state.turn == 0
    launch()
    assert _state.alone == first % (1 << 48) - 1 and _state.turn == 0
    other = threading.Thread(target=launch)
    other.start()
    other.join()
    assert _state.alone % 2 == 1
