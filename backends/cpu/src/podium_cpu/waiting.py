"""Whether the threads of a kernel may wait for each other, as far as its source tells.

It is a hint: a kernel of which it says no is compiled as loops over its threads, which the compiler makes vectors of,
and runs right even if its threads wait all the same. So the text is read roughly, as functions that mention each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["functions_of", "may_wait"]

# What makes a thread of a block wait for others, and makes the groups by which it may.
_WAITS = re.compile(
    r"__(?:sync|shfl|any|all|ballot|match|reduce|activemask|nanosleep)"
    r"|\b(?:podium_block_sync|this_thread_block|this_grid|tiled_partition|coalesced_threads)\b|\bsync\s*\("
)

_TOKEN = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)" | "(?:\\.|[^"\\\n])*"
      | (?<![\w'])'(?:\\.|[^'\\\n])+' | ^[ \t]*(?P<directive>\#(?:\\.|[^\n])*) | (?P<sign>[{};])""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

# A declaration of a function, which does not call it.
_PROTOTYPE = re.compile(r"^[^=#]*\)[\w\s]*;$")

_WORD = re.compile(r"[A-Za-z_]\w*")

# A longer text has whole libraries in it.
_MOST_CHARACTERS = 200_000


def may_wait(text: str, names: Iterable[str]) -> bool:
    """Tell whether some kernels, or functions that they call, have in them what makes threads wait."""
    if not _WAITS.search(text):
        return False
    if len(text) > _MOST_CHARACTERS:
        return True
    functions, rest = functions_of(text)
    reached = set(_WORD.findall(rest)).union(*map(_WORD.findall, names))
    while True:
        found = [each for each in functions if _is_reached(each[0], reached)]
        if any(_WAITS.search(body) for _, body in found) or _WAITS.search(rest):
            return True
        if not found:
            return False
        functions = [each for each in functions if each not in found]
        reached.update(word for _, body in found for word in _WORD.findall(body))


def _is_reached(head: str, reached: set[str]) -> bool:
    """Tell whether a function may be called: by name, or as an operator or a destructor, which need none."""
    called = re.findall(r"([A-Za-z_]\w*)\s*(?:<[^<>()]*>\s*)?\(", head)
    return "operator" in head or "~" in head or not reached.isdisjoint(called)


def functions_of(text: str) -> tuple[list[tuple[str, str]], str]:
    """Take a text apart into functions, each as head and body, and what stands outside of them."""
    functions: list[tuple[str, str]] = []
    rest: list[str] = []
    start = depth = 0  # where the head or the body began; braces that are open in the body
    head = ""
    for token in _TOKEN.finditer(text):
        sign = token["sign"]
        if token["directive"] and not depth:
            rest.append(token["directive"] + "\n")
            start = token.end()
        if sign is None:
            continue
        if depth:
            depth += (sign == "{") - (sign == "}")
            if depth == 0:
                functions.append((head, text[start : token.end()]))
                start = token.end()
        elif sign == "{" and ")" in text[start : token.start()]:
            head, start, depth = text[start : token.start()], token.start(), 1
        else:
            piece = text[start : token.end()]
            if not _PROTOTYPE.search(piece):
                rest.append(piece)
            start = token.end()
    return functions, "".join([*rest, text[start:]])
