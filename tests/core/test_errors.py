"""The tree of errors: drawn as it is, catchable by meaning, and picklable with everything that it says."""

from __future__ import annotations

import copy
import inspect
import multiprocessing
import pickle
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

import podium
from podium import errors
from podium.errors import Diagnostic, PodiumError

EXAMPLES: dict[type[PodiumError], tuple[tuple[Any, ...], dict[str, Any]]] = {
    errors.PodiumError: (("text",), {}),
    errors.BackendError: (("text",), {}),
    errors.UnknownBackendError: (("nvida", ["nvidia", "cpu"], "nvidia"), {}),
    errors.UnsupportedError: (("cpu", "events"), {}),
    errors.InactiveBackendError: (("nvidia", "no device", "PODIUM_BACKEND"), {}),
    errors.NoActiveBackendError: (({"nvidia": ("podium-nvidia", "no device")},), {}),
    errors.AmbiguousBackendError: ((["a", "b"], 100), {}),
    errors.PluginError: (("a", "podium-a 1.0", "ImportError: x"), {}),
    errors.SourceError: (("text",), {"kernel": "k", "line": 3}),
    errors.SignatureError: (("text",), {"spelling": "*"}),
    errors.CompileError: (("text",), {"log": "log", "diagnostics": [Diagnostic("a.cu", 1, 2, "error", "no")], "program": "p", "target": "t"}),
    errors.ToolchainError: (("text",), {"log": "log"}),
    errors.LoadError: (("text",), {"kernel": "k", "backend": "b"}),
    errors.ArgumentError: (("text",), {"kernel": "k", "argument": "n", "index": 1, "value": "5 (int)", "expected": "i8"}),
    errors.ArgumentTypeError: (("text",), {"kernel": "k", "argument": "n", "index": 1}),
    errors.ArgumentValueError: (("text",), {"kernel": "k", "value": "5 (int)"}),
    errors.ArgumentCountError: (("text",), {"kernel": "k", "index": 2}),
    errors.ArrayDeviceError: (("text",), {"kind": "host", "kernel": "k", "argument": "x"}),
    errors.LaunchConfigError: (("text",), {"kernel": "k", "axis": "grid.x", "value": 5}),
    errors.OutOfResourcesError: (("k", "threads", 2048, 1024, "advice"), {}),
    errors.LaunchError: (
        ("text",),
        {"status": 700, "status_name": "BAD", "status_text": "bad", "kernel": "k", "backend": "b", "device": 1,
         "grid": (1, 2, 3), "block": (4, 5, 6), "recent": ["one", "two"]},
    ),
    errors.CaptureError: (("text",), {"backend": "b", "status": 901, "status_name": "BAD"}),
    errors.ForkedProcessError: (("nvidia", 1234), {}),
    errors.ScratchError: (("text",), {"kernel": "k", "size": 5, "alignment": 8}),
    errors.SettingError: (("PODIUM_DEBUG", "maybe", "0 or 1"), {}),
}  # fmt: skip


def classes() -> list[type[PodiumError]]:
    found = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, PodiumError)]
    return [each for each in found if each.__module__ == "podium.errors"]


def make(kind: type[PodiumError]) -> PodiumError:
    arguments, keywords = EXAMPLES[kind]
    return kind(*arguments, **keywords)


def test_every_class_has_an_example_here_and_is_exported() -> None:
    """No error can be added without being looked at by these tests."""
    assert set(classes()) == set(EXAMPLES)
    assert {each.__name__ for each in classes()} | {"Diagnostic", "PodiumDeprecationWarning", "PodiumWarning"} == set(
        errors.__all__
    )


def drawn() -> dict[str, str | None]:
    """Read the tree in the module's docstring: each class, and the one that it hangs under."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ((?:[│ ]   )*)(?:[├└]── )?([A-Z]\w+(?:Error))\b", line)
        if match:
            depth = 0 if "── " not in line else len(match[1]) // 4 + 1
            del path[depth:]
            parents[match[2]] = path[-1] if path else None
            path.append(match[2])
    return parents


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes() -> None:
    """What is drawn is what is there: every class, under its own base."""
    expected = {
        each.__name__: None
        if each is PodiumError
        else next(base.__name__ for base in each.__bases__ if issubclass(base, PodiumError))
        for each in classes()
    }
    assert drawn() == expected


def test_the_docstring_names_the_builtin_bases() -> None:
    """Where the drawing says "also a ValueError" and the like it is true, and it says so wherever it is true."""
    for line in (errors.__doc__ or "").splitlines():
        match = re.search(r"── (\w+Error)\b(.*)", line)
        if not match:
            continue
        own = {base.__name__ for base in getattr(errors, match[1]).__bases__ if base.__module__ == "builtins"}
        assert set(re.findall(r"also a (\w+)", match[2])) == own


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_error_can_be_pickled(kind: type[PodiumError], protocol: int) -> None:
    """An error comes out of another process with its type, its text, and every attribute."""
    error = make(kind)
    back = pickle.loads(pickle.dumps(error, protocol))
    assert type(back) is kind
    assert str(back) == str(error) and back.args == error.args
    assert back.__dict__ == error.__dict__
    assert copy.copy(error).__dict__ == copy.deepcopy(error).__dict__ == error.__dict__
    assert pickle.loads(pickle.dumps(back)).__dict__ == error.__dict__


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_every_error_carries_what_it_was_made_with(kind: type[PodiumError]) -> None:
    """Each named argument of an error is an attribute of it."""
    error = make(kind)
    _, keywords = EXAMPLES[kind]
    for name, value in keywords.items():
        assert getattr(error, name) == (tuple(value) if isinstance(value, list) else value)
    for name in inspect.signature(kind.__init__).parameters:
        if name not in ("self", "args", "attributes", "message", "advice"):
            assert hasattr(error, name), name


def test_errors_with_notes_keep_them() -> None:
    """A note that a caller adds to an error survives a pickle."""
    if sys.version_info < (3, 11):
        pytest.skip("notes came with Python 3.11")
    error = make(errors.LaunchError)
    error.add_note("seen in step 5")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["seen in step 5"]


def test_messages_end_without_a_full_stop_and_say_what_to_do() -> None:
    """Texts that podium composes name the thing and the next step."""
    assert "Did you mean 'nvidia'?" in str(make(errors.UnknownBackendError))
    assert "Did you mean 'nvidia'?" in str(make(errors.UnknownBackendError))
    assert "Name none, and podium takes a GPU" in str(errors.UnknownBackendError("gpu", ["cpu"]))
    assert "podium doctor" in str(make(errors.InactiveBackendError))
    assert "PODIUM_BACKEND=a" in str(make(errors.AmbiguousBackendError))
    assert "nvidia (podium-nvidia): no device" in str(make(errors.NoActiveBackendError))
    assert "podium-cpu runs everywhere" in str(errors.NoActiveBackendError({}))
    assert str(make(errors.OutOfResourcesError)) == "k: threads is 2048, the limit is 1024; advice"
    assert "'spawn'" in str(make(errors.ForkedProcessError))


def test_errors_are_what_they_mean_in_python() -> None:
    """A caller who knows nothing of podium catches them as ValueError, TypeError or LookupError."""
    assert issubclass(errors.ArgumentTypeError, TypeError) and issubclass(errors.ArgumentCountError, TypeError)
    assert issubclass(errors.ArgumentValueError, ValueError) and issubclass(errors.SignatureError, ValueError)
    assert issubclass(errors.LaunchConfigError, ValueError) and issubclass(errors.SettingError, ValueError)
    assert issubclass(errors.UnknownBackendError, LookupError)
    assert issubclass(errors.PodiumWarning, UserWarning) and not issubclass(errors.PodiumWarning, PodiumError)


def fail_to_launch(value: Any) -> None:
    from podium.testing import FakeDriver

    podium.kernel("__global__ void k(int n) {}").binding(FakeDriver()).get((1, 1))(value)


def test_an_error_crosses_processes() -> None:
    """LIF-09: the error of a launch in a worker process reaches the parent whole."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        error = pool.submit(fail_to_launch, 2**40).exception()
    assert isinstance(error, errors.ArgumentValueError)
    assert (error.kernel, error.argument, error.index, error.expected) == ("k", "n", 0, "i32")
