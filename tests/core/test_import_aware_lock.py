"""The lock under which plug-ins are imported."""

from __future__ import annotations

import threading

import pytest
from plugin_distributions import Site

from podium._import_aware_lock import ImportAwareLock, modules_being_imported


def test_modules_being_imported(site: Site) -> None:
    """Only modules that the calling thread is importing count, each while it runs."""
    (site.folder / "outer_module.py").write_text("import inner_module\ninner_module.look()\n")
    (site.folder / "inner_module.py").write_text(
        "from podium._import_aware_lock import modules_being_imported\n"
        "seen, seen_elsewhere = [], []\n"
        "def look():\n"
        "    import threading\n"
        "    seen.append(set(modules_being_imported()))\n"
        "    other = threading.Thread(target=lambda: seen_elsewhere.append(set(modules_being_imported())))\n"
        "    other.start()\n"
        "    other.join()\n"
        "look()\n"
    )
    import inner_module  # type: ignore[import-not-found]
    import outer_module  # type: ignore[import-not-found]  # noqa: F401

    inner_module.look()
    here = set(modules_being_imported())
    assert inner_module.seen == [{"inner_module"} | here, {"outer_module"} | here, here]
    assert inner_module.seen_elsewhere == [set(), set(), set()]
    assert not here & {"inner_module", "outer_module"}


def test_threads_take_turns() -> None:
    """One thread at a time has the lock, and it can take it again inside."""
    lock = ImportAwareLock()
    inside = 0

    def work() -> None:
        nonlocal inside
        for _ in range(200):
            with lock.turn(), lock.turn():
                inside += 1
                before = inside
                assert before == inside == 1
                inside -= 1

    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert inside == 0


def test_error_in_the_body_releases() -> None:
    """The lock is free after an error."""
    lock = ImportAwareLock()
    with pytest.raises(ZeroDivisionError), lock.turn():
        raise ZeroDivisionError
    taken = []

    def take() -> None:
        with lock.turn():
            taken.append(True)

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    thread.join(60)
    assert taken == [True]


def test_forking_while_holding(site: Site) -> None:
    """A thread that forks inside its own turn goes on in both processes, and the lock is free afterwards in both."""
    done = site.run(
        """
        import os, threading, warnings
        from podium._import_aware_lock import ImportAwareLock

        warnings.simplefilter("ignore")
        lock = ImportAwareLock()
        with lock.turn():
            child = os.fork()
        taken = []
        def take():
            with lock.turn():
                taken.append(True)
        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        thread.join(60)
        if child == 0:
            os._exit(0 if taken else 9)
        assert taken and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
