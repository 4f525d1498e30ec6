"""Hostile arguments: objects that lie about themselves, raise when they are asked, or change their mind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import podium
from podium.backend import Driver
from podium.errors import PodiumError
from podium.testing._conformance.child import add_kernel
from podium.testing._conformance.contract import contract
from podium.testing._conformance.foreign_array import DlpackArray, use
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Hostile"]


class _Refusal(Exception):
    """What hostile objects raise."""


def _refuse(*_: Any, **__: Any) -> Any:
    raise _Refusal


def _object(**members: Any) -> Any:
    """Return an object of a class of its own with these methods and attributes."""
    return type("Hostile", (), members)()


class _Liar(int):
    """An int that says that it is another one."""

    def __index__(self) -> int:
        return _refuse()  # type: ignore[no-any-return]

    def __int__(self) -> int:
        return _refuse()  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return _refuse()  # type: ignore[no-any-return]

    __hash__ = int.__hash__


_NUMBERS: dict[str, Any] = {
    "an index that raises": _object(__index__=_refuse),
    "an index that is no int": _object(__index__=lambda self: "1"),
    "an index that is too large": _object(__index__=lambda self: 1 << 40),
    "attributes that raise": _object(__getattr__=_refuse),
    "a class that lies": _object(__class__=property(lambda self: int)),
    "a truth value that raises": _object(__bool__=_refuse, __len__=_refuse),
}
_ADDRESSES: dict[str, Any] = {
    "data_ptr that raises": _refuse,
    "data_ptr that is a text": lambda self: "1",
    "data_ptr that is None": lambda self: None,
    "data_ptr that is negative": lambda self: -4096,
    "data_ptr over 64 bits": lambda self: 1 << 64,
    "data_ptr that is a float": lambda self: 4096.0,
}
_ARRAYS: dict[str, Any] = {
    **{name: _object(data_ptr=method) for name, method in _ADDRESSES.items()},
    "a device that raises": _object(__dlpack__=_refuse, __dlpack_device__=_refuse),
    "a device that is none": _object(__dlpack__=_refuse, __dlpack_device__=lambda self: "here"),
    "a device of three numbers": _object(__dlpack__=_refuse, __dlpack_device__=lambda self: (1, 2, 3)),
    "attributes that raise": _object(__getattr__=_refuse),
    "a representation that raises": _object(__repr__=_refuse, __str__=_refuse),
}


def _refused(launch: Callable[[Any], object], value: Any) -> bool:
    """Tell whether a launch is refused; an error of the object's own may reach the caller as it is."""
    try:
        launch(value)
    except (PodiumError, _Refusal, TypeError, ValueError):
        return True
    return False


@contract("Arguments")
class Hostile(Subject):
    """What no honest program passes; nothing of it may crash, launch, or stay behind."""

    def test_numbers_that_lie_or_raise(self, driver: Driver, level: Level) -> None:
        """An object that is no number, or raises when it is asked for one, is an error, and nothing is launched."""
        kernel, x = add_kernel(), podium.asarray([1])
        self._check_refused(driver, _NUMBERS, lambda value: kernel[1, 1](x, value), x, kernel)

    def test_subclasses_of_int_have_the_value_of_an_int(self, driver: Driver, level: Level) -> None:
        """A subclass of int is passed by the value that it has as an int, whatever its methods say, or is refused."""
        kernel, x = add_kernel(), podium.asarray([1])
        passed = 0
        try:
            kernel[1, 1](x, _Liar(5))
            passed = 5
        except (PodiumError, _Refusal):
            pass
        podium.synchronize()
        if self.capabilities.executes:
            assert x.tolist() == [1 + passed]

    def test_arrays_that_lie_or_raise(self, driver: Driver, level: Level) -> None:
        """An array whose protocol raises or gives nonsense is an error, and nothing is launched."""
        kernel, x = add_kernel(), podium.asarray([1])
        x_device = x.__dlpack_device__()
        arrays = {
            **_ARRAYS,
            "a capsule that is none": _object(__dlpack__=lambda self, **_: 5, __dlpack_device__=lambda self: x_device),
            "an export that raises": _object(__dlpack__=_refuse, __dlpack_device__=lambda self: x_device),
            "a capsule that was used": _Used(x),
        }
        self._check_refused(driver, arrays, lambda value: kernel[1, 1](value, 1), x, kernel)

    def test_grids_blocks_and_streams_that_lie_or_raise(self, driver: Driver, level: Level) -> None:
        """Grids, blocks and streams that raise or are of the wrong kind are errors, and nothing is launched."""
        kernel, x = add_kernel(), podium.asarray([1])
        wrong: dict[str, Any] = {
            "an index that raises": _object(__index__=_refuse),
            "an iterator that raises": _object(__iter__=_refuse),
            "endless axes": _object(__iter__=lambda self: iter(int, 1)),
            "a text": "11",
            "nothing": None,
            "no axes": (),
            "axes in axes": ((1, 1), 1),
        }
        self._check_refused(driver, wrong, lambda value: kernel[value, 1](x, 1), x, kernel)
        self._check_refused(driver, wrong, lambda value: kernel[1, value](x, 1), x, kernel)
        streams = {
            "a protocol that raises": _object(__cuda_stream__=_refuse),
            "a protocol with one number": _object(__cuda_stream__=lambda self: 0),
            "a protocol with texts": _object(__cuda_stream__=lambda self: ("0", "0")),
            "a protocol of another version": _object(__cuda_stream__=lambda self: (0, -1)),
        }
        self._check_refused(driver, streams, lambda value: kernel[1, 1](x, 1, stream=value), x, kernel)

    def _check_refused(
        self, driver: Driver, values: dict[str, Any], launch: Callable[[Any], object], x: Any, kernel: podium.Kernel
    ) -> None:
        kernel[1, 1](x, 1)
        podium.synchronize()
        before, contents = self.count(driver), x.tolist()
        for name, value in values.items():
            assert _refused(launch, value), f"{name} was taken"
        podium.synchronize()
        assert self.count(driver) == before, "a refused launch reached the driver"
        if self.capabilities.executes:
            assert x.tolist() == contents, "a refused launch ran"
        kernel[1, 1](x, 1)
        podium.synchronize()
        if self.capabilities.executes:
            assert x.tolist() == [contents[0] + 1]


class _Used(DlpackArray):
    """An array that gives out one capsule, which was used before."""

    def __init__(self, x: Any) -> None:
        super().__init__(x, x.ptr, (1,), "i32", x.__dlpack_device__())
        self._capsule = super().__dlpack__()

    def __dlpack__(self, **_: Any) -> Any:
        return use(self._capsule)
