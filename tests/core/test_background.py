"""Work in a thread beside other work: imports that are sure to be needed, and calls without the interpreter lock."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from podium._cache import Cache, cache_key
from podium.backend import BackgroundCall

# A module whose import does not end before the program says so, and two that cannot be imported.
MODULES = {
    "slow_vendor": "import threading\nfrom gate import opened\nopened.wait(20)\nthread = threading.current_thread().name\n",
    "gate": "import threading\nopened = threading.Event()\n",
    "broken_vendor": "raise ImportError('no such library')",
    "failing_vendor": "raise RuntimeError('another version of the driver')",
    "cut_vendor": "raise EOFError('marshal data too short')",
}

BEGIN = """
import os, sys, threading
import gate
from podium._cache import cache_key, default_cache
from podium.backend import import_early

def wait():
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()
"""


def run(folder: Path, program: str) -> list[str]:
    """Run a program that finds the modules above, with a cache of its own; return the lines that it prints."""
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {**os.environ, "PYTHONPATH": path, "PODIUM_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run([sys.executable, "-c", BEGIN + program], env=variables, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


# ---- early imports ----


def test_what_is_sure_to_be_needed_is_imported_in_another_thread(tmp_path: Path) -> None:
    """Where no kernel was ever compiled, the import goes on while its caller does something else."""
    program = """
import_early([], ["slow_vendor"])
print("import_early returned")
gate.opened.set()
wait()
import slow_vendor
print(slow_vendor.thread)
"""
    assert run(tmp_path, program) == ["import_early returned", "podium-background"]


def test_a_process_that_may_find_its_kernels_imports_nothing_of_a_compiler(tmp_path: Path) -> None:
    """With a compiled kernel in the cache, only what every launch needs is imported early, of podium as of a backend."""
    program = """
default_cache().put(cache_key("declaration", "x"), b"x")
default_cache().put(cache_key("kernel", "x"), b"x")
import_early(["colorsys"], ["slow_vendor"])
wait()
print(*(name in sys.modules for name in ("colorsys", "podium._binding", "slow_vendor", "podium._source._parse")))
import_early(["colorsys"], ["slow_vendor"])
print(threading.active_count())
"""
    assert run(tmp_path, program) == ["True True False False", "1"]


def test_what_cannot_be_imported_early_is_said_by_who_needs_it(tmp_path: Path) -> None:
    """A module that is missing or fails in any way is no error of the early import, which goes on with the next one."""
    program = """
gate.opened.set()
import_early(["missing_vendor"], ["broken_vendor", "failing_vendor", "cut_vendor", "slow_vendor"])
wait()
print("slow_vendor" in sys.modules)
try:
    import broken_vendor
except ImportError as error:
    print(error)
"""
    assert run(tmp_path, program) == ["True", "no such library"]


def test_what_a_first_launch_finds_out_is_found_out_early(tmp_path: Path) -> None:
    """`prepare` runs in the thread once launches have their modules, before the long imports; its errors are theirs."""
    program = """
def prepare():
    print(threading.current_thread().name, *(name in sys.modules for name in ("colorsys", "podium._binding", "slow_vendor")))
    gate.opened.set()
    raise OSError("no such folder")
import_early(["colorsys"], ["slow_vendor"], prepare)
wait()
print("slow_vendor" in sys.modules)
"""
    assert run(tmp_path, program) == ["podium-background True True False", "True"]


def test_a_compiler_is_opened_beside_the_imports(tmp_path: Path) -> None:
    """`open_compiler` runs after `prepare` and while a slow import goes on; whatever it raises is for a kernel to say."""
    program = """
from podium.errors import ToolchainError
def open_compiler():
    print("open", flush=True)
    gate.opened.set()  # the import ends no sooner than this
    raise ToolchainError("no such library")
import_early(["colorsys"], ["slow_vendor"], lambda: print("prepare"), open_compiler)
wait()
wait()  # for the thread that began last as well
print("slow_vendor" in sys.modules)
"""
    assert run(tmp_path, program) == ["prepare", "open", "True"]


def test_no_compiler_is_opened_where_kernels_may_be_found(tmp_path: Path) -> None:
    """With a compiled kernel in the cache the compiler stays closed."""
    program = """
default_cache().put(cache_key("kernel", "x"), b"x")
import_early(["colorsys"], ["slow_vendor"], lambda: print("prepare"), lambda: print("open"))
wait()
wait()
"""
    assert run(tmp_path, program) == ["prepare"]


def test_a_subinterpreter_imports_nothing_early(tmp_path: Path) -> None:
    """Modules of vendors belong to the main interpreter, and a thread would keep a subinterpreter from ending."""
    program = """
gate.opened.set()
try:
    import _interpreters
    create = lambda: _interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as _interpreters
    create = lambda: _interpreters.create(isolated=False)
inside = create()
_interpreters.run_string(inside, "from podium.backend import import_early; import sys, threading; "
    "import_early([], ['slow_vendor']); print(threading.active_count(), 'slow_vendor' in sys.modules, flush=True)")
_interpreters.destroy(inside)
"""
    assert run(tmp_path, program) == ["1 False"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_waits_for_an_early_import(tmp_path: Path) -> None:
    """A child has the module whole; half an import, by a thread that it does not have, would never end."""
    program = """
import_early([], ["slow_vendor"])
os.register_at_fork(before=gate.opened.set)  # of such functions the last one is called first
child = os.fork()
if not child:
    print(getattr(sys.modules["slow_vendor"], "thread", "half imported"), threading.active_count(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    assert run(tmp_path, program) == ["podium-background 1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_waits_for_what_an_early_import_has_begun(tmp_path: Path) -> None:
    """The thread that opens the compiler is begun by the one that imports, maybe while a fork waits for that one."""
    program = """
def open_compiler():
    importing.wait(20)
    slow.wait(0.2)  # in vain: the import is over by now
    opened.append("open")
importing, slow, forking, opened = gate.opened, threading.Event(), threading.Event(), []
import_early([], ["slow_vendor"], lambda: forking.wait(20), open_compiler)
os.register_at_fork(before=lambda: (gate.opened.set(), forking.set()))
child = os.fork()
if not child:
    print(*opened, threading.active_count(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    assert run(tmp_path, program) == ["open 1"]


# ---- calls ----


def test_a_call_goes_on_beside_its_caller() -> None:
    """`BackgroundCall` returns at once; `result` waits, and gives the same each time."""
    goes_on = threading.Event()
    call = BackgroundCall(lambda: (goes_on.wait(20), threading.current_thread().name))
    goes_on.set()
    assert call.result() == call.result() == (True, "podium-background")


def test_an_error_of_a_call_is_raised_where_its_result_is_asked_for() -> None:
    """What fails in the thread is done again by the caller, who gets the error, each time."""

    def fail() -> None:
        raise OSError("cannot open shared object file")

    call = BackgroundCall(fail)
    for _ in range(2):
        with pytest.raises(OSError, match="cannot open shared object file"):
            call.result()


def test_without_threads_the_caller_makes_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of the interpreter no thread can be started; the result is the same, and made once."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    made: list[str] = []
    call = BackgroundCall(lambda: made.append(threading.current_thread().name) or len(made))
    assert made == []
    assert (call.result(), call.result(), made) == (1, 1, [threading.current_thread().name])


# ---- what the cache has ----


def test_a_cache_tells_whether_it_has_anything_of_a_kind(cache: Cache, folder: Path) -> None:
    """`has` sees what this process and others have put there, and nothing of other kinds."""
    assert not cache.has("kernel")
    cache.put(cache_key("kernels", "x"), b"x")
    cache.put(cache_key("launcher", "x"), b"x")
    assert not cache.has("kernel")
    assert cache.has("launcher") and Cache(folder, 1 << 30).has("launcher")
    memory = Cache(None, 1 << 30)
    memory.put(cache_key("kernel", "x"), b"x")
    assert memory.has("kernel") and not memory.has("launcher")
