"""Loading compiled bytes: libraries, extension modules, and bytes that are neither."""

from __future__ import annotations

import ctypes
import gc
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cache_files import posix_only
from library_files import EXTENSION, LIBRARY, ONE_PHASE, TWO_PHASE, Build, call, needs_compiler, run

from podium import _library
from podium._library import SharedLibrary, is_whole, load_extension
from podium.errors import LoadError

pytestmark = [posix_only, needs_compiler, pytest.mark.usefixtures("places")]


# Libraries


def test_a_library_gives_the_addresses_of_its_symbols(build: Build) -> None:
    """Functions can be called, and variables read, at the addresses."""
    library = SharedLibrary.from_bytes("sample", build(LIBRARY))
    assert call(library) == 42
    ctypes.c_int.from_address(library.address("answer")).value = 7
    assert call(library) == 7
    assert library.name == "sample"
    assert "sample" in repr(library)


@pytest.mark.parametrize("symbol", ["missing", "", "get_answer\0x", "a b", "ünder"])
def test_a_missing_symbol_is_named(build: Build, symbol: str) -> None:
    """The error of a missing symbol names the symbol and the library."""
    library = SharedLibrary.from_bytes("sample", build(LIBRARY))
    with pytest.raises(LoadError) as raised:
        library.address(symbol)
    assert repr(symbol) in str(raised.value)
    assert "sample" in str(raised.value)


def test_libraries_of_one_name_are_different(build: Build) -> None:
    """Each load gives the library that was handed in, even if one of that name is loaded."""
    sources = [LIBRARY.replace("42", str(number)) for number in range(5)]
    libraries = [SharedLibrary.from_bytes("sample", build(source)) for source in sources]
    again = SharedLibrary.from_bytes("sample", build(LIBRARY))
    assert [call(library) for library in libraries] == [0, 1, 2, 3, 4]
    assert call(again) == 42
    assert len({library.path for library in [*libraries, again]}) == 6


def test_the_file_is_private_and_goes_at_once(build: Build, places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-07: nobody else can read or write the file while it is mapped, and nothing is left."""
    real, seen = ctypes.CDLL, []

    def load(path: str) -> ctypes.CDLL:
        seen.append((os.stat(path).st_uid, stat.S_IMODE(os.stat(path).st_mode)))
        return real(path)

    monkeypatch.setattr(ctypes, "CDLL", load)
    library = SharedLibrary.from_bytes("sample", build(LIBRARY))
    assert seen == [(os.geteuid(), 0o700)]
    assert library.path.parent == places
    assert list(places.iterdir()) == []


def test_a_file_is_kept_for_debuggers_until_the_process_ends(build: Build, tmp_path: Path) -> None:
    """With keep_file the file is there and readable, and goes with its folder when the process ends."""
    (tmp_path / "library").write_bytes(build(LIBRARY))
    script = """
        import sys
        from pathlib import Path
        from podium._library import SharedLibrary
        data = Path(sys.argv[1]).read_bytes()
        kept = SharedLibrary.from_bytes("kept", data, keep_file=True)
        other = SharedLibrary.from_bytes("other", data)
        assert kept.path.read_bytes() == data
        assert kept.path.parent.parent == other.path.parent
        assert kept.path.parent.stat().st_mode & 0o777 == 0o700
        assert [path.name for path in kept.path.parent.iterdir()] == [kept.path.name]
        print(kept.path)
    """
    path = Path(run(script, tmp_path / "library").strip())
    assert path.name.startswith("kept-")
    assert not path.parent.exists()
    assert path.parent.parent.exists()


HOSTILE = ["", "a b", "../x", "a/b", "a\0b", "a\nb", "-rf", "a.so", "ä", "$(id)", "x" * 129, None, 5, b"bytes"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_letters_digits_and_underscores(build: Build, tmp_path: Path, name: str) -> None:
    """A name that could lead somewhere else as a file name is refused before anything is written."""
    before = sorted(tmp_path.rglob("*"))
    for load in (SharedLibrary.from_bytes, load_extension):
        with pytest.raises(ValueError, match="not a name for a library"):
            load(name, build(LIBRARY))
    assert sorted(tmp_path.rglob("*")) == before


# Extension modules


@pytest.mark.parametrize("phases", [ONE_PHASE, TWO_PHASE], ids=["one phase", "two phases"])
def test_an_extension_module_is_imported(
    build: Build, places: Path, monkeypatch: pytest.MonkeyPatch, phases: dict[str, str]
) -> None:
    """An extension module works, stays out of sys.modules, and leaves no file; the next of its name is another one."""
    first = load_extension("sample", build(EXTENSION, VALUE="1", **phases))
    monkeypatch.setitem(sys.modules, "sample", sys)
    second = load_extension("sample", build(EXTENSION, VALUE="2", **phases))
    assert (first.get(), second.get(), first.__name__) == (1, 2, "sample")
    assert sys.modules.pop("sample") is sys
    load_extension("sample", build(EXTENSION, VALUE="1", **phases))
    assert "sample" not in sys.modules
    assert [path for path in places.rglob("*") if path.is_file()] == []


# Bad bytes


@pytest.mark.parametrize("load", [SharedLibrary.from_bytes, load_extension], ids=["library", "extension"])
@pytest.mark.parametrize(
    ("source", "words"),
    [(None, "file too short"), ("void missing(void); void call(void) { missing(); }", "undefined symbol: missing")],
    ids=["empty", "undefined symbol"],
)
def test_the_loaders_own_words_are_kept(
    build: Build, places: Path, load: Callable[[str, bytes], object], source: str | None, words: str
) -> None:
    """CAC-12: bytes that cannot be loaded are one LoadError with the loader's text, and other places are not tried."""
    if sys.platform != "linux":
        pytest.skip("the loader's words are those of Linux")
    # Without -z now, an undefined function would only be missed at its first call, so this also shows that it is asked.
    data = b"" if source is None else build(source)
    with pytest.raises(LoadError) as raised:
        load("sample", data)
    assert words in str(raised.value)
    assert "sample" in str(raised.value)
    assert "execution" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert [path for path in places.rglob("*") if path.is_file()] == []
    assert _library._forbidding == {}


def test_an_extension_without_its_init_function_is_an_error(build: Build) -> None:
    """A library that is no extension module is a LoadError that says so."""
    with pytest.raises(LoadError, match="PyInit_sample"):
        load_extension("sample", build(LIBRARY))


def test_a_library_cut_off_anywhere_is_an_error(build: Build) -> None:
    """CAC-10: parts of a library are refused by podium's own error."""
    data = build(LIBRARY)
    for length in (1, 16, 63, 64, 100):
        with pytest.raises(LoadError, match="could not be loaded"):
            SharedLibrary.from_bytes("sample", data[:length])


def test_what_was_cut_is_told_from_what_is_whole(build: Build) -> None:
    """CAC-10: an ELF file is whole if it has all that its headers speak of, in either order of bytes; others are not."""
    library = build(LIBRARY)
    assert is_whole(library) and is_whole(library + b"behind") and is_whole(b"text") and is_whole(b"")
    assert not any(is_whole(library[:length]) for length in range(4, len(library), 61))
    big = bytearray(64)
    big[:6], big[32:40], big[54:58] = b"\x7fELF\2\2", (64).to_bytes(8, "big"), bytes([0, 56, 0, 1])
    assert not is_whole(bytes(big)) and is_whole(bytes(big) + bytes(56))
    assert not is_whole(b"\x7fELF\1" + bytes(90))  # of 32 bits


# Lifetime


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
def test_libraries_are_never_unloaded(build: Build) -> None:
    """LIF-03: code stays mapped when the last object that podium gave is gone, since pointers to it may live on."""
    library = SharedLibrary.from_bytes("unloadable_library", build(LIBRARY))
    function = ctypes.CFUNCTYPE(ctypes.c_int)(library.address("get_answer"))
    module = load_extension("sample", build(EXTENSION, VALUE="9", **TWO_PHASE))
    get = module.get
    del library, module
    gc.collect()
    assert (function(), get()) == (42, 9)
    assert "unloadable_library-" in Path("/proc/self/maps").read_text()


def test_making_the_module_costs_little() -> None:
    """PRF-03: importing the module loads neither ctypes nor the search for temporary folders."""
    script = """
        import sys, podium._library
        print(sorted({"ctypes", "tempfile", "importlib.util", "podium._cache"} & set(sys.modules)))
    """
    assert run(script) == "[]\n"


def test_loading_does_not_search_for_temporary_folders(build: Build, tmp_path: Path) -> None:
    """PRF-04: loading a launcher from a warm cache imports nothing slow."""
    (tmp_path / "extension").write_bytes(build(EXTENSION, VALUE="1", **TWO_PHASE))
    script = """
        import sys
        from podium._library import load_extension
        with open(sys.argv[1], "rb") as file:
            load_extension("sample", file.read())
        print(sorted({"ctypes", "tempfile", "shutil", "random", "platformdirs"} & set(sys.modules)))
    """
    assert run(script, tmp_path / "extension") == "[]\n"
