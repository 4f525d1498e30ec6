"""What copies between the host and the device take."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from podium._bench.chart import bar_chart
from podium._bench.comparison import bars_of
from podium._bench.turns import Effort, take_turns
from podium._limits import find_device
from podium._memory import empty

if TYPE_CHECKING:
    from podium._bench.progress import Progress
    from podium._bench.report import Report
    from podium.backend import Driver

__all__ = ["measure_copies"]

_SIZES = {"4 KiB": 4 << 10, "16 MiB": 16 << 20}


def measure_copies(report: Report, driver: Driver, effort: Effort, progress: Progress) -> None:
    """Measure copies to the device and back, also from pinned memory where the backend has it."""
    progress.begin("copies", effort.rounds)
    device = driver.current_device()
    stream = driver.current_stream(device)
    ways: dict[str, Callable[[], object]] = {}
    sizes: dict[str, int] = {}
    kept: list[object] = []
    memory_of_device = find_device("the bench", driver, device).memory
    missing = {}
    for text, size in _SIZES.items():
        if size > memory_of_device // 2:
            missing[text] = f"left out: the device has {memory_of_device} bytes"
            continue
        on_device = empty(size, "u8", driver=driver)
        host = ctypes.create_string_buffer(size)
        kept += [on_device, host]
        places = {"": ctypes.addressof(host)}
        if "pinned" in driver.features:
            pinned = empty(size, "u8", pinned=True, driver=driver)
            kept.append(pinned)
            places["pinned memory, "] = pinned.ptr
        for memory, address in places.items():
            there, back = f"{memory}{text}, to the device", f"{memory}{text}, to the host"
            ways[there] = partial(driver.copy, on_device.ptr, address, size, device, stream)
            ways[back] = partial(driver.copy, address, on_device.ptr, size, device, stream)
            sizes[there] = sizes[back] = size
    times = take_turns(ways, effort, between=progress.advance)
    rows = []
    for name in ways:
        lower, upper = (1e6 * seconds for seconds in times.quartiles(name))
        rate = f"{sizes[name] / times.median(name) / 1e9:.3g}"
        rows.append((name, f"{1e6 * times.median(name):.1f}", f"{lower:.1f} to {upper:.1f}", rate))
    rows += [(name, "", "", reason) for name, reason in missing.items()]
    columns = ("copies, each waited for", "median\n(µs)", "quartiles\n(µs)", "GB/s")
    figures = {**times.figures(), **{name: {"reason": reason} for name, reason in missing.items()}}
    for name, size in sizes.items():
        figures[name]["bytes"] = size
    report.table("Copies", columns, rows, figures)
    if ways:
        report.chart(bar_chart("Copies, each waited for", "µs, medians with quartiles", bars_of(times, 1e6, ways)))
