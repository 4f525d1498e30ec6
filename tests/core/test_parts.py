"""Parts that backends of several vendors are made of: what each does with what a vendor's backend hands over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import podium
from podium.backend import Entry, LaunchConfig, Occupancy, Options, Program, Signature, Target, option_choice
from podium.errors import CompileError, Diagnostic, LaunchError, LoadError, OutOfResourcesError, SettingError
from podium.parts import (
    LaunchRanges,
    check_cooperative,
    compile_error,
    find_symbols,
    flag_pairs,
    is_host_header,
    last_flag,
    read_binary,
    refused_name,
    user_options,
)
from podium.testing import FakeDriver

SOURCE = "__global__ void scale(float* x) {\n\tx[0] = y;\n}\n"
TARGET = Target("fake", "v1", 32)


def program(path: Path | None = None, **options: Any) -> Program:
    entries = (Entry("scale", Signature.parse("x: *fp32")),)
    return Program(SOURCE, "cuda", entries, options=Options.of(**options), path=path)


def said(line: int, message: str = "no y", severity: str = "error") -> Diagnostic:
    return Diagnostic(program().label, line, 9, severity, message)


# ---- what compilers say ----


def test_a_compile_error_shows_the_first_errors_and_keeps_all() -> None:
    """Three errors with their lines, how many more there are, and none of the warnings; all are attributes."""
    found = [said(1, severity="warning"), *(said(2, f"no {name}") for name in "abcde")]
    error = compile_error(program(), TARGET, log="the log", diagnostics=found, otherwise=["not shown"])
    assert isinstance(error, CompileError)
    lines = str(error).splitlines()
    assert lines[0] == f"{program().label} (scale) does not compile for fake:v1:32:"
    assert [line.rpartition(" ")[2] for line in lines if ": error: " in line] == ["a", "b", "c"]
    assert lines[2].endswith("| \tx[0] = y;") and lines[-1] == "... and 2 more errors, in the error's log"
    assert (error.log, list(error.diagnostics), error.target) == ("the log", found, "fake:v1:32")


def test_a_compile_error_without_a_place_says_what_else_is_known() -> None:
    """Where no message has a place the given lines are shown; errors that a backend has picked beat all others."""
    told = str(compile_error(program(), TARGET, log="", diagnostics=[said(1, severity="note")], otherwise=["a", "b"]))
    assert told.splitlines()[1:] == ["a", "b"]
    picked = str(compile_error(program(), TARGET, log="", diagnostics=[said(1), said(2)], errors=[said(3, "this")]))
    assert "this" in picked and "no y" not in picked


def test_a_refused_name_is_told_where_it_is_declared() -> None:
    """An unknown name lists the kernels; a template's has the compiler's reason, since its arguments may be at fault."""
    assert refused_name("scale", "two of them", program(), unknown=False).message == (
        "'scale' does not name one kernel: two of them"
    )
    assert refused_name("scal", "?", program(), unknown=True).message == (
        "there is no kernel 'scal' in the source; it has: scale"
    )
    template = refused_name("scale<half>", "no half", program(), unknown=True)
    assert template.message == "there is no kernel 'scale<half>' in the source (no half); it has: scale"
    assert (template.line, template.column) == (1, 17)


def test_headers_that_only_hosts_have() -> None:
    """C++'s own and those of systems are; a vendor's and a user's, which could be found, are not."""
    assert all(map(is_host_header, ("vector", "type_traits", "sys/mman.h", "unistd.h")))
    assert not any(map(is_host_header, ("cub/cub.cuh", "mine.h", "lib/vector", "")))


# ---- what users give to backends and to their compilers ----


def test_an_option_is_as_given_or_as_its_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given beats the variable, which beats the first choice; each kind of mistake is an error of its own."""
    monkeypatch.delenv("PODIUM_MINE_SPEED", raising=False)
    arguments = "PODIUM_MINE_SPEED", ("low", "high")
    assert option_choice("speed", None, *arguments) == "low"
    monkeypatch.setenv("PODIUM_MINE_SPEED", " high ")
    assert [option_choice("speed", given, *arguments) for given in (None, "low")] == ["high", "low"]
    with pytest.raises(ValueError, match="speed is 'low' or 'high', not 'top'"):
        option_choice("speed", "top", *arguments)
    monkeypatch.setenv("PODIUM_MINE_SPEED", "top")
    with pytest.raises(SettingError, match="PODIUM_MINE_SPEED.*top.*low or high"):
        option_choice("speed", None, *arguments)
    assert option_choice("speed", "low", *arguments) == "low"


def test_flags_are_pairs() -> None:
    """A flag is split at "="; macros and folders are not, and one that stands apart takes the next flag for its value."""
    flags = ["-arch", "v2", "-std=c++17", "-DA=1", "-I/x=y", "-g", "--arch=v3", "-arch"]
    assert list(flag_pairs(flags, ["-arch", "--arch"])) == [
        ("-arch", "v2"),
        ("-std", "c++17"),
        ("-DA=1", None),
        ("-I/x=y", None),
        ("-g", None),
        ("--arch", "v3"),
        ("-arch", ""),
    ]


def test_the_last_flag_counts_and_is_checked() -> None:
    """None without one; what cannot be parsed is an error that names program and flag."""
    assert last_flag(program(), ["-n"], int) is None
    assert last_flag(program(flags=["-n=3", "-n", "4"]), ["-n"], int) == 4
    with pytest.raises(CompileError, match=r"the flag -n: invalid literal .*'x'"):
        last_flag(program(flags=["-n=x"]), ["-n"], int)


def test_headers_of_users_come_first(tmp_path: Path) -> None:
    """Beside the source, then the user's folders, then the flags, and the backend's own folders behind everything."""
    given = program(tmp_path / "scale.cu", include_dirs=["/mine"], flags=["-arch=v1", "-w", "-DA=1"])
    expected = [f"-I{tmp_path}", "-I/mine", "-w", "-DA=1", "-I/own"]
    assert user_options(given, ["-arch"], ["/own"]) == expected
    assert user_options(program(), [], ["/own"]) == ["-I/own"]


# ---- what other tools made ----


def test_binaries_are_bytes_or_files(tmp_path: Path) -> None:
    """Bytes have no name of their own; a file that cannot be read is an error with its path and the reason."""
    file = tmp_path / "code.bin"
    file.write_bytes(b"code")
    assert read_binary(memoryview(b"code")) == (b"code", "The binary")  # type: ignore[arg-type]
    assert read_binary(file) == read_binary(str(file)) == (b"code", str(file))
    with pytest.raises(LoadError, match=r"absent cannot be read: No such file"):
        read_binary(tmp_path / "absent")
    with pytest.raises(LoadError, match="cannot be read: embedded null byte"):
        read_binary("no\0path")


def test_symbols_of_names_in_cxx() -> None:
    """A symbol is itself; a name, in namespaces or not, is found mangled, if there is one function of that name."""
    symbols = ["plain", "_Z5scalePf", "_ZN3lib5scaleEPf", "_ZN3lib5twiceEPf", "_ZN3lib5twiceEPd"]

    def entries(*names: str) -> list[Entry]:
        return [Entry(name, Signature.parse("x: *fp32")) for name in names]

    found = find_symbols(entries("plain", "scale", "lib::scale"), symbols, "It")
    assert found == {"scale": "_Z5scalePf", "lib::scale": "_ZN3lib5scaleEPf"}
    with pytest.raises(LoadError, match="It has no kernel 'lib::thrice'; it has: plain, _Z5scalePf"):
        find_symbols(entries("lib::thrice"), symbols, "It")
    with pytest.raises(LoadError, match="several kernels 'lib::twice'; name one by its symbol: _ZN3lib5twiceEPf, _ZN3"):
        find_symbols(entries("lib::twice"), symbols, "It")


# ---- launches ----


def test_blocks_of_a_cooperative_grid_run_all_at_once() -> None:
    """GRD-09: more blocks than run at once are an error with both numbers; other grids may have as many as they like."""
    found = Occupancy(2, 4, 8)
    check_cooperative("scale", LaunchConfig(8, 32, cooperative=True), found, 0)
    check_cooperative("scale", LaunchConfig(9, 32), found, 0)
    with pytest.raises(OutOfResourcesError, match="2 on each of the 4 compute units of device 1; let each") as caught:
        check_cooperative("scale", LaunchConfig(9, 32, cooperative=True), found, 1, "compute units")
    assert (caught.value.required, caught.value.limit) == (9, 8)


# ---- profilers ----


def test_ranges_are_around_launches(fake: FakeDriver, level: str) -> None:
    """Each launch between start and stop is one range, also one that fails; a second start or stop changes nothing."""
    kernel, log = podium.kernel("__global__ void scale(float* x) {}"), []
    ranges = LaunchRanges(lambda: log, lambda to, event: to.append(event.kernel), lambda to: to.append("end"))
    x = podium.empty(1, driver=fake)
    kernel[1, 1](x)
    with ranges:
        assert ranges.start() is ranges
        kernel[1, 1](x)
        fake.next_status = 7
        with pytest.raises(LaunchError):
            kernel[1, 1](x)
    ranges.stop()
    kernel[1, 1](x)
    assert log == ["scale", "end"] * 2


def test_ranges_without_a_profiler_add_nothing() -> None:
    """Where `begin` gives None no hook is there; what it raises reaches whoever starts."""
    with LaunchRanges(lambda: None, print, print):
        assert not podium.hooks.enter.any()

    def missing() -> None:
        raise OSError("no library")

    with pytest.raises(OSError, match="no library"):
        LaunchRanges(missing, print, print).start()
    assert not podium.hooks.enter.any()
