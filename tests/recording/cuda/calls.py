"""Calls of the CUDA driver, right ones and wrong ones, whose answers a real driver and the recording one must share.

Each group runs in a process of its own and gives what was answered, one line a call: a status, and what came beside it
as far as it can be the same on two machines (numbers and texts; of handles and addresses only that they are there).
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from typing import Any

SOURCE = b"""
struct pair { double a; int b[3]; };
__device__ int counter; __device__ float table[16] = {1, 2}; __constant__ float weights[8]; __managed__ int shared_int;
extern "C" __global__ void nothing() {}
extern "C" __global__ void fill(int *x, int value, char c, pair p, double d) {
    if (x) x[threadIdx.x] = value + c + p.b[1] + (int)d + counter + (int)table[3] + (int)weights[2] + shared_int;
}
extern "C" __global__ void dynamic(int *x) {
    extern __shared__ int s[]; __shared__ float t[32];
    s[threadIdx.x] = 1; t[threadIdx.x & 31] = 2; __syncthreads();
    if (x) x[threadIdx.x] = s[threadIdx.x ^ 1] + t[3];
}
extern "C" __global__ void __launch_bounds__(128) bounded(int *x) { if (x) x[0] = 1; }
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(int *x) { if (x) x[0] = 1; }
#endif
"""


class Answers:
    """What the calls of a group have answered, in their order."""

    def __init__(self) -> None:
        """Open the library that the variable names before cuda-python opens any."""
        path = os.environ.get("PODIUM_NVIDIA_LIBCUDA")
        if path:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        from cuda.bindings import driver

        self.driver: Any = driver
        self.lines: list[tuple[str, str]] = []

    def __call__(self, label: str, result: tuple[Any, ...]) -> Any:
        """Note what a call answered, and return what came beside the status."""
        status, *values = result
        shown = [] if status else list(map(_shown, values))
        self.lines.append((label, " ".join([status.name.removeprefix("CUDA_ERROR_"), *shown])))
        return values[0] if len(values) == 1 else values

    def context(self, device: int = 0) -> Any:
        """Make the primary context current."""
        self.driver.cuInit(0)
        _, context = self.driver.cuDevicePrimaryCtxRetain(device)
        self.driver.cuCtxSetCurrent(context)
        return context

    def library(self) -> tuple[Any, bytes]:
        """Load the kernels, and return the library with its cubin."""
        from cuda.bindings import nvrtc

        driver = self.driver
        major = driver.cuDeviceGetAttribute(driver.CUdevice_attribute(75), 0)[1]
        minor = driver.cuDeviceGetAttribute(driver.CUdevice_attribute(76), 0)[1]
        _, program = nvrtc.nvrtcCreateProgram(SOURCE, b"calls.cu", 0, [], [])
        (status,) = nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture=sm_{major}{minor}".encode()])
        assert status == 0, status
        code = bytes(nvrtc.nvrtcGetCUBINSize(program)[1])
        nvrtc.nvrtcGetCUBIN(program, code)
        return driver.cuLibraryLoadData(code, [], [], 0, [], [], 0)[1], code


def _shown(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        if hasattr(value, "name"):
            return str(value.name)
        return "large" if isinstance(value, int) and value > 1 << 40 else str(value)
    if isinstance(value, bytes):
        return value.rstrip(b"\0 ").decode(errors="replace")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_shown, value)) + "]"
    try:
        return type(value).__name__ + (" NULL" if int(value) == 0 else "")
    except TypeError:
        return type(value).__name__


GROUPS: dict[str, Callable[[Answers], None]] = {}


def _group(function: Callable[[Answers], None]) -> Callable[[Answers], None]:
    GROUPS[function.__name__] = function
    return function


@_group
def uninitialised(c: Answers) -> None:
    d = c.driver
    c("count", d.cuDeviceGetCount())
    c("alloc", d.cuMemAlloc(16))
    c("current", d.cuCtxGetCurrent())
    c("device", d.cuCtxGetDevice())
    c("error name", d.cuGetErrorName(d.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS))
    c("exchange mode", d.cuThreadExchangeStreamCaptureMode(d.CUstreamCaptureMode(0)))
    c("pointer", d.cuPointerGetAttribute(d.CUpointer_attribute(2), 4096))
    c("init with flags", d.cuInit(1))
    c("init", d.cuInit(0))
    c("init again", d.cuInit(0))


@_group
def statuses(c: Answers) -> None:
    d = c.driver
    for status in d.CUresult:
        c(f"name of {int(status)}", d.cuGetErrorName(status))
        c(f"text of {int(status)}", d.cuGetErrorString(status))


@_group
def devices(c: Answers) -> None:
    d = c.driver
    d.cuInit(0)
    c("device 0", d.cuDeviceGet(0))
    c("device -1", d.cuDeviceGet(-1))
    c("device 99", d.cuDeviceGet(99))
    c("memory of 99", d.cuDeviceTotalMem(99))
    c("memory", d.cuDeviceTotalMem(0))
    for attribute in d.CUdevice_attribute:
        if 0 < int(attribute) <= 148 and int(attribute) not in (33, 34, 50, 139, 140):  # those of PCI are the machine's
            c(f"attribute {attribute.name[20:]}", d.cuDeviceGetAttribute(attribute, 0))
    c("attribute of 99", d.cuDeviceGetAttribute(d.CUdevice_attribute(1), 99))
    c("peer of itself", d.cuDeviceCanAccessPeer(0, 0))
    c("peer 99", d.cuDeviceCanAccessPeer(0, 99))


@_group
def contexts(c: Answers) -> None:
    d = c.driver
    d.cuInit(0)
    c("none current", d.cuCtxGetCurrent())
    c("no device", d.cuCtxGetDevice())
    c("pop none", d.cuCtxPopCurrent())
    c("synchronise none", d.cuCtxSynchronize())
    c("state", d.cuDevicePrimaryCtxGetState(0))
    c("release unretained", d.cuDevicePrimaryCtxRelease(0))
    c("retain 99", d.cuDevicePrimaryCtxRetain(99))
    primary = c("retain", d.cuDevicePrimaryCtxRetain(0))
    c("state retained", d.cuDevicePrimaryCtxGetState(0))
    c("push", d.cuCtxPushCurrent(primary))
    c("device", d.cuCtxGetDevice())
    c("flags", d.cuCtxGetFlags())
    c("priorities", d.cuCtxGetStreamPriorityRange())
    for limit in (0, 2):
        c(f"limit {limit}", d.cuCtxGetLimit(d.CUlimit(limit)))
    own = c("create", d.cuCtxCreate(None, 0, 0))
    c("create on 99", d.cuCtxCreate(None, 0, 99))
    c("create with flags", d.cuCtxCreate(None, 1 << 20, 0))
    c("pop own", d.cuCtxPopCurrent())
    c("destroy own", d.cuCtxDestroy(own))
    c("pop primary", d.cuCtxPopCurrent())
    c("set", d.cuCtxSetCurrent(primary))
    c("release", d.cuDevicePrimaryCtxRelease(0))
    c("device of released", d.cuCtxGetDevice())
    c("alloc in released", d.cuMemAlloc(16))
    c("current is released", d.cuCtxGetCurrent())
    c("set none", d.cuCtxSetCurrent(0))
    c("destroy NULL", d.cuCtxDestroy(0))


@_group
def modules(c: Answers) -> None:
    d = c.driver
    c.context()
    library, code = c.library()
    for data, label in ((b"", "nothing"), (b"not code at all", "text"), (b"\x7fELF" + bytes(60), "empty ELF")):
        c(f"library of {label}", d.cuLibraryLoadData(data + bytes(64), [], [], 0, [], [], 0))
        c(f"module of {label}", d.cuModuleLoadData(data + bytes(64)))
    other = bytearray(code)
    other[49 if code[8] >= 8 else 48] = 80  # e_flags: made for sm_80
    c("library for another device", d.cuLibraryLoadData(bytes(other), [], [], 0, [], [], 0))
    for version, target in (("9.9", "sm_90"), ("7.0", "sm_70"), ("8.0", "sm_200")):
        ptx = f".version {version}\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 p) {{ ret; }}\0"
        c(f"PTX {version} {target}", d.cuLibraryLoadData(ptx.encode(), [], [], 0, [], [], 0))
    c(
        "PTX that is wrong",
        d.cuLibraryLoadData(b".version 7.0\n.target sm_70\n.visible .entry k( {\0", [], [], 0, [], [], 0),
    )
    c("kernel of no name", d.cuLibraryGetKernel(library, b"absent"))
    c("kernel count", d.cuLibraryGetKernelCount(library))
    kernel = c("kernel", d.cuLibraryGetKernel(library, b"fill"))
    c("the same kernel", (d.CUresult(0), int(d.cuLibraryGetKernel(library, b"fill")[1]) == int(kernel)))
    for index in range(6):
        c(f"parameter {index}", d.cuKernelGetParamInfo(kernel, index))
    for name in (b"counter", b"table", b"weights", b"shared_int", b"absent"):
        c(f"global {name.decode()}", d.cuLibraryGetGlobal(library, name))
        c(f"managed {name.decode()}", d.cuLibraryGetManaged(library, name))
    names = (b"nothing", b"fill", b"dynamic", b"bounded", b"clustered")
    for name in names:
        kernel = d.cuLibraryGetKernel(library, name)[1]
        function = c(f"function {name.decode()}", d.cuKernelGetFunction(kernel))
        for attribute in d.CUfunction_attribute:
            if int(attribute) < 16:
                label = f"{name.decode()} {attribute.name[18:]}"
                c(f"function {label}", d.cuFuncGetAttribute(attribute, function))
                c(f"kernel {label}", d.cuKernelGetAttribute(attribute, kernel, 0))
    kernel = d.cuLibraryGetKernel(library, b"dynamic")[1]
    attribute = d.CUfunction_attribute
    for number, value in (
        (8, 100000),
        (8, 232448),
        (8, 232320),
        (8, -1),
        (9, 101),
        (9, 50),
        (14, 1),
        (14, 2),
        (0, 5),
        (11, 2),
    ):
        c(f"set {number} to {value}", d.cuKernelSetAttribute(attribute(number), value, kernel, 0))
        c(f"get {number} after {value}", d.cuKernelGetAttribute(attribute(number), kernel, 0))
    c("set on 99", d.cuKernelSetAttribute(attribute(8), 100, kernel, 99))
    module = c("module", d.cuModuleLoadData(code))
    c("function of module", d.cuModuleGetFunction(module, b"fill"))
    c("no function of module", d.cuModuleGetFunction(module, b"absent"))
    c("global of module", d.cuModuleGetGlobal(module, b"table"))
    c("managed of module", d.cuModuleGetGlobal(module, b"shared_int"))
    c("unload", d.cuModuleUnload(module))
    c("unload module of library", d.cuModuleUnload(d.cuLibraryGetModule(library)[1]))
    c("unload library", d.cuLibraryUnload(library))
    c("function of NULL", d.cuModuleGetFunction(0, b"fill"))
    c("kernel of NULL", d.cuLibraryGetKernel(0, b"fill"))
    c("loading mode", d.cuModuleGetLoadingMode())


@_group
def memory(c: Answers) -> None:
    d = c.driver
    c.context()
    c("alloc 0", d.cuMemAlloc(0))
    c("alloc too much", d.cuMemAlloc(1 << 50))
    block = c("alloc", d.cuMemAlloc(1000))
    host = bytes(range(250)) * 8
    out = bytearray(2000)
    c("range", d.cuMemGetAddressRange(block)[:1] + d.cuMemGetAddressRange(int(block) + 10)[2:])
    c("range of nothing", d.cuMemGetAddressRange(4096))
    c("to device", d.cuMemcpyHtoD(block, host, 1000))
    c("to device in part", d.cuMemcpyHtoD(int(block) + 10, host, 990))
    c("far too much", d.cuMemcpyHtoD(block, host, 1 << 40))
    c("back", d.cuMemcpyDtoH(out, block, 1000))
    c("to a host's address", d.cuMemcpyHtoD(4096, host, 100))
    c("no bytes", d.cuMemcpyHtoD(block, host, 0))
    c("fill", d.cuMemsetD32(block, 7, 250))
    c("fill unaligned", d.cuMemsetD32(int(block) + 2, 7, 2))
    c("fill nothing", d.cuMemsetD8(block, 7, 0))
    kinds = {"device": int(block), "host": id(host), "nothing": 4096, "NULL": 0}
    pinned = c("pinned", d.cuMemHostAlloc(512, 3))
    c("pinned 0", d.cuMemHostAlloc(0, 3))
    c("pinned with flags", d.cuMemHostAlloc(16, 1 << 10))
    managed = c("managed", d.cuMemAllocManaged(256, 1))
    c("managed 0", d.cuMemAllocManaged(0, 1))
    c("managed with flags", d.cuMemAllocManaged(16, 7))
    kinds |= {"pinned": int(pinned), "managed": int(managed)}
    for label, address in kinds.items():
        for number in (1, 2, 3, 4, 8, 9, 12, 13, 17):
            attribute = d.CUpointer_attribute(number)
            c(f"{label} {attribute.name[21:]}", d.cuPointerGetAttribute(attribute, address))
        wanted = [d.CUpointer_attribute(number) for number in (2, 8, 9)]
        c(f"{label} attributes", d.cuPointerGetAttributes(3, wanted, address))
    c("pinned pointer", d.cuMemHostGetDevicePointer(pinned, 0))
    c("pinned flags", d.cuMemHostGetFlags(pinned))
    c("free pinned as device", d.cuMemFree(int(pinned)))
    c("free pinned", d.cuMemFreeHost(pinned))
    c("free managed", d.cuMemFree(managed))
    c("free inner", d.cuMemFree(int(block) + 256))
    c("free", d.cuMemFree(block))
    c("free NULL", d.cuMemFree(0))
    c("free nothing", d.cuMemFree(4096))
    c("free host NULL", d.cuMemFreeHost(0))
    buffer = ctypes.create_string_buffer(1 << 20)
    place = ctypes.addressof(buffer) // 4096 * 4096 + 4096
    c("register", d.cuMemHostRegister(place, 8192, 0))
    c("register again", d.cuMemHostRegister(place, 8192, 0))
    c("unregister", d.cuMemHostUnregister(place))
    c("unregister again", d.cuMemHostUnregister(place))


@_group
def pools(c: Answers) -> None:
    d = c.driver
    c.context()
    pool = c("default", d.cuDeviceGetDefaultMemPool(0))
    c("default of 99", d.cuDeviceGetDefaultMemPool(99))
    c("current is default", (d.CUresult(0), int(d.cuDeviceGetMemPool(0)[1]) == int(pool)))
    for number in range(1, 9):
        c(f"attribute {number}", d.cuMemPoolGetAttribute(pool, d.CUmemPool_attribute(number)))
    block = c("alloc", d.cuMemAllocAsync(1000, 0))
    c("kind", d.cuPointerGetAttribute(d.CUpointer_attribute(2), block))
    c("of a pool", d.cuPointerGetAttribute(d.CUpointer_attribute(17), block))
    c("context", d.cuPointerGetAttribute(d.CUpointer_attribute(1), block))
    c("copy", d.cuMemcpyHtoD(block, bytes(1000), 1000))
    c("alloc 0", d.cuMemAllocAsync(0, 0))
    c("free", d.cuMemFreeAsync(block, 0))
    c("free nothing", d.cuMemFreeAsync(4096, 0))
    block = d.cuMemAllocAsync(1000, 0)[1]
    c("free with cuMemFree", d.cuMemFree(block))
    block = d.cuMemAlloc(1000)[1]
    c("free what cuMemAlloc gave", d.cuMemFreeAsync(block, 0))
    c("destroy default", d.cuMemPoolDestroy(pool))


@_group
def streams(c: Answers) -> None:
    d = c.driver
    context = c.context()
    stream = c("create", d.cuStreamCreate(1))
    c("create with flags", d.cuStreamCreate(8))
    high = c("create with priority", d.cuStreamCreateWithPriority(1, -100))
    c("its priority", d.cuStreamGetPriority(high))
    c("its flags", d.cuStreamGetFlags(high))
    for handle, label in ((stream, "own"), (0, "NULL"), (1, "legacy"), (2, "per-thread")):
        c(f"context of {label}", (d.CUresult(0), int(d.cuStreamGetCtx(handle)[1]) == int(context)))
        c(f"flags of {label}", d.cuStreamGetFlags(handle))
        c(f"query {label}", d.cuStreamQuery(handle))
        c(f"synchronise {label}", d.cuStreamSynchronize(handle))
        c(f"capturing {label}", d.cuStreamIsCapturing(handle))
    c("destroy legacy", d.cuStreamDestroy(1))
    c("destroy NULL", d.cuStreamDestroy(0))
    event, plain = c("event", d.cuEventCreate(0)), d.cuEventCreate(2)[1]
    c("event with flags", d.cuEventCreate(64))
    c("interprocess event", d.cuEventCreate(4))
    c("query unrecorded", d.cuEventQuery(event))
    c("wait unrecorded", d.cuStreamWaitEvent(stream, event, 0))
    c("elapsed unrecorded", d.cuEventElapsedTime(event, event))
    c("record", d.cuEventRecord(event, stream))
    c("synchronise event", d.cuEventSynchronize(event))
    c("elapsed", d.cuEventElapsedTime(event, event))
    c("record plain", d.cuEventRecord(plain, stream))
    c("elapsed plain", d.cuEventElapsedTime(plain, event))
    c("record NULL", d.cuEventRecord(0, stream))
    c("wait with flags", d.cuStreamWaitEvent(stream, event, 9))
    c("destroy event", d.cuEventDestroy(event))
    c("destroy stream", d.cuStreamDestroy(stream))


@_group
def foreign_contexts(c: Answers) -> None:
    d = c.driver
    c.context()
    library, _ = c.library()
    kernel = d.cuLibraryGetKernel(library, b"nothing")[1]
    function = d.cuKernelGetFunction(kernel)[1]
    stream, event = d.cuStreamCreate(1)[1], d.cuEventCreate(0)[1]
    d.cuCtxCreate(None, 0, 0)
    shape = (1, 1, 1, 1, 1, 1, 0)
    c("function", d.cuLaunchKernel(function, *shape, 0, 0, 0))
    c("kernel", d.cuLaunchKernel(d.CUfunction(int(kernel)), *shape, 0, 0, 0))
    c("kernel in the other's stream", d.cuLaunchKernel(d.CUfunction(int(kernel)), *shape, stream, 0, 0))
    c("function in the other's stream", d.cuLaunchKernel(function, *shape, stream, 0, 0))
    c("event in a stream", d.cuEventRecord(event, 0))
    c("wait", d.cuStreamWaitEvent(0, event, 0))
    c("synchronise stream", d.cuStreamSynchronize(stream))
    c("query event", d.cuEventQuery(event))
    c("attribute of function", d.cuFuncGetAttribute(d.CUfunction_attribute(0), function))


def _captured(c: Answers, label: str, mode: int, what: Callable[[Any], tuple[Any, ...]], flags: int = 1) -> None:
    d = c.driver
    stream = d.cuStreamCreate(flags)[1]
    d.cuStreamBeginCapture(stream, d.CUstreamCaptureMode(mode))
    c(label, what(stream))
    c(f"{label}: state", d.cuStreamIsCapturing(stream))
    c(f"{label}: end", d.cuStreamEndCapture(stream))


@_group
def captures(c: Answers) -> None:
    d = c.driver
    c.context()
    library, code = c.library()
    kernel = d.CUfunction(int(d.cuLibraryGetKernel(library, b"nothing")[1]))
    shape = (1, 1, 1, 1, 1, 1, 0)
    d.cuLaunchKernel(kernel, *shape, 0, 0, 0)
    other, block, event = d.cuStreamCreate(1)[1], d.cuMemAlloc(64)[1], d.cuEventCreate(0)[1]
    c("begin on legacy", d.cuStreamBeginCapture(0, d.CUstreamCaptureMode(0)))
    c("end of none", d.cuStreamEndCapture(other))
    calls: dict[str, Callable[[Any], tuple[Any, ...]]] = {
        "launch": lambda s: d.cuLaunchKernel(kernel, *shape, s, 0, 0),
        "launch on legacy": lambda s: d.cuLaunchKernel(kernel, *shape, 0, 0, 0),
        "launch on another": lambda s: d.cuLaunchKernel(kernel, *shape, other, 0, 0),
        "alloc": lambda s: d.cuMemAlloc(64),
        "alloc in order": lambda s: d.cuMemAllocAsync(64, s),
        "free": lambda s: d.cuMemFree(d.cuMemAlloc(64)[1]),
        "pinned": lambda s: d.cuMemHostAlloc(64, 0),
        "copy": lambda s: d.cuMemcpyHtoD(block, bytes(64), 64),
        "copy in order": lambda s: d.cuMemcpyHtoDAsync(block, bytes(64), 64, s),
        "query": lambda s: d.cuStreamQuery(s),
        "synchronise": lambda s: d.cuStreamSynchronize(s),
        "synchronise legacy": lambda s: d.cuStreamSynchronize(0),
        "synchronise another": lambda s: d.cuStreamSynchronize(other),
        "query another": lambda s: d.cuStreamQuery(other),
        "synchronise context": lambda s: d.cuCtxSynchronize(),
        "capturing legacy": lambda s: d.cuStreamIsCapturing(0),
        "load": lambda s: d.cuLibraryLoadData(code, [], [], 0, [], [], 0),
        "load module": lambda s: d.cuModuleLoadData(code),
        "unload": lambda s: d.cuLibraryUnload(d.cuLibraryLoadData(code, [], [], 0, [], [], 0)[1]),
        "set attribute": lambda s: d.cuKernelSetAttribute(d.CUfunction_attribute(8), 64, d.CUkernel(int(kernel)), 0),
        "record": lambda s: d.cuEventRecord(event, s),
        "query recorded": lambda s: (d.cuEventRecord(event, s), d.cuEventQuery(event))[1],
        "create event": lambda s: d.cuEventCreate(0),
        "create stream": lambda s: d.cuStreamCreate(1),
        "fork unjoined": lambda s: (
            d.cuEventRecord(event, s),
            d.cuStreamWaitEvent(other, event, 0),
            d.cuLaunchKernel(kernel, *shape, other, 0, 0),
        )[2],
        "wait for outside": lambda s: (
            d.cuEventRecord(event, other),
            d.cuStreamWaitEvent(s, event, 0),
        )[1],
        "begin again": lambda s: d.cuStreamBeginCapture(s, d.CUstreamCaptureMode(0)),
        "destroy stream": lambda s: d.cuStreamDestroy(d.cuStreamCreate(1)[1]),
        "retain": lambda s: d.cuDevicePrimaryCtxRetain(0),
        "memory info": lambda s: d.cuMemGetInfo()[:1],
    }
    for mode in (0, 1, 2):
        for label, call in calls.items():
            _captured(c, f"mode {mode}, {label}", mode, call)
            other, event = d.cuStreamCreate(1)[1], d.cuEventCreate(0)[1]  # what a broken capture leaves is not reused
    for label in ("launch on legacy", "synchronise legacy", "copy", "capturing legacy", "synchronise another"):
        _captured(c, f"blocking stream, {label}", 0, calls[label], flags=0)


@_group
def graphs(c: Answers) -> None:
    d = c.driver
    c.context()
    library, _ = c.library()
    kernel = d.CUfunction(int(d.cuLibraryGetKernel(library, b"nothing")[1]))
    stream = d.cuStreamCreate(1)[1]
    d.cuStreamBeginCapture(stream, d.CUstreamCaptureMode(0))
    for _ in range(3):
        d.cuLaunchKernel(kernel, 2, 1, 1, 32, 1, 1, 0, stream, 0, 0)
    graph = c("end", d.cuStreamEndCapture(stream))
    c("nodes", d.cuGraphGetNodes(graph, 0)[:1] + d.cuGraphGetNodes(graph, 0)[2:])
    nodes, _ = c("three nodes", d.cuGraphGetNodes(graph, 3))
    c("type", d.cuGraphNodeGetType(nodes[0]))
    run = c("instantiate", d.cuGraphInstantiate(graph, 0))
    c("launch", d.cuGraphLaunch(run, stream))
    c("launch on legacy", d.cuGraphLaunch(run, 0))
    c("upload", d.cuGraphUpload(run, stream))
    c("synchronise", d.cuStreamSynchronize(stream))
    c("destroy graph", d.cuGraphDestroy(graph))
    c("launch after", d.cuGraphLaunch(run, stream))
    c("destroy run", d.cuGraphExecDestroy(run))


def _launch(c: Answers, label: str, kernel: Any, **sizes: Any) -> None:
    """Launch with a grid, a block, shared memory and attributes, with NULL pointers, and wait."""
    d = c.driver
    grid, block = sizes.get("grid", (1, 1, 1)), sizes.get("block", (1, 1, 1))
    pointer = ctypes.c_void_p(0)
    places = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
    parameters = ctypes.addressof(places) if sizes.get("parameters", True) else 0
    attributes = sizes.get("attributes")
    if attributes is None:
        answer = d.cuLaunchKernel(kernel, *grid, *block, sizes.get("shared", 0), sizes.get("stream", 0), parameters, 0)
    else:
        config = d.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes, config.hStream = sizes.get("shared", 0), d.CUstream(sizes.get("stream", 0))
        made = []
        for number, words in attributes:
            attribute, value = d.CUlaunchAttribute(), d.CUlaunchAttributeValue()
            attribute.id = d.CUlaunchAttributeID(number)
            value.pad = b"".join((word & 0xFFFFFFFF).to_bytes(4, "little") for word in words).ljust(64, b"\0")
            attribute.value = value
            made.append(attribute)
        config.attrs, config.numAttrs = made, len(made)
        answer = d.cuLaunchKernelEx(config, kernel, parameters, 0)
    c(label, answer)
    d.cuCtxSynchronize()


@_group
def launches(c: Answers) -> None:
    d = c.driver
    c.context()
    library, _ = c.library()
    names = ("nothing", "dynamic", "bounded", "clustered")
    nothing, dynamic, bounded, clustered = (
        d.CUfunction(int(d.cuLibraryGetKernel(library, name.encode())[1] or 0)) for name in names
    )
    _launch(c, "plain", nothing)
    _launch(c, "NULL function", d.CUfunction(0))
    for grid in ((0, 1, 1), (1, 0, 1), (1, 65535, 1), (1, 65536, 1), (1, 1, 65536), (2**31, 1, 1)):
        _launch(c, f"grid {grid}", nothing, grid=grid)
    for block in ((0, 1, 1), (1024, 1, 1), (1025, 1, 1), (1, 1025, 1), (1, 1, 64), (1, 1, 65), (64, 64, 1)):
        _launch(c, f"block {block}", nothing, block=block)
    for size in (0, 49152 - 128, 49152 - 127, 49152, 100000, 1 << 30):
        _launch(c, f"shared {size}", dynamic, block=(32, 1, 1), shared=size)
    for size in (49152, 49153):
        _launch(c, f"shared of nothing {size}", nothing, shared=size)
    _launch(c, "bounds kept", bounded, block=(128, 1, 1))
    _launch(c, "bounds broken", bounded, block=(129, 1, 1))
    _launch(c, "no parameters where there are none", nothing, parameters=False)
    for handle in (0, 1, 2):
        _launch(c, f"stream {handle}", nothing, stream=handle)
    _launch(c, "no attributes", nothing, attributes=[])
    for number, words in (
        (0, (7,)), (2, (1,)), (2, (0,)), (2, (2,)), (5, (0,)), (5, (2,)), (5, (9,)), (6, (1,)), (6, (0,)), (6, (2,)),
        (8, (0,)), (8, (-5,)), (8, (-100,)), (8, (100,)), (10, (0,)), (10, (1,)), (10, (2,)),
        (14, (0,)), (14, (50,)), (14, (100,)), (14, (101,)), (14, (-1,)), (14, (-2,)), (11, (2, 1, 1)), (16, (1,)),
    ):  # fmt: skip
        _launch(c, f"attribute {number} {words}", nothing, grid=(4, 1, 1), attributes=[(number, words)])
    for cluster in (
        (1, 1, 1),
        (2, 1, 1),
        (8, 1, 1),
        (9, 1, 1),
        (16, 1, 1),
        (17, 1, 1),
        (0, 1, 1),
        (2, 2, 2),
        (3, 1, 1),
    ):
        _launch(c, f"cluster {cluster}", nothing, grid=(144, 2, 2), attributes=[(4, cluster)])
        _launch(c, f"cluster {cluster} of a few", nothing, grid=(5, 2, 2), attributes=[(4, cluster)])
    d.cuKernelSetAttribute(d.CUfunction_attribute(14), 1, d.CUkernel(int(nothing)), 0)
    for cluster in ((9, 1, 1), (16, 1, 1), (17, 1, 1)):
        _launch(c, f"non-portable cluster {cluster}", nothing, grid=(144, 2, 2), attributes=[(4, cluster)])
    _launch(c, "clustered", clustered, grid=(4, 1, 1))
    _launch(c, "clustered, odd", clustered, grid=(3, 1, 1))
    _launch(c, "clustered, said", clustered, grid=(4, 1, 1), attributes=[(4, (2, 1, 1))])
    _launch(c, "clustered, said otherwise", clustered, grid=(4, 1, 1), attributes=[(4, (4, 1, 1))])
    for blocks in (1, 132, 132 * 32, 132 * 32 + 1, 10**6):
        _launch(c, f"cooperative {blocks}", nothing, grid=(blocks, 1, 1), attributes=[(2, (1,))])
        c(f"cooperative call {blocks}", d.cuLaunchCooperativeKernel(nothing, blocks, 1, 1, 32, 1, 1, 0, 0, 0))
    for blocks in (132 * 2, 132 * 2 + 1):
        _launch(
            c,
            f"cooperative, large blocks {blocks}",
            nothing,
            grid=(blocks, 1, 1),
            block=(1024, 1, 1),
            attributes=[(2, (1,))],
        )


@_group
def occupancy(c: Answers) -> None:
    d = c.driver
    c.context()
    library, _ = c.library()
    for name in ("nothing", "fill", "dynamic", "bounded"):
        kernel = d.cuLibraryGetKernel(library, name.encode())[1]
        function = d.cuKernelGetFunction(kernel)[1]
        for threads in (1, 32, 33, 96, 128, 129, 256, 500, 1024, 1025, 0, -1):
            for shared in (0, 1000, 20000, 49024):
                answer = d.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, shared)
                c(f"{name} {threads} threads {shared} shared", answer)
        for limit in (0, 100, 1024):
            answer = d.cuOccupancyMaxPotentialBlockSize(function, None, 0, limit)
            c(f"{name} block up to {limit}", answer)
        for blocks, threads in ((1, 32), (2, 128), (4, 512), (100, 32)):
            answer = d.cuOccupancyAvailableDynamicSMemPerBlock(function, blocks, threads)
            c(f"{name} shared for {blocks} of {threads}", answer)
        for cluster in ((1, 1, 1), (2, 1, 1), (4, 2, 1), (16, 1, 1)):
            config = d.CUlaunchConfig()
            config.gridDimX = config.gridDimY = config.gridDimZ = 16
            config.blockDimX, config.blockDimY, config.blockDimZ = 128, 1, 1
            attribute, value = d.CUlaunchAttribute(), d.CUlaunchAttributeValue()
            attribute.id = d.CUlaunchAttributeID(4)
            value.pad = b"".join(size.to_bytes(4, "little") for size in cluster).ljust(64, b"\0")
            attribute.value = value
            config.attrs, config.numAttrs = [attribute], 1
            c(f"{name} active clusters {cluster}", d.cuOccupancyMaxActiveClusters(function, config))
            c(f"{name} largest cluster {cluster}", d.cuOccupancyMaxPotentialClusterSize(function, config))


@_group
def tensor_maps(c: Answers) -> None:
    d = c.driver
    c.context()
    block = int(d.cuMemAlloc(1 << 20)[1])
    encode = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled
    room = ctypes.create_string_buffer(256)  # cuda-python's own may lie at any multiple of 16
    place = ctypes.c_void_p(ctypes.addressof(room) // 128 * 128 + 128)
    usual: dict[str, Any] = {"type": 7, "address": block, "sizes": (64, 64), "strides": (256,), "box": (16, 16)}
    usual |= {"steps": (1, 1), "interleave": 0, "swizzle": 0, "promotion": 0, "fill": 0}
    changes: list[dict[str, Any]] = [
        {}, {"type": 0}, {"type": 6}, {"type": 99}, {"address": block + 16}, {"address": block + 8}, {"address": 0},
        {"sizes": (0, 64)}, {"sizes": (2**32, 64), "strides": (2**34,)}, {"sizes": (2**32 + 1, 64), "strides": (2**35,)},
        {"strides": (8,)}, {"strides": (16,)}, {"strides": (2**40,)}, {"strides": (2**40 - 16,)},
        {"box": (256, 1)}, {"box": (257, 1)}, {"box": (0, 1)}, {"box": (3, 1)}, {"box": (4, 256)},
        {"steps": (2, 2)}, {"steps": (8, 8)}, {"steps": (9, 1)}, {"steps": (0, 1)},
        {"swizzle": 1}, {"swizzle": 1, "box": (8, 8)}, {"swizzle": 2}, {"swizzle": 3, "box": (32, 8)},
        {"swizzle": 3, "box": (64, 8)}, {"swizzle": 9}, {"interleave": 1}, {"interleave": 9}, {"promotion": 3},
        {"promotion": 9}, {"fill": 1}, {"fill": 1, "type": 3}, {"fill": 5},
        {"sizes": (64,), "strides": (), "box": (64,), "steps": (1,)},
        {"sizes": (8,) * 5, "strides": (32, 256, 2048, 16384), "box": (8,) * 5, "steps": (1,) * 5},
        {"sizes": (8,) * 3, "strides": (32, 256), "box": (8,) * 3, "steps": (1,) * 3, "interleave": 1},
        {"sizes": (8,) * 3, "strides": (32, 256), "box": (8,) * 3, "steps": (1,) * 3, "interleave": 2, "swizzle": 1},
    ]  # fmt: skip
    for change in changes:
        each = {**usual, **change}
        shown = {**change, "address": each["address"] - block} if "address" in change else change
        longs, ints = (
            [(kind * 5)(*each[key]) for key in keys]
            for kind, keys in ((ctypes.c_uint64, ("sizes", "strides")), (ctypes.c_uint32, ("box", "steps")))
        )
        rank, start = len(each["sizes"]), ctypes.c_void_p(each["address"])
        last = [each[key] for key in ("interleave", "swizzle", "promotion", "fill")]
        status = encode(place, each["type"], rank, start, *longs, *ints, *last)
        answer = (d.CUresult(status),)
        c(f"tiled {shown}", answer)


@_group
def peers(c: Answers) -> None:
    d = c.driver
    context = c.context()
    c("with itself", d.cuCtxEnablePeerAccess(context, 0))
    c("with NULL", d.cuCtxEnablePeerAccess(0, 0))
    c("disable", d.cuCtxDisablePeerAccess(context))
    if d.cuDeviceGetCount()[1] < 2:
        return
    other = d.cuDevicePrimaryCtxRetain(1)[1]
    c("can", d.cuDeviceCanAccessPeer(0, 1))
    c("enable with flags", d.cuCtxEnablePeerAccess(other, 1))
    c("enable", d.cuCtxEnablePeerAccess(other, 0))
    c("enable again", d.cuCtxEnablePeerAccess(other, 0))
    c("disable", d.cuCtxDisablePeerAccess(other))
    c("disable again", d.cuCtxDisablePeerAccess(other))


if __name__ == "__main__":
    answers = Answers()
    GROUPS[sys.argv[1]](answers)
    sys.stdout.write(json.dumps(answers.lines))
    sys.stdout.flush()
    os._exit(0)  # what a group leaves behind is no part of it
