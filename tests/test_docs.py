"""The documentation: its snippets run, its links lead somewhere, and it names everything that users can.

Before a fence may stand, as a comment on a line of its own: ``run`` (a shell snippet that is executed), ``file: NAME``
(the text is written to that file for the snippets of the page), ``from: FILE`` (an excerpt of a file of the repository),
``gpu`` (a Python snippet that runs where there is an NVIDIA GPU, and is skipped elsewhere; ``gpu: torch`` where torch is, too,
and ``two gpus: torch`` where there are two) or ``not run: REASON`` (one that cannot run at all). A ``text`` fence that follows a Python one is what that one prints; ``...`` in it stands for anything.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_page import ROOT, Page, all_pages

import podium.hookspecs
from podium import _settings
from podium._feature_methods import FeatureMethods
from podium.backend import Driver

PAGES = all_pages()
FINAL = ("is_active", "failure")  # what Driver makes for its subclasses
PUBLIC_MODULES = ("podium", "podium.backend", "podium.errors", "podium.parts", "podium.testing", "podium.triton")

RUNNER = """
import contextlib, doctest, io, json, sys
import podium._plugins
page, blocks, backends = json.loads(sys.stdin.read())
installed = podium._plugins.installed_entry_points  # most pages show a machine with the CPU backend and no other
podium._plugins.installed_entry_points = lambda group: [each for each in installed(group) if each.name in backends]
names = {"__name__": "__main__"}
for line, code, expected in blocks:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile("\\n" * (line - 1) + code, page, "exec"), names)
    if expected is not None and not doctest.OutputChecker().check_output(expected, out.getvalue(), doctest.ELLIPSIS):
        sys.exit(f"{page}:{line} prints\\n{out.getvalue()}instead of\\n{expected}")
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all pages, so that what two of them compile is compiled once."""
    return tmp_path_factory.mktemp("cache")


def environment(cache: Path, backend: str = "cpu") -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PODIUM_")}
    kept["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    return {**kept, "PODIUM_BACKEND": backend, "PODIUM_CACHE_DIR": str(cache), "COLUMNS": "120"}


def page(name: str) -> Page:
    return next(each for each in PAGES if each.name == name)


def write_files(of: Page, folder: Path) -> None:
    for fence in of.fences:
        if fence.mark.startswith("file: "):
            path = folder / fence.mark.removeprefix("file: ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fence.text, encoding="utf-8")


def snippets(of: Page, *places: str) -> list[tuple[int, str, str | None]]:
    """Return the Python snippets of a page that are marked for one of the places, with their lines and what they print.

    A place is "gpu" or "two gpus"; without one, the snippets are those that run everywhere.
    """
    blocks: list[tuple[int, str, str | None]] = []
    for index, fence in enumerate(of.fences):
        if fence.language != "python" or fence.mark.partition(":")[0] not in (places or ("",)):
            continue
        after = of.fences[index + 1] if index + 1 < len(of.fences) else None
        expected = after.text if after is not None and after.language == "text" and after.follows else None
        blocks.append((fence.line, fence.text, expected))
    return blocks


@pytest.mark.parametrize("name", [each.name for each in PAGES if snippets(each)])
def test_python_snippets_run(name: str, tmp_path: Path, cache: Path) -> None:
    """The Python snippets of a page run in order, as one program, and print what the page says."""
    run_page(name, tmp_path, environment(cache), snippets(page(name)), ["cpu"])


def libraries(of: Page) -> set[str]:
    """Return the libraries that a page's snippets for GPUs need."""
    marks = [fence.mark.partition(": ") for fence in of.fences]
    return {name for place, _, names in marks if place in ("gpu", "two gpus") for name in names.split(", ") if name}


@pytest.mark.gpu
@pytest.mark.parametrize("name", [each.name for each in PAGES if snippets(each, "gpu")])
def test_snippets_run_on_a_gpu(name: str, tmp_path: Path, cache: Path, gpu: Driver) -> None:
    """The Python snippets that need an NVIDIA GPU run in order, as one program, and print what the page says."""
    for library in sorted(libraries(page(name))):
        pytest.importorskip(library)
    run_page(name, tmp_path, environment(cache, "nvidia"), snippets(page(name), "gpu"), ["cpu", "nvidia"])


@pytest.mark.gpu
@pytest.mark.parametrize("name", [each.name for each in PAGES if snippets(each, "two gpus")])
def test_snippets_run_on_two_gpus(name: str, tmp_path: Path, cache: Path, gpu: Driver) -> None:
    """Those that need two of them run after the others of their page."""
    for library in sorted(libraries(page(name))):
        pytest.importorskip(library)
    if len(gpu.devices()) < 2:
        pytest.skip("there is one GPU")
    run_page(name, tmp_path, environment(cache, "nvidia"), snippets(page(name), "gpu", "two gpus"), ["cpu", "nvidia"])


def run_page(
    name: str, folder: Path, variables: dict[str, str], blocks: list[tuple[int, str, str | None]], backends: list[str]
) -> None:
    write_files(page(name), folder)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUNNER],
        input=json.dumps([name, blocks, backends]),
        capture_output=True,
        text=True,
        cwd=folder,
        env=variables,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [each.name for each in PAGES if any(fence.mark == "run" for fence in each.fences)])
def test_shell_snippets_run(name: str, tmp_path: Path, cache: Path) -> None:
    """The shell snippets that are marked so run in order, in one folder, without an error."""
    write_files(page(name), tmp_path)
    for fence in page(name).fences:
        if fence.mark != "run":
            continue
        assert fence.language == "sh"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", fence.text],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(cache),
            timeout=600,
        )
        assert done.returncode == 0, f"{name}:{fence.line}\n{done.stdout}{done.stderr}"


def test_fences_are_marked_in_known_ways() -> None:
    """A mistyped mark would silently switch a snippet off."""
    known = re.compile(
        r"run|(two )?gpus?(: [\w, ]+)?|(file|from): [\w./-]+|not run: .{10,}|ci: (demo|test)|layers|end of layers|released versions"
        r"|walk|shows|(try|in): [\w./-]+"
    )
    for each in PAGES:
        marks = [fence.mark for fence in each.fences if fence.mark]
        assert [mark for mark in marks if not known.fullmatch(mark)] == [], each.name
        loose = [mark for mark in re.findall(r"^<!-- (.*) -->$", each.prose, re.MULTILINE) if not known.fullmatch(mark)]
        assert loose == [], each.name


def test_excerpts_are_in_their_files() -> None:
    """A fence that says from which file it is has the very lines of that file."""
    excerpts = [(each, fence) for each in PAGES for fence in each.fences if fence.mark.startswith("from: ")]
    assert excerpts
    for each, fence in excerpts:
        text = (ROOT / fence.mark.removeprefix("from: ")).read_text(encoding="utf-8")
        assert fence.text in text, f"{each.name}:{fence.line}"


@pytest.mark.parametrize("name", [each.name for each in PAGES])
def test_links_lead_somewhere(name: str) -> None:
    """A link to a file of this repository finds the file, and the heading if it names one."""
    for target in page(name).links:
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        path = (page(name).path.parent / file).resolve() if file else page(name).path
        assert path.exists(), f"{name}: {target}"
        if anchor:
            assert anchor in Page(path).anchors, f"{name}: {target}"


def test_every_page_is_linked_from_the_index() -> None:
    """A reader who starts at docs/index.md or README.md finds every page."""
    start = [ROOT / "README.md", ROOT / "docs" / "index.md"]
    found, pending = set(start), list(start)
    while pending:
        current = Page(pending.pop())
        for target in current.links:
            path = (current.path.parent / target.partition("#")[0]).resolve()
            if path.suffix == ".md" and path.is_file() and path not in found:
                found.add(path)
                pending.append(path)
    fragments = ROOT / "docs" / "changelog"
    missing = [each.name for each in PAGES if each.path not in found and each.path.parent != fragments]
    assert missing == []


@pytest.mark.parametrize("module_name", [*PUBLIC_MODULES, "podium_nvidia", "podium_amd"])
def test_every_public_name_is_in_the_reference(module_name: str) -> None:
    """docs/reference.md names everything that the public modules export."""
    text = page("docs/reference.md").prose
    module = importlib.import_module(module_name)
    section = text.partition(f"\n## `{module_name}`")[2].partition("\n## ")[0]
    documented = set(re.findall(r"`(?:podium\.)?(\w+)", section))
    assert sorted(set(module.__all__) - {"__version__"} - documented) == []


def test_members_of_public_classes_are_in_the_reference() -> None:
    """docs/reference.md names the methods and attributes that users call on podium's objects."""
    import podium

    text = page("docs/reference.md").prose
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", text))))
    missing = [
        f"{kind.__name__}.{member}"
        for kind in (podium.Kernel, podium.Module, podium.Array, podium.ObjectCode, podium.LaunchConfig, podium.Program,
                     podium.Signature, podium.Target, podium.Device, podium.Options, type(podium.driver))
        for member in {*vars(kind), *getattr(kind, "__dataclass_fields__", ()), *getattr(kind, "__annotations__", ())}
        if not member.startswith("_") and member not in words and member != "entry_name"
    ]  # fmt: skip
    assert sorted(missing) == []


def test_the_reference_names_nothing_that_is_not_there() -> None:
    """Whatever a page calls podium.NAME exists."""
    import podium

    for each in PAGES:
        code = " ".join(re.findall(r"`([^`\n]+)`", each.prose)) + " ".join(fence.text for fence in each.fences)
        for path in re.findall(r"\bpodium((?:\.[a-zA-Z]\w*)+)", code):
            value: object = podium
            for part in path.strip(".").split("."):
                if inspect.ismodule(value) and not hasattr(value, part):
                    value = importlib.import_module(f"{value.__name__}.{part}")
                elif isinstance(value, type(podium.driver)) and part == "active":
                    break
                else:
                    value = getattr(value, part)


def test_every_variable_is_documented() -> None:
    """docs/reference.md has each environment variable, and no page names one that is not there; backends have their own."""
    text = page("docs/reference.md").prose
    rows = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert set(_settings.VARIABLES) <= rows
    shipped = [path for folder in ("core/src", "backends", "examples") for path in (ROOT / folder).rglob("*")]
    in_code = " ".join(
        path.read_text(encoding="utf-8") for path in shipped if path.suffix in (".h", ".c", ".in", ".cpp", ".py")
    )
    for each in PAGES:
        for name in re.findall(r"\bPODIUM_[A-Z_]+\b", each.text):
            known = name in _settings.VARIABLES or name in in_code or name == "PODIUM_API"
            assert known, f"{each.name} names {name}, which does not exist"


def test_every_error_has_a_remedy() -> None:
    """docs/troubleshooting.md has a heading for each error of podium.errors."""
    errors = importlib.import_module("podium.errors")
    text = page("docs/troubleshooting.md").prose
    headings = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^#+ .*$", text, re.MULTILINE))))
    named = {name for name in errors.__all__ if isinstance(getattr(errors, name), type)}
    plain = {"Diagnostic"}
    assert sorted(named - headings - plain) == []
    assert sorted(headings & {name for name in headings if name.endswith(("Error", "Warning"))} - named) == []


def test_the_error_tree_in_the_docstring_is_the_tree() -> None:
    """The tree drawn in podium.errors has each class under the class that it derives from."""
    errors = importlib.import_module("podium.errors")
    stack: list[tuple[int, str]] = []
    drawn: dict[str, str | None] = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"^    ([│├└─ ]*)(\w+(?:Error))\b", line):
            depth, name = len(match[1]), match[2]
            while stack and stack[-1][0] >= depth:
                stack.pop()
            drawn[name] = stack[-1][1] if stack else None
            stack.append((depth, name))
    kinds = {
        name: getattr(errors, name)
        for name in errors.__all__
        if isinstance(getattr(errors, name), type) and issubclass(getattr(errors, name), errors.PodiumError)
    }
    assert set(drawn) == set(kinds)
    for name, parent in drawn.items():
        assert parent is None or kinds[name].__bases__[0] is kinds[parent], name


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table behind a heading of docs/protocol.md, less its head."""
    section = page("docs/protocol.md").prose.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in cells] for cells in table[1:]]


def test_the_protocol_page_has_the_plug_in() -> None:
    """docs/protocol.md has each hook of a plug-in with its arguments, and each attribute of a driver's class."""
    named = [cells[0].strip("`") for cells in rows("The plug-in")]
    hooks = {name: each for name, each in vars(podium.hookspecs).items() if name.startswith("podium_")}
    for name, function in hooks.items():
        assert f"{name}({', '.join(inspect.signature(function).parameters)})" in named
    assert {name for name in named if name.endswith(")")} == {f"{name}()" for name in hooks}
    attributes = {cells[0].strip("`"): cells[2] for cells in rows("The driver's class")}
    assert set(attributes) == {name for name in Driver.__annotations__ if not name.startswith("_")}
    for name, otherwise in attributes.items():
        assert (otherwise == "required") is not hasattr(Driver, name), name


def test_the_protocol_page_has_each_method_of_a_driver() -> None:
    """docs/protocol.md has each method with its parameters, under whether it is required, and the errors of its docstring."""
    required, optional = rows("Methods that each driver has"), rows("Methods with a default")
    features = [[*cells[:2], "", cells[3], cells[2]] for cells in rows("Methods of features")]
    found = {}
    for kind, table in (("required", required), ("optional", optional), ("feature", features)):
        for cells in table:
            name, _, parameters = cells[0].strip("`)").partition("(")
            found[name] = (kind, [each.strip() for each in parameters.split(",") if each.strip()], cells)
    methods = {
        name: member
        for owner in (Driver, FeatureMethods)
        for name, member in vars(owner).items()
        if callable(getattr(member, "__func__", member)) and not name.startswith("_")
        if name not in FINAL
    }
    assert set(found) == set(methods)
    for name, member in methods.items():
        function = getattr(member, "__func__", member)
        kind, parameters, cells = found[name]
        expected = "feature" if name in vars(FeatureMethods) else "optional"
        assert kind == ("required" if name in Driver.__abstractmethods__ else expected), name
        assert parameters == list(inspect.signature(function).parameters)[1:], name
        raised = " ".join(re.findall(r"\bRaises? [^.]*\.", " ".join(function.__doc__.split())))
        assert set(re.findall(r"`(\w+Error)`", cells[3])) == set(re.findall(r"`(\w+Error)`", raised)), name
        if kind == "feature":
            assert f"({cells[4].strip('`')})" in function.__doc__, name
    text = page("docs/protocol.md").prose
    assert all(f"`{name}(" in text for name in FINAL)


def test_launch_hooks_are_documented() -> None:
    """The page on hooks has each chain and each field of the events."""
    from podium import _hooks

    text = page("docs/how-to/hooks-and-traces.md").prose
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", text))))
    chains = {name for name, value in vars(_hooks.hooks).items() if isinstance(value, _hooks.Chain)}
    events = (_hooks.LaunchEvent, _hooks.CompileEvent, _hooks.LoadEvent, _hooks.ArgumentInfo)
    fields = {field for event in events for field in event.__dataclass_fields__}
    assert sorted((chains | fields) - words) == []


def test_docstring_examples_run(tmp_path: Path, cache: Path) -> None:
    """The examples in the docstrings of the core give what they say."""
    code = (
        "import doctest, importlib, pkgutil, sys, podium\n"
        "names = ['podium', *(each.name for each in pkgutil.iter_modules(podium.__path__, 'podium.'))]\n"
        "failed = [name for name in names if name != 'podium.__main__'\n"
        "          and doctest.testmod(importlib.import_module(name)).failed]\n"
        "sys.exit(bool(failed))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment(cache), timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_readme_has_the_two_commands() -> None:
    """README.md has one command that runs the demo and one that runs the tests; .ci/run takes them from there."""
    readme = page("README.md")
    commands = {fence.mark: fence.text for fence in readme.fences if fence.mark.startswith("ci: ")}
    assert set(commands) == {"ci: demo", "ci: test"}
    assert commands["ci: demo"].rstrip().endswith("podium demo")
    assert commands["ci: test"].rstrip().endswith("pytest")
    assert len(readme.text.splitlines()) <= 90


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """List the long options and the actions of a command, those of its actions included."""
    found: set[str] = set()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                found |= {f"{parser.prog} {name}"} | options_of(each)
        else:
            found |= {each for each in action.option_strings if each.startswith("--")}
    return found - {"--help"}


def test_every_command_and_option_is_documented() -> None:
    """docs/reference.md has each command of the command line with its options, and names no other."""
    from podium import _cli

    section = page("docs/reference.md").prose.partition("\n## Commands")[2]
    rows = {
        name: row
        for row in section.splitlines()
        for name in re.findall(r"`podium ([\w-]+)", row)
        if row.startswith("| `")
    }
    assert set(rows) == set(_cli._COMMANDS)
    for name, row in rows.items():
        parser = argparse.ArgumentParser(prog=f"podium {name}")
        importlib.import_module(f"podium._cli.{name.replace('-', '_')}").add_arguments(parser)
        expected = options_of(parser) - {"--traceback"}
        documented = set(re.findall(r"`(--[\w-]+)`", row)) | set(re.findall(rf"`(podium {name} \w+)`", row))
        assert documented - {f"podium {name} FILE", f"podium {name} NAME"} == expected, name


def test_the_figures_of_the_readme_are_those_of_the_performance_page() -> None:
    """What a launch takes stands in both, rounded in the one; who measures anew changes both."""
    table = page("docs/performance.md").text.partition("\n## Launches on a GPU\n")[2]
    medians = dict(re.findall(r"(?m)^\| (.+?) \| ([\d.]+) \|", table))
    ways = ("podium `kernel[grid, block](...)`", "C loop over cuLaunchKernel", "CuPy ", "Triton ")
    figures = [next(float(median) for way, median in medians.items() if way.startswith(name)) for name in ways]
    told = re.findall(
        r"(?<![\d.-])\d+\.\d(?![\d.])", page("README.md").text.partition("**Little on top")[2].partition("\n- ")[0]
    )
    assert told == [f"{figure:.1f}" for figure in figures]
