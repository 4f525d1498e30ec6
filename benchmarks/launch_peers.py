"""The same launch through other libraries: functions without arguments, by name, of each library that is there."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import podium

__all__ = ["PEERS", "Arguments", "is_installed", "measurable_peers", "reason_of", "versions_of_peers"]

Launches = Mapping[str, Callable[[], object]]


@dataclass(frozen=True)
class Arguments:
    """Three tensors of torch, an int, and torch's current stream."""

    tensors: tuple[Any, Any, Any]
    n: int
    stream: int

    @staticmethod
    def of_torch() -> Arguments:
        """Make them, with values that are not zero."""
        import torch

        tensors = (torch.rand(1024, device="cuda"), torch.rand(1024, device="cuda"), torch.empty(1024, device="cuda"))
        return Arguments(tensors, 1024, torch.cuda.current_stream().cuda_stream)

    @property
    def addresses(self) -> tuple[int, ...]:
        """The addresses of the tensors."""
        return tuple(tensor.data_ptr() for tensor in self.tensors)

    def more(self, count: int) -> list[Any]:
        """Give more tensors like the first."""
        import torch

        return [torch.rand(1024, device="cuda") for _ in range(count)]

    def of_libraries(self) -> dict[str, tuple[Any, ...]]:
        """Give arrays of the same size from each library that is there."""
        arrays: dict[str, tuple[Any, ...]] = {
            "podium": tuple(podium.asarray([1.0] * 1024) for _ in range(3)),
            "an object with __dlpack__ only": tuple(map(OnlyDlpack, self.tensors)),
            "an object with __cuda_array_interface__ only": tuple(map(OnlyInterface, self.tensors)),
        }
        try:
            import cupy

            arrays["CuPy"] = tuple(cupy.ones(1024, dtype="float32") for _ in range(3))
        except ImportError:
            pass
        try:
            import jax

            arrays["JAX"] = tuple(jax.numpy.ones(1024) for _ in range(3))
        except ImportError:
            pass
        try:
            from numba import cuda

            arrays["numba"] = tuple(cuda.as_cuda_array(tensor) for tensor in self.tensors)
        except ImportError:
            pass
        return arrays


class OnlyDlpack:
    """An array that speaks ``__dlpack__`` and nothing else."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.tensor.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


class OnlyInterface:
    """An array that speaks ``__cuda_array_interface__`` and nothing else."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.tensor.__cuda_array_interface__


def cuda_bindings(sources: Path, arguments: Arguments, block: int) -> Launches:
    """Launch with the driver's own call, through cuda-python."""
    from cuda.bindings import driver

    kernel = podium.kernel(sources / "kernels.cu", "add")  # who drops it unloads its code
    function = driver.CUfunction(kernel.function)
    values = (*arguments.addresses, arguments.n)
    types = (ctypes.c_void_p,) * 3 + (ctypes.c_int,)
    stream = arguments.stream
    return {
        "cuda.bindings cuLaunchKernel": lambda kernel=kernel: driver.cuLaunchKernel(
            function, 1, 1, 1, block, 1, 1, 0, stream, (values, types), 0
        )
    }


def cuda_core(sources: Path, arguments: Arguments, block: int) -> Launches:
    """Launch with cuda.core: the configuration made before, and made each time as podium's users say it each time."""
    import numpy
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device()
    device.set_current()
    stream = device.create_stream()
    arch = "".join(map(str, device.compute_capability))
    options = ProgramOptions(arch=f"sm_{arch}")
    program = Program((sources / "kernels.cu").read_text(), code_type="c++", options=options)
    kernel = program.compile("cubin", name_expressions=("add",)).get_kernel("add")
    config, pointers, count = LaunchConfig(grid=1, block=block), arguments.addresses, numpy.int32(arguments.n)
    a, b, c = arguments.tensors
    n = arguments.n
    return {
        "cuda.core, configuration made before, addresses": lambda: launch(stream, config, kernel, *pointers, count),
        "cuda.core, configuration each time, data_ptr()": lambda: launch(
            stream,
            LaunchConfig(grid=1, block=block),
            kernel,
            a.data_ptr(),
            b.data_ptr(),
            c.data_ptr(),
            numpy.int32(n),
        ),
    }


def cupy(sources: Path, arguments: Arguments, block: int) -> Launches:
    """Launch with CuPy, with arrays of its own."""
    import cupy

    kernel = cupy.RawKernel((sources / "kernels.cu").read_text(), "add")
    arrays = tuple(cupy.ones(1024, dtype="float32") for _ in range(3))
    count = cupy.int32(arguments.n)
    return {"CuPy RawKernel": lambda: kernel((1,), (block,), (*arrays, count))}


def triton(sources: Path, arguments: Arguments, block: int) -> Launches:
    """Launch with Triton: as users write it, and what is left of it when the compiled kernel is kept."""
    sys.path.insert(0, str(sources))
    try:
        from triton_kernels import add
    finally:
        sys.path.remove(str(sources))
    a, b, c = arguments.tensors
    n, stream = arguments.n, arguments.stream
    compiled = add[(1,)](a, b, c, n)
    run, function, metadata = compiled.run, compiled.function, compiled.packed_metadata
    return {
        "Triton kernel[grid]": lambda: add[(1,)](a, b, c, n),
        "Triton CompiledKernel.run": lambda: run(1, 1, 1, stream, function, metadata, None, None, None, a, b, c, n),
    }


def torch(sources: Path, arguments: Arguments, block: int) -> Launches:
    """Launch with torch's own compiler of kernels, and an operation of torch's for scale."""
    import torch

    a, b, c = arguments.tensors
    n = arguments.n
    kernel = torch.cuda._compile_kernel((sources / "kernels.cu").read_text(), "add")
    return {
        "torch.cuda._compile_kernel": lambda: kernel((1, 1, 1), (block, 1, 1), (a, b, c, n)),
        "torch.add(out=), for scale": lambda: torch.add(a, b, out=c),
    }


def numba(sources: Path, arguments: Arguments, block: int) -> Launches:
    """Launch with numba-cuda, with arrays of its own, a kernel written in Python."""
    from numba import cuda

    @cuda.jit
    def add(a, b, c, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        i = cuda.grid(1)
        if i < n:
            c[i] = a[i] + b[i]

    arrays = tuple(cuda.to_device([1.0] * 1024) for _ in range(3))
    bound = add[1, block]
    n = arguments.n
    return {"numba-cuda, bound": lambda: bound(*arrays, n)}


@dataclass(frozen=True)
class Peer:
    """A library, the module to import of it, and how to make its launches."""

    module: str
    launches: Callable[[Path, Arguments, int], Launches]


PEERS: Mapping[str, Peer] = {
    "cuda.bindings": Peer("cuda.bindings.driver", cuda_bindings),
    "cuda.core": Peer("cuda.core", cuda_core),
    "CuPy": Peer("cupy", cupy),
    "Triton": Peer("triton", triton),
    "torch": Peer("torch", torch),
    "numba-cuda": Peer("numba.cuda", numba),
}


def versions_of_peers() -> dict[str, str]:
    """Give the versions of what is measured beside podium, by distribution."""
    found = {}
    for name in (
        "torch",
        "triton",
        "cupy-cuda12x",
        "cupy-cuda13x",
        "cupy",
        "cuda-core",
        "cuda-bindings",
        "numba-cuda",
        "jax",
    ):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def is_installed(module: str) -> bool:
    """Tell whether a module can be found; it is not imported, but the packages around it are."""
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def measurable_peers(sources: Path, arguments: Arguments, block: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the launches of all peers by name, and for each peer without any, why."""
    found: dict[str, Callable[[], object]] = {}
    missing: dict[str, str] = {}
    for name, peer in PEERS.items():
        if not is_installed(peer.module):
            missing[name] = "not installed"
            continue
        try:
            launches = peer.launches(sources, arguments, block)
            for launch in launches.values():
                launch()
        except Exception as error:  # whatever keeps one peer away must not keep the others away
            missing[name] = reason_of(error)
        else:
            found |= launches
    return found, missing


def reason_of(error: BaseException) -> str:
    """Say in one line why a peer could not be measured."""
    lines = str(error).strip().splitlines() or [""]
    return f"failed: {type(error).__name__}: {lines[-1][:160]}"
