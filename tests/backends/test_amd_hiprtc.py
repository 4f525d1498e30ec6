"""AMD's own libraries without a GPU: what hipRTC makes of the tests' kernels, and what a runtime without a device says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from amd_kernels import KERNELS, SOURCE
from recording.hip.compiling import MISSING, CompileFailed, compiled, hiprtc
from recording.hip.library import SOURCES, build, compiler, environment
from recording.hip.machine import RUNTIME, library_folder

pytest.importorskip("podium_amd", reason="podium-amd is not installed")

from podium_amd.code_object import CodeObject


@pytest.fixture
def real() -> str:
    """The real hipRTC of this machine."""
    found = hiprtc()
    if found is None:
        pytest.skip(MISSING)
    return found


@pytest.mark.parametrize(("arch", "wave"), [("gfx90a:sramecc+:xnack-", 64), ("gfx1030", 32)])
def test_what_tests_say_of_kernels_is_what_hiprtc_makes(real: str, arch: str, wave: int) -> None:
    """Places, sizes and kinds of arguments, shared memory and launch bounds of code objects that tests make up."""
    found = CodeObject(compiled(real, SOURCE, arch))
    for name, described in KERNELS.items():
        kernel = found.kernel(name)
        assert kernel is not None
        explicit = [(it.offset, it.size, it.is_pointer) for it in kernel.parameters]
        assert explicit == [(at, it.size, it.kind == "global_buffer") for at, it in described.places()], name
        assert (kernel.shared, kernel.max_threads, kernel.wavefront_size) == (described.group, described.most, wave)


def test_an_unknown_architecture_ends_the_process_of_an_old_hiprtc(real: str) -> None:
    """Before HIP 7 the process ends, which is why podium compiles for one in a process of its own; since, it is an error."""
    with pytest.raises(
        CompileFailed, match="hiprtcCompileProgram gave 6" if ".so.7" in real else "ended with -6|abort|pointer"
    ):
        compiled(real, SOURCE, "gfx000")


_ASK = """
import sys
from recording.hip.runtime import Runtime
runtime = Runtime(sys.argv[1])
answers = [runtime.hipInit(0), *runtime.out("hipGetDeviceCount")]
answers += [runtime.out("hipGetDevice")[0], runtime.hipSetDevice(0), runtime.out("hipMalloc", 64)[0], runtime.hipGetLastError()]
answers += [runtime.out("hipDeviceGetAttribute", 87, 0)[0], runtime.hipDeviceSynchronize(), runtime.load(bytes(4096))[0]]
print(answers)
"""


@pytest.mark.skipif(os.path.exists("/dev/kfd"), reason="this machine has an AMD GPU")
@pytest.mark.skipif(compiler() is None, reason="there is no C compiler for the recording HIP runtime")
@pytest.mark.parametrize("major", [5, 7])
def test_a_runtime_without_a_device_answers_as_the_stand_in(major: int) -> None:
    """A real runtime and the stand-in of its version give the same statuses, call by call, where there is no GPU."""
    command = [sys.executable]
    library = hiprtc() or ""
    if major == 7:
        folder = library_folder(Path(os.environ.get(RUNTIME, "/nowhere")))
        library = str(folder / "libamdhip64.so.7")
        command = [str(folder / "ld-linux-x86-64.so.2"), "--argv0", sys.executable, "--library-path"]
        command += [f"{folder}:/lib/{folder.name}:/usr/lib/{folder.name}", os.path.realpath(sys.executable)]
    if f"libamdhip64.so.{major}" not in library or not os.path.exists(library):
        pytest.skip(f"the runtime of HIP {major} is not here: Debian 12 has 5, and tests/recording/hip/fetch.py gets 7")
    answers = []
    for start, file, settings in (
        (command, library, {}),
        ([sys.executable], str(build(major)), environment(major, devices=0)),
    ):
        variables = {**os.environ, **settings}
        variables["PYTHONPATH"] = os.pathsep.join([str(SOURCES.parents[1]), *filter(None, sys.path)])
        done = subprocess.run([*start, "-c", _ASK, file], env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout.strip().splitlines()[-1])
    assert answers[0] == answers[1]


def test_a_users_macros_do_not_reach_the_dialect(real: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that the dialect's own text has may be macros of the user's, who finds them in the source."""
    pytest.importorskip("rocm.bindings", reason="hip-python is not installed")
    import podium

    monkeypatch.setenv("PODIUM_AMD_HIPRTC", real)
    names = ("F", "M", "N", "T", "count", "lane", "mask", "move", "value")
    text = f'extern "C" __global__ void sum(int *x) {{ *x = {" + ".join(names)}; }}'
    defines = {name: number for number, name in enumerate(names)}
    code = podium.kernel(text, defines=defines).compile(target="amd:gfx1030:32")
    assert b"sum.kd" in code.code
