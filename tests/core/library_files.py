"""What the tests of libraries share: C to compile, and interpreters to run."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

from podium._library import SharedLibrary

COMPILER = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler (gcc, clang or cc) to make libraries with")

LIBRARY = """
int answer = 42;
int get_answer(void) { return answer; }
"""

EXTENSION = """
#include <Python.h>
static PyObject *get(PyObject *self, PyObject *unused) { return PyLong_FromLong(VALUE); }
static PyMethodDef methods[] = {{"get", get, METH_NOARGS, NULL}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "sample", NULL, SIZE, methods};
PyMODINIT_FUNC PyInit_sample(void) { return INIT; }
"""
ONE_PHASE = {"SIZE": "-1", "INIT": "PyModule_Create(&module)"}
TWO_PHASE = {"SIZE": "0", "INIT": "PyModuleDef_Init(&module)"}


class Build:
    """Compile C to the bytes of a shared library, once for each source."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.built: dict[tuple[str, ...], bytes] = {}

    def __call__(self, source: str, **macros: str) -> bytes:
        arguments = [f"-D{name}={value}" for name, value in macros.items()]
        key = (source, *arguments)
        if key not in self.built:
            (self.folder / "source.c").write_text(source)
            include = f"-I{sysconfig.get_paths()['include']}"
            command = [str(COMPILER), "-shared", "-fPIC", "-w", include, *arguments, "source.c", "-o", "out.so"]
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
            if "Python.h" in done.stderr:
                pytest.skip("the interpreter's headers (Python.h) are not installed")
            assert done.returncode == 0, done.stderr
            self.built[key] = (self.folder / "out.so").read_bytes()
        return self.built[key]


def call(library: SharedLibrary) -> int:
    """Call get_answer through its address."""
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(library.address("get_answer"))())


def run(script: str, *arguments: str | Path, **environment: str) -> str:
    """Run a script in a new interpreter and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script), *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
