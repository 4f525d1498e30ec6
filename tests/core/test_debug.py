"""The debug switch: each launch waits and names itself when it failed."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import podium
from podium import _state
from podium.errors import ArgumentTypeError, LaunchError, SettingError
from podium.testing import FakeDriver

SOURCE = "__global__ void k(float* x, int n) {}"


@pytest.fixture
def kernel(fake: FakeDriver, level: str) -> podium.Kernel:
    kernel = podium.kernel(SOURCE)
    kernel[1, 1](None, 1)
    return kernel


def test_debugging_finds_the_launch_at_fault(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """LIF-08: with the switch on, what a launch did wrong is raised by that launch, without a list of suspects."""
    fake.sync_status = 700
    kernel[2, 1](None, 1)  # off: nobody waits
    assert fake.sync_status == 700
    with podium.debugging(), pytest.raises(LaunchError) as caught:
        kernel[3, 1](None, 1)
    error = caught.value
    assert (error.status, error.kernel, error.grid, error.device) == (700, "k", (3, 1, 1), 0)
    assert "an earlier launch" not in str(error)


def test_without_debugging_a_late_error_lists_suspects(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """LIF-08: synchronize() raises with the last launches in the message."""
    kernel[6, 1](None, 1)
    fake.sync_status = 700
    with pytest.raises(LaunchError, match=r"earlier launch may be at fault(.|\n)*k grid \(6, 1, 1\)"):
        podium.synchronize()
    podium.synchronize()
    podium.synchronize(1, stream=5)


def test_the_switch_is_scoped_and_global(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """set_debug holds until it is taken back; a block puts back what was before, also after an error."""
    assert _state.attended() == 0
    podium.set_debug(True)
    with podium.debugging():
        pass
    assert _state.attended() == _state.DEBUG
    podium.set_debug(False)
    with pytest.raises(ZeroDivisionError), podium.debugging():
        raise ZeroDivisionError
    assert _state.attended() == 0


def test_debugging_and_hooks_go_together(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """The error of a debugged launch reaches the exit hooks."""
    ends: list[object] = []
    podium.hooks.exit.add(lambda event: ends.append(event.error))
    fake.sync_status = 3
    with podium.debugging(), pytest.raises(LaunchError) as caught:
        kernel[1, 1](None, 1)
    assert ends == [caught.value]


def test_debugging_changes_nothing_else(fake: FakeDriver, kernel: podium.Kernel) -> None:
    """The same launches and the same errors, with the switch on and off."""
    for _ in range(2):
        kernel[4, 2](64, 3, stream=8)
        with pytest.raises(ArgumentTypeError):
            kernel[4, 2](64, "n")
        podium.set_debug(True)
    assert fake.launches[-1] == fake.launches[-2]


@pytest.mark.parametrize(("value", "on"), [("1", True), ("0", False), ("", False), ("yes", True), ("off", False)])
def test_the_variable_is_read_at_the_start(value: str, on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """PODIUM_DEBUG=1 begins with debugging on."""
    monkeypatch.setenv("PODIUM_DEBUG", value)
    monkeypatch.setenv("PODIUM_LAUNCHER", "interpreted")
    program = (
        "import podium; from podium import _debug; from podium.testing import FakeDriver; "
        "podium.driver.register(FakeDriver); podium.set_active('fake'); "
        "podium.kernel('', 'k', signature='i32')[1, 1](1); print(_debug.enabled())"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(on)


def test_a_value_that_means_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """PODIUM_DEBUG=maybe is refused with what is expected."""
    monkeypatch.setenv("PODIUM_DEBUG", "maybe")
    from podium import _settings

    with pytest.raises(SettingError, match="PODIUM_DEBUG='maybe' is not valid: expected 0 or 1"):
        _settings.debug()


def test_an_error_in_the_users_process_names_the_kernel(level: str) -> None:
    """LIF-08: a program run with PODIUM_DEBUG=1 ends in the name of the kernel at fault."""
    program = """
        import podium
        from podium.testing import FakeDriver
        driver = FakeDriver()
        podium.set_active(driver)
        good = podium.kernel("__global__ void good() {}")
        bad = podium.kernel("__global__ void bad() {}")
        good[1, 1]()
        driver.sync_status = 9
        bad[1, 1]()
        good[1, 1]()
    """
    import os

    environment = {**os.environ, "PODIUM_DEBUG": "1"}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith("podium.errors.LaunchError: bad: FAKE_ERROR_9")
