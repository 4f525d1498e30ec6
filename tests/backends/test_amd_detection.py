"""What podium-amd says of machines: file trees with what AMD's kernel driver, containers and WSL leave there."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from amd_machines import Machine, python, runtime_library

pytest.importorskip("podium_amd", reason="podium-amd is not installed")
pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler for runtime libraries"),
    pytest.mark.skipif(importlib.util.find_spec("rocm") is None, reason="hip-python is not installed"),
]


@pytest.fixture
def bare() -> Iterator[Machine]:
    """A machine with nothing of AMD's; pytest's own folders cannot be entered by another user."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Machine(Path(folder))


@pytest.fixture
def healthy(bare: Machine) -> Machine:
    """A machine with two GPUs and everything in order."""
    return bare.put("dev/kfd", "dev/dri/renderD128").node(0).node(1, gpu=4711).node(2, gpu=4712, minor=129)


def says(reason: str, *parts: str) -> None:
    assert [part for part in parts if part not in reason] == [], reason


def test_a_machine_in_order_has_no_reason(healthy: Machine) -> None:
    """ACT-10: a device file that can be opened, a GPU in the topology, a library that opens and no mask: it is active."""
    assert healthy.reason() == "None"
    assert healthy.reason(HIP_VISIBLE_DEVICES="1", ROCR_VISIBLE_DEVICES="GPU-abcdef") == "None"


def test_nothing_of_the_library_is_called(healthy: Machine) -> None:
    """ACT-07: probing initialises nothing: each function of the library that is opened here ends the process."""
    program = """
import os, sys
from podium_amd.detection import inactive_reason
print(inactive_reason(sys.argv[1]))
os.environ["ROCR_VISIBLE_DEVICES"] = ""
print(inactive_reason(sys.argv[1])[:20])
print(sorted({"torch", "subprocess", "rocm.bindings.hip"} & set(sys.modules)))
"""
    library = runtime_library(healthy.root / "lib/libamdhip64.so.7")
    told = python(program, healthy.root, LD_LIBRARY_PATH=library.parent).split("\n")
    assert told == ["None", "ROCR_VISIBLE_DEVICES", "[]"]


def test_a_machine_without_amd(bare: Machine) -> None:
    """Without a device file, the reason is what there is on the PCI bus, and which driver has it."""
    says(bare.reason(), "there is no AMD GPU", "none on the PCI bus", "nstall the amdgpu driver")
    bare.pci("0000:01:00.0", vendor="0x10de").pci("0000:02:00.0", kind="0x060000")
    says(bare.reason(), "there is no AMD GPU")
    bare.pci("0000:c1:00.0")
    says(bare.reason(), "0000:c1:00.0", "no kernel driver is loaded for it", "sudo modprobe amdgpu")


@pytest.mark.parametrize(("driver", "words"), [("vfio-pci", "'vfio-pci' has it"), ("amdgpu", "CONFIG_HSA_AMD")])
def test_a_gpu_that_another_driver_has(bare: Machine, driver: str, words: str) -> None:
    """A GPU in a virtual machine's hands, or one whose driver was built without computing, is said to be so."""
    says(bare.pci("0000:c1:00.0", kind="0x038000", driver=driver).reason(), "0000:c1:00.0", words)


def test_a_user_who_is_in_no_group(healthy: Machine) -> None:
    """Outside of the group render it looks as if there were no device: the reason names the group and the command."""
    (healthy.root / "dev/kfd").chmod(0o660)
    reason = healthy.reason(as_nobody=True)
    says(reason, "/dev/kfd may not be read and written by this user", "sudo usermod -aG", "log in anew")
    (healthy.root / "dev/kfd").chmod(0o666)
    (healthy.root / "dev/dri/renderD128").chmod(0o600)
    says(healthy.reason(as_nobody=True), "/dev/dri/renderD128 may not be read and written", "sudo usermod -aG")


def test_a_topology_without_a_gpu(bare: Machine) -> None:
    """The device file is there as soon as the driver is; that it drives a GPU shows in the topology."""
    bare.put("dev/kfd").node(0)
    says(bare.reason(), "its topology has no GPU", "dmesg")
    bare.node(1, gpu=4711)
    says(bare.reason(), "not /dev/dri/renderD128")


def test_containers_are_told_how_to_start(bare: Machine) -> None:
    """What is missing in a container is passed on when it is started: each reason has the command."""
    bare.put(".dockerenv", "sys/module/amdgpu/uevent")
    says(bare.reason(), "this container was given no AMD GPU", "--device /dev/kfd --device /dev/dri")
    bare.put("dev/kfd").node(0).node(1, gpu=4711)
    says(bare.reason(), "this container has /dev/kfd and not /dev/dri/renderD128", "--device /dev/dri")
    bare.put("dev/dri/renderD128")
    (bare.root / "dev/kfd").chmod(0o660)
    says(bare.reason(as_nobody=True), "--group-add")


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ROCR_VISIBLE_DEVICES", "", "ROCR_VISIBLE_DEVICES is set and empty, which hides every GPU"),
        ("HIP_VISIBLE_DEVICES", "", "HIP_VISIBLE_DEVICES is set and empty"),
        ("CUDA_VISIBLE_DEVICES", "-1", "CUDA_VISIBLE_DEVICES=-1 hides every GPU: its first entry is -1"),
        ("HIP_VISIBLE_DEVICES", "2,0", "its first entry is 2, and there are 2 GPUs, numbered from 0"),
    ],
)
def test_masks_that_hide_all(healthy: Machine, variable: str, value: str, words: str) -> None:
    """ACT-05: a mask that is sure to hide every GPU is the reason, by its name and with what to do."""
    says(healthy.reason(**{variable: value}), words, f"{variable}=0")


def test_what_is_no_number_is_left_to_the_runtime(healthy: Machine) -> None:
    """ACT-02: a mask or a topology with other characters than digits stops nothing: the count on first use decides."""
    for mask in ("\u00b2", "GPU-1a2b", "x,0", ",0"):
        assert healthy.reason(HIP_VISIBLE_DEVICES=mask) == "None"
    (healthy.root / "sys/class/kfd/kfd/topology/nodes/\u00b2").mkdir()
    for number in (1, 2):
        properties = healthy.root / f"sys/class/kfd/kfd/topology/nodes/{number}/properties"
        if properties.exists():
            properties.write_text(properties.read_text() + "simd_count \u00b2\nno value\n")
    assert healthy.reason() == "None"


def test_an_empty_mask_of_an_older_runtime_is_none(healthy: Machine) -> None:
    """Before HIP 7 an empty HIP_VISIBLE_DEVICES was the same as none; that of the layer below always hides all."""
    folder = runtime_library(healthy.root / "old/libamdhip64.so.5", 5).parent
    named = {"PODIUM_AMD_LIBHIP": folder / "libamdhip64.so.5"}
    assert healthy.reason(HIP_VISIBLE_DEVICES="", **named) == "None"
    says(healthy.reason(ROCR_VISIBLE_DEVICES="", **named), "ROCR_VISIBLE_DEVICES is set and empty")


def test_wsl_has_one_device_file(bare: Machine) -> None:
    """WSL has /dev/dxg for all GPUs, and no /dev/kfd: the library is what is left to look at."""
    assert bare.put("dev/dxg").reason() == "None"


def test_a_library_that_cannot_be_used(healthy: Machine) -> None:
    """LIB-03: what the variable names is the only one, and a wrong one is an error that says so."""
    file = runtime_library(healthy.root / "wrong.so", 0)
    says(healthy.reason(PODIUM_AMD_LIBHIP=file), "PODIUM_AMD_LIBHIP names what cannot be used", str(file))


def test_a_named_library_needs_no_device_file(bare: Machine) -> None:
    """What PODIUM_AMD_LIBHIP names may be a stand-in, so the signs of the kernel driver are not asked for."""
    assert bare.reason(PODIUM_AMD_LIBHIP=runtime_library(bare.root / "mine.so")) == "None"
