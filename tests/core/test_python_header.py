"""The hand-made declarations of the C API agree with the real headers, and all C compiles without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_launching import SCALARS, Pair, exchange_type

import podium
from podium import _extension, _generated
from podium._extension import INCLUDE_DIR
from podium._launcher_source import signature_source
from podium.errors import ArgumentCountError, ArgumentTypeError, ArgumentValueError, LaunchError
from podium.testing import FakeArray, FakeDriver

PYTHON_INCLUDE = Path(sysconfig.get_path("include"))
HEADER = INCLUDE_DIR / "podium_python.h"
ROOT = Path(__file__).parents[2]

needs_python_h = pytest.mark.skipif(
    not (PYTHON_INCLUDE / "Python.h").is_file(), reason=f"there is no Python.h in {PYTHON_INCLUDE}"
)
needs_declarations = pytest.mark.skipif(
    not _extension._is_declared(), reason="this interpreter is compiled for with its own headers"
)
MINOR = f"-DPODIUM_PYTHON_MINOR={sys.version_info.minor}"

STRUCTS = {
    # podium's name: Python's, and the members that have other names there
    "struct podium_object": ("PyObject", {"reference_count": "ob_refcnt", "type": "ob_type"}),
    "PyMethodDef": ("PyMethodDef", {}),
    "PyMemberDef": ("PyMemberDef", {}),
    "PyDescrObject": ("PyDescrObject", {}),
    "PyMemberDescrObject": ("PyMemberDescrObject", {}),
    "PyWrapperDescrObject": ("PyWrapperDescrObject", {}),
    "PyVarObject": ("PyVarObject", {}),
    "PyTupleObject": ("PyTupleObject", {}),
    "PyType_Slot": ("PyType_Slot", {}),
    "PyType_Spec": ("PyType_Spec", {}),
    "PyModuleDef_Slot": ("PyModuleDef_Slot", {}),
    "PyModuleDef_Base": ("PyModuleDef_Base", {}),
    "PyModuleDef": ("PyModuleDef", {}),
    "Py_buffer": ("Py_buffer", {}),
}
RENAMED = {"PODIUM_MEMBER_SSIZE": "T_PYSSIZET", "PODIUM_MEMBER_READONLY": "READONLY"}
# Macros that are no numbers; the tests below look at them in other ways.
NO_NUMBERS = {"PyObject_HEAD", "PyModuleDef_HEAD_INIT", "Py_None", "Py_True", "Py_False"}


def cc(folder: Path, source: str, *flags: str) -> str:
    """Run the compiler over a source; return what it printed on its output, and fail with what it complained."""
    (folder / "source.c").write_text(source)
    run = subprocess.run(["cc", "-std=c11", *flags, "source.c"], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def declarations(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What podium_python.h declares for this Python, without comments and macros."""
    text = cc(tmp_path_factory.mktemp("declarations"), '#include "podium_python.h"\n', "-E", MINOR, f"-I{INCLUDE_DIR}")
    own, mine = [], False
    for line in text.splitlines():
        if line.startswith("# "):
            mine = "podium_python.h" in line
        elif mine:
            own.append(line)
    return "\n".join(own)


@pytest.fixture(scope="module")
def constants(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of the numbers that podium_python.h defines in place of Python's headers."""
    flags = ("-E", "-dD", MINOR, f"-I{INCLUDE_DIR}")
    text = cc(tmp_path_factory.mktemp("constants"), '#include "podium_python.h"\n', *flags)
    names, mine = [], False
    for line in text.splitlines():
        if line.startswith("# "):
            mine = "podium_python.h" in line
        elif mine and (match := re.match(r"#define (\w+) .", line)):
            names.append(match[1])
    known = {name for name in names if name in RENAMED or not name.startswith("PODIUM_")} - NO_NUMBERS
    return sorted(known)


def struct_members(declarations: str) -> Iterator[tuple[str, list[str]]]:
    for match in re.finditer(r"(?:typedef struct|(struct podium_object)) \{(.*?)\}\s*(\w*);", declarations, re.DOTALL):
        members = [
            (re.search(r"\(\*(\w+)\)", piece) or re.search(r"(\w+)(\[\d+\])?$", piece.strip()))[1]  # type: ignore[index]
            for piece in match[2].split(";")
            if piece.strip()
        ]
        yield match[1] or match[3], members


def run_values(folder: Path, include: str, expressions: list[str], *flags: str) -> dict[str, int]:
    """Compile and run a program that prints the value of each expression."""
    lines = "".join(f'    printf("%lld\\n", (long long)({each}));\n' for each in expressions)
    source = f"{include}\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{\n{lines}    return 0;\n}}\n"
    cc(folder, source, "-O1", "-w", "-o", "program", *flags)
    printed = subprocess.run([folder / "program"], capture_output=True, text=True, check=True).stdout.split()
    return dict(zip(expressions, map(int, printed)))


@needs_python_h
@needs_declarations
def test_constants_are_those_of_python(tmp_path: Path, constants: list[str]) -> None:
    """Every slot number, flag and code that podium defines by hand has the value of the real headers."""
    assert len(constants) > 20 and "Py_tp_traverse" in constants and "METH_VARARGS" in constants
    samples = [f"PyVectorcall_NARGS({each})" for each in ("(size_t)5", "((size_t)1 << 63) | 5", "(size_t)0")]
    enumerators = ["PyGILState_LOCKED", "PyGILState_UNLOCKED"]
    mine = run_values(
        tmp_path, '#include "podium_python.h"', [*constants, *samples, *enumerators], MINOR, f"-I{INCLUDE_DIR}"
    )
    real = run_values(
        tmp_path,
        "#include <Python.h>\n#include <structmember.h>",
        [*(RENAMED.get(name, name) for name in constants), *samples, *enumerators],
        f"-I{PYTHON_INCLUDE}",
    )
    assert list(mine.values()) == list(real.values()), [
        (name, value, other) for (name, value), other in zip(mine.items(), real.values()) if value != other
    ]


@needs_python_h
@needs_declarations
def test_structures_are_those_of_python(tmp_path: Path, declarations: str) -> None:
    """Every structure that podium declares has the size of Python's own, and each member its offset and size."""
    found = dict(struct_members(declarations))
    assert set(STRUCTS) <= set(found)
    assert sum(map(len, found.values())) > 40
    mine, real = [], []
    for name, (python_name, renamed) in STRUCTS.items():
        mine.append(f"sizeof({name})")
        real.append(f"sizeof({python_name})")
        for member in found[name]:
            other = renamed.get(member, member)
            mine += [f"offsetof({name}, {member})", f"sizeof((({name} *)0)->{member})"]
            real += [f"offsetof({python_name}, {other})", f"sizeof((({python_name} *)0)->{other})"]
    mine_values = run_values(tmp_path, '#include "podium_python.h"', mine, MINOR, f"-I{INCLUDE_DIR}")
    include = "#include <Python.h>\n#include <structmember.h>"
    real_values = run_values(tmp_path, include, real, f"-I{PYTHON_INCLUDE}")
    assert list(mine_values.values()) == list(real_values.values())
    scalars = ["sizeof(Py_ssize_t)", "sizeof(PyGILState_STATE)", "(Py_ssize_t)-1 < 0", "sizeof(vectorcallfunc)"]
    assert run_values(tmp_path, '#include "podium_python.h"', scalars, MINOR, f"-I{INCLUDE_DIR}") == run_values(
        tmp_path, include, scalars, f"-I{PYTHON_INCLUDE}"
    )


@needs_python_h
@needs_declarations
def test_ints_lie_where_python_has_them(tmp_path: Path) -> None:
    """The digits of an int, which launchers read without a call, have Python's places and Python's number of bits."""
    mine = ["offsetof(struct podium_int, size)", "offsetof(struct podium_int, digit)", "30"]
    real = ["offsetof(PyLongObject, ob_digit)", "PyLong_SHIFT"]
    if sys.version_info >= (3, 12):
        real = ["offsetof(PyLongObject, long_value.lv_tag)", "offsetof(PyLongObject, long_value.ob_digit)", real[1]]
    else:
        real = ["offsetof(PyVarObject, ob_size)", *real]
    mine_values = run_values(tmp_path, '#include "podium_python.h"', mine, MINOR, f"-I{INCLUDE_DIR}")
    real_values = run_values(tmp_path, "#include <Python.h>", real, f"-I{PYTHON_INCLUDE}")
    assert list(mine_values.values()) == list(real_values.values())


def prototypes(declarations: str) -> list[str]:
    flat = re.sub(r"\{[^{}]*\}", "{}", re.sub(r"\{[^{}]*\}", "{}", declarations))
    return re.findall(r"^(?!typedef|static|extern|struct|__attribute__)[\w ]+[ *]+\w+\([^{};]*\);$", flat, re.MULTILINE)


@needs_python_h
@needs_declarations
def test_functions_are_those_of_python(tmp_path: Path, declarations: str) -> None:
    """Every function that podium declares can be declared again after Python.h: its type is the same to the letter."""
    found = prototypes(declarations)
    assert len(found) > 25
    # a name in parentheses is not taken for a macro
    again = "\n".join(re.sub(r"(\w+)\(", r"(\1)(", each, count=1) for each in found)
    include = "#define PY_SSIZE_T_CLEAN\n#include <Python.h>\n"
    cc(tmp_path, f"{include}{again}\n", f"-I{PYTHON_INCLUDE}", "-fsyntax-only")
    # a compiler that let everything pass would make this test worthless
    (tmp_path / "source.c").write_text(f"{include}int (PyTuple_Size)(PyObject *);\n")
    command = ["cc", "-std=c11", f"-I{PYTHON_INCLUDE}", "-fsyntax-only", "source.c"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode != 0


@needs_python_h
@needs_declarations
def test_function_types_are_those_of_python(tmp_path: Path, declarations: str) -> None:
    """Every type of a function pointer is Python's own."""
    types = re.findall(r"typedef ([^;{}]*?)\(\*(\w+)\)(\([^;]*\));", declarations)
    assert len(types) > 8
    lines = [f"typedef {result}(*podium_{name}){rest};" for result, name, rest in types]
    lines += [f'_Static_assert(_Generic((podium_{name})0, {name}: 1, default: 0), "{name}");' for _, name, _ in types]
    cc(tmp_path, "#include <Python.h>\n" + "\n".join(lines) + "\n", f"-I{PYTHON_INCLUDE}", "-fsyntax-only")


@needs_python_h
@needs_declarations
def test_singletons_and_types_are_those_of_python(tmp_path: Path, declarations: str) -> None:
    """None, True, False and the types of ints and floats are the objects that Python's macros mean."""
    names = {"Py_None": "_Py_NoneStruct", "Py_True": "_Py_TrueStruct", "Py_False": "_Py_FalseStruct"}
    text = cc(
        tmp_path, "#include <Python.h>\nvoid *probe[] = {" + ", ".join(names) + "};\n", "-E", f"-I{PYTHON_INCLUDE}"
    )
    probe = text[text.rindex("probe[]") :]
    for symbol in names.values():
        assert f"&{symbol}" in probe and symbol in declarations
    for symbol in re.findall(r"extern (?:PyObject \*?)([\w, *]+);", declarations):
        for each in symbol.replace("*", "").split(","):
            assert hasattr(__import__("ctypes").pythonapi, each.strip()), each


@needs_declarations
def test_every_function_is_exported_by_the_interpreter(declarations: str) -> None:
    """LIB-09: what a launcher calls is there at run time: no declared function is a macro or an inline one here."""
    import ctypes

    for prototype in prototypes(declarations):
        name = re.search(r"(\w+)\(", prototype)
        assert name is not None
        assert hasattr(ctypes.pythonapi, name[1]), name[1]


# ---- With the real headers ----


@needs_python_h
@pytest.mark.usefixtures("cold_builds")
def test_launchers_behave_the_same_with_the_real_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """CC-07: compiled against Python.h, as other interpreters need it, a launcher does what the declared one does."""
    monkeypatch.setattr(_extension, "_DECLARED_VERSIONS", ((3, 0), (3, 1)))
    assert "-DPODIUM_USE_PYTHON_H" in _extension._python_flags()
    for name in SCALARS:
        both = Pair(name)
        for value in (0, 1, -1, 200, 2**31, 2**64, 1.5, float("nan"), "x", None, True, 1e300):
            both.same(value)
    both = Pair({"x": "*fp32", "s": "{fp32,i32}", "c": "constexpr", "y": "*kfp32"}, global_scratch_size=0)
    both.same(FakeArray(64), bytes(8), 0, exchange_type()(64))
    assert both.same(FakeArray(64), bytes(8), 0, "x").kind is ArgumentTypeError
    assert both.same(FakeArray(64), bytes(9), 0, None).kind is ArgumentValueError
    assert both.same(1).kind is ArgumentCountError


@needs_python_h
@pytest.mark.usefixtures("cold_builds")
def test_kernels_launch_the_same_with_the_real_headers(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """CC-07: the same for bound launches, keywords, hooks and statuses."""
    monkeypatch.setattr(_extension, "_DECLARED_VERSIONS", ((3, 0), (3, 1)))
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
    kernel = podium.kernel("__global__ void k(float* x, int n) {}")
    launch = kernel[2, 3]
    for _ in range(2):
        launch(FakeArray(64, 1), 1)
        launch(64, n=1, stream=5)
    kernel.run(1, 1, 1, 0, kernel.function, 64, 1)
    fake.next_status = 4
    with pytest.raises(LaunchError):
        launch(64, 1)
    assert len(fake.launches) == 5 and kernel.level == "generated"
    assert len(_generated._builds) == 1


# ---- Warnings ----

TEMPLATES = sorted(
    path
    for folder in (ROOT / "core" / "src", ROOT / "backends", ROOT / "examples")
    for path in folder.rglob("*launch*.c.in")
    if "build" not in path.parts
)
SIGNATURES = {
    "nothing": "",
    "everything": ", ".join([*SCALARS, "*fp32", "*kfp32", "{fp32,i32}", "opaque[128,64]", "constexpr"]),
    "one int": "i32",
    "one pointer": "*void",
}
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes", "-Werror")


def write_launcher(folder: Path) -> tuple[Path, Path]:
    """Write both parts of a launcher that has everything."""
    parameters = podium.Signature.parse(SIGNATURES["everything"]).parameters
    (folder / "launcher.c").write_text(signature_source(parameters, 1))
    (folder / "common.c").write_text(FakeDriver.launcher_cls.template.read_text())
    return folder / "launcher.c", folder / "common.c"


def needed(compiler: str) -> str:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    return compiler


def check(compiler: str, standard: str, folder: Path, *folders: Path) -> None:
    """Compile the sources in a folder with strict warnings, of which there must be none."""
    command = [
        needed(compiler),
        f"-std={standard}",
        *STRICT,
        MINOR,
        *(f"-I{each}" for each in (INCLUDE_DIR, *folders)),
        "-fsyntax-only",
        "-O1",
    ]
    run = subprocess.run([*command, *sorted(folder.glob("*.c"))], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[:4000]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("standard", ["c11", "c17"])
def test_signatures_compile_without_warnings(compiler: str, standard: str, tmp_path: Path) -> None:
    """What is generated of a signature, for all backends, is clean C11 and C17 for gcc and clang with strict warnings."""
    for name, signature in SIGNATURES.items():
        for scratch in (0, 2):
            parameters = podium.Signature.parse(signature).parameters
            path = tmp_path / f"{name.replace(' ', '-')}-{scratch}.c"
            path.write_text(signature_source(parameters, scratch))
    check(compiler, standard, tmp_path)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("standard", ["c11", "c17"])
@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: "/".join(path.parts[-2:]))
def test_templates_compile_without_warnings(compiler: str, standard: str, template: Path, tmp_path: Path) -> None:
    """So is every backend's template, from which comes what its launchers have in common."""
    (tmp_path / "common.c").write_text(template.read_text())
    check(compiler, standard, tmp_path, template.parent, template.parent / "include")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("standard", ["c11", "c17"])
def test_the_headers_are_pedantic(compiler: str, standard: str, tmp_path: Path) -> None:
    """With -Wpedantic only one thing remains: a pointer to a function in a slot of Python's type `void *`."""
    both = write_launcher(tmp_path)
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", MINOR, f"-I{INCLUDE_DIR}", "-fsyntax-only"]
    for path in (*both, INCLUDE_DIR / "podium_dlpack.c"):
        run = subprocess.run([needed(compiler), *flags, str(path)], capture_output=True, text=True)
        assert run.returncode == 0
        warnings = re.findall(r"warning: (.*)", run.stderr)
        others = [each for each in warnings if "function pointer" not in each]
        assert others == []


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_dlpack_exporter_compiles_without_warnings(compiler: str, tmp_path: Path) -> None:
    """The small module that exports arrays is as clean as the launchers."""
    command = [
        needed(compiler),
        "-std=c11",
        *STRICT,
        MINOR,
        f"-I{INCLUDE_DIR}",
        "-fsyntax-only",
        str(INCLUDE_DIR / "podium_dlpack.c"),
    ]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[:4000]


@needs_python_h
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_launchers_compile_without_warnings_of_ours_with_the_real_headers(compiler: str, tmp_path: Path) -> None:
    """With Python.h, whose own code is left out of it, the launchers are as clean."""
    both = write_launcher(tmp_path)
    command = [
        needed(compiler),
        "-std=c11",
        *STRICT,
        "-DPODIUM_USE_PYTHON_H",
        f"-I{INCLUDE_DIR}",
        "-isystem",
        str(PYTHON_INCLUDE),
    ]
    run = subprocess.run([*command, "-fsyntax-only", *both], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[:4000]


def test_there_are_templates() -> None:
    """The tests above looked at the launchers of this repository, and not at none."""
    assert len(TEMPLATES) >= 2
