"""What measuring is made of: turns and their statistics, charts, reports, and the words of the command line."""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import podium
from podium._bench.chart import Bar, Line, bar_chart, line_chart, svg
from podium._bench.comparison import compare
from podium._bench.driver_loop import driver_loop
from podium._bench.level import pinned_level
from podium._bench.processes import STEPS, add_steps, run_steps, whole_process
from podium._bench.report import Markdown, Report, Silent
from podium._bench.surface import add_options, chosen_parts, finish, prints_json
from podium._bench.turns import Effort, Times, figures_of, quartiles, take_turns
from podium._bench.ways import bound, repeated, streamed, subscripted
from podium.errors import LaunchError
from podium.testing import FakeDriver

SVG = "{http://www.w3.org/2000/svg}"

# ---- Turns ----


def test_ways_take_turns() -> None:
    """Each round times every way once, after one untimed call, and begins with another; the device is waited for first."""
    told: list[str] = []

    def way(name: str) -> None:
        told.append(name)

    ways = {name: lambda name=name: way(name) for name in "abc"}
    times = take_turns(ways, Effort(3, 0), settle=lambda: way("-"), between=lambda: way("|"))
    rounds = "".join(told)[len("aabbcc") :]  # each was tried, to find how many calls fill a sample
    assert rounds == "a-ab-bc-c|" + "b-bc-ca-a|" + "c-ca-ab-b|"
    assert {name: len(samples) for name, samples in times.samples.items()} == {"a": 3, "b": 3, "c": 3}


def test_a_way_may_do_its_work_many_times() -> None:
    """`loops` divides what a call took; a clocked way's own seconds are taken, and not the clock's."""
    ways = {"many": lambda: None, "clocked": lambda: 6.0}
    times = take_turns(ways, Effort(4, 0), {"clocked": 3}, clocked=("clocked",))
    assert times.samples["clocked"] == [2.0, 2.0, 2.0, 2.0]
    assert max(times.samples["many"]) < 2.0


def test_rounds_end_when_the_time_is_over() -> None:
    """A way that takes long is measured less often, and never less than the least number of rounds."""
    times = take_turns({"any": lambda: None}, Effort(100, 0, most_s=0.0, least_rounds=7))
    assert len(times.samples["any"]) == 7


def test_statistics() -> None:
    """Ratios and differences are those of rounds; quartiles and the smallest stand beside the median."""
    times = Times({"a": [2.0, 6.0, 12.0], "b": [1.0, 2.0, 3.0]})
    assert times.ratio("a", "b").median == 3.0
    assert times.beside("a", "b") == 4.0
    assert str(times.ratio("b", "b")) == "1.00 (1.00 to 1.00)"
    assert times.quartiles("a") == (4.0, 9.0)
    assert times.figures()["b"] == {"median_s": 2.0, "lower_s": 1.5, "upper_s": 2.5, "min_s": 1.0, "samples": 3}
    assert quartiles([5.0]) == (5.0, 5.0, 5.0) and figures_of([5.0])["samples"] == 1


# ---- Charts ----


def parsed(text: str) -> ElementTree.Element:
    """Read a picture, which must be XML."""
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    return root


def texts_of(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


def test_bars_are_as_long_as_their_values() -> None:
    """On an axis from 0 a bar twice the value is twice as long; names and numbers stand beside, escaped."""
    chart = bar_chart("a < b", "µs", [Bar("x & y", 2.0, 1.5, 2.5, ours=True), Bar("z", 4.0, 4.0, 4.0)], reference=4.0)
    root = parsed(svg([chart]))
    background, first, second = root.iter(f"{SVG}rect")
    assert background.get("fill") == "white"
    assert float(second.get("width", 0)) == pytest.approx(2 * float(first.get("width", 0)), abs=0.2)
    assert first.get("fill") != second.get("fill")
    assert {"a < b", "µs", "x & y", "z", "2", "4"} <= set(texts_of(root))


def test_values_that_differ_much_are_on_a_logarithmic_axis() -> None:
    """Ten times the value is as much longer wherever it is, and nothing leaves the picture."""
    bars = [Bar(f"{value}", value, value, value) for value in (1.0, 10.0, 100.0, 1000.0)]
    root = parsed(svg([bar_chart("t", "ns", bars)]))
    widths = [float(each.get("width", 0)) for each in root.iter(f"{SVG}rect")][1:]
    steps = [after - before for before, after in itertools.pairwise(widths)]
    assert max(steps) - min(steps) < 0.3
    right = max(float(each.get("x", 0)) + float(each.get("width", 0)) for each in root.iter(f"{SVG}rect"))
    assert right <= float(root.get("width", 0))


def test_long_names_make_the_picture_wider() -> None:
    """A name is never cut off: the bars begin behind it."""
    root = parsed(
        svg([bar_chart("t", "ns", [Bar("n" * 120, 1.0, 1.0, 1.0)]), bar_chart("t", "ns", [Bar("n", 1, 1, 1)])])
    )
    left = min(float(each.get("x", 0)) for each in list(root.iter(f"{SVG}rect"))[1:2])
    assert left > 120 * 6 and float(root.get("width", 0)) > left + 300


def test_lines_go_through_their_points() -> None:
    """Each line has a mark for each point, more up is higher, and a dashed one is dashed."""
    lines = [Line("ints", [(0, 1.0), (256, 3.0)], 0), Line("call", [(0, 1.0), (256, 2.0)], 0, dashed=True)]
    root = parsed(svg([line_chart("t", "arguments", "ns", lines)]))
    marks = [(float(each.get("cx", 0)), float(each.get("cy", 0))) for each in root.iter(f"{SVG}circle")]
    assert len(marks) == 4 and marks[1][1] < marks[3][1] < marks[0][1] == marks[2][1]
    assert [each.get("stroke-dasharray") is None for each in root.iter(f"{SVG}polyline")] == [True, False]


# ---- Reports ----


def test_a_comparison_has_a_row_for_everything(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Every way has a row with its figures, what is missing has one with why; JSON and picture are written."""
    report = Report({"device": "D"}, Markdown())
    times = Times({"loop": [1e-6, 1e-6, 1e-6], "ours": [2e-6, 2e-6, 3e-6]})
    missing = {"peer": "not installed"}
    compare(report, "T", times, what="one", reference=("loop", "C loop"), ours=["ours"], missing=missing, sample="few")
    report.target("ours / loop", 1.1, 2.0, "times")
    report.end()
    report.write(tmp_path / "figures.json", tmp_path / "plot.svg")
    printed = capsys.readouterr().out
    assert "device D" in printed and "\n### T\n" in printed
    assert "| one | median (µs) | quartiles (µs) | smallest (µs) | C loop = 1 | beside C loop (µs) |" in printed
    assert "| ours | 2.00 | 2.00 to 2.50 | 2.00 | 2.00 (2.00 to 2.50) | 1.00 |" in printed
    assert "| peer |  |  |  |  | not installed |" in printed
    assert "3 samples of each, in turn; few." in printed
    assert "| ours / loop | at most 1.1 times | 2 times | **no** |" in printed
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert list(figures) == ["schema", "about", "results", "targets"] and figures["schema"] == 1
    assert figures["results"]["T"]["peer"] == {"reason": "not installed"}
    assert figures["results"]["T"]["ours"]["samples"] == 3
    assert figures["targets"] == [{"what": "ours / loop", "at_most": 1.1, "found": 2.0, "unit": "times", "met": False}]
    assert "ours" in texts_of(parsed((tmp_path / "plot.svg").read_text()))


# ---- The command line ----

PARTS = {"launch": "a launch", "growth": "arguments"}


def options(*words: str) -> argparse.Namespace:
    """Read words as the programs do."""
    parser = argparse.ArgumentParser()
    add_options(parser, PARTS)
    return parser.parse_args(words)


def test_parts_are_measured_in_their_own_order() -> None:
    """All parts where none is named, else those that are, however they are ordered."""
    assert chosen_parts(options(), PARTS) == ["launch", "growth"]
    assert chosen_parts(options("growth", "launch"), PARTS) == ["launch", "growth"]
    assert chosen_parts(options("growth", "--json"), PARTS) == ["growth"]
    given = options("--json", "growth")  # a part, and no file
    assert chosen_parts(given, PARTS) == ["growth"] and prints_json(given)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["lunch"], "no part lunch; there are: launch, growth"),
        (["--json", "/no/such/folder/x.json"], "there is no folder /no/such/folder"),
        (["--plot", "/no/such/folder/x.svg"], "there is no folder /no/such/folder"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(words: list[str], problem: str) -> None:
    """A part that there is not, and a file that cannot be written, are errors at once."""
    with pytest.raises(ValueError, match=problem):
        chosen_parts(options(*words), PARTS)


def test_json_goes_to_a_file_or_is_all_that_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`--json FILE` writes; `--json` alone prints the object and nothing else."""
    report = Report({"device": "D"}, Silent())
    report.table("T", ("a",), [("1",)], {"x": 1})
    given = options("--json", str(tmp_path / "x.json"))
    finish(report, given)
    assert not prints_json(given) and capsys.readouterr().out == ""
    finish(report, options("--json"))
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "x.json").read_text()) == report.as_json()


# ---- What is measured ----


def test_ways_launch_what_they_say(fake: FakeDriver) -> None:
    """Each way makes so many launches, with its arguments, and in its stream."""
    with pinned_level("generated"):
        kernel = podium.kernel("__global__ void k(float* a, float* b, float* c, int n) {}")
        kernel.warm_up()
    arguments = 4096, 8192, 12288, 5
    for way in (
        bound(kernel[1, 32], 3, *arguments),
        repeated(kernel[1, 32], 3, *arguments),
        streamed(kernel[1, 32], 9, 3, *arguments),
        subscripted(kernel, 1, 32, 3, *arguments),
        driver_loop(kernel, 32, 0, 9, arguments, 3),
    ):
        fake.launches.clear()
        way()
        assert [int.from_bytes(each, "little") for each in fake.launches[0].parameters] == list(arguments)
        shapes = {(each.grid, each.block, each.cluster, each.flags, each.shared) for each in fake.launches}
        assert shapes == {((1, 1, 1), (32, 1, 1), (1, 1, 1), 0, 0)} and len(fake.launches) == 3
    assert {each.stream for each in fake.launches} == {9}


def test_the_loop_ends_with_the_driver_s_error(fake: FakeDriver) -> None:
    """A status of the driver is the error that a launch would raise, and no launch follows it."""
    kernel = podium.kernel("__global__ void k() {}")
    loop = driver_loop(kernel, 32, 0, 0, (), 4)
    assert loop() >= 0.0 and len(fake.launches) == 4
    fake.next_status = 3
    with pytest.raises(LaunchError, match="FAKE_ERROR_3"):
        loop()
    assert len(fake.launches) == 4


def test_processes_print_their_steps(tmp_path: Path) -> None:
    """Steps of a process come back by name; one that fails is an error with its last words."""
    program = f"{STEPS}\nmark('first')\nmark(sys.argv[1])\nprint(json.dumps(steps))"
    samples: dict[str, list[float]] = {}
    for _ in range(2):
        add_steps(samples, run_steps(program, "second"))
    assert list(samples) == ["first", "second"] and len(samples["first"]) == 2
    assert whole_process("pass") > 0
    with pytest.raises(RuntimeError, match="no such thing"):
        run_steps("raise SystemExit('no such thing')")
