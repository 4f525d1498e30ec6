"""What the processor is: the architecture that code is compiled for, its name, and the memory beside it."""

from __future__ import annotations

import functools
import os
import re
import sys

__all__ = [
    "ARCH_LEVELS",
    "can_run",
    "host_arch",
    "is_known",
    "memory_bytes",
    "processor_identity",
    "processor_name",
    "usable_processors",
]

# The levels of x86-64, lowest first, with the flags that each adds in the words of Linux.
ARCH_LEVELS: dict[str, frozenset[str]] = {
    "x86-64": frozenset(),
    "x86-64-v2": frozenset("cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3".split()),
    "x86-64-v3": frozenset("abm avx avx2 bmi1 bmi2 f16c fma movbe xsave".split()),
    "x86-64-v4": frozenset("avx512bw avx512cd avx512dq avx512f avx512vl".split()),
}


@functools.lru_cache(maxsize=1)
def host_arch() -> str:
    """Return the architecture of this machine: a level such as x86-64-v3, armv8-a, or the machine's name.

    Levels and not the exact processor, so that machines of one kind can share code, and older ones do not run newer
    ones' code by mistake.
    """
    machine = _machine()
    if machine in ("x86_64", "amd64"):
        return _level(_cpuinfo().get("flags", ""))
    return {"aarch64": "armv8-a", "arm64": "armv8-a"}.get(machine, machine or "unknown")


def is_known(arch: str) -> bool:
    """Tell whether an architecture is one that code can be compiled for, here or with a compiler for it."""
    return arch in ARCH_LEVELS or re.fullmatch(r"armv8(\.\d)?-a", arch) is not None or arch == host_arch()


def can_run(arch: str) -> bool:
    """Tell whether code compiled for an architecture runs on this machine."""
    host = host_arch()
    if host in ARCH_LEVELS and arch in ARCH_LEVELS:
        levels = list(ARCH_LEVELS)
        return levels.index(arch) <= levels.index(host)
    return arch == host


def processor_name() -> str:
    """Return the name that the processor gives itself, else the machine's architecture."""
    facts = _cpuinfo()
    return facts.get("model name") or facts.get("hardware") or _machine() or "CPU"


def processor_identity() -> str:
    """Return all that tells processors of one level apart, for code that is compiled for exactly this one."""
    facts = _cpuinfo()
    return f"{processor_name()} {facts.get('flags') or facts.get('features') or ''}".strip()


def memory_bytes() -> int:
    """Return how much memory the machine has."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return sys.maxsize


def usable_processors() -> int:
    """Return how many processors this process may use: those it may run on, within a container's share of time."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()
        count = min(count, -(-int(quota) // int(period)))
    except (OSError, ValueError):  # another system, or no quota
        pass
    return max(1, count)


def _level(flags: str) -> str:
    present, best = set(flags.split()), "x86-64"
    for level, needed in ARCH_LEVELS.items():
        if not needed <= present:
            break
        best = level
    return best


def _machine() -> str:
    if hasattr(os, "uname"):
        return os.uname().machine.lower()
    return os.environ.get("PROCESSOR_ARCHITECTURE", "").lower()


@functools.lru_cache(maxsize=1)
def _cpuinfo() -> dict[str, str]:
    """Read what Linux says of the first processor; the others are left unread, of which there may be hundreds."""
    facts: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, colon, value = line.partition(":")
                if not colon and facts:
                    break
                facts.setdefault(name.strip().lower(), value.strip())
    except OSError:
        pass
    return facts
