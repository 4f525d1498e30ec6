"""Calls about devices, contexts, code and memory; see answers.py."""

from __future__ import annotations

import ctypes

from recording.cuda.answers import Answers, group


@group
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


@group
def statuses(c: Answers) -> None:
    d = c.driver
    for status in d.CUresult:
        c(f"name of {int(status)}", d.cuGetErrorName(status))
        code, text = d.cuGetErrorString(status)
        c(f"text of {int(status)}", (code, text and text[:40]))  # the long ones go on


@group
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


@group
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


@group
def modules(c: Answers) -> None:
    d = c.driver
    c.context()
    library, code = c.library()
    other = bytearray(code)
    other[49 if code[8] >= 8 else 48] = 80  # e_flags: made for sm_80
    images = {
        "nothing": bytes(64),
        "text": b"not code at all" + bytes(64),
        "empty ELF": b"\x7fELF" + bytes(124),
        "another device": bytes(other),
        "wrong PTX": b".version 7.0\n.target sm_70\n.visible .entry k( {\0",
    }
    for version, target in (("9.9", "sm_90"), ("7.0", "sm_70"), ("8.0", "sm_200")):
        ptx = f".version {version}\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 p) {{ ret; }}\0"
        images[f"PTX {version} {target}"] = ptx.encode()
    for label, image in images.items():
        c(f"module of {label}", d.cuModuleLoadData(image))
        status, late = c.both(f"library of {label}", d.cuLibraryLoadData(image, [], [], 0, [], [], 0))
        if status == 0:
            c(f"kernels of {label}", d.cuLibraryGetKernelCount(late))
            c(f"kernel of {label}", d.cuLibraryGetKernel(late, b"k"))
            c(f"global of {label}", d.cuLibraryGetGlobal(late, b"k"))
            c(f"unloading {label}", d.cuLibraryUnload(late))
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


@group
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


@group
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
