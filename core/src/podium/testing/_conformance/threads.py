"""Threads: the first launch from many at once, and launches in parallel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import podium
from podium.backend import Driver
from podium.testing._conformance.child import add_kernel
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Threads"]

_THREADS = 16


def _together(count: int, work: Callable[[int], None]) -> None:
    """Run `work` in threads that begin together; raise what the first of them raised."""
    barrier, errors = threading.Barrier(count), list[BaseException]()

    def run(index: int) -> None:
        try:
            barrier.wait()
            work(index)
        except BaseException as error:  # handed to the thread that waits
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@contract("Streams and devices")
class Threads(Subject):
    """What threads may do at once."""

    def test_a_first_launch_from_many_threads(self, driver: Driver, level: Level) -> None:
        """16 threads that launch a new kernel together compile and load it once, and each launch is right.

        Rows CTX-01.
        """
        level.empty()
        compiled: list[Any] = []
        loaded: list[Any] = []
        podium.hooks.compile.add(compiled.append)
        podium.hooks.load.add(loaded.append)
        kernel = add_kernel()
        arrays = [podium.asarray([index] * 8) for index in range(_THREADS)]
        before = self.count(driver)
        _together(_THREADS, lambda index: kernel[2, 4](arrays[index], 100 + index))
        podium.synchronize()
        assert (len(compiled), len(loaded)) == (1, 1)
        if self.capabilities.executes:
            assert [array.tolist() for array in arrays] == [[2 * index + 100] * 8 for index in range(_THREADS)]
        if self.capabilities.records:
            assert self.count(driver) == before + _THREADS

    def test_launches_in_parallel(self, driver: Driver, level: Level) -> None:
        """Threads that launch one kernel with different shapes at once get the results of their own launches.

        Rows TUN-04.
        """
        kernel = add_kernel()
        kernel.warm_up()
        before = self.count(driver)

        def work(index: int) -> None:
            x = podium.asarray([0] * (index + 1))
            for step in range(50):
                kernel[1, index + 1](x, step)
            podium.synchronize()
            if self.capabilities.executes:
                assert x.tolist() == [1225] * (index + 1)

        _together(8, work)
        if self.capabilities.records:
            assert self.count(driver) == before + 8 * 50
            shapes = [launch.block[0] for launch in self.recorded(driver)[before:]]
            assert all(shapes.count(index + 1) == 50 for index in range(8))

    def test_the_choice_is_the_processs(self, driver: Driver, level: Level) -> None:
        """A driver that was made active is active in new threads, which launch with no further word.

        Rows CTX-01.
        """
        results: list[Any] = []

        def work(index: int) -> None:
            x = podium.asarray([1, 2])
            add_kernel()[1, 2](x, 10)
            results.append((podium.driver.resolve(), x.tolist()))

        _together(2, work)
        assert all(found is driver for found, _ in results)
        if self.capabilities.executes:
            assert [values for _, values in results] == [[11, 12]] * 2

    @pytest.mark.needs("observes")
    def test_use_is_for_one_thread(self, driver: Driver, level: Level) -> None:
        """Each thread may use a driver of its own for a block, while others launch."""

        def work(index: int) -> None:
            with podium.use(self.driver_class.name):
                x = podium.asarray([index])
                add_kernel()[1, 1](x, 1)
                podium.synchronize()
                if self.capabilities.executes:
                    assert x.tolist() == [index + 1]

        _together(4, work)
