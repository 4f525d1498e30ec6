"""`Kernel`, the thing that users call, and `Module`, several kernels of one source."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium import _state
from podium._active import driver_config
from podium._fork import ForkSafeLock
from podium._object_code import ObjectCode
from podium._program import Options
from podium._signature import Signature, SignatureLike
from podium._target import Target
from podium.errors import SourceError

if TYPE_CHECKING:
    from podium._binding import Binding
    from podium._compile import Declaration
    from podium._launcher import Launcher
    from podium.backend import Driver, Function

__all__ = ["Kernel", "Module", "kernel", "module"]


class Module:
    """Kernels of one source, compiled with the same options. Nothing is parsed or compiled before it is needed.

    ``module["saxpy"]`` and ``module.kernel("saxpy")`` give a kernel; `names` lists them.
    """

    def __init__(self, source: str | Path | ObjectCode, *, language: str = "cuda", **options: Any) -> None:
        self.options = Options.of(**options)
        self.language = language
        self.code = source if isinstance(source, ObjectCode) else None
        self.path: str | None = None
        self.source = ""
        if isinstance(source, ObjectCode):
            if self.options != Options():
                raise TypeError("Object code is compiled already: compile options have no effect on it")
        elif isinstance(source, Path) or _is_path(source):
            path = Path(source)
            self.source, self.path = path.read_text(encoding="utf-8"), str(path)
        else:
            self.source = source
        self._kernels: dict[str, Kernel] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the kernels in the source."""
        if self.code is not None:
            return tuple(entry.name for entry in self.code.entries)
        from podium._source import find_kernels

        return tuple(each.name for each in find_kernels(self.source))

    def kernel(
        self,
        name: str | None = None,
        *,
        signature: SignatureLike | None = None,
        constants: Mapping[str, object] | None = None,
        contiguous: bool = True,
    ) -> Kernel:
        """Return one kernel, by its name or, for a template, its name expression such as ``reduce<float, 256>``.

        Without a name the source must have exactly one. `signature` beats what the source says. `constants` fixes
        scalar parameters at compile time: the call no longer has them. `contiguous=False` accepts arrays of any
        strides.
        """
        return Kernel(self, name, signature=signature, constants=constants, contiguous=contiguous)

    def __getitem__(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = self.kernel(name)
        return self._kernels[name]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kernels": {}}

    def __repr__(self) -> str:
        return f"<podium module {self.path or 'from text'}>"


def _is_path(source: object) -> bool:
    """Tell a path from kernel text: no kernel can be written without a parenthesis and a brace."""
    if not isinstance(source, str):
        raise TypeError(f"A kernel source is text, a path or object code, not {type(source).__name__}")
    return "\n" not in source and not ("(" in source and "{" in source) and bool(source.strip())


class Kernel:
    """A kernel. ``kernel[grid, block](*args)`` launches it on the active driver.

    A grid or a block is an int or up to three of them; a grid may be a function that computes it from a mapping of the
    arguments; ``kernel[LaunchConfig(...)]`` says everything. The call takes ``stream=`` and ``shared=``, and arguments
    by name. ``launch = kernel[grid, block]`` can be kept, and stays with the driver that was active then.

    Declaring a kernel costs nothing; it is compiled for a device's target, and loaded there, on the first launch.
    """

    def __init__(
        self,
        module: Module,
        name: str | None,
        *,
        signature: SignatureLike | None = None,
        constants: Mapping[str, object] | None = None,
        contiguous: bool = True,
    ) -> None:
        self.module = module
        self._given_name = name
        self._given_signature = Signature.parse(signature) if signature is not None else None
        self._given_constants = dict(constants or {})
        self._contiguous = contiguous
        self._bindings: dict[Driver, Binding] = {}
        self._lock = ForkSafeLock()
        self.loaded: dict[Driver, dict[int, Function]] = {}
        # Not at exit: the driver may be gone by then, and the process gives everything back anyway.
        weakref.finalize(self, _release, self.loaded).atexit = False

    # ---- what it is ----

    @cached_property
    def declaration(self) -> Declaration:
        """Its name, signature and program, read from the source without a driver. Raises `SourceError`."""
        from podium._compile import Declaration, declare

        code = self.module.code
        if code is None:
            return declare(
                self.module.source,
                self.module.path,
                self.module.language,
                self.module.options,
                self._given_name,
                self._given_signature,
                self._given_constants,
            )
        from podium._program import Program

        if self._given_name is None and len(code.entries) != 1:
            names = ", ".join(entry.name for entry in code.entries)
            raise SourceError(f"The object code has several kernels: {names}. Give a name")
        entry = code.entry(self._given_name or code.entries[0].name)
        return Declaration(entry.name, self._given_signature or entry.signature, Program("", code.format))

    @property
    def name(self) -> str:
        """The kernel's name, with the template arguments it was given."""
        return self.declaration.name

    entry_name = name

    @property
    def signature(self) -> Signature:
        """The types and names of its parameters."""
        return self.declaration.signature

    @property
    def metadata(self) -> dict[str, Any]:
        """What the launcher must know beside the signature."""
        known = dict(self.module.code.metadata) if self.module.code is not None else {}
        return {"name": self.name, "contiguous": self._contiguous, "block": 1, **known}

    def __repr__(self) -> str:
        known = self.__dict__.get("declaration")  # asking for it would parse the source
        return f"<podium kernel {known.name if known else self._given_name or 'not read yet'} of {self.module!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # What is loaded belongs to this process; another one compiles, or finds it in the cache.
        given = (self._given_signature, self._given_constants, self._contiguous)
        return _kernel_of, (self.module, self._given_name, *given)

    # ---- launching ----

    def __getitem__(self, key: Any) -> Callable[..., None]:
        return self.binding().get(key)

    def __call__(self, *args: Any, **keywords: Any) -> None:
        raise TypeError(f"{self.name} needs a grid and a block: kernel[grid, block](...)")

    def binding(self, driver: Driver | None = None) -> Binding:
        """Return what the kernel has on a driver, by default the active one."""
        driver = driver or driver_config.resolve()
        binding = self._bindings.get(driver)
        if binding is None:
            from podium._binding import Binding

            with self._lock:
                binding = self._bindings.get(driver)
                if binding is None:
                    binding = self._bindings[driver] = Binding(self, driver)
        return binding

    @cached_property
    def run(self) -> Launcher:
        """The low-level launcher on the active driver: ``run(grid_x, grid_y, grid_z, stream, function, *args)``.

        The first access makes it and loads the code; from then on it is a plain attribute.
        """
        binding = self.binding()
        binding.load(binding.driver.current_device())
        return binding.launcher

    @property
    def function(self) -> int:
        """The handle of the kernel on the active driver's current device; loads it if need be."""
        made = self.__dict__.get("run")  # the two go together, whatever is active by now
        driver = made.driver if made is not None else driver_config.resolve()
        return self.binding(driver).load(driver.current_device()).handle

    def load(self, device: int | None = None) -> int:
        """Compile and load the kernel on a device, before the time-critical phase; return its handle."""
        binding = self.binding()
        return binding.load(binding.driver.current_device() if device is None else device).handle

    def warm_up(self, device: int | None = None) -> None:
        """Do everything that a first launch would do, and wait for the generated launcher if there can be one."""
        self.load(device)
        self.binding().launcher.wait()

    @property
    def level(self) -> str:
        """The launcher level on the active driver: "interpreted" or "generated"."""
        return self.binding().launcher.level

    def compile(self, target: Target | None = None, driver: Driver | None = None) -> ObjectCode:
        """Compile for a target, by default the active driver's, and return the code. Needs no device."""
        from podium._compile import compile_program

        if self.module.code is not None:
            return self.module.code
        if driver is None:
            driver = driver_config.get(target.backend) if target is not None else driver_config.resolve()
        return compile_program(driver, self.declaration.program, target or driver.default_target())

    def _discard(self, target: Target, driver: Driver, reason: str) -> bool:
        """Remove the kernel's code for a target from the cache; tell whether it was there."""
        from podium._compile import discard_program

        return self.module.code is None and discard_program(driver, self.declaration.program, target, reason)

    def unload(self) -> None:
        """Release the kernel's code on all devices. The next launch loads it again."""
        # First nobody finds the functions, then nobody keeps them, and only then they go: launches in other threads
        # that come between load them anew.
        released = {driver: _take(functions) for driver, functions in list(self.loaded.items())}
        for binding in list(self._bindings.values()):
            binding.forget()
        _release(released)


def _kernel_of(
    module: Module, name: str | None, signature: Signature | None, constants: dict[str, object], contiguous: bool
) -> Kernel:
    return Kernel(module, name, signature=signature, constants=constants, contiguous=contiguous)


def _take(functions: dict[int, Function]) -> dict[int, Function]:
    """Move the functions out of the table that launches look into."""
    return {device: functions.pop(device) for device in list(functions)}


def _release(loaded: dict[Driver, dict[int, Function]]) -> None:
    """Unload everything that a kernel has on the devices; it refers to the functions only, never to the kernel."""
    for driver, functions in list(loaded.items()):
        while functions and _state.forked_from(driver.name) is None:
            try:
                device, function = functions.popitem()
            except KeyError:  # another thread unloads, too
                break
            driver.unload(function, device)


def kernel(
    source: str | Path | ObjectCode,
    name: str | None = None,
    *,
    signature: SignatureLike | None = None,
    constants: Mapping[str, object] | None = None,
    contiguous: bool = True,
    language: str = "cuda",
    **options: Any,
) -> Kernel:
    """Declare a kernel from CUDA-dialect text, a file, or object code. Nothing is compiled and no driver chosen yet.

    `name` may be left out if the source has one kernel; a template needs its arguments, ``name="reduce<float, 256>"``.
    The signature is read from the source; `signature` beats it. The other arguments are those of `Module.kernel`; the
    options those of the compiler: defines, include_dirs, std, fast_math, debug, line_info, max_registers, flags.

    >>> import podium
    >>> scale = podium.kernel("__global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }")
    >>> print(scale.signature)
    x: *fp32, a: fp32
    """
    return module(source, language=language, **options).kernel(
        name, signature=signature, constants=constants, contiguous=contiguous
    )


def module(source: str | Path | ObjectCode, *, language: str = "cuda", **options: Any) -> Module:
    """Declare a module: several kernels of one source. Takes the options of `kernel`."""
    return Module(source, language=language, **options)
