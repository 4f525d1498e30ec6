"""The cache: what a second process finds, and what makes another entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import podium
from podium.backend import Driver
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Subject, bad

__all__ = ["Cache"]

_LAUNCH_THREE = """
import json
events = child.show_compiles()
for name, more in (("first", {}), ("second", {"defines": {"N": 3}}), ("third", {"fast_math": True})):
    source = f'extern "C" __global__ void {name}(int* x, int a) {{ x[threadIdx.x] += a; }}'
    kernel = podium.kernel(source, name, signature="x: *i32, a: i32", **more)
    x = podium.asarray([1, 2, 3])
    kernel[1, 3](x, 4)
    podium.synchronize()
    if executes and x.tolist() != [5, 6, 7]:
        raise AssertionError(x.tolist())
print(json.dumps([event.cached for event in events]))
"""


def _files(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_ino for path in folder.rglob("*") if path.is_file()}


@contract("Cache")
class Cache(Subject):
    """What is kept between processes, and under which key."""

    @pytest.mark.parametrize("name", ["interpreted", "generated"])
    def test_a_second_process_compiles_nothing(self, driver: Driver, tmp_path: Path, name: str) -> None:
        """The first process compiles each kernel, the second none, and it writes nothing to the cache.

        Rows PRF-04, GRD-10.
        """
        first = self.python(_LAUNCH_THREE, cache=tmp_path, level=name)
        assert first.returncode == 0, bad(first)
        assert json.loads(first.stdout) == [False] * 3
        files = _files(tmp_path)
        assert files, "nothing is in the cache folder"
        second = self.python(_LAUNCH_THREE, cache=tmp_path, level=name)
        assert second.returncode == 0, bad(second)
        assert json.loads(second.stdout) == [True] * 3
        assert _files(tmp_path) == files

    def test_what_changes_the_output_changes_the_key(self, driver: Driver, tmp_path: Path) -> None:
        """Source, name, define, include content, option and language standard each have an entry of their own.

        Rows CAC-16.
        """
        (tmp_path / "part.h").write_text("#define PART 1\n")
        variants: list[dict[str, Any]] = [
            {},
            {"defines": {"N": 1}},
            {"defines": {"N": 2}},
            {"defines": {"M": 1}},
            *([{"std": "c++14"}] if self.claims("standards") else []),
            {"fast_math": True},
            {"debug": True},
            {"line_info": True},
            {"source": "\n"},
            {"source": "// remark\n"},
            {"name": "twin"},
            {"include_dirs": [tmp_path], "source": '#include "part.h"\n'},
        ]
        for variant in variants:
            assert self._cached(**variant) is False, f"{variant} has the entry of another"
        for variant in variants:
            assert self._cached(**variant) is True, f"{variant} has another key each time"

    def test_a_changed_header_is_noticed(self, driver: Driver, tmp_path: Path) -> None:
        """A header that a header includes is part of the key by its content.

        Rows CAC-14.
        """
        (tmp_path / "outer.h").write_text('#include "inner.h"\n')
        contents = ["#define PART 1\n", "#define PART 2\n"]
        seen = []
        for content in (*contents, *contents):
            (tmp_path / "inner.h").write_text(content)
            seen.append(self._cached(source='#include "outer.h"\n', include_dirs=[tmp_path]))
        assert seen == [False, False, True, True]

    def test_a_damaged_entry_is_made_anew(self, driver: Driver, tmp_path: Path) -> None:
        """Entries that were cut or overwritten are not loaded: a next process compiles again and is right.

        Rows CAC-10, CAC-12.
        """
        folder = tmp_path / "cache"
        first = self.python("child.launch_add(executes)", cache=folder)
        assert first.returncode == 0, bad(first)
        for number, path in enumerate(sorted(path for path in folder.rglob("*") if path.is_file())):
            data = path.read_bytes()
            flipped = data[:-8] + bytes(byte ^ 255 for byte in data[-8:])
            path.write_bytes(data[: len(data) // 2] if number % 2 else flipped)
        for expected in ([False], [True]):
            again = self.python(
                "events = child.show_compiles()\nchild.launch_add(executes)\nprint([e.cached for e in events])",
                cache=folder,
            )
            assert again.returncode == 0, bad(again)
            assert again.stdout.strip() == str(expected)

    def test_without_a_folder_all_is_in_memory(self, driver: Driver, tmp_path: Path) -> None:
        """Where the cache folder cannot be made, there is one warning, and launches work.

        Rows CAC-05.
        """
        (tmp_path / "file").write_text("")
        process = self.python(
            """
            import warnings
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                child.launch_add(executes)
                child.launch_add(executes)
            print(len([each for each in caught if issubclass(each.category, podium.errors.PodiumWarning)]))
            """,
            cache=tmp_path / "file" / "cache",
        )
        assert process.returncode == 0, bad(process)
        assert int(process.stdout) <= 1

    def _cached(self, source: str = "", name: str = "probe", **options: Any) -> bool:
        """Compile a kernel, and tell whether the cache had it."""
        events: list[Any] = []
        podium.hooks.compile.add(events.append)
        text = source + 'extern "C" __global__ void probe(int* x) { }\nextern "C" __global__ void twin(int* x) { }\n'
        podium.kernel(text, name, signature="x: *i32", **options).compile()
        podium.hooks.compile.clear()
        assert len(events) == 1
        return bool(events[0].cached)
