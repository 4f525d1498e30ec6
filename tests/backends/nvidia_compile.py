"""What tests of compiling for NVIDIA GPUs share; NVRTC is real, and no GPU is needed."""

from __future__ import annotations

from typing import Any

import pytest

from podium import Target
from podium._compile import declare
from podium.backend import ObjectCode, Options, Program
from podium.errors import CompileError

pytest.importorskip("cuda.bindings", reason="cuda-python is not installed")

from podium_nvidia import toolkit
from podium_nvidia.compiler import compile_program

if toolkit.find_library("nvrtc") is None:
    pytest.skip("NVRTC is not installed", allow_module_level=True)

__all__ = ["ADD", "compiled", "program", "refused"]

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
