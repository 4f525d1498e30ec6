"""Compiling, loading and the driver of the CPU backend."""

from __future__ import annotations

import array
import os
import pickle
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import podium
from podium import _cache
from podium.backend import (
    Entry,
    Function,
    HostCompiler,
    LaunchConfig,
    ObjectCode,
    Options,
    Parameters,
    Program,
    Signature,
    Target,
)
from podium.errors import CompileError, LoadError, OutOfResourcesError, ToolchainError

cpu = pytest.importorskip("podium_cpu.driver", reason="the CPU backend is not installed")
cpu_compiler = pytest.importorskip("podium_cpu.compiler")
processor = pytest.importorskip("podium_cpu.processor")
shared_memory = pytest.importorskip("podium_cpu.shared_memory")

DIALECT = Path(cpu_compiler.INCLUDE) / "dialect"

SAXPY = """
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""
SAXPY_SIGNATURE = "a: fp32, x: *kfp32, y: *fp32, n: i32"


@pytest.fixture(autouse=True)
def compiler() -> HostCompiler:
    try:
        return HostCompiler.find("c++")
    except ToolchainError as error:
        pytest.skip(f"this machine has no C++ compiler: {error}")


@pytest.fixture
def driver() -> cpu.CpuDriver:
    return cpu.CpuDriver()


def program(source: str, entries: dict[str, str], path: str | None = None, **options: object) -> Program:
    kernels = tuple(Entry(name, Signature.parse(text)) for name, text in entries.items())
    return Program(source, "cuda", kernels, Options.of(**options), path)  # type: ignore[arg-type]


def compile_source(
    source: str, entries: dict[str, str] | None = None, path: str | None = None, **options: object
) -> ObjectCode:
    driver = cpu.CpuDriver()
    code: ObjectCode = driver.compile(
        program(source, entries or {"k": "p: *i32"}, path, **options), driver.default_target()
    )
    return code


def value_of(expression: str, source: str = "", path: str | None = None, **options: object) -> int:
    """Compile a kernel that stores the value of an expression, run it, and return the value."""
    text = f'{source}\nextern "C" __global__ void k(int *p) {{ *p = {expression}; }}\n'
    out = array.array("i", [-1])
    assert run(compile_source(text, path=path, **options), "k", out) == 0
    return out[0]


def run(code: ObjectCode, name: str, out: array.array[int], *numbers: int) -> int:
    driver = cpu.CpuDriver()
    function: Function = driver.load(code, name, 0)
    data = out.buffer_info()[0].to_bytes(8, sys.byteorder) + array.array("i", numbers).tobytes()
    parameters = Parameters(data, (0, *range(8, len(data), 4)))
    status: int = driver.launch(function.handle, LaunchConfig(1, 1), 0, 0, parameters)
    return status


def refusal(
    source: str, entries: dict[str, str] | None = None, path: str | None = None, **options: object
) -> CompileError:
    with pytest.raises(CompileError) as caught:
        compile_source(source, entries, path, **options)
    error = caught.value
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.log, again.diagnostics) == (str(error), error.log, error.diagnostics)
    return error


# ---- object code ----


def test_object_code_says_what_it_is(driver: cpu.CpuDriver) -> None:
    """The result has the program's kernels, a symbol for each, its target, and survives being stored."""
    names = {"saxpy": SAXPY_SIGNATURE, "ns::fill<float, 3>": "*fp32"}
    source = SAXPY + "namespace ns { template <class T, int N> __global__ void fill(T *p) { *p = N; } }"
    code = compile_source(source, names)
    assert [entry.name for entry in code.entries] == list(names)
    assert code.target == driver.default_target() and code.format == ("elf" if sys.platform == "linux" else code.format)
    assert len({code.symbol(name) for name in names}) == 2
    stored = ObjectCode.from_bytes(code.to_bytes())
    assert driver.load(stored, "saxpy", 0).handle != driver.load(stored, "ns::fill<float, 3>", 0).handle


def test_kernel_is_loaded_once(driver: cpu.CpuDriver) -> None:
    """Loading the same code again maps nothing again, and unloading leaves it: handles may be in use."""
    code = compile_source(SAXPY, {"saxpy": SAXPY_SIGNATURE})
    function = driver.load(code, "saxpy", 0)
    driver.unload(function, 0)
    assert driver.load(code, "saxpy", 0).handle == function.handle
    assert function.module == 0


def test_loading_what_is_not_there(driver: cpu.CpuDriver) -> None:
    """A kernel that the code does not have, and bytes that are no library, are load errors."""
    code = compile_source(SAXPY, {"saxpy": SAXPY_SIGNATURE})
    with pytest.raises(LoadError, match="No kernel 'other'"):
        driver.load(code, "other", 0)
    broken = ObjectCode(b"\x7fELF but no more", "elf", code.target, code.entries, code.symbols)
    with pytest.raises(LoadError, match="could not be loaded"):
        driver.load(broken, "saxpy", 0)
    foreign = find_spec("_ctypes")
    assert foreign is not None and foreign.origin is not None
    other = ObjectCode(Path(foreign.origin).read_bytes(), "elf", code.target, code.entries, code.symbols)
    with pytest.raises(LoadError, match="podium-cpu has not compiled this library, and runs no others.*that text"):
        driver.load(other, "saxpy", 0)


@pytest.mark.skipif(processor.host_arch() not in processor.ARCH_LEVELS, reason="levels are those of x86-64")
def test_code_for_a_newer_processor_is_refused(driver: cpu.CpuDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-21: code built for a newer processor is refused with both names, and never run."""
    code = compile_source(SAXPY, {"saxpy": SAXPY_SIGNATURE})
    newer = ObjectCode(code.code, code.format, Target("cpu", "x86-64-v4", 32), code.entries, code.symbols)
    monkeypatch.setattr("podium_cpu.processor.host_arch", lambda: "x86-64-v2")
    monkeypatch.setattr("podium_cpu.driver.host_arch", lambda: "x86-64-v2")
    with pytest.raises(LoadError, match=r"cpu:x86-64-v4:32.*cpu:x86-64-v2:32"):
        driver.load(newer, "saxpy", 0)
    with pytest.raises(LoadError, match="nvidia"):
        driver.load(ObjectCode(b"", "cubin", Target("nvidia", "sm_90", 32), code.entries), "saxpy", 0)


def test_levels_of_processors() -> None:
    """CAC-21: the architecture is the highest level whose flags are all there, so machines of a kind share code."""
    flags = [" ".join(sorted(each)) for each in processor.ARCH_LEVELS.values()]
    names = list(processor.ARCH_LEVELS)
    for count in range(1, len(flags) + 1):
        assert processor._level(" ".join(flags[:count])) == names[count - 1]
    assert processor._level(" ".join([flags[1], flags[3]])) == "x86-64-v2"
    assert processor._level(" ".join(flags).replace("avx2", "")) == "x86-64-v2"
    assert processor.can_run(processor.host_arch()) and not processor.can_run("z80")


@pytest.mark.skipif(processor.host_arch() not in processor.ARCH_LEVELS, reason="levels are those of x86-64")
def test_target_decides_the_instructions(driver: cpu.CpuDriver) -> None:
    """CAC-21, RTC-05: code is compiled for the target that was asked for, not for the machine that compiles."""
    text = program("__global__ void k(int *p) {\n#ifdef __AVX__\n*p = 1;\n#else\n*p = 0;\n#endif\n}", {"k": "*i32"})
    out = array.array("i", [-1])
    assert run(driver.compile(text, Target("cpu", "x86-64", 32)), "k", out) == 0
    assert out[0] == 0


@pytest.mark.parametrize(
    ("version", "knows"),
    [
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", True),
        ("g++ (GCC) 11.1.0", True),
        ("c++ (Ubuntu 9.4.0-1ubuntu1~20.04.2) 9.4.0", False),
        ("g++ (GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)", False),
        ("Debian clang version 14.0.6", True),
        ("clang version 11.0.0", False),
        ("unheard of", False),
    ],
)
def test_old_compilers_get_no_levels(version: str, knows: bool) -> None:
    """A compiler that does not know the levels of x86-64 by name is asked for code that runs everywhere."""
    assert cpu_compiler._knows_levels(version) is knows


def test_toolchain_names_compiler_and_headers(driver: cpu.CpuDriver, compiler: HostCompiler, tmp_path: Path) -> None:
    """CAC-14: the key of cached code holds the compiler and this backend's headers, and does not change by itself."""
    text = driver.toolchain("cuda")
    assert text.startswith(f"{compiler.version} ({compiler.command[0]})\n")
    assert compiler.identity in text and text == driver.toolchain("cuda")
    program = "from podium_cpu.driver import CpuDriver; print(CpuDriver().toolchain('cuda'))"
    again = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert again.stdout.strip() == text.strip()


def test_missing_compiler(driver: cpu.CpuDriver, no_compiler: None) -> None:
    """CC-01: without a C++ compiler the error names the variable and the package; the backend stays active."""
    with pytest.raises(ToolchainError, match=r"apt install g\+\+.*CXX"):
        driver.toolchain("cuda")
    assert cpu.CpuDriver.is_active()


def test_broken_compiler_keeps_its_error(
    driver: cpu.CpuDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler that crashes is not reported as a mistake in the source."""
    path = tmp_path / "crash"
    path.write_text("#!/bin/sh\ncase $* in *--version*) echo 'crash 12.0.0';; *) kill -9 $$;; esac\n")
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    with pytest.raises(ToolchainError, match="SIGKILL") as caught:
        driver.compile(program(SAXPY, {"saxpy": SAXPY_SIGNATURE}), driver.default_target())
    assert caught.value.program == "<podium source>" and caught.value.target == str(driver.default_target())


# ---- options ----


def test_defines() -> None:
    """Macros reach the source with their values; quotes, spaces and dollars are no trouble, as there is no shell."""
    defines = {"N": 7, "FLAG": None, "TEXT": "\"a $HOME `b` 'c' d\""}
    expression = "N + sizeof(TEXT) + 100 * FLAG_IS"
    source = "#ifdef FLAG\n#define FLAG_IS 1\n#endif"
    assert value_of(expression, source, defines=defines) == 7 + 18 + 100


def test_macro_without_a_value_is_one() -> None:
    """A define of None is what -DNAME gives, on every backend."""
    assert value_of("NAME", defines={"NAME": None}) == 1


@pytest.mark.parametrize("define", [("A B", "1"), ("X\n", "1"), ("X", "1\n#error injected"), ("-I/", "")])
def test_bad_defines_are_refused(define: tuple[str, str], driver: cpu.CpuDriver) -> None:
    """Options that were put together by hand are checked again before they get onto a command line."""
    text = Program(SAXPY, "cuda", (Entry("saxpy", Signature.parse(SAXPY_SIGNATURE)),), Options(defines=(define,)))
    with pytest.raises(CompileError, match="cannot be defined"):
        driver.compile(text, driver.default_target())


def test_include_folders(tmp_path: Path) -> None:
    """Folders are searched in order, and behind the dialect's own headers."""
    for folder, value in (("one", 1), ("two", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "value.h").write_text(f"#define VALUE {value}\n")
        (tmp_path / folder / "cuda_fp16.h").write_text("#error a vendor's header\n")
    source = "#include <value.h>\n#include <cuda_fp16.h>"
    assert value_of("VALUE", source, include_dirs=[tmp_path / "one", tmp_path / "two"]) == 1


def test_quoted_includes_are_beside_the_source(tmp_path: Path) -> None:
    """A quoted include is looked for beside the file that the source came from."""
    (tmp_path / "beside.cuh").write_text("static const int beside = 5;\n")
    assert value_of("beside", '#include "beside.cuh"', path=str(tmp_path / "kernel.cu")) == 5


def test_standard_flags_and_debug(driver: cpu.CpuDriver) -> None:
    """std, flags, debug and line_info reach the compiler; max_registers has no meaning here and is no error."""
    assert value_of("__cplusplus > 202000l", std="c++20") == 1
    assert value_of("__cplusplus == 201402l", std="c++14") == 1
    assert value_of("FROM_FLAG", flags=["-DFROM_FLAG=12"]) == 12
    assert value_of("3", max_registers=32) == 3
    optimised, debug, lines = (
        compile_source(SAXPY, {"saxpy": SAXPY_SIGNATURE}, **options).code
        for options in ({}, {"debug": True}, {"line_info": True})
    )
    assert b".debug_line" not in optimised and b".debug_line" in debug and b".debug_line" in lines
    source = "#ifdef __OPTIMIZE__\n#define LEVEL 1\n#else\n#define LEVEL 0\n#endif"
    assert value_of("LEVEL", source) == 1 and value_of("LEVEL", source, line_info=True) == 1
    assert value_of("LEVEL", source, debug=True) == 0


def test_fast_math_leaves_the_process_alone() -> None:
    """fast_math must not switch off subnormal numbers in the whole process, nor infinities in the kernel."""
    assert value_of("isinf(1.0f / (float)(*p + 1)) + isnan(NAN)", fast_math=True) == 2
    assert 5e-324 * 1.0 != 0.0 and 2.0**-1030 / 4 * 4 == 2.0**-1030


def test_warnings_are_kept() -> None:
    """What the compiler says of a source that it accepts is in the log."""
    code = compile_source("#warning mind the gap\n__global__ void k(int *p) {}", {"k": "*i32"})
    assert "mind the gap" in code.log


# ---- messages ----


def test_error_shows_the_line_of_a_string() -> None:
    """An error in a source that is no file shows place, message, the line itself, and a caret below the place."""
    error = refusal("// one\n__global__ void k(int *p) {\n\t*p = nowhere + 1;\n}\n")
    lines = str(error).splitlines()
    assert "<podium source> (k) does not compile for cpu:" in lines[0]
    assert lines[1].startswith("<podium source>:3:7: error: ") and "nowhere" in lines[1]
    assert lines[2] == "    3 | \t*p = nowhere + 1;"
    assert lines[3] == "      | \t     ^"
    first = error.diagnostics[0]
    assert (first.file, first.line, first.column, first.severity) == ("<podium source>", 3, 7, "error")
    assert error.program == "<podium source>" and str(error.target).startswith("cpu:")
    assert "nowhere" in error.log and "$ " in error.log


def test_error_in_a_file_and_in_a_header(tmp_path: Path) -> None:
    """Messages name the user's file as it was given, and show the line of a header that is at fault."""
    path = str(tmp_path / 'odd "name" \\ here.cu')
    error = refusal("__global__ void k(int *p) { *p = nowhere; }", path=path)
    assert error.diagnostics[0].file == path and f"{path}:1:34: error" in str(error)
    (tmp_path / "broken.h").write_text("int fine;\nint broken = nothing_here;\n")
    error = refusal('#include "broken.h"\n__global__ void k(int *p) {}', path=str(tmp_path / "k.cu"))
    assert error.diagnostics[0].file == str(tmp_path / "broken.h") and error.diagnostics[0].line == 2
    assert "    2 | int broken = nothing_here;" in str(error)


def test_errors_keep_their_lines_when_shared_memory_is_rewritten() -> None:
    """The second way through the compiler, for dynamic shared memory, names the same lines."""
    source = "__global__ void k(int *p) {\n  extern __shared__\n    int s[];\n  *p = s[0] + nowhere;\n}\n"
    first = refusal(source).diagnostics[0]
    assert (first.file, first.line) == ("<podium source>", 4)
    first = refusal("__global__ void k(int *p) { extern __shared__ int s[];\n#error stop\n}").diagnostics[0]
    assert (first.line, "stop" in first.message) == (2, True)


def test_many_errors_are_counted() -> None:
    """The message shows a few errors, and says how many more the log has."""
    source = "".join(f"int v{i} = nowhere{i};\n" for i in range(9)) + "__global__ void k(int *p) {}"
    error = refusal(source)
    assert str(error).count(": error: ") == 3 and "6 more errors" in str(error)
    assert len([each for each in error.diagnostics if each.severity == "error"]) == 9


@pytest.mark.parametrize(
    ("signature", "says"),
    [
        ("a: fp64, x: *kfp32, y: *fp32, n: i32", "parameter 'a' (number 1): the signature says fp64 of 8 bytes"),
        ("a: fp32, x: *kfp32, y: *fp32, n: i64", "parameter 'n' (number 4): the signature says i64 of 8 bytes"),
        ("a: i32, x: *kfp32, y: *fp32, n: i32", "parameter 'a' (number 1): the signature says i32, and the source"),
        ("a: fp32, x: fp64, y: *fp32, n: i32", "parameter 'x' (number 2): the signature says fp64, and the source"),
        ("a: fp32, x: *kfp32, y: *fp32", "kernel 'saxpy': its signature has 3 parameters"),
        ("a: fp32, x: *kfp32, y: *fp32, n: i32, m: i32", "kernel 'saxpy': its signature has 5 parameters"),
    ],
)
def test_wrong_signature_is_a_compile_error(signature: str, says: str) -> None:
    """ARG-01, ARG-09: a signature that does not fit the kernel is refused, naming kernel and parameter, once."""
    error = refusal(SAXPY, {"saxpy": signature})
    assert says in str(error)
    assert [each.severity for each in error.diagnostics] == ["error"]
    assert (error.diagnostics[0].file, error.diagnostics[0].line, error.diagnostics[0].column) == (
        "<podium source>",
        2,
        28,
    )


def test_wrong_struct_is_a_compile_error() -> None:
    """A struct in the signature must have the size of the kernel's, and at least its alignment."""
    source = "struct alignas(16) S { float v[4]; };\n__global__ void k(S s) {}"
    assert compile_source(source, {"k": "s: {fp32,fp32,fp32,fp32}@16"}).code
    assert compile_source(source, {"k": "s: opaque[16,16]"}).code
    assert "aligned to 4 bytes" in str(refusal(source, {"k": "s: {fp32,fp32,fp32,fp32}"}))
    assert "of 12 bytes" in str(refusal(source, {"k": "s: {fp32,fp32,fp32}"}))


def test_signature_may_be_looser_than_the_source() -> None:
    """Half types, enumerations, addresses as numbers, and bool fit the spellings of the same size."""
    source = """
    #include <cuda_fp16.h>
    enum Mode { A, B };
    __global__ void k(half h, Mode m, bool b, unsigned long long address, const void *p, unsigned char c) noexcept {}
    """
    assert compile_source(source, {"k": "h: fp16, m: u32, b: i1, address: *fp32, p: u64, c: i8"}).code


@pytest.mark.newest
def test_many_parameters_are_not_looked_through_one_by_one() -> None:
    """What is known of parameters is found by their number: to go along hundreds of them took compilers seconds."""
    count = 300
    parameters = ", ".join(f"int a{i}" for i in range(count))
    source = f"__global__ void k(int *out, {parameters}) {{ *out = a0 + a127 + a{count - 1}; }}"
    signature = "out: *i32, " + ", ".join(f"a{i}: i32" for i in range(count))
    code = compile_source(source, {"k": signature}, flags=["-ftemplate-depth=64"])
    out = array.array("i", [0])
    assert run(code, "k", out, *range(1, count + 1)) == 0 and out[0] == 1 + 128 + count


def test_kernel_that_is_not_there() -> None:
    """A kernel name that the source does not have is an error that lists those it has."""
    source = SAXPY + "__global__ void __launch_bounds__(256) other(int n) {}\nvoid no_kernel() {}"
    error = refusal(source, {"saxpi": "*i32"})
    assert "there is no kernel 'saxpi' in the source; it has: saxpy, other" in str(error)
    assert len(error.diagnostics) == 1
    assert "there is no kernel 'ns::saxpy'" in str(refusal(source, {"ns::saxpy": "*i32"}))
    template = "template <class T> __global__ void scale(T *x) {}"
    text = str(refusal(template, {"scale<flaot>": "*i32"}))
    assert "there is no kernel 'scale<flaot>' in the source (" in text and "'flaot'" in text and "it has: scale" in text


def test_open_brace_is_at_the_end() -> None:
    """A brace that the source leaves open is said to be one, and not that something behind the source is wrong."""
    error = refusal("__global__ void k(int *x) {\n  if (x) {\n    *x = 1;\n}\n", {"k": "*i32"})
    assert "<podium source>:4:2: error: expected '}'" in str(error)
    assert len([each for each in error.diagnostics if each.severity == "error"]) == 1


def test_names_that_are_no_kernels() -> None:
    """A function that returns something, and a template without arguments, are no kernels."""
    assert "returns void" in str(refusal("__global__ int k(int *p) { return 1; }"))
    assert "'k'" in str(refusal("template <class T> __global__ void k(T *p) {}"))


def test_kernel_may_have_the_name_of_a_library_function() -> None:
    """Kernels called like functions of the C library are found, as on a device where there are none of those."""
    names = ("index", "random", "select", "div", "remove", "read", "pipe", "scan", "copy")
    source = "".join(f"__global__ void {name}(int *p) {{ *p = 4; }}\n" for name in names)
    code = compile_source(source, dict.fromkeys(names, "*i32"))
    for name in names:
        out = array.array("i", [0])
        assert run(code, name, out) == 0 and out[0] == 4


@pytest.mark.parametrize(
    "name",
    [
        'k); system("x"',
        "k; int x",
        "k<",
        "k>",
        "k<1>>",
        "k\n#include <x>",
        "",
        'k<"a">',
        "1k",
        "k, k",
        "a::",
        "::",
        "k\0",
    ],
)
def test_names_bring_no_code(name: str) -> None:
    """A kernel's name is checked before it gets into generated code."""
    assert "cannot be the name of a kernel" in str(refusal(SAXPY, {name: "*i32"}))


def test_function_without_a_definition() -> None:
    """A function that is declared only is an error of compilation, not of loading."""
    error = refusal("__device__ int missing(int);\n__global__ void k(int *p) { *p = missing(1); }")
    assert "nowhere defined: missing(int)" in str(error)


@pytest.mark.parametrize(
    "source",
    ["__global__ void k(int *p) {", "/* open\n__global__ void k(int *p) {}", "#if 1\n__global__ void k(int *p) {}"],
)
def test_source_that_is_left_open(source: str) -> None:
    """What the source leaves open is an error within the source, although generated lines follow it."""
    error = refusal(source)
    places = [each.file for each in error.diagnostics if "error" in each.severity]
    assert places and set(places) == {"<podium source>"}


def test_broken_source_does_not_blame_its_kernels() -> None:
    """What follows from an open brace is not reported as a mistake of the kernels behind it."""
    error = refusal("__global__ void k(int *p) {}\nint f() { return 1", {"k": "*i32"})
    assert {each.line for each in error.diagnostics} == {2} and "'k'" not in str(error)


def test_source_with_a_byte_order_mark_and_other_line_ends() -> None:
    """Files as Windows editors write them compile, with the right lines in errors."""
    source = "\ufeff__global__ void k(int *p)\r\n{\r\n  *p = nowhere;\r\n}\r\n"
    assert refusal(source).diagnostics[0].line == 3
    assert compile_source(source.replace("nowhere", "1")).code


# ---- dynamic shared memory ----


@pytest.mark.parametrize(
    ("source", "may"),
    [
        ("__global__ void k() { extern __shared__ int s[]; }", True),
        ("#define D(T, n) extern __shared__ T n[]", True),
        ("HIP_DYNAMIC_SHARED(float, s)", True),
        ('extern "C" __global__ void k() { __shared__ int s[4]; }', False),
        ('extern  "C" {}\n// extern __shared__ int s[];\n__shared__ int t;', False),
        ('const char *t = "extern __shared__"; /* extern */ __shared__ int t;', False),
        ("extern int x;", False),
        ("", False),
    ],
)
def test_sources_that_need_rewriting(source: str, may: bool) -> None:
    """Only a source that may declare dynamic shared memory pays for a second run of the compiler."""
    assert shared_memory.may_have_dynamic_shared(source) is may


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("__shared__ int s[4];", "thread_local int s[4];"),
        ("void f() { extern __shared__ int s[]; }", "void f() { GONE int (&s)[]INIT; }"),
        ("extern __shared__ int s[];", "TLS int (&s)[]INIT;"),
        ("extern __shared__ int s[];extern __shared__ int s[];", "TLS int (&s)[]INIT;"),
        ("namespace a { extern __shared__ T<1, 2> s[], t[]; }", "namespace a { TLS T<1, 2> (&s)[]INIT, (&t)[]INIT; }"),
        ("namespace a::b { extern __shared__ int s[]; }", "namespace a::b { TLS int (&s)[]INIT; }"),
        ('extern "C" { extern __shared__ int s[]; }', 'extern "C" { TLS int (&s)[]INIT; }'),
        ("{ extern __shared__ int s[] __attribute__((x(16))); }", "{ GONE int (&s)[] __attribute__((x(16)))INIT; }"),
        ("{ extern __shared__ int s[a[0]][2]; }", "{ GONE int (&s)[a[0]][2]INIT; }"),
        ("{ extern __shared__ S s; }", "{ GONE S (&s)INIT; }"),
        ("{ extern __shared__ int *s[]; }", "{ GONE int *(&s)[]INIT; }"),
        ("{ [[x]] extern __shared__ int s[]; }", "{ [[x]] GONE int (&s)[]INIT; }"),
        ("{ int n = 1'000; extern __shared__ int s[]; }", "{ int n = 1'000; GONE int (&s)[]INIT; }"),
        ("{ char c = '\"'; extern __shared__ int s[]; }", "{ char c = '\"'; GONE int (&s)[]INIT; }"),
        ('auto t = R"x(extern __shared__ int s[];)x"; auto u = "__shared__";', None),
        ("extern int x; int y;", None),
    ],
)
def test_rewriting_of_shared_memory(before: str, after: str | None) -> None:
    """Declarations become references or thread-local variables; everything else, every column and every line, stays."""
    if after is not None:
        after = after.replace("GONE", " " * len("extern __shared__"))
        after = after.replace("TLS", "static thread_local" + " " * len(" __shared__"))
        after = after.replace("INIT", " = podium_cpu::dynamic_shared()")
    assert shared_memory.rewrite_shared(before) == (before if after is None else after)


def test_rewriting_keeps_lines() -> None:
    """Declarations over several lines, with the preprocessor's own lines between, keep their line breaks."""
    text = '# 1 "a.cu"\nextern __shared__\n# 2 "b.cu"\nint\ns\n[];\nextern\n__shared__ int s[];\nint x;\n'
    result = shared_memory.rewrite_shared(text)
    assert result.count("\n") == text.count("\n")
    assert result.splitlines()[-1] == "int x;" and result.count("dynamic_shared") == 1


# ---- macros ----

COMMON_WORDS = ("T", "P", "size", "value", "first", "index", "mask", "lane", "status", "x", "i")
EVERY_HEADER = "".join(
    f"#include <{path.relative_to(DIALECT)}>\n" for path in sorted([*DIALECT.glob("*.h"), *DIALECT.glob("hip/*.h")])
)


@pytest.mark.parametrize("name", [*COMMON_WORDS, "N", "count", "data", "block", "thread", "result", "U", "type"])
def test_macros_do_not_reach_the_headers_of_the_dialect(name: str) -> None:
    """CAC-14: a macro of any name is the source's alone, though the dialect's headers use such names themselves."""
    source = f'{EVERY_HEADER}\nextern "C" __global__ void kernel_(int *p) {{ *p = {name}; }}'
    out = array.array("i", [0])
    code = compile_source(source, {"kernel_": "p: *i32"}, defines={name: "(40+2)"})
    assert run(code, "kernel_", out) == 0 and out[0] == 42


def test_macros_of_all_common_names_at_once() -> None:
    """CAC-14: types, numbers and nothing at all can be the values of macros, many together."""
    defines: dict[str, object] = dict.fromkeys(COMMON_WORDS, 1)
    defines |= {"T": "float", "P": "", "size": "sizeof(T)"}
    source = f'{EVERY_HEADER}\nextern "C" __global__ void kernel_(int *p) {{ P *p = size + value + lane; P }}'
    out = array.array("i", [0])
    code = compile_source(source, {"kernel_": "p: *i32"}, defines=defines)
    assert run(code, "kernel_", out) == 0 and out[0] == 6


@pytest.mark.parametrize(
    ("value", "means"), [("", 5), (None, 6), (True, 6), (1, 6), ("1", 6), (0, 5), (False, 7), ("-1", 4)]
)
def test_values_of_macros(value: object, means: int) -> None:
    """A macro of "" is there and empty, one of None or True is 1 as with -DQ, one of False is not there at all."""
    source = """
    #ifdef Q
    enum { q = 0 Q + 5 };
    #else
    enum { q = 7 };
    #endif
    """.replace("0 Q", "0 ZERO_OR_SIGN Q" if value == "" else "0 + (Q)" if value is not False else "0 Q")
    source = source.replace("ZERO_OR_SIGN", "")
    assert value_of("q", source, defines={"Q": value}) == means


def test_a_macro_keeps_the_lines_of_errors() -> None:
    """CC-08: macros, which stand in front of the source, do not move the lines that errors name."""
    error = refusal("__global__ void k(int *p)\n{\n  *p = nowhere + A;\n}\n", defines={"A": 1, "B": 2, "C": ""})
    assert next(each.line for each in error.diagnostics if each.severity == "error") == 3


# ---- loading what the cache has ----


def test_a_cached_library_that_does_not_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CAC-12: a whole cache entry whose library the system refuses is set aside, compiled again once, and works."""
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "cache"))
    _cache.reset_cache()
    try:
        driver = cpu.CpuDriver()
        compiled: list[Program] = []
        compile = cpu.CpuDriver.compile

        def counted(self: cpu.CpuDriver, program: Program, target: Target) -> ObjectCode:
            compiled.append(program)
            code: ObjectCode = compile(self, program, target)
            if len(compiled) == 1:  # of a machine with a library that this one has not
                damaged = code.code[:20] + bytes(40) + code.code[60:]
                return ObjectCode(damaged, code.format, code.target, code.entries, code.symbols, code.metadata)
            return code

        monkeypatch.setattr(cpu.CpuDriver, "compile", counted)
        source = "__global__ void k(int *p) { *p = 43; }"
        podium.kernel(source).compile(driver=driver)
        out = array.array("i", [0])
        launch = podium.kernel(source).binding(driver).get((1, 1))
        for _ in range(2):
            launch(out)
        assert out[0] == 43 and len(compiled) == 2
        assert len(list((tmp_path / "cache").rglob("quarantine/*.txt"))) == 1
        podium.kernel(source).binding(driver).get((1, 1))(out)
        assert len(compiled) == 2
        broken = podium.kernel(ObjectCode(b"\x7fELF no library", *_rest(podium.kernel(source).compile(driver=driver))))
        for _ in range(2):
            with pytest.raises(LoadError):
                broken.binding(driver).get((1, 1))(out)
        assert len(compiled) == 2 and len(list((tmp_path / "cache").rglob("quarantine/*.txt"))) == 1
    finally:
        _cache.reset_cache()


def _rest(code: ObjectCode) -> Any:
    return code.format, code.target, code.entries, code.symbols, code.metadata


# ---- the driver ----


def test_plugin_module_is_light() -> None:
    """PRF-05: the module that is loaded for every installed backend brings no driver and no compiler with it."""
    text = (
        "import sys, podium_cpu.plugin as plugin; assert plugin.PODIUM_API == 1;"
        "print([name for name in sys.modules if name in ('podium_cpu.driver', 'subprocess', 'numpy', 'torch')])"
    )
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_driver_describes_itself(driver: cpu.CpuDriver) -> None:
    """ACT-04, ACT-12: always active, at the lowest priority, with one device, one stream, and no GPU anywhere."""
    assert cpu.CpuDriver.inactive_reason() is None
    assert (cpu.CpuDriver.name, cpu.CpuDriver.priority, cpu.CpuDriver.host_memory, cpu.CpuDriver.fork_safe) == (
        "cpu",
        0,
        True,
        True,
    )
    (device,) = driver.devices()
    assert device.index == 0 and device.name and device.memory > 1 << 20
    assert device.target == driver.default_target() and device.target.warp_size == 32
    assert device.max_threads == 1024 and device.max_shared == 227 * 1024
    assert (driver.current_device(), driver.current_stream(0), driver.synchronize(0), driver.capturing(0, 0)) == (
        0,
        0,
        0,
        False,
    )


@pytest.mark.parametrize("size", [0, 1, 1000, 1 << 17, 3 << 20])
@pytest.mark.parametrize("alignment", [1, 64, 256, 1 << 16])
def test_buffers_are_aligned_and_zero(driver: cpu.CpuDriver, size: int, alignment: int) -> None:
    """SCR-01: the default allocator gives memory of every size, also none, with the alignment that was asked for."""
    one, two = driver.allocate(size, alignment, 0, 0), driver.allocate(size, alignment, 0, 0)
    assert one.ptr % max(alignment, 64) == 0 and one.size == size and one.ptr and one.ptr != two.ptr
    back, sevens = array.array("B", b"\1" * max(size, 1)), array.array("B", b"\7" * max(size, 1))
    driver.copy(back.buffer_info()[0], one.ptr, size, 0, 0)
    assert back.tobytes()[:size] == bytes(size)
    driver.copy(one.ptr, sevens.buffer_info()[0], size, 0, 0)
    driver.copy(back.buffer_info()[0], one.ptr, size, 0, 0)
    assert back.tobytes()[:size] == b"\7" * size
    driver.copy(back.buffer_info()[0], two.ptr, size, 0, 0)
    assert back.tobytes()[:size] == bytes(size)


def test_buffers_that_cannot_be(driver: cpu.CpuDriver) -> None:
    """More memory than there is, is an error that says how much was asked for, and how much is to be had."""
    with pytest.raises(OutOfResourcesError) as caught:
        driver.allocate(1 << 60, 64, 0, 0)
    assert caught.value.required == 1 << 60 and 0 < caught.value.limit < driver.devices()[0].memory
    with pytest.raises(ValueError, match="power of two"):
        driver.allocate(8, 3, 0, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_buffers_are_private_to_a_process(driver: cpu.CpuDriver) -> None:
    """ACT-06: after a fork, parent and child do not write into each other's buffers."""
    buffer = driver.allocate(1 << 20, 64, 0, 0)
    ones, seen = array.array("B", b"\1" * 8), array.array("B", bytes(8))
    child = os.fork()
    if child == 0:
        driver.copy(buffer.ptr, ones.buffer_info()[0], 8, 0, 0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    driver.copy(seen.buffer_info()[0], buffer.ptr, 8, 0, 0)
    assert seen.tobytes() == bytes(8)


def test_the_toolchain_has_a_new_name_when_the_rewriting_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAC-14: code that an older rewriting made is not found in the cache by a newer one of the same version."""
    toolchain = pytest.importorskip("podium_cpu.toolchain", reason="the CPU backend is not installed")
    folder = tmp_path / "podium_cpu"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(os.path.dirname(toolchain.__file__), folder, ignore=ignore)
    for name, path in (("_FOLDER", folder), ("INCLUDE", folder / "include"), ("RUNTIME", folder / "runtime")):
        monkeypatch.setattr(toolchain, name, str(path))
    digest = toolchain.headers_digest.__wrapped__
    digests = [digest(), digest()]
    for part in ("compiler.py", "regions/_plan.py", "include/podium_cpu/entry.h"):
        with open(folder / part, "a", encoding="utf-8") as file:
            file.write("\n")
        digests.append(digest())
    assert digests[0] == digests[1] and len(set(digests)) == 4


def test_code_for_exactly_one_processor_is_compiled_again_on_another(
    compiler: HostCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAC-21: what -march=native made elsewhere is not run from a shared cache, but compiled again."""
    source = 'extern "C" __global__ void native_code(float *a) { a[threadIdx.x] += 2.5f; }'
    monkeypatch.setattr(cpu, "processor_identity", lambda: "another processor")
    monkeypatch.setattr(cpu_compiler, "processor_identity", lambda: "another processor")
    with podium.use("cpu"):
        newer = podium.kernel(source, flags=["-march=native"])
        newer.warm_up()
        code = newer.compile()
        monkeypatch.undo()
        with pytest.raises(LoadError, match=r"=native for another processor.*compile it again"):
            cpu.CpuDriver().load(code, "native_code", 0)
        x = array.array("f", [1.0] * 4)
        podium.kernel(source, flags=["-march=native"])[1, 4](x)
    assert x.tolist() == [3.5] * 4
    assert "processor" not in podium.kernel(source).compile(driver=cpu.CpuDriver()).metadata
