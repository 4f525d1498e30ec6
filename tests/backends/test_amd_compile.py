"""Compiling for AMD GPUs by the real hipRTC, without a device: code, metadata, and what is said when it cannot be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from podium.backend import Entry, ObjectCode, Options, Program, Signature, Target, Variable
from podium.errors import CompileError, LoadError

pytest.importorskip("podium_amd", reason="podium-amd is not installed")

from amd_hiprtc import PATH

from podium_amd import object_code
from podium_amd.arch import Arch
from podium_amd.code_object import CodeObject
from podium_amd.compiler import compile_program
from podium_amd.hiprtc import Compiled, Hiprtc
from podium_amd.parameters import mismatch

WAVE64, WAVE32 = Target("amd", "gfx90a", 64), Target("amd", "gfx1030", 32)
_TYPES = "*fp32,i1,fp64,i8,{fp64,[3xi32]},u16,*ki64,fp16"
_DIALECT = Path(__file__).with_name("amd_dialect.cu")


def program(source: str, signature: str = "*fp32", name: str = "k", **options: object) -> Program:
    return Program(source, entries=(Entry(name, Signature.parse(signature)),), options=Options.of(**options))  # type: ignore[arg-type]


def refused(source: str, target: Target = WAVE64, **options: object) -> CompileError:
    with pytest.raises(CompileError) as caught:
        compile_program(program(source, **options), target)
    return caught.value


@pytest.fixture(scope="module")
def dialect() -> dict[Target, ObjectCode]:
    """The names that only CUDA has, compiled for warps of both sizes."""
    entries = (
        Entry("warps", Signature.parse("*i32,*u64")),
        Entry("values", Signature.parse("*i32,*fp64,*fp16,*bf16,*void")),
        Entry("rest", Signature.parse("*fp32,*kfp32,i32,u32,i64")),
        Entry("names::templated<float, 3>", Signature.parse("*fp32")),
        Entry("layout", Signature.parse(_TYPES)),
    )
    variables = (Variable.of("names::counter", "[3xi32]"), Variable.of("table", "[4xfp32]"))
    made = Program(_DIALECT.read_text(), entries=entries, variables=variables, path=str(_DIALECT))
    return {target: compile_program(made, target) for target in (WAVE64, WAVE32, Target("amd", "gfx1030", 64))}


def test_what_cuda_text_names_is_there(dialect: dict[Target, ObjectCode]) -> None:
    """The kernel language is CUDA's dialect: its warp functions, loads, half types and headers compile for both warps."""
    for target, code in dialect.items():
        described = CodeObject(code.code)
        assert (code.format, code.target) == ("hsaco", target)
        assert str(described.arch) == target.arch
        assert {kernel.wavefront_size for kernel in described.kernels} == {target.warp_size}


def test_names_are_those_of_the_source(dialect: dict[Target, ObjectCode]) -> None:
    """Kernels of templates and variables of namespaces are found by what they are called in the source."""
    code = dialect[WAVE64]
    described = CodeObject(code.code)
    kernel = described.kernel(code.symbol("names::templated<float, 3>"))
    assert kernel is not None and kernel.max_threads == 128
    sizes = {name: described.variables[code.symbol(name)] for name in ("names::counter", "table")}
    assert sizes == {"names::counter": 12, "table": 16}


def test_metadata_are_compared_with_the_signature(dialect: dict[Target, ObjectCode]) -> None:
    """Number, place, size and kind of each parameter are those of the signature; what differs is said by name (ARG-09)."""
    kernel = CodeObject(dialect[WAVE32].code).kernel("layout")
    assert kernel is not None

    def told(types: str) -> str | None:
        return mismatch(kernel, Entry("layout", Signature.parse(types)))

    assert told(_TYPES) is None
    assert told(_TYPES + ",i32") == "kernel 'layout': its signature has 9 parameters, the code has 8"
    assert "parameter 'arg2' (number 3): the signature says fp32 of 4 bytes" in str(
        told(_TYPES.replace("fp64,i8", "fp32,i8"))
    )
    assert "(number 7): the signature says i64, the code has a pointer" in str(told(_TYPES.replace("*ki64", "i64")))
    assert "at byte 25, the code has it at byte 32" in str(told(_TYPES.replace("{fp64,[3xi32]}", "opaque[24,1]")))
    assert kernel.parameters[0].is_pointer and kernel.parameters[-1].size == 2


def test_a_mistake_is_found_at_its_line() -> None:
    """CMP-01: an error has the log, and points into the user's own text, not behind what podium puts in front."""
    error = refused('extern "C" __global__ void k(float *x) {\n  x[0] = y;\n}')
    assert (error.diagnostics[0].line, error.diagnostics[0].column) == (2, 10)
    assert "x[0] = y;" in str(error) and error.log and error.target == "amd:gfx90a:64"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("__global__ void other(float *x) {}", ["there is no kernel 'k' in the source; it has: other"]),
        ("__device__ void k(float *x) {}", ["'k' is a function, and no kernel"]),
        ("__global__ void k(int x) {}", ["parameter 'arg0'", "the signature says *fp32 of 8 bytes", "4 bytes"]),
        ("#include <cooperative_groups.h>\n__global__ void k(float *x) {}", ["podium-amd has no cooperative groups"]),
        ("#include <cub/cub.cuh>\n__global__ void k(float *x) {}", ["<cub/cub.cuh> is NVIDIA's", "#ifndef __HIP__"]),
        (
            "#include <type_traits>\n__global__ void k(float *x) {}",
            ["<type_traits>", "for kernels", "#ifndef __HIPCC_RTC__"],
        ),
        (
            "__device__ void operator+=(float4 &a, float4 b) { a.x += b.x; }\n"
            "__global__ void k(float *x) { float4 a{}; a += a; }",
            ["HIP has operators for its vector types"],
        ),
        ("#include <mine.h>\n__global__ void k(float *x) {}", ["is in none of the include folders", "include_dirs"]),
        ("__managed__ int v;\n__global__ void k(float *x) { *x = v; }", ["podium-amd has no __managed__ variables"]),
        ('__global__ void k(float *x) { asm("mov.u32 %0, %laneid;" : "=r"(x)); }', ["Assembly in CUDA's text is PTX"]),
        ("__device__ float f();\n__global__ void k(float *x) { *x = f(); }", ["f()", "hipRTC links no other code"]),
    ],
)
def test_what_cannot_be_is_refused_by_name(source: str, words: list[str]) -> None:
    """What AMD's GPUs or hipRTC have no counterpart of is said by its name, with what to do."""
    error = str(refused(source))
    assert [each for each in words if each not in error] == [], error


def test_text_of_others_compiles() -> None:
    """Kernels as they are written for CUDA compile; what does not is what HIP's own vector types have otherwise."""
    otherwise = {
        "barriers": "cannot decompose class type",
        "names": "HIP has operators for its vector types",
        "nbody": "HIP has operators for its vector types",
    }
    files = sorted((Path(__file__).parent / "cpu_wild").glob("*.cu"))
    assert len(files) > 20
    for file in files:
        made = Program(file.read_text(), path=str(file))
        if file.stem in otherwise:
            with pytest.raises(CompileError, match=otherwise[file.stem]):
                compile_program(made, WAVE64)
        else:
            assert compile_program(made, WAVE64).format == "hsaco", file.name


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("amd:sm_90:32", "An architecture is spelled like gfx942"),
        ("amd:gfx90a:xnack:64", "An architecture is spelled like"),
        ("amd:gfx90a:32", "gfx90a has warps of 64 threads, not of 32"),
        ("amd:gfx999:64", "gfx999"),
    ],
)
def test_a_wrong_architecture_costs_no_process(target: str, words: str) -> None:
    """RTC-06: hipRTC before HIP 7 ends the process for an unknown architecture; podium's goes on, with an error."""
    assert words in str(refused("__global__ void k(float *x) {}", Target.parse(target)))


def test_files_where_a_program_runs_stop_no_compiler(tmp_path: Path) -> None:
    """The process that compiles for an architecture not known yet imports what the program would, not what lies about."""
    (tmp_path / "json.py").write_text("raise RuntimeError('a file of the user')\n")
    script = tmp_path / "program" / "main.py"
    script.parent.mkdir()
    script.write_text(
        "from podium_amd.hiprtc import load\n"
        "source = '__global__ void k(float *x) {}'\n"
        "compiled = load()._compile_apart(source, 'k', ['--offload-arch=gfx90a'], ['k'])\n"
        "print(compiled.lowered)\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "{'k': '_Z1kPf'}\n", done.stderr


def test_threads_compile_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that compile at once end the process, in hipRTC 5.2 itself; so they never meet there."""
    place, met = threading.Barrier(2), []

    def compile(*_: object) -> Compiled:
        with suppress(threading.BrokenBarrierError):
            met.append(place.wait(0.5))
        return Compiled(b"", "", {})

    monkeypatch.setattr(Hiprtc, "_compile", compile)
    compiler = Hiprtc.__new__(Hiprtc)
    threads = [threading.Thread(target=compiler.compile_here, args=("", "", (), ())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == []


def test_what_is_nested_deeply_does_not_end_the_process() -> None:
    """In a thread, hipRTC goes down with the process at two thousand casts in a row; podium gives it room."""
    source = f'extern "C" __global__ void k(int *x) {{ x[0] = {"(int)" * 5000}1; }}'
    wanted = Program(source, "cuda", (Entry("k", Signature.parse("x: *i32")),))
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(compile_program(wanted, Target("amd", "gfx906", 64))))
    thread.start()
    thread.join()
    assert [type(each) for each in found] == [ObjectCode]


def test_features_of_the_architecture_are_kept() -> None:
    """RTC-06: the full name goes to the compiler, and the code says what it was built for."""
    code = compile_program(program("__global__ void k(float *x) {}"), Target("amd", "gfx90a:sramecc+:xnack-", 64))
    found = object_code(code.code, {"k": "*fp32"})
    assert found.target == code.target == Target("amd", "gfx90a:sramecc+:xnack-", 64)
    assert found.symbol("k") == "_Z1kPf"
    with pytest.raises(LoadError, match="its signature has 2 parameters"):
        object_code(code.code, {"k": "*fp32,i32"})
    with pytest.raises(LoadError, match="no kernel 'other'; it has: _Z1kPf"):
        object_code(code.code, {"other": "*fp32"})
    for damaged in (code.code[:200], code.code[: len(code.code) // 2], b"\x7fELF" + bytes(80), b"other"):
        with pytest.raises(LoadError):
            object_code(damaged, {"k": "*fp32"})


def test_options_are_said_in_the_words_of_all_backends() -> None:
    """Macros, folders, the language's version, fast mathematics and debug information reach the compiler."""
    source = """
#if WIDTH != 7 || __cplusplus < 202002L || !defined(__FAST_MATH__)
#error "options"
#endif
#include <own.h>
__global__ void k(float *x) { *x = OWN; }
"""
    folder = Path(__file__).parent / "amd_headers"
    code = compile_program(
        program(source, defines={"WIDTH": 7}, std="c++20", fast_math=True, line_info=True, include_dirs=[folder]),
        WAVE32,
    )
    assert code.symbol("k") == "_Z1kPf"
    assert "max_registers= is the word" in str(refused("__global__ void k(float *x) {}", flags=["--maxrregcount=32"]))
    assert "which gfx90a does not run" in str(
        refused("__global__ void k(float *x) {}", flags=["--offload-arch=gfx1030"])
    )


def test_the_registers_of_a_thread_are_bounded() -> None:
    """max_registers= bounds what the code object counts, with accumulation registers where both are one file."""
    steps = "for (int i = 0; i < 32; ++i)"
    source = (
        f"__global__ void k(float *x) {{ float v[32]; {steps} v[i] = x[i * 64 + threadIdx.x]; __syncthreads();\n"
        f"{steps} v[i] = v[i] * v[(i * 7 + 3) & 31] + v[(i * 5) & 31];\n"
        f"{steps} x[i * 64 + threadIdx.x] = v[i]; }}"
    )
    for target in (WAVE64, WAVE32):
        free, bounded = (
            CodeObject(compile_program(program(source, max_registers=most), target).code).kernels[0]
            for most in (None, 24)
        )
        assert bounded.vector_registers <= 24 < free.vector_registers


@pytest.mark.parametrize(
    ("code", "device", "runs"),
    [
        ("gfx90a", "gfx90a:sramecc+:xnack-", True),
        ("gfx90a:xnack-", "gfx90a:sramecc+:xnack-", True),
        ("gfx90a:xnack+", "gfx90a:sramecc+:xnack-", False),
        ("gfx90a", "gfx942", False),
        ("gfx11-generic", "gfx1102", True),
        ("gfx9-4-generic", "gfx90a", False),
        ("gfx942:sramecc+", "gfx942", True),
    ],
)
def test_code_runs_where_its_features_are_set_as_it_says(code: str, device: str, runs: bool) -> None:
    """RTC-06: a feature that code does not name may be set either way; one that it names must be set so."""
    assert Arch.parse(code).runs_on(Arch.parse(device)) is runs


def test_the_toolchain_is_named_without_opening_the_compiler() -> None:
    """Every process asks which compiler there is, and few compile: neither hip-python nor the compiler is loaded."""
    program = """
import sys
from podium_amd.driver import AmdDriver
name = AmdDriver().toolchain("cuda")
with open("/proc/self/maps") as lines:
    print(any("comgr" in line for line in lines), "rocm.bindings.hiprtc" in sys.modules, sys.argv[1] in name)
print(name.partition("\\n")[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, PATH], capture_output=True, text=True, env=dict(os.environ), timeout=60
    )
    told, title = done.stdout.splitlines()
    assert told == "False False True", done.stderr
    assert re.match(rf"hipRTC [\d.]+ \({PATH}\), ", title)
