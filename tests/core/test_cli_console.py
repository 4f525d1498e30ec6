"""Tables and lines: plain where there is no terminal, laid out where there is one, and never cut off."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from podium._cli.console import Console
from podium._cli.elements import elements_text
from podium._cli.quantity import bytes_text, duration_text, shape_text

REASON = (
    "libvendor.so.1 cannot be opened: it is in none of /opt/vendor/lib64, /usr/lib; install the vendor's driver " * 3
)

PROGRAM = f"""
from podium._cli.console import Console
console = Console()
console.table(("backend", "state", "reason"), [("gpu", "inactive", {REASON!r}), ("cpu", "active", "")])
console.heading("What to do")
console.line({REASON!r})
with console.progress("Compiling"):
    pass
"""

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def on_terminal(columns: int, **environment: str) -> str:
    """Run the program on a terminal of so many columns, and return what it wrote there."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR", "TERM")}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=slave, env={**kept, "TERM": "xterm-256color", **environment}
    )
    os.close(slave)
    written = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # Linux tells the end of the other side so
            break
        if not chunk:
            break
        written += chunk
    os.close(master)
    assert process.wait(60) == 0
    return written.decode()


def words(text: str) -> list[str]:
    without_codes = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return re.sub(r"[─━│┃┏┓┗┛┡┩└┘┬┴┳┻┼╇├┤]", " ", without_codes).split()


@pytest.mark.parametrize("columns", [10, 40, 80, 200])
def test_no_width_cuts_anything_off(columns: int) -> None:
    """Each word of a reason is there whole, however narrow the terminal is."""
    table, _, rest = on_terminal(columns).partition("What to do")
    position = 0
    for word in REASON.split():
        position = words(table).index(word, position) + 1
    assert words(table).count("inactive") == 1
    assert words(rest)[: len(REASON.split())] == REASON.split()


@pytest.mark.parametrize("columns", range(1, 150, 4))
def test_no_column_is_cut_off(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide cells in the middle of a table stay whole at every width, as do the words of the last column."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    row = ("cpu 0", "2147483647x65535x65535", "two words", "an architecture", "the name of it 漢字")
    Console(stream).table(("device", "grid", "some", "more", "name"), [row])
    shown = words(stream.getvalue())
    assert "…" not in stream.getvalue()
    for word in " ".join(row).split():
        assert word in shown


def test_a_title_is_one_line_beside_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A title that has two lines over a column has one where the table is too wide."""
    monkeypatch.setenv("COLUMNS", "10")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    Console(stream).table(("one launch", "median\n(µs)"), [("bound launch", "0.29")])
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert plain == "one launch: bound launch\nmedian (µs): 0.29\n\n"


def test_a_terminal_has_colour() -> None:
    """On a terminal states are coloured."""
    assert COLOUR.search(on_terminal(120))


def test_no_color() -> None:
    """NO_COLOR takes colours away and leaves the table."""
    written = on_terminal(120, NO_COLOR="1")
    assert not [code for code in COLOUR.findall(written) if re.search(r"\[(?:[0-9;]*;)?(?:3|4|9)[0-9]", code)]
    assert "│" in written


def test_a_dumb_terminal_is_none() -> None:
    """A terminal that says it is dumb gets plain text."""
    written = on_terminal(120, TERM="dumb")
    assert "\x1b" not in written
    assert "│" not in written


def test_plain_table() -> None:
    """Without a terminal columns are aligned with blanks, long cells stay on their line, and nothing is drawn."""
    stream = io.StringIO()
    console = Console(stream)
    console.table(("name", "reason"), [("gpu", REASON), ("longer", "two\nlines")])
    assert stream.getvalue().splitlines() == [
        "name    reason",
        f"gpu     {REASON}".rstrip(),
        "longer  two",
        "        lines",
    ]


def test_progress_needs_a_terminal() -> None:
    """Progress is not shown where it would end up in a file."""
    stream = io.StringIO()
    with Console(stream).progress("Compiling"):
        pass
    assert stream.getvalue() == ""


@pytest.mark.parametrize("text", ["[bold]not markup[/bold]", ":smile:", "a\x1b[2Jb", "bell\x07", "tab\there"])
def test_text_is_text(text: str) -> None:
    """Text of others is no markup, and does not steer the terminal."""
    stream = io.StringIO()
    console = Console(stream)
    console.line(text)
    console.table(("a",), [(text,)])
    shown = stream.getvalue()
    assert shown.count(text.encode("unicode_escape").decode()) == 2
    assert "\x1b" not in shown


def test_markup_is_text_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal brackets in texts are shown, too."""

    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    console = Console(stream)
    console.line("[red]x[/red]", style="bold")
    console.table(("a",), [("[/nothing]",)])
    assert "[red]x[/red]" in stream.getvalue()
    assert "[/nothing]" in stream.getvalue()


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (5 << 50, "5120.0 TiB")],
)
def test_bytes(count: int, text: str) -> None:
    """Bytes have binary units."""
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5e-6, "1.5 µs"), (123e-6, "123 µs"), (0.0123, "12.3 ms"), (0.9994, "999 ms"), (2.5, "2.50 s")],
)
def test_durations(seconds: float, text: str) -> None:
    """Times have the unit that leaves one to three digits before the point."""
    assert duration_text(seconds) == text


def test_shapes() -> None:
    """Shapes are written with x, as they are read."""
    assert shape_text((64, 32)) == "64x32"


def test_elements() -> None:
    """Short axes are shown whole, of long ones the ends; rows stand below each other."""
    assert elements_text([1, 2, 3]) == "[1, 2, 3]"
    assert elements_text(list(range(9))) == "[0, 1, 2, ..., 6, 7, 8]"
    assert elements_text([0.1, 1e30, float("nan")]) == "[0.1, 1e+30, nan]"
    assert elements_text([[1, 2], [3, 4]]) == "[[1, 2],\n [3, 4]]"
    assert elements_text(3.5) == "3.5"
    assert elements_text([]) == "[]"
