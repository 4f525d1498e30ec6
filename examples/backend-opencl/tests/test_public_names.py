"""The backend is written as by an outsider: it imports what podium shows, and nothing else of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import podium
import podium.backend
import podium.errors
import podium.parts
import podium.testing

FOLDER = Path(__file__).parent.parent
FILES = sorted([*FOLDER.glob("src/**/*.py"), *FOLDER.glob("tests/**/*.py")])
MODULES = (podium, podium.backend, podium.errors, podium.parts, podium.testing)
PUBLIC = {module.__name__: set(module.__all__) for module in MODULES}


def imported(tree: ast.AST) -> list[tuple[str, str, int]]:
    """Return each module and name that is imported, "" for a whole module, and the line."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, "", node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            found += [(node.module or "", alias.name, node.lineno) for alias in node.names]
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(FOLDER).as_posix())
def test_only_public_names_are_imported(file: Path) -> None:
    """Every import from podium is of a public module and of a name in its __all__."""
    wrong = [
        f"line {line}: {module} {name}"
        for module, name, line in imported(ast.parse(file.read_text(encoding="utf-8")))
        if module == "podium" or module.startswith("podium.")
        if module not in PUBLIC or (name and name not in PUBLIC[module])
    ]
    assert wrong == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(FOLDER).as_posix())
def test_nothing_private_of_podium_is_used(file: Path) -> None:
    """No attribute that begins with an underscore is taken of one of podium's modules."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    wrong = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if ast.unparse(node.value).partition(".")[0] == "podium"
    ]
    assert wrong == []
