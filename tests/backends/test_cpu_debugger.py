"""Kernels of the CPU backend under a debugger."""

from __future__ import annotations

import doctest
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_page import ROOT, Page

import podium

pytestmark = pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")

PAGE = Page(ROOT / "docs" / "how-to" / "debug-a-kernel.md")


def debug(command: str, folder: Path) -> str:
    """Run a command of the shell that starts gdb, and return what it prints; skip where nothing can be traced."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        env={**os.environ, "PATH": path, "PODIUM_BACKEND": "cpu", "LC_ALL": "C", "TMPDIR": str(folder)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    for refusal in ("Operation not permitted", "Could not trace"):
        if refusal in done.stderr:
            pytest.skip(f"this machine lets no process be traced: {done.stderr.strip()[-200:]}")
    # Threads and processes that build a launcher beside come and go when they like.
    return "".join(line for line in done.stdout.splitlines(keepends=True) if not line.startswith("["))


def test_the_session_of_the_documentation(tmp_path: Path) -> None:
    """The page on debugging shows a session that stops in one thread of one block, and what gdb prints in it."""
    for fence in PAGE.fences:
        if fence.mark.startswith("file: "):
            (tmp_path / fence.mark.removeprefix("file: ")).write_text(fence.text)
    at = next(index for index, fence in enumerate(PAGE.fences) if " gdb -q" in fence.text)
    printed = debug(PAGE.fences[at].text, tmp_path)
    expected = PAGE.fences[at + 1].text
    assert doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS), printed


def test_kernels_from_text_can_be_read(tmp_path: Path) -> None:
    """A kernel that comes from no file is shown with its lines, also when it comes out of the cache."""
    (tmp_path / "program.py").write_text(
        "import podium\n"
        "source = '__global__ void mark(int *x) {\\n    int mine = x[0] + 41;\\n    x[0] = mine;\\n}\\n'\n"
        "x = podium.asarray([1])\n"
        "podium.kernel(source, debug=True)[1, 1](x)\n"
    )
    command = (
        "gdb -q -batch -ex 'set breakpoint pending on' -ex 'break mark(int*)' -ex run -ex next -ex 'print mine' "
        "--args python program.py"
    )
    for _ in range(2):
        printed = debug(command, tmp_path)
        assert "3\t    x[0] = mine;\n$1 = 42\n" in printed, printed
        shutil.rmtree(next(tmp_path.glob("podium-sources-*")))
    debug("python program.py", tmp_path)
    assert list(tmp_path.glob("podium-sources-*")) == []


def test_the_folder_for_sources_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources are written to a folder of the user's own; where that belongs to others, kernels run all the same."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    podium.kernel("__global__ void one(int *x) { x[0] = 1; }", debug=True).load()
    (folder,) = tmp_path.glob("podium-sources-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    (file,) = folder.iterdir()
    assert "void one" in file.read_text()
    folder.chmod(0o777)
    podium.kernel("__global__ void two(int *x) { x[0] = 2; }", debug=True).load()
    assert [each.name for each in folder.iterdir()] == [file.name]
