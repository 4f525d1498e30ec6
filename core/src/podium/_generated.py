"""Generated launchers: C for a signature shape, built in the background, kept on disk, shared by all kernels.

`request` gives a `Build`. A module that the cache has is taken at once. Else launches go on interpreted until it is
there; it is built from a kernel's second launch on, so that its compiler does not slow down those that first launches
wait for. Only the pinned level waits for it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from weakref import ref

from podium._caller import frames_of_podium
from podium._extension import Extension
from podium._fork import ForkSafeLock
from podium._signature import Signature
from podium.errors import CompileError, PodiumError, PodiumWarning, ToolchainError

if TYPE_CHECKING:
    import queue

    from podium._launcher import Launcher

__all__ = ["Build", "foresee_launchers", "request", "serve_all", "start", "template_text"]

_MODULE_NAME = "podium_launcher"

Prepare = Callable[[ModuleType], None]
_SOURCE_WRITER = Path(__file__).with_name("_launcher_source.py")


class Build:
    """The module of one signature shape, now or later."""

    def __init__(self, template: Path, signature: Signature, scratch: int, prepare: Prepare) -> None:
        self.template, self.signature, self.scratch, self._prepare = template, signature, scratch, prepare
        self.module: ModuleType | None = None
        self.failure: PodiumError | None = None
        self.started = False  # whether the thread that builds has it, or has had it
        self.waiting: list[ref[Launcher]] = []

    @property
    def done(self) -> bool:
        """Whether there is a module, or there will be none."""
        return self.module is not None or self.failure is not None

    def run(self) -> None:
        """Find the module in the cache or build it; in the calling thread. Failures are kept in `failure`."""
        if self.done:
            return
        with _building:
            if not self.done:
                try:
                    module = self._extension().build()
                    self._prepare(module)
                    if "torch" in sys.modules:
                        from podium._tensor_reader import foresee_tensors

                        foresee_tensors()
                    for launcher in filter(None, [each() for each in self.waiting]):
                        launcher.made = module.Launcher(launcher)
                    self.waiting.clear()
                    self.module = module
                except PodiumError as error:
                    self.failure = error

    def recall(self) -> None:
        """Take the module from the cache if it is there. Waits for no compiler, and for no other build."""
        building = _building
        if building.acquire(blocking=False):
            try:
                module = None if self.done else self._extension().recall()
                if module is not None:
                    self._prepare(module)
                    self.module = module
            except PodiumError:
                pass  # the build will say it
            finally:
                building.release()

    def poll(self) -> ModuleType | None:
        """Return the module if it is there; see that it goes on being built; give the one notice if it cannot be."""
        if self.module is None:
            if self.failure is not None:
                _notice(self.failure)
            elif self.started:
                _ensure_worker()
        return self.module

    def require(self) -> ModuleType:
        """Wait for the module. Raises what kept it from being built; it is tried anew each time."""
        self.failure = None
        self.run()
        if self.failure is not None:
            raise self.failure
        return self.module  # type: ignore[return-value]  # run() leaves either a module or a failure

    def _extension(self) -> Extension:
        return _extension(
            self.template,
            self._write_source,
            origin=f"{self.signature.shape} {self.scratch}",
            common=lambda: template_text(self.template),
        )

    def _write_source(self) -> str:
        from podium._launcher_source import signature_source

        return signature_source(self.signature.parameters, self.scratch)


def template_text(template: Path) -> str:
    """Read a backend's template. Raises `CompileError` if that cannot be."""
    try:
        return template.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CompileError(
            f"the template of the backend's launchers cannot be read ({error}): the package that it belongs to was "
            f"removed, or is not whole. Install it again"
        ) from None


def _extension(template: Path, source: str | Callable[[], str], **more: Any) -> Extension:
    folders = template.parent, template.parent / "include"
    return Extension("launcher", _MODULE_NAME, source, files=(_SOURCE_WRITER, template), folders=folders, **more)


def foresee_launchers(template: Path) -> None:
    """Find out what all generated launchers of a template are valid for, which else the first one asks."""
    _extension(template, "").foresee()


_building = threading.RLock()
_LONGEST_WAIT = 30.0  # seconds

_builds: dict[tuple[Path, str, int], Build] = {}
_lock = ForkSafeLock()
_queue: queue.SimpleQueue[Build] | None = None
_worker: threading.Thread | None = None


def request(template: Path, signature: Signature, scratch: int, prepare: Prepare) -> Build:
    """Return the build for a signature's shape, making one that has not begun if there is none.

    `prepare` is called with the module before anybody has it: what takes its time should not be done in a launch.
    """
    key = (template, signature.shape, scratch)
    with _lock:
        build = _builds.get(key)
        if build is None or build.failure is not None:
            build = _builds[key] = Build(template, signature, scratch, prepare)
    return build


def start(build: Build, launcher: Launcher) -> None:
    """Build in the background, unless that has been done or begun; the launcher is given its generated one there."""
    build.waiting.append(ref(launcher))
    if not build.done and not build.started:
        build.started = True
        _builds_to_make().put(build)
        _ensure_worker()


_calls_in_c = False


def serve_all(launcher_class: Any, look_up_in_c: Callable[[Any], None] | None, module: Any) -> None:
    """Give launchers the C of a generated module for their ``__call__``, unless they have it, and kernels theirs."""
    global _calls_in_c
    if not _calls_in_c:
        launcher_class.__call__, _calls_in_c = module.caller(launcher_class, launcher_class.__call__), True
    if look_up_in_c is not None:
        look_up_in_c(module)


def _builds_to_make() -> queue.SimpleQueue[Build]:
    global _queue
    if _queue is None:
        from queue import SimpleQueue  # a process that finds its launchers in the cache has no use for it

        with _lock:
            _queue = _queue or SimpleQueue()
    return _queue


def _ensure_worker() -> None:
    global _worker
    if _worker is None or not _worker.is_alive():
        with _lock:
            if _worker is None or not _worker.is_alive():
                thread = threading.Thread(target=_work, name="podium-launcher-build", daemon=True)
                # The interpreter may be ending, or the system may be out of threads: launches stay interpreted.
                with contextlib.suppress(RuntimeError):
                    thread.start()
                    _worker = thread


def _work() -> None:
    while True:
        _builds_to_make().get().run()


def _before_fork() -> None:
    # A build imports modules; a child that is forked meanwhile would have them half imported, for good.
    _building.acquire(timeout=_LONGEST_WAIT)


def _after_fork_in_parent() -> None:
    with contextlib.suppress(RuntimeError):  # it was not waited for to the end
        _building.release()


def _after_fork() -> None:
    global _building, _queue, _worker
    _building, _queue, _worker = threading.RLock(), None, None
    for build in _builds.values():
        if build.started and not build.done:
            _builds_to_make().put(build)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork)


_noticed = False


def _notice(failure: PodiumError) -> None:
    global _noticed
    if _noticed:
        return
    _noticed = True  # before the warning, which may be raised as an error: once is enough then, too
    what = "is no working C compiler" if isinstance(failure, ToolchainError) else "was a problem building it"
    warnings.warn(
        f"Launches stay on the interpreted level, which is slower and does the same: there {what} for the generated "
        f"one. {failure} (PODIUM_LAUNCHER=interpreted silences this)",
        PodiumWarning,
        stacklevel=frames_of_podium(),
    )
