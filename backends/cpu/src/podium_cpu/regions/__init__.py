"""Kernels with barriers as loops: the code between two barriers becomes a loop over the threads of the block.

Threads of a block that wait for each other have stacks of their own, between which a launch switches. That is right for
every kernel, and never vectorised. A kernel whose barriers stand as statements of their own can be written another way:
what lies between two barriers is a *region*, a loop over the threads; variables that live longer than a region become
arrays with an element for each thread, unless all threads have one value, or it can be computed again. Whatever is not
understood here stays as it is.
"""

from __future__ import annotations

from podium_cpu.regions._kernels import may_have_regions, rewrite_regions
from podium_cpu.regions._marks import may_have_marks

__all__ = ["may_have_marks", "may_have_regions", "rewrite_regions"]
