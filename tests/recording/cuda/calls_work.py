"""Calls about streams, captures, launches and what they need; see answers.py."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from recording.cuda.answers import Answers, group


@group
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


@group
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


@group
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


@group
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
    known = d.cuGraphKernelNodeGetParams(nodes[0])
    c("parameters of a node", (*known[:1], *_sizes(known[1]), int(known[1].func) != 0, int(known[1].kern) != 0))
    known[1].gridDimX = 3
    c("set them", d.cuGraphExecKernelNodeSetParams(run, nodes[0], known[1]))
    known[1].blockDimX = 2000
    c("set what cannot be", d.cuGraphExecKernelNodeSetParams(run, nodes[0], known[1]))
    c("leave out", d.cuGraphNodeSetEnabled(run, nodes[1], 0))
    c("is left out", d.cuGraphNodeGetEnabled(run, nodes[1]))
    c("leave out of another", d.cuGraphNodeSetEnabled(run, nodes[1], 1))
    c("launch changed", d.cuGraphLaunch(run, stream))
    c("synchronise", d.cuStreamSynchronize(stream))
    _captured(c, "launch into a capture", 2, lambda s: d.cuGraphLaunch(run, s))
    c("destroy graph", d.cuGraphDestroy(graph))
    c("launch after", d.cuGraphLaunch(run, stream))
    c("destroy run", d.cuGraphExecDestroy(run))


@group
def forks(c: Answers) -> None:
    """A capture of two streams: how many nodes the next one of a stream will follow."""
    d = c.driver
    c.context()
    library, _ = c.library()
    kernel = d.CUfunction(int(d.cuLibraryGetKernel(library, b"nothing")[1]))
    first, second, event = d.cuStreamCreate(1)[1], d.cuStreamCreate(1)[1], d.cuEventCreate(0)[1]

    def launch(stream: Any) -> None:
        d.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0)

    def state(label: str, stream: Any) -> None:
        answer = d.cuStreamGetCaptureInfo(stream)
        c(label, (*answer[:2], answer[-1]))

    d.cuStreamBeginCapture(first, d.CUstreamCaptureMode(2))
    state("nothing yet", first)
    state("another", second)
    launch(first)
    state("one launch", first)
    d.cuEventRecord(event, first)
    d.cuStreamWaitEvent(second, event, 0)
    state("forked", second)
    launch(second)
    launch(first)
    d.cuEventRecord(event, second)
    d.cuStreamWaitEvent(first, event, 0)
    state("joined", first)
    launch(first)
    state("after that", first)
    c("end", d.cuStreamEndCapture(first))


def _sizes(parameters: Any) -> tuple[int, ...]:
    return parameters.gridDimX, parameters.blockDimX, parameters.sharedMemBytes


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


@group
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


@group
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


@group
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
        {"swizzle": 3, "box": (64, 8)}, {"swizzle": 4, "box": (8, 8)}, {"swizzle": 6, "box": (8, 8)}, {"swizzle": 9}, {"interleave": 1}, {"interleave": 9}, {"promotion": 3},
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


@group
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
