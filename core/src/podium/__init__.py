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
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from podium._active import DriverConfig
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
    from podium._state import recent as recent_launches
    from podium._synchronize import synchronize
    from podium._target import Device, Target
    from podium._timeline import Event, Stream
    from podium._trace import trace
    from podium.backend import Driver

    driver: DriverConfig
    reset_active: Callable[[], None]
    set_active: Callable[..., None]
    use: Callable[..., AbstractContextManager[Driver]]

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

# name -> module and name there
_HOMES = {
    "Array": ("_memory", "Array"),
    "Device": ("_target", "Device"),
    "Event": ("_timeline", "Event"),
    "Graph": ("_graph", "Graph"),
    "Kernel": ("_kernel", "Kernel"),
    "LaunchConfig": ("_launch_config", "LaunchConfig"),
    "Module": ("_module", "Module"),
    "ObjectCode": ("_object_code", "ObjectCode"),
    "Options": ("_program", "Options"),
    "Program": ("_program", "Program"),
    "Signature": ("_signature", "Signature"),
    "Stream": ("_timeline", "Stream"),
    "Target": ("_target", "Target"),
    "asarray": ("_memory", "asarray"),
    "capture": ("_graph", "capture"),
    "debugging": ("_debug", "debugging"),
    "driver": ("_active", "driver_config"),
    "empty": ("_memory", "empty"),
    "hooks": ("_hooks", "hooks"),
    "kernel": ("_module", "kernel"),
    "module": ("_module", "module"),
    "recent_launches": ("_state", "recent"),
    "reset_active": ("_active", "driver_config.reset_active"),
    "set_active": ("_active", "driver_config.set_active"),
    "set_allocator": ("_scratch", "set_allocator"),
    "set_debug": ("_debug", "set_debug"),
    "synchronize": ("_synchronize", "synchronize"),
    "trace": ("_trace", "trace"),
    "use": ("_active", "driver_config.use"),
    "use_allocator": ("_scratch", "use_allocator"),
}

_watch_forks()


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'podium' has no attribute {name!r}")
    from importlib import import_module

    module_name, path = _HOMES[name]
    value: object = import_module(f"podium.{module_name}")
    for part in path.split("."):
        value = getattr(value, part)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
