"""Kernels that Triton compiled, launched as Triton's are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from podium._launch_config import Dim3, dim3
from podium._object_code import ObjectCode
from podium._signature import Signature
from podium.errors import LaunchConfigError

__all__ = ["TritonKernel"]


class TritonKernel:
    """A kernel of Triton's, called as Triton calls it: ``kernel[grid](*args)``; a grid is in programs.

    `kernel` is podium's, for everything else: ``kernel.load()``, ``kernel.run``. The size of a block and what else a
    launch has is known from Triton's metadata. Parameters that Triton folded into the code, those of type
    ``tl.constexpr`` and others that were 1, stand in the call as they do in Triton's, and their values have no effect.
    """

    def __init__(
        self,
        code: ObjectCode,
        descriptors: Mapping[int, Mapping[str, Any] | None],
        describe: Callable[[Any, Mapping[str, Any]], Any] | None = None,
    ) -> None:
        """Take what `TritonBinary` has, and what makes the device's own descriptor of one of Triton's."""
        import podium

        self.kernel = podium.kernel(code, contiguous=False)
        self._descriptors, self._describe = dict(descriptors), describe
        self._nested = any("." in name for name in self.kernel.signature.names)
        self._ctas = code.metadata["num_ctas"]
        self._block = code.metadata["num_warps"] * code.target.warp_size

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.name

    @property
    def signature(self) -> Signature:
        """The types and names of its parameters, those of tensor descriptors and tuples one by one."""
        return self.kernel.signature

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        if self._ctas == 1:
            launch = self.kernel[grid, self._block]
        elif callable(grid):
            launch = self.kernel[lambda arguments: self._scaled(grid(arguments)), self._block]
        else:
            launch = self.kernel[self._scaled(grid), self._block]
        return _Nested(self, launch) if self._nested else launch

    def _scaled(self, grid: Any) -> Dim3:
        """Turn programs into blocks: a program has as many as Triton's num_ctas says."""
        try:
            x, y, z = dim3(grid, "grid")
        except LaunchConfigError as error:
            raise error.of_kernel(self.name) from None
        return x * self._ctas, y, z

    def leaves(self, args: Sequence[Any], keywords: dict[str, Any]) -> list[Any]:
        """Return the values that arguments stand for, tuples and tensor descriptors one by one; take named ones out."""
        names = list(dict.fromkeys(name.partition(".")[0] for name in self.signature.names))
        ordered = [*args, *(keywords.pop(name) for name in names[len(args) :] if name in keywords)]
        result: list[Any] = []
        for position, value in enumerate(ordered):
            if position in self._descriptors:
                result += self._described(value, self._descriptors[position])
            else:
                result += _flatten(value)
        return result

    def _described(self, value: Any, about: Mapping[str, Any] | None) -> Iterator[Any]:
        """Give what a tensor descriptor of Triton's stands for: the device's own or the array, sizes and strides."""
        shape, strides = tuple(value.shape), tuple(value.strides)
        if about is None or self._describe is None:
            yield from (value.base, *shape, *strides, getattr(value, "padding", "zero") == "nan")
        else:
            yield self._describe(value, about)
        yield from (*shape, *strides)

    def __repr__(self) -> str:
        return f"<Triton kernel {self.name}>"


class _Nested:
    """A launch whose arguments have tuples or tensor descriptors among them."""

    def __init__(self, kernel: TritonKernel, launch: Callable[..., None]) -> None:
        self._kernel, self._launch = kernel, launch

    def __call__(self, *args: Any, **keywords: Any) -> None:
        values = self._kernel.leaves(args, keywords)  # before the rest of the keywords are passed on
        self._launch(*values, **keywords)


def _flatten(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _flatten(each)
    else:
        yield value
