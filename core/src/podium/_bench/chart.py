"""Charts as SVG, written without a library: bars beside each other, and lines over an axis."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Bar", "Chart", "Line", "bar_chart", "line_chart", "svg"]

_WIDTH = 760
_ROW, _TITLE, _AXIS, _MARGIN = 22, 34, 46, 12
_LEAST = 320  # of bars
_FAR = 30  # how many times as long makes an axis logarithmic
_CHARACTER = 6.9  # the width of most, at the size below
_TEXT = 'font-family="Helvetica, Arial, sans-serif" font-size="12"'
_OURS, _OTHERS, _GRID = "#ff7f0e", "#7f7f7f", "#dddddd"
_COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b")


@dataclass(frozen=True)
class Chart:
    """A part of a picture."""

    width: float
    height: float
    body: str


@dataclass(frozen=True)
class Bar:
    """A bar with its name: the median, and the quartiles around it. `ours` has a colour of its own."""

    name: str
    median: float
    lower: float
    upper: float
    ours: bool = False


@dataclass(frozen=True)
class Line:
    """A line with its name: points from left to right. Lines of one colour belong together."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: int
    dashed: bool = False


def svg(charts: Sequence[Chart]) -> str:
    """Put charts below each other into one picture."""
    width, height = max(chart.width for chart in charts), sum(chart.height for chart in charts)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
    ]
    top = 0.0
    for chart in charts:
        parts.append(f'<g transform="translate(0 {top:g})">{chart.body}</g>')
        top += chart.height
    return "\n".join([*parts, "</svg>", ""])


def bar_chart(title: str, unit: str, bars: Sequence[Bar], *, reference: float | None = None) -> Chart:
    """Draw bars from 0, or on a logarithmic axis where they differ much; with a line at a reference."""
    left = _MARGIN + 8 + _CHARACTER * max(len(bar.name) for bar in bars)
    room = 3 + _CHARACTER * max(len(_number(bar.median)) for bar in bars)
    right = max(_WIDTH - _MARGIN - room, left + _LEAST)
    values = [value for bar in bars for value in (bar.median, bar.upper)]
    axis = _Axis(values, left, right, logarithmic=max(values) > _FAR * min(values) > 0)
    bottom = _TITLE + _ROW * len(bars)
    parts = [_heading(title), *_grid(axis, _TITLE, bottom), _label(axis, bottom, unit)]
    for row, bar in enumerate(bars):
        top, middle = _TITLE + _ROW * row + 3, _TITLE + _ROW * row + _ROW / 2
        end = axis.at(bar.median)
        parts += [
            f'<rect x="{left:g}" y="{top}" width="{max(0.0, end - left):.1f}" height="{_ROW - 6}" '
            f'fill="{_OURS if bar.ours else _OTHERS}"/>',
            _line(axis.at(bar.lower), middle, axis.at(bar.upper), middle, "black"),
            _text(left - 6, middle + 4, bar.name, "end"),
            _text(max(end, axis.at(bar.upper)) + 4, middle + 4, _number(bar.median)),
        ]
    if reference is not None:
        parts.append(_line(axis.at(reference), _TITLE, axis.at(reference), bottom, "black"))
    return Chart(right + room + _MARGIN, bottom + _AXIS, "".join(parts))


def line_chart(title: str, across: str, up: str, lines: Sequence[Line], height: float = 260) -> Chart:
    """Draw lines of points, on axes from 0."""
    points = [point for line in lines for point in line.points]
    key = 30 + _CHARACTER * max(len(line.name) for line in lines)
    left, right, bottom = 64.0, _WIDTH - _MARGIN - key, _TITLE + 20 + height
    x_axis = _Axis([x for x, _ in points], left, right)
    y_axis = _Axis([y for _, y in points], bottom, _TITLE + 20)
    parts = [_heading(title), _text(_MARGIN, _TITLE + 8, up), *_grid(x_axis, _TITLE + 20, bottom)]
    for value in y_axis.ticks:
        y = y_axis.at(value)
        parts += [_line(left, y, right, y, _GRID), _text(left - 6, y + 4, _number(value), "end")]
    parts.append(_label(x_axis, bottom, across))
    for number, line in enumerate(lines):
        colour, y = _COLOURS[line.colour % len(_COLOURS)], _TITLE + 28 + 18 * number
        look = f'stroke="{colour}"' + ' stroke-dasharray="5 4"' * line.dashed
        at = [(x_axis.at(x), y_axis.at(y)) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        parts.append(f'<polyline points="{path}" fill="none" stroke-width="1.5" {look}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in at]
        parts.append(f'<line x1="{right + 12:.1f}" y1="{y}" x2="{right + 32:.1f}" y2="{y}" {look}/>')
        parts.append(_text(right + 36, y + 4, line.name))
    return Chart(_WIDTH, bottom + _AXIS, "".join(parts))


class _Axis:
    """Places values between two ends of the picture."""

    def __init__(self, values: Sequence[float], start: float, end: float, *, logarithmic: bool = False) -> None:
        self._start, self._end, self._logarithmic = start, end, logarithmic
        low, high = min(values), max(values)
        if high <= 0:
            high = 1.0
        if logarithmic:
            self._low, self._high = math.log10(low) - 0.3, math.log10(high)
            powers = range(math.floor(self._low), math.ceil(self._high) + 1)
            steps = (1, 2, 5) if self._high - self._low < 3 else (1,)
            ticks = [step * 10.0**power for power in powers for step in steps]
            self.ticks = [tick for tick in ticks if self._low <= math.log10(tick) <= self._high]
        else:
            self._low, self._high = 0.0, high
            power = 10.0 ** math.floor(math.log10(high / 4))
            step = next(step * power for step in (1, 2, 5, 10) if high / (step * power) <= 6)
            self.ticks = [step * count for count in range(int(high / step) + 1)]

    def at(self, value: float) -> float:
        """Give the place of a value; one below the axis is at its start."""
        if self._logarithmic:
            value = math.log10(value) if value > 0 else self._low
        share = (max(value, self._low) - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)


def _grid(axis: _Axis, top: float, bottom: float) -> list[str]:
    parts = []
    for value in axis.ticks:
        x = axis.at(value)
        parts += [_line(x, top, x, bottom, _GRID), _text(x, bottom + 16, _number(value), "middle")]
    return parts


def _label(axis: _Axis, bottom: float, text: str) -> str:
    return _text(axis.at(0) + 4, bottom + 33, text)


def _heading(title: str) -> str:
    return f'<text x="{_MARGIN}" y="18" {_TEXT} font-weight="bold">{html.escape(title)}</text>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {_TEXT} text-anchor="{anchor}">{html.escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
