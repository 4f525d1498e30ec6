"""A kernel bound to a grid and a block: what ``kernel[grid, block]`` gives, and what is then called.

`Launch` is the interpreted one. When the generated module is ready it makes the C object of the same name and behaviour
for itself, and puts it in its own place among the kernel's launches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from podium._launch_config import Dim3, LaunchConfig, pack_attributes
from podium._limits import check_features, check_function, check_limits
from podium._state import ATTENDED, CAPTURES, DEBUG, words
from podium._stream import check_stream, stream_handle
from podium.errors import ArgumentValueError, LaunchConfigError

if TYPE_CHECKING:
    from podium._binding import Binding

__all__ = ["DynamicLaunch", "Grid", "Launch", "name_arguments"]

Grid = int | Iterable[int] | Callable[[Mapping[str, Any]], int | Iterable[int]]


class Launch:
    """A kernel bound to a launch configuration and, if one was given, a stream. Call it with the kernel's arguments.

    `stream_device` is the device of the stream, if it tells: the launch is one there.

    Keywords: ``stream`` and ``shared`` (bytes) for this call, and arguments by the names of the kernel's parameters.
    """

    def __init__(
        self, binding: Binding, config: LaunchConfig, stream: int | None = None, stream_device: int | None = None
    ) -> None:
        check_features(binding.name, binding.driver, config)
        self.binding, self.config, self.stream, self.stream_device = binding, config, stream, stream_device
        self._generated: Callable[..., None] | None = None
        self._made: Callable[..., None] | None = None  # the same, a launch before it is used
        self._may_move = binding.launcher.may_move
        # The functions by device, and the epoch that they are of. A table of an older one may still be written to.
        self._prepared: tuple[int, dict[int, int | None]] = (binding.epoch, {})
        self._variants: dict[tuple[int | None, int | None, int], Launch] = {}

    # what the generated Launch reads
    grid: Dim3 = property(lambda self: self.config.grid)  # type: ignore[assignment]
    block: Dim3 = property(lambda self: self.config.block)  # type: ignore[assignment]
    cluster: Dim3 = property(lambda self: self.config.cluster)  # type: ignore[assignment]
    shared: int = property(lambda self: self.config.shared)  # type: ignore[assignment]
    flags: int = property(lambda self: int(self.config.cooperative) | int(self.config.dependent) << 1)  # type: ignore[assignment]

    @property
    def _packed_attributes(self) -> bytes:
        return pack_attributes(self.config.attributes, self.binding.driver.attribute_keys)

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Launch."""
        if self._generated is not None:
            self._generated(*args, **keywords)
            return
        if self._may_move:
            self._step()
            if self.binding.warm and self._generated is not None:
                self._generated(*args, **keywords)
                return
        if keywords:
            self._with_keywords(args, keywords)
        else:
            self._run(args)

    def twin(self) -> Callable[..., None]:
        """Return the generated launch of the same behaviour if its module is there by now, else this one."""
        if self._generated is None and self.binding.launcher.promote() and self._fits_in_c():
            self._move(self._made or self.binding.launcher.bind(self))
        return self if self._generated is None else self._generated

    def slow(self, *args: Any, **keywords: Any) -> None:
        """Launch from Python, whatever the level: what the generated Launch does not do itself comes here."""
        if keywords:
            self._with_keywords(args, keywords)
        else:
            self._run(args)

    def __repr__(self) -> str:
        return f"<launch of {self.binding.name}: grid {self.grid}, block {self.block}>"

    def prepare(self, device: int, stream: int) -> int | None:
        """Return the function for a device, after checking what holds for the device; None if the grid is empty.

        The stream is that of the launch: while it is being captured nothing can be loaded.
        """
        epoch, prepared = self._prepared
        if epoch != self.binding.epoch:
            epoch, prepared = self._prepared = (self.binding.epoch, {})
        if device in prepared:
            return prepared[device]
        description = self.binding.device(device)
        check_limits(self.binding.name, description, self.config)
        handle = None
        if self.config.blocks:
            function = self.binding.load(device, stream)
            check_function(self.binding.name, function, self.config, device)
            self.binding.driver.check(self.binding.name, function, self.config, device)
            handle = function.handle
        prepared[device] = handle
        return handle

    def resized(self, grid: Any = None, block: Any = None, shared: Any = None) -> Launch:
        """Return the launch of the same kernel with other sizes; None leaves one as it is."""
        try:
            config = self.config.with_sizes(grid, block, shared)
        except LaunchConfigError as error:
            raise error.of_kernel(self.binding.name) from None
        return Launch(self.binding, config, self.stream, self.stream_device)

    def _fits_in_c(self) -> bool:
        config = self.config
        return max(*config.grid, *config.block, *config.cluster) < 1 << 32 and config.shared < 1 << 63

    def _step(self) -> None:
        """Take a step towards the generated twin, if its module is there: one a launch, beside which all are long.

        A kernel that was warmed up takes them at once.
        """
        launcher = self.binding.launcher
        if self.binding.warm:
            self.twin()
        elif launcher.generated is None:
            launcher.promote()
        elif self._made is not None:
            self._move(self._made)
        # the generated one has C integers; what is over them is over every limit
        elif self._fits_in_c():
            self._made = launcher.bind(self)

    def _move(self, made: Callable[..., None]) -> None:
        self._generated = made
        self.binding.replace(self, made)

    def _run(self, args: tuple[Any, ...]) -> None:
        binding = self.binding
        launcher, driver = binding.launcher, binding.driver
        packed = launcher.pack(args, self.stream)
        _, device, stream, _ = packed
        if device is None:
            device = driver.current_device() if self.stream_device is None else self.stream_device
        elif self.stream_device not in (None, device):
            raise _stream_error(binding.name, self.stream, self.stream_device, device)
        if words[ATTENDED] & CAPTURES:
            from podium._capture import current

            if (capture := current(driver)) is not None:
                capture.take(launcher, self, device, packed, args, self.stream)
                return
        if self.stream is not None:
            stream = self.stream
            if words[ATTENDED] & DEBUG and self.stream_device is None:
                check_stream(binding.name, driver, device, stream)
        elif stream is None:
            stream = driver.current_stream(device)
        binding.under_way.append(None)  # from now on, unloading leaves the code where it is
        try:
            epoch, prepared = self._prepared
            function = prepared.get(device) if epoch == binding.epoch else None
            if function is None:
                function = self.prepare(device, stream)
                if function is None:
                    return
            launcher.fire(self.config, device, stream, function, packed, args)
        finally:
            binding.under_way.pop()

    def _with_keywords(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        stream, shared = keywords.pop("stream", None), keywords.pop("shared", None)
        if keywords:
            args = self.binding.launcher.packer.order(args, keywords)
        if stream is None and shared is None:
            return self(*args)
        handle = stream_handle(stream, self.binding.driver)
        place = stream.device if hasattr(type(stream), "_podium_stream") else None
        key = (handle, place, self.config.shared if shared is None else shared)
        # 16.0 finds what 16 has made, and is to be refused as if it came first.
        variant = self._variants.get(key) if hasattr(key[2], "__index__") else None
        if variant is None:
            variant = self.resized(shared=shared)
            if stream is not None:
                variant.stream, variant.stream_device = handle, place
            if len(self._variants) >= 256:
                self._variants.clear()
            self._variants[key] = variant
        return variant(*args)


def _stream_error(kernel: str, stream: int | None, own: int | None, device: int) -> ArgumentValueError:
    return ArgumentValueError(
        f"{kernel}: the stream {stream or 0:#x} is of device {own}, and the launch is on device {device}, where the "
        f"first array is; take a stream of that, podium.Stream({device})",
        kernel=kernel,
        argument="stream",
        value=f"{stream or 0:#x}",
    )


class DynamicLaunch:
    """A kernel bound to a block and to a function that computes the grid from the arguments of each call."""

    def __init__(self, binding: Binding, grid: Callable[[Mapping[str, Any]], Any], block: Any) -> None:
        self.binding, self.grid, self.block = binding, grid, block

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Compute the grid and launch; takes the same keywords as `Launch`."""
        options = {name: keywords.pop(name) for name in ("stream", "shared") if name in keywords}
        args = self.binding.launcher.packer.order(args, keywords)
        grid = self.grid(name_arguments(self.binding, args))
        self.binding.launch(grid, self.block)(*args, **options)

    def __repr__(self) -> str:
        return f"<launch of {self.binding.name}: grid computed from the arguments, block {self.block}>"


def name_arguments(binding: Binding, args: tuple[Any, ...]) -> dict[str, Any]:
    """Give the arguments of a call by the names of the parameters."""
    names = binding.launcher.signature.names
    if len(names) != len(args):
        raise binding.launcher.packer.count_error(len(args))
    return dict(zip(names, args))
