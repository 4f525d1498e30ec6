"""Where a command prints: tables and colour where a terminal is there, plain text where not.

The width of the terminal decides how text is laid out and never how much of it there is: nothing is cut off.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from podium._bench.progress import Progress, Unwatched

if TYPE_CHECKING:
    import rich.console
    import rich.progress

__all__ = ["Console"]

_STYLES = {
    "active": "green",
    "passed": "green",
    "verified": "bold green",
    "inactive": "yellow",
    "disabled": "yellow",
    "unavailable": "yellow",
    "failed": "bold red",
    "wrong": "bold red",
}


class Console:
    """Prints lines and tables to a stream, by default standard output.

    Text is shown as it is: it is no markup, and characters that would steer the terminal are escaped. On a terminal
    rich lays it out, with colour unless NO_COLOR is set.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self.is_terminal = self._stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
        self._made: rich.console.Console | None = None

    def line(self, text: str = "", style: str | None = None) -> None:
        """Print text, in a style of rich's if a terminal is there."""
        text = _visible(text)
        if self.is_terminal and style is not None:
            from rich.text import Text

            self._rich.print(Text(text, style=style), soft_wrap=True)
        else:
            print(text, file=self._stream)

    def heading(self, text: str) -> None:
        """Print a heading, with an empty line before it."""
        self.line()
        self.line(text, style="bold")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print rows under the names of their columns; a cell may have several lines. Put the longest column last."""
        rows = [[_visible(cell) for cell in row] for row in rows]
        if self.is_terminal:
            self._rich_table(columns, rows)
        else:
            for line in _plain_table([list(columns), *rows]):
                print(line, file=self._stream)

    @contextmanager
    def progress(self, text: str) -> Iterator[None]:
        """Show that something takes its time, as long as the ``with`` block runs; only where a terminal is there."""
        if not self.is_terminal:
            yield
            return
        from rich.text import Text

        with self._rich.status(Text(_visible(text))):
            yield

    @contextmanager
    def bar(self, parts: int) -> Iterator[Progress]:
        """Show how far something of so many parts is, only where a terminal is there.

        It is drawn when it is told something, and never meanwhile: what is measured must not share a processor with it.
        """
        if not self.is_terminal:
            yield Unwatched()
            return
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
        with RichProgress(*columns, console=self._rich, auto_refresh=False, transient=True) as shown:
            yield _Bar(shown, parts)

    @staticmethod
    @contextmanager
    def silent(text: str) -> Iterator[None]:
        """Show nothing, in place of `progress`."""
        yield

    @property
    def _rich(self) -> rich.console.Console:
        if self._made is None:
            from rich.console import Console as RichConsole

            self._made = RichConsole(file=self._stream, highlight=False, markup=False, emoji=False)
        return self._made

    def _rich_table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        from rich.cells import cell_len
        from rich.table import Table
        from rich.text import Text

        # Narrower than this, rich would break words or lose them. A column has its blanks and a line beside it.
        parts = [[line for cell in cells for line in cell.split("\n")] for cells in zip(columns, *rows)]
        parts[-1] = [word for line in parts[-1] for word in line.split()]
        needed = sum(max(map(cell_len, texts), default=0) + 3 for texts in parts) + 1
        if needed <= self._rich.width:
            table = Table()
            for number, column in enumerate(columns, 1):
                table.add_column(column, no_wrap=number < len(columns), overflow="fold")
            for row in rows:
                table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
            self._rich.print(table)
            return
        for row in rows:
            for column, cell in zip(columns, row):
                title = column.replace("\n", " ")
                self._rich.print(
                    Text(f"{title}: ", style="bold") + Text(cell, style=_STYLES.get(cell, "")), soft_wrap=True
                )
            self._rich.print()


class _Bar:
    """A bar of rich's, with equal room for each part."""

    _INTERVAL = 0.1  # seconds

    def __init__(self, shown: rich.progress.Progress, parts: int) -> None:
        self._shown, self._task = shown, shown.add_task("", total=parts)
        self._begun, self._steps, self._made, self._drawn = 0, 1, 0, 0.0

    def begin(self, what: str, steps: int) -> None:
        """Begin with the next part."""
        self._begun, self._steps, self._made = self._begun + 1, max(1, steps), 0
        self._draw(description=what)

    def advance(self) -> None:
        """Tell that a step of the part has been made; drawn ten times a second at most."""
        self._made += 1
        if time.monotonic() - self._drawn > self._INTERVAL:
            self._draw()

    def _draw(self, **changes: Any) -> None:
        done = self._begun - 1 + min(1.0, self._made / self._steps)
        self._shown.update(self._task, completed=done, refresh=True, **changes)
        self._drawn = time.monotonic()


def _plain_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    cells = [[cell.split("\n") for cell in row] for row in rows]
    widths = [max(len(line) for row in cells for line in row[column]) for column in range(len(rows[0]))]
    for row in cells:
        for number in range(max(map(len, row))):
            texts = [lines[number] if number < len(lines) else "" for lines in row]
            yield "  ".join(text.ljust(width) for text, width in zip(texts, widths)).rstrip()


def _visible(text: str) -> str:
    """Escape what would steer a terminal; texts come from plug-ins, files and the environment."""
    if all(character.isprintable() or character == "\n" for character in text):
        return text
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode("ascii") for each in text
    )
