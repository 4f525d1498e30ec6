"""Code of a module on one device: its kernels see one set of variables there, and the host can reach them."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from podium import _state
from podium._fork import ForkSafeLock
from podium._memory import Array, array_at
from podium._object_code import ObjectCode
from podium._record import record
from podium._variable import Variable
from podium.errors import LoadError

if TYPE_CHECKING:
    from podium.backend import Driver, Function

__all__ = ["LoadedCode"]


class LoadedCode:
    """Code that is on a device for as long as this object, or an array of one of its variables, lives."""

    def __init__(self, driver: Driver, device: int, code: ObjectCode, name: str) -> None:
        """Load the code with one of its kernels. Raises `LoadError`."""
        self._driver, self._device, self._code = driver, device, code
        self._lock = ForkSafeLock()
        self._first = driver.load(code, name, device)
        self._functions = {name: self._first}
        # Not at exit: the driver may be gone by then, and the process gives everything back anyway.
        weakref.finalize(self, _unload, driver, self._first, device).atexit = False

    def function(self, name: str) -> Function:
        """Return a kernel of the code. Raises `LoadError`."""
        with self._lock:
            function = self._functions.get(name)
            if function is None:
                function = self._functions[name] = self._driver.load_beside(self._first, self._code, name, self._device)
            return function

    def variable(self, variable: Variable) -> Array:
        """Return a variable as an array. Raises `LoadError`, also if it is not as large as its type says."""
        address, size = self._driver.variable(self._first, self._code, variable.name, self._device)
        if size != variable.size:
            raise LoadError(
                f"The variable {variable.name} has {size} bytes in the compiled code, but its type {variable.type} has "
                f"{variable.size}. Give its type yourself: "
                f'podium.module(source, variables={{"{variable.name}": "opaque[{size},1]"}})',
                backend=self._driver.name,
            )
        memory = _Memory(address, size, self)
        return array_at(self._driver, self._device, *variable.layout(), memory, variable=variable)


@record(frozen=True)
class _Memory:
    """The memory of a variable; it belongs to the code."""

    ptr: int
    size: int
    code: LoadedCode


def _unload(driver: Driver, function: Function, device: int) -> None:
    if _state.forked_from(driver.name) is None:
        driver.unload(function, device)
