"""How large the functions of a source become where everything that they call is put into them.

The loops over threads are compiled with all calls put in, since vectors are not made of a loop with a call. Functions
that call several others, each of which calls several others, would keep g++ busy for minutes and fill its memory.
"""

from __future__ import annotations

import re
from collections import Counter

from podium_cpu.waiting import functions_of

__all__ = ["has_large_call_tree"]

# In words of the source. Twice as many take g++ some ten seconds.
_MOST_WORDS = 5000

# A longer text has whole libraries in it.
_MOST_CHARACTERS = 200_000

_NAME = re.compile(r"(operator\b[^(]*|~?[A-Za-z_]\w*)\s*(?:<[^<>()]*>\s*)?\(")
_WORD = re.compile(r"[A-Za-z_]\w*")


def has_large_call_tree(text: str) -> bool:
    """Tell whether a function grows beyond what a compiler has time for, as far as the text tells."""
    if len(text) > _MOST_CHARACTERS:
        return True
    bodies: dict[str, list[str]] = {}
    for head, body in functions_of(text)[0]:
        called = _NAME.search(head)
        words = _WORD.findall(body)
        if called is not None and len(words) > len(bodies.get(called[1], ())):  # of overloaded ones the longest counts
            bodies[called[1]] = words
    calls = {name: Counter(word for word in words if word in bodies) for name, words in bodies.items()}
    sizes: dict[str, int] = {}
    for _ in range(2):  # once more for those that are called in front of their definition
        for name, words in bodies.items():
            inner = sum(count * sizes.get(other, 0) for other, count in calls[name].items() if other != name)
            sizes[name] = len(words) + inner
            if inner > _MOST_WORDS:
                return True
    return False
