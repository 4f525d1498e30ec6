"""The structure of the code: layers, names, sizes, and what an import costs; the layers are in docs/architecture.md."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "core" / "src"
BACKENDS = sorted((ROOT / "backends").glob("*/src"))
SOURCES = [CORE, *BACKENDS]
PUBLIC_MODULES = ("podium", "podium.backend", "podium.errors", "podium.parts", "podium.testing", "podium.triton")
VENDOR_PACKAGES = {"cuda", "hip", "torch", "cupy", "triton", "numpy", "ml_dtypes", "jax", "tensorflow"}
HEAVY = {
    "pluggy",
    "rich",
    "tree_sitter",
    "tree_sitter_cuda",
    "importlib.metadata",
    "subprocess",
    "ctypes",
    "platformdirs",
    "numpy",
    "torch",
}


@dataclass(frozen=True)
class Import:
    """An import in a module: what, where, and whether it happens when the module is imported."""

    module: str
    line: int
    when: str  # "import", "call" (inside a function) or "typing" (under TYPE_CHECKING)


def module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules_of(source: Path) -> dict[str, Path]:
    return {module_name(path, source): path for path in sorted(source.rglob("*.py"))}


CORE_MODULES = modules_of(CORE)
ALL_MODULES = {name: path for source in SOURCES for name, path in modules_of(source).items()}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports_of(path: Path) -> list[Import]:
    """List the imports of a module; ``from podium import _state`` counts as an import of podium._state."""

    def visit(node: ast.AST, when: str) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, child.lineno, when) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                for alias in child.names:
                    full = f"{child.module}.{alias.name}"
                    yield Import(full if full in ALL_MODULES else child.module or "", child.lineno, when)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                yield from visit(child, "typing")
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                yield from visit(child, "call" if when == "import" else when)
            else:
                yield from visit(child, when)

    return list(visit(tree_of(path), "import"))


def is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def documented_layers() -> dict[str, int]:
    """Read the table of layers in docs/architecture.md: module -> number of its layer, 1 at the bottom."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("<!-- layers -->")[2].partition("<!-- end of layers -->")[0]
    layers: dict[str, int] = {}
    for row in table.splitlines():
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
        if len(cells) == 3 and cells[0].isdigit():
            for name in re.findall(r"`([\w.]+)`", cells[2]):
                module = "podium" if name == "podium" else f"podium.{name}"
                assert module not in layers, f"docs/architecture.md has {module} in two layers"
                layers[module] = int(cells[0])
    return layers


# A module of a lower layer that needs one of a higher layer, at the time of a call and never at import.
UPWARD_CALLS = {
    ("podium._build", "podium._cache"),
    ("podium._library_folder", "podium._cache"),
    ("podium._launcher", "podium._active"),
}


def test_every_module_is_in_one_documented_layer() -> None:
    """The table of layers names exactly the modules that there are."""
    layers = documented_layers()
    packages = {name for name, path in CORE_MODULES.items() if path.name == "__init__.py"}
    covered = {
        name: next((package for package in packages & set(layers) - {"podium"} if is_in(name, package)), name)
        for name in CORE_MODULES
    }
    assert sorted(set(covered.values())) == sorted(layers)


def test_imports_go_down_the_layers() -> None:
    """A module imports only modules of its own layer or of lower ones, at import and in calls."""
    layers = documented_layers()

    def layer(module: str) -> int:
        while module not in layers:
            module = module.rpartition(".")[0]
        return layers[module]

    wrong = [
        f"{name}:{each.line} (layer {layer(name)}) imports {each.module} (layer {layer(each.module)})"
        for name, path in CORE_MODULES.items()
        for each in imports_of(path)
        if each.module in CORE_MODULES and each.when != "typing" and layer(each.module) > layer(name)
        if not (each.when == "call" and (name, each.module) in UPWARD_CALLS)
    ]
    assert wrong == []


def test_no_module_imports_itself_through_others() -> None:
    """Imports at module level have no cycle, so any module can be imported first."""
    graph = {
        name: {each.module for each in imports_of(path) if each.when == "import" and each.module in CORE_MODULES}
        for name, path in CORE_MODULES.items()
    }
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join([*above[above.index(name) :], name])
        if name not in done:
            for other in sorted(graph[name] - {"podium"}):
                visit(other, (*above, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_core_imports_no_backend_and_no_array_library() -> None:
    """The core knows no backend; array libraries are imported inside the functions that need them, if at all."""
    backends = {path.name for source in BACKENDS for path in source.iterdir()}
    for name, path in CORE_MODULES.items():
        for each in imports_of(path):
            top = each.module.partition(".")[0]
            assert top not in backends, f"{name}:{each.line} imports {each.module}"
            if each.when == "import" and not is_in(name, "podium.testing"):
                assert top not in VENDOR_PACKAGES, f"{name}:{each.line} imports {each.module} at module level"
            assert top in ("numpy", "ml_dtypes") or top not in VENDOR_PACKAGES, f"{name}:{each.line}: {each.module}"


def test_pluggy_stays_at_the_edge() -> None:
    """Only the module of the hooks and the loader of plug-ins know pluggy: no hook is called through it in a launch."""
    users = {name for name, path in CORE_MODULES.items() for each in imports_of(path) if is_in(each.module, "pluggy")}
    assert users == {"podium.hookspecs", "podium._plugin_loading"}


def test_nothing_imports_the_command_line_or_the_test_kit() -> None:
    """The command line and podium.testing are used by people and tests, not by podium; what measures, by the former."""
    for name, path in ALL_MODULES.items():
        for each in imports_of(path):
            for end in ("podium._cli", "podium._bench", "podium.testing"):
                allowed = is_in(name, end) or (name, end) == ("podium.__main__", "podium._cli")
                allowed |= end == "podium._bench" and is_in(name, "podium._cli")
                assert allowed or not is_in(each.module, end), f"{name}:{each.line} imports {each.module}"


def test_backends_use_the_public_protocol_only() -> None:
    """A backend imports public modules of podium, as a third party's would, and no other backend."""
    for source in BACKENDS:
        own = {path.name for path in source.iterdir()}
        others = {path.name for other in BACKENDS if other != source for path in other.iterdir()}
        for name, path in modules_of(source).items():
            for each in imports_of(path):
                top = each.module.partition(".")[0]
                assert top in own or top not in others, f"{name}:{each.line} imports {each.module}"
                allowed = set(PUBLIC_MODULES) - {"podium.testing"}
                assert top != "podium" or each.module in allowed, f"{name}:{each.line} imports {each.module}"


def test_plug_in_modules_import_nothing_but_the_hook_marker() -> None:
    """PRF-05: the module that an entry point names brings nothing in: it is imported for backends that are not used."""
    plugins = [path for source in BACKENDS for path in source.glob("*/plugin.py")]
    assert len(plugins) == len(BACKENDS)
    for path in plugins:
        top_level = {each.module for each in imports_of(path) if each.when == "import"}
        assert top_level <= {"__future__", "typing", "podium.backend", "podium.hookspecs"}, path


def exported_by(tree: ast.Module) -> list[ast.expr]:
    """Return what is assigned to ``__all__`` at module level."""
    found: list[ast.expr] = []
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            assert isinstance(node, (ast.Assign, ast.AnnAssign))
            assert node.value is not None
            found.append(node.value)
    return found


def test_modules_say_what_they_export() -> None:
    """Each module has ``__all__``, with names that it has, each once."""
    for name, path in ALL_MODULES.items():
        if path.name in ("_version.py", "__main__.py"):
            continue
        lists = exported_by(tree_of(path))
        assert len(lists) == 1, f"{name} has no __all__"
        exported = ast.literal_eval(lists[0])
        assert len(set(exported)) == len(exported), f"{name} exports a name twice"
        module = importlib.import_module(name)
        missing = [each for each in exported if not hasattr(module, each)]
        assert missing == [], f"{name} exports what it does not have"


def test_public_names_have_one_home() -> None:
    """A name that two public modules export is one object."""
    homes: dict[str, object] = {}
    for module_name in PUBLIC_MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            assert homes.setdefault(name, getattr(module, name)) is getattr(module, name), name


LATE = [
    name for name, path in ALL_MODULES.items() if re.search(r"late_names\(\s*__name__,\s*\{\s", path.read_text("utf-8"))
]


@pytest.mark.parametrize("module_name", LATE)
def test_names_that_are_imported_late_are_known_to_type_checkers(module_name: str) -> None:
    """What a module says of its late names to type checkers is what it imports, and all that it exports is there."""
    (block,) = (
        node
        for node in tree_of(ALL_MODULES[module_name]).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    typed = {}
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom) and not any(alias.asname for alias in statement.names)
        typed |= {alias.name: statement.module for alias in statement.names}
    (table,) = (ast.literal_eval(node) for node in ast.walk(ast.Module(block.orelse, [])) if isinstance(node, ast.Dict))
    assert {name: home for home, names in table.items() for name in names.split()} == typed
    module = importlib.import_module(module_name)
    assert dir(module) == sorted(module.__all__)
    assert set(typed) <= set(module.__all__)
    with pytest.raises(AttributeError, match=f"module '{module_name}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_late_names_are_the_only_way_to_import_late() -> None:
    """No module has a `__getattr__` of its own."""
    own = [
        name
        for name, path in ALL_MODULES.items()
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef) and node.name in ("__getattr__", "__dir__")
    ]
    assert own == []


@pytest.mark.parametrize("module_name", PUBLIC_MODULES)
def test_public_names_have_docstrings(module_name: str) -> None:
    """Every public class and function says what it is, and so does every public method and property."""
    module = importlib.import_module(module_name)
    silent = []
    for name in module.__all__:
        value = getattr(module, name)
        if not callable(value) or not str(getattr(value, "__module__", "")).startswith("podium"):
            continue
        if not (value.__doc__ or "").strip():
            silent.append(name)
        # The members of a protocol are described by its own docstring; a driver's by those of Driver.
        if not isinstance(value, type) or "_is_protocol" in vars(value) or value.__name__ == "FakeDriver":
            continue
        for key, member in vars(value).items():
            described = callable(member) or isinstance(member, (property, classmethod, staticmethod))
            if not key.startswith("_") and described and not (getattr(member, "__doc__", None) or "").strip():
                silent.append(f"{name}.{key}")
    assert silent == []


def test_files_stay_small() -> None:
    """No shipped file of Python, C or C++ has more than 400 lines."""
    suffixes = {".py", ".c", ".h", ".in", ".cu", ".cpp", ".hpp"}
    long = {
        str(path.relative_to(ROOT)): lines
        for source in SOURCES
        for path in source.rglob("*")
        if path.suffix in suffixes
        for lines in [len(path.read_text(encoding="utf-8").splitlines())]
        if lines > 400
    }
    assert long == {}


def test_modules_are_named_for_what_they_are() -> None:
    """No module is a drawer for odds and ends."""
    vague = re.compile(r"(^|_)(utils?|helpers?|misc|common|managers?|stuff)($|_)")
    assert [name for name in ALL_MODULES if vague.search(name.rpartition(".")[2])] == []


def test_one_version_for_all_distributions() -> None:
    """All distributions have one version, and a backend asks for the core of its own series."""
    versions = {
        path: re.findall(r'^__version__ = "(\d+\.\d+\.\d+)"$', path.read_text(encoding="utf-8"), re.MULTILINE)
        for source in SOURCES
        for path in source.glob("*/_version.py")
    }
    assert len(versions) == len(SOURCES)
    assert len({tuple(found) for found in versions.values()}) == 1, versions
    (version,) = next(iter(versions.values()))
    series = ".".join(version.split(".")[:2])
    for source in BACKENDS:
        text = (source.parent / "pyproject.toml").read_text(encoding="utf-8")
        assert f'"podium~={series}.0"' in text, source


def test_distributions_are_typed_and_licensed() -> None:
    """Packages are real ones, with py.typed; distributions have licence, readme and the same range of Pythons."""
    pythons = set()
    for source in SOURCES:
        for package in source.iterdir():
            if package.is_dir() and not package.name.endswith((".egg-info", "__pycache__")):
                assert (package / "py.typed").is_file(), package
                assert (package / "__init__.py").is_file(), package
        assert (source.parent / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
        assert (source.parent / "README.md").stat().st_size > 200, source
        text = (source.parent / "pyproject.toml").read_text(encoding="utf-8")
        pythons |= set(re.findall(r'^requires-python = "(.*)"$', text, re.MULTILINE))
    assert pythons == {">=3.10"}


def test_only_plug_in_loading_catches_everything() -> None:
    """Errors are caught by type; code of plug-ins is the one exception, and what is raised again is not caught.

    The test kit hands what it catches in a thread to the test.
    """
    allowed = {"podium._plugin_loading", "podium._entry_points"}
    allowed |= {name for name in ALL_MODULES if is_in(name, "podium.testing")}
    broad = []
    for name, path in ALL_MODULES.items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and re.search(r"suppress\(.*\b(Base)?Exception\b", ast.unparse(node)):
                broad.append(f"{name}:{node.lineno}")
            if not isinstance(node, ast.ExceptHandler):
                continue
            caught = "" if node.type is None else ast.unparse(node.type)
            raises_again = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in node.body)
            if re.search(r"\b(Base)?Exception\b", caught or "Exception") and not raises_again and name not in allowed:
                broad.append(f"{name}:{node.lineno}")
    assert broad == []


def test_shipped_code_has_no_assertions_and_no_loose_ends() -> None:
    """Mistakes of users are errors of podium, not assertions, and nothing is left to be done later."""
    for name, path in ALL_MODULES.items():
        if is_in(name, "podium.testing"):
            continue
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree_of(path))), name
    for source in SOURCES:
        for path in source.rglob("*"):
            if path.suffix in (".py", ".c", ".h", ".in", ".cu"):
                loose = re.search(r"\b(TODO|FIXME|XXX|HACK)\b", path.read_text(encoding="utf-8"))
                assert loose is None, f"{path}: {loose}"


def run_python(code: str) -> str:
    """Run code in a fresh interpreter that has core/src and nothing else that is installed."""
    prelude = f"import sys; sys.path.insert(0, {str(CORE)!r})\n"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", prelude + code], capture_output=True, text=True, check=True, timeout=120
    ).stdout


def test_import_brings_in_nothing_heavy() -> None:
    """PRF-03: importing podium imports no plug-in machinery, parser, ctypes or array library, and needs none."""
    new = set(
        json.loads(
            run_python("""
import json
before = set(sys.modules)
import podium
print(json.dumps(sorted(set(sys.modules) - before)))
""")
        )
    )
    assert "podium" in new
    assert {name for name in new if any(is_in(name, heavy) for heavy in HEAVY)} == set()


def test_import_starts_no_process() -> None:
    """PRF-03, PRF-06: importing podium, and declaring a kernel, starts no process and opens no connection."""
    assert (
        run_python("""
events = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty",
          "socket.connect")
sys.addaudithook(lambda event, args: print(event, args) if event in events else None)
import podium, podium.errors
podium.driver, podium.use, podium.Target
podium.kernel("__global__ void nothing() {}")
""")
        == ""
    )


def test_the_check_for_processes_can_fail() -> None:
    """The audit events that the test above looks for do come."""
    assert "subprocess.Popen" in run_python("""
sys.addaudithook(lambda event, args: print(event) if event == "subprocess.Popen" else None)
import subprocess
subprocess.run([sys.executable, "-c", ""])
""")
