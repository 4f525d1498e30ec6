"""Architectures: what a device runs, and what a compiler makes for it.

``gfx90a`` is a processor; ``gfx90a:sramecc+:xnack-`` names two of its features as well, on or off. A device is named
with its features as they are set; code without a feature runs with either setting.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Arch", "warp_size_of"]

_SPELLING = re.compile(r"(gfx(?:[1-9]\d?-(?:\d-)?generic|[1-9]\d{0,2}[0-9a-f]{2}))((?::(?:sramecc|xnack)[+-])*)")

# The processors of each generic target, by their beginnings; those of gfx9 are not all that begin so.
_GENERIC = {
    "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
    "gfx9-4-generic": ("gfx940", "gfx941", "gfx942", "gfx950"),
    "gfx10-1-generic": ("gfx101",),
    "gfx10-3-generic": ("gfx103",),
    "gfx11-generic": ("gfx110", "gfx115"),
    "gfx12-generic": ("gfx120",),
}


class Arch(NamedTuple):
    """A processor, such as "gfx90a", and the features that are named, as pairs of a name and "+" or "-", sorted."""

    processor: str
    features: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def parse(text: str) -> Arch:
        """Read a spelling such as ``gfx90a:sramecc+:xnack-``. Raises ValueError if it is none."""
        match = _SPELLING.fullmatch(text)
        if match is None:
            raise ValueError(
                f"An architecture is spelled like gfx942 or gfx90a:sramecc+:xnack-, as rocminfo has it, not {text!r}"
            )
        features = [(each[:-1], each[-1]) for each in match[2].split(":")[1:]]
        if len(dict(features)) != len(features):
            raise ValueError(f"An architecture names each feature once, and not as {text!r} does")
        return Arch(match[1], tuple(sorted(features)))

    @property
    def is_wave64_only(self) -> bool:
        """Whether its warps always have 64 threads: those of the later generations may have 32, and usually do."""
        return re.fullmatch(r"gfx[6-9](?:\d[0-9a-f]|-.*)", self.processor) is not None

    def runs_on(self, device: Arch) -> bool:
        """Tell whether a device runs code for this architecture."""
        if self.processor != device.processor and not device.processor.startswith(
            _GENERIC.get(self.processor, ("none",))
        ):
            return False
        return all(dict(device.features).get(name, setting) == setting for name, setting in self.features)

    def __str__(self) -> str:
        return ":".join([self.processor, *(name + setting for name, setting in self.features)])


def warp_size_of(arch: Arch) -> int:
    """Return the threads of a warp in code for an architecture, unless an option says otherwise."""
    return 64 if arch.is_wave64_only else 32
