"""``podium cache``: what the disk cache holds, where it is, and clearing it."""

from __future__ import annotations

import argparse
import time

from podium._cli.console import Console
from podium._cli.quantity import bytes_text

__all__ = ["add_arguments", "run"]

_ACTIONS = {
    "ls": "list the entries",
    "info": "say where the cache is, and how full",
    "clear": "remove the entries, and say how many",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of the command."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in _ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        action.add_argument("--traceback", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        if name != "info":
            action.add_argument("--kind", metavar="KIND", help="only entries of this kind, such as kernel or launcher")


def run(options: argparse.Namespace) -> int:
    """Do what was asked. Returns 1 if entries that should go could not be removed."""
    console = Console()
    if options.action == "ls":
        return _list(console, options.kind)
    if options.action == "clear":
        return _clear(console, options.kind)
    return _info(console)


def _list(console: Console, kind: str | None) -> int:
    from podium._cache import default_cache

    entries = [entry for entry in default_cache().entries() if kind in (None, entry.kind)]
    if entries:
        rows = [
            (entry.kind, bytes_text(entry.size), time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used)), entry.key)
            for entry in sorted(entries, key=lambda entry: (entry.kind, -entry.used, entry.key))
        ]
        console.table(("kind", "size", "last used", "key"), rows)
    console.line(f"{len(entries)} entries, {bytes_text(sum(entry.size for entry in entries))}")
    return 0


def _info(console: Console) -> int:
    from podium._cache import default_cache

    cache = default_cache()
    info = cache.info()
    console.line(f"folder: {info.folder or 'none'}")
    console.line(f"mode: {info.mode}" + (f" ({info.reason})" if info.reason else ""))
    console.line(f"holds: {info.entries} entries, {bytes_text(info.bytes)} of at most {bytes_text(info.max_bytes)}")
    sizes: dict[str, list[int]] = {}
    for entry in cache.entries():
        sizes.setdefault(entry.kind, []).append(entry.size)
    for kind, each in sorted(sizes.items()):
        console.line(f"  {kind}: {len(each)} entries, {bytes_text(sum(each))}")
    return 0


def _clear(console: Console, kind: str | None) -> int:
    from podium._cache import default_cache, reset_cache

    cache = default_cache()
    info = cache.info()
    wanted = {entry.key: entry for entry in cache.entries() if kind in (None, entry.kind)}
    if kind is None:
        cache.clear()
    elif info.mode == "disk":
        for key in wanted:
            cache.remove(key)
    # Looked at afresh: what this cache could not remove it only hides.
    reset_cache()
    left = {entry.key for entry in default_cache().entries() if entry.key in wanted}
    removed: dict[str, list[int]] = {}
    for key, entry in wanted.items():
        if key not in left:
            removed.setdefault(entry.kind, []).append(entry.size)
    for each, sizes in sorted(removed.items()):
        console.line(f"{each}: removed {len(sizes)} entries, {bytes_text(sum(sizes))}")
    total = [size for sizes in removed.values() for size in sizes]
    console.line(f"removed {len(total)} entries, {bytes_text(sum(total))}, from {info.folder or 'memory'}")
    if left:
        why = info.reason or "they cannot be deleted"
        console.line(f"{len(left)} entries are still there: {why}")
        return 1
    return 0
