"""Security: text of the user's never becomes code, a command or another file."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import podium
from podium.backend import Driver, Entry, Program, Signature, Target
from podium.errors import ArgumentTypeError, CompileError, SignatureError
from podium.testing._conformance.child import add_kernel
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject, bad

__all__ = ["Security"]

_PWNED = "podium_was_here"
_HOSTILE = (
    f"x; touch {_PWNED}",
    f"$(touch {_PWNED})",
    f'"); system("touch {_PWNED}"); //',
    "*/ #error */",
    "two\nlines",
    "-o",
    "%s%n",
    "quote'",
)
_HARMLESS = {"quote'", "%s%n", f"x; touch {_PWNED}"}
_ADD = 'extern "C" __global__ void add(int* x, int a) { x[blockIdx.x * blockDim.x + threadIdx.x] += a; }\n'
_TYPES = {"x": "*i32", "a": "i32"}


@contract("Security")
class Security(Subject):
    """What becomes of names and paths that are no names and paths."""

    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A folder that is the current one, in which nothing may appear."""
        folder = tmp_path / "current"
        folder.mkdir()
        monkeypatch.chdir(folder)
        return folder

    def test_names_never_become_code(self, driver: Driver, level: Level, folder: Path) -> None:
        """A kernel's name stands in messages as it is, and no name in generated code or a command."""
        kernel = add_kernel()  # whose code is there for as long as it is
        function = kernel.load()
        for name in _HOSTILE:
            launcher = driver.launcher_cls(SimpleNamespace(signature=_TYPES), {"name": name, "block": 1}, driver)
            x = podium.asarray([1])
            launcher(1, 1, 1, driver.current_stream(driver.current_device()), function, x, 4)
            with pytest.raises(ArgumentTypeError) as caught:
                launcher(1, 1, 1, 0, function, "x", 4)
            assert (caught.value.kernel, caught.value.argument) == (name, "x")
            with pytest.raises(SignatureError):
                driver.launcher_cls(SimpleNamespace(signature={name: "*i32"}), {"name": "add", "block": 1}, driver)
            podium.synchronize()
            if self.capabilities.executes:
                assert x.tolist() == [5]
        assert list(folder.iterdir()) == []

    @pytest.mark.needs("compiles")
    @pytest.mark.parametrize("what", ["paths", "define", "flag"])
    def test_options_never_become_commands(
        self, compiler: Driver, target: Target, folder: Path, tmp_path: Path, what: str
    ) -> None:
        """Paths, folders, macros and flags go to the compiler as they are, which may refuse them, and to no shell."""
        for number, text in enumerate(_HOSTILE):
            source, path, options = _ADD, None, dict[str, Any]()
            if what == "paths":
                headers = tmp_path / text.replace("/", ":")
                headers.mkdir()
                (headers / "hostile.h").write_text(f"#define HOSTILE {number}\n")
                source, path = '#include "hostile.h"\n' + _ADD, str(tmp_path / f"{headers.name}.cu")
                options = {"include_dirs": [str(headers)]}
            else:
                options = {"flags": [text]} if what == "flag" else {"defines": {"UNUSED": text}}
            entry = Entry("add", Signature.parse(_TYPES))
            try:
                program = Program(source, "cuda", (entry,), podium.Options.of(**options), path=path)
                assert compiler.compile(program, target).code
            except (CompileError, ValueError) as error:
                if what == "paths" and text in _HARMLESS:
                    pytest.fail(f"{text!r} is a good name of a folder and of a file: {error}")
        assert list(folder.iterdir()) == []

    @pytest.mark.skipif(os.name != "posix", reason="folders have other owners there")
    def test_a_cache_that_others_can_write_is_not_used(self, driver: Driver, tmp_path: Path) -> None:
        """Code from a cache folder that other users can write is not loaded; one warning says so, and launches work."""
        cache = tmp_path / "open"
        first = self.python("child.launch_add(executes)", cache=cache)
        assert first.returncode == 0, bad(first)
        os.chmod(cache, 0o777)
        process = self.python(
            """
            import warnings
            events = child.show_compiles()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                child.launch_add(executes)
            print([event.cached for event in events], len([each for each in caught if "cache" in str(each.message)]))
            """,
            cache=cache,
        )
        assert process.returncode == 0, bad(process)
        assert process.stdout.split() == ["[False]", "1"], bad(process)
