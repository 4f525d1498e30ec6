"""What a backend claims to be able to do: the conformance suite asks for nothing else, and shows what it left out."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

__all__ = ["Capabilities"]


@dataclass(frozen=True)
class Capabilities:
    """The claims of a backend; what is not claimed is skipped, with the reason "not claimed: ...".

    What a driver states of itself (`fork_safe`, `host_memory`, `features`, `languages`) is read from its class, and its
    limits, such as the largest block, from `Driver.devices`.
    """

    executes: bool = True
    """Kernels run, and their results can be read."""

    compiles: bool = True
    """`Driver.compile` is a compiler of the CUDA dialect."""

    records: bool = False
    """`DriverConformance.recorded` tells what reached the driver, down to the bytes of the parameters."""

    addresses: bool = True
    """The address of an array is the one that its kernels see: a number that can be passed, compared and added to."""

    shared_memory: bool = True
    """Blocks have shared memory, static and dynamic."""

    barriers: bool = True
    """``__syncthreads`` works."""

    atomics: bool = True
    """``atomicAdd`` works on ints in global memory, and in shared memory if there is any."""

    warps: bool = True
    """``__shfl_down_sync`` works within the target's warp."""

    fp64: bool = True
    """Kernels compute in double precision."""

    half: bool = True
    """Kernels know ``__half`` and ``__nv_bfloat16``, by including ``cuda_fp16.h`` and ``cuda_bf16.h``."""

    int64: bool = True
    """Kernels have integers of 64 bits."""

    small_integers: bool = True
    """Kernels have integers of 8 and 16 bits, and bool, as parameters and in memory."""

    structs: bool = True
    """Kernels take structs by value."""

    templates: bool = True
    """Kernels may be templates, instantiated by name expression."""

    namespaces: bool = True
    """Kernels may be in namespaces."""

    standards: bool = True
    """The option `std` chooses the standard of C++."""

    globals: bool = True
    """Sources may have ``__constant__`` and ``__device__`` variables, which begin with the values of the source."""

    variables: bool = True
    """The variables of a module are shared by its kernels and reached from the host (`load_beside`, `variable`)."""

    @property
    def observes(self) -> bool:
        """Whether the effect of a launch can be seen, by results or by records."""
        return self.executes or self.records

    def without(self, *names: str) -> Capabilities:
        """Return these claims less some. Raises ValueError for a name that is no capability."""
        __tracebackhide__ = True
        known = [field.name for field in fields(self)]
        for name in names:
            if name not in known:
                raise ValueError(
                    f"{name!r} is no capability; they are {', '.join(known)}. What a driver's class states, such as "
                    f"features, it leaves out there"
                )
        return replace(self, **dict.fromkeys(names, False))
