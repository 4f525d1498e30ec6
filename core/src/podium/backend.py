"""Everything that the author of a backend needs, and the whole of what podium calls.

A backend is a distribution with three short files:

``plugin.py``    named by the entry point of group ``podium``; tells what choosing a backend asks, and returns the
                 driver class (`podium.hookspecs`). At module level it imports nothing but this::

                     from podium.backend import hookimpl
                     PODIUM_API, PODIUM_PRIORITY = 1, 100

                     @hookimpl
                     def podium_inactive_reason():
                         from mybackend.detection import inactive_reason
                         return inactive_reason()
                     @hookimpl
                     def podium_register_driver():
                         from mybackend.driver import MyDriver
                         return MyDriver

``driver.py``    a subclass of `Driver`, below. It is the only thing that talks to the vendor's runtime.
``launcher.py``  a subclass of `Launcher` that names the backend's C template, such as ``launch.c.in`` beside it.

Devices, streams, modules and functions are plain integers. A status is the vendor's own code, with 0 for success.
Errors are those of `podium.errors`; anything else that a method raises is a bug of the backend and is shown as one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, final

from podium._deferred import deferred, deferred_launcher
from podium._feature_methods import FeatureMethods
from podium._fork import ForkSafeLock
from podium._late_names import late_names
from podium._plugin_api import API_VERSION
from podium._settings import environment_flag, option_choice
from podium.errors import LaunchError, LoadError
from podium.hookspecs import hookimpl

if TYPE_CHECKING:
    from podium._array_layout import ArrayLayout, array_layout
    from podium._background import BackgroundCall, import_early
    from podium._build import Build, HostCompiler
    from podium._compiler_identity import compiler_identity
    from podium._excerpt import declaration, excerpt, kernel_names, source_line
    from podium._file_stamps import folder_digest
    from podium._function import Buffer, Function, Occupancy, OwnedMemory
    from podium._generated import foresee_launchers
    from podium._launch_config import LaunchConfig
    from podium._launcher import Launcher
    from podium._library import SharedLibrary, is_whole
    from podium._object_code import ObjectCode
    from podium._parameters import Parameters
    from podium._program import Entry, Options, Program
    from podium._signature import Parameter, Signature, Type
    from podium._target import Device, Target
    from podium._variable import Variable
else:
    # What a driver class needs to be, and to be chosen, is imported above.
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "podium._array_layout": "ArrayLayout array_layout",
            "podium._background": "BackgroundCall import_early",
            "podium._build": "Build HostCompiler",
            "podium._compiler_identity": "compiler_identity",
            "podium._excerpt": "declaration excerpt kernel_names source_line",
            "podium._file_stamps": "folder_digest",
            "podium._function": "Buffer Function Occupancy OwnedMemory",
            "podium._generated": "foresee_launchers",
            "podium._launch_config": "LaunchConfig",
            "podium._launcher": "Launcher",
            "podium._library": "SharedLibrary is_whole",
            "podium._object_code": "ObjectCode",
            "podium._parameters": "Parameters",
            "podium._program": "Entry Options Program",
            "podium._signature": "Parameter Signature Type",
            "podium._target": "Device Target",
            "podium._variable": "Variable",
        },
    )

__all__ = [
    "API_VERSION",
    "ArrayLayout",
    "BackgroundCall",
    "Buffer",
    "Build",
    "Device",
    "Driver",
    "Entry",
    "ForkSafeLock",
    "Function",
    "HostCompiler",
    "LaunchConfig",
    "Launcher",
    "ObjectCode",
    "Occupancy",
    "Options",
    "OwnedMemory",
    "Parameter",
    "Parameters",
    "Program",
    "SharedLibrary",
    "Signature",
    "Target",
    "Type",
    "Variable",
    "array_layout",
    "compiler_identity",
    "declaration",
    "deferred",
    "deferred_launcher",
    "environment_flag",
    "excerpt",
    "folder_digest",
    "foresee_launchers",
    "hookimpl",
    "import_early",
    "is_whole",
    "kernel_names",
    "late_names",
    "option_choice",
    "source_line",
]


class Driver(FeatureMethods, ABC):
    """One kind of device. podium makes one instance in a process, on first need, from any thread.

    Constructing it must be cheap and must not initialise the vendor's driver; the first method that needs it does.

    The keyword-only parameters of ``__init__`` are the options that users can give with the backend's name,
    ``podium.use("mine", option=value)``; each has a default, and the values are hashable. There is one more instance
    for each combination that is used. It raises ValueError for a value that an option cannot have. What changes the
    output of `compile` must be a part of what `toolchain` returns.
    """

    name: ClassVar[str]
    """The backend's name: what users write, and the first part of its targets."""

    priority: ClassVar[int]
    """The highest among the active backends is chosen: 100 for a GPU, 0 for the CPU. PODIUM_PRIORITY is the same."""

    launcher_cls: ClassVar[type[Launcher]]
    """The backend's launcher class."""

    languages: ClassVar[frozenset[str]] = frozenset({"cuda"})
    """The languages that `compile` takes."""

    features: ClassVar[frozenset[str]] = frozenset()
    """What there is: for launches "cluster", "cooperative", "dependent" and the names in `attribute_keys`; and of the
    methods that not every backend has, "streams", "events", "graphs", "pinned" and "occupancy"."""

    attribute_keys: ClassVar[Mapping[str, int]] = MappingProxyType({})
    """The launch attributes by name, with the vendor's number of each: what the C template is given as `key`."""

    environment: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The backend's environment variables with what each means, for ``podium doctor``.

    Their names begin with PODIUM_, the backend's name in capitals and an underscore: PODIUM_CPU_THREADS. Where any are
    given, the doctor tells other names of that form as errors. `environment_flag` reads one that is on or off. A value
    that means nothing is a `SettingError`; one from ``__init__`` reaches the user as it is, and the doctor."""

    dlpack_devices: ClassVar[frozenset[int]]
    """The DLPack device types whose memory kernels can reach, such as 2 for CUDA.

    That of the devices themselves is the lowest beside those of the host (1, 3, 11) and of managed memory (13)."""

    host_memory: ClassVar[bool] = False
    """Whether kernels reach ordinary host memory: then buffer-protocol objects are accepted as arrays."""

    fork_safe: ClassVar[bool] = False
    """Whether the driver, once used, goes on working in a forked child. If not, launches there are refused.

    Locks of such a driver are instances of `ForkSafeLock`: a plain one may be held, at the fork, by a thread that the
    child does not have."""

    @classmethod
    @abstractmethod
    def inactive_reason(cls) -> str | None:
        """Say why the backend cannot run here, and what to do; None if it can.

        Called when a backend is chosen and by ``podium doctor``; the answer is not kept. It must not initialise the
        driver, start a process, import an array library, or enumerate devices through the runtime: look at device
        nodes, kernel-driver entries, masks, and whether the library opens. An exception counts as its own reason.
        """

    @final
    @classmethod
    def is_active(cls) -> bool:
        """Tell whether there is no reason against the backend."""
        return cls.inactive_reason() is None

    @abstractmethod
    def toolchain(self, language: str) -> str:
        """Name the compiler for a language, with its version: what cache keys hold.

        The first line is what people read of it in ``podium doctor``; what only keys need stands in further ones.
        Called before each look into the cache, so it must cost microseconds from the second time on.
        Raises `ToolchainError` if there is none.
        """

    @abstractmethod
    def devices(self) -> Sequence[Device]:
        """Return the devices with their limits, in the order of their index: at least one, and always the same.

        May initialise the driver. Called whenever a limit is needed, so what takes time is found out once and kept.
        """

    @abstractmethod
    def compile(self, program: Program, target: Target) -> ObjectCode:
        """Compile; called on a cache miss only, without the interpreter lock where that is possible.

        Works without a device, and in a forked child of a process that uses one. The result's entries and variables
        are those of the program. Raises `CompileError` with the log and the places in the user's source,
        `ToolchainError` if there is no compiler.
        """

    @abstractmethod
    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        """Load one kernel of the code on a device, with every limit raised that a launch may need (shared memory).

        Called once per kernel and device, under the kernel's lock. Makes the device's primary context current for
        the call only. Raises `LoadError`.
        """

    @abstractmethod
    def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Buffer:
        """Return device memory, usable in the order of a stream, as scratch memory is: it is freed in that order, too.

        Without a stream it is for any of them, as arrays are: it is there when the call returns, and freeing it waits
        for the work before. Raises `OutOfResourcesError`.
        """

    @abstractmethod
    def copy(self, destination: int, source: int, size: int, device: int, stream: int) -> None:
        """Copy bytes between host and device memory, in any direction: after what is in the stream of the device.

        Between two devices, `device` is the destination's, and the source's is a peer for which `can_access(device,
        peer)` is true: where it is not, podium copies through the host, in two calls. It is done when it returns.
        Raises `LaunchError`.
        """

    @abstractmethod
    def synchronize(self, device: int, stream: int | None = None) -> int:
        """Wait for a stream, or for the whole device; return the status of the work waited for."""

    @abstractmethod
    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        """Launch from Python; return the status. The interpreted level, and every launch with hooks, comes here.

        The parameters are the same bytes that the generated C hands over. The function is one that `load` gave for the
        device; where another device is current, or none, the launch still goes to this one.
        """

    @abstractmethod
    def describe_status(self, status: int) -> tuple[str, str]:
        """Return the name and the text of a status, such as ("CUDA_ERROR_INVALID_VALUE", "invalid argument")."""

    @final
    def failure(self, what: str, status: int, device: int) -> LaunchError:
        """Make the error for a status that a call other than a launch gave, such as that of `copy`.

        For backends to raise; podium does that itself with the statuses that methods return.
        """
        return LaunchError.of_call(what, self.name, device, status, self.describe_status(status))

    # ---- what a backend may leave out: what stands here is then right, or says what the backend cannot do ----

    def default_target(self) -> Target:
        """Return the target to compile for when no device is asked for; left out, that of the current device.

        May initialise the driver.
        """
        return self.devices()[self.current_device()].target

    def current_device(self) -> int:
        """Return the device for launches without arrays: the one that the calling thread last made current, or 0."""
        return 0

    def current_stream(self, device: int) -> int:
        """Return the stream for launches that neither name one nor have arrays whose library knows one; or 0."""
        return 0

    def unload(self, function: Function, device: int) -> None:
        """Release what `load` returned; left out, code stays loaded.

        Called from `Kernel.unload` and from finalizers; it must not raise then.
        """

    def check(self, kernel: str, function: Function, config: LaunchConfig, device: int) -> None:
        """Raise `LaunchConfigError` for a shape that this kernel cannot have on this device, though others may.

        Called once for each configuration and device, before its first launch. Limits that `Device` and `Function`
        state have been checked by then. `kernel` is the name for the message.
        """

    def keep_alive(self, objects: Sequence[object], device: int, stream: int) -> None:
        """Hold on to the arguments of a launch until its stream has passed it.

        Called after each launch on a stream other than 0 where `host_memory` is true: that memory can go meanwhile.
        """

    def load_beside(self, function: Function, code: ObjectCode, name: str, device: int) -> Function:
        """Return another kernel of code that `load` has put on a device; both see the same variables.

        Called for code with variables, with what `load` returned for its first kernel there. Only that one is given to
        `unload`, when nobody needs any of them. Raises `LoadError`. A backend that leaves this out cannot run several
        kernels of a module whose source has variables.
        """
        text = f"backend {self.name!r} cannot load several kernels so that they share their variables. Declare each by "
        text += "podium.kernel, where it has variables of its own, or make the variables constants"
        raise LoadError(f"{name}: {text}", kernel=name, backend=self.name)

    def variable(self, function: Function, code: ObjectCode, name: str, device: int) -> tuple[int, int]:
        """Return the address and the bytes of a variable of code that is on a device, as cuModuleGetGlobal does.

        `function` is what `load` returned for the code there, `name` one of `ObjectCode.variables`; each load of code
        has variables of its own, with the values that the source gives them. `compile` must keep every variable of
        the program, whether a kernel uses it or not. Raises `LoadError`; left out, the backend gives no access.
        """
        raise LoadError(f"Backend {self.name!r} gives no access to variables such as {name}", backend=self.name)

    def capturing(self, device: int, stream: int) -> bool:
        """Tell whether the stream is being captured into a graph; then nothing may be compiled or loaded."""
        return False

    def dlpack_stream(self, stream: int) -> int | None:
        """Return a stream in the numbering of ``__dlpack__``, where CUDA's and ROCm's differ; None for no stream."""
        return None

    def stream_device(self, stream: int) -> int | None:
        """Return the device that a stream belongs to; None if that is not known, as of default streams.

        Called for streams of others, wherever one is used that must be a device's own, and for the error of a launch.
        It must not raise.
        """
        return None

    def can_access(self, device: int, peer: int) -> bool:
        """Tell whether kernels on a device, and `copy` on it, can reach the memory of a peer device."""
        return device == peer

    def accepts(self, code: Target, device: Target) -> bool:
        """Tell whether a device takes code that was compiled for a target, which may not be the device's own."""
        return code == device

    def pointer_device(self, address: int) -> tuple[int, int] | None:
        """Return DLPack's device type and the index of the device that memory belongs to; None if that is not known.

        Host memory that the driver does not know is (1, 0). Called for arrays whose protocol does not tell, and with
        debugging on for addresses.
        """
        return None

    def versions(self) -> Mapping[str, str]:
        """Return the versions of what is at work, such as {"driver": "580.95", "toolkit": "13.0"}: short texts.

        For messages of errors and ``podium doctor``. It must neither raise nor start the vendor's driver, and leaves
        out what is not known.
        """
        return {}
