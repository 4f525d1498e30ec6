"""Kernels that Triton compiled, read and launched for any device: what backends make their `triton_kernel` of."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from podium.errors import LoadError, SourceError
from podium.testing import FakeArray, FakeDriver
from podium.triton import TritonBinary, TritonKernel

METADATA = {"name": "add", "num_warps": 2, "num_ctas": 2, "shared": 64, "launch_pdl": True, "global_scratch_size": 32}
DESCRIBED = {"swizzle": 1}
TEXT = 'tt.func public @add(%x: !tt.ptr<f32> loc("x"), %d: !tt.tensordesc<tensor<8x8xf16>>, %n: i64) attributes {}'


def compiled(signature: Any, constants: Any = (), **metadata: Any) -> Any:
    """Make what Triton's compiler returns for a device whose binaries it calls "bin"."""
    source = SimpleNamespace(signature=signature, constants=dict(constants))
    return SimpleNamespace(asm={"bin": b"code"}, metadata={**METADATA, **metadata}, src=source)


def read(given: Any, **options: Any) -> TritonBinary:
    return TritonBinary.read(given, format="bin", device="a fake device", **options)


def test_tuples_constants_and_descriptors_are_taken_apart() -> None:
    """A descriptor is the device's own where Triton describes one, and else the array, with sizes and strides."""
    types = {"x": "*fp32", "pair": ("i32", "u1"), "d": "tensordesc<fp16[8,8]>", "t": "special", "BLOCK": "constexpr"}
    options: dict[str, Any] = {"descriptor": "opaque[64,64]", "spellings": {"special": "opaque[16,16]"}}
    binary = read(compiled(types, {(1, 0): 1}, tensordesc_meta=[DESCRIBED]), **options)
    expected = "x: *fp32, pair.0: constexpr, pair.1: i1, d.0: opaque[64,64], d.1: i32, d.2: i32, d.3: i64, d.4: i64"
    assert str(binary.signature) == f"{expected}, t: opaque[16,16], BLOCK: constexpr"
    assert (binary.name, binary.data, binary.descriptors) == ("add", b"code", {2: DESCRIBED})
    array = read(compiled({"d": "tensordesc<fp16[8]>"}))
    assert str(array.signature) == "d.0: *fp16, d.1: i64, d.2: i64, d.3: i1, d.4: i32, d.5: i64"
    assert array.descriptors == {0: None}
    with pytest.raises(LoadError, match="made by hardware, which podium does not do for a fake device"):
        read(compiled(types, tensordesc_meta=[DESCRIBED]))


def test_files_are_read_with_the_types_of_the_text_beside_them(tmp_path: Path) -> None:
    """Descriptors in a text have the device's own type, or are an error where there is none; a given signature wins."""
    path = tmp_path / "add.bin"
    path.write_bytes(b"code")
    with pytest.raises(LoadError, match=r"is a \.bin with a \.json beside it"):
        read(path)
    path.with_suffix(".json").write_text(json.dumps(METADATA), encoding="utf-8")
    path.with_suffix(".ttir").write_text(TEXT, encoding="utf-8")
    assert str(read(path, descriptor="opaque[64,64]").signature) == "x: *fp32, d: opaque[64,64], n: i64"
    with pytest.raises(SourceError, match="d is a tensor descriptor; give the types"):
        read(path)
    assert str(read(str(path), signature="x: *fp32").signature) == "x: *fp32"
    text = "tt.func public @add(%x: !tt.ptr<!tt.ptr<f32>>, %y: !tt.ptr<f8E4M3B11FNUZ>, %z: !tt.ptr<f16>) attributes {}"
    path.with_suffix(".ttir").write_text(text, encoding="utf-8")
    assert str(read(path).signature) == "x: *void, y: *void, z: *fp16"


@pytest.mark.parametrize(("key", "value"), [("name", ...), ("num_warps", ...), ("num_warps", None), ("num_warps", "x")])
def test_metadata_without_which_nothing_can_be_launched(key: str, value: Any) -> None:
    """A name or a number of warps that is missing, or is none, is an error that names it."""
    made = compiled({"x": "*fp32"}, **({} if value is ... else {key: value}))
    if value is ...:
        del made.metadata[key]
    with pytest.raises(LoadError, match=f"metadata of a kernel has {key}, and here it is"):
        read(made)


def test_what_triton_did_not_make_for_the_device_is_refused() -> None:
    """The error names the device and what Triton calls its binaries."""
    with pytest.raises(LoadError, match="int is not a kernel that Triton compiled for a fake device: it has no bin,"):
        read(3)


@pytest.mark.newest
def test_launches_are_tritons(fake: FakeDriver, level: str) -> None:
    """A grid is in programs of several blocks; the hidden parameters are scratch; `describe` makes descriptors."""
    types = {"pair": ("*fp32", "i32"), "d": "tensordesc<fp16[8]>", "n": "i64"}
    binary = read(compiled(types, tensordesc_meta=[DESCRIBED]), descriptor="opaque[8,8]")
    code = binary.object_code(fake.default_target(), 1)
    kept = code.metadata
    assert (kept["num_warps"], kept["shared"], kept["dependent"], kept["global_scratch_size"]) == (2, 64, True, 32)
    assert "profile_scratch_size" not in kept
    kernel = TritonKernel(code, binary.descriptors, lambda value, about: bytes([value.base, about["swizzle"]] * 4))
    descriptor = SimpleNamespace(base=7, shape=[5], strides=[1])
    for grid in (3, (3,), lambda arguments: (arguments["n"] - 1,)):
        kernel[grid]((FakeArray(4096), 9), descriptor, n=4)
        launch = fake.launches.pop()
        assert (launch.grid, launch.cluster, launch.block) == ((6, 1, 1), (2, 1, 1), (2 * code.target.warp_size, 1, 1))
        values = [int.from_bytes(each, "little") for each in launch.parameters]
        assert values[:2] == [4096, 9] and launch.parameters[2] == bytes([7, 1] * 4) and values[3:6] == [5, 1, 4]
        assert len(values) == 7 and values[6] != 0  # the scratch memory
    kernel[numpy.uint8(200)]((FakeArray(4096), 9), descriptor, n=4)
    assert fake.launches.pop().grid == (400, 1, 1)
    assert (kernel.name, repr(kernel)) == ("add", "<Triton kernel add>")
