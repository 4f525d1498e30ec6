"""Kernels with barriers as loops: the code between two barriers becomes a loop over the threads of the block.

Threads of a block that wait for each other have stacks of their own, between which a launch switches. That is right for
every kernel, and never vectorised. A kernel whose barriers stand as statements of their own can be written another way:
what lies between two barriers is a *region*, a loop over the threads; variables that live longer than a region become
arrays with an element for each thread, unless all threads have one value, or it can be computed again. Whatever is not
understood here stays as it is.
"""

from __future__ import annotations

from podium_cpu.regions._signs import may_have_marks, may_have_regions

__all__ = ["may_have_marks", "may_have_regions", "rewrite_regions"]


def rewrite_regions(text: str, *, independent: bool = False, loops: bool = True) -> tuple[str, dict[str, str]]:
    """Rewrite the kernels of preprocessed text that can be taken apart, and mark the barriers of all others.

    Returns the text, and for each kernel the reason why its threads stay threads, or nothing. `independent` says that
    the compiler knows the pragma by which loops are said to have no dependences. Without `loops`, there are marks only.
    """
    # Most kernels have no barriers, and the first of a machine should not wait for what takes those apart.
    from podium_cpu.regions import _kernels

    return _kernels.rewrite_regions(text, independent=independent, loops=loops)
