"""A library that is to podium what PyTorch is, without PyTorch: tests/core/torchlike.c, and the Python around it."""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from podium._extension import _FLAGS, INCLUDE_DIR, _python_flags
from podium.backend import HostCompiler

__all__ = ["ELEMENTS", "as_torch", "torchlike"]

SOURCE = Path(__file__).with_suffix(".c")
ELEMENTS = {"uint8": 0, "int16": 2, "float32": 6, "bfloat16": 12, "float8_e5m2": 20}
"""Element types by PyTorch's numbers; of the last one the exchange table does not know."""


@cache
def _library(macros: str) -> Any:
    flags = [*_FLAGS, *_python_flags(), f"-I{INCLUDE_DIR}"]
    code = HostCompiler.find("c").compile({"torchlike.c": macros + SOURCE.read_text()}, "torchlike.c", flags)
    path = (
        Path(tempfile.mkdtemp(prefix="podium-torchlike-")) / "torchlike.so"
    )  # which stays: podium opens it by its file
    atexit.register(shutil.rmtree, path.parent)
    path.write_bytes(code)
    spec = importlib.util.spec_from_file_location("torchlike", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def torchlike(macros: str = "") -> Any:
    """Make the library anew, with types of its own, so that nobody has seen its tensors."""
    library = _library(macros)

    class Tensor(library.TensorBase):  # type: ignore[misc]
        """Tensor(data=4096, device=0, element="float32", contiguous=True, trouble=0, device_type=12)"""

        __slots__ = ()
        __dlpack_c_exchange_api__ = library.table

        def __new__(
            cls,
            data: int = 4096,
            device: int = 0,
            element: str = "float32",
            contiguous: bool = True,
            trouble: int = 0,
            device_type: int = 12,
        ) -> Any:
            return super().__new__(cls, data, device_type, device, ELEMENTS[element], contiguous, trouble)

        @property
        def _cdata(self) -> int:
            found: int = self.cdata()
            return found

        def t(self) -> Any:
            return Tensor(self.data_ptr(), contiguous=False, device_type=1)

        def __getitem__(self, index: Any) -> Any:
            whole = not isinstance(index, tuple)
            return Tensor(self.data_ptr() + (12 if whole else 4), contiguous=whole, device_type=1)

    class Parameter(Tensor):
        __slots__ = ()

        def __new__(cls, data: Any) -> Any:
            return library.TensorBase.__new__(cls, *data.place(), ELEMENTS["float32"], True, 0)

    def empty(shape: object, *, dtype: str, device: str) -> Any:
        return Tensor(8192, element=dtype, device_type={"cpu": 1}[device])

    made: Any = ModuleType("torch")
    made.Tensor, made.nn, made.empty, made._C = Tensor, SimpleNamespace(Parameter=Parameter), empty, library
    for name in ELEMENTS:
        setattr(made, name, name)
    return made


@contextmanager
def as_torch(library: Any) -> Iterator[Any]:
    """Have the library in the place of PyTorch, as a program does that has imported it."""
    before = sys.modules.get("torch")
    sys.modules["torch"] = library
    try:
        yield library
    finally:
        if before is None:
            del sys.modules["torch"]
        else:
            sys.modules["torch"] = before
