"""Properties that are computed once: no thread waits for another one's object."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import podium
from podium._computed import computed


class Slow:
    """An object whose value takes as long as it is told."""

    def __init__(self, may_end: threading.Event) -> None:
        self.begun, self.may_end = threading.Event(), may_end

    @computed
    def value(self) -> list[int]:
        """What takes long."""
        self.begun.set()
        assert self.may_end.wait(60)
        return []


def test_an_object_is_not_waited_for_by_another_one() -> None:
    """While a thread computes the value of one object, others have those of other objects."""
    held, free = threading.Event(), threading.Event()
    free.set()
    slow, quick = Slow(held), Slow(free)
    computing = threading.Thread(target=lambda: slow.value)
    computing.start()
    assert slow.begun.wait(60)
    reading = threading.Thread(target=lambda: quick.value, daemon=True)
    reading.start()
    reading.join(60)
    assert "value" in vars(quick) and "value" not in vars(slow)
    held.set()
    computing.join()
    assert vars(slow)["value"] is slow.value


def test_threads_that_compute_it_at_once_have_the_same() -> None:
    """All readers get the object that was computed first, also those that have computed another one meanwhile."""

    class Met:
        all_compute = threading.Barrier(4)

        @computed
        def value(self) -> list[int]:
            self.all_compute.wait(60)
            return []

    met, seen = Met(), list[list[int]]()
    threads = [threading.Thread(target=lambda: seen.append(met.value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4 and all(each is met.value for each in seen)


def test_the_core_has_no_cached_property() -> None:
    """Kernels, modules and launchers are used by threads and in forked children, so none waits for a class's lock."""
    assert Slow.value.__doc__ == "What takes long."
    folder = Path(podium.__file__).parent
    used = re.compile(r"^\s*@(functools\.)?cached_property\b", re.MULTILINE)
    assert [str(path) for path in folder.rglob("*.py") if used.search(path.read_text(encoding="utf-8"))] == []
