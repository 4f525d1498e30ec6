"""The errors of podium, one tree.

::

    PodiumError
    ├── BackendError                        choosing a backend
    │   ├── UnknownBackendError             the name is not installed (also a LookupError)
    │   ├── InactiveBackendError            named by the user, but cannot run here
    │   ├── NoActiveBackendError            no installed backend can run here
    │   ├── AmbiguousBackendError           several are equally good
    │   └── PluginError                     a plug-in could not be loaded (strict mode only)
    ├── SourceError                         the kernel's declaration cannot be understood
    ├── SignatureError                      a type or a signature is not well formed (also a ValueError)
    ├── CompileError                        a compiler refused the source; carries its log
    │   └── ToolchainError                  a compiler is missing or does not work
    ├── LoadError                           compiled code could not be loaded on a device
    ├── ArgumentError                       a launch argument does not fit the signature
    │   ├── ArgumentTypeError               ... its type (also a TypeError)
    │   ├── ArgumentValueError              ... its value (also a ValueError)
    │   ├── ArgumentCountError              ... too few, too many, or misnamed (also a TypeError)
    │   └── ArrayDeviceError                ... the array lives where the kernel cannot reach it
    ├── LaunchConfigError                   a grid or block that no launch can have (also a ValueError)
    │   └── OutOfResourcesError             the device has less of a resource than was asked for
    ├── LaunchError                         the driver refused or failed a launch; status name and text
    ├── CaptureError                        a capture or a graph was used in a way that it cannot be
    ├── ForkedProcessError                  a device was used in a process forked after its driver began
    ├── ScratchError                        scratch memory is needed and could not be had
    ├── UnsupportedError                    the backend does not have such a thing (also a NotImplementedError)
    └── SettingError                        an environment variable has a value that means nothing (also a ValueError)

Every error can be pickled, and carries as attributes what its message says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium._record import record

__all__ = [
    "AmbiguousBackendError",
    "ArgumentCountError",
    "ArgumentError",
    "ArgumentTypeError",
    "ArgumentValueError",
    "ArrayDeviceError",
    "BackendError",
    "CaptureError",
    "CompileError",
    "Diagnostic",
    "ForkedProcessError",
    "InactiveBackendError",
    "LaunchConfigError",
    "LaunchError",
    "LoadError",
    "NoActiveBackendError",
    "OutOfResourcesError",
    "PluginError",
    "PodiumDeprecationWarning",
    "PodiumError",
    "PodiumWarning",
    "ScratchError",
    "SettingError",
    "SignatureError",
    "SourceError",
    "ToolchainError",
    "UnknownBackendError",
    "UnsupportedError",
]


class PodiumWarning(UserWarning):
    """Something works less well than it could: no host compiler, a read-only cache, a broken plug-in."""


class PodiumDeprecationWarning(PodiumWarning, DeprecationWarning):
    """Something works that will not for ever; the text says which version of podium is the first without it."""


class PodiumError(Exception):
    """Base of every error that podium raises on purpose.

    Subclasses keep their constructor arguments as attributes and are rebuilt from them by pickle.
    """

    def __init__(self, *args: object, **attributes: object) -> None:
        super().__init__(*args)
        self.__dict__.update(attributes)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, dict(self.__dict__))


def _rebuild(kind: type[PodiumError], args: tuple[object, ...], attributes: Mapping[str, object]) -> PodiumError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


class BackendError(PodiumError):
    """No driver could be chosen."""


class UnknownBackendError(BackendError, LookupError):
    """A backend was named that no installed distribution provides."""

    def __init__(self, name: str, known: Sequence[str], suggestion: str | None = None) -> None:
        otherwise = "Name none, and podium takes a GPU where one can be used; or install what provides it."
        hint = f"Did you mean {suggestion!r}?" if suggestion else otherwise
        super().__init__(f"Unknown backend {name!r}. Installed: {', '.join(known) or 'none'}. {hint}")
        self.name, self.known, self.suggestion = name, tuple(known), suggestion


class InactiveBackendError(BackendError):
    """A backend that the user named cannot run on this machine; it is never replaced silently."""

    def __init__(self, name: str, reason: str, chosen_by: str) -> None:
        super().__init__(
            f"Backend {name!r} was chosen by {chosen_by}, but it is inactive: {reason}. "
            f"Fix that, or choose another backend; `podium doctor` lists them all"
        )
        self.name, self.reason, self.chosen_by = name, reason, chosen_by


class NoActiveBackendError(BackendError):
    """No installed backend can run here; `reasons` has, per backend, its distribution and its reason."""

    def __init__(self, reasons: Mapping[str, tuple[str, str]]) -> None:
        if reasons:
            rows = "".join(f"\n  {name} ({distribution}): {reason}" for name, (distribution, reason) in reasons.items())
            text = (
                f"No active backend. Installed:{rows}\nMend one of these, or install podium-cpu, which runs everywhere"
            )
        else:
            text = "No backend is installed. Install one; podium-cpu runs everywhere"
        super().__init__(text)
        self.reasons = dict(reasons)


class AmbiguousBackendError(BackendError):
    """Several active backends share the highest priority."""

    def __init__(self, names: Sequence[str], priority: int) -> None:
        listed = " and ".join(repr(name) for name in names)
        super().__init__(
            f"Backends {listed} are all active with priority {priority}. Choose one: "
            f"PODIUM_BACKEND={names[0]}, podium.use({names[0]!r}), or podium.driver.set_active({names[0]!r})"
        )
        self.names, self.priority = tuple(names), priority


class PluginError(BackendError):
    """A plug-in failed to load while PODIUM_STRICT_PLUGINS was set."""

    def __init__(self, name: str, distribution: str, reason: str) -> None:
        super().__init__(f"Plug-in {name!r} of {distribution} failed to load: {reason}")
        self.name, self.distribution, self.reason = name, distribution, reason


class SourceError(PodiumError):
    """The declaration of a kernel was not found in the source, or has a type that podium cannot resolve."""

    def __init__(self, message: str, *, kernel: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.kernel, self.line = kernel, line


class SignatureError(PodiumError, ValueError):
    """A type spelling or a signature is not well formed."""

    def __init__(self, message: str, *, spelling: str | None = None) -> None:
        super().__init__(message)
        self.spelling = spelling


@record(frozen=True)
class Diagnostic:
    """One message of a compiler, at a place in the user's source; lines and columns count from 1."""

    file: str
    line: int
    column: int
    severity: str
    message: str


class CompileError(PodiumError):
    """A compiler refused the source. `log` is its whole output, `diagnostics` the places it names."""

    def __init__(
        self,
        message: str,
        *,
        log: str = "",
        diagnostics: Sequence[Diagnostic] = (),
        program: str | None = None,
        target: str | None = None,
    ) -> None:
        super().__init__(message)
        self.log, self.diagnostics = log, tuple(diagnostics)
        self.program, self.target = program, target


class ToolchainError(CompileError):
    """A compiler that is needed is missing or does not work."""


class LoadError(PodiumError):
    """Compiled code could not be loaded.

    `binary` is the target that the code was compiled for and `versions` those of the driver and so on, where they are
    known.
    """

    def __init__(
        self,
        message: str,
        *,
        kernel: str | None = None,
        backend: str | None = None,
        binary: str | None = None,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.kernel, self.backend = kernel, backend
        self.binary, self.versions = binary, dict(versions or {})


class ArgumentError(PodiumError):
    """An argument of a launch does not fit the kernel's signature.

    `index` counts from 0; `value` is a short text of what was passed, `expected` the type's spelling.
    """

    def __init__(
        self,
        message: str,
        *,
        kernel: str | None = None,
        argument: str | None = None,
        index: int | None = None,
        value: str | None = None,
        expected: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kernel, self.argument, self.index = kernel, argument, index
        self.value, self.expected = value, expected


class ArgumentTypeError(ArgumentError, TypeError):
    """The type of an argument does not fit."""


class ArgumentValueError(ArgumentError, ValueError):
    """The value of an argument is outside what its type can hold."""


class ArgumentCountError(ArgumentError, TypeError):
    """There are too few or too many arguments, or one has a name that the kernel does not know."""


class ArrayDeviceError(ArgumentError):
    """An array lives where the kernel cannot reach it.

    `kind` is "host" (host memory given to a device kernel), "device" (another backend's device), or "peer" (on another
    device than the first array of the launch, without peer access).
    """

    def __init__(self, message: str, *, kind: str, **attributes: str | int | None) -> None:
        super().__init__(message)
        self.kind = kind
        self.__dict__.update(attributes)


class LaunchConfigError(PodiumError, ValueError):
    """A grid, a block or an attribute that no launch can have."""

    def __init__(
        self, message: str, *, kernel: str | None = None, axis: str | None = None, value: object = None
    ) -> None:
        super().__init__(message)
        self.kernel, self.axis, self.value = kernel, axis, value

    def of_kernel(self, kernel: str) -> LaunchConfigError:
        """Return the error with the kernel's name in front, for a configuration made where the kernel is known."""
        return (
            self
            if self.kernel
            else LaunchConfigError(f"{kernel}: {self}", kernel=kernel, axis=self.axis, value=self.value)
        )


class OutOfResourcesError(LaunchConfigError):
    """A launch needs more of a resource than the device has."""

    def __init__(self, kernel: str, resource: str, required: int, limit: int, advice: str = "") -> None:
        super().__init__(
            f"{kernel}: {resource} is {required}, the limit is {limit}" + (f"; {advice}" if advice else ""),
            kernel=kernel,
            axis=resource,
            value=required,
        )
        self.resource, self.required, self.limit = resource, required, limit


class LaunchError(PodiumError):
    """The driver refused a launch, or a launch failed on the device.

    `recent` lists the last launches; `binary` is the target that the kernel's code was compiled for, and `versions`
    those of the driver and so on, where they are known.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        status_name: str,
        status_text: str,
        kernel: str,
        backend: str,
        device: int,
        grid: tuple[int, int, int] = (0, 0, 0),
        block: tuple[int, int, int] = (0, 0, 0),
        recent: Sequence[str] = (),
        binary: str | None = None,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.binary, self.versions = binary, dict(versions or {})
        self.status, self.status_name, self.status_text = status, status_name, status_text
        self.kernel, self.backend, self.device = kernel, backend, device
        self.grid, self.block, self.recent = grid, block, tuple(recent)

    @classmethod
    def of_call(
        cls, what: str, backend: str, device: int, status: int, described: tuple[str, str], *, earlier: bool = False
    ) -> LaunchError:
        """Make the error for a status, `described` by name and text, of a call; of `earlier` work, list launches."""
        from podium import _state

        name, text = described
        recent = _state.launches_of(backend) if earlier else []
        return cls(
            f"{what}: {name}: {text} (status {status}; backend {backend}, device {device}){_state.suspicion(recent)}",
            status=status,
            status_name=name,
            status_text=text,
            kernel=what,
            backend=backend,
            device=device,
            recent=recent,
        )


class CaptureError(PodiumError):
    """A launch, an event or a wait has no place in a capture, a capture failed, or a graph cannot do what was asked.

    `status_name` is the driver's, where it was the one to refuse.
    """

    def __init__(self, message: str, *, backend: str, status: int = 0, status_name: str | None = None) -> None:
        super().__init__(message)
        self.backend, self.status, self.status_name = backend, status, status_name


class ForkedProcessError(PodiumError):
    """A driver that was initialised in the parent cannot be used in a forked child."""

    def __init__(self, backend: str, parent: int) -> None:
        super().__init__(
            f"Backend {backend!r} was initialised in process {parent}, and this process was forked from it. "
            f"Start workers with the 'spawn' or 'forkserver' method, or use the device in the child only"
        )
        self.backend, self.parent = backend, parent


class ScratchError(PodiumError):
    """A kernel needs scratch memory and no allocator could give it."""

    def __init__(self, message: str, *, kernel: str, size: int, alignment: int) -> None:
        super().__init__(message)
        self.kernel, self.size, self.alignment = kernel, size, alignment


class UnsupportedError(PodiumError, NotImplementedError):
    """A backend has no such thing as was asked for: `feature` names it, as `Driver.features` does."""

    def __init__(self, backend: str, feature: str) -> None:
        super().__init__(f"Backend {backend!r} has no {feature}")
        self.backend, self.feature = backend, feature


class SettingError(PodiumError, ValueError):
    """An environment variable has a value that means nothing."""

    def __init__(self, variable: str, value: str, expected: str) -> None:
        super().__init__(f"{variable}={value!r} is not valid: expected {expected}")
        self.variable, self.value, self.expected = variable, value, expected
