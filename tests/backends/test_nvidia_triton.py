"""Kernels that Triton compiled. Triton is not needed: what it makes is a cubin, metadata and a signature.

The cubins here are compiled by NVRTC from kernels with the parameters that Triton's have. Where Triton is installed,
it compiles one itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nvidia_compile import compiled
from recording.cuda.library import build, compiler, environment

from podium.errors import LoadError, SourceError

import podium_nvidia

METADATA = {
    "name": "add",
    "target": {"backend": "cuda", "arch": 90, "warp_size": 32},
    "num_warps": 8,
    "num_ctas": 2,
    "shared": 1024,
    "launch_cooperative_grid": False,
    "launch_pdl": True,
    "global_scratch_size": 64,
    "global_scratch_align": 128,
    "profile_scratch_size": 0,
    "profile_scratch_align": 1,
    "tensordesc_meta": [],
}
SIGNATURE = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
ADD = 'extern "C" __global__ void add(const float *x, float *y, int n, char *global, char *profile) { *y = *x + n; }'

TEXT = """module {
  tt.func public @add(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %y: !tt.ptr<bf16, 1> loc("y"(#loc)),
      %n: i32 loc("n"(#loc)), %a: f32 loc("a"(#loc))) attributes {noinline = false} {
"""


def cubin(source: str = ADD) -> bytes:
    """Compile a kernel as Triton would: for the one architecture, with a C name."""
    return compiled(source, flags=["-arch=sm_90a"]).code


def kernel(
    data: bytes, signature: dict[Any, Any] = SIGNATURE, constants: dict[Any, Any] | None = None, **metadata: Any
) -> Any:
    """Make what Triton's compiler returns, as far as it counts."""
    folded = {(3,): 1024} if constants is None else constants
    return SimpleNamespace(
        asm={"cubin": data},
        metadata={**METADATA, **metadata},
        src=SimpleNamespace(signature=signature, constants=folded),
    )


def test_signature_target_and_launch_are_known_from_what_triton_made() -> None:
    """Parameters, block, cluster, shared and scratch memory come from the binary and the metadata."""
    made = podium_nvidia.triton_kernel(kernel(cubin()))
    assert str(made.signature) == "x: *fp32, y: *fp32, n: i32, BLOCK: constexpr" and made.name == "add"
    code = made.kernel.module.code
    assert str(code.target) == "nvidia:sm_90a:32"
    known = made.kernel.metadata
    assert (known["num_warps"], known["num_ctas"], known["shared"], known["dependent"]) == (8, 2, 1024, True)
    assert (known["global_scratch_size"], known["global_scratch_align"], known["profile_scratch_size"]) == (64, 128, 0)


@pytest.mark.parametrize("hidden", [0, 1, 2])
def test_scratch_pointers_are_those_that_the_binary_has(hidden: int) -> None:
    """Older versions of Triton append fewer hidden parameters, whatever their metadata says."""
    tail = ("", ", char *global", ", char *global, char *profile")[hidden]
    data = cubin(f'extern "C" __global__ void add(const float *x, float *y, int n{tail}) {{ *y = *x + n; }}')
    known = podium_nvidia.triton_kernel(kernel(data)).kernel.metadata
    assert ("global_scratch_size" in known, "profile_scratch_size" in known) == (hidden > 0, hidden > 1)


def test_constants_tuples_and_numbered_parameters() -> None:
    """Constants may be named or be index paths, parameters may be tuples, and sources may number them."""
    data = cubin('extern "C" __global__ void add(float *x, int n, long long m, char *g, char *p) { *x = n + m; }')
    signature = {"x": "*fp32", "t": ("i32", "i32", "i64"), "BLOCK": "i32"}
    made = podium_nvidia.triton_kernel(kernel(data, signature, {(1, 1): 1, "BLOCK": 64}))
    assert str(made.signature) == "x: *fp32, t.0: i32, t.1: constexpr, t.2: i64, BLOCK: constexpr"
    made = podium_nvidia.triton_kernel(kernel(data, {0: "*fp32", 1: "i32", 2: "i64"}, {}))
    assert made.signature.names == ("arg0", "arg1", "arg2")
    older = kernel(data, {"x": "*fp32", "n": "i32", "m": "i64"}, {"BLOCK": 64})
    older.src.fn = SimpleNamespace(arg_names=["x", "BLOCK", "n", "m"])
    assert str(podium_nvidia.triton_kernel(older).signature) == "x: *fp32, BLOCK: constexpr, n: i32, m: i64"


def test_tensor_descriptors_are_the_values_that_the_binary_takes() -> None:
    """A descriptor is a tensor map by value, sizes and strides; without TMA, the array and both twice."""
    parameters = "int s0, int s1, long long t0, long long t1, float *x, char *g, char *p"
    map_type = "struct alignas(64) Map { char bytes[128]; };"
    data = cubin(f'{map_type} extern "C" __global__ void add(Map map, {parameters}) {{ *x = map.bytes[0] + s1; }}')
    signature = {"d": "tensordesc<fp16[64, 32]>", "x": "*fp32"}
    described = [{"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [64, 32], "fp4_padded": False}]
    made = podium_nvidia.triton_kernel(kernel(data, signature, {}, tensordesc_meta=described))
    assert str(made.signature) == "d.0: opaque[128,64], d.1: i32, d.2: i32, d.3: i64, d.4: i64, x: *fp32"
    first = "float *d, long long a, long long b, long long c, long long e, bool nan"
    data = cubin(f'extern "C" __global__ void add({first}, {parameters}) {{ *x = *d + s1; }}')
    made = podium_nvidia.triton_kernel(kernel(data, signature, {}))
    assert [str(each) for each in made.signature.types] == "*fp16 i64 i64 i64 i64 i1 i32 i32 i64 i64 *fp32".split()


def test_files_of_tritons_cache_are_read(tmp_path: Path) -> None:
    """A cubin with its metadata beside it; types come from Triton's text there, or from the caller."""
    data = cubin('extern "C" __global__ void add(float *x, short *y, int n, float a, char *g, char *p) { *x = a + n; }')
    path = tmp_path / "add.cubin"
    path.write_bytes(data)
    with pytest.raises(LoadError, match=r"a kernel in Triton's cache is a \.cubin with a \.json beside it"):
        podium_nvidia.triton_kernel(path)
    (tmp_path / "add.json").write_text(json.dumps(METADATA))
    with pytest.raises(LoadError, match=r"without add\.ttir beside it, .* signature="):
        podium_nvidia.triton_kernel(path)
    given = podium_nvidia.triton_kernel(path, signature="x: *fp32, y: *bf16, n: u32, a: fp32")
    assert str(given.signature.types[2]) == "u32"
    (tmp_path / "add.ttir").write_text(TEXT)
    assert str(podium_nvidia.triton_kernel(str(path)).signature) == "x: *fp32, y: *bf16, n: i32, a: fp32"
    (tmp_path / "add.ttir").write_text("module {}")
    with pytest.raises(SourceError, match="there is no function add"):
        podium_nvidia.triton_kernel(path)


def test_what_triton_did_not_make_is_refused() -> None:
    """An object without a cubin, a signature that is not the binary's, and a kernel of another name."""
    with pytest.raises(LoadError, match="is not a kernel that Triton compiled for an NVIDIA GPU"):
        podium_nvidia.triton_kernel(SimpleNamespace(asm={"hsaco": b""}, metadata={}, src=None))
    with pytest.raises(LoadError, match="it has no cubin, metadata and src"):
        podium_nvidia.triton_kernel(SimpleNamespace(asm={"cubin": cubin()}, metadata={"name": "add"}, src=None))
    with pytest.raises(LoadError, match=r"binary have \[8, 8, 4, 8, 8\] bytes, .* \[8, 8, 8\]"):
        podium_nvidia.triton_kernel(kernel(cubin(), {**SIGNATURE, "n": "i64"}))
    with pytest.raises(LoadError, match="has no kernel 'sub'; it has: add"):
        podium_nvidia.triton_kernel(kernel(cubin(), name="sub"))
    with pytest.raises(LoadError, match="not a cubin"):
        podium_nvidia.triton_kernel(kernel(b"text"))


LAUNCH = """
import struct, sys
sys.path.insert(0, {tests!r})
import test_nvidia_triton as triton_tests
from recording.cuda.library import Recording
recording = Recording()
import podium, podium_nvidia
podium.set_active("nvidia")
x, y = podium.empty(4), podium.empty(4)
made = podium_nvidia.triton_kernel(triton_tests.kernel(triton_tests.cubin()))
for grid in (3, (3,), (3, 2), lambda arguments: (arguments["n"],)):
    made[grid](x, y, 3, 1024)
    launch = recording.last()
    assert launch.grid == (6, 2 if grid == (3, 2) else 1, 1), launch
    assert launch.block == (256, 1, 1) and launch.cluster == (2, 1, 1) and launch.shared == 1024, launch
    assert launch.parameters[:3] == (struct.pack("Q", x.ptr), struct.pack("Q", y.ptr), struct.pack("i", 3)), launch
    scratch, profile = (struct.unpack("Q", each)[0] for each in launch.parameters[3:])
    assert scratch and scratch % 128 == 0 and profile == 0, launch
made[2](x, y, n=5, BLOCK=1024)
assert recording.last().parameters[2] == struct.pack("i", 5)
source = 'extern "C" __global__ void add(float *x, int n, long long m, char *g, char *p) {{ *x = n + m; }}'
signature = {{"x": "*fp32", "t": ("i32", "i64")}}
nested = podium_nvidia.triton_kernel(triton_tests.kernel(triton_tests.cubin(source), signature, {{}}, num_ctas=1))
for call in (lambda: nested[4](x, (7, 8)), lambda: nested[4](x, t=(7, 8)), lambda: nested[4](t=(7, 8), x=x)):
    call()
    assert recording.last().parameters[:3] == (struct.pack("Q", x.ptr), struct.pack("i", 7), struct.pack("q", 8))
    assert recording.last().grid == (4, 1, 1)
print("passed")
"""


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler for the recording library")
@pytest.mark.parametrize("level", ["interpreted", "generated"])
def test_launches_are_tritons(level: str) -> None:
    """Grid in programs, block from the warps, cluster, shared memory, arguments, and scratch behind them."""
    program = LAUNCH.format(tests=str(Path(__file__).parent))
    variables = environment(build(), PODIUM_LAUNCHER=level)
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True)
    assert done.stdout.endswith("passed\n"), done.stdout + done.stderr


REAL = """
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
import podium_nvidia

@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)

source = ASTSource(fn=add, signature={"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}, constexprs={"BLOCK": 128})
made = podium_nvidia.triton_kernel(triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2}))
assert str(made.signature) == "x: *fp32, y: *fp32, n: i32, BLOCK: constexpr", made.signature
assert made.kernel.metadata["num_warps"] == 2
from pathlib import Path
(file,) = Path(triton.knobs.cache.dir).glob("*/add.cubin")
assert str(podium_nvidia.triton_kernel(file).signature) == "x: *fp32, y: *fp32, n: i32"
print("passed")
"""


def test_a_kernel_that_triton_compiles_here(tmp_path: Path) -> None:
    """Triton itself, where it is installed: from its object, and from its cache folder."""
    pytest.importorskip("triton", reason="Triton is not installed")
    program = tmp_path / "program.py"
    program.write_text(REAL)
    variables = environment(None, TRITON_CACHE_DIR=str(tmp_path / "cache"))
    done = subprocess.run([sys.executable, str(program)], env=variables, capture_output=True, text=True)
    assert done.stdout.endswith("passed\n"), done.stdout + done.stderr
