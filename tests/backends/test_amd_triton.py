"""Kernels that Triton compiled for AMD GPUs. Triton is not needed: what it makes is a code object, metadata, a signature.

The code objects here are made by hand, with the parameters that Triton's have. Where Triton is installed, it compiles
one itself.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recording.hip.code_object import POINTER, Argument, Kernel, code_object
from recording.hip.isolation import STAND_INS
from recording.hip.machine import StandIn

import podium
from podium.errors import LoadError, SourceError

podium_amd = pytest.importorskip("podium_amd", reason="podium-amd is not installed")
pytest.importorskip("rocm.bindings.hip", reason="hip-python is not installed")

METADATA = {
    "name": "add",
    "target": {"backend": "hip", "arch": "gfx90a", "warp_size": 64},
    "num_warps": 4,
    "num_ctas": 1,
    "shared": 1024,
    "launch_cooperative_grid": False,
    "global_scratch_size": 64,
    "global_scratch_align": 128,
    "profile_scratch_size": 0,
    "profile_scratch_align": 1,
}
SIGNATURE = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
ADD = [POINTER, POINTER, Argument(4), POINTER, POINTER]

TEXT = """module {
  tt.func public @add(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %y: !tt.ptr<bf16, 1> loc("y"(#loc)),
      %n: i32 loc("n"(#loc)), %a: f32 loc("a"(#loc))) attributes {noinline = false} {
"""


def hsaco(arguments: list[Argument] = ADD, arch: str = "gfx90a") -> bytes:
    """Make a code object of a kernel with these arguments."""
    return code_object([Kernel("add", arguments)], arch)


def kernel(
    data: bytes, signature: dict[Any, Any] = SIGNATURE, constants: dict[Any, Any] | None = None, **metadata: Any
) -> Any:
    """Make what Triton's compiler returns, as far as it counts."""
    folded = {(3,): 1024} if constants is None else constants
    return SimpleNamespace(
        asm={"hsaco": data},
        metadata={**METADATA, **metadata},
        src=SimpleNamespace(signature=signature, constants=folded),
    )


@pytest.fixture(params=STAND_INS[-1:])
def hip_machine(request: pytest.FixtureRequest) -> str:
    """The newest stand-in alone: here nothing depends on the version."""
    name: str = request.param
    return name


def test_signature_target_and_launch_are_known_from_what_triton_made() -> None:
    """Parameters, block, shared and scratch memory come from the code object and the metadata."""
    made = podium_amd.triton_kernel(kernel(hsaco()))
    assert str(made.signature) == "x: *fp32, y: *fp32, n: i32, BLOCK: constexpr" and made.name == "add"
    assert str(made.kernel.module.code.target) == "amd:gfx90a:64"
    known = made.kernel.metadata
    assert (known["num_warps"], known["shared"], known["cooperative"]) == (4, 1024, False)
    assert (known["global_scratch_size"], known["global_scratch_align"], known["profile_scratch_size"]) == (64, 128, 0)


@pytest.mark.parametrize("hidden", [0, 1, 2])
def test_scratch_pointers_are_those_that_the_binary_has(hidden: int) -> None:
    """Older versions of Triton append fewer hidden parameters, whatever their metadata says."""
    known = podium_amd.triton_kernel(kernel(hsaco(ADD[: 3 + hidden]))).kernel.metadata
    assert ("global_scratch_size" in known, "profile_scratch_size" in known) == (hidden > 0, hidden > 1)


def test_constants_tuples_and_descriptors() -> None:
    """Constants may be index paths, parameters may be tuples, and a tensor descriptor stands for its array and sizes."""
    data = hsaco([POINTER, Argument(4), Argument(8), POINTER, POINTER])
    made = podium_amd.triton_kernel(kernel(data, {"x": "*fp32", "t": ("i32", "i32", "i64")}, {(1, 1): 1}))
    assert str(made.signature) == "x: *fp32, t.0: i32, t.1: constexpr, t.2: i64"
    first = [POINTER, *[Argument(8)] * 4, Argument(1), Argument(4), Argument(4), Argument(8), Argument(8)]
    signature = {"d": "tensordesc<fp16[64, 32]>", "x": "*fp32"}
    made = podium_amd.triton_kernel(kernel(hsaco([*first, POINTER]), signature, {}))
    assert [str(each) for each in made.signature.types] == "*fp16 i64 i64 i64 i64 i1 i32 i32 i64 i64 *fp32".split()
    with pytest.raises(LoadError, match="made by hardware"):
        podium_amd.triton_kernel(kernel(hsaco(), signature, {}, tensordesc_meta=[{"block_size": [64, 32]}]))


def test_files_of_tritons_cache_are_read(tmp_path: Path) -> None:
    """A code object with its metadata beside it; types come from Triton's text there, or from the caller."""
    path = tmp_path / "add.hsaco"
    path.write_bytes(hsaco([POINTER, POINTER, Argument(4), Argument(4), POINTER, POINTER]))
    with pytest.raises(LoadError, match=r"a kernel in Triton's cache is a \.hsaco with a \.json beside it"):
        podium_amd.triton_kernel(path)
    (tmp_path / "add.json").write_text(json.dumps(METADATA))
    with pytest.raises(LoadError, match=r"without add\.ttir beside it, .* signature="):
        podium_amd.triton_kernel(path)
    given = podium_amd.triton_kernel(path, signature="x: *fp32, y: *bf16, n: u32, a: fp32")
    assert str(given.signature.types[2]) == "u32"
    (tmp_path / "add.ttir").write_text(TEXT)
    assert str(podium_amd.triton_kernel(str(path)).signature) == "x: *fp32, y: *bf16, n: i32, a: fp32"
    (tmp_path / "add.ttir").write_text("module {}")
    with pytest.raises(SourceError, match="there is no function add"):
        podium_amd.triton_kernel(path)


def test_what_triton_did_not_make_is_refused() -> None:
    """An object without a code object, a signature that is not the binary's, clusters, and a kernel of another name."""
    with pytest.raises(LoadError, match="is not a kernel that Triton compiled for an AMD GPU"):
        podium_amd.triton_kernel(SimpleNamespace(asm={"cubin": b""}, metadata={}, src=None))
    with pytest.raises(LoadError, match="'n' .* the signature says i64 of 8 bytes, the code has 4 bytes"):
        podium_amd.triton_kernel(kernel(hsaco(), {**SIGNATURE, "n": "i64"}))
    with pytest.raises(LoadError, match="its signature has 3 parameters, the code has 6; at most two pointers"):
        podium_amd.triton_kernel(kernel(hsaco([*ADD, POINTER])))
    with pytest.raises(LoadError, match="has no kernel 'sub'; it has: add"):
        podium_amd.triton_kernel(kernel(hsaco(), name="sub"))
    with pytest.raises(LoadError, match="clusters of blocks"):
        podium_amd.triton_kernel(kernel(hsaco(), num_ctas=2))
    with pytest.raises(LoadError, match="not a code object"):
        podium_amd.triton_kernel(kernel(b"text"))


def test_launches_are_tritons(hip: StandIn, level: str) -> None:
    """Grid in programs, block from the warps, shared memory, arguments, and scratch behind them."""
    x, y = podium.empty(4), podium.empty(4)
    made = podium_amd.triton_kernel(kernel(hsaco()))
    for grid in (3, (3,), (3, 2), lambda arguments: (arguments["n"],)):
        made[grid](x, y, 3, 1024)
        launch = hip.recording.last()
        assert (launch.grid, launch.block, launch.shared) == ((3, 2 if grid == (3, 2) else 1, 1), (256, 1, 1), 1024)
        assert launch.parameters[:3] == (struct.pack("Q", x.ptr), struct.pack("Q", y.ptr), struct.pack("i", 3))
        scratch, profile = (struct.unpack("Q", each)[0] for each in launch.parameters[3:])
        assert scratch and scratch % 128 == 0 and profile == 0
    made[2](x, y, n=5, BLOCK=1024)
    assert hip.recording.last().parameters[2] == struct.pack("i", 5)
    nested = podium_amd.triton_kernel(kernel(hsaco([POINTER, Argument(4)]), {"x": "*fp32", "t": ("i32",)}, {}))
    nested[4](x, t=(7,))
    assert hip.recording.last().parameters == (struct.pack("Q", x.ptr), struct.pack("i", 7))


REAL = """
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
import podium_amd

@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)

signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
for arch, warp_size in (("gfx942", 64), ("gfx1100", 32)):
    source = ASTSource(fn=add, signature=signature, constexprs={"BLOCK": 128})
    compiled = triton.compile(source, target=GPUTarget("hip", arch, warp_size), options={"num_warps": 2})
    made = podium_amd.triton_kernel(compiled)
    assert str(made.signature) == "x: *fp32, y: *fp32, n: i32, BLOCK: constexpr", made.signature
    assert str(made.kernel.module.code.target) == f"amd:{arch}:{warp_size}", made.kernel.module.code.target
    assert made.kernel.metadata["num_warps"] == 2
from pathlib import Path
for file in Path(triton.knobs.cache.dir).glob("*/add.hsaco"):
    assert str(podium_amd.triton_kernel(file).signature) == "x: *fp32, y: *fp32, n: i32"
print("passed")
"""


def test_a_kernel_that_triton_compiles_here(tmp_path: Path) -> None:
    """Triton itself, where it is installed: for warps of both sizes, from its object, and from its cache folder."""
    pytest.importorskip("triton", reason="Triton is not installed")
    program = tmp_path / "program.py"
    program.write_text(REAL)
    variables = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(program)], env=variables, capture_output=True, text=True)
    assert done.stdout.endswith("passed\n"), done.stdout + done.stderr
