"""Entry points are read from the metadata folders, as `importlib.metadata` reads them, but each in its own guard."""

from __future__ import annotations

import importlib.metadata
import sys
import zipfile
from pathlib import Path

import pytest
from plugin_distributions import Site, site_at

from podium._entry_points import EntryPoint, installed_entry_points


@pytest.mark.parametrize("group", ["console_scripts", "pytest11", "podium"])
def test_same_as_importlib_metadata(group: str) -> None:
    """What is read of really installed distributions is what the standard library reads."""
    expected = {(entry.name, entry.value) for entry in importlib.metadata.entry_points(group=group)}
    assert {(entry.name, entry.value) for entry in installed_entry_points(group)} == expected


def test_reads_name_value_and_owner(site: Site) -> None:
    """An entry point knows which distribution it is from; its module is without extras (DISC-03)."""
    site.add_metadata("My_Vendor.Backend", "2.5", "[other]\na = b\n\n[sample]\n# comment\ngpu = vendor.plugin [fast]\n")
    assert installed_entry_points("sample") == [EntryPoint("gpu", "vendor.plugin [fast]", "my-vendor-backend", "2.5")]
    assert installed_entry_points("sample")[0].module == "vendor.plugin"


def test_broken_file_costs_only_its_own_distribution(site: Site) -> None:
    """A line without "=" and bytes that are no text do not hide the backends of other distributions (DISC-01)."""
    broken = site.add_metadata("podium-broken", "1", "[sample]\nnonsense\n")
    (site.add_metadata("podium-bytes", "1", "") / "entry_points.txt").write_bytes(b"\xff\xfe[sample]\n")
    site.add_metadata("podium-well", "1", "[sample]\nwell = well.plugin\n")
    found = {entry.name: entry.value for entry in installed_entry_points("sample")}
    assert found == {"nonsense": "", "well": "well.plugin"}
    assert broken.is_dir()


def test_first_copy_of_a_distribution_counts(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two copies of one distribution on sys.path are one, the first, however its name is spelled (DISC-12)."""
    with site_at(tmp_path / "in front") as front:
        site.add_metadata("podium-twice", "1", "[sample]\ntwice = old.plugin\n")
        front.add_metadata("Podium_Twice", "2", "[sample]\ntwice = new.plugin\n")
        with monkeypatch.context() as patch:
            patch.setattr(sys, "path", [*sys.path, *sys.path])
            assert installed_entry_points("sample") == [EntryPoint("twice", "new.plugin", "podium-twice", "2")]
        (front.folder / "Podium_Twice-2.dist-info" / "entry_points.txt").unlink()
        assert installed_entry_points("sample") == []


@pytest.mark.parametrize("left", ["~odium-twice", "~-dium-twice", "-dium_twice", "~", "podium_twice~"])
def test_what_an_interrupted_upgrade_leaves_is_no_distribution(site: Site, left: str) -> None:
    """pip moves metadata aside under names that no distribution can have, and ignores those itself (DISC-03)."""
    site.add_metadata("podium-twice", "2", "[sample]\ntwice = new.plugin\n")
    aside = site.folder / f"{left}-1.dist-info"
    aside.mkdir()
    (aside / "entry_points.txt").write_text("[sample]\ntwice = old.plugin\n")
    assert installed_entry_points("sample") == [EntryPoint("twice", "new.plugin", "podium-twice", "2")]


def test_develop_install_and_missing_metadata(site: Site) -> None:
    """An egg-info folder counts, and so does a metadata folder that holds nothing but its entry points."""
    for folder, name in (("podium_dev.egg-info", "dev"), ("podium_old-3.0-py3.11.egg-info", "old")):
        (site.folder / folder).mkdir()
        (site.folder / folder / "entry_points.txt").write_text(f"[sample]\n{name} = {name}.plugin\n")
    (site.folder / "podium_file-1.egg-info").write_text("Name: podium-file\n")
    (site.add_metadata("podium-half", "1", "[sample]\nhalf = half.plugin\n") / "METADATA").unlink()
    assert sorted((entry.name, entry.distribution, entry.version) for entry in installed_entry_points("sample")) == [
        ("dev", "podium-dev", ""),
        ("half", "podium-half", "1"),
        ("old", "podium-old", "3.0"),
    ]


def test_zip_file_on_the_path(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution inside a zip file on sys.path is found, too."""
    with zipfile.ZipFile(tmp_path / "bundle.zip", "w") as bundle:
        bundle.writestr("podium_zip-4.dist-info/METADATA", "Metadata-Version: 2.1\nName: podium-zip\nVersion: 4\n")
        bundle.writestr("podium_zip-4.dist-info/entry_points.txt", "[sample]\nzipped = zipped.plugin\n")
    monkeypatch.setattr(
        sys, "path", [*sys.path, str(tmp_path / "bundle.zip"), str(tmp_path / "absent"), Path(tmp_path)]
    )
    assert installed_entry_points("sample") == [EntryPoint("zipped", "zipped.plugin", "podium-zip", "4")]


def test_other_import_systems(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Distributions of another finder are found; a finder that raises hides nothing (DISC-02)."""

    class Elsewhere(importlib.metadata.Distribution):
        def read_text(self, filename: str) -> str | None:
            return {
                "METADATA": "Metadata-Version: 2.1\nName: podium-elsewhere\nVersion: 5\n",
                "entry_points.txt": "[sample]\nelsewhere = elsewhere.plugin\n",
            }.get(filename)

        def locate_file(self, path: object) -> Path:
            raise NotImplementedError

    class Finder:
        def __init__(self, fails: bool) -> None:
            self.fails = fails

        def find_spec(self, *args: object) -> None:
            return None

        def find_distributions(self, context: object) -> list[Elsewhere]:
            if self.fails:
                raise RuntimeError("no distributions today")
            return [Elsewhere()]

    monkeypatch.setattr(sys, "meta_path", [Finder(fails=True), *sys.meta_path, Finder(fails=False)])
    site.add_metadata("podium-plain", "1", "[sample]\nplain = plain.plugin\n")
    assert [(entry.name, entry.distribution, entry.version) for entry in installed_entry_points("sample")] == [
        ("plain", "podium-plain", "1"),
        ("elsewhere", "podium-elsewhere", "5"),
    ]
