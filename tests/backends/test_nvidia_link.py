"""Linking by nvJitLink, PTX, and binaries of other tools; all real, and no GPU is needed."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from nvidia_compile import ADD, compiled

import podium
from podium import ObjectCode, Target
from podium.backend import Entry, Options, Program, Signature
from podium.errors import CompileError, LoadError

import podium_nvidia
from podium_nvidia import toolkit
from podium_nvidia.binaries import kind_of
from podium_nvidia.compiler import compile_program
from podium_nvidia.cubin import Cubin
from podium_nvidia.cubin_check import _sections

if toolkit.find_library("nvJitLink") is None:
    pytest.skip("nvJitLink is not installed", allow_module_level=True)

H200 = Target("nvidia", "sm_90", 32)
CALLER = (
    "extern __device__ float twice(float);\n__global__ void apply(float *x) { x[threadIdx.x] = twice(x[threadIdx.x]); }"
)
CALLED = "__device__ float twice(float x) { return x + x; }\n__global__ void unused(int *p) { *p = 1; }"


def ptx(source: str, name: str, signature: str, target: Target = H200, **options: object) -> ObjectCode:
    """Compile a kernel of PTX."""
    wanted = Program(source, "ptx", (Entry(name, Signature.parse(signature)),), Options.of(**options))
    return compile_program(wanted, target)


@pytest.mark.parametrize(("flag", "kind"), [("-dlto", "ltoir"), ("-rdc=true", "object")])
def test_code_of_two_sources_becomes_one_cubin(flag: str, kind: str, tmp_path: Path) -> None:
    """A kernel calls a function of another source; object code, bytes and files are inputs, and names stay."""
    caller, called = compiled(CALLER, flags=[flag]), compiled(CALLED, flags=[flag])
    assert caller.format == kind == kind_of(caller.code)
    linked = podium_nvidia.link([caller, called])
    assert (linked.format, linked.target) == ("cubin", H200)
    assert [each.name for each in linked.entries] == ["apply", "unused"]
    assert {each.symbol for each in Cubin(linked.code).kernels} == {linked.symbol("apply"), linked.symbol("unused")}
    file = tmp_path / "called"
    file.write_bytes(called.code)
    again = podium_nvidia.link([caller.code, file], kernels={"apply": "x: *fp32"}, target="sm_90", max_registers=64)
    assert [each.name for each in again.entries] == ["apply"]
    assert podium.kernel(again).name == "apply"


def test_what_nvcc_made_is_linked(tmp_path: Path) -> None:
    """Fat binaries, also with LTO-IR in them, PTX, object files and static libraries of nvcc are inputs."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    (tmp_path / "called.cu").write_text(CALLED.splitlines()[0])
    made = {
        "called.fatbin": ["-fatbin", "-gencode=arch=compute_90,code=lto_90"],
        "called.ptx": ["-ptx", "-arch=sm_90"],
        "called.o": ["-c", "-arch=sm_90"],
        "libcalled.a": ["-lib", "-arch=sm_90"],
    }
    caller = compiled(CALLER, flags=["-rdc=true"])
    for name, flags in made.items():
        command = [nvcc, *flags, "-rdc=true", "-o", name, "called.cu"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"nvcc does not compile: {done.stderr.strip()}")
        linked = podium_nvidia.link([caller, tmp_path / name])
        assert Cubin(linked.code).kernel(linked.symbol("apply")) is not None


def test_errors_of_linking_say_what_is_missing() -> None:
    """A function that no input has, a kernel that is not there, bytes that are nothing, and a wrong signature."""
    caller, called = compiled(CALLER, flags=["-dlto"]), compiled(CALLED, flags=["-dlto"])
    with pytest.raises(CompileError, match=r"(?s)twice.*none defines it") as caught:
        podium_nvidia.link([caller])
    assert caught.value.log
    with pytest.raises(LoadError, match="has no kernel 'other'; it has: .*apply"):
        podium_nvidia.link([caller, called], kernels={"other": ""})
    with pytest.raises(LoadError, match=r"input 1 of the link\) is neither"):
        podium_nvidia.link([caller, b"nothing"])
    with pytest.raises(CompileError, match="its signature has 2 parameters, the code has 1"):
        podium_nvidia.link([caller.code, called.code], kernels={"apply": "*fp32, i32"}, target="sm_90")
    with pytest.raises(CompileError, match="nvJitLink refuses -arch=sm_90 -lto -nonsense"):
        podium_nvidia.link([caller, called], flags=["-nonsense"])
    with pytest.raises(TypeError, match="takes a list"):
        podium_nvidia.link(caller.code)
    with pytest.raises(TypeError, match="one at least"):
        podium_nvidia.link([])


def test_damaged_inputs_do_not_end_the_process() -> None:
    """nvJitLink ends the process that it is in for LTO-IR and relocatable code that are damaged; not this one, and the
    error names the inputs with their sizes."""
    ended = []
    for flag, places in (("-dlto", (16, 1792)), ("-rdc=true", (936, 1616))):
        caller, called = compiled(CALLER, flags=[flag]), compiled(CALLED, flags=[flag])
        for place in places:
            damaged = caller.code[:place] + b"\xff" * 4 + caller.code[place + 4 :]
            said = _refusal([called, damaged])
            if "the process of nvJitLink ended (signal SIG" in said:
                ended.append(f"input 1 ({caller.format}, {len(damaged)} bytes)" in said)
    assert ended and all(ended)


def _refusal(inputs: list[ObjectCode | bytes]) -> str:
    """Return what the error says, if there is one: of some damage another version may know nothing."""
    try:
        podium_nvidia.link(inputs)
    except CompileError as error:
        return str(error)
    return ""


def test_ptx_becomes_machine_code_of_the_target() -> None:
    """PTX is assembled, so that the driver has nothing left to do; a kernel may be named as in C++."""
    text = compiled(ADD, flags=["-arch=compute_80"]).code.decode()
    code = ptx(text, "add", "x: *fp32, n: i32")
    assert (code.format, code.target, code.symbols) == ("cubin", H200, {"add": "_Z3addPfi"})
    assert ptx(text, "_Z3addPfi", "x: *fp32, n: i32", line_info=True).symbols == {}
    newer = ptx(text, "add", "x: *fp32, n: i32", Target("nvidia", "sm_999", 32))
    assert newer.format == "ptx" and newer.code == text.encode()


def test_errors_of_ptx_say_which_side_is_too_old() -> None:
    """PTX for a newer architecture, of a newer toolkit, without the kernel, and no PTX at all (RTC-03)."""
    text = compiled(ADD, flags=["-arch=compute_90"]).code.decode()
    signature = "x: *fp32, n: i32"
    with pytest.raises(CompileError, match="The PTX is for a newer architecture than the target"):
        ptx(text, "add", signature, Target("nvidia", "sm_80", 32))
    version = text[text.index(".version") :].splitlines()[0]
    with pytest.raises(CompileError, match="The PTX is of a newer toolkit than nvJitLink .* install a newer nvJitLink"):
        ptx(text.replace(version, ".version 99.0"), "add", signature)
    with pytest.raises(CompileError, match="has no kernel 'sub'; it has: _Z3addPfi"):
        ptx(text, "sub", signature)
    with pytest.raises(CompileError, match="its signature has 1 parameters, the code has 2"):
        ptx(text, "add", "x: *fp32")
    with pytest.raises(CompileError, match="is not PTX"):
        ptx(ADD, "add", signature)


def test_binaries_of_other_tools_are_object_code(tmp_path: Path) -> None:
    """A cubin and PTX, as bytes or in a file, with names as in C++ or symbols; target and parameters are read from it."""
    made = compiled("namespace lib { __global__ void add(float *x, int n) { *x += n; } }", arch="sm_86")
    file = tmp_path / "kernels.cubin"
    file.write_bytes(made.code)
    for source, name in ((made.code, "lib::add"), (file, "_ZN3lib3addEPfi"), (str(file), "lib::add")):
        code = podium_nvidia.object_code(source, {name: "x: *fp32, n: i32"})
        assert (code.format, code.target.arch, code.symbol(name)) == ("cubin", "sm_86", "_ZN3lib3addEPfi")
        assert podium.kernel(code).signature.names == ("x", "n")
    text = compiled(ADD, flags=["-arch=compute_80"]).code
    code = podium_nvidia.object_code(text, {"add": "x: *fp32, n: i32"})
    assert (code.format, code.target.arch, code.symbols) == ("ptx", "compute_80", {"add": "_Z3addPfi"})
    with pytest.raises(
        LoadError, match="parameter 'n' \\(number 2\\): the signature says i64 of 8 bytes, the code has 4"
    ):
        podium_nvidia.object_code(file, {"lib::add": "x: *fp32, n: i64"})
    with pytest.raises(LoadError, match="has no kernel 'add'; it has: _ZN3lib3addEPfi"):
        podium_nvidia.object_code(file, {"add": "x: *fp32, n: i32"})
    with pytest.raises(LoadError, match="neither a cubin, nor PTX, nor a fat binary"):
        podium_nvidia.object_code(b"text", {"add": ""})
    with pytest.raises(LoadError, match="is to be linked before it can be loaded"):
        podium_nvidia.object_code(compiled(ADD, flags=["-dlto"]).code, {"add": ""})


def test_a_fat_binary_is_taken_for_the_target_that_is_given() -> None:
    """A fat binary has code for several architectures, so its target is said; names are symbols."""
    data = b"\x50\xed\x55\xba" + bytes(60)
    code = podium_nvidia.object_code(data, {"_Z3addPfi": "x: *fp32, n: i32"}, target="sm_90")
    assert (code.format, code.target) == ("fatbin", H200)


def _places(cubin: bytes) -> list[tuple[int, int]]:
    """Give places in a cubin and bytes for them that lead out of it: in its table of sections, attributes and notes."""
    (table,) = struct.unpack_from("<Q", cubin, 40)
    sections = {each.name: (index, each) for index, each in enumerate(_sections(cubin))}
    (strings, _), (symbols, _), (memory, _) = (
        sections[key] for key in (".strtab", ".symtab", ".nv.constant0._Z3addPfi")
    )
    info, note = sections[".nv.info"][1], sections[".note.nv.tkinfo"][1]
    fields = [(strings, 0), (strings, 4), (symbols, 40), (symbols, 41), (symbols, 56), (memory, 44)]
    places = [(table + 64 * section + field, 0x7F) for section, field in fields]
    return [*places, (info.offset + 6, 1), (note.offset + 45, 0x7F), (note.offset + 5, 0x7F)]


def test_a_damaged_cubin_is_an_error() -> None:
    """Bytes that only begin like a cubin do not get further."""
    whole = compiled(ADD).code
    for end in (70, 700, len(whole) // 2):
        with pytest.raises(ValueError, match="damaged"):
            assert Cubin(whole[:end]).kernels is None
    with pytest.raises(ValueError, match="not a cubin"):
        Cubin(b"\x7fELF")
    for at, value in _places(whole):  # each of them ended the process of an H200's driver
        with pytest.raises(LoadError, match="The binary cannot be read: the cubin is damaged"):
            podium_nvidia.object_code(whole[:at] + bytes([value]) + whole[at + 1 :], {"add": "x: *fp32, n: i32"})
    for data in (whole[:700], whole[:40] + b"\xff" * 8 + whole[48:], whole[:62] + b"\xff\xff" + whole[64:]):
        with pytest.raises(LoadError, match="The binary cannot be read: the cubin is damaged"):
            podium_nvidia.object_code(data, {"add": "x: *fp32, n: i32"})
