"""Loading: from object code to a handle, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import podium
from podium.backend import Driver, Function, ObjectCode
from podium.errors import LoadError
from podium.testing._conformance.child import ADD, add_kernel, launch_add
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject, bad

__all__ = ["Loading"]


@contract("Driver protocol")
class Loading(Subject):
    """`Driver.load` and `Driver.unload`."""

    @pytest.fixture
    def code(self, driver: Driver) -> ObjectCode:
        """The object code of a small kernel, for the device that is current."""
        return add_kernel().compile(driver.devices()[driver.current_device()].target)

    def test_load_gives_a_handle(self, driver: Driver, code: ObjectCode) -> None:
        """`load` returns a Function whose handle is an integer above zero, with limits that are None or positive."""
        device = driver.current_device()
        function = driver.load(code, "add", device)
        assert isinstance(function, Function)
        assert isinstance(function.handle, int) and 0 < function.handle < 1 << 64
        assert function.max_threads is None or function.max_threads > 0
        assert all(isinstance(value, int) for value in function.attributes.values())
        driver.unload(function, device)

    def test_unload_raises_nothing_and_can_be_repeated_with_load(self, driver: Driver, code: ObjectCode) -> None:
        """Code can be loaded and unloaded again and again; two loads at one time do not disturb each other.

        Rows LIF-04.
        """
        device = driver.current_device()
        for _ in range(5):
            first, second = driver.load(code, "add", device), driver.load(code, "add", device)
            driver.unload(first, device)
            assert driver.load(code, "add", device).handle > 0
            driver.unload(second, device)

    def test_bytes_that_are_no_code_are_refused(self, driver: Driver, code: ObjectCode) -> None:
        """Bad bytes in the right format are a LoadError that names the kernel, and nothing fails later.

        Rows LIF-05, LIF-09.
        """
        with pytest.raises(LoadError) as caught:
            driver.load(replace(code, code=b"broken"), "add", driver.current_device())
        assert "add" in str(caught.value) or caught.value.kernel == "add"
        launch_add(self.capabilities.executes)

    @pytest.mark.needs("compiles", "executes")
    def test_damaged_code_is_refused(self, driver: Driver) -> None:
        """Code that is empty, cut in half or overwritten is a LoadError, never a crash.

        Rows LIF-05.
        """
        process = self.python(
            """
            from dataclasses import replace
            driver = podium.driver.resolve()
            code = child.add_kernel().compile(driver.default_target())
            for damaged in (b"", code.code[: len(code.code) // 2], bytes(len(code.code))):
                try:
                    driver.load(replace(code, code=damaged), "add", driver.current_device())
                except podium.errors.LoadError:
                    print("refused", flush=True)
            child.launch_add(executes)
            """
        )
        assert process.returncode == 0, bad(process)
        assert process.stdout.split() == ["refused"] * 3, bad(process)

    def test_a_name_that_the_code_does_not_have_is_refused(self, driver: Driver, code: ObjectCode) -> None:
        """Loading a kernel that is not in the code is a LoadError that says which names there are."""
        with pytest.raises(LoadError):
            driver.load(code, "nowhere", driver.current_device())

    def test_a_kernel_can_be_unloaded_and_launched_again(self, driver: Driver, level: Level) -> None:
        """After `Kernel.unload()` the next launch loads the code again, also through a launch that was kept.

        Rows LIF-04.
        """
        kernel, loads = add_kernel(), _collect_loads()
        launch = kernel[2, 4]
        for _ in range(3):
            x = self.array([1] * 8)
            launch(x, 2)
            kernel[2, 4](x, 3)
            if self.capabilities.executes:
                assert x.tolist() == [6] * 8
            kernel.unload()
        assert len(loads) == 3

    def test_object_code_can_be_launched(self, driver: Driver, level: Level) -> None:
        """A kernel can be made of object code that was written down, without its source."""
        data = podium.kernel(ADD, "add", signature="x: *i32, a: i32").compile(driver.default_target()).to_bytes()
        launch_add(self.capabilities.executes, podium.kernel(ObjectCode.from_bytes(data)))

    def test_dropping_a_kernel_unloads_it(self, driver: Driver, level: Level) -> None:
        """A kernel that nobody holds gives its code back, and others go on working.

        Rows LIF-04.
        """
        import gc

        kept = add_kernel()
        launch_add(self.capabilities.executes, kept)
        for _ in range(20):
            launch_add(self.capabilities.executes)
        gc.collect()
        launch_add(self.capabilities.executes, kept)


def _collect_loads() -> list[Any]:
    loads: list[Any] = []
    podium.hooks.load.add(loads.append)
    return loads
