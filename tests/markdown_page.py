"""Pages of the documentation, taken apart for the tests: fences with the marks before them, headings, links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Fence", "Page", "all_pages"]

ROOT = Path(__file__).parent.parent

_FENCE = re.compile(r"^```(\w*)\s*$")
_MARK = re.compile(r"^<!-- (.*) -->$")
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Fence:
    """A fenced block: its language, its text, the line where the text begins, and the comment on the line before it."""

    language: str
    text: str
    line: int
    mark: str
    follows: bool  # whether only blank lines are between it and the fence before


class Page:
    """A page of markdown."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.relative_to(ROOT).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.fences: list[Fence] = []
        self.prose = self._take_apart()

    def _take_apart(self) -> str:
        prose: list[str] = []
        mark, between, opened = "", False, None
        block: list[str] = []
        for number, line in enumerate(self.text.splitlines(), start=1):
            match = _FENCE.match(line)
            if opened is None and match:
                opened = (match[1], number + 1)
                block = []
            elif opened is not None and line.rstrip() == "```":
                language, start = opened
                self.fences.append(Fence(language, "\n".join(block) + "\n", start, mark, between))
                opened, mark, between = None, "", True
            elif opened is not None:
                block.append(line)
            else:
                prose.append(line)
                if found := _MARK.match(line):
                    mark = found[1]
                elif line.strip():
                    mark, between = "", False
        assert opened is None, f"{self.name}: a fence is not closed"
        return "\n".join(prose)

    @property
    def anchors(self) -> set[str]:
        """The anchors of the headings, as GitHub makes them."""
        titles = re.findall(r"^#+ (.*)$", self.prose, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}

    @property
    def links(self) -> list[str]:
        """The targets of all links."""
        return _LINK.findall(re.sub(r"`[^`\n]*`", "code", self.prose))


def all_pages() -> list[Page]:
    """Return every page of the repository that users read."""
    folders = [ROOT, ROOT / "core", *sorted((ROOT / "backends").iterdir()), ROOT / "benchmarks", ROOT / "examples"]
    paths = [path for folder in folders if folder.is_dir() for path in sorted(folder.glob("*.md"))]
    paths += sorted((ROOT / "examples").rglob("*/*.md"))
    return [Page(path) for path in dict.fromkeys([*paths, *sorted((ROOT / "docs").rglob("*.md"))])]
