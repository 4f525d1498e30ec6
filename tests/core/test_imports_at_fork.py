"""Forks wait for imports that another thread is making for podium, so that children can import the same modules."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import importlib.abc, os, signal, sys, threading, warnings
import podium

warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads

reached, forking = threading.Event(), threading.Event()

class Gate(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1] and not reached.is_set():
            reached.set()
            forking.wait()

sys.meta_path.insert(0, Gate())
first = threading.Thread(target=lambda: podium.LaunchConfig(1, 2))
first.start()
reached.wait()
os.register_at_fork(before=forking.set)  # run before those of podium, which came earlier
child = os.fork()
if child == 0:
    signal.alarm(int(sys.argv[2]))  # what waits for a thread that is not there is ended
    print(podium.LaunchConfig(3, 4).grid, flush=True)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
first.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.parametrize("name", ["podium._launch_config", "podium._record"])
def test_a_child_imports_what_was_being_imported(name: str) -> None:
    """ACT-05: a child that needs a module which a thread was importing at the fork gets it, and does not hang."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, name, "60"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "(3, 1, 1)\n")
