"""Compiling for NVIDIA GPUs with the real NVRTC; no GPU is needed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from nvidia_compile import ADD, compiled, program, refused

from podium import Target
from podium.backend import Entry, ObjectCode, Options, Program, Signature, Variable
from podium.errors import CompileError, ToolchainError
from podium.parts import call_apart

from podium_nvidia import nvrtc
from podium_nvidia.arch import Arch, runs_on
from podium_nvidia.compiler import compile_program
from podium_nvidia.cubin import Cubin

FAMILIES = (12, 9)  # the first NVRTC with the letter f
H200 = Target("nvidia", "sm_90", 32)


def test_code_is_machine_code_for_the_whole_architecture_of_the_target() -> None:
    """What comes out is a cubin for the target, with the kernel's symbol and the sizes of its parameters (RTC-03)."""
    code = compiled(ADD)
    assert (code.format, code.target, code.symbols) == ("cubin", H200, {"add": "_Z3addPfi"})
    cubin = Cubin(code.code)
    assert str(cubin.arch) == "sm_90"
    (kernel,) = cubin.kernels
    assert kernel.symbol == code.symbol("add") and kernel.parameters == (8, 4) and kernel.registers


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
        compile_program(wanted, H200)
    overloaded = refused("__global__ void two(int *p) {}\n__global__ void two(float *p) {}", "two", signature="p: *i32")
    assert "does not name one kernel" in str(overloaded) and "a name of its own" in str(overloaded)


def test_macros_do_not_reach_the_compilers_own_declarations() -> None:
    """A macro such as T or size changes the user's text and not what NVRTC declares for it; lines stay the user's."""
    source = "__global__ void k(T *x) { x[0] = size; }\n"
    options = {"signature": "x: *fp32", "defines": {"T": "float", "size": 3}}
    assert compiled(source, "k", **options).symbols == {"k": "_Z1kPf"}
    error = refused(source + "error;\n", "k", path="a.cu", **options)
    assert (error.diagnostics[0].file, error.diagnostics[0].line) == ("a.cu", 2)


def test_ndebug_takes_assertions_out() -> None:
    """The macro NDEBUG is for NVRTC's own assert."""
    source = "__global__ void k(int *p) { assert(*p); }"
    assert b"__assertfail" in compiled(source, flags=["-arch=compute_90"]).code
    assert b"__assertfail" not in compiled(source, flags=["-arch=compute_90"], defines={"NDEBUG": 1}).code


def test_quoted_includes_start_from_the_sources_folder(tmp_path: Path) -> None:
    """A header beside the source is found, and one in the include folders."""
    (tmp_path / "beside.h").write_text("#define BESIDE 1\n")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "far.h").write_text("#define FAR 2\n")
    path = tmp_path / "k.cu"
    source = '#include "beside.h"\n#include <far.h>\n__global__ void k(int *p) { *p = BESIDE + FAR; }'
    compiled(source, path=str(path), include_dirs=[tmp_path / "inner"])


# ---- options ----


def test_options_mean_what_they_mean_to_other_compilers() -> None:
    """Each option changes the code: registers are bounded, division is approximate, lines and debug code are there."""
    source = "__global__ void k(float *x, float y) { x[threadIdx.x] /= y; }"
    ptx = {
        name: compiled(source, flags=["-arch=compute_90"], **{name: True}).code for name in ("fast_math", "line_info")
    }
    plain = compiled(source, flags=["-arch=compute_90"]).code
    assert b"div.approx" in ptx["fast_math"] and b"div.rn" in plain
    assert b".loc" in ptx["line_info"] and b".loc" not in plain
    assert b".debug_info" in compiled(source, debug=True).code
    body = "".join(f"float v{i} = x[{i} * n]; " for i in range(64)) + "__syncthreads(); "
    body += "".join(f"x[{i}] = v{i} * v{(i * 7) % 64}; " for i in range(64))
    many = f"__global__ void k(float *x, int n) {{ {body} }}"
    registers = [Cubin(compiled(many, max_registers=most).code).kernels[0].registers for most in (None, 24)]
    assert registers[0] > 32 and registers[1] <= 24


def test_the_users_flags_win_over_the_options() -> None:
    """NVRTC takes -std once: one among the flags stands for the option."""
    source = "template <typename T> concept C = true;\n__global__ void k(int *p) {}"
    compiled(source, flags=["-std=c++20"])
    compiled(source, std="c++20")
    assert "does not compile" in str(refused(source))


@pytest.mark.parametrize(
    ("flag", "advice"),
    [("--no-such-flag", "unrecognized option --no-such-flag"), ("-O3", "it optimises always"), ("-g", "debug=True")],
)
def test_flags_that_the_compiler_does_not_know_are_errors(flag: str, advice: str) -> None:
    """The error has NVRTC's words, and for a flag of nvcc's what to do instead."""
    assert advice in str(refused(ADD, flags=[flag]))
    assert "std is 'c++98', and standards that it knows are" in str(refused(ADD, std="c++98"))


def test_the_log_is_kept_when_the_code_compiles() -> None:
    """Warnings, and what the assembler says with -Xptxas=-v, are the log of the object code."""
    code = compiled("__global__ void k(float *x) { int unused; x[0] = 1; }", flags=["-Xptxas=-v"])
    assert 'variable "unused" was declared but never referenced' in code.log and "Used " in code.log
    assert compiled(ADD).log == ""


def test_declarations_that_are_left_out_at_first_are_there_when_needed() -> None:
    """Textures and types of the runtime compile, though most kernels are compiled without them."""
    compiled(
        "__global__ void k(cudaTextureObject_t t, float *x) { x[0] = tex2D<float>(t, 1, 2); }",
        "k",
        signature="t: u64, x: *fp32",
    )
    compiled("#define TYPE(a, b) a##b\n__global__ void k(float *x) { TYPE(cuda, Error_t) e; x[0] = sizeof(e); }")


def test_host_code_in_the_text_is_answered() -> None:
    """A program with main and a launch gets told that the text is device code."""
    error = refused(ADD + "int main() { add<<<1, 1>>>(0, 1); return 0; }\n")
    assert "what launches it is Python, kernel[grid, block](...)" in str(error)
    assert "Mark the function __device__" in str(refused("float half_of(float x) { return x / 2; }\n" + ADD))


# ---- architectures ----


def test_what_a_device_runs() -> None:
    """Machine code runs on its own generation's later devices, with a letter on its own or its family, PTX on later."""
    table = {
        "sm_80": "sm_80 sm_86 sm_89",
        "sm_90": "sm_90",
        "sm_90a": "sm_90",
        "sm_100f": "sm_100 sm_103",
        "sm_103f": "sm_103",
        "sm_100a": "sm_100",
        "sm_120f": "sm_120 sm_121",
        "compute_89": "sm_89 sm_90 sm_100 sm_103 sm_120 sm_121",
        "compute_90a": "sm_90",
    }
    devices = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"]
    for code, runs in table.items():
        assert [each for each in devices if runs_on(Arch.parse(code), Arch.parse(each))] == runs.split()
    with pytest.raises(ValueError, match="is spelled like sm_90"):
        Arch.parse("90")


def test_the_letter_of_an_architecture_is_there_where_the_source_needs_it() -> None:
    """Instructions of one architecture alone are compiled for it, in the text, in a header's macro, or asked for."""
    wgmma = '__global__ void k(int *p) { asm volatile("%s.fence.sync.aligned;"); }'
    assert compiled(wgmma % "wgmma").target.arch == "sm_90a"
    hidden = '#define NAME "wgm" "ma.fence.sync.aligned;"\n__global__ void k(int *p) { asm volatile(NAME); }'
    assert compiled(hidden).target.arch == "sm_90a"
    assert compiled(ADD, flags=["-arch=sm_90a"]).target.arch == "sm_90a"
    assert compiled(ADD, arch="sm_90a").target.arch == "sm_90a"
    if nvrtc.load().version >= FAMILIES:
        assert compiled(ADD, arch="sm_103", flags=["--gpu-architecture", "sm_100f"]).target.arch == "sm_100f"
    assert "Instructions of one architecture alone need its letter" in str(refused(wgmma % "wgmma", arch="sm_80"))


def test_flags_cannot_ask_for_what_the_device_does_not_run() -> None:
    """An architecture among the flags is checked against the target, and against what NVRTC knows."""
    assert "its flags ask for sm_80, which sm_90 does not run" in str(refused(ADD, flags=["-arch=sm_80"]))
    assert "spelled like sm_90" in str(refused(ADD, flags=["-arch=ninety"]))
    assert "its flags ask for sm_91; NVRTC" in str(refused(ADD, arch="sm_91", flags=["-arch=sm_91"]))
    assert compiled(ADD, flags=["-arch=compute_80"]).format == "ptx"
    assert "flags (-optix-ir) make NVRTC give something else" in str(refused(ADD, flags=["-optix-ir"]))
    with pytest.raises(CompileError, match="is spelled like sm_90"):
        compile_program(program(ADD), Target("nvidia", "hopper", 32))


def test_warps_have_32_threads() -> None:
    """A target with another size of warps is a mistake, and refused; it would be a target that no device has."""
    with pytest.raises(CompileError, match="warps of 32 threads, not of 64"):
        compile_program(program(ADD, "add"), Target("nvidia", "sm_90", 64))


def test_every_architecture_of_the_compiler_has_code() -> None:
    """Each architecture that NVRTC knows is compiled for, with and without its letters."""
    supported = nvrtc.load().supported
    assert {75, 80, 86, 89, 90} <= set(supported)
    for number in supported:
        families = number >= 100 and nvrtc.load().version >= FAMILIES
        for letter in ("", *("a" if number >= 90 else ""), *("f" if families else "")):
            code = compiled(ADD, arch=f"sm_{number}{letter}")
            assert (code.format, code.target.arch) == ("cubin", f"sm_{number}{letter}")
            assert Cubin(code.code).arch.number == number


def test_options_are_a_part_of_what_is_compiled() -> None:
    """Programs that differ in an option, a macro or a flag have other keys (CAC-16)."""
    variants = [Options(), Options(fast_math=True), Options(max_registers=32), Options(flags=("-arch=sm_90a",))]
    variants += [Options(defines=(("N", "1"),)), Options(defines=(("N", "2"),)), Options(debug=True)]
    assert len({each.key() for each in variants}) == len(variants)


@pytest.mark.newest
def test_what_is_nested_deeply_does_not_end_the_process() -> None:
    """In a thread, NVRTC goes down with the process at some thousand parentheses; podium gives it room, or a process."""
    source = 'extern "C" __global__ void k(int* x) {{ x[0] = {}1{}; }}'
    entry = Entry("k", Signature.parse("x: *i32"))
    found: list[object] = []

    def compile_deep() -> None:
        for depth in (20_000, 40_000):  # the second is too long a text to be compiled here
            wanted = Program(source.format("(" * depth, ")" * depth), "cuda", (entry,))
            found.append(compile_program(wanted, Target("nvidia", "sm_90", 32)))

    thread = threading.Thread(target=compile_deep)
    thread.start()
    thread.join()
    assert [type(each) for each in found] == [ObjectCode, ObjectCode]


def test_a_process_of_nvrtc_that_ends_is_a_compile_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever NVRTC does to the process that compiles a long text, the error says so; mistakes are those of the text."""
    long = ADD + "//" + "-" * (64 << 10)
    assert "identifier" in str(refused(long.replace("+= n", "+= m"), "add"))
    monkeypatch.setattr(nvrtc, "call_apart", lambda *_: call_apart("signal:raise_signal", 11))
    assert "the process of NVRTC ended: signal SIGSEGV" in str(refused(long, "add"))
