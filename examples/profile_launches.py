"""A small profiler: how often each kernel was launched, and how long the host was busy with it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import podium

FILL = podium.kernel("__global__ void fill(float* x, float value) { x[threadIdx.x] = value; }")
TWICE = podium.kernel("__global__ void twice(float* x) { x[threadIdx.x] *= 2; }")


class Profile:
    """Counts the launches inside a ``with`` block."""

    def __init__(self) -> None:
        self.launches: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()

    def note(self, event: Any) -> None:
        """Take one launch into the account."""
        self.launches[event.kernel] += 1
        self.seconds[event.kernel] += event.seconds

    def __enter__(self) -> Profile:
        podium.hooks.exit.add(self.note)
        return self

    def __exit__(self, *problem: object) -> None:
        podium.hooks.exit.remove(self.note)


def main() -> None:
    """Profile a few launches."""
    x = podium.empty(16, "fp32")
    with Profile() as profile:
        FILL[1, 16](x, 1.0)
        for _ in range(10):
            TWICE[1, 16](x)
    for kernel, count in sorted(profile.launches.items()):
        print(f"{kernel}: {count} launches, {profile.seconds[kernel] * 1e6:.0f} µs")


if __name__ == "__main__":
    main()

# It prints:
# fill: 1 launches, ... µs
# twice: 10 launches, ... µs
