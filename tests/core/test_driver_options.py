"""Options of a backend: what users can choose with its name, and that each choice is a driver of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import podium
from podium.errors import BackendError, InactiveBackendError
from podium.testing import FakeDriver


class Geared(FakeDriver):
    """A backend with two options, of which one is checked."""

    name = "geared"

    def __init__(self, *, gear: str = "low", colour: object = None) -> None:
        if gear not in ("low", "high"):
            raise ValueError(f"gear={gear!r}: there are low and high")
        if colour == "broken":
            raise OSError("the paint is gone")
        super().__init__()
        self.gear, self.colour = gear, colour

    def toolchain(self, language: str) -> str:
        """Name the gear: what is compiled depends on it."""
        return f"{super().toolchain(language)} {self.gear}"


@pytest.fixture(autouse=True)
def geared() -> Iterator[None]:
    podium.driver.register(Geared)
    yield
    podium.driver.reset_active()
    podium.driver.unregister("geared")


def test_options_reach_the_driver() -> None:
    """What stands behind the backend's name is given to its driver, by `use` and by `set_active`."""
    with podium.use("geared", gear="high", colour="red") as driver:
        assert isinstance(driver, Geared)
        assert (driver.gear, driver.colour) == ("high", "red")
        assert podium.driver.active is driver
    podium.set_active("geared", gear="high")
    assert podium.driver.active.gear == "high"  # type: ignore[attr-defined]


def test_each_choice_is_one_driver() -> None:
    """The same options give the same driver, in any order, and what an option is by default need not be said."""
    plain = podium.driver.get("geared")
    with (
        podium.use("geared", gear="high", colour="red") as first,
        podium.use("geared", colour="red", gear="high") as second,
    ):
        assert first is second and first is not plain
    with podium.use("geared", gear="low", colour=None) as said:
        assert said is plain
    with podium.use("geared", gear="high") as third:
        assert third not in (first, plain)


def test_kernels_are_compiled_for_each_driver() -> None:
    """A kernel has code and bindings of its own for each choice."""
    kernel = podium.kernel("__global__ void k(int n) {}")
    bindings = []
    for gear in ("low", "high", "low"):
        with podium.use("geared", gear=gear):
            kernel[1, 1](3)
            bindings.append(kernel.binding())
    assert bindings[0] is bindings[2] is not bindings[1]
    assert [len(each.driver.launches) for each in bindings[:2]] == [2, 1]  # type: ignore[attr-defined]


def test_unknown_options_are_refused() -> None:
    """An option that the backend does not have is an error that lists those it has, and changes nothing."""
    with pytest.raises(TypeError, match="'geared' has no option 'speed'; its options are colour, gear"):
        podium.set_active("geared", speed=3)
    podium.driver.register(FakeDriver)
    try:
        with pytest.raises(TypeError, match="'fake' has no option 'gear'; it has none"):
            podium.set_active("fake", gear="low")
    finally:
        podium.driver.unregister("fake")
    assert podium.driver.describe() == "not chosen yet"


def test_bad_values_are_refused() -> None:
    """The backend's own ValueError comes through; other failures are reasons against it."""
    with (
        pytest.raises(ValueError, match="gear='up': there are low and high") as caught,
        podium.use("geared", gear="up"),
    ):
        pass
    assert not isinstance(caught.value, BackendError)
    with pytest.raises(InactiveBackendError, match="the paint is gone"):
        podium.set_active("geared", colour="broken")
    with pytest.raises(TypeError, match=r"The option 'colour' of the backend 'geared' cannot be \[1\]"):
        podium.set_active("geared", colour=[1])


def test_options_go_with_a_name() -> None:
    """A driver that exists has its options already."""
    with pytest.raises(TypeError, match="options with the name of a backend"):
        podium.set_active(podium.driver.get("geared"), gear="high")
    with pytest.raises(TypeError, match="takes no options: gear"):
        podium.set_active(None, gear="high")
