"""The work of the example kernels as others do it: C++ with OpenMP, and OpenCL C on PoCL.

Both work on the arrays of the kernels themselves, so that nobody's memory lies better than another's.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from workloads import Launch, Work

import podium
from podium.backend import HostCompiler, SharedLibrary
from podium.errors import CompileError

__all__ = ["OPENMP_FLAGS", "OpenMp", "Pocl", "ours"]

Way = Callable[[], object]

SOURCES = Path(__file__).parent / "cpu"

OPENMP_FLAGS = ("-O3", "-march=native", "-fopenmp")


def ours(launches: Sequence[Launch]) -> Way:
    """Make launches with podium; each is bound once, as a program does that launches it many times."""
    bound = [
        (launch.kernel[podium.LaunchConfig(launch.grid, launch.block, shared=launch.shared)], launch.arguments)
        for launch in launches
    ]
    if len(bound) == 1:
        launch, arguments = bound[0]
        return lambda: launch(*arguments)

    def all_in_order() -> None:
        for launch, arguments in bound:
            launch(*arguments)

    return all_in_order


class OpenMp:
    """The functions of cpu/peers.cpp."""

    def __init__(self, library: SharedLibrary) -> None:
        self._library = library

    @classmethod
    def compile(cls) -> OpenMp:
        """Compile them, with OpenMP and for this processor."""
        compiler = HostCompiler.find("c++")
        source = (SOURCES / "peers.cpp").read_text(encoding="utf-8")
        try:
            code = compiler.compile({"peers.cpp": source}, "peers.cpp", OPENMP_FLAGS)
        except CompileError as error:
            raise SystemExit(
                f"The C++ compiler has no OpenMP, or has another fault; CXX chooses one.\n{error}"
            ) from None
        return cls(SharedLibrary.from_bytes("podium_benchmark_peers", code))

    def call(self, name: str, *arguments: int | float | podium.Array) -> Way:
        """Bind a function to arguments."""
        values = [_in_c(argument) for argument in arguments]
        function = ctypes.CFUNCTYPE(None, *map(type, values))(self._library.address(name))
        return lambda: function(*values)

    def of(self, example: str, work: Work) -> Way | None:
        """Do what an example does; None where nobody has written it."""
        made = _OPENMP.get(example)
        return None if made is None else self.call(*made(work))


def _in_c(argument: int | float | podium.Array) -> Any:
    if isinstance(argument, podium.Array):
        return ctypes.c_void_p(argument.ptr)
    return ctypes.c_long(argument) if isinstance(argument, int) else ctypes.c_float(argument)


def _last(work: Work) -> tuple[Any, ...]:
    return work.launches[-1].arguments


def _sum(work: Work) -> tuple[Any, ...]:
    x, _, n = work.launches[0].arguments
    return ("sum", n, x, work.output)


def _matmul(work: Work) -> tuple[Any, ...]:
    a, b, c, m, n, k = _last(work)
    return (m, n, k, a, b, c)


def _scan(work: Work) -> tuple[Any, ...]:
    x, y, n, *_ = _last(work)
    return ("scan", n, x, y)


def _histogram(work: Work) -> tuple[Any, ...]:
    x, n, low, scale, bins, counts = _last(work)
    return ("histogram", n, x, low, scale, bins, counts)


def _softmax(work: Work) -> tuple[Any, ...]:
    x, y, columns = _last(work)
    return ("softmax", x.size // columns, columns, x, y)


def _layer_norm(work: Work) -> tuple[Any, ...]:
    x, gamma, beta, y, rows, columns, epsilon = _last(work)
    return ("layer_norm", rows, columns, x, gamma, beta, epsilon, y)


def _stencil(work: Work) -> tuple[Any, ...]:
    x, y, rows, columns, rate = _last(work)
    return ("stencil", rows, columns, rate, x, y)


def _transpose(work: Work) -> tuple[Any, ...]:
    x, y, rows, columns = _last(work)
    return ("transpose", rows, columns, x, y)


def _attention(work: Work) -> tuple[Any, ...]:
    q, k, v, out, length = _last(work)
    heads, _, depth = out.shape
    return ("attention", heads, length, depth, int("true" in work.launches[0].kernel.name), q, k, v, out)


def _radix_sort(work: Work) -> tuple[Any, ...]:
    keys, first, n, *_ = work.launches[2].arguments
    return ("radix_sort", n, keys, first, work.output)


# What stands in for each example: a function of cpu/peers.cpp and its arguments.
_OPENMP: dict[str, Callable[[Work], tuple[Any, ...]]] = {
    "copy": lambda work: ("copy", *_last(work)),
    "triad": lambda work: ("triad", *_last(work)),
    "saxpy": lambda work: ("saxpy", *_last(work)),
    "saxpy-float4": lambda work: ("saxpy", *_last(work)),
    "matmul": lambda work: ("matmul", *_matmul(work)),
    "matmul-32": lambda work: ("matmul_32", *_matmul(work)),
    "sum": _sum,
    "largest": lambda work: ("largest", *_sum(work)[1:]),
    "warp-sum": lambda work: ("sum", _last(work)[2], _last(work)[0], work.output),
    "scan": _scan,
    "histogram": _histogram,
    "softmax": _softmax,
    "layer-norm": _layer_norm,
    "stencil": _stencil,
    "transpose": _transpose,
    "mandelbrot": lambda work: ("mandelbrot", *_last(work)),
    "radix-sort": _radix_sort,
    "attention": _attention,
    "causal-attention": _attention,
}

# What a kernel is called in cpu/kernels.cl, where it has another name.
_OPENCL = {
    "fill<float>": "fill_float",
    "fill<unsigned int>": "fill_uint",
    "fill<unsigned long long>": "fill_ulong",
    "matmul<float, 16>": "matmul_16",
    "matmul<float, 32>": "matmul_32",
    "reduce_sum<float, 256>": "reduce_sum",
    "reduce_largest<float, 256>": "reduce_largest",
    "inclusive_scan<128, 7>": "inclusive_scan",
    "softmax<float, 128>": "softmax",
    "layer_norm<float>": "layer_norm",
    "heat_step<32, 8>": "heat_step",
    "transpose<float, 32, 8>": "transpose",
    "mandelbrot<float>": "mandelbrot",
    "scatter<256>": "scatter",
    "attention<64, 64, 32, false>": "attention",
    "attention<64, 64, 32, true>": "causal_attention",
}


class Pocl:
    """PoCL's device for the processor, with the kernels of cpu/kernels.cl. It needs pyopencl and PoCL."""

    def __init__(self) -> None:
        """Compile for the first device. Raises `LookupError` that says what is missing."""
        try:
            import pyopencl
        except ImportError:
            raise LookupError("pyopencl is not installed") from None
        self._opencl: Any = pyopencl
        try:
            platforms = [each for each in pyopencl.get_platforms() if "Portable Computing Language" in each.name]
        except pyopencl.Error as error:
            raise LookupError(f"OpenCL does not start: {error}") from None
        devices = [device for platform in platforms for device in platform.get_devices()]
        if not devices:
            raise LookupError("no OpenCL platform here is PoCL")
        self.about = f"{devices[0].version}, {devices[0].name}"
        self._context = pyopencl.Context(devices[:1])
        self._queue = pyopencl.CommandQueue(self._context)
        source = (SOURCES / "kernels.cl").read_text(encoding="utf-8")
        self._program = pyopencl.Program(self._context, source).build()
        self._names = {kernel.function_name for kernel in self._program.all_kernels()}

    def of(self, launches: Sequence[Launch]) -> Way | None:
        """Make launches of the kernels of the same names; None where one of them is not written in OpenCL C."""
        names = [_OPENCL.get(launch.kernel.name, launch.kernel.name) for launch in launches]
        if not self._names.issuperset(names):
            return None
        enqueued = [self._enqueue(name, launch) for name, launch in zip(names, launches)]

        def all_in_order() -> None:
            for enqueue in enqueued:
                enqueue()
            self._queue.finish()

        return all_in_order

    def _enqueue(self, name: str, launch: Launch) -> Way:
        cl = self._opencl
        kernel = cl.Kernel(self._program, name)
        arguments = [
            self._argument(argument, signature)
            for argument, signature in zip(launch.arguments, launch.kernel.signature.passed)
        ]
        if launch.shared:
            arguments.append(cl.LocalMemory(launch.shared))
        kernel.set_args(*arguments)
        block = _three(launch.block)
        size = [blocks * threads for blocks, threads in zip(_three(launch.grid), block)]
        return lambda: (cl.enqueue_nd_range_kernel(self._queue, kernel, size, block), arguments)

    def _argument(self, argument: Any, parameter: Any) -> Any:
        import numpy

        if isinstance(argument, podium.Array):
            flags = self._opencl.mem_flags
            # Where the array is: this device has no memory of its own.
            return self._opencl.Buffer(
                self._context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=numpy.asarray(argument)
            )
        return numpy.dtype(_NUMPY[str(parameter.type)]).type(argument)


_NUMPY = {"i32": "i4", "u32": "u4", "u64": "u8", "fp32": "f4"}


def _three(shape: Any) -> list[int]:
    axes = [shape] if isinstance(shape, int) else list(shape)
    return axes + [1] * (3 - len(axes))


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))
