"""Reading CUDA C++ text: which kernels and variables there are, what kernels take, and which headers are included.

Nothing outside this package imports its modules. They are imported when first used, and tree-sitter later still: a
process that finds everything in the cache needs none of it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from podium._source._includes import scan_includes
    from podium._source._module import parse_module
    from podium._source._name_expression import check_name_expression
    from podium._source._parse import KernelDeclaration, ParsedKernel, find_kernels, parse_kernel

__all__ = [
    "KernelDeclaration",
    "ParsedKernel",
    "check_name_expression",
    "find_kernels",
    "parse_kernel",
    "parse_module",
    "scan_includes",
]

_HOMES = {"scan_includes": "_includes", "check_name_expression": "_name_expression", "parse_module": "_module"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES.get(name, '_parse')}"), name)
