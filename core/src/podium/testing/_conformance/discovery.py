"""Discovery and detection: the plug-in, and what asking a backend for its reason may do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import podium
from podium._plugin_api import spoken
from podium._plugins import BY_HAND, probe
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import TIMEOUT, Subject, bad

__all__ = ["Detection", "Discovery"]


@contract("Discovery")
class Discovery(Subject):
    """How the backend is found."""

    @pytest.fixture
    def plugin(self, registered: None) -> Any:
        """What podium knows of the installed backend."""
        plugin = next(each for each in podium.driver.backends() if each.name == self.driver_class.name)
        if plugin.distribution == BY_HAND:
            pytest.skip("no distribution provides the backend: install it, such as by pip install -e .")
        return plugin

    def test_the_plugin_states_its_distribution_and_the_api_it_speaks(self, plugin: Any) -> None:
        """One entry point of group "podium" leads to the driver class, and its module states the plug-in API.

        Row DISC-04.
        """
        assert plugin.state == "ready", plugin.failure
        assert plugin.driver_class is self.driver_class
        assert plugin.api in spoken()
        assert plugin.distribution and plugin.version

    def test_the_plugin_module_imports_nothing_but_itself_and_podium(self, plugin: Any, tmp_path: Path) -> None:
        """The module that the entry point names imports no vendor library and maps no shared library.

        Rows PRF-05.
        """
        process = self._without_driver(
            f"""
            import importlib, json, os, sys
            import podium.backend

            def libraries():
                if not os.path.exists("/proc/self/maps"):
                    return set()
                with open("/proc/self/maps") as file:
                    paths = {{line.split(None, 5)[5].strip() for line in file if line.count(" ") > 5 and "/" in line}}
                return {{path for path in paths if ".so" in path and "lib-dynload" not in path}}

            modules, mapped = set(sys.modules), libraries()
            importlib.import_module({plugin.module!r})
            own = {{"podium", "pluggy", {plugin.module.partition(".")[0]!r}, *sys.stdlib_module_names}}
            foreign = {{name.partition(".")[0] for name in set(sys.modules) - modules}} - own
            print(json.dumps([sorted(foreign), sorted(libraries() - mapped)]))
            """,
            tmp_path,
        )
        assert process.returncode == 0, bad(process)
        foreign, mapped = json.loads(process.stdout)
        assert not foreign, f"importing {plugin.module} also imports {foreign}"
        assert not mapped, f"importing {plugin.module} maps {mapped}"

    def test_the_plugin_answers_as_the_driver_class_does(self, plugin: Any) -> None:
        """PODIUM_PRIORITY and podium_inactive_reason(), where the plug-in has them, say what the driver class says.

        Rows DISC-05.
        """
        stated = plugin.plugin
        if stated.priority is None and not stated.detects:
            pytest.skip("not claimed: a plug-in that answers for its driver class")
        assert stated.priority in (None, self.driver_class.priority)
        assert plugin.probe() == probe(self.driver_class)

    def test_the_plugin_answers_without_its_driver(self, plugin: Any, tmp_path: Path) -> None:
        """Asking the plug-in for priority and reason imports neither the driver's module nor anything foreign.

        Rows PRF-05.
        """
        if not plugin.plugin.answers:
            pytest.skip("not claimed: a plug-in that answers for its driver class")
        package = plugin.module.partition(".")[0]
        process = self._without_driver(
            f"""
            import json, sys
            import podium.backend
            from podium._import_aware_lock import ImportAwareLock
            from podium._plugins import Discovery

            before = set(sys.modules)
            backend = Discovery(ImportAwareLock()).candidate({plugin.name!r})
            assert backend.state == "found", backend
            backend.probe()
            own = {{"podium", "pluggy", {package!r}, *sys.stdlib_module_names}}
            foreign = {{name.partition(".")[0] for name in set(sys.modules) - before}} - own
            print(json.dumps([{self.driver_class.__module__!r} in sys.modules, sorted(foreign)]))
            """,
            tmp_path,
        )
        assert process.returncode == 0, bad(process)
        imported, foreign = json.loads(process.stdout)
        assert not imported, f"what {plugin.module} answers imports the driver's module"
        assert not foreign, f"what {plugin.module} answers imports {foreign}"

    def _without_driver(self, code: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a program in a process that has imported nothing of the backend, unlike those of `python`."""
        _, variables = self.command("", cache=folder)
        command = [sys.executable, "-c", dedent(code)]
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=TIMEOUT, check=False)


PROBE = """
import json, os, sys, threading

ARRAY_LIBRARIES = ("torch", "cupy", "jax", "numpy", "tensorflow", "numba")
started = []

def watch(event, arguments):
    if event in ("subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.exec", "os.spawn", "pty.spawn"):
        started.append(event)

def threads():
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else threading.active_count()

sys.addaudithook(watch)
before = threads(), dict(os.environ), set(sys.modules)
answers = [driver_class.inactive_reason() for _ in range(2)]
after = threads(), dict(os.environ), set(sys.modules)
processes = list(started)
libraries = [name for name in ARRAY_LIBRARIES if name in after[2] - before[2]]

child = os.fork()
if child == 0:
    try:
        os._exit(0 if driver_class.inactive_reason() == answers[0] else 3)
    except BaseException:
        os._exit(4)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps({
    "answers": answers, "threads": after[0] - before[0], "environment": before[1] == after[1],
    "processes": processes, "libraries": libraries, "fork": status,
}))
"""


@contract("Detection")
class Detection(Subject):
    """What asking the backend for its reason may do."""

    def test_the_reason_is_a_text_or_none(self) -> None:
        """`inactive_reason()` answers with a text or None, and raises nothing.

        Rows DISC-05.
        """
        reason = self.driver_class.inactive_reason()
        assert reason is None or (isinstance(reason, str) and reason.strip())
        assert self.driver_class.is_active() is (reason is None)

    def test_probing_initialises_nothing(self, tmp_path: Path) -> None:
        """Probing starts no thread and no process, imports no array library, and changes no variable.

        Rows ACT-05, PRF-06.
        """
        probed = self._probe(tmp_path)
        assert probed["threads"] == 0, "probing left threads running"
        assert probed["processes"] == [], "probing started processes"
        assert probed["libraries"] == [], "probing imported array libraries"
        assert probed["environment"], "probing changed the environment"

    def test_probing_is_safe_before_fork(self, tmp_path: Path) -> None:
        """A forked child gets the same answer as its parent, which asked before.

        Rows ACT-05, ACT-06.
        """
        assert self._probe(tmp_path)["fork"] == 0

    def test_the_driver_is_made_without_being_initialised(self, tmp_path: Path) -> None:
        """Constructing a driver starts no thread and no process: the first method that needs the device does.

        Rows ACT-08.
        """
        process = self.python(
            """
            import os, threading
            def threads():
                tasks = "/proc/self/task"
                return len(os.listdir(tasks)) if os.path.isdir(tasks) else threading.active_count()
            before = threads()
            driver_class()
            assert threads() == before, "constructing the driver left threads running"
            """,
            cache=tmp_path,
        )
        assert process.returncode == 0, bad(process)

    def _probe(self, folder: Path) -> dict[str, Any]:
        process = self.python(PROBE, cache=folder)
        assert process.returncode == 0, bad(process)
        probed: dict[str, Any] = json.loads(process.stdout)
        assert all(answer is None or isinstance(answer, str) for answer in probed["answers"])
        return probed
