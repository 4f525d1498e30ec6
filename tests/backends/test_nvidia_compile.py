"""Compiling for NVIDIA GPUs with the real NVRTC; no GPU is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium import Target
from podium._compile import declare
from podium._program import Options, Program
from podium.backend import Entry, ObjectCode, Signature, Variable
from podium.errors import CompileError, ToolchainError

pytest.importorskip("cuda.bindings", reason="cuda-python is not installed")

from podium_nvidia import nvrtc
from podium_nvidia.compiler import compile_program
from podium_nvidia.cubin import Cubin

ADD = "__global__ void add(float *x, int n) { x[threadIdx.x] += n; }\n"


def program(source: str, *names: str, path: str | None = None, signature: Any = None, **options: Any) -> Program:
    """Make a program of some kernels of a source, as podium does; or of one with a signature of its own."""
    made = [
        declare(source, path, "cuda", Options.of(**options), name, signature, {}).program for name in names or (None,)
    ]
    return Program(source, "cuda", tuple(each.entries[0] for each in made), made[0].options, path, made[0].headers)


def compiled(source: str, *names: str, arch: str = "sm_90", **options: Any) -> ObjectCode:
    """Compile kernels of a source."""
    return compile_program(program(source, *names, **options), Target("nvidia", arch, 32))


def refused(source: str, *names: str, arch: str = "sm_90", **options: Any) -> CompileError:
    """Return the error of a source that does not compile."""
    with pytest.raises(CompileError) as caught:
        compiled(source, *names, arch=arch, **options)
    return caught.value


def test_code_is_machine_code_for_the_whole_architecture_of_the_target() -> None:
    """What comes out is a cubin for the target, with the kernel's symbol and the sizes of its parameters (RTC-03)."""
    code = compiled(ADD)
    assert (code.format, code.target, code.symbols) == ("cubin", Target("nvidia", "sm_90", 32), {"add": "_Z3addPfi"})
    cubin = Cubin(code.code)
    assert str(cubin.arch) == "sm_90"
    (kernel,) = cubin.kernels
    assert kernel.symbol == code.symbol("add") and kernel.parameters == ((0, 8), (8, 4)) and kernel.registers


def test_kernels_of_templates_namespaces_and_c_have_their_symbols() -> None:
    """Several kernels of one source are compiled together, each under its name expression."""
    source = """
    namespace lib { template <typename T, int N> __global__ void scale(T *x, T a) { x[threadIdx.x] *= a * N; } }
    extern "C" __global__ void plain(int *p) { *p = 1; }
    __device__ int table[4];
    static __constant__ float own = 1;
    namespace lib { __managed__ double shared_with_host; }
    __managed__ int other;
    """
    names = ["lib::scale<float, 4>", "lib::scale<double, 2>", "plain"]
    wanted = program(source, *names)
    variables = {"table": "[4xi32]", "own": "fp32", "lib::shared_with_host": "fp64", "other": "i32"}
    wanted = Program(source, "cuda", wanted.entries, variables=tuple(Variable.of(*each) for each in variables.items()))
    code = compile_program(wanted, Target("nvidia", "sm_80", 32))
    cubin = Cubin(code.code)
    assert {each.symbol for each in cubin.kernels} == {code.symbol(name) for name in names}
    assert code.symbol("plain") == "plain" and "plain" not in code.symbols
    assert {name: cubin.variables[code.symbol(name)] for name in variables} == {
        "table": 16,
        "own": 4,
        "lib::shared_with_host": 8,
        "other": 4,
    }


def test_a_signature_that_is_not_the_kernels_is_an_error_of_the_compilation() -> None:
    """Number, size and place of each parameter are compared with the code, so that no launch reads other bytes."""
    error = refused(ADD, "add", signature="x: *fp32")
    assert "its signature has 1 parameters, the code has 2" in str(error)
    error = refused(ADD, "add", signature="x: *fp32, n: i64")
    assert "parameter 'n' (number 2): the signature says i64 of 8 bytes, the code has 4 bytes" in str(error)


def test_a_device_newer_than_the_compiler_gets_ptx_of_the_newest_that_it_knows() -> None:
    """The driver finishes PTX for a GPU that NVRTC has not heard of (RTC-04)."""
    newest = nvrtc.load().supported[-1]
    code = compiled(ADD, arch="sm_999")
    assert (code.format, code.target.arch) == ("ptx", f"compute_{newest}")
    assert f".target sm_{newest}".encode() in code.code and code.symbol("add").encode() in code.code
    with pytest.raises(ToolchainError, match=r"makes code for sm_\d+, .* so nothing for sm_35\. Take an older one"):
        compiled(ADD, arch="sm_35")


def test_errors_point_into_the_users_source() -> None:
    """A diagnostic has file, line and column, and the message shows the line."""
    error = refused("__global__ void k(int *p) {\n\tp[0] = foo(3);\n  p = 3.5;\n}\n", path="dir/kernel.cu")
    first, second = error.diagnostics
    assert (first.file, first.line, first.column, first.severity) == ("dir/kernel.cu", 2, 9, "error")
    assert first.message == 'identifier "foo" is undefined'
    assert (second.line, second.column) == (3, 5)
    assert "dir/kernel.cu:2:9: error: identifier" in str(error)
    assert "    2 | \tp[0] = foo(3);\n      | \t       ^" in str(error)
    assert error.log and error.program == "dir/kernel.cu" and error.target == "nvidia:sm_90:32"


def test_a_kernel_that_is_not_there_is_named_with_those_that_are() -> None:
    """What NVRTC says of its own list of names becomes an error about the kernel."""
    wanted = Program(ADD, "cuda", (Entry("sub", Signature.parse("i32")),))
    with pytest.raises(CompileError, match="there is no kernel 'sub' in the source; it has: add"):
        compile_program(wanted, Target("nvidia", "sm_90", 32))


def test_macros_do_not_reach_the_compilers_own_declarations() -> None:
    """A macro such as T or size changes the user's text and not what NVRTC declares for it; lines stay the user's."""
    source = "__global__ void k(T *x) { x[0] = size; }"
    code = compiled(source, "k", signature="x: *fp32", defines={"T": "float", "size": 3})
    assert code.symbols == {"k": "_Z1kPf"}
    error = refused(source + "\nerror", "k", signature="x: *fp32", defines={"T": "float", "size": 3}, path="a.cu")
    assert error.diagnostics[0].line >= 1 and error.diagnostics[0].file == "a.cu"


def test_quoted_includes_start_from_the_sources_folder(tmp_path: Path) -> None:
    """A header beside the source is found, and one in the include folders."""
    (tmp_path / "beside.h").write_text("#define BESIDE 1\n")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "far.h").write_text("#define FAR 2\n")
    path = tmp_path / "k.cu"
    source = '#include "beside.h"\n#include <far.h>\n__global__ void k(int *p) { *p = BESIDE + FAR; }'
    compiled(source, path=str(path), include_dirs=[tmp_path / "inner"])
