"""The lists of rules in docs/contracts.md, which are made from the conformance suite: ``python tests/contract_page.py``."""

from __future__ import annotations

import re
from pathlib import Path

from podium.testing._report import AREAS, rule_of
from podium.testing.conformance import DriverConformance

__all__ = ["PAGE", "listed", "rules", "tests_of"]

PAGE = Path(__file__).parent.parent / "docs" / "contracts.md"


def tests_of(area: str) -> dict[str, object]:
    """Return the tests of an area by name, in the order in which they stand in their files."""
    found: dict[str, object] = {}
    for part in DriverConformance.__mro__:
        for name, test in vars(part).items():
            if name.startswith("test_") and area in [
                mark.args[0] for mark in test.pytestmark if mark.name == "contract"
            ]:
                found[name] = test
    return found


def rules(area: str) -> list[str]:
    """Return a line for each rule of an area: what must be, the test, and what must be claimed for it to be asked."""
    lines = []
    for name, test in tests_of(area).items():
        marks = [mark for mark in test.pytestmark if mark.name == "needs"]  # type: ignore[attr-defined]
        needs = list(dict.fromkeys(each for mark in reversed(marks) for each in mark.args))
        note = "; needs " + ", ".join(f"`{need}`" for need in needs) if needs else ""
        lines.append(f"- {rule_of(test)} (`{name.removeprefix('test_')}`{note})")
    return lines


def listed(text: str, area: str) -> list[str]:
    """Return the lines of the list in a section of the page."""
    section = text.partition(f"\n## {area}\n")[2].partition("\n## ")[0]
    return re.findall(r"^- .*$", section, re.MULTILINE)


def main() -> None:
    """Write the lists anew; the text around them stays."""
    text = PAGE.read_text(encoding="utf-8")
    for area in AREAS:
        head, title, rest = text.partition(f"\n## {area}\n")
        section, following, after = rest.partition("\n## ")
        prose = re.sub(r"^- .*\n", "", section + "\n", flags=re.MULTILINE).strip()
        text = f"{head}{title}\n{prose}\n\n" + "\n".join(rules(area)) + f"\n{following}{after}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
