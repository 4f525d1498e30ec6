"""Memory of a vendor's allocator: aligned, and given back with the object, where that is possible."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import pytest

from podium.backend import OwnedMemory
from podium.errors import BackendError, OutOfResourcesError


class Allocator:
    """Hands out addresses that are multiples of 16, and notes what is asked for and given back."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.freed: list[int] = []

    def allocate(self, room: int) -> int:
        self.asked.append(room)
        return 0x1010

    def free(self, address: int) -> None:
        self.freed.append(address)


def test_memory_is_aligned_and_given_back() -> None:
    """More is asked for only where the allocator aligns to less; what it gave is what it gets back."""
    allocator = Allocator()
    for size, alignment, kept, asked, place in (
        (100, 16, 16, 100, 0x1010),
        (100, 256, 16, 340, 0x1100),
        (0, 1, 1, 1, 0),
    ):
        memory = OwnedMemory(size, alignment, allocator.allocate, allocator.free, kept=kept)
        assert (memory.size, memory.ptr, allocator.asked.pop()) == (size, place or 0x1010, asked)
        assert repr(memory) == f"<memory of {size} bytes at {memory.ptr:#x}>"
        del memory
        assert allocator.freed.pop() == 0x1010 and not allocator.freed


def test_memory_that_cannot_be_is_not_asked_for() -> None:
    """LIF-05: a size or an alignment that cannot be is refused, an allocator's error passed on; nothing is given back."""
    allocator = Allocator()
    with pytest.raises(ValueError, match="A buffer of -1 bytes cannot be"):
        OwnedMemory(-1, 16, allocator.allocate, allocator.free)
    for alignment in (0, 24):
        with pytest.raises(ValueError, match=f"An alignment is a power of two, not {alignment}"):
            OwnedMemory(1, alignment, allocator.allocate, allocator.free)

    def full(room: int) -> int:
        raise OutOfResourcesError("allocate", "memory in bytes", room, 0, "free some")

    with pytest.raises(OutOfResourcesError):
        OwnedMemory(1, 1, full, allocator.free)
    assert (allocator.asked, allocator.freed) == ([], [])


def test_memory_has_one_owner() -> None:
    """LIF-02: a copy would give the same memory back a second time, so there is none."""
    allocator = Allocator()
    memory = OwnedMemory(8, 8, allocator.allocate, allocator.free)
    for copies in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="<memory of 8 bytes at 0x1010> cannot be copied or pickled: "):
            copies(memory)
    del memory
    assert allocator.freed == [0x1010]


def test_a_device_that_is_lost_takes_its_memory_along() -> None:
    """An error of podium in giving back is dropped: a finalizer has nobody to tell. Other errors are bugs, and shown."""

    def lost(address: int) -> None:
        raise BackendError("the device is lost")

    OwnedMemory(1, 1, Allocator().allocate, lost)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_children_and_ends_of_processes_give_nothing_back() -> None:
    """LIF-02: the parent still has the memory, and at the end of the process the driver may be gone."""
    program = """
import os
from podium.backend import OwnedMemory
def make(): return OwnedMemory(8, 8, lambda room: 4096, lambda address: print("freed in", "parent" if os.getpid() == first else "child", flush=True))
first = os.getpid()
kept, memory = make(), make()
child = os.fork()
if child == 0:
    del memory
    os._exit(0)
os.waitpid(child, 0)
del memory
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("freed in parent\n", "")
