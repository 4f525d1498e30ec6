#!/usr/bin/env python3
"""Fetch what is AMD's own for the tests of the AMD backend: `fetch.py FOLDER`, and RECORDING_HIP_RUNTIME=FOLDER for pytest.

`FOLDER/runtime` gets HIP 7.2 with hipRTC and all below it, the C library included: what runs on a modelled device.
`FOLDER/headers/N` and `FOLDER/library/N` get the headers and the runtimes of HIP N, which the stand-in is compared with.

The packages are Debian's, from the mirror that this machine's apt is configured with. Nothing is installed, and no root
is needed: apt works on lists and a status file of its own below the folder. About 90 MB to fetch and 400 MB unpacked.

Ends with 0 and prints the folder, or with 3 and one line that says why it cannot be had here.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

RUNTIME = ("libamdhip64-7", "libhiprtc7", "libhiprtc-builtins7", "libhsa-runtime64-1", "libamd-comgr3")
RUNTIME_SUITE = "experimental"
COMPARED = ("libamdhip64-5/bookworm", "libamdhip64-6/sid", "libamdhip64-dev/bookworm", "libamdhip64-dev/sid")
COMPARED += (f"libamdhip64-dev/{RUNTIME_SUITE}",)
_DONE = "complete"


class NotHere(Exception):
    """What is wanted cannot be had on this machine; the text says why."""


def main() -> int:
    """Fetch what is not there yet."""
    parser = argparse.ArgumentParser(description="Fetch AMD's HIP runtime for the tests of the AMD backend.")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder.resolve()
    if not (folder / _DONE).exists():
        try:
            fetch(folder)
        except NotHere as reason:
            sys.stderr.write(f"{reason}\n")
            return 3
        (folder / _DONE).touch()
    sys.stdout.write(f"{folder}\n")
    return 0


def fetch(folder: Path) -> None:
    """Fetch and unpack everything. Raises NotHere if the runtime cannot be had."""
    apt = Apt(folder / "apt", ("bookworm", "sid", RUNTIME_SUITE))
    apt.run("install", "--yes", "--no-install-recommends", "--download-only", "-t", RUNTIME_SUITE, *RUNTIME)
    archives = sorted((folder / "apt/cache/archives").glob("*.deb"))
    if not archives:
        raise NotHere("apt has fetched no package")
    for archive in archives:
        _unpack(archive, folder / "runtime")
    for library in (folder / "runtime").rglob("lib*.so.7"):  # the plain names, by which HIP looks for itself
        if library.name.startswith(("libamdhip64", "libhiprtc.")):
            library.with_suffix("").symlink_to(library.name)
    try:
        apt.run("download", *COMPARED)
    except NotHere as reason:  # a suite may have moved on to another version
        sys.stderr.write(f"nothing to compare the stand-in with: {reason}\n")
    for archive in apt.folder.glob("*.deb"):
        name, version, _ = archive.name.split("_")
        kind = "headers" if name.endswith("-dev") else "library"
        _unpack(archive, folder / kind / version.partition(".")[0])
    shutil.rmtree(apt.folder)


class Apt:
    """apt with suites, lists and a status of its own, beside that of the machine."""

    def __init__(self, folder: Path, suites: tuple[str, ...]) -> None:
        """Fetch the lists of suites. Raises NotHere without apt, a Debian mirror, or one of the suites."""
        self.folder = folder
        uri, keyring = mirror()
        for name in ("state/lists/partial", "cache/archives/partial", "etc"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        signed = f" [signed-by={keyring}]" if keyring else ""
        (folder / "sources.list").write_text("".join(f"deb{signed} {uri} {suite} main\n" for suite in suites))
        places = {
            "Dir::State": folder / "state",
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder / "cache",
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": folder / "etc",
            "Dir::Etc::preferencesparts": folder / "etc",
        }
        lines = [f'{name} "{path}";\n' for name, path in places.items()]
        lines += ['Acquire::Languages "none";\n', 'APT::Sandbox::User "";\n', 'Acquire::Retries "2";\n']
        (folder / "apt.conf").write_text("".join(lines))
        self.run("update")

    def run(self, *arguments: str) -> None:
        """Run apt-get, or raise NotHere with its last words."""
        variables = {**os.environ, "APT_CONFIG": str(self.folder / "apt.conf"), "LC_ALL": "C"}
        line = ["apt-get", "-q", *arguments]
        done = subprocess.run(line, env=variables, cwd=self.folder, capture_output=True, text=True)
        # Lists that cannot be fetched are a warning to apt, and not to us.
        missing = re.findall(r"^[EW]: (Failed to fetch .*)$", done.stderr, re.MULTILINE)
        if done.returncode or missing:
            raise NotHere(f"apt-get {arguments[0]}: {missing[-1] if missing else done.stderr.strip()[-300:]}")


def mirror() -> tuple[str, str]:
    """Return where this machine's apt gets Debian from, and the keyring that signs it, or "" for apt's own."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        raise NotHere("AMD's packages are for Linux on x86-64")
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise NotHere("there is no apt here")
    form = "$(REPO_URI)|$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(SIGNED_BY)"
    done = subprocess.run(["apt-get", "indextargets", "--format", form], capture_output=True, text=True)
    for line in done.stdout.splitlines():
        uri, origin, label, component, keyring = line.split("|")
        if (origin, label, component) == ("Debian", "Debian", "main"):
            return uri, keyring if keyring.startswith("/") else ""
    raise NotHere("this machine's apt has no Debian mirror, or no lists yet (apt-get update)")


def _unpack(archive: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["dpkg", "-x", str(archive), str(folder)], capture_output=True, text=True)
    if done.returncode:
        raise NotHere(f"dpkg cannot unpack {archive.name}: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main())
