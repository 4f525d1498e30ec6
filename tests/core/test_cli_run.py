"""``podium run``: arguments from words, a launch, and outputs printed or saved."""

from __future__ import annotations

import argparse
import builtins
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podium._cli import main
from podium._cli.argument import ArrayFile, Filled, Scalar, parse_argument
from podium._cli.failure import CommandError
from podium._cli.trial import KERNELS
from podium.testing import FakeDriver

SAXPY = str(KERNELS / "saxpy.cu")

TWO = """
#include "factor.h"
__global__ void scale(float* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= FACTOR;
}
__global__ void fill(int* out, int value)
{
    extern __shared__ int cell[];
    cell[threadIdx.x] = value;
    out[threadIdx.x] = cell[threadIdx.x];
}
"""


@pytest.fixture
def cpu() -> None:
    """The test needs the CPU backend."""
    pytest.importorskip("podium_cpu", reason="podium-cpu is not installed")


@pytest.fixture
def no_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy is not installed, as far as imports go."""
    genuine = builtins.__import__

    def refuse(name: str, *args: Any, **keywords: Any) -> Any:
        if name.partition(".")[0] == "numpy":
            raise ImportError("No module named 'numpy'")
        return genuine(name, *args, **keywords)

    monkeypatch.setattr(builtins, "__import__", refuse)


def run(*words: str) -> int:
    return main(["run", "--backend", "cpu", *words])


# ---- arguments ----


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42),
        ("-1", -1),
        ("0x7f", 127),
        ("0b101", 5),
        ("007", 7),
        ("1.5", 1.5),
        ("-1e-3", -0.001),
        ("inf", float("inf")),
        ("true", True),
        ("False", False),
        ("none", None),
    ],
)
def test_numbers(text: str, value: object) -> None:
    """Integers, floats, booleans and null are read as what they look like."""
    parsed = parse_argument(text)
    assert isinstance(parsed, Scalar)
    assert (parsed.value, type(parsed.value)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("zeros:i32:3", bytes(12)),
        ("ones:u8:2x2", b"\x01" * 4),
        ("ones:float32:1", b"\x00\x00\x80\x3f"),
        ("ones:bf16:2", b"\x80\x3f" * 2),
        ("ones:f16:1", b"\x00\x3c"),
        ("ones:i1:2", b"\x01\x01"),
        ("arange:i16:2x2", b"\x00\x00\x01\x00\x02\x00\x03\x00"),
        ("arange:i1:2", b"\x00\x01"),
        ("zeros:f64:0", b""),
    ],
)
def test_filled_arrays(text: str, data: bytes) -> None:
    """Arrays are filled by their rule, in any element type."""
    parsed = parse_argument(text)
    assert isinstance(parsed, Filled)
    assert parsed.data() == data


@pytest.mark.parametrize("element", ["f32", "fp64", "fp16", "bf16", "i32", "u8", "i1"])
def test_random_arrays(element: str) -> None:
    """Random elements are the same for one seed and differ between seeds."""
    one, again, other = (parse_argument(f"rand:{element}:8x8{seed}") for seed in ("", ":0", ":1"))
    assert isinstance(one, Filled) and isinstance(again, Filled) and isinstance(other, Filled)
    assert one.shape == (8, 8)
    assert one.data() == again.data() != other.data()
    assert len(one.data()) == 64 * one.element.size


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("word", "no argument"),
        ("zeros", "no argument"),
        ("zeros:f32", "form zeros:TYPE:SHAPE"),
        ("zeros:f32:8:1", "form zeros:TYPE:SHAPE"),
        ("rand:f32:8:1:2", r"form rand:TYPE:SHAPE\[:SEED\]"),
        ("zeros:f31:8", "not an element type"),
        ("zeros:f32:8,8", "a shape is"),
        ("zeros:f32:-8", "a shape is"),
        ("zeros:f32:8x", "a shape is"),
        ("rand:f32:8:x", "a seed is"),
        ("ones:c64:8", "not an element type"),
    ],
)
def test_malformed_arguments(text: str, complaint: str) -> None:
    """What is no argument is refused with its form."""
    with pytest.raises(argparse.ArgumentTypeError, match=complaint):
        parse_argument(text)


@pytest.mark.parametrize("text", ["arange:i8:129", "arange:i1:3", "arange:fp16:70000"])
def test_elements_that_do_not_fit(text: str) -> None:
    """An element that its type cannot hold is an error and does not wrap around."""
    parsed = parse_argument(text)
    assert isinstance(parsed, Filled)
    with pytest.raises(CommandError, match=text):
        parsed.data()


def test_files() -> None:
    """A word that ends like one of numpy's files is one."""
    assert parse_argument("a/b.npy") == ArrayFile("a/b.npy")


# ---- launches ----


def test_arguments_reach_the_driver_in_order(fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    """Grid, block, shared bytes and arguments arrive as given; an untouched array is not printed."""
    words = ["--grid", "2,3", "--block", "32x2", "--shared", "64", "--arg", "7", "--arg", "-1e-1", "--arg", "none"]
    assert main(["run", SAXPY, *words, "--arg", "zeros:f32:4"]) == 0
    (launch,) = fake.launches
    assert (launch.kernel, launch.grid, launch.block, launch.shared) == ("saxpy", (2, 3, 1), (32, 2, 1), 64)
    assert launch.parameters[:3] == (b"\x07\0\0\0", b"\xcd\xcc\xcc\xbd", bytes(8))
    out = capsys.readouterr().out
    assert "saxpy(n: i32, a: fp32, x: *kfp32, y: *fp32) on fake device 0" in out
    assert "no array changed" in out


@pytest.mark.parametrize("text", ["-inf", "-1e5", "-0x1", "-.5", "-nan"])
def test_negative_numbers_are_no_options(text: str, fake: FakeDriver) -> None:
    """A number that begins with a minus is an argument, in every spelling and on every Python."""
    signature = "x: fp32" if text != "-0x1" else "x: i32"
    words = ["--kernel", "saxpy", "--signature", signature, "--arg", text]
    assert main(["run", SAXPY, *words]) == 0
    assert len(fake.launches) == 1


def test_repeat(fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    """--repeat launches so often and tells the times."""
    assert main(["run", SAXPY, "--arg", "7", "--arg", "1", "--arg", "none", "--arg", "none", "--repeat", "5"]) == 0
    assert len(fake.launches) == 5
    assert "then 4 times" in capsys.readouterr().out


def test_device(fake: FakeDriver) -> None:
    """--device makes the arrays, and so the launch, go to that device."""
    arrays = ["--arg", "zeros:f32:4"] * 2
    assert main(["run", SAXPY, "--arg", "4", "--arg", "1", *arrays, "--device", "1"]) in (0, 1)
    assert [launch.device for launch in fake.launches] == [1]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--kernel", "saxpi"], "saxpi"),
        (["--arg", "1"], "takes 4 arguments, got 1"),
        (["--arg", "1", "--arg", "2", "--arg", "3.5", "--arg", "none"], "argument 2 ('x') expects *kfp32"),
        (["--arg", "1", "--arg", "2", "--arg", "zeros:f64:4", "--arg", "none"], "its elements are fp64"),
        (["--block", "2000"], "got 0"),
        (["--backend", "fakr"], "Did you mean 'fake'?"),
    ],
)
def test_errors(words: list[str], complaint: str, fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    """Errors of podium come out as they are; wrong element types are one, since they would corrupt memory."""
    assert main(["run", SAXPY, *words]) == 1
    err = capsys.readouterr().err
    assert err.startswith("podium run: ")
    assert complaint in err
    assert fake.launches == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--print", "z"], "no parameter 'z'; it has: n, a, x, y"),
        (["--save", "z=out.npy"], "no parameter 'z'"),
        (["--print", "a"], "'a' of saxpy is given no array"),
        (["--device", "1"], "--device"),
    ],
)
def test_wrong_names(words: list[str], complaint: str, fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is no array of the kernel is told before anything is launched, with exit code 2."""
    assert main(["run", SAXPY, "--arg", "1", "--arg", "2", "--arg", "none", "--arg", "none", *words]) == 2
    assert complaint in capsys.readouterr().err
    assert fake.launches == []


@pytest.mark.usefixtures("cpu")
def test_changed_arrays_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The arrays that the kernel wrote to are printed, abbreviated; the others are not."""
    arrays = ["--arg", "arange:f32:1000", "--arg", "ones:f32:1000"]
    assert run(SAXPY, "--grid", "8", "--block", "128", "--arg", "1000", "--arg", "2", *arrays) == 0
    out = capsys.readouterr().out
    assert "y: fp32[1000] = [1, 3, 5, ..., 1995, 1997, 1999]\n" in out
    assert "x:" not in out.partition("\n")[2]


@pytest.mark.usefixtures("cpu")
def test_chosen_arrays_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """--print shows the named arrays and no others, changed or not."""
    arrays = ["--arg", "arange:f32:2x2", "--arg", "ones:f32:2x2"]
    assert run(SAXPY, "--block", "4", "--arg", "4", "--arg", "2", *arrays, "--print", "x") == 0
    out = capsys.readouterr().out
    assert "x: fp32[2, 2] =\n[[0, 1],\n [2, 3]]\n" in out
    assert "y:" not in out.partition("\n")[2]


@pytest.mark.usefixtures("cpu")
def test_options_of_the_compiler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--kernel, --define, --include and --shared reach the compiler and the launch."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "factor.h").write_text("#define FACTOR (BASE * 2)\n")
    source = tmp_path / "two.cu"
    source.write_text(TWO)
    words = [str(source), "--define", "BASE=5", "--include", str(tmp_path / "include")]
    assert run(*words, "--kernel", "scale", "--block", "4", "--arg", "ones:f32:4", "--arg", "4") == 0
    assert "x: fp32[4] = [10, 10, 10, 10]" in capsys.readouterr().out
    fill = ["--kernel", "fill", "--block", "3", "--shared", "12", "--arg", "zeros:i32:3", "--arg", "-7"]
    assert run(*words, *fill) == 0
    assert "out: i32[3] = [-7, -7, -7]" in capsys.readouterr().out
    assert run(*words) == 1
    assert "fill" in capsys.readouterr().err


@pytest.mark.usefixtures("cpu")
def test_a_compile_error_points_into_the_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An error in the user's source names file and line."""
    source = tmp_path / "bad.cu"
    source.write_text("__global__ void bad(int* x)\n{\n    x[0] = undeclared;\n}\n")
    assert run(str(source), "--arg", "zeros:i32:1") == 1
    err = capsys.readouterr().err
    assert f"{source}:3" in err and "undeclared" in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("cpu")
def test_numpy_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Arrays are read from numpy's files, in any layout, and saved to them under the very name that was given."""
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    values = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    numpy.save(tmp_path / "x.npy", numpy.asfortranarray(values))
    saved = tmp_path / "result"
    words = ["--block", "6", "--arg", "6", "--arg", "10", "--arg", str(tmp_path / "x.npy"), "--arg", "ones:f32:6"]
    assert run(SAXPY, *words, "--save", f"y={saved}") == 0
    assert numpy.load(saved).tolist() == [1, 11, 21, 31, 41, 51]
    out = capsys.readouterr().out
    assert f"y: saved to {saved}" in out
    assert "y: fp32" not in out


@pytest.mark.parametrize("content", [b"no array", b"", b"\x93NUMPY\x01\x00"])
def test_a_file_that_is_no_array(
    content: bytes, tmp_path: Path, fake: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that numpy cannot read is named."""
    pytest.importorskip("numpy", reason="numpy is not installed")
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    assert main(["run", SAXPY, "--arg", "1", "--arg", "2", "--arg", str(path), "--arg", "none"]) == 1
    assert f"{path} cannot be read" in capsys.readouterr().err


def test_a_file_of_other_elements(tmp_path: Path, fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    """A file whose elements podium does not have is named; one of Python objects is not unpickled."""
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    for name, values in (("complex", numpy.ones(2, complex)), ("objects", numpy.array([object()], dtype=object))):
        path = tmp_path / f"{name}.npy"
        numpy.save(path, values, allow_pickle=True)
        assert main(["run", SAXPY, "--arg", "1", "--arg", "2", "--arg", str(path), "--arg", "none"]) == 1
        assert str(path) in capsys.readouterr().err


def test_a_file_that_is_gone(tmp_path: Path, fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there is named."""
    path = tmp_path / "gone.npy"
    assert main(["run", SAXPY, "--arg", "1", "--arg", "2", "--arg", str(path), "--arg", "none"]) == 1
    assert f"{path}: No such file" in capsys.readouterr().err


@pytest.mark.usefixtures("no_numpy")
def test_files_need_numpy(tmp_path: Path, fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    """Without numpy, reading or saving a file says what to install, before anything is launched."""
    arguments = ["--arg", "1", "--arg", "2", "--arg", "x.npy", "--arg", "none"]
    assert main(["run", SAXPY, *arguments]) == 1
    assert "pip install 'podium[demo]'" in capsys.readouterr().err
    assert main(["run", SAXPY, "--save", f"y={tmp_path / 'y.npy'}"]) == 1
    assert "--save needs numpy" in capsys.readouterr().err
    assert fake.launches == []


@pytest.mark.usefixtures("cpu")
def test_runs_without_numpy() -> None:
    """Filled arrays, launch and printing need no numpy."""
    code = (
        "import sys\n"
        "sys.modules['numpy'] = None\n"
        "from podium._cli import main\n"
        f"sys.exit(main(['run', '--backend', 'cpu', {SAXPY!r}, '--block', '4', '--arg', '4', '--arg', '2',\n"
        "    '--arg', 'ones:f32:4', '--arg', 'rand:f32:4']))\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "y: fp32[4] = [2" in done.stdout


@pytest.mark.usefixtures("cpu")
def test_object_code_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What ``podium compile`` wrote can be run, and takes no compile options."""
    code = tmp_path / "saxpy.podium"
    assert main(["compile", "--backend", "cpu", SAXPY, "-o", str(code)]) == 0
    capsys.readouterr()
    words = ["--block", "2", "--arg", "2", "--arg", "3", "--arg", "ones:f32:2", "--arg", "zeros:f32:2"]
    assert run(str(code), *words) == 0
    assert "y: fp32[2] = [3, 3]" in capsys.readouterr().out
    assert run(str(code), *words, "--define", "A=1") == 2
    assert "compiled already" in capsys.readouterr().err
