"""docs/write-a-backend.md is walked, step by step: from a scaffold to a suite that passes, and a wheel."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest
from markdown_page import ROOT
from walk import EDITS, PAGE, apply, console, missing

from podium._cli import main

EXAMPLE = ROOT / "examples" / "podium-abacus"


# Of the suite, what asks this backend's own code: at the level that has its C, with a cold cache, and one of many values.
# What podium does alike for all, such as arguments and processes, the suite shows in tests/backends.
_LEFT_OUT = (
    "interpreted warm auto double lie fork process spawned silently interrupted damaged_entry can_write hooks two_backends "
    "debugging negative signatures dlpack not_contiguous data_ptr const_parameter other_devices no_array no_stream"
)
_CHOSEN = " and ".join(["(i32 or not (scalars or fit))", *(f"not {word}" for word in _LEFT_OUT.split())])


def texts(folder: Path) -> dict[str, str]:
    """Return the files of a distribution, less what tools leave there."""
    made = {".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "dist", "build"}
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not made & set(path.relative_to(folder).parts) and path.suffix not in (".1", ".pyc")
    }


def test_the_example_is_the_scaffold_with_the_edits_of_the_guide(tmp_path: Path) -> None:
    """examples/podium-abacus is what a reader has at the end, to the letter."""
    assert main(["new-backend", "abacus", "--into", str(tmp_path)]) == 0
    folder = tmp_path / "podium-abacus"
    for fence in PAGE.fences:
        if fence.mark.partition(": ")[0] in EDITS and not apply(fence, folder):
            (folder / fence.mark.removeprefix("try: ")).unlink()
    walked, kept = texts(folder), texts(EXAMPLE)
    assert sorted(walked) == sorted(kept)
    for name, text in walked.items():
        difference = difflib.unified_diff(kept[name].splitlines(), text.splitlines(), name, "the guide", lineterm="")
        assert text == kept[name], "\n".join(difference)


@pytest.mark.newest
def test_the_guide_can_be_walked(tmp_path: Path) -> None:
    """Each command of the guide works after the edits before it, and prints what the page says; the suite passes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PODIUM_", "PYTHON", "VIRTUAL_"))}
    variables = {"PODIUM_CACHE_DIR": str(tmp_path / "cache"), "PYTEST_ADDOPTS": f"-q -k '{_CHOSEN}'"}
    shell = console(tmp_path, {**kept, **variables})
    output = ""
    for fence in PAGE.fences:
        if fence.mark == "walk":
            output = shell.run(fence.text)
        elif fence.mark == "shows":
            line = missing(fence.text, output)
            assert line is None, f"{PAGE.name}:{fence.line}: {line!r} is not in\n{output}"
        elif fence.mark.partition(": ")[0] in EDITS:
            apply(fence, shell.directory)
