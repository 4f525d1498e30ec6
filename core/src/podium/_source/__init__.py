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
else:
    from podium._late_names import late_names

    __getattr__, __dir__ = late_names(
        __name__,
        {
            "podium._source._includes": "scan_includes",
            "podium._source._module": "parse_module",
            "podium._source._name_expression": "check_name_expression",
            "podium._source._parse": "KernelDeclaration ParsedKernel find_kernels parse_kernel",
        },
    )

__all__ = [
    "KernelDeclaration",
    "ParsedKernel",
    "check_name_expression",
    "find_kernels",
    "parse_kernel",
    "parse_module",
    "scan_includes",
]
