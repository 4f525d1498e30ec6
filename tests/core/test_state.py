"""The words that generated C and Python share: who watches launches, and the last of them."""

from __future__ import annotations

import ctypes
import re
import threading
from typing import Any

import pytest
from fake_launching import LEVELS, load, make_launcher

import podium
from podium import _state
from podium._extension import INCLUDE_DIR
from podium.testing import FakeArray, FakeDriver


def test_the_layout_is_that_of_the_c_header(tmp_path: Any) -> None:
    """Python and C agree on where each word of the state is."""
    import subprocess
    import sys

    fields = ["attended", "launches", "recent", "recent[1]"]
    fields += [f"recent[0].{name}" for name in ("kernel", "stream", "grid", "block", "device")]
    lines = "".join(f'printf("%zu\\n", offsetof(struct podium_state, {each}));' for each in fields)
    (tmp_path / "probe.c").write_text(
        f'#include <stdio.h>\n#define PODIUM_API 1\n#include "podium_launch.h"\nint main(void) {{ {lines} printf("%zu\\n", sizeof(struct podium_state)); }}'
    )
    flags = [f"-DPODIUM_PYTHON_MINOR={sys.version_info.minor}", f"-I{INCLUDE_DIR}", "-w", "-O1", "-ffunction-sections"]
    # what the header wants of a backend is declared there and never called here
    subprocess.run(
        ["cc", *flags, "probe.c", "-o", "probe", "-Wl,--gc-sections,--unresolved-symbols=ignore-all"],
        cwd=tmp_path,
        check=True,
    )
    told = list(
        map(int, subprocess.run([tmp_path / "probe"], capture_output=True, text=True, check=True).stdout.split())
    )
    launch = _state._Launch
    size, start = ctypes.sizeof(launch), _state._State.recent.offset
    mine = [_state._State.attended.offset, _state._State.launches.offset, start, start + size]
    mine += [start + getattr(launch, name).offset for name in ("kernel", "stream", "grid", "block", "device")]
    assert told == [*mine, ctypes.sizeof(_state._State)]
    sizes = re.findall(
        r"recent\[(\d+)\];|% (\d+)\)", "".join(path.read_text() for path in sorted(INCLUDE_DIR.glob("*.h")))
    )
    assert {int(one or two) for one, two in sizes} == {_state.RECENT_SIZE}


def test_both_levels_record_alike() -> None:
    """LIF-08: a launch is recorded with the same words whichever level made it, a refused one too."""
    records = []
    for level in LEVELS:
        driver = FakeDriver()
        launcher = make_launcher(driver, "*fp32", level=level, block=(2, 3, 1), num_ctas=2, name="noted")
        function = load(driver, launcher.signature)
        launcher(4, 5, 6, 2**63, function, FakeArray(64, 1))
        driver.next_status = 3
        with pytest.raises(podium.errors.LaunchError):  # type: ignore[attr-defined]
            launcher(7, 1, 1, 9, function, None)
        records.append(
            [(each.kernel, each.grid, each.block, each.device, each.stream) for each in podium.recent_launches()[-2:]]
        )
    assert records[0] == records[1]
    assert records[0][0] == ("noted", (8, 5, 6), (2, 3, 1), 1, 2**63)
    assert records[0][1] == ("noted", (14, 1, 1), (2, 3, 1), 0, 9)


def test_numbers_count_all_launches() -> None:
    """The number of a launch in the record goes on beyond the size of the record."""
    launcher = make_launcher(FakeDriver(), "i32", level="generated")
    function = load(launcher.driver, launcher.signature)
    launcher(1, 1, 1, 0, function, 1)
    first = podium.recent_launches()[-1].number
    for _ in range(200):
        launcher(1, 1, 1, 0, function, 1)
    recent = podium.recent_launches()
    assert recent[-1].number == first + 200
    assert [each.number for each in recent] == list(range(first + 137, first + 201))


def test_reasons_to_attend_are_independent() -> None:
    """Hooks, debugging and a fork each have a bit of their own; switching one off leaves the others."""
    assert _state.attended() == 0
    _state.attend(_state.HOOKS, True)
    _state.attend(_state.DEBUG, True)
    _state.attend(_state.HOOKS, True)
    _state.attend(_state.HOOKS, False)
    assert _state.attended() == _state.DEBUG
    _state.attend(_state.DEBUG, False)
    assert _state.attended() == 0
    assert len({_state.HOOKS, _state.DEBUG, _state.FORKED}) == 3


def test_hooks_in_threads_leave_no_bit_behind() -> None:
    """HKS-01: hooks added and removed in many threads end with the word as it was."""

    def work() -> None:
        for _ in range(300):
            podium.hooks.enter.add(print)
            podium.hooks.enter.remove(print)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _state.attended() == 0 and not podium.hooks.enter.any()
