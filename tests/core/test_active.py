"""The choice of the active driver by name, in contexts, threads and processes."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from plugin_distributions import ANSWERING_PLUGIN, Site

import podium
from podium import _active
from podium._active import DriverConfig, LazyProxy, driver_config
from podium.backend import Driver
from podium.errors import (
    BackendError,
    InactiveBackendError,
    PluginError,
    UnknownBackendError,
)
from podium.testing import FakeDriver

# ---- Named choice ----


def test_order(config: DriverConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """`use` beats `set_active`, which beats PODIUM_BACKEND, which beats the priorities (ACT-03)."""
    assert config.active.name == "gpu"
    monkeypatch.setenv("PODIUM_BACKEND", "other")
    config.reset_active()
    assert config.resolve().name == config.preferred() == "other"
    config.set_active("host")
    assert config.active.name == config.preferred() == "host"
    with config.use("gpu") as driver:
        assert config.active is driver
        assert driver.name == config.preferred() == "gpu"
        config.set_active("other")
        assert config.active.name == "gpu"
        with config.use("host"):
            assert config.active.name == "host"
        assert config.active.name == "gpu"
    assert config.active.name == "other"
    monkeypatch.delenv("PODIUM_BACKEND")
    config.reset_active()
    assert config.resolve().name == "gpu"


def test_reset(config: DriverConfig) -> None:
    """`reset_active` forgets `set_active` and the automatic choice, and leaves `use` in force."""
    config.set_active("host")
    with config.use("other"):
        config.reset_active()
        assert config.active.name == "other"
    assert isinstance(config.active, LazyProxy)
    assert repr(config) == "<podium.driver: not chosen yet>"
    assert config.resolve().name == "gpu"
    assert repr(config) == "<podium.driver: gpu>"


NAMING: dict[str, Callable[[DriverConfig, str], object]] = {
    "podium.use": lambda config, name: config.use(name).__enter__(),
    "set_active": lambda config, name: config.set_active(name),
    "podium.driver.resolve": lambda config, name: config.resolve(name),
    "PODIUM_BACKEND": lambda config, name: config.active.compile,
}


@pytest.mark.parametrize("chosen_by", NAMING)
def test_named_is_never_replaced(
    config: DriverConfig, site: Site, monkeypatch: pytest.MonkeyPatch, chosen_by: str
) -> None:
    """A backend that was named and cannot run is an error, though others could; none of them is imported (DISC-06)."""
    site.install("absent", probe="return 'no device node'")
    site.install("broken", plugin="raise OSError('half installed')")
    for name, reason in (
        ("absent", "no device node"),
        ("broken", "importing podium_broken.plugin failed: OSError: half"),
    ):
        if chosen_by == "PODIUM_BACKEND":
            monkeypatch.setenv("PODIUM_BACKEND", name)
            assert config.preferred() is None
        with pytest.raises(InactiveBackendError, match=f"'{name}' was chosen by {chosen_by}") as raised:
            NAMING[chosen_by](config, name)
        assert (raised.value.name, raised.value.chosen_by) == (name, chosen_by)
        assert raised.value.reason.startswith(reason)
    assert config.chosen() is None
    assert not {"podium_gpu", "podium_other", "podium_host"} & set(sys.modules)


@pytest.mark.parametrize("chosen_by", NAMING)
def test_named_is_unknown(config: DriverConfig, monkeypatch: pytest.MonkeyPatch, chosen_by: str) -> None:
    """A name that is not installed is an error with the names that are, and the nearest one."""
    monkeypatch.setenv("PODIUM_BACKEND", "Othr")
    with pytest.raises(UnknownBackendError, match="Did you mean 'other'") as raised:
        NAMING[chosen_by](config, "Othr")
    assert (raised.value.name, raised.value.suggestion) == ("Othr", "other")
    assert raised.value.known == ("gpu", "host", "other")
    assert config.preferred() is None


@pytest.mark.parametrize("chosen_by", NAMING)
def test_named_is_disabled(config: DriverConfig, monkeypatch: pytest.MonkeyPatch, chosen_by: str) -> None:
    """A backend that is disabled and named is an error that says so."""
    monkeypatch.setenv("PODIUM_BACKEND", "gpu")
    monkeypatch.setenv("PODIUM_DISABLED_PLUGINS", "gpu")
    with pytest.raises(InactiveBackendError, match="disabled by PODIUM_DISABLED_PLUGINS"):
        NAMING[chosen_by](config, "gpu")


def test_failed_set_active_changes_nothing(config: DriverConfig) -> None:
    """What was set before a `set_active` that fails stays."""
    config.set_active("host")
    with pytest.raises(UnknownBackendError):
        config.set_active("nothing")
    assert config.active.name == "host"


def test_only_the_named_backend_is_loaded(config: DriverConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that the variable names is the only one that is imported (PRF-05)."""
    monkeypatch.setenv("PODIUM_BACKEND", "other")
    assert config.active.name == "other"
    assert not {"podium_gpu", "podium_host"} & set(sys.modules)


def test_get_does_not_probe(site: Site) -> None:
    """A driver can be had by name where it cannot run, to compile with it; a broken plug-in cannot (ACT-11)."""
    site.install("absent", probe="return 'no device node'")
    site.install("broken", plugin="raise OSError('half installed')")
    config = DriverConfig()
    absent = config.get("absent")
    assert absent.name == "absent"
    assert config.get("absent") is absent
    assert site.calls("absent") == ["construct"]
    assert config.chosen() is None
    with pytest.raises(InactiveBackendError, match="half installed"):
        config.get("broken")
    with pytest.raises(UnknownBackendError):
        config.get("nothing")


def test_gpu_does_not_mean_cpu(site: Site) -> None:
    """Somebody who asks for "gpu" is not sent to the backend whose name has one letter more in common, but told how."""
    site.install("cpu")
    with pytest.raises(UnknownBackendError, match="Name none, and podium takes a GPU") as raised:
        DriverConfig().get("gpu")
    assert raised.value.suggestion is None


def test_constructor_of_a_named_driver_raises(site: Site) -> None:
    """A driver that cannot be made is inactive with its error, which is the cause."""
    site.install("ctor", construct="raise ValueError('no licence')")
    with pytest.raises(InactiveBackendError, match=r"FakeDriver\(\) failed: ValueError: no licence") as raised:
        DriverConfig().resolve("ctor")
    assert isinstance(raised.value.__cause__, ValueError)


def test_driver_objects_can_be_chosen(config: DriverConfig, site: Site) -> None:
    """`use` and `set_active` take a driver that the user made, and the proxy for what is active now."""
    mine = type(config.resolve("host"))()
    with config.use(mine) as driver:
        assert driver is config.active is mine
        config.set_active(config.active)
    assert config.active is mine
    assert config.resolve("host") is not mine
    config.reset_active()
    proxy = config.active
    with config.use("other"):
        config.set_active(proxy)
    assert config.active.name == "other"


@pytest.mark.parametrize("choice", [5, Driver, object()])
def test_what_cannot_be_chosen(config: DriverConfig, choice: Any) -> None:
    """Anything but a name or a driver is a TypeError that says so."""
    with pytest.raises(TypeError, match="set_active takes the name of a backend or a driver, not"):
        config.set_active(choice)
    with (
        pytest.raises(TypeError, match=r"podium\.use takes the name of a backend or a driver, not"),
        config.use(choice),
    ):
        pass


def test_driver_object_that_cannot_run(site: Site) -> None:
    """A driver object is asked for its reason, as a name is."""
    site.install("absent", probe="return 'no device node'")
    config = DriverConfig()
    absent = config.get("absent")
    with pytest.raises(InactiveBackendError, match=r"'absent' was chosen by set_active.*no device node"):
        config.set_active(absent)


def test_the_variable_is_read_at_first_need_and_after_a_reset(
    config: DriverConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PODIUM_BACKEND counts when a driver is first needed: reading it on each launch would cost a microsecond."""
    for name in ("host", "other", " "):
        monkeypatch.setenv("PODIUM_BACKEND", name)
        assert config.resolve().name == (name.strip() or "gpu")
        monkeypatch.setenv("PODIUM_BACKEND", "gone")
        assert config.resolve().name == (name.strip() or "gpu")
        config.reset_active()


def test_use_ends_with_the_block(config: DriverConfig) -> None:
    """After an error in the block what was active before it is active again; it works as a decorator, too."""
    with pytest.raises(ZeroDivisionError), config.use("host"):
        raise ZeroDivisionError
    assert config.active.name == "gpu"

    @config.use("other")
    def name() -> str:
        return config.active.name

    assert (name(), name(), config.active.name) == ("other", "other", "gpu")


def test_strict(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """In strict mode a broken plug-in is raised by an automatic choice (DISC-08); `preferred` never raises."""
    site.install("bad", plugin="raise OSError('half installed')")
    site.install("host", priority=0)
    monkeypatch.setenv("PODIUM_STRICT_PLUGINS", "1")
    config = DriverConfig()
    with pytest.raises(PluginError, match="half installed"):
        config.resolve()
    assert config.preferred() is None
    monkeypatch.setenv("PODIUM_STRICT_PLUGINS", "perhaps")
    assert config.preferred() is None


# ---- Contexts, threads, processes ----


def test_threads_have_their_own_use(config: DriverConfig) -> None:
    """`use` in one thread is not seen in others, not even in those started in its block; `set_active` is."""
    seen = {}

    def look(key: str) -> None:
        seen[key] = config.active.name

    config.set_active("other")
    with config.use("host"):
        thread = threading.Thread(target=look, args=("in the block",))
        thread.start()
        thread.join()
        look("here")
    assert seen == {"in the block": "other", "here": "host"}


def test_asyncio_tasks_have_their_own_use(config: DriverConfig) -> None:
    """Tasks that run by turns each have their own `use`; tasks started in a block have that of the block."""

    async def inherit() -> str:
        return config.active.name

    async def task(name: str, turn: asyncio.Event, other: asyncio.Event) -> list[str]:
        seen = []
        with config.use(name):
            for _ in range(3):
                other.set()
                await turn.wait()
                turn.clear()
                seen.append(config.active.name)
            seen.append(await asyncio.create_task(inherit()))
            other.set()
        return seen

    async def both() -> list[list[str]]:
        first, second = asyncio.Event(), asyncio.Event()
        return list(await asyncio.gather(task("host", first, second), task("other", second, first)))

    assert asyncio.run(both()) == [["host"] * 4, ["other"] * 4]
    assert config.active.name == "gpu"


def test_generators_are_closed_in_any_order(config: DriverConfig) -> None:
    """A block in a generator that ends takes away itself only, whatever was begun after it; nothing stays behind."""

    def steps(name: str) -> Iterator[str]:
        with config.use(name):
            yield config.active.name
            yield config.active.name

    first, second = steps("other"), steps("host")
    assert [next(first), next(second), next(first)] == ["other", "host", "host"]
    first.close()
    assert config.active.name == "host"
    with config.use("gpu"):
        second.close()
        assert config.active.name == "gpu"
    assert config.active.name == "gpu" and config._used.get() is None


@pytest.mark.parametrize("name", [None, 7, b"gpu", ("gpu",), ["gpu"]])
def test_what_is_no_name_is_told(config: DriverConfig, name: Any) -> None:
    """``resolve`` and ``get`` take the name of a backend, and say so of anything else."""
    with pytest.raises(TypeError, match="podium.driver.get takes the name of a backend, not "):
        config.get(name)
    if name is not None:
        with pytest.raises(TypeError, match="podium.driver.resolve takes the name of a backend, not "):
            config.resolve(name)


def test_a_task_outlives_the_block_that_it_was_started_in(config: DriverConfig) -> None:
    """It goes on with what it began with, also behind blocks of its own."""

    async def work(left: asyncio.Event) -> list[str]:
        await left.wait()
        seen = [config.active.name]
        with config.use("host"):
            seen.append(config.active.name)
        return [*seen, config.active.name]

    async def start() -> list[str]:
        left = asyncio.Event()
        with config.use("other"):
            task = asyncio.create_task(work(left))
            await asyncio.sleep(0)
        left.set()
        return await task

    assert asyncio.run(start()) == ["other", "host", "other"]


def test_a_task_ends_a_block_that_it_was_started_in(config: DriverConfig) -> None:
    """Whoever leaves a block is out of it, though another task entered it."""

    async def end(block: ExitStack) -> list[str]:
        seen = [config.active.name]
        block.close()
        return [*seen, config.resolve().name]

    async def start() -> list[str]:
        block = ExitStack()
        block.enter_context(config.use("other"))
        return [*await asyncio.create_task(end(block)), config.active.name]

    assert asyncio.run(start()) == ["other", "gpu", "gpu"]


def test_a_generator_that_another_task_closes(config: DriverConfig) -> None:
    """Its block is over for the task that ran it, too; those that were started in it go on with what they began with."""

    async def steps() -> AsyncIterator[str]:
        with config.use("host"):
            yield config.active.name

    async def wait(closed: asyncio.Event) -> str:
        await closed.wait()
        return config.active.name

    async def leave_unfinished() -> list[str]:
        generator, closed = steps(), asyncio.Event()
        seen = [await generator.__anext__()]
        child = asyncio.create_task(wait(closed))
        await asyncio.create_task(generator.aclose())  # type: ignore[attr-defined]
        seen.append(config.resolve().name)
        with config.use("other"):
            closed.set()
            seen += [config.active.name, await child]
        return [*seen, config.resolve().name]

    assert asyncio.run(leave_unfinished()) == ["host", "gpu", "other", "host", "gpu"]


def test_a_generator_that_another_thread_closes(config: DriverConfig) -> None:
    """Its block is over for the thread that ran it, and the choice of the one that closes it stays as it is."""

    def steps() -> Iterator[str]:
        with config.use("host"):
            yield config.active.name

    seen = []
    generator = steps()

    def close() -> None:
        with config.use("other"):
            generator.close()
            seen.append(config.active.name)
        seen.append(config.active.name)

    with config.use("other"):
        next(generator)
        assert config.active.name == "host"
        thread = threading.Thread(target=close)
        thread.start()
        thread.join()
        assert seen == ["other", "gpu"] and config.active.name == "other"
    assert config.active.name == "gpu" and not config._is_astray


@pytest.mark.parametrize("wanted", [None, "fake", "driver", "proxy"])
def test_whatever_takes_a_driver_takes_a_name(fake: FakeDriver, wanted: str | None) -> None:
    """``driver=`` is the name of a backend, a driver, what stands for the active one, or nothing."""
    choice: Any = {"driver": fake, "proxy": podium.driver.active}.get(str(wanted), wanted)
    kernel = podium.kernel("__global__ void k(float* x) {}")
    kernel.warm_up()
    stream, event = podium.Stream(driver=choice), podium.Event(driver=choice)
    with podium.capture(driver=choice) as graph:
        kernel[1, 1](0)
    podium.synchronize(driver=choice)
    made = [podium.empty(3, driver=choice), podium.asarray([1], driver=choice), stream, event, graph]
    assert all(each.driver is fake for each in [*made, kernel.binding(choice)])
    assert kernel.compile(driver=choice).target.backend == "fake"


@pytest.mark.parametrize(
    "taker",
    [
        lambda driver: podium.empty(3, driver=driver),
        lambda driver: podium.asarray([1], driver=driver),
        lambda driver: podium.Stream(driver=driver),
        lambda driver: podium.Event(driver=driver),
        lambda driver: podium.synchronize(driver=driver),
        lambda driver: podium.capture(driver=driver).__enter__(),
        lambda driver: podium.kernel("__global__ void k() {}").binding(driver),
        lambda driver: podium.kernel("__global__ void k() {}").compile(driver=driver),
    ],
)
def test_what_is_no_driver(fake: FakeDriver, taker: Callable[[Any], object]) -> None:
    """A name that is not installed is the error that `use` would raise; anything else is a TypeError with the value."""
    with pytest.raises(UnknownBackendError, match="Unknown backend 'fke'.*Did you mean 'fake'"):
        taker("fke")
    for value in (FakeDriver, 7, podium.driver):
        with pytest.raises(TypeError, match="takes as driver the name of a backend or a driver, not"):
            taker(value)


def test_a_backend_that_cannot_run_compiles(config: DriverConfig, site: Site) -> None:
    """Who is given the name of an inactive backend refuses it, and says who; for compiling it need not be active."""
    site.install("missing", probe="return 'there is none'")
    with pytest.raises(InactiveBackendError, match="'missing' was chosen by empty, but it is inactive: there is none"):
        config._given("missing", "empty")
    assert config._given("missing", "Kernel.compile", probing=False).name == "missing"


def test_sixteen_threads_make_one_driver(config: DriverConfig, site: Site) -> None:
    """Threads that need the driver at the same time get the same one, asked and made once."""
    start, found = threading.Barrier(16), []

    def look() -> None:
        proxy = config.active
        start.wait()
        found.append(proxy.launch.__self__)  # type: ignore[attr-defined]

    threads = [threading.Thread(target=look) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert all(driver is found[0] for driver in found)
    assert site.calls("gpu") == ["probe", "construct"]


def test_fork(config: DriverConfig, site: Site) -> None:
    """A forked child goes on with the choice and the driver of its parent, so that one that was used knows it (ACT-06).

    With no choice made before, parent and child each make theirs (ACT-05).
    """
    done = site.run(
        """
        import os, sys, warnings
        from podium._active import driver_config

        warnings.simplefilter("ignore")

        def in_child(work):
            child = os.fork()
            if child == 0:
                print(work())
                sys.stdout.flush()
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

        proxy = driver_config.active
        in_child(lambda: proxy.name)
        print("parent", driver_config, "podium_gpu" in sys.modules)
        sys.stdout.flush()
        chosen = driver_config.resolve()
        in_child(lambda: (driver_config.active is chosen, sys.modules["podium_gpu.driver"].calls))
        driver_config.set_active("host")
        in_child(lambda: (driver_config.active.name, driver_config.resolve("other").name))
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "gpu",
        "parent <podium.driver: not chosen yet> False",
        "(True, ['probe', 'construct'])",
        "('host', 'other')",
    ]


@pytest.mark.parametrize("asks", ["reason", "hooks"])
def test_fork_while_another_thread_asks(site: Site, asks: str) -> None:
    """What a thread was asking a plug-in when the process was forked keeps no thread of the child from asking (ACT-05)."""
    gate = """
        import threading
        begun, free = threading.Event(), threading.Event()
        def wait():
            begun.set()
            free.wait()
    """
    odd = (
        "\n    class Odd:\n        @property\n        def __class__(self):\n            from podium_slow.gate import wait"
        "\n            wait()\n            return Odd\n    odd = Odd()\n"
    )
    site.install(
        "slow",
        plugin=ANSWERING_PLUGIN + (odd if asks == "hooks" else ""),
        probe="from podium_slow.gate import wait; wait(); return None" if asks == "reason" else "return None",
        files={"gate.py": gate},
    )
    done = site.run(
        """
        import os, signal, threading, warnings
        from podium._active import driver_config
        from podium_slow.gate import begun, free

        warnings.simplefilter("ignore")

        def ask():
            print(driver_config.resolve("slow").name, flush=True)

        asking = threading.Thread(target=ask)
        asking.start()
        begun.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # what waits for a thread that is not there is ended
            free.set()
            again = threading.Thread(target=ask)  # in the place of the one that is not there, with its number
            again.start()
            again.join()
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        free.set()
        asking.join()
        assert status == 0, status
        """
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "slow\nslow\n")


def test_import_is_light(config: DriverConfig, site: Site) -> None:
    """Import and proxy load no plug-in and no discovery; choosing starts no process and parses no metadata.

    PRF-03, PRF-06, DISC-09: the interpreter's own audit events tell of processes.
    """
    done = site.run(
        """
        import sys
        for name in list(sys.modules):
            if name.startswith(("podium", "pluggy", "importlib.metadata")):
                del sys.modules[name]
        STARTS = {"subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.exec", "ctypes.dlopen"}
        started = []

        def watch(event, details):          # ctypes opens the interpreter itself under the name None
            if event in STARTS and details[0] is not None:
                started.append((event, details))

        sys.addaudithook(watch)
        from podium._active import driver_config
        repr(driver_config.active)
        print(sorted({"podium._plugins", "podium_gpu", "importlib.metadata", "pluggy"} & set(sys.modules)))
        before = list(started)
        print(driver_config.active.name)
        print("importlib.metadata" in sys.modules, before, started)
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["[]", "gpu", "False [] []"]


# ---- The table of backends ----


def test_backends(config: DriverConfig, site: Site) -> None:
    """All backends are listed, with why each cannot run (ACT-02)."""
    site.install("absent", probe="return 'no device node'")
    site.install("broken", plugin="raise OSError('half installed')")
    assert [(backend.name, backend.reason()) for backend in config.backends()] == [
        ("absent", "no device node"),
        ("broken", "importing podium_broken.plugin failed: OSError: half installed"),
        ("gpu", None),
        ("host", None),
        ("other", None),
    ]


def test_register(config: DriverConfig) -> None:
    """A class registered by hand takes part in the choice at once, until it is unregistered."""
    assert config.active.name == "gpu"
    best = type("Best", (type(config.resolve("other")),), {"name": "best", "priority": 500})
    assert config.register(best) is best
    driver = config.resolve()
    assert type(driver) is best
    assert config.active is driver
    config.set_active("best")
    with config.use("best") as used:
        assert used is driver
    config.unregister("best")
    assert config.active.name == "gpu"
    with pytest.raises(UnknownBackendError):
        config.resolve("best")
    config.register(best)
    assert config.resolve() is not driver
    with pytest.raises(BackendError, match="'gpu' was not registered by hand"):
        config.unregister("gpu")


def test_rediscover(config: DriverConfig, site: Site) -> None:
    """What was uninstalled is still used until rediscovery, and then no more."""
    assert config.active.name == "gpu"
    site.uninstall("gpu")
    config.reset_active()
    assert config.resolve().name == "gpu"
    config.rediscover()
    assert config.resolve().name == "other"
    site.install("gpu3", priority=300)
    assert config.resolve().name == "other"
    config.rediscover()
    assert config.resolve().name == "gpu3"


def test_process_has_one_config() -> None:
    """`podium.driver` is one object, whose proxy is one object."""
    assert driver_config is _active.driver_config
    assert driver_config._proxy is _active._proxy_of_this_process()
