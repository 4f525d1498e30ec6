"""`Module`, several kernels of one source and the variables that they share; and how kernels are declared."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium._active import driver_config
from podium._computed import computed
from podium._fork import ForkSafeLock
from podium._kernel import Kernel
from podium._object_code import ObjectCode, is_object_code
from podium._program import Options
from podium._signature import Signature, SignatureLike
from podium._target import Device, Target
from podium._variable import Variable
from podium.errors import LoadError, SourceError

if TYPE_CHECKING:
    from podium._loaded_code import LoadedCode
    from podium._memory import Array
    from podium._module_program import Given, ModuleProgram
    from podium.backend import Driver

__all__ = ["Module", "kernel", "module"]

# Names of kernels; or names with signatures, None for those that the source tells.
KernelsLike = Iterable[str] | Mapping[str, SignatureLike | None]


class Module:
    """Kernels of one source, compiled with the same options. Nothing is parsed or compiled before it is needed.

    ``module["saxpy"]`` and ``module.kernel("saxpy")`` give a kernel; `names` lists them. ``module.variable("table")``
    gives a variable that is declared ``__device__``, ``__constant__`` or ``__managed__``; `variable_names` lists those.

    The kernels of one module see the same variables, those of another module never. So a source with variables is
    compiled in one piece, with all of its kernels that are no templates, and the instances of templates that are named
    by `kernels`. Without variables, each kernel is compiled by itself, when it is needed.
    """

    def __init__(
        self,
        source: str | Path | ObjectCode,
        *,
        kernels: KernelsLike = (),
        variables: Mapping[str, str] | None = None,
        language: str = "cuda",
        **options: Any,
    ) -> None:
        self.options = Options.of(**options)
        self.language = language
        self.path: str | None = None
        self.source = ""
        self._kernels_given = _signatures(kernels)
        self._variables_given = _variables(variables)
        self._only: Given | None = None
        if isinstance(source, ObjectCode):
            if self.options != Options() or self._kernels_given:
                raise TypeError("Object code is compiled already: compile options and kernels have no effect on it")
        elif isinstance(source, Path) or _is_path(source):
            path = Path(source)
            self.source, self.path = _read(path), str(path)
        else:
            self.source = source
        self.code = source.with_variables(self._variables_given) if isinstance(source, ObjectCode) else None
        self._start()

    def _start(self) -> None:
        """Make what belongs to this process."""
        self._kernels: dict[str, Kernel] = {}
        self._made: weakref.WeakSet[Kernel] = weakref.WeakSet()
        self._codes: dict[tuple[Driver, Target], ObjectCode] = {}
        self._loaded: dict[tuple[Driver, int], LoadedCode] = {}
        self._kept: list[LoadedCode] = []  # what was unloaded while a launch had it
        self._lock = ForkSafeLock()
        self._made_lock = ForkSafeLock()  # another one, since declaring a kernel must not wait for a compiler

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the kernels in the source."""
        if self.code is not None:
            return tuple(entry.name for entry in self.code.entries)
        from podium._source import find_kernels

        return tuple(each.name for each in find_kernels(self.source))

    @property
    def variable_names(self) -> tuple[str, ...]:
        """The names of the variables in the source that the host can ask for."""
        return self.program.variable_names if self.program is not None else ()

    @computed
    def program(self) -> ModuleProgram | None:
        """What all kernels are compiled from together; None where each is compiled by itself. Raises `SourceError`."""
        from podium._compile import may_have_variables

        if self.code is None and not self._variables_given and not may_have_variables(self.source, self.options):
            return None
        from podium._module_program import ModuleProgram

        if self.code is not None:
            return ModuleProgram.of_code(self.code)
        return ModuleProgram.of_source(
            self.source,
            self.path,
            self.language,
            self.options,
            self._kernels_given,
            self._variables_given,
            self._only,
        )

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
        made = Kernel(self, name, signature=signature, constants=constants, contiguous=contiguous)
        with self._made_lock:
            self._made.add(made)
        return made

    def __getitem__(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = self.kernel(name)
        return self._kernels[name]

    def variable(self, name: str, *, device: int | None = None) -> Array:
        """Return a variable of the source as an array in the variable's own memory, on the active driver.

        It is that of the current device, unless another is given; the code is compiled and loaded there if it is not
        yet. `Array.copy_from` writes it, `Array.numpy` and `Array.tolist` read it, and kernels take it as an argument.
        An array of the source has the same shape, a single number none, structs are bytes. The array keeps the code.

        Raises `SourceError` if there is no such variable or its type is not known, `CompileError`, and `LoadError`,
        also for a backend that gives no access to variables.
        """
        from podium import _state
        from podium._limits import find_device, loadable_device

        if self.program is None:
            from podium._module_program import no_variables

            raise no_variables(name, self)
        variable = self.program.variable(name)
        driver = driver_config.resolve()
        entries = self.program.program.entries
        if not entries:
            raise LoadError(
                f"The variable {variable.name} cannot be loaded: the module has no kernel to load it with. Name an "
                'instance of a template: podium.module(source, kernels=["reduce<float, 256>"])'
            )
        index = driver.current_device() if device is None else device
        is_loaded = (driver, index) in self._loaded
        found = (find_device if is_loaded else loadable_device)(variable.name, driver, index)
        array = self.loaded(driver, found, entries[0].name).variable(variable)
        if not driver.fork_safe:
            _state.used(driver.name)
        return array

    def compiled(self, driver: Driver, target: Target) -> ObjectCode:
        """Compile all kernels together for a target, or find the code. For modules with variables."""
        from podium._compile import compile_program

        if self.code is not None or self.program is None:
            raise TypeError("Only a module with variables is compiled as a whole, and object code is compiled already")
        with self._lock:
            code = self._codes.get((driver, target))
            if code is None:
                code = self._codes[driver, target] = compile_program(driver, self.program.program, target)
            return code

    def loaded(self, driver: Driver, device: Device, name: str) -> LoadedCode:
        """Return the code on a device, loading it with one of its kernels if need be. For modules with variables.

        What is damaged in the cache is compiled anew, once. Raises `LoadError`.
        """
        from podium._compile import discard_program
        from podium._loaded_code import LoadedCode
        from podium._status import complete

        with self._lock:
            loaded = self._loaded.get((driver, device.index))
            if loaded is not None:
                return loaded
            code = self.code or self.compiled(driver, device.target)
            if not driver.accepts(code.target, device.target):
                raise LoadError(
                    f"{name}: the code was built for {code.target}, the device {device.index} ({device.name}) is "
                    f"{device.target}",
                    kernel=name,
                    backend=driver.name,
                )
            try:
                loaded = LoadedCode(driver, device.index, code, name)
            except LoadError as error:
                program = self.program.program if self.program is not None and self.code is None else None
                if program is None or not discard_program(driver, program, device.target, str(error)):
                    complete(error, driver, device.index, code.target)
                    raise
                del self._codes[driver, device.target]
                loaded = LoadedCode(driver, device.index, self.compiled(driver, device.target), name)
            self._loaded[driver, device.index] = loaded
            return loaded

    def unload(self) -> None:
        """Release the code of all kernels on all devices. The next launch loads it again, with new variables.

        Where an array of a variable is alive, the code that it belongs to stays until it is not.
        """
        self._kept += self._loaded.values()
        self._loaded.clear()
        with self._made_lock:
            made = list(self._made)
        if True not in [each._unload() for each in made]:  # all of them, whatever the first says
            self._kept.clear()

    def __getstate__(self) -> dict[str, Any]:
        # What is loaded belongs to this process; another one compiles, or finds it in the cache.
        own = ("_kernels", "_made", "_codes", "_loaded", "_kept", "_lock", "_made_lock")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def __repr__(self) -> str:
        return f"<podium module {self.path or 'from text'}>"


def _read(path: Path) -> str:
    """Read a source. Raises OSError, and `SourceError` if it is no text in UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        if is_object_code(error.object):
            raise SourceError(
                f"{path} is no source but object code: podium.kernel(podium.ObjectCode.from_file({str(path)!r})) "
                "makes a kernel of it"
            ) from None
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SourceError(
            f"{path}: byte {error.object[error.start]:#04x} in line {line} is not UTF-8, in which sources are read. "
            f"Save the file as UTF-8",
            line=line,
        ) from None


def _is_path(source: object) -> bool:
    """Tell a path from kernel text: no kernel can be written without a parenthesis and a brace."""
    if not isinstance(source, str):
        raise TypeError(f"A kernel source is text, a path or object code, not {type(source).__name__}")
    return "\n" not in source and not ("(" in source and "{" in source) and bool(source.strip())


def _signatures(kernels: KernelsLike) -> dict[str, Signature | None]:
    if isinstance(kernels, str):
        raise TypeError(f"kernels takes a list of names, not the single name {kernels!r}")
    given = kernels if isinstance(kernels, Mapping) else dict.fromkeys(kernels)
    return {name: None if each is None else Signature.parse(each) for name, each in given.items()}


def _variables(variables: Mapping[str, str] | None) -> dict[str, Variable]:
    if variables is not None and not isinstance(variables, Mapping):
        raise TypeError(
            f"variables takes a mapping of names to types, such as {{'table': '[16xfp32]'}}, not {variables!r}"
        )
    if not variables:
        return {}
    made = (Variable.of(_checked(name), spelling) for name, spelling in variables.items())
    return {each.name: each for each in made}


def _checked(name: str) -> str:
    from podium._source import check_name_expression

    try:
        return check_name_expression(name).removeprefix("::")
    except SourceError:
        raise SourceError(
            f"{name!r} cannot be the name of a variable: one is written like table, lib::table or value<float>"
        ) from None


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
    Variables of the source are the kernel's own; ``kernel.module.variable(...)`` gives them.

    >>> import podium
    >>> scale = podium.kernel("__global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }")
    >>> print(scale.signature)
    x: *fp32, a: fp32
    """
    own = module(source, language=language, **options)
    made = own.kernel(name, signature=signature, constants=constants, contiguous=contiguous)
    if own.code is None:
        own._only = made.given
    return made


def module(
    source: str | Path | ObjectCode,
    *,
    kernels: KernelsLike = (),
    variables: Mapping[str, str] | None = None,
    language: str = "cuda",
    **options: Any,
) -> Module:
    """Declare a module: several kernels of one source, and its variables. Takes the options of `kernel`.

    A source with variables is compiled in one piece: `kernels` names the instances of templates that are wanted from
    it, or maps names to signatures for kernels that podium cannot read. `variables` maps names of variables to their
    types where the source does not tell them: ``"fp32"``, ``"[16xfp32]"``, ``"{fp32,i32}"``, ``"opaque[12,4]"``.
    """
    return Module(source, kernels=kernels, variables=variables, language=language, **options)
