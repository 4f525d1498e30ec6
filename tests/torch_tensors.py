"""Tensors of PyTorch of all kinds: plain ones, and such as have no memory, no strides, or not what they seem to have."""

from __future__ import annotations

import warnings
from typing import Any

__all__ = ["tensors_of_all_kinds"]


def tensors_of_all_kinds(torch: Any, device: str) -> dict[str, Any]:
    """Make tensors on a device, and some elsewhere; each outlives what it was made in."""
    plain, square = torch.arange(12.0, device=device), torch.ones((3, 4), device=device)
    complex_, freed = torch.ones(4, dtype=torch.complex64, device=device), torch.ones(64, device=device)
    freed.untyped_storage().resize_(0)
    moved = torch.nn.Parameter(torch.ones(4, device=device))
    moved.data = torch.ones(4)

    class Subclass(torch.Tensor):  # type: ignore[misc, name-defined]
        """Nothing more than a tensor."""

    found = {
        "plain": plain,
        "a part": plain[3:],
        "with gradients": torch.ones(4, device=device, requires_grad=True),
        "a parameter": torch.nn.Parameter(plain),
        "a buffer": torch.nn.Buffer(plain),
        "a subclass": plain.as_subclass(Subclass),
        "in inference": _in_inference(torch, device),
        "of no axis": torch.tensor(5.0, device=device),
        "empty": torch.empty(0, device=device),
        "empty, with an offset": plain[12:],
        "empty, strided": torch.empty((4, 0), device=device).t(),
        "strided": square.t(),
        "strided, of length 1": square[:1].t()[:1],
        "a column": square[:, 1],
        "expanded": plain[:1].expand(5),
        "channels last": torch.ones((1, 2, 3, 3), device=device).to(memory_format=torch.channels_last),
        "conjugate": complex_.conj(),
        "negative": complex_.conj().imag,
        "freed": freed,
        "meta": torch.empty(4, device="meta"),
        "on the CPU": torch.ones(4),
        "moved to the CPU": moved,
        "sparse": torch.eye(3, device=device).to_sparse(),
        "functional": torch._to_functional_tensor(plain),
        "lazy clone": torch._lazy_clone(plain),
    }
    for name in ("int8", "uint16", "bool", "complex128", "bfloat16", "float8_e5m2", "float8_e8m0fnu", "bits8"):
        found[name] = torch.empty(4, dtype=getattr(torch, name), device=device)
    with warnings.catch_warnings():  # prototypes, deprecations
        warnings.simplefilter("ignore")
        found["compressed"] = torch.eye(3, device=device).to_sparse_csr()
        found["nested"] = torch.nested.nested_tensor([plain[:2], plain[:3]])
        found["jagged"] = torch.nested.nested_tensor([plain[:2], plain[:3]], layout=torch.jagged)
        found["quantized"] = torch.quantize_per_tensor(plain, 0.1, 10, torch.quint8)
    torch.vmap(lambda tensor: found.setdefault("mapped", tensor).sum())(square)
    torch.func.grad(lambda tensor: found.setdefault("differentiated", tensor).sum())(plain)
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        found["fake"] = torch.empty(4, device=device)
    return found


def _in_inference(torch: Any, device: str) -> Any:
    with torch.inference_mode():
        return torch.ones(4, device=device)
