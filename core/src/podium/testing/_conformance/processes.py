"""Processes: forked and spawned children, and several that share one cache."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from podium.backend import Driver
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import TIMEOUT, Subject, bad

__all__ = ["Processes"]

_FORK = """
import os, signal, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking with threads, which is the point

kernel = child.add_kernel()
{before}
process = os.fork()
if process == 0:
    signal.alarm(100)  # a child that hangs dies of this, and not silently
    status = 1
    try:
        {inside}
        status = 0
    except podium.errors.ForkedProcessError as error:
        status = 2 if error.backend == driver_class.name and error.parent == os.getppid() else 3
    finally:
        os._exit(status)
status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
{after}
print(status)
"""


@contract("Streams and devices")
class Processes(Subject):
    """What becomes of a driver in other processes."""

    def test_detecting_and_then_forking(self, driver: Driver, compiled: None) -> None:
        """A child that was forked after the backend was chosen, but not used, launches.

        Rows ACT-05.
        """
        status = self._fork("podium.driver.resolve()", "child.launch_add(executes, kernel)")
        assert status == 0

    def test_launching_in_a_forked_child(self, driver: Driver, compiled: None) -> None:
        """After a launch in the parent, a child launches rightly or gets ForkedProcessError, and never hangs.

        Rows ACT-06.
        """
        for inside in ("child.launch_add(executes, kernel)", "child.launch_add(executes)"):
            status = self._fork("child.launch_add(executes, kernel)", inside)
            assert status == (0 if self.driver_class.fork_safe else 2), f"the child ended with {status}"

    def test_forking_with_kernels_that_are_never_used(self, driver: Driver, compiled: None) -> None:
        """A child that launches nothing ends well, though it drops the kernels and arrays of its parent.

        Rows ACT-06, LIF-02.
        """
        status = self._fork(
            "x = podium.asarray([1, 2, 3]); child.launch_add(executes, kernel)",
            "import gc; del x, kernel; gc.collect()",
        )
        assert status == 0

    def test_compiling_in_a_forked_child(self, driver: Driver, compiled: None) -> None:
        """Compiling for a target that was given works in a forked child.

        Rows ACT-06, ACT-11.
        """
        status = self._fork(
            "child.launch_add(executes, kernel)\ntarget = podium.driver.active.default_target()",
            'podium.kernel(child.ADD + "// another", "add", signature="x: *i32, a: i32").compile(target)',
        )
        assert status == 0

    def test_spawned_workers(self, driver: Driver, tmp_path: Path) -> None:
        """Processes that start at once with an empty cache all launch rightly.

        Rows CAC-01, CAC-03.
        """
        commands = [self.command("child.launch_add(executes)", cache=tmp_path, level="generated") for _ in range(3)]
        workers = [
            subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for command, variables in commands
        ]
        for worker in workers:
            try:
                stdout, stderr = worker.communicate(timeout=TIMEOUT)
            except subprocess.TimeoutExpired:
                for each in workers:
                    each.kill()
                    each.communicate()
                pytest.fail("the workers hang")
            process = subprocess.CompletedProcess(worker.args, worker.returncode, stdout, stderr)
            assert worker.returncode == 0, bad(process)

    def _fork(self, before: str, inside: str, after: str = "child.launch_add(executes, kernel)") -> int:
        """Run code before a fork, in the child, and in the parent afterwards; return the status of the child."""
        if not hasattr(os, "fork"):
            pytest.skip("this system does not fork")
        if "del" in inside:
            after = "child.launch_add(executes)"
        process = self.python(_FORK.format(before=before, inside=inside, after=after))
        assert process.returncode == 0, bad(process)
        return int(process.stdout.split()[-1])
