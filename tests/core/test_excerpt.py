"""Places in a source, as messages of compilers show them."""

from __future__ import annotations

from pathlib import Path

from podium.backend import Program, declaration, excerpt, kernel_names, source_line
from podium.errors import Diagnostic

SOURCE = """// saxpy
template <class T> __global__ void __launch_bounds__(128) scale(T *x) {
\tx[0] = y;
}
__global__ void saxpy() {}
"""


def test_a_place_has_its_line_and_a_caret_below_the_column() -> None:
    """Tabs stay tabs, so that the caret stands below its character; a place without a line is the head alone."""
    program = Program(SOURCE, path="a.cu")
    shown = excerpt(Diagnostic("a.cu", 3, 9, "error", "no y"), program)
    assert shown == "a.cu:3:9: error: no y\n    3 | \tx[0] = y;\n      | \t       ^"
    assert excerpt(Diagnostic("a.cu", 99, 1, "note", "beyond"), program) == "a.cu:99:1: note: beyond"
    assert excerpt(Diagnostic("/no/file", 1, 1, "note", "there"), program) == "/no/file:1:1: note: there"


def test_lines_come_from_the_source_and_from_files_that_it_includes(tmp_path: Path) -> None:
    """The program's own text needs no file; a header is read."""
    header = tmp_path / "part.h"
    header.write_bytes(b"one\r\ntwo\r\n")
    program = Program("first\r\nsecond")
    assert source_line(program.label, 1, program) == "first" and source_line(program.label, 0, program) is None
    assert source_line(str(header), 2, program) == "two" and source_line(str(header), 9, program) is None


def test_a_name_is_found_where_it_is_declared() -> None:
    """A kernel's declaration beats another mention; template arguments and namespaces do not matter."""
    program = Program(SOURCE)
    assert declaration("lib::scale<float>", program) == (2, 59)
    assert declaration("saxpy", program) == (5, 17)
    assert declaration("T", program) == (2, 17) and declaration("absent", program) == (1, 1)
    assert kernel_names(SOURCE) == ["scale", "saxpy"]
