"""HIP by ctypes, for tests of the stand-in and for what they share with the real runtime."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

Three = tuple[int, int, int]


class Runtime:
    """Functions of a libamdhip64: each gives its status and, where it has some, what it puts out."""

    def __init__(self, path: str) -> None:
        """Open the library."""
        self.library = ctypes.CDLL(path)
        self.library.hipGetErrorName.restype = self.library.hipGetErrorString.restype = ctypes.c_char_p

    def __getattr__(self, name: str) -> Callable[..., int]:
        function: Callable[..., int] = getattr(self.library, name)
        return lambda *values: function(*map(_passed, values))

    def out(self, name: str, *values: Any, kind: Any = ctypes.c_int) -> tuple[int, Any]:
        """Call a function whose first parameter is where it puts its result."""
        result = kind()
        status = getattr(self, name)(ctypes.byref(result), *values)
        return status, result.value

    def handle(self, name: str, *values: Any) -> int:
        """Call a function that must succeed and gives a handle or an address."""
        status, value = self.out(name, *values, kind=ctypes.c_void_p)
        assert status == 0, f"{name} gave {status}"
        return value or 0

    def load(self, code: bytes) -> tuple[int, int]:
        """Load a code object; the status and the module."""
        status, module = self.out("hipModuleLoadData", code, kind=ctypes.c_void_p)
        return status, module or 0

    def function(self, code: bytes, name: str) -> int:
        """Load a code object that must load, and look a kernel up."""
        status, module = self.load(code)
        assert status == 0, f"hipModuleLoadData gave {status}"
        return self.handle("hipModuleGetFunction", ctypes.c_void_p(module), name.encode())

    def launch(
        self,
        function: int,
        grid: Three = (1, 1, 1),
        block: Three = (1, 1, 1),
        arguments: Sequence[bytes] | None = (),
        *,
        shared: int = 0,
        stream: int = 0,
        extra: bytes | None = None,
    ) -> int:
        """Launch by hipModuleLaunchKernel, with arguments by address or packed in `extra`."""
        table = None if arguments is None else parameters(arguments)
        packed = None if extra is None else buffer(extra)
        shape = [ctypes.c_uint(value) for value in (*grid, *block, shared)]
        return self.hipModuleLaunchKernel(ctypes.c_void_p(function), *shape, ctypes.c_void_p(stream), table, packed)

    def launch_cooperative(self, function: int, grid: Three, block: Three, arguments: Sequence[bytes] = ()) -> int:
        """Launch by hipModuleLaunchCooperativeKernel, on the default stream."""
        shape = [ctypes.c_uint(value) for value in (*grid, *block, 0)]
        return self.hipModuleLaunchCooperativeKernel(ctypes.c_void_p(function), *shape, None, parameters(arguments))

    def launch_extended(
        self,
        function: int,
        grid: Three,
        block: Three,
        arguments: Sequence[bytes] = (),
        attributes: Sequence[tuple[int, bytes]] = (),
    ) -> int:
        """Launch by hipDrvLaunchKernelEx, on the default stream; attributes are numbers and the bytes of their values."""
        table = b"".join(struct.pack("=II64s", number, 0, value) for number, value in attributes)
        rows = ctypes.create_string_buffer(table, len(table) or 1)
        config = struct.pack("@7IPPI4x", *grid, *block, 0, 0, ctypes.addressof(rows), len(attributes))
        return self.hipDrvLaunchKernelEx(config, ctypes.c_void_p(function), parameters(arguments), None)


def _passed(value: Any) -> Any:
    return ctypes.c_size_t(value) if isinstance(value, int) and value > 0x7FFFFFFF else value


def parameters(arguments: Sequence[bytes]) -> Any:
    """Return an array of the addresses of arguments, which it keeps alive."""
    kept = [ctypes.create_string_buffer(data, len(data)) for data in arguments]
    table = (ctypes.c_void_p * (len(kept) or 1))(*map(ctypes.addressof, kept))
    table.kept = kept  # type: ignore[attr-defined]
    return table


def buffer(data: bytes) -> Any:
    """Return what `extra` is given for packed arguments."""
    kept = ctypes.create_string_buffer(data, len(data)), ctypes.c_size_t(len(data))
    table = (ctypes.c_void_p * 5)(1, ctypes.addressof(kept[0]), 2, ctypes.addressof(kept[1]), 3)
    table.kept = kept  # type: ignore[attr-defined]
    return table
