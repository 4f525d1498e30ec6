"""Plug-ins that ask for backends while they are loaded, threads that load at the same time, and forks."""

from __future__ import annotations

import threading
from textwrap import dedent

import pytest
from plugin_distributions import PLUGIN, Site, loaded

from podium._import_aware_lock import ImportAwareLock
from podium._plugins import Discovery

pytestmark = pytest.mark.usefixtures("well")


@pytest.fixture
def discovery(site: Site) -> Discovery:
    return Discovery(ImportAwareLock())


@pytest.fixture
def answers(site: Site, discovery: Discovery) -> list[dict[str, str]]:
    """What plug-ins that ask for the backends while they are imported were told: name and state."""
    told: list[dict[str, str]] = []
    (site.folder / "podium_test_answers.py").write_text("")
    import podium_test_answers  # type: ignore[import-not-found]

    podium_test_answers.ask = lambda: told.append({backend.name: backend.state for backend in discovery.backends()})
    return told


@pytest.mark.parametrize("strict", ["0", "1"])
@pytest.mark.parametrize("place", ["__init__.py", "plugin.py", "driver.py"])
def test_plugin_asks_while_it_loads(
    site: Site,
    discovery: Discovery,
    answers: list[dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    strict: str,
) -> None:
    """A plug-in that asks for the backends while it is loaded sees itself as not ready, and loads well (DISC-09)."""
    monkeypatch.setenv("PODIUM_STRICT_PLUGINS", strict)
    package = site.install("asks")
    path = site.folder / package / place
    path.write_text("import podium_test_answers\npodium_test_answers.ask()\n" + path.read_text())
    assert loaded(discovery, "asks").state == "ready"
    assert answers == [{"asks": "unready", "well": "ready"}]


def test_hook_asks(site: Site, discovery: Discovery, answers: list[dict[str, str]]) -> None:
    """A hook that asks for the backends sees its own as not ready, and is not called again (DISC-09)."""
    site.install(
        "asks", plugin=PLUGIN.replace("from {package}", "__import__('podium_test_answers').ask(); from {package}")
    )
    assert loaded(discovery, "asks").state == "ready"
    assert answers == [{"asks": "unready", "well": "ready"}]


@pytest.mark.parametrize("place", ["podium_asks", "podium_asks.plugin"])
def test_backend_package_is_imported_directly(
    site: Site, discovery: Discovery, answers: list[dict[str, str]], place: str
) -> None:
    """Importing a backend's own module, which asks for the backends, works; later it is ready (DISC-09)."""
    site.install("asks")
    file = "__init__.py" if place == "podium_asks" else "plugin.py"
    path = site.folder / "podium_asks" / file
    path.write_text("import podium_test_answers\npodium_test_answers.ask()\n" + path.read_text())
    __import__(place)
    assert answers == [{"asks": "unready", "well": "ready"}]
    assert loaded(discovery, "asks").state == "ready"


def test_circular_import_is_not_kept(site: Site, discovery: Discovery, answers: list[dict[str, str]]) -> None:
    """A plug-in that needs a library which is asking for backends while imported is not ready, not failed (DISC-09)."""
    site.install("asks", plugin="from podium_test_library import needed\n" + dedent(PLUGIN))
    (site.folder / "podium_test_library.py").write_text(
        "import podium_test_answers\npodium_test_answers.ask()\nneeded = 1\n"
    )
    __import__("podium_test_library")
    assert answers == [{"asks": "unready", "well": "ready"}]
    assert loaded(discovery, "asks").state == "ready"


MEETING = """
    import sys, threading
    from podium._import_aware_lock import ImportAwareLock
    from podium._plugins import Discovery

    discovery = Discovery(ImportAwareLock())
    discovering, importing = threading.Event(), threading.Event()

    def wait_until_main_waits_for_an_import():
        main = threading.main_thread().ident
        while True:
            code = sys._current_frames()[main].f_code
            if code.co_filename == "<frozen importlib._bootstrap>" and code.co_name == "acquire":
                return

    def states():
        return {backend.name: backend.state for backend in discovery.backends()}
"""


def test_import_in_another_thread_does_not_deadlock(site: Site) -> None:
    """A thread that imports a backend which asks, and one that discovers and waits for it, both end (DISC-09)."""
    site.uninstall("well")
    site.install("slow", files={"__init__.py": "import meeting; meeting.slow()"})
    (site.folder / "meeting.py").write_text(
        dedent(MEETING)
        + dedent(
            """
            def slow():                         # in the other thread, which has the lock of this module
                importing.set()
                wait_until_main_waits_for_an_import()
                print("while it is imported:", states())
            """
        )
    )
    done = site.run(
        """
        import meeting, threading
        other = threading.Thread(target=lambda: __import__("podium_slow.driver"))
        other.start()
        assert meeting.importing.wait(60)
        print("afterwards:", meeting.states())
        other.join()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["while it is imported: {'slow': 'unready'}", "afterwards: {'slow': 'ready'}"]


def test_half_imported_by_another_thread(site: Site) -> None:
    """A plug-in that the import system gives up waiting for, to end a deadlock, is not ready, not failed (DISC-09)."""
    site.uninstall("well")
    site.install("one", plugin="import meeting; meeting.one()\n" + dedent(PLUGIN))
    (site.folder / "library_two.py").write_text("import meeting; meeting.two()")
    (site.folder / "meeting.py").write_text(
        dedent(MEETING)
        + dedent(
            """
            def one():                          # in the discovering thread
                discovering.set()
                assert importing.wait(60)
                import library_two

            def two():                          # in the other thread, for which the first now waits
                importing.set()
                wait_until_main_waits_for_an_import()
                print("while it is imported:", states())
            """
        )
    )
    done = site.run(
        """
        import meeting, threading

        def library():
            assert meeting.discovering.wait(60)
            import library_two

        other = threading.Thread(target=library)
        other.start()
        print("afterwards:", meeting.states())
        other.join()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["while it is imported: {'one': 'unready'}", "afterwards: {'one': 'ready'}"]


def test_sixteen_threads(site: Site, discovery: Discovery) -> None:
    """Each plug-in is loaded once, however many threads need it at the same time."""
    site.install(
        "alpha",
        plugin=PLUGIN.replace(
            "from {package}", "import builtins; builtins.podium_test_hooks += 1\n        from {package}"
        ),
    )
    import builtins

    builtins.podium_test_hooks = 0  # type: ignore[attr-defined]
    start, found = threading.Barrier(16), []

    def look() -> None:
        start.wait()
        found.append(discovery.backends())

    threads = [threading.Thread(target=look) for _ in range(16)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert builtins.podium_test_hooks == 1  # type: ignore[attr-defined]
    finally:
        del builtins.podium_test_hooks  # type: ignore[attr-defined]
    assert len(found) == 16
    assert all(backends == found[0] for backends in found)


FORK = """
    import os, sys, threading, meeting
    from podium import _imports_at_fork
    from podium._import_aware_lock import ImportAwareLock
    from podium._plugins import Discovery

    _imports_at_fork.FORK_PATIENCE = {patience}
    discovery = Discovery(ImportAwareLock())
    loading, forking = threading.Event(), threading.Event()

    def load():                     # in the discovering thread, in the middle of the import
        loading.set()
        assert forking.wait(60)

    meeting.load = load
    other = threading.Thread(target=discovery.backends)
    other.start()
    assert loading.wait(60)
    os.register_at_fork({moment}=forking.set)
    child = os.fork()
    if child == 0:
        import faulthandler
        faulthandler.dump_traceback_later(60, exit=True)
        for backend in discovery.backends():
            print(backend.name, backend.state, backend.failure)
        sys.stdout.flush()
        os._exit(0)
    other.join()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize(
    ("patience", "moment", "expected"),
    [
        (60, "before", "slow ready None"),
        (0, "after_in_parent", "slow failed this process was forked while another thread was importing it"),
    ],
)
def test_fork_during_discovery(site: Site, patience: int, moment: str, expected: str) -> None:
    """A fork waits for a discovery that is under way; a child forked from the middle does not hang (ACT-06)."""
    site.uninstall("well")
    site.install("slow", plugin="import meeting; meeting.load()\n" + dedent(PLUGIN))
    (site.folder / "meeting.py").write_text("")
    program = FORK.format(patience=patience, moment=moment)
    done = site.run("import warnings; warnings.simplefilter('ignore')\n" + dedent(program))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(expected)
    assert len(done.stdout.splitlines()) == 1
