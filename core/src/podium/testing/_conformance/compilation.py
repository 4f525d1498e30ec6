"""Compilation: object code, and what a compiler says of a source that it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import podium
from podium._compile import compile_program
from podium.backend import Driver, Entry, ObjectCode, Program, Signature, Target
from podium.errors import CompileError, LoadError
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Subject

__all__ = ["Compilation"]

_GOOD = 'extern "C" __global__ void fill(int* x, int value) { x[blockIdx.x] = value; }\n'
_ENTRY = Entry("fill", Signature.parse("x: *i32, value: i32"))


def _program(source: str, *, path: str | None = None, language: str = "cuda") -> Program:
    return Program(source, language, (_ENTRY,), path=path)


@contract("Driver protocol")
class Compilation(Subject):
    """`Driver.compile`, called directly and through the cache."""

    def test_object_code_has_what_was_asked_for(self, compiler: Driver, target: Target) -> None:
        """The result has bytes, a format, the target and exactly the entries of the program."""
        code = compiler.compile(_program(_GOOD), target)
        assert isinstance(code, ObjectCode)
        assert isinstance(code.code, bytes) and code.code
        assert code.format and code.target == target and code.entries == (_ENTRY,)
        assert code.symbol("fill")

    def test_object_code_survives_being_written_down(self, compiler: Driver, target: Target) -> None:
        """`ObjectCode.from_bytes` reads back what `to_bytes` writes: code, target, entries, symbols and metadata."""
        code = compiler.compile(_program(_GOOD), target)
        again = ObjectCode.from_bytes(code.to_bytes())
        assert again == code

    def test_damaged_object_code_is_refused(self, compiler: Driver, target: Target) -> None:
        """Bytes that are no object code are a LoadError, whatever is wrong with them.

        Rows CAC-10.
        """
        data = compiler.compile(_program(_GOOD), target).to_bytes()
        for damaged in (b"", b"nothing", data[:20], data.replace(b'"format"', b'"tamrof"')):
            with pytest.raises(LoadError):
                ObjectCode.from_bytes(damaged)

    def test_a_compile_error_carries_the_log(self, compiler: Driver, target: Target) -> None:
        """A refused source raises CompileError with the compiler's log, the program and the target."""
        with pytest.raises(CompileError) as caught:
            compiler.compile(_program("#error podium_conformance\n" + _GOOD, path="scaled.cu"), target)
        error = caught.value
        assert "podium_conformance" in error.log or "#error" in error.log, f"the log is {error.log!r}"
        assert error.target == str(target)
        assert error.program is not None and "scaled.cu" in error.program

    def test_a_compile_error_points_into_the_users_source(self, compiler: Driver, target: Target) -> None:
        """The first diagnostic of severity error names the user's file and the line of the mistake."""
        source = "// first\n// second\n\n#error podium_conformance\n" + _GOOD
        with pytest.raises(CompileError) as caught:
            compiler.compile(_program(source, path="pointed.cu"), target)
        self._check_place(caught.value, "pointed.cu", 4)

    @pytest.mark.needs("compiles")
    @pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
    def test_a_mistake_in_a_kernel_is_found_at_its_line(self, compiler: Driver, target: Target, ending: str) -> None:
        """An unknown name in a kernel is reported at its line, also with CRLF line ends."""
        head = 'extern "C" __global__ void fill(int* x, int value) {'
        lines = [head, "  int a = value;", "  x[0] = nowhere + a;", "}", ""]
        with pytest.raises(CompileError) as caught:
            compiler.compile(_program(ending.join(lines), path="mistake.cu"), target)
        self._check_place(caught.value, "mistake.cu", 3)
        assert "nowhere" in caught.value.log

    @pytest.mark.needs("compiles")
    def test_a_mistake_in_a_header_is_found_in_the_header(
        self, compiler: Driver, target: Target, tmp_path: Path
    ) -> None:
        """A mistake in an included file is reported with that file's name and line."""
        (tmp_path / "part.h").write_text("// fine\nint broken(;\n")
        kernel = podium.kernel(
            '#include "part.h"\n' + _GOOD, "fill", signature=_ENTRY.signature, include_dirs=[tmp_path]
        )
        with pytest.raises(CompileError) as caught:
            kernel.compile(target, compiler)
        places = [(Path(each.file).name, each.line) for each in caught.value.diagnostics]
        assert ("part.h", 2) in places, f"{places}\n{caught.value.log}"

    def test_an_unknown_language_is_refused(self, compiler: Driver, target: Target) -> None:
        """A language that the driver does not state is a CompileError that names those it takes."""
        with pytest.raises(CompileError) as caught:
            compile_program(compiler, _program("x", language="esperanto"), target)
        assert "esperanto" in str(caught.value) and min(self.driver_class.languages) in str(caught.value)

    @pytest.mark.needs("compiles")
    @pytest.mark.parametrize("arch", ["nonsense", "0", "-march=native", "a b", "x;touch podium_was_here", "é"])
    def test_an_arch_that_there_is_not_is_refused(
        self, compiler: Driver, target: Target, arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An arch that the compiler does not know is a CompileError, and never reaches a shell.

        Rows RTC-04, RTC-06.
        """
        monkeypatch.chdir(tmp_path)
        with pytest.raises(CompileError):
            compiler.compile(_program(_GOOD), replace(target, arch=arch))
        assert not (tmp_path / "podium_was_here").exists()

    @pytest.mark.needs("compiles")
    def test_a_kernel_that_is_not_there_is_refused(self, compiler: Driver, target: Target) -> None:
        """An entry that the source does not define is an error when it is compiled or loaded, not at the launch."""
        missing = Program(_GOOD, "cuda", (Entry("absent", Signature.parse("x: *i32")),))
        try:
            code = compiler.compile(missing, target)
        except CompileError:
            return
        with pytest.raises(LoadError):
            compiler.load(code, "absent", compiler.current_device())

    @pytest.mark.needs("compiles")
    def test_compiling_twice_gives_code_that_is_as_good(self, compiler: Driver, target: Target) -> None:
        """Each call of `compile` stands alone: a second program, and a refused one between, change nothing."""
        first = compiler.compile(_program(_GOOD), target)
        with pytest.raises(CompileError):
            compiler.compile(_program("#error no\n"), target)
        second = compiler.compile(_program(_GOOD), target)
        assert (second.format, second.entries, second.symbols) == (first.format, first.entries, first.symbols)

    def _check_place(self, error: CompileError, file: str, line: int) -> None:
        errors = [each for each in error.diagnostics if each.severity.endswith("error")]
        assert errors, f"no diagnostics of severity error in {error.diagnostics}; the log:\n{error.log}"
        assert Path(errors[0].file).name == file, f"{errors[0]}; the log:\n{error.log}"
        assert errors[0].line == line, f"{errors[0]}; the log:\n{error.log}"
        assert errors[0].message.strip()
