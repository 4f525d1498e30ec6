"""The end of a process, and of a compilation that is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from podium.backend import Driver
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import TIMEOUT, Subject, bad

__all__ = ["Shutdown"]

_ENDINGS = {
    "live kernels and arrays": (
        "kernel = child.add_kernel(); x = podium.asarray([1]); kernel[1, 1](x, 1); keep = kernel[1, 1]"
    ),
    "a cycle of kernels": (
        "import sys; sys.keep = []; kernel = child.add_kernel(); kernel.own = [kernel, podium.asarray([1])]; "
        "kernel[1, 1](kernel.own[1], 1); sys.keep.append(kernel)"
    ),
    "hooks": "podium.hooks.enter.add(print); podium.hooks.enter.clear(); child.launch_add(executes)",
    "an exit function that launches": "import atexit; atexit.register(child.launch_add, executes)",
    "a daemon thread that launches": (
        "import threading\n"
        "kernel = child.add_kernel(); kernel.warm_up(); x = podium.asarray([0]); launched = threading.Event()\n"
        "def work():\n"
        "    while True:\n"
        "        kernel[1, 1](x, 1); launched.set()\n"
        "threading.Thread(target=work, daemon=True).start(); launched.wait()"
    ),
    "sys.exit in a launch": (
        "import sys\ndef leave(event): sys.exit(0)\npodium.hooks.enter.add(leave); child.launch_add(executes)"
    ),
}

_INTERRUPTED = """
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
repeats = int(os.environ["REPEATS"])
body = " ".join(f"y = y * {index + 3} + x[{index} % n]; if (y > 5) y -= {index + 1};" for index in range(repeats))
source = f'extern "C" __global__ void large(int* x, int n) {{ int y = n; {body} x[0] = y; }}'
kernel = podium.kernel(source, "large", signature="x: *i32, n: i32")
child.launch_add(executes)
try:
    print("begin", flush=True)
    kernel.load()
    print("finished", flush=True)
    while True:
        time.sleep(0.02)  # the signal is under way
except KeyboardInterrupt:
    print("interrupted", flush=True)
child.launch_add(executes)
child.launch_add(executes, podium.kernel(child.ADD.replace("add", "more"), "more", signature="x: *i32, a: i32"))
print("launched", flush=True)
"""


@contract("Errors")
class Shutdown(Subject):
    """How processes end."""

    @pytest.mark.parametrize("name", ["auto", "generated"])  # "auto" launches in Python, and builds the C meanwhile
    @pytest.mark.parametrize("ending", sorted(_ENDINGS))
    def test_a_process_ends_silently(self, driver: Driver, compiled: None, ending: str, name: str) -> None:
        """A process ends with status 0 and nothing on stderr, whatever is alive or being built then.

        Rows LIF-02, LIF-03.
        """
        process = self.python(_ENDINGS[ending], level=name)
        assert process.returncode == 0, bad(process)
        assert process.stderr == "", bad(process)

    @pytest.mark.needs("compiles")
    @pytest.mark.skipif(sys.platform == "win32", reason="signals are another matter there")
    def test_an_interrupted_compilation(self, driver: Driver, tmp_path: Path) -> None:
        """Ctrl-C during a compilation is a KeyboardInterrupt, leaves no files, and the next launch works.

        Rows CAC-09, CAC-19.
        """
        for attempt, repeats in enumerate((400, 2_000, 10_000, 40_000)):
            temporary, cache = tmp_path / f"tmp{attempt}", tmp_path / f"cache{attempt}"
            temporary.mkdir()
            output = self._interrupt(cache, temporary, repeats)
            assert list(temporary.iterdir()) == [], "files are left behind"
            assert not list(cache.rglob("new/*")), "unfinished cache entries are left behind"
            if "finished" not in output:
                return
        pytest.skip("the compiler was too fast to be interrupted")

    def _interrupt(self, cache: Path, temporary: Path, repeats: int) -> list[str]:
        command, variables = self.command(_INTERRUPTED, cache=cache, TMPDIR=str(temporary), REPEATS=str(repeats))
        with subprocess.Popen(
            command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            if first.strip() == "begin":
                # to the group, as a terminal does: compilers that are processes of their own get it too
                os.killpg(process.pid, signal.SIGINT)
            try:
                stdout, stderr = process.communicate(timeout=TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                pytest.fail("the process hangs after Ctrl-C")
        done = subprocess.CompletedProcess(command, process.returncode, first + stdout, stderr)
        assert process.returncode == 0, bad(done)
        assert "interrupted" in stdout and "launched" in stdout, bad(done)
        return stdout.split()
