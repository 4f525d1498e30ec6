"""What podium-nvidia says of machines: file trees with what NVIDIA's driver, containers, WSL and Jetson leave there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from nvidia_machines import KERNEL, Machine, driver_library, python

pytest.importorskip("cuda.bindings", reason="cuda-python is not installed")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler for driver libraries")

GPU = "0000:01:00.0"


@pytest.fixture
def bare(tmp_path: Path) -> Machine:
    """A machine with nothing of NVIDIA's."""
    return Machine(tmp_path)


@pytest.fixture
def healthy(tmp_path: Path) -> Machine:
    """A machine with one GPU and everything in order."""
    return Machine(tmp_path).put("dev/nvidiactl", "dev/nvidia0").kernel_driver(GPU).library()


def says(reason: str, *parts: str) -> None:
    assert [part for part in parts if part not in reason] == [], reason


# ---- machines that can run kernels ----


def test_a_machine_in_order_has_no_reason(healthy: Machine) -> None:
    """ACT-10: nodes that can be opened, a driver library that opens, and no mask: the backend is active."""
    assert healthy.reason() == "None"


def test_nodes_that_the_first_use_makes_may_be_missing(bare: Machine) -> None:
    """After a start without a display there are no nodes until nvidia-modprobe, which runs as root, is called by cuInit."""
    bare.kernel_driver(GPU).library()
    says(bare.reason(), "there is no /dev/nvidia0", "sudo nvidia-modprobe")
    bare.put("dev/nvidiactl")
    says(bare.reason(), "there is no /dev/nvidia0", "sudo nvidia-modprobe")
    bare.put("usr/bin/nvidia-modprobe")
    (bare.root / "usr/bin/nvidia-modprobe").chmod(0o4755)
    assert bare.reason() == "None"
    (bare.root / "dev/nvidiactl").unlink()
    assert bare.reason() == "None"


def test_wsl_has_one_node_and_the_library_from_windows(bare: Machine) -> None:
    """WSL has /dev/dxg and no kernel driver of NVIDIA's; the library is in a folder of its own (LIB-04)."""
    bare.put("dev/dxg")
    says(bare.reason(), "libcuda.so.1 was not found", "install NVIDIA's driver in Windows", "wsl --shutdown")
    driver_library(bare.root / "usr/lib/wsl/lib/libcuda.so.1")
    assert bare.reason() == "None"


def test_jetson_has_nodes_of_other_names(bare: Machine) -> None:
    """The GPU of a Jetson has no /dev/nvidia0, and the library's file is not named for the driver's version."""
    bare.put("dev/nvhost-gpu", "dev/nvmap").library("usr/lib/aarch64-linux-gnu/tegra", release="1.1")
    assert bare.reason() == "None"


def test_the_answer_is_never_kept(healthy: Machine) -> None:
    """ACT-08: what changes after a question shows in the next one, the mask included."""
    program = """
import os, sys
from podium_nvidia.detection import inactive_reason
root = sys.argv[1]
print(inactive_reason(root))
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
print(inactive_reason(root)[:23])
del os.environ["CUDA_VISIBLE_DEVICES"]
os.rename(root + "/dev/nvidiactl", root + "/dev/gone")
print(inactive_reason(root) is None)
os.rename(root + "/dev/gone", root + "/dev/nvidiactl")
print(inactive_reason(root))
"""
    assert python(program, healthy.root).split("\n") == ["None", "CUDA_VISIBLE_DEVICES=-1", "False", "None"]


def test_asking_brings_in_no_library_that_could_wake_the_driver(healthy: Machine) -> None:
    """ACT-05: asking imports neither cuda-python nor an array library, and starts no process or thread."""
    program = """
import sys, threading
def watch(event, args):
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec", "os.system"):
        print(event, args)
sys.addaudithook(watch)
from podium_nvidia.detection import inactive_reason
print(inactive_reason(sys.argv[1]))
names = {"cuda.bindings.driver", "cuda.bindings.nvrtc", "cuda.pathfinder", "pynvml", "torch", "numpy", "subprocess"}
print(sorted(names & set(sys.modules)), threading.active_count())
"""
    assert python(program, healthy.root).split("\n") == ["None", "[] 1"]


# ---- no GPU ----


def test_a_machine_without_a_gpu_is_told_what_was_looked_at(bare: Machine) -> None:
    """ACT-02: the reason says what is missing and what to do."""
    bare.pci("0000:00:02.0", vendor="0x8086", kind="0x030000").pci(GPU, kind="0x040300")  # only the sound of a card
    says(bare.reason(), "there is no NVIDIA GPU", "/dev/nvidiactl", "PCI bus", "install NVIDIA's driver")


def test_a_gpu_without_its_driver_is_named(bare: Machine) -> None:
    """A GPU that no driver has, or another one, is found on the PCI bus, and the reason says which driver has it."""
    bare.pci(GPU)
    says(bare.reason(), GPU, "no kernel driver is loaded for it", "sudo modprobe nvidia")
    bare.pci("0000:00:01.0", driver="nouveau")
    says(bare.reason(), "0000:00:01.0", "'nouveau' has it", "Install NVIDIA's driver")
    bare.put(".dockerenv")
    says(bare.reason(), "on the machine", "--gpus all")


def test_a_kernel_driver_without_gpus_says_where_to_look(bare: Machine) -> None:
    """The kernel driver may be loaded and drive nothing: the kernel's log has the reason."""
    says(bare.kernel_driver().library().reason(), KERNEL, "drives no GPU", "NVRM")


# ---- containers ----


def test_a_container_without_gpus_is_told_how_to_start_it(bare: Machine) -> None:
    """A container sees the machine's kernel driver though it was given no GPU; variables of its runtime may say so."""
    bare.put(".dockerenv").kernel_driver(GPU)
    reason = bare.reason()
    says(reason, "this container was given no NVIDIA GPU", KERNEL, "docker run --gpus all")
    assert "NVIDIA_VISIBLE_DEVICES" not in reason
    says(bare.reason(NVIDIA_VISIBLE_DEVICES="void"), "NVIDIA_VISIBLE_DEVICES=void asks for none")
    bare.put("dev/nvidiactl")
    says(bare.reason(NVIDIA_VISIBLE_DEVICES="none"), "no /dev/nvidia0", "NVIDIA_VISIBLE_DEVICES=none asks for none")


def test_a_container_on_a_machine_without_a_gpu(bare: Machine) -> None:
    """Signs of a container are files or variables; the advice is about the machine that it is on."""
    says(bare.reason(container="podman"), "there is no NVIDIA GPU", "installed there", "nvidia.com/gpu=all")


def test_a_container_without_the_library_is_told_of_its_runtime(healthy: Machine) -> None:
    """The devices may be there without the driver library, if the runtime does not bring it or was told not to."""
    shutil.rmtree(healthy.root / "usr")
    healthy.put("run/.containerenv")
    says(healthy.reason(), "not /dev/nvidia-uvm, which CUDA needs as well", "--device /dev/nvidia-uvm", "--gpus all")
    healthy.put("dev/nvidia-uvm")
    says(healthy.reason(), "libcuda.so.1 was not found", "The container's runtime brings it in", "--gpus all")
    says(healthy.reason(NVIDIA_DRIVER_CAPABILITIES="utility,video"), "add compute to the variable")
    says(healthy.reason(NVIDIA_DRIVER_CAPABILITIES="utility,compute"), "The container's runtime brings it in")


# ---- nodes that cannot be used ----


@pytest.fixture
def open_to_all() -> Iterator[Machine]:
    """A machine whose files a process of another user can reach."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Machine(Path(folder)).put("dev/nvidiactl", "dev/nvidia0").kernel_driver(GPU).library()


def test_nodes_that_the_user_may_not_open_name_their_owner(open_to_all: Machine) -> None:
    """A user who is in no group with access is told of the owner and the group; each node counts."""
    (open_to_all.root / "dev/nvidiactl").chmod(0o666)
    (open_to_all.root / "dev/nvidia0").chmod(0o600)
    says(
        open_to_all.reason(as_nobody=True), "/dev/nvidia0 may not be read and written", "become a member of that group"
    )
    open_to_all.put("dev/nvidia1")
    (open_to_all.root / "dev/nvidia1").chmod(0o666)
    (open_to_all.root / "dev/nvidiactl").chmod(0o600)
    says(open_to_all.reason(as_nobody=True), "/dev/nvidiactl cannot be opened: Permission denied", "become a member")
    (open_to_all.root / "dev/nvidiactl").chmod(0o666)
    assert open_to_all.reason(as_nobody=True) == "None"


def test_a_node_that_leads_nowhere_is_told(healthy: Machine) -> None:
    """A node whose driver is gone gives the error of the system, and the advice to start anew."""
    (healthy.root / "dev/nvidiactl").unlink()
    (healthy.root / "dev/nvidiactl").mkdir()  # what opens for reading only
    says(healthy.reason(), "/dev/nvidiactl cannot be opened: Is a directory", "restart the machine")


# ---- masks ----


@pytest.mark.parametrize(
    ("mask", "parts"),
    [
        ("", ["is set and empty"]),
        ("-1", ["CUDA_VISIBLE_DEVICES=-1 hides every GPU", "'-1'"]),
        ("NoDevFiles", ["'NoDevFiles', names none"]),
        ("none,0", ["'none', names none"]),
        ("1", ["its first entry is 1, and there is one GPU, number 0"]),
        ("0,0x1", ["it names number 0 twice"]),
    ],
)
def test_masks_that_hide_everything_are_reasons(healthy: Machine, mask: str, parts: list[str]) -> None:
    """ACT-02: a mask that hides every GPU is named with its value and with what to do."""
    says(healthy.reason(CUDA_VISIBLE_DEVICES=mask), *parts, "such as CUDA_VISIBLE_DEVICES=0")


@pytest.mark.parametrize(
    "mask", ["0", "0,7", " 0", "0,-1", "0 1", "0;1", "-0,-1", "0,1,0", "4294967296", "GPU-8f2d", "MIG-3eb8/1/0", "GPU-"]
)
def test_masks_that_may_leave_a_gpu_are_no_reasons(healthy: Machine, mask: str) -> None:
    """Entries count up to the first that is not valid, their numbers as C reads them; names are the driver's to know."""
    assert healthy.reason(CUDA_VISIBLE_DEVICES=mask) == "None"


# ---- the library ----


def test_a_machine_without_the_library_is_told_what_was_tried(healthy: Machine) -> None:
    """LIB-03: the reason has each file that was tried with the loader's words, and what to install."""
    broken = healthy.root / "usr/lib64/libcuda.so.1"
    broken.parent.mkdir()
    broken.write_bytes(b"no library")
    (healthy.root / "usr/lib/x86_64-linux-gnu/libcuda.so.1").unlink()
    says(healthy.reason(), f"Tried: {broken}: ", "libcuda1", "PODIUM_NVIDIA_LIBCUDA")


def test_a_stub_is_told_from_a_driver(healthy: Machine) -> None:
    """LIB-01: the stub that programs are linked with opens and has all names; it is known by its status or folder."""
    folder = healthy.root / "usr/lib/x86_64-linux-gnu"
    link = folder / "libcuda.so.1"
    link.unlink()
    driver_library(link, status=34)
    says(healthy.reason(), f"{link} is the stub", "LD_LIBRARY_PATH")
    link.unlink()
    link.symlink_to(driver_library(healthy.root / "toolkit/lib/stubs/libcuda.so"))
    says(healthy.reason(), "is the stub", "Tried: ")
    healthy.library("usr/lib64")
    assert healthy.reason() == "None"


def test_a_driver_that_is_too_old_is_told(healthy: Machine) -> None:
    """DISC-04 for drivers: the reason has the version that there is and the one that is needed."""
    driver_library(healthy.root / f"usr/lib/x86_64-linux-gnu/libcuda.so.{KERNEL}", version=11020)
    says(healthy.reason(), "serves CUDA 11.2, and podium needs 11.3", "Update NVIDIA's driver")
    driver_library(healthy.root / f"usr/lib/x86_64-linux-gnu/libcuda.so.{KERNEL}", version=11030)
    assert healthy.reason() == "None"


def test_a_library_of_another_version_than_the_kernel_driver_is_told(bare: Machine) -> None:
    """After an update without a restart the two do not fit; a compatibility library is newer on purpose."""
    bare.put("dev/nvidiactl", "dev/nvidia0").kernel_driver(GPU, version="535.86.10").library()
    says(bare.reason(), f"is {KERNEL}, and the kernel driver is 535.86.10", "Restart")
    link = bare.root / "usr/lib/x86_64-linux-gnu/libcuda.so.1"
    link.unlink()
    link.symlink_to(driver_library(bare.root / f"usr/local/cuda/compat/libcuda.so.{KERNEL}"))
    assert bare.reason() == "None"


def test_a_library_that_the_user_names_needs_no_signs_of_a_driver(bare: Machine, tmp_path: Path) -> None:
    """A library that PODIUM_NVIDIA_LIBCUDA names may stand in for a driver; masks and its version still count."""
    stand_in = driver_library(tmp_path / "stand-in.so")
    assert bare.reason(PODIUM_NVIDIA_LIBCUDA=stand_in) == "None"
    says(bare.reason(PODIUM_NVIDIA_LIBCUDA=stand_in, CUDA_VISIBLE_DEVICES="-1"), "hides every GPU")
    says(bare.reason(PODIUM_NVIDIA_LIBCUDA=tmp_path / "none.so"), "PODIUM_NVIDIA_LIBCUDA names what cannot be used")
    old = driver_library(tmp_path / "old.so", version=10020)
    says(bare.reason(PODIUM_NVIDIA_LIBCUDA=old), "serves CUDA 10.2")


def test_cuda_python_that_is_missing_is_a_reason(healthy: Machine) -> None:
    """An installation without dependencies is told what to install, and not only in the first launch."""
    program = """
import importlib.util, os, sys
from podium_nvidia import libcuda
from podium_nvidia.detection import inactive_reason
sys.path[:] = [folder for folder in sys.path if not os.path.isdir(folder + "/cuda/bindings")]
sys.modules["cuda"] = None
print(inactive_reason(sys.argv[1]))
"""
    says(python(program, healthy.root), "cuda-python is not installed", "pip install cuda-python")


def test_every_reason_is_one_line_without_an_end(healthy: Machine) -> None:
    """The errors and the table of the doctor go on after a reason, and put it into a sentence."""
    for reason in (healthy.reason(CUDA_VISIBLE_DEVICES=""), Machine(healthy.root / "other").reason()):
        assert "\n" not in reason
        assert not reason.endswith(".")


def test_this_machine_gets_an_answer() -> None:
    """On the machine of the tests, whatever it is, asking ends with None or a reason."""
    program = "from podium_nvidia.detection import inactive_reason; print(inactive_reason())"
    assert python(program)
    assert os.path.exists("/dev/nvidiactl") or python(program) != "None"
