"""The headers that a source includes, found without a preprocessor: what they contain belongs to a cache key.

One header too many costs a compilation when it changes, one too few gives stale code. So conditions are not looked at,
and an include counts even in a comment.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import stat
from collections.abc import Iterator, Sequence

from podium._record import record
from podium._source._comments import blank_comments
from podium.errors import SourceError

__all__ = ["scan_includes"]

_SPLICE = re.compile(r"\\\r?\n")
_INCLUDE = re.compile(
    r"""
    ^(?:\xef\xbb\xbf|\ufeff)?[ \t\v\f\r]*(?:\#|%:)[ \t\v\f]*(?:include(?P<next>_next)?|import|embed)
    (?:[ \t\v\f]*(?:"(?P<quoted>[^"\n]+)"|<(?P<angled>[^>\n]+)>)|[ \t\v\f]+(?P<computed>[A-Za-z_]))
    """,
    re.MULTILINE | re.VERBOSE,
)

# Whether a header is there can change the output as well; and a macro may name one for an include elsewhere.
_MENTION = re.compile(
    r"""(?:__has_(?:include(?:_next)?|embed)[ \t]*\([ \t]*|^[ \t]*\#[ \t]*define[ \t]+\w+[ \t]+)
    (?:"(?P<quoted>[^"\n]+)"|<(?P<angled>[^>\n]+)>)""",
    re.MULTILINE | re.VERBOSE,
)

# Bounds on what a computed include, such as #include CONFIG, makes part of the result.
_MOST_FILES = 20_000
_MOST_BYTES = 1 << 29


def scan_includes(
    source: str, path: str | None, include_dirs: Sequence[str], flags: Sequence[str] = ()
) -> tuple[tuple[str, str], ...]:
    """Return the headers that a source may include: where each was found, with the SHA-256 of its content, sorted.

    Folders and files that compiler `flags` name (-I, -isystem, -iquote, -idirafter, -include), and those in the
    variables CPATH, C_INCLUDE_PATH and CPLUS_INCLUDE_PATH, are searched as well.

    `path` is the file that the source came from, or None; then quoted includes are looked up in the working directory,
    where compilers take such text to be. Headers that are found in none of the folders belong to the toolchain, and are
    left out. The result does not depend on where the folders are.

    A computed include, such as ``#include CONFIG``, can mean any file, so all regular files below the folder of the
    source (if it has a path) and below the include folders become part of the result, by their path there. That is
    bounded by 20 000 files and 512 MiB; beyond it, and for a header that cannot be read, `SourceError` is raised.
    """
    named, forced = _of_flags(flags)
    variables = (os.environ.get(name, "") for name in ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"))
    searched = [folder for variable in variables for folder in variable.split(os.pathsep) if folder]
    folder = os.path.dirname(path or "")
    scan = _Scan((*map(os.fspath, include_dirs), *named, *searched), folder)
    source = "".join(f'#include "{name}"\n' for name in forced) + source
    scan.read(_Text(source, folder, path or "the source", "."))
    if scan.computed:
        roots = scan.include_dirs if path is None else (os.path.dirname(path) or ".", *scan.include_dirs)
        scan.everything(roots)
    return tuple(sorted(scan.found))


@record(frozen=True)
class _Text:
    """A text to look into, the folder that its quoted includes start from, and how that folder was reached."""

    text: str
    folder: str
    label: str
    reached: str


class _Scan:
    def __init__(self, include_dirs: tuple[str, ...], source_folder: str) -> None:
        self.include_dirs, self.source_folder = include_dirs, source_folder
        self.found: set[tuple[str, str]] = set()
        self.computed: str | None = None
        self._hashes: dict[str, str] = {}
        self._seen: set[tuple[str, str]] = set()

    def read(self, source: _Text) -> None:
        """Look into a text and, one after the other, into all that it leads to."""
        pending = [source]
        while pending:
            pending += self._follow(pending.pop())

    def everything(self, roots: Sequence[str]) -> None:
        """Enter every regular file below some folders."""
        files = size = 0
        for root in roots:
            for path in _below(root):
                status = _regular(path)
                if status is None:
                    continue
                files, size = files + 1, size + status.st_size
                if files > _MOST_FILES or size > _MOST_BYTES:
                    raise SourceError(
                        f"{self.computed} includes a file by a macro, which can be any of those below "
                        f"{', '.join(map(repr, roots))}, and these are more than {_MOST_FILES} files or "
                        f"{_MOST_BYTES >> 20} MiB. Name the header in the #include, or narrow include_dirs"
                    )
                self._enter(os.path.relpath(path, root).replace(os.sep, "/"), path)

    def _follow(self, source: _Text) -> Iterator[_Text]:
        """Enter the includes of a text, and return the contents of those that were not looked into yet."""
        text = _SPLICE.sub("", source.text)
        if "include" not in text and "import" not in text and "embed" not in text:
            return
        plain = blank_comments(text, keep_strings=True)
        if any(match["computed"] for match in _INCLUDE.finditer(plain)):
            self.computed = self.computed or source.label
        # A comment may hide that a line is an include, and <a//b> looks like a comment: both views are looked at.
        spelled = {
            (match["quoted"] or match["angled"], match["quoted"] is not None, match["next"] is not None)
            for view in (text, plain)
            for match in _INCLUDE.finditer(view)
            if not match["computed"]
        }
        spelled |= {
            (match["quoted"] or match["angled"], match["quoted"] is not None, True)
            for match in _MENTION.finditer(plain)
        }
        for name, is_quoted, is_next in sorted(spelled):
            for place, path in self._candidates(name, source if is_quoted else None, is_next):
                found_as = posixpath.normpath(f"{place or '.'}/{name}")
                data = self._enter(found_as, path)
                if data is not None:
                    yield _Text(data.decode("latin-1"), os.path.dirname(path), path, posixpath.dirname(found_as))

    def _candidates(self, name: str, includer: _Text | None, is_next: bool) -> list[tuple[str, str]]:
        """Return the files that a compiler may take, each with the place where it was found.

        That is the first there is in the include folders, all of them for include_next, and for a quoted name also the
        one beside the includer and the one beside the source: a compiler that is given the text alone does not look
        there. Places are "." for the source's folder and the number of an include folder, so that they do not depend
        on where the folders are.
        """
        found = [
            (str(number), path)
            for number, path in enumerate(os.path.join(each, name) for each in self.include_dirs)
            if _regular(path)
        ]
        chosen = found if is_next else found[:1]
        if includer is not None:
            for place, folder in ((includer.reached, includer.folder), (".", self.source_folder)):
                if _regular(beside := os.path.join(folder, name)):
                    chosen = [(place, beside), *chosen]
        return chosen

    def _enter(self, name: str, path: str) -> bytes | None:
        """Enter a file under a name; return its content if that is still to be looked into."""
        data = None
        if path not in self._hashes:
            data = _read(path)
            if data is None:
                return None
            self._hashes[path] = hashlib.sha256(data).hexdigest()
        self.found.add((name, self._hashes[path]))
        # A header reached through a link has its own includes beside the link: the folder counts as well as the file.
        identity = os.path.realpath(path), os.path.realpath(os.path.dirname(path) or ".")
        if data is None or identity in self._seen:
            return None
        self._seen.add(identity)
        return data


_FOLDER_FLAGS = ("-isystem", "-iquote", "-idirafter", "-I")


def _of_flags(flags: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the include folders and the files to include first that a compiler's flags name."""
    folders: list[str] = []
    files: list[str] = []
    pending = iter(flags)
    for flag in pending:
        for option in ("-include", *_FOLDER_FLAGS):
            if flag.startswith(option):
                value = (flag[len(option) :] or next(pending, "")).lstrip("=")
                (folders if option in _FOLDER_FLAGS else files).append(value)
                break
    return [each for each in folders if each], [each for each in files if each]


def _below(root: str) -> Iterator[str]:
    """List the files below a folder, each once: a folder reached again through a link is not entered."""
    seen: set[str] = set()

    def refuse(error: OSError) -> None:
        raise _unreadable(error.filename or root, error)

    if not os.path.isdir(root):
        return
    for folder, folders, names in os.walk(root, onerror=refuse, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        for name in sorted(names):
            yield os.path.join(folder, name)


def _regular(path: str) -> os.stat_result | None:
    """Return the status of a regular file; None if there is none. Raises `SourceError` if that cannot be told."""
    try:
        status = os.stat(path)
    except PermissionError as error:
        raise _unreadable(path, error) from None
    except (OSError, ValueError):  # not there, a name too long, a loop of links, or characters that no name has
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _read(path: str) -> bytes | None:
    """Read a file; None if it went away. Raises `SourceError` if it is there and cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str, error: OSError) -> SourceError:
    return SourceError(
        f"The header {path!r} is there, but cannot be read ({error.strerror or error}); it may change what the source "
        "compiles to. Make it readable, or leave its folder out of include_dirs"
    )
