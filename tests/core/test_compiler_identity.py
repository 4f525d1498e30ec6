"""The compiler's identity is known without looking for the compiler, until a look would find something else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cache_files import posix_only

from podium import _build, _file_stamps
from podium._build import HostCompiler
from podium._cache import default_cache, reset_cache
from podium._compiler_identity import compiler_identity

pytestmark = posix_only

Install = Callable[..., Path]


def forget() -> None:
    """Know no more than another process does."""
    _build._find.cache_clear()
    _build._identity.cache_clear()
    _build._versions.clear()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Give a function that puts a compiler into one of two folders of the search path; the cache is empty."""
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, (first, tmp_path / "none", second, "/usr/bin", "/bin"))))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(_file_stamps, "_RESTLESS_NS", -3_600_000_000_000)  # files count as long unchanged
    reset_cache()
    forget()

    def install(version: str, folder: str = "second", name: str = "cc", mode: int = 0o755) -> Path:
        program = tmp_path / folder / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho {version}\n")
        program.chmod(mode)
        return program

    yield install
    forget()
    reset_cache()


def identity(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the identity, after seeing that it is the compiler's and that another process need not look for it."""
    forget()
    found = compiler_identity("c")
    forget()
    assert found == HostCompiler.find("c").identity
    with monkeypatch.context() as patch:
        patch.setattr(HostCompiler, "find", None)
        assert compiler_identity("c") == found
    return found


def test_what_a_search_would_find_is_known(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-14, PRF-04: a compiler that changes, comes first, may be run from now on, or goes away is noticed at once."""
    program = install("old")
    assert identity(monkeypatch).startswith("old ")
    install("newer")
    assert identity(monkeypatch).startswith("newer ")
    before = install("before", "first", mode=0o644)
    assert identity(monkeypatch).startswith("newer ")
    before.chmod(0o755)
    assert identity(monkeypatch).startswith("before ")
    before.unlink()
    assert identity(monkeypatch).startswith("newer ")
    program.unlink()
    install("other", name="gcc")
    assert identity(monkeypatch).startswith("other ") or Path("/usr/bin/cc").exists()


def test_variables_belong_to_it(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-14: another command, another search path, and a variable that compilers read make it another identity."""
    install("plain")
    install("named", name="mine")
    seen = [identity(monkeypatch)]
    for variable, value in (("CPATH", "/include"), ("CC", "mine"), ("CC", f"{install('whole', name='yours')} -m64")):
        monkeypatch.setenv(variable, value)
        seen.append(identity(monkeypatch))
    assert [each.split()[0] for each in seen] == ["plain", "plain", "named", "whole"]
    assert len(set(seen)) == 4


@pytest.mark.parametrize(("variable", "value"), [("PATH", "tools:/usr/bin"), ("CC", "tools/cc")])
def test_what_depends_on_the_current_folder_is_not_kept(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """A relative place is another one in the next process, so the compiler is looked for each time."""
    install("relative", "tools")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, value)
    assert compiler_identity("c").startswith("relative")
    assert "compiler" not in {each.kind for each in default_cache().entries()}


def test_a_compiler_of_this_moment_is_not_kept(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-14: one that was just written may be written again without another time, so it is looked at each time."""
    monkeypatch.setattr(_file_stamps, "_RESTLESS_NS", 2_000_000_000)
    monkeypatch.setenv("CC", str(install("young")))
    assert compiler_identity("c").startswith("young")
    assert "compiler" not in {each.kind for each in default_cache().entries()}
