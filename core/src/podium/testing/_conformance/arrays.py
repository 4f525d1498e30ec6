"""Arrays: podium's own, and those of others in every protocol."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest

import podium
from podium._element_types import element_type
from podium.backend import Driver
from podium.errors import ArgumentTypeError, ArgumentValueError, ArrayDeviceError, ToolchainError
from podium.testing._conformance.contract import contract
from podium.testing._conformance.foreign_array import DataPtrArray, DlpackArray
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Arrays"]

_TYPES = ("i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp16", "fp32", "fp64")
_SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (7,), (0,), (3, 5), (2, 0, 4), (2, 3, 4, 5))
_CPU, _CUDA = 1, 2
_NOWHERE = 15  # DLPack's number of a device that no backend of podium reaches

_TOUCH = 'extern "C" __global__ void touch(int* x) { if (x) x[0] += 1; }'
_BOTH = 'extern "C" __global__ void both(int* x, int* y) { }'
_READ = 'extern "C" __global__ void read(const int* x) { }'


@contract("Arguments")
class Arrays(Subject):
    """What kernels take as arrays."""

    @pytest.mark.parametrize("dtype", _TYPES)
    def test_arrays_give_back_what_was_put_in(self, driver: Driver, dtype: str) -> None:
        """An array of every element type and shape, also without axes and empty, gives its elements back."""
        import numpy

        for shape in _SHAPES:
            count = int(numpy.prod(shape, dtype=int))
            values = (numpy.arange(count) * 3 % 100).astype(element_type(dtype).numpy).reshape(shape)
            array = podium.asarray(values)
            assert (array.shape, array.dtype, array.size) == (shape, dtype, count)
            assert array.nbytes == values.nbytes and array.tobytes() == values.tobytes()
            back = array.numpy()
            assert back.dtype == values.dtype and back.shape == shape and (back == values).all()
            assert array.tolist() == values.tolist()
            assert podium.asarray(array).tobytes() == array.tobytes()
            assert podium.empty(shape, dtype).shape == shape

    def test_brain_floats_give_back_their_bits(self, driver: Driver) -> None:
        """bf16, which numpy lacks, is made of numbers and gives numbers back."""
        array = podium.asarray([1.0, 0.0, -2.5], "bf16")
        assert array.tobytes() == struct.pack("=3H", 0x3F80, 0, 0xC020)
        assert array.tolist() == [1.0, 0.0, -2.5]

    @pytest.mark.needs("observes")
    def test_an_array_is_passed_as_its_address(self, driver: Driver, level: Level) -> None:
        """The kernel works on the very memory of the array; a copy is not made."""
        x, kernel = podium.asarray([41, 1]), self._touch()
        kernel[1, 1](x)
        kernel[1, 1](x)
        self._check_touched(driver, x, 43)
        level.check(kernel)

    @pytest.mark.needs("observes")
    @pytest.mark.parametrize("old", [False, True], ids=["versioned", "old"])
    def test_dlpack_arrays_of_others(self, driver: Driver, level: Level, old: bool) -> None:
        """An array that speaks ``__dlpack__`` is taken, from before DLPack 1.0 too, and asked for its device."""
        x = podium.asarray([41, 1])
        self._touch()[1, 1](DlpackArray(x, x.ptr, (2,), "i32", x.__dlpack_device__(), old=old))
        self._check_touched(driver, x, 42)

    @pytest.mark.needs("observes")
    def test_arrays_with_data_ptr(self, driver: Driver, level: Level) -> None:
        """An array that only has ``data_ptr()`` is taken for an array that kernels can reach."""
        x = podium.asarray([41, 1])
        self._touch()[1, 1](DataPtrArray(x, x.ptr))
        self._check_touched(driver, x, 42)

    @pytest.mark.needs("host_memory", "observes")
    def test_numpy_arrays(self, driver: Driver, level: Level) -> None:
        """Where kernels reach host memory, numpy arrays and other buffers are arguments, without a copy."""
        import numpy

        kernel = self._touch()
        x, y = numpy.array([41, 1], numpy.int32), bytearray(struct.pack("=i", 41))
        kernel[1, 1](x)
        kernel[1, 1](y)
        kernel[1, 1](x[1:])
        podium.synchronize()
        if self.capabilities.executes:
            assert x.tolist() == [42, 2] and struct.unpack("=i", y) == (42,)

    @pytest.mark.needs("host_memory")
    def test_arrays_are_seen_by_numpy(self, driver: Driver) -> None:
        """Where kernels reach host memory, numpy sees an array's memory through DLPack and as a buffer."""
        import numpy

        x = podium.asarray([[1, 2, 3], [4, 5, 6]])
        for view in (numpy.from_dlpack(x), numpy.asarray(x)):
            assert view.tolist() == x.tolist()
            assert view.__array_interface__["data"][0] == x.ptr

    def test_arrays_are_exported_as_dlpack(self, driver: Driver) -> None:
        """An array tells its DLPack device, one that the driver states, and exports itself in both forms."""
        x = podium.asarray([1, 2, 3])
        assert x.__dlpack_device__()[0] in self.driver_class.dlpack_devices
        try:
            capsules = [x.__dlpack__(), x.__dlpack__(max_version=(1, 0))]
        except BufferError as error:
            if not isinstance(error.__cause__, ToolchainError):
                raise
            pytest.skip(f"no host C compiler for the exporter: {error}")
        assert ["dltensor" in repr(each) for each in capsules] == [True, True]
        assert "dltensor_versioned" in repr(capsules[1])

    def test_arrays_are_exported_by_the_cuda_array_interface(self, driver: Driver) -> None:
        """An array in CUDA memory has ``__cuda_array_interface__``, and others have none that a library could find."""
        for dtype, typestr in (("fp32", "<f4"), ("i64", "<i8"), ("u8", "|u1"), ("i1", "|b1")):
            x = podium.empty((2, 3), dtype)
            if x.__dlpack_device__()[0] != _CUDA:
                assert not hasattr(x, "__cuda_array_interface__")
                continue
            interface = x.__cuda_array_interface__
            assert (interface["shape"], interface["data"], interface["version"]) == ((2, 3), (x.ptr, False), 3)
            assert interface["typestr"] == typestr and interface["strides"] is None and interface["stream"] is None
            assert x.numpy().dtype.str == typestr

    def test_arrays_are_made_of_arrays(self, driver: Driver) -> None:
        """`asarray` and `copy_from` take arrays in every protocol, in memory of the device and of the host."""
        import numpy

        x, host = podium.asarray([[1, 2, 3], [4, 5, 6]]), numpy.array([[7, 8, 9], [10, 11, 12]], numpy.int32)
        sources: list[Any] = [
            x,
            DlpackArray(x, x.ptr, (2, 3), "i32", x.__dlpack_device__()),
            DlpackArray(x, x.ptr, (2, 3), "i32", x.__dlpack_device__(), old=True),
        ]
        if x.__dlpack_device__()[0] == _CUDA:
            sources.append(SimpleNamespace(__cuda_array_interface__=x.__cuda_array_interface__))
        for source in sources:
            copied = podium.asarray(source)
            assert copied.ptr != x.ptr and (copied.shape, copied.dtype) == ((2, 3), "i32")
            assert copied.tolist() == x.tolist()
        for source in (host, DlpackArray(host, host.ctypes.data, (2, 3), "i32", (_CPU, 0))):
            assert podium.asarray(source).tolist() == host.tolist()
            copied.copy_from(source)
            assert copied.tolist() == host.tolist()
        for source in sources:
            copied.copy_from(source)
            assert copied.tolist() == x.tolist()
            copied.copy_from(host)
        assert podium.asarray(host.T).tolist() == host.T.tolist()
        with pytest.raises(ArgumentTypeError, match="does not reach"):
            podium.asarray(DlpackArray(x, x.ptr, (2, 3), "i32", (_NOWHERE, 0)))
        with pytest.raises(ArgumentValueError, match="contiguous"):
            podium.asarray(DlpackArray(x, x.ptr, (3, 2), "i32", x.__dlpack_device__(), strides=(1, 3)))

    @pytest.mark.needs("streams")
    def test_copies_may_wait_for_one_stream_only(self, driver: Driver) -> None:
        """With a stream, copies come after the work in that stream, and are done when the call returns."""
        x, stream = podium.asarray([1, 2, 3]), podium.Stream()
        x.copy_from([4, 5, 6], stream=stream)
        assert x.tobytes(stream=stream) == struct.pack("=3i", 4, 5, 6)
        assert x.numpy(stream=stream.handle).tolist() == [4, 5, 6]
        y = podium.asarray([0, 0, 0])
        y.copy_from(x, stream=stream)
        assert y.tolist() == [4, 5, 6]

    @pytest.mark.needs("pinned", "observes")
    def test_pinned_arrays(self, driver: Driver, level: Level) -> None:
        """Pinned memory is a buffer for the host and an argument for kernels, and copied from and to like any array."""
        import numpy

        x, kernel = podium.empty(2, "i32", pinned=True), self._touch()
        view = numpy.asarray(x)
        view[:] = [41, 7]
        assert x.pinned and not podium.empty(2).pinned
        assert view.__array_interface__["data"][0] == x.ptr and x.tolist() == [41, 7]
        assert x.__dlpack_device__()[0] in self.driver_class.dlpack_devices
        for given in (x, view):
            kernel[1, 1](given)
            podium.synchronize()
            if self.capabilities.records:
                assert self.last(driver).parameters == (struct.pack("=Q", x.ptr),)
        if self.capabilities.executes:
            assert view.tolist() == [43, 7]
        device = podium.asarray(x)
        assert device.tolist() == view.tolist() and not device.pinned
        view[:] = [1, 2]
        device.copy_from(x)
        x.copy_from([5, 6])
        assert (device.tolist(), view.tolist()) == ([1, 2], [5, 6])
        x.copy_from(device)
        assert view.tolist() == [1, 2]
        for shape in ((), (0,), (2, 3)):
            assert podium.empty(shape, "bf16", pinned=True).shape == shape
        level.check(kernel)

    def test_an_address_on_the_host_is_refused_while_debugging(self, driver: Driver) -> None:
        """With debugging on, an address that the driver knows to be the host's, and out of reach, is refused."""
        import numpy

        x, own, kernel = numpy.zeros(64, numpy.int32), podium.asarray([1]), self._touch()
        kernel[1, 1](None)
        with podium.debugging():
            kernel[1, 1](own.ptr)
            known = driver.pointer_device(x.ctypes.data)
            if known is None or known[0] in self.driver_class.dlpack_devices:
                return
            with pytest.raises(ArrayDeviceError) as caught:
                kernel[1, 1](x.ctypes.data)
            assert (caught.value.kind, caught.value.argument) == ("host", "x")

    def test_host_arrays_are_refused_where_kernels_do_not_reach_them(self, driver: Driver, level: Level) -> None:
        """A host array given to a device kernel is an error that says so.

        Rows ARG-11.
        """
        import numpy

        if _CPU in self.driver_class.dlpack_devices:
            pytest.skip("not claimed: memory apart from the host's")
        kernel = self._touch()
        kernel[1, 1](None)
        before = self.count(driver)
        x = numpy.array([1], numpy.int32)
        for host in (x, DlpackArray(x, x.ctypes.data, (1,), "i32", (_CPU, 0))):
            with pytest.raises(ArrayDeviceError) as caught:
                kernel[1, 1](host)
            assert (caught.value.kind, caught.value.kernel, caught.value.argument) == ("host", "touch", "x")
        assert self.count(driver) == before

    def test_arrays_of_other_devices_are_refused(self, driver: Driver, level: Level) -> None:
        """An array on a kind of device that the driver does not reach is another error.

        Rows ARG-11.
        """
        kernel, x = self._touch(), podium.asarray([1])
        kernel[1, 1](None)
        with pytest.raises(ArrayDeviceError) as caught:
            kernel[1, 1](DlpackArray(x, x.ptr, (1,), "i32", (_NOWHERE, 0)))
        assert caught.value.kind == "device"

    def test_arrays_of_peers_without_access_are_refused(self, driver: Driver, level: Level) -> None:
        """Arrays of two devices that do not reach each other's memory are a third error, and name both."""
        pairs = [(a.index, b.index) for a in driver.devices()[:4] for b in driver.devices()[:4]]
        apart = [(first, second) for first, second in pairs if not driver.can_access(first, second)]
        if not apart:
            pytest.skip("there are no two devices here that do not reach each other")
        first, second = apart[0]
        kernel = podium.kernel(_BOTH, "both", signature="x: *i32, y: *i32")
        x, y = podium.asarray([1], device=first), podium.asarray([1], device=second)
        kernel[1, 1](x, x)
        before = self.count(driver)
        with pytest.raises(ArrayDeviceError) as caught:
            kernel[1, 1](x, y)
        assert caught.value.kind == "peer" and str(first) in str(caught.value) and str(second) in str(caught.value)
        assert self.count(driver) == before

    def test_read_only_arrays_need_a_const_parameter(self, driver: Driver, level: Level) -> None:
        """A read-only array is refused for a pointer that may be written through, and taken for a const one."""
        x = podium.asarray([41])
        readonly = DlpackArray(x, x.ptr, (1,), "i32", x.__dlpack_device__(), readonly=True)
        with pytest.raises(ArgumentValueError, match="read-only"):
            self._touch()[1, 1](readonly)
        podium.kernel(_READ, "read", signature="x: *ki32")[1, 1](readonly)

    def test_arrays_that_are_not_contiguous(self, driver: Driver, level: Level) -> None:
        """An array with gaps is refused, unless the kernel was declared with contiguous=False."""
        x = podium.asarray(list(range(12)))
        device = x.__dlpack_device__()
        gaps = [
            DlpackArray(x, x.ptr, (6,), "i32", device, strides=(2,)),
            DlpackArray(x, x.ptr, (3, 4), "i32", device, strides=(1, 3)),
        ]
        if self.capabilities.addresses:
            gaps.append(DlpackArray(x, x.ptr + 44, (12,), "i32", device, strides=(-1,)))
        whole = [
            DlpackArray(x, x.ptr, (3, 4), "i32", device, strides=(4, 1)),
            DlpackArray(x, x.ptr, (1, 12), "i32", device, strides=(77, 1)),
            DlpackArray(x, x.ptr, (0, 4), "i32", device, strides=(9, 9)),
        ]
        strict = self._touch()
        tolerant = podium.kernel(_TOUCH, "touch", signature="x: *i32", contiguous=False)
        for array in gaps:
            with pytest.raises(ArgumentValueError, match="contiguous"):
                strict[1, 1](array)
            tolerant[1, 1](array)
        for array in whole:
            strict[1, 1](array)

    def test_debugging_checks_element_types(self, driver: Driver, level: Level) -> None:
        """With debugging on, an array of another element type is an error; without, it is the user's choice.

        Rows ARG-13.
        """
        kernel, x = self._touch(), podium.asarray([1.5])
        kernel[1, 1](x)
        with podium.debugging(), pytest.raises(ArgumentTypeError, match="fp32"):
            kernel[1, 1](x)
        with podium.debugging():
            kernel[1, 1](podium.asarray([1]))

    def test_what_is_no_array_is_refused(self, driver: Driver, level: Level) -> None:
        """Lists, strings, floats and other objects are errors that name the argument and what would do.

        Rows ARG-07.
        """
        kernel = self._touch()
        kernel[1, 1](None)
        wrong: list[Any] = [[1, 2], "x", 1.5, object(), {}, int]
        for value in wrong:
            with pytest.raises(ArgumentTypeError) as caught:
                kernel[1, 1](value)
            assert caught.value.argument == "x" and "*i32" in str(caught.value)

    def _touch(self) -> podium.Kernel:
        return podium.kernel(_TOUCH, "touch", signature="x: *i32")

    def _check_touched(self, driver: Driver, x: Any, expected: int) -> None:
        if self.capabilities.executes:
            assert x.tolist()[0] == expected
        if self.capabilities.records:
            assert self.last(driver).parameters == (struct.pack("=Q", x.ptr),)
