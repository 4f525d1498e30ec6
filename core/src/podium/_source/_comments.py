"""Comments and literals of C++ source text: the first thing that everything which reads source has to see past."""

from __future__ import annotations

import re

__all__ = ["blank_comments"]

# Each alternative begins with a plain character, which lets the search skip quickly over all others. The quote in
# 1'000'000 opens no character literal.
_TOKEN = re.compile(
    r"""
      //(?:[^\n\\]+|\\(?:\r?\n)?)*
    | /\*.*?(?:\*/|\Z)
    | "(?:(?<=R")(?P<mark>[^()\\\s"]{0,16})\(.*?(?:\)(?P=mark)"|\Z)|(?P<string>(?:\\.|[^"\\\n])*)"?)
    | '(?:(?P<separator>(?<=[0-9a-fA-F]')(?<!u8')(?=[0-9a-fA-F]))|(?:\\.|[^'\\\n])*'?)
    """,
    re.DOTALL | re.VERBOSE,
)


def blank_comments(source: str, *, keep_strings: bool = False) -> str:
    """Return the text with spaces in place of comments and of literals; every other character keeps its place.

    A comment over several lines becomes one line, as the compiler sees it. The strings "C" and "C++" stay, because
    they name a linkage; with `keep_strings` all of them stay.
    """

    def blank(match: re.Match[str]) -> str:
        text = match[0]
        is_kept = match["separator"] is not None or match["string"] in ("C", "C++")
        return text if is_kept or (keep_strings and text[0] != "/") else " " * len(text)

    return _TOKEN.sub(blank, source)
