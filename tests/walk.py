"""The walk of docs/write-a-backend.md: its files and edits are applied to a new scaffold, and its commands are run.

The page says what is done with a fence by the comment before it: ``walk`` (a command), ``shows`` (parts of what the command
before it prints, in order; ``...`` stands for anything), ``file: PATH`` (a whole file), ``try: PATH`` (one that is thrown
away afterwards), ``in: PATH`` (definitions and imports that take the place of others in a file).
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from installed import link_dependencies
from markdown_page import ROOT, Fence, Page

import podium

__all__ = ["EDITS", "PAGE", "apply", "console", "edited", "missing"]

PAGE = Page(ROOT / "docs" / "write-a-backend.md")
EDITS = ("file", "try", "in")


def apply(fence: Fence, folder: Path) -> bool:
    """Make the edit of a fence in the distribution at `folder`; tell whether the file belongs to the result."""
    kind, _, name = fence.mark.partition(": ")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = edited(path.read_text(encoding="utf-8"), fence.text) if kind == "in" else fence.text
    path.write_text(text, encoding="utf-8")
    return kind != "try"


def edited(text: str, fragment: str) -> str:
    """Put the definitions or the imports of a fragment into the text of a module."""
    for node in ast.parse(dedent(fragment)).body:
        lines = fragment.splitlines()[_first_line(node) - 1 : node.end_lineno]
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            text = _with_import(text, node, lines)
        else:
            text = _with_definition(text, node, lines)
    return text


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])


def _name(node: ast.AST) -> str | None:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def _with_definition(text: str, node: ast.stmt, lines: list[str]) -> str:
    old = text.splitlines()
    for each in ast.walk(ast.parse(text)):
        if isinstance(each, ast.stmt) and _name(each) == _name(node):
            return "\n".join([*old[: _first_line(each) - 1], *lines, *old[each.end_lineno :], ""])
    return "\n".join([*old, "", *lines, ""])


def _place(node: ast.Import | ast.ImportFrom) -> tuple[int, bool, str]:
    """Where an import stands among others: standard library, podium and what else is installed, the package itself."""
    module = (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name) or ""
    package = module.partition(".")[0]
    group = 0 if package == "__future__" else 1 if package in sys.stdlib_module_names else 2 + ("_" in package)
    return group, isinstance(node, ast.ImportFrom), module


def _with_import(text: str, node: ast.Import | ast.ImportFrom, lines: list[str]) -> str:
    old, group = text.splitlines(), _place(node)[0]
    imports = [each for each in ast.parse(text).body if isinstance(each, (ast.Import, ast.ImportFrom))]
    for each in imports:
        if _place(each) == _place(node):
            return "\n".join([*old[: each.lineno - 1], *lines, *old[each.end_lineno :], ""])
    before = [each for each in imports if _place(each) < _place(node)][-1]
    after = next((each for each in imports if _place(each) > _place(node)), None)
    gap = [] if _place(before)[0] == group else [""]
    rest = old[before.end_lineno :]
    if after is not None and _place(after)[0] == group:
        rest = old[after.lineno - 1 :]
    return "\n".join([*old[: before.end_lineno], *gap, *lines, *rest, ""])


def missing(expected: str, output: str) -> str | None:
    """Return the first line of `expected` that the output has no part for, behind that of the line before."""
    position, output = 0, re.sub(" +", " ", output)
    for line in expected.splitlines():
        pattern = ".*?".join(map(re.escape, re.split(r" *\.\.\. *", re.sub(" +", " ", line))))
        found = re.compile(pattern).search(output, position)
        if found is None:
            return line
        position = found.end()
    return None


class Shell:
    """A shell in a folder, which keeps its directory and its variables from command to command."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._folder, self._variables = folder, dict(variables)
        self._state = folder / "state"
        self._state.write_text("", encoding="utf-8")

    def run(self, commands: str) -> str:
        """Run commands; return what they print. The doctor's status says what is still missing, and is no failure."""
        script = f". {self._state}\n{commands}export -p > {self._state}; echo 'cd '$PWD >> {self._state}\n"
        script = re.sub(r"(?m)^podium doctor$", "podium doctor || true", script)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self._folder,
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1200,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}"
        return done.stdout

    @property
    def directory(self) -> Path:
        """Where the shell is."""
        found = re.findall(r"(?m)^cd (.*)$", self._state.read_text(encoding="utf-8"))
        return Path(found[-1]) if found else self._folder


def console(folder: Path, variables: Mapping[str, str]) -> Shell:
    """Make a shell with a new environment for Python: podium is there, and what it needs, and no backend.

    Nothing is fetched: `pip` installs from the disk, with the build backend that is installed here.
    """
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    programs = folder / "venv" / "bin"
    python = programs / "python"
    for name, command in (
        ("pip", f'"{sys.executable}" -m pip --python "{python}"'),
        ("podium", f'"{python}" -m podium'),
        ("pytest", f'"{python}" -m pytest'),
    ):
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    dependencies = link_dependencies(folder / "dependencies", metadata=True)
    core = Path(podium.__file__).parent.parent
    return Shell(
        folder,
        {
            **variables,
            "PATH": f"{programs}:{variables['PATH']}",
            "PYTHONPATH": f"{core}:{dependencies}",
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip's word for: without
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        },
    )
