"""Compiled, linked, foreign and Triton's code on a real NVIDIA GPU: what it computes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nvidia_compile import ADD

import podium
from podium import Target
from podium.backend import Entry, Program, Signature
from podium.errors import LoadError

import podium_nvidia
from podium_nvidia.arch import Arch
from podium_nvidia.compiler import compile_program
from podium_nvidia.driver import NvidiaDriver

pytestmark = pytest.mark.gpu

SIGNATURE = "x: *fp32, n: i32"


def added(kernel: podium.Kernel) -> list[float]:
    """Launch the kernel that adds 3 to each of four numbers."""
    x = podium.asarray([1.0, 2.0, 3.0, 4.0], "fp32")
    kernel[1, 4](x, 3)
    return x.tolist()


def number(gpu: NvidiaDriver) -> int:
    """Return the architecture of the device, such as 90."""
    return Arch.parse(gpu.default_target().arch).number


def test_code_that_the_driver_finishes(gpu: NvidiaDriver, level: str) -> None:
    """PTX of an older architecture runs, given by a flag, as a language, and as bytes (RTC-04)."""
    kernel = podium.kernel(ADD, flags=["-arch=compute_75"])
    assert kernel.compile().format == "ptx" and added(kernel) == [4.0, 5.0, 6.0, 7.0]
    text = kernel.compile().code
    assert added(podium.kernel(text.decode(), "add", signature=SIGNATURE, language="ptx")) == [4.0, 5.0, 6.0, 7.0]
    assert added(podium.kernel(podium_nvidia.object_code(text, {"add": SIGNATURE}))) == [4.0, 5.0, 6.0, 7.0]
    newer = Program(text.decode(), "ptx", (Entry("add", Signature.parse(SIGNATURE)),))
    left = compile_program(newer, Target("nvidia", "sm_999", 32))  # as with a linker older than the device
    assert left.format == "ptx"
    assert added(podium.kernel(podium_nvidia.object_code(left.code, {"add": SIGNATURE}))) == [4.0, 5.0, 6.0, 7.0]


def test_code_of_an_architecture_alone_and_of_its_family(gpu: NvidiaDriver, level: str) -> None:
    """Code with the letter a runs on its own device, and with the letter f on its family's."""
    device = number(gpu)
    if device < 90:
        pytest.skip(f"letters come with sm_90; this is sm_{device}")
    for letter in ("a", *("f" if device >= 100 else "")):
        kernel = podium.kernel(ADD, flags=[f"-arch=sm_{device}{letter}"])
        assert kernel.compile().target.arch == f"sm_{device}{letter}"
        assert added(kernel) == [4.0, 5.0, 6.0, 7.0]


def test_a_cubin_of_another_tool(gpu: NvidiaDriver, level: str, tmp_path: Path) -> None:
    """A cubin in a file is launched by its symbol and by its name in C++."""
    file = tmp_path / "add.cubin"
    file.write_bytes(podium.kernel(ADD).compile().code)
    for name in ("add", "_Z3addPfi"):
        assert added(podium.kernel(podium_nvidia.object_code(file, {name: SIGNATURE}))) == [4.0, 5.0, 6.0, 7.0]


def test_a_fat_binary_of_nvcc(gpu: NvidiaDriver, level: str, tmp_path: Path) -> None:
    """A fat binary has code for several architectures, and the driver takes the device's; symbols name its kernels."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    (tmp_path / "add.cu").write_text(ADD)
    codes = ["-gencode=arch=compute_80,code=sm_80", f"-gencode=arch=compute_80,code=[sm_{number(gpu)},compute_80]"]
    command = [nvcc, "-fatbin", *codes, "-o", str(tmp_path / "add.fatbin"), str(tmp_path / "add.cu")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"nvcc does not compile: {done.stderr.strip().splitlines()[-1]}")
    code = podium_nvidia.object_code(tmp_path / "add.fatbin", {"_Z3addPfi": SIGNATURE})
    assert (code.format, code.target) == ("fatbin", gpu.default_target())
    assert added(podium.kernel(code)) == [4.0, 5.0, 6.0, 7.0]


@pytest.mark.parametrize("flag", ["-dlto", "-rdc=true"])
def test_linked_code(gpu: NvidiaDriver, level: str, flag: str) -> None:
    """Two sources, linked: a kernel of one calls a function of the other, and a variable is shared."""
    one = podium.kernel(
        "extern __device__ float step(float, int);\n"
        "__global__ void add(float *x, int n) { x[threadIdx.x] = step(x[threadIdx.x], n); }",
        flags=[flag],
    )
    other = podium.module(
        "__device__ int calls;\n"
        "__device__ float step(float x, int n) { atomicAdd(&calls, 1); return x + n; }\n"
        "__global__ void count(int *out) { *out = calls; }",
        flags=[flag],
    )["count"]
    module = podium.module(podium_nvidia.link([one.compile(), other.compile()]))
    assert added(module["add"]) == [4.0, 5.0, 6.0, 7.0]
    out = podium.empty(1, "i32")
    module["count"][1, 1](out)
    assert out.tolist() == [4]
    with pytest.raises(LoadError, match=r"is to be linked first: podium_nvidia\.link"):
        one.load()


def test_headers_run(gpu: NvidiaDriver, level: str) -> None:
    """Half floats, cooperative groups, CUB and the C++ library compute what they should."""
    source = """
    #include <cuda_fp16.h>
    #include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    #include <cub/cub.cuh>
    #include <algorithm>
    #include <cmath>
    namespace cg = cooperative_groups;
    __global__ void sums(float *out) {
      auto warp = cg::tiled_partition<32>(cg::this_thread_block());
      float mine = threadIdx.x;
      float by_groups = cg::reduce(warp, mine, cg::plus<float>());
      using Sum = cub::BlockReduce<float, 32>;
      __shared__ typename Sum::TempStorage room;
      float by_cub = Sum(room).Sum(mine);
      if (threadIdx.x == 0) {
        out[0] = by_groups;
        out[1] = by_cub;
        out[2] = __half2float(__hadd(__float2half(1.5f), __float2half(2.0f)));
        out[3] = std::max(std::sqrt(16.0f), 1.0f);
      }
    }
    """
    out = podium.empty(4)
    podium.kernel(source)[1, 32](out)
    assert out.tolist() == [496.0, 496.0, 3.5, 4.0]


def test_variables_of_every_kind_have_addresses(gpu: NvidiaDriver, level: str) -> None:
    """Global, constant, static and managed variables, in namespaces, are read and written by their names."""
    module = podium.module(
        """
        __device__ int table[4] = {1, 2, 3, 4};
        static __constant__ float own = 2;
        namespace lib { __managed__ double shared_with_host = 5; }
        __global__ void gather(double *out) {
          out[0] = table[threadIdx.x] * own + lib::shared_with_host;
          lib::shared_with_host = 7;
        }
        """
    )
    module.variable("table").copy_from([10, 0, 0, 0])
    module.variable("own").copy_from(3.0)
    out = podium.empty(1, "fp64")
    module["gather"][1, 1](out)
    assert out.tolist() == [35.0]
    podium.synchronize()
    assert module.variable("lib::shared_with_host").tolist() == 7.0


def test_a_struct_with_large_alignment_is_passed(gpu: NvidiaDriver, level: str) -> None:
    """A parameter that is aligned to 64 bytes, behind others, arrives whole."""
    source = """
    struct alignas(64) Block { int values[32]; };
    __global__ void pick(int *out, char c, Block block, int last) { out[0] = block.values[31] + c + last; }
    """
    block = (ctypes.c_int * 32)(*range(32))
    out = podium.empty(1, "i32")
    podium.kernel(source)[1, 1](out, 100, bytes(block), 1000)
    assert out.tolist() == [1131]


TRITON = """
import torch
import triton
import triton.language as tl
import podium, podium_nvidia

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)

@triton.jit
def scratch(x, out, n: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[n, n], strides=[n, 1], block_shape=[32, 32])
    target = tl.make_tensor_descriptor(out, shape=[n, n], strides=[n, 1], block_shape=[32, 32])
    i, j = tl.program_id(0) * 32, tl.program_id(1) * 32
    target.store([i, j], source.load([i, j]) + 1)

@triton.jit
def described(source, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK
    tile = source.load([i, 0])
    at = (i + tl.arange(0, BLOCK))[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + at, tile * n)

@triton.jit
def nested(pair, out):
    tl.store(out, tl.load(pair[0]) + pair[1])

podium.set_active("nvidia")
n = 10_007
x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
for warps in (1, 4, 8):
    out = torch.zeros(n, device="cuda")
    compiled = add.warmup(x, y, out, n, BLOCK=256, num_warps=warps, grid=(1,))
    made = podium_nvidia.triton_kernel(compiled)
    made[lambda arguments: (triton.cdiv(arguments["n"], 256),)](x, y, out, n, 256)
    assert torch.equal(out, x + y), warps
    out.zero_()
    made[triton.cdiv(n, 256)](x, y, out, n=n, BLOCK=256)
    assert torch.equal(out, x + y), warps
print("add")

if torch.cuda.get_device_capability()[0] >= 9:
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    x = torch.randn(128, 128, device="cuda")
    out = torch.zeros_like(x)
    made = podium_nvidia.triton_kernel(scratch.warmup(x, out, 128, grid=(1,)))
    assert made.kernel.metadata["global_scratch_size"] > 0
    for _ in range(3):
        out.zero_()
        made[4, 4](x, out, 128)
        assert torch.equal(out, x + 1)
    print("scratch")
    from triton.tools.tensor_descriptor import TensorDescriptor
    x = torch.randn(256, 64, device="cuda", dtype=torch.float16)
    out = torch.zeros_like(x)
    descriptor = TensorDescriptor.from_tensor(x, [64, 64])
    made = podium_nvidia.triton_kernel(described.warmup(descriptor, out, 3, BLOCK=64, grid=(4,)))
    made[4](descriptor, out, 3, 64)
    assert torch.equal(out, x * 3)
    print("described")
    out = torch.zeros(n, device="cuda")
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    made = podium_nvidia.triton_kernel(add.warmup(x, y, out, n, BLOCK=256, num_ctas=2, grid=(1,)))
    made[triton.cdiv(n, 256)](x, y, out, n, 256)
    assert torch.equal(out, x + y)
    print("clusters")
x, out = torch.ones(1, device="cuda"), torch.zeros(1, device="cuda")
made = podium_nvidia.triton_kernel(nested.warmup((x, 5), out, grid=(1,)))
made[1]((x, 5), out)
assert out.item() == 6
print("passed")
"""


@pytest.mark.parametrize("which", ["interpreted", "generated"])
def test_kernels_of_triton(gpu: NvidiaDriver, which: str, tmp_path: Path) -> None:
    """Triton compiles, podium launches: blocks, scratch memory, tensor descriptors, clusters and tuples."""
    pytest.importorskip("triton", reason="Triton is not installed")
    pytest.importorskip("torch", reason="torch is not installed")
    program = tmp_path / "program.py"
    program.write_text(TRITON)
    variables = {**os.environ, "PODIUM_LAUNCHER": which, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(program)], env=variables, capture_output=True, text=True)
    assert done.stdout.endswith("passed\n"), done.stdout + done.stderr
