"""Tensors of PyTorch, read by the C functions of its library: as its exchange table tells, and only where that is sure."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
from fake_launching import Failure, Pair, bytes_of
from torchlike import ELEMENTS, as_torch, torchlike

from podium import _state, _tensor_reader
from podium._tensor_reader import tensor_reader
from podium.testing import FakeArray

STRANGE: list[dict[str, Any]] = [
    {"data": 2**63 - 16},
    {"data": 0},
    {"contiguous": False},
    {"element": "uint8"},
    {"element": "float8_e5m2"},
    {"trouble": 1},
    {"trouble": 2},
    {"device": 1},
    {"device_type": 1},
    {"device_type": 2},
]
"""Tensors that are plain, or in each way not, or elsewhere."""


@pytest.fixture
def torch() -> Iterator[Any]:
    """A library in the place of PyTorch, no tensor of which anybody has seen."""
    with as_torch(torchlike()) as library:
        yield library


def pair(**options: Any) -> Pair:
    """A signature of three pointers at both levels."""
    return Pair({"x": "*fp32", "y": "*fp32", "z": "*fp32"}, contiguous=True, **options)


def addresses(outcome: Any) -> list[int]:
    return [int.from_bytes(data, sys.byteorder) for data in bytes_of(outcome)]


def test_tensors_are_read_without_their_table(torch: Any) -> None:
    """Once one has been seen, a launch in C asks the table for no further tensor; the interpreted one asks for each."""
    both, x = pair(), [torch.Tensor(4096 * number) for number in (1, 2, 3)]
    both.same(*x)
    asked, told = torch._C.counts()
    assert addresses(both.same(*x)) == [4096, 8192, 12288]
    assert torch._C.counts() == (asked + 3, told + 3)


def test_parameters_among_tensors_are_read_as_they_are(torch: Any) -> None:
    """A tensor and a parameter of a model are of two types; both are read, in any order, whichever was seen first."""
    both, x = pair(), torch.Tensor(4096)
    w = torch.nn.Parameter(torch.Tensor(8192))
    for arguments in ((w, w, w), (x, w, x), (w, x, x), (w, w, x)):
        both.same(*arguments)
        asked, told = torch._C.counts()
        assert addresses(both.same(*arguments)) == [each.data_ptr() for each in arguments]
        assert torch._C.counts() == (asked + 3, told + 3)


def test_what_is_not_plain_fares_as_by_the_table(torch: Any) -> None:
    """Tensors of other kinds, types, layouts and devices: the same address, device or error as on the interpreted level."""
    both, plain = pair(), torch.Tensor()
    failures = 0
    for keywords in STRANGE:
        for _ in range(2):
            both.same(plain, plain, plain)
            for arguments in ((torch.Tensor(**keywords), plain, 64), (plain, torch.Tensor(**keywords), None)):
                failures += isinstance(both.same(*arguments), Failure)
    assert failures == 2 * 2 * 7
    both.same(plain, torch.Tensor(device=1), plain)
    both.same(torch.Tensor(device=1), 64, None)
    assert _state.recent_launches()[-1].device == 1


def test_a_tensor_that_has_moved_is_where_it_is(torch: Any) -> None:
    """What a tensor said at one launch is not taken for what it says at the next."""
    both, x = pair(), torch.Tensor(4096)
    both.same(x, x, x)
    torch._C.move(x, 64, 12, 0)
    assert addresses(both.same(x, x, x)) == [64] * 3
    torch._C.move(x, 128, 12, 1)
    assert addresses(both.same(x, x, x)) == [128] * 3
    assert _state.recent_launches()[-1].device == 1
    torch._C.move(x, 128, 1, 0)
    assert isinstance(both.same(x, x, x), Failure)


def test_functions_that_contradict_the_table_are_not_used(torch: Any) -> None:
    """If the first tensor is elsewhere by the functions than by the table, the table is asked for all."""
    both, x = pair(), torch.Tensor(trouble=3)
    both.same(x, x, x)
    asked, _ = torch._C.counts()
    both.same(x, x, torch.Tensor(64))
    assert torch._C.counts()[0] == asked


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_while_the_reader_is_looked_for(
    error: type[BaseException], torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C during the first launch with a kind of tensors reaches the caller; another failure leaves them to their table."""
    both, x = pair(), torch.Tensor(4096)

    def fail(kind: type) -> None:
        raise error

    monkeypatch.setattr(_tensor_reader, "tensor_reader", fail)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            both.launchers["generated"](1, 1, 1, 0, both.function, x, x, x)
    assert addresses(both.same(x, x, x)) == [4096] * 3


def test_a_library_that_is_otherwise_is_left_to_its_table() -> None:
    """A function is missing, the address of a tensor is in its object twice or never, or what is read does not fit."""
    libraries = [torchlike("#define aoti_torch_get_dtype another_name\n"), *(torchlike() for _ in range(4))]
    for mode, library in enumerate(libraries):
        library._C.pretend(mode)
        try:
            with as_torch(library):
                assert tensor_reader(library.Tensor) is None
                both, x = pair(), library.Tensor(4096)
                for _ in range(2):
                    assert addresses(both.same(x, x, x)) == [4096] * 3
        finally:
            library._C.pretend(0)


def test_only_tensors_themselves_have_a_reader(torch: Any) -> None:
    """Subclasses may mean something else, and what has no table has nothing that could be read instead of it."""
    assert tensor_reader(torch.Tensor) == tensor_reader(torch.nn.Parameter) is not None
    assert tensor_reader(type("Tensor", (torch.Tensor,), {"__slots__": ()})) is None
    assert tensor_reader(FakeArray) is None
    del sys.modules["torch"]
    assert tensor_reader(torch.Tensor) is None
    for broken in (types.ModuleType("torch"), torchlike()):
        sys.modules["torch"] = broken
        if hasattr(broken, "Tensor"):
            del broken.Tensor.__dlpack_c_exchange_api__
        assert tensor_reader(getattr(broken, "Tensor", int)) is None


def test_only_element_types_of_the_table_are_read(torch: Any) -> None:
    """What the table does not know is not read, since it is for the launch to say so."""
    made = tensor_reader(torch.Tensor)
    assert made is not None
    elements = int.from_bytes(made[16:24], sys.byteorder)
    assert elements == sum(1 << number for name, number in ELEMENTS.items() if name != "float8_e5m2")


@pytest.fixture
def pytorch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """PyTorch itself, with the device of the fake driver for one of its own: numbers 12 are for others' devices."""
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed here")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this PyTorch has no DLPack C exchange table")
    module: Any = types.ModuleType("torch.privateuseone")
    module._lazy_init, module.is_initialized, module.is_available = lambda: None, lambda: True, lambda: True
    module.device_count, module.current_device = lambda: 2, lambda: 0
    monkeypatch.setitem(sys.modules, "torch.privateuseone", module)
    return torch


def test_pytorch_is_read(pytorch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions are found in PyTorch itself, and say of tensors on a device what the table says."""
    assert tensor_reader(pytorch.Tensor) is not None
    tensors = [pytorch.from_dlpack(FakeArray(address)) for address in (4096, 12, 2**40)]
    tensors.append(pytorch.from_dlpack(FakeArray(64, 1)))
    for both in (pair(), Pair({"x": "*fp32", "y": "*fp32", "z": "*fp32", "n": "i8"})):
        more = [1] * (len(both.launchers["generated"].signature) - 3)
        for x in tensors * 2:
            assert addresses(both.same(x, x, x, *more))[:3] == [x.data_ptr()] * 3
            assert _state.recent_launches()[-1].device == x.device.index
        for other in (pytorch.ones(3), pytorch.eye(3).to_sparse(), pytorch.nn.Parameter(pytorch.ones(3))):
            interpreted, generated = both.outcomes(tensors[0], other, other, *more)
            assert isinstance(interpreted, Failure) and interpreted.kind is generated.kind
        monkeypatch.setattr(_tensor_reader, "tensor_reader", lambda kind: None)  # the other one by the table
