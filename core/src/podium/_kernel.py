"""`Kernel`, the thing that users call."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from podium import _state
from podium._active import driver_config
from podium._computed import computed
from podium._fork import ForkSafeLock
from podium._object_code import ObjectCode
from podium._signature import Signature, SignatureLike
from podium._target import Target
from podium.errors import LaunchConfigError, SourceError

if TYPE_CHECKING:
    from podium._binding import Binding
    from podium._compile import Declaration
    from podium._launcher import Launcher
    from podium._module import Module
    from podium._module_program import Given
    from podium.backend import Driver, Function, Occupancy

__all__ = ["Kernel"]


class Kernel:
    """A kernel. ``kernel[grid, block](*args)`` launches it on the active driver.

    A grid or a block is an int or up to three of them; a grid may be a function that computes it from a mapping of the
    arguments; ``kernel[LaunchConfig(...)]`` says everything. The call takes ``stream=`` and ``shared=``, and arguments
    by name. ``launch = kernel[grid, block]`` can be kept, and stays with the driver that was active then.

    Declaring a kernel costs nothing; it is compiled for a device's target, and loaded there, on the first launch.
    """

    __slots__ = ("__dict__", "__weakref__", "_shortcut")  # the last is read in C, where it lies

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
        self.given: Given = (
            name,
            Signature.parse(signature) if signature is not None else None,
            dict(constants or {}),
        )
        self._contiguous = contiguous
        self._shortcut: object = None
        self._bindings: dict[Driver, Binding] = {}
        self._lock = ForkSafeLock()
        self.loaded: dict[Driver, dict[int, Function]] = {}
        # Not at exit: the driver may be gone by then, and the process gives everything back anyway.
        self._kept: list[tuple[Driver, int, Function]] = []  # what was unloaded while a launch had it
        weakref.finalize(self, _release, self.loaded, self._kept).atexit = False

    # ---- what it is ----

    @computed
    def declaration(self) -> Declaration:
        """Its name, signature and program, read from the source without a driver. Raises `SourceError`."""
        from podium._compile import Declaration, declare

        module, (name, signature, constants) = self.module, self.given
        code = module.code
        if code is None:
            if module.program is not None:
                return module.program.declaration(self.given, is_only=self.given is module._only)
            return declare(module.source, module.path, module.language, module.options, name, signature, constants)
        from podium._program import Program

        if name is None and len(code.entries) != 1:
            names = ", ".join(entry.name for entry in code.entries)
            raise SourceError(f"The object code has several kernels: {names}. Give a name")
        entry = code.entry(name or code.entries[0].name)
        return Declaration(entry.name, signature or entry.signature, Program("", code.format))

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
        return f"<podium kernel {known.name if known else self.given[0] or 'not read yet'} of {self.module!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # What is loaded belongs to this process; another one compiles, or finds it in the cache.
        return _kernel_of, (self.module, self.given, self._contiguous)

    # ---- launching ----

    def __getitem__(self, key: Any) -> Callable[..., None]:
        driver = driver_config.chosen() or driver_config.resolve()
        try:
            binding = self._bindings[driver]
        except KeyError:
            binding = self.binding(driver)
        self._shortcut = binding.shortcut
        return binding.get(key)

    @staticmethod
    def _look_up_in_c(module: Any) -> None:
        """Give kernels the C of a generated launcher's module for ``kernel[grid, block]``, unless they have it."""
        global _subscripts
        if _subscripts is None:
            driver_config._watch(_state.choose)
            method = module.subscript(Kernel, Kernel.__getitem__, driver_config, _state.address())
            Kernel.__getitem__, _subscripts = method, module  # type: ignore[method-assign]

    @staticmethod
    def _make_shortcut(module: Any, driver: Driver, launches: dict[Any, Callable[..., None]]) -> object:
        """Make what ``kernel[grid, block]`` looks into in C, once there is the module of a generated launcher."""
        Kernel._look_up_in_c(module)
        return _subscripts.Shortcut(driver, launches)

    def __call__(self, *args: Any, **keywords: Any) -> None:
        raise TypeError(f"{self.name} needs a grid and a block: kernel[grid, block](...)")

    def binding(self, driver: Driver | str | None = None) -> Binding:
        """Return what the kernel has on a driver, by default the active one."""
        driver = driver_config._given(driver, "Kernel.binding")
        binding = self._bindings.get(driver)
        if binding is None:
            from podium._binding import Binding

            with self._lock:
                binding = self._bindings.get(driver)
                if binding is None:
                    binding = self._bindings[driver] = Binding(self, driver)
        return binding

    @computed
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
        return binding.load(binding.index(device)).handle

    def warm_up(self, device: int | None = None) -> None:
        """Do everything that a first launch would do, and wait for the generated launcher if there can be one.

        Launches from then on are generated, also those that a program has kept from before.
        """
        binding = self.binding()
        binding.launcher.build()
        self.load(device)
        binding.warm_up()

    @property
    def level(self) -> str:
        """The launcher level on the active driver: "interpreted" or "generated"."""
        return self.binding().launcher.level

    def attributes(self, device: int | None = None) -> dict[str, int]:
        """Return what the backend knows of the kernel on a device, loading it if need be.

        That is "max_threads" of a block, and under these names what there is: "registers" of a thread, "shared" (static
        bytes of a block), "local" (bytes of a thread that did not fit into registers), "constant",
        "max_dynamic_shared" (both bytes).
        """
        binding = self.binding()
        index = binding.index(device)
        function = binding.load(index)
        limit = binding.device(index).max_threads
        return {"max_threads": function.max_threads or limit, **function.attributes}

    def occupancy(self, grid: Any, block: Any, *, device: int | None = None, **options: Any) -> Occupancy:
        """Compute how many blocks of a launch run at the same time on a device, loading the kernel if need be.

        The options are those of `LaunchConfig`, such as ``shared`` and ``cluster``. Raises `LaunchConfigError` for a
        launch that cannot be, `UnsupportedError` if the backend does not know.
        """
        from podium._launch_config import LaunchConfig

        binding = self.binding()
        try:
            config = LaunchConfig(grid, block, **options)
        except LaunchConfigError as error:
            raise error.of_kernel(self.name) from None
        return binding.occupancy(config, device)

    def suggested_block(self, *, shared: int = 0, device: int | None = None) -> tuple[int, int]:
        """Return a number of threads in a block that fills the device, and the fewest blocks for that.

        `shared` is the dynamic shared memory of a block, in bytes. Raises `LaunchConfigError` if the device has less,
        `UnsupportedError` if the backend does not know.
        """
        return self.binding().suggested_block(shared, device)

    def compile(self, target: Target | str | None = None, driver: Driver | str | None = None) -> ObjectCode:
        """Compile for a target, by default the active driver's, and return the code. Needs no device.

        A target may be spelled, such as ``"nvidia:sm_90:32"``; ValueError if that is none. `driver` is one, or the name
        of a backend, which need not be able to run here. Raises `CompileError`.
        """
        from podium._compile import compile_program

        if self.module.code is not None:
            return self.module.code
        if isinstance(target, str):
            target = Target.parse(target)
        if driver is None and target is not None:
            driver = target.backend
        driver = driver_config._given(driver, "Kernel.compile", probing=False)
        if self.module.program is not None:
            return self.module.compiled(driver, target or driver.default_target())
        return compile_program(driver, self.declaration.program, target or driver.default_target())

    def _discard(self, target: Target, driver: Driver, reason: str) -> bool:
        """Remove the kernel's code for a target from the cache; tell whether it was there."""
        from podium._compile import discard_program

        return self.module.code is None and discard_program(driver, self.declaration.program, target, reason)

    def unload(self) -> None:
        """Release the kernel's code on all devices. The next launch loads it again.

        Code that has variables belongs to the module, and stays: `Module.unload` releases it. A launch that another
        thread is in the middle of is made with the code of before, which then stays until `unload` is called again, or
        until the kernel goes.
        """
        self._unload()

    def _unload(self) -> bool:
        """Unload; tell whether a launch is under way, so that what it has stays loaded."""
        # First nobody finds the functions, then nobody keeps them, and only then they go: launches in other threads
        # that come between load them anew.
        released = {driver: _take(functions) for driver, functions in list(self.loaded.items())}
        is_busy = True in [binding.forget() for binding in list(self._bindings.values())]  # all are told
        if is_busy:
            for driver, functions in released.items():
                self._kept += [(driver, device, function) for device, function in functions.items()]
        else:
            _release(released, self._kept)
        return is_busy


_subscripts: Any = None  # the module that has the C of Kernel.__getitem__


def _kernel_of(module: Module, given: Given, contiguous: bool) -> Kernel:
    name, signature, constants = given
    made = module.kernel(name, signature=signature, constants=constants, contiguous=contiguous)
    made.given = given  # the very object that a module with one kernel knows it by
    return made


def _take(functions: dict[int, Function]) -> dict[int, Function]:
    """Move the functions out of the table that launches look into."""
    return {device: functions.pop(device) for device in list(functions)}


def _release(loaded: dict[Driver, dict[int, Function]], kept: list[tuple[Driver, int, Function]]) -> None:
    """Unload everything that a kernel has on the devices; it refers to the functions only, never to the kernel."""
    for driver, functions in list(loaded.items()):
        while functions:
            try:
                device, function = functions.popitem()
            except KeyError:  # another thread unloads, too
                break
            kept.append((driver, device, function))
    while kept:
        try:
            driver, device, function = kept.pop()
        except IndexError:  # likewise
            break
        if _state.forked_from(driver.name) is None:
            driver.unload(function, device)
