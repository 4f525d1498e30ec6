"""The headers of a source: every one that can change what it compiles to, by spelling and content."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from podium._source import _includes
from podium._source._includes import scan_includes
from podium.errors import SourceError


def write(root: Path, **files: str | bytes) -> None:
    """Write files; two underscores in a name stand for a slash, and every name ends in .h."""
    for name, content in files.items():
        path = root / (name.replace("__", "/") + ".h")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def names(source: str, path: Path | None, *dirs: Path) -> list[str]:
    found = scan_includes(source, None if path is None else str(path), [str(each) for each in dirs])
    assert found == tuple(sorted(found))
    return [name for name, _ in found]


def digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def test_includes_are_followed(tmp_path: Path) -> None:
    """A header that a header includes counts as well; a quoted one is looked for beside its includer first."""
    write(tmp_path, a='#include "sub/b.h"\n', sub__b='#include "c.h"\n#include <d.h>\n', sub__c="in sub", c="outside")
    write(tmp_path / "inc", d="d", c="in inc")
    found = scan_includes('#include "a.h"', str(tmp_path / "k.cu"), [str(tmp_path / "inc")])
    assert dict(found)["a.h"] == digest('#include "sub/b.h"\n')
    assert [name for name, _ in found] == ["0/c.h", "0/d.h", "a.h", "c.h", "sub/b.h", "sub/c.h"]
    # beside the includer, beside the source, and in the include folder: compilers look in all of them
    contents = {name: value for name, value in found if name.endswith("c.h")}
    assert contents == {"sub/c.h": digest("in sub"), "c.h": digest("outside"), "0/c.h": digest("in inc")}


def test_a_header_of_the_source_is_found_from_an_include_folder(tmp_path: Path) -> None:
    """A library's header may include one that lies beside the source: compilers are told of that folder (CAC-14)."""
    write(tmp_path / "src", config="one")
    write(tmp_path / "lib", lib='#include "config.h"')
    found = scan_includes("#include <lib.h>", str(tmp_path / "src/k.cu"), [str(tmp_path / "lib")])
    assert ("config.h", digest("one")) in found


def test_headers_that_change_places_are_another_result(tmp_path: Path) -> None:
    """Two headers of one name whose contents are swapped make another program."""
    source = '#include "a/x.h"\n#include "b/x.h"'
    results = []
    for first, second in (("one", "two"), ("two", "one")):
        write(tmp_path, a__x='#include "cfg.h"', b__x='#include "cfg.h"', a__cfg=first, b__cfg=second)
        results.append(scan_includes(source, str(tmp_path / "k.cu"), []))
    assert results[0] != results[1]


@pytest.mark.parametrize("flags", [("-I{}",), ("-I", "{}"), ("-isystem", "{}"), ("-isystem{}",), ("-idirafter", "{}")])
def test_folders_among_the_flags_count(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """A folder that only the flags name is searched, too."""
    write(tmp_path, x="content")
    found = scan_includes("#include <x.h>", None, [], [flag.format(tmp_path) for flag in flags])
    assert found == (("0/x.h", digest("content")),)


def test_files_among_the_flags_and_folders_of_the_environment_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``-include`` names a header, and CPATH folders."""
    write(tmp_path, x="content", y="other")
    found = scan_includes("", None, [], ["-include", str(tmp_path / "x.h")])
    assert [value for _, value in found] == [digest("content")]
    monkeypatch.setenv("CPATH", str(tmp_path))
    assert scan_includes("#include <y.h>", None, []) == (("0/y.h", digest("other")),)


@pytest.mark.parametrize(
    "line", ["#if __has_include(<x.h>)", '#if defined A || __has_include ( "x.h" )', "#define H <x.h>\n#include <y.h>"]
)
def test_a_header_that_is_only_mentioned_counts(tmp_path: Path, line: str) -> None:
    """Whether it is there changes the output, or a macro names it for an include elsewhere."""
    assert scan_includes(line, None, [str(tmp_path)]) == ()
    write(tmp_path, x="content")
    assert scan_includes(line, None, [str(tmp_path)]) == (("0/x.h", digest("content")),)


def test_what_is_found_nowhere_belongs_to_the_toolchain(tmp_path: Path) -> None:
    """Standard headers are in no folder of the user's, and the compiler's version stands for them."""
    assert names('#include <cuda_fp16.h>\n#include <vector>\n#include "none.h"', tmp_path / "k.cu", tmp_path) == []


@pytest.mark.parametrize(
    "line",
    [
        '#include "x.h"',
        "#include <x.h>",
        '#include"x.h"',
        "  #  include  <x.h>  // comment",
        "\t#include\t<x.h>",
        '#include_next "x.h"',
        "#include_next <x.h>",
        '%:include "x.h"',
        '#import "x.h"',
        '#embed "x.h" limit(3)',
        '#inc\\\nlude "x.h"',
        '#include \\\n "x.h"',
        '#include \\\r\n "x.h"\r\n',
        '/* c */ #include "x.h"',
        '/* c\n c */ #include "x.h"',
        '# /* c */ include "x.h"',
        '#include /* c */ "x.h"',
        '#error don\'t\n#include "x.h"',
        'const char* s = "/*";\n#include "x.h"',
        'auto s = R"(/*)";\n#include "x.h"',
        '#include <y//z.h>\n#include "x.h"',
        '#include <y/*z.h>\n#include "x.h"',
        '#if 0\n#include "x.h"\n#endif',
        '#if __has_include("y.h")\n#include "x.h"\n#endif',
        '\ufeff#include "x.h"',
        'int x;\n\n#include "x.h"\nint y;',
        '#include "./x.h"',
        '#include "nowhere/../x.h"',
    ],
)
def test_every_form_of_an_include_is_seen(tmp_path: Path, line: str) -> None:
    """Missing a header would mean stale code, so every way to write an include is understood."""
    write(tmp_path, x="content")
    (tmp_path / "nowhere").mkdir()
    (found,) = scan_includes(line, None, [str(tmp_path)])
    assert found[0].endswith("x.h")
    assert found[1] == digest("content")


@pytest.mark.parametrize(
    "line",
    [
        'int include; "x.h"',
        'printf("#include <x.h>");',
        "#pragma once",
        "#includes <x.h>",
        "#include",
    ],
)
def test_what_is_no_include(tmp_path: Path, line: str) -> None:
    """Words that only look like an include bring nothing in."""
    write(tmp_path, x="content")
    assert names(line, tmp_path / "k.cu", tmp_path) == []


def test_the_first_folder_wins(tmp_path: Path) -> None:
    """The order of the folders decides which file counts, and its content tells."""
    write(tmp_path / "a", x="one")
    write(tmp_path / "b", x="two")
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert scan_includes("#include <x.h>", None, folders) == (("0/x.h", digest("one")),)
    assert scan_includes("#include <x.h>", None, folders[::-1]) == (("0/x.h", digest("two")),)


def test_include_next_means_any_of_them(tmp_path: Path) -> None:
    """Which one comes next depends on where the includer was found, so all count."""
    write(tmp_path / "a", x="#include_next <x.h>")
    write(tmp_path / "b", x="two")
    found = scan_includes("#include <x.h>", None, [str(tmp_path / "a"), str(tmp_path / "b")])
    assert found == (("0/x.h", digest("#include_next <x.h>")), ("1/x.h", digest("two")))


def test_text_without_a_path_is_taken_to_be_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compilers look for quoted headers of such text there."""
    write(tmp_path, x="content")
    monkeypatch.chdir(tmp_path)
    assert scan_includes('#include "x.h"', None, []) == (("x.h", digest("content")),)
    assert scan_includes("#include <x.h>", None, []) == ()
    assert scan_includes('#include "x.h"', "k.cu", []) == (("x.h", digest("content")),)


def test_the_place_does_not_matter(tmp_path: Path) -> None:
    """Two checkouts of the same files give the same result, so a cache can be shared."""
    results = []
    for place in ("one", "another/deeper"):
        write(tmp_path / place, a='#include "sub/b.h"\n#include CONFIG', sub__b="b", unused="u")
        results.append(scan_includes('#include "a.h"', str(tmp_path / place / "k.cu"), [str(tmp_path / place / "sub")]))
    assert results[0] == results[1]


def test_a_change_anywhere_changes_the_result(tmp_path: Path) -> None:
    """CAC-14: an edited header must not bring the old binary back."""
    write(tmp_path, a='#include "b.h"', b='#include "c.h"', c="1")
    before = scan_includes('#include "a.h"', str(tmp_path / "k.cu"), [])
    write(tmp_path, c="2")
    assert scan_includes('#include "a.h"', str(tmp_path / "k.cu"), []) != before


def test_a_computed_include_means_every_file(tmp_path: Path) -> None:
    """A macro can name any header, so all below the folder of the source and the include folders count."""
    write(tmp_path / "src", a="a", deep__b="b")
    write(tmp_path / "inc", c="c")
    write(tmp_path / "elsewhere", d="d")
    source = "#define CONFIG <c.h>\n#include CONFIG"
    assert names(source, tmp_path / "src/k.cu", tmp_path / "inc") == ["0/c.h", "a.h", "c.h", "deep/b.h"]
    assert names(source, None, tmp_path / "inc", tmp_path / "none") == ["0/c.h", "c.h"]
    write(tmp_path / "inc", e="#include ANOTHER")
    assert names("#include <e.h>", None, tmp_path / "inc", tmp_path / "elsewhere") == ["0/e.h", "c.h", "d.h", "e.h"]


def test_prose_in_a_comment_is_no_computed_include(tmp_path: Path) -> None:
    """A comment such as "# include headers first" does not drag every file in."""
    write(tmp_path, a="a")
    assert names("/*\n # include headers first\n*/\n// \\\n#include MORE\n", tmp_path / "k.cu", tmp_path) == []


def test_a_computed_include_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound there is an error that names the place and what to do, instead of reading a whole disk."""
    write(tmp_path, **{f"f{index}": "x" * 10 for index in range(6)})
    monkeypatch.setattr(_includes, "_MOST_FILES", 6)
    assert len(names("#include CONFIG", None, tmp_path)) == 6
    monkeypatch.setattr(_includes, "_MOST_FILES", 5)
    with pytest.raises(SourceError, match=r"by a macro.*include_dirs"):
        scan_includes("#include CONFIG", None, [str(tmp_path)])
    monkeypatch.setattr(_includes, "_MOST_FILES", 6)
    monkeypatch.setattr(_includes, "_MOST_BYTES", 59)
    with pytest.raises(SourceError, match="more than"):
        scan_includes("#include CONFIG", None, [str(tmp_path)])


def test_cycles_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers that include each other, themselves, or themselves through a link to their folder."""
    reads: list[str] = []
    read = _includes._read
    monkeypatch.setattr(_includes, "_read", lambda path: reads.append(path) or read(path))
    write(tmp_path, a='#include "b.h"\n#include "self/a.h"', b='#include "a.h"\n#include "b.h"')
    (tmp_path / "self").symlink_to(tmp_path)
    assert names('#include "a.h"', tmp_path / "k.cu") == ["a.h", "b.h", "self/a.h"]
    assert len(reads) == 3
    assert names("#include MACRO", tmp_path / "k.cu") == ["a.h", "b.h"]


def test_links_are_followed(tmp_path: Path) -> None:
    """A linked header counts by its content, and its own includes are looked for beside the link."""
    write(tmp_path / "store", x='#include "y.h"', y="beside the file")
    write(tmp_path / "inc", y="beside the link")
    (tmp_path / "inc/x.h").symlink_to(tmp_path / "store/x.h")
    found = scan_includes("#include <x.h>", None, [str(tmp_path / "inc")])
    assert ("0/y.h", digest("beside the link")) in found
    (tmp_path / "inc/gone.h").symlink_to(tmp_path / "nowhere")
    (tmp_path / "inc/loop.h").symlink_to(tmp_path / "inc/loop.h")
    assert names("#include <gone.h>\n#include <loop.h>", None, tmp_path / "inc") == []


def test_only_regular_files_are_headers(tmp_path: Path) -> None:
    """A folder, a pipe or a device of that name is passed over, and never read."""
    (tmp_path / "a/x.h").mkdir(parents=True)
    os.mkfifo(tmp_path / "a/y.h")
    write(tmp_path / "b", x="x", y="y")
    assert names("#include <x.h>\n#include <y.h>\n#include </dev/zero>", None, tmp_path / "a", tmp_path / "b") == [
        "1/x.h",
        "1/y.h",
    ]
    assert names("#include MACRO", None, tmp_path / "a", tmp_path / "b") == ["x.h", "y.h"]


def test_binary_files_count_by_their_bytes(tmp_path: Path) -> None:
    """Bytes that are no text are hashed, and includes among them are found."""
    content = bytes(range(256)) + b'\n#include "y.h"\n' + b"\xff\xfe\x00"
    write(tmp_path, x=content, y=b"\x00")
    found = dict(scan_includes('#embed "x.h"', str(tmp_path / "k.cu"), []))
    assert found == {"x.h": hashlib.sha256(content).hexdigest(), "y.h": hashlib.sha256(b"\x00").hexdigest()}


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser can read everything")
@pytest.mark.parametrize("target", ["inc/x.h", "inc"])
def test_a_header_that_cannot_be_read_is_an_error(tmp_path: Path, target: str) -> None:
    """It may change the result, so it is neither skipped nor taken for missing."""
    write(tmp_path / "inc", x="x")
    (tmp_path / target).chmod(0)
    try:
        with pytest.raises(SourceError, match=r"x\.h.*cannot be read"):
            scan_includes("#include <x.h>", None, [str(tmp_path / "inc")])
    finally:
        (tmp_path / target).chmod(0o700)


def test_errors_of_the_system_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs it, a file that is there and refuses to be read is an error that names it."""
    write(tmp_path, x="x")

    def refuse(path: str, mode: str) -> object:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(_includes, "open", refuse, raising=False)
    with pytest.raises(SourceError, match=r"x\.h.*Permission denied.*include_dirs"):
        scan_includes("#include <x.h>", None, [str(tmp_path)])


@pytest.mark.parametrize("name", ["x" * 5000, "\0", "\ud800", "a\0b/../x.h"])
def test_names_that_no_file_has(tmp_path: Path, name: str) -> None:
    """What the system cannot even look up is not there."""
    assert names(f"#include <{name}>", tmp_path / "k.cu", tmp_path) == []
