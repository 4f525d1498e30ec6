"""Launch GPU kernels from Python: one kernel source, one call, any backend.

>>> import podium
>>> scale = podium.kernel("__global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }")
>>> x = podium.asarray([1.0, 2.0, 3.0])
>>> scale[1, 3](x, 10.0)
>>> x.tolist()
[10.0, 20.0, 30.0]

Importing podium chooses no driver, looks for no backend and loads no library; names are imported when first used.
"""

from __future__ import annotations

from podium._imports_at_fork import watch_forks as _watch_forks
from podium._version import __version__

TYPE_CHECKING = False  # importing typing for it would cost more than all the rest; checkers know the name
if TYPE_CHECKING:
    from podium._active import driver, reset_active, set_active, use
    from podium._debug import debugging, set_debug
    from podium._graph import Graph, capture
    from podium._hooks import hooks
    from podium._kernel import Kernel
    from podium._launch_config import LaunchConfig
    from podium._memory import Array, asarray, empty
    from podium._module import Module, kernel, module
    from podium._object_code import ObjectCode
    from podium._program import Options, Program
    from podium._scratch import set_allocator, use_allocator
    from podium._signature import Signature
    from podium._state import recent_launches
    from podium._synchronize import synchronize
    from podium._target import Device, Target
    from podium._timeline import Event, Stream
    from podium._trace import trace
else:
    from podium._late_names import late_names as _late_names

    __getattr__, __dir__ = _late_names(
        __name__,
        {
            "podium._active": "driver reset_active set_active use",
            "podium._debug": "debugging set_debug",
            "podium._graph": "Graph capture",
            "podium._hooks": "hooks",
            "podium._kernel": "Kernel",
            "podium._launch_config": "LaunchConfig",
            "podium._memory": "Array asarray empty",
            "podium._module": "Module kernel module",
            "podium._object_code": "ObjectCode",
            "podium._program": "Options Program",
            "podium._scratch": "set_allocator use_allocator",
            "podium._signature": "Signature",
            "podium._state": "recent_launches",
            "podium._synchronize": "synchronize",
            "podium._target": "Device Target",
            "podium._timeline": "Event Stream",
            "podium._trace": "trace",
        },
    )

__all__ = [
    "Array",
    "Device",
    "Event",
    "Graph",
    "Kernel",
    "LaunchConfig",
    "Module",
    "ObjectCode",
    "Options",
    "Program",
    "Signature",
    "Stream",
    "Target",
    "__version__",
    "asarray",
    "capture",
    "debugging",
    "driver",
    "empty",
    "hooks",
    "kernel",
    "module",
    "recent_launches",
    "reset_active",
    "set_active",
    "set_allocator",
    "set_debug",
    "synchronize",
    "trace",
    "use",
    "use_allocator",
]

_watch_forks()
