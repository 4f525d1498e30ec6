"""``podium compile``: source to object code or binary, on machines without a device too."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium._cli import main
from podium._cli.trial import KERNELS
from podium._object_code import ObjectCode
from podium._target import Target
from podium.errors import BackendError
from podium.testing import FakeDriver

SOURCE = """
template <class T> __global__ void copy(T* to, const T* from) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void one(float* x) { x[0] = 1; }
__global__ void two(int* x, unsigned char n) { x[0] = n; }
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file with two kernels and a template."""
    path = tmp_path / "kernels.cu"
    path.write_text(SOURCE)
    return path


def test_object_code(source: Path, fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    """All kernels that are no templates go into one object, which is told with signatures, target and size."""
    assert main(["compile", str(source)]) == 0
    written = source.with_suffix(".podium")
    code = ObjectCode.from_file(written)
    assert [entry.name for entry in code.entries] == ["one", "two"]
    out = capsys.readouterr().out
    assert "kernel: one(x: *fp32)\nkernel: two(x: *i32, n: u8)\n" in out
    assert "target: fake:fake_1:32\n" in out
    assert f"wrote {written}, {written.stat().st_size} B" in out
    assert len(fake.compiled) == 1


def test_chosen_kernels(source: Path, fake: FakeDriver, tmp_path: Path) -> None:
    """--kernel chooses kernels and instances of templates; -o names the file."""
    out = tmp_path / "some.bin"
    words = ["--kernel", "copy<float>", "--kernel", "two", "-o", str(out)]
    assert main(["compile", str(source), *words]) == 0
    code = ObjectCode.from_file(out)
    assert [str(entry.signature) for entry in code.entries] == ["to: *fp32, from: *kfp32", "x: *i32, n: u8"]


def test_variables(tmp_path: Path, fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    """Kernels that share variables are chosen as others are, and the variables go into the object and are told."""
    path = tmp_path / "shared.cu"
    path.write_text(SOURCE + "__constant__ float table[4];\n#if MORE\n__global__ void three() { }\n#endif\n")
    assert main(["compile", str(path), "--kernel", "two", "--kernel", "copy<int>"]) == 0
    assert "kernel: copy<int>(to: *i32, from: *ki32)\nvariable: table: [4xfp32]\n" in capsys.readouterr().out
    code = ObjectCode.from_file(path.with_suffix(".podium"))
    assert [entry.name for entry in code.entries] == ["two", "copy<int>"]
    assert [str(variable) for variable in code.variables] == ["table: [4xfp32]"]
    assert main(["compile", str(path)]) == 0
    assert [entry.name for entry in fake.compiled[-1].entries] == ["one", "two", "three"]


def test_binary(source: Path, fake: FakeDriver) -> None:
    """--emit binary writes the bare code under the suffix of its format."""
    assert main(["compile", str(source), "--emit", "binary"]) == 0
    written = source.with_suffix(".fake").read_bytes()
    assert (
        written
        == ObjectCode.from_bytes(written, name="one", signature="", format="fake", target=Target("f", "a", 1)).code
    )
    assert b"__global__ void one" in written


def test_target_of_an_inactive_backend(
    source: Path, fake: FakeDriver, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ACT-11: compiling for a given target, or with a named backend, needs no active backend and no device."""
    from podium._active import driver_config

    driver_config.reset_active()
    monkeypatch.setattr(FakeDriver, "reason", "there is no device")
    monkeypatch.setattr(FakeDriver, "device_count", 0)
    assert main(["compile", str(source), "--target", "fake:other_2:64"]) == 0
    assert "target: fake:other_2:64" in capsys.readouterr().out
    assert main(["compile", str(source), "--backend", "fake"]) == 0


def test_a_backend_that_cannot_tell_what_to_compile_for(
    source: Path, fake: FakeDriver, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ACT-11: where only a device could name the target, and there is none, the message asks for --target."""

    def refuse(self: FakeDriver) -> Target:
        raise BackendError("the library was not found")

    monkeypatch.setattr(FakeDriver, "default_target", refuse)
    monkeypatch.setattr(FakeDriver, "reason", "there is no device")
    assert main(["compile", str(source), "--backend", "fake"]) == 1
    complaint = capsys.readouterr().err
    assert "there is no device" in complaint and "--target fake:ARCH:WARP" in complaint


def test_options(source: Path, fake: FakeDriver, tmp_path: Path) -> None:
    """--define and --include reach the compiler, --signature beats the source."""
    words = ["-D", "A=1", "-D", "B", "-I", str(tmp_path), "--kernel", "one", "--signature", "x: *fp64"]
    assert main(["compile", str(source), *words]) == 0
    (program,) = fake.compiled
    assert program.options.defines == (("A", "1"), ("B", "1"))
    assert program.options.include_dirs == (str(tmp_path),)
    assert str(program.entries[0].signature) == "x: *fp64"


@pytest.mark.parametrize(
    ("text", "words", "status", "complaint"),
    [
        ("int x;", [], 1, "no kernel"),
        ("template <class T> __global__ void t(T* x) {}", [], 2, "--kernel 't<...>'"),
        (SOURCE, ["--signature", "*fp32"], 2, "--signature is that of one kernel"),
        (SOURCE, ["--kernel", "three"], 1, "three"),
        (SOURCE, ["--kernel", "one", "-o", "{source}"], 2, "is the source itself"),
        (SOURCE, ["--kernel", "one", "-o", "{source}/x"], 1, "Not a directory"),
        ("#error no\n__global__ void k(int* x) {}", [], 1, "#error"),
        (SOURCE, ["--target", "fakr:a:32"], 1, "Did you mean 'fake'?"),
    ],
)
def test_errors(
    text: str,
    words: list[str],
    status: int,
    complaint: str,
    fake: FakeDriver,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What cannot be compiled is told; the source is never overwritten."""
    path = tmp_path / "kernels.cu"
    path.write_text(text)
    assert main(["compile", str(path), *(word.format(source=path) for word in words)]) == status
    assert complaint in capsys.readouterr().err
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_object_code_is_not_compiled_again(source: Path, fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    """Object code in place of source is told as such."""
    assert main(["compile", str(source)]) == 0
    assert main(["compile", str(source.with_suffix(".podium"))]) == 2
    assert "object code already, for fake:fake_1:32" in capsys.readouterr().err


def test_the_kernels_of_the_demo_compile_on_the_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The CPU backend compiles real kernels into a binary of the host."""
    pytest.importorskip("podium_cpu", reason="podium-cpu is not installed")
    out = tmp_path / "matmul.so"
    words = ["--backend", "cpu", "--emit", "binary", "-o", str(out)]
    assert main(["compile", str(KERNELS / "matmul.cu"), *words]) == 0
    assert out.read_bytes()[:4] == b"\x7fELF"
    assert "kernel: matmul(A: *kfp32, B: *kfp32, C: *fp32, m: i32, n: i32, k: i32)" in capsys.readouterr().out
