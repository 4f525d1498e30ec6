"""Compare the recording driver's answers with those of the real one: ``python tests/recording/cuda/compare.py``.

It needs an NVIDIA GPU, and ends with 1 if there is a difference. The devices of the recording driver get the compute
capability and the number of the real ones, and nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]
sys.path.insert(0, str(TESTS))

from recording.cuda.calls import GROUPS  # noqa: E402
from recording.cuda.library import build, environment  # noqa: E402

__all__ = ["answers", "differences", "environments", "own", "real_devices"]

Lines = list[tuple[str, str]]

# What is rightly different, by the words that a call's name has, and why.
OWN = {
    "active clusters (4, 2, 1)": "depends on which multiprocessors of a group this very chip has",
    "MULTICAST_SUPPORTED": "a virtual machine may not have it",
    "CLOCK_RATE": "depends on how the machine is set up",
    "ECC_ENABLED": "the same",
}


def answers(group: str, variables: dict[str, str]) -> Lines:
    """Run a group in a process of its own, and return its answers; if it ends too early, that is one of them."""
    program = (
        "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_module('recording.cuda.calls', run_name='__main__')"
    )
    command = [sys.executable, "-c", program, "calls", group]
    path = os.pathsep.join([str(TESTS), *filter(None, [variables.get("PYTHONPATH")])])
    done = subprocess.run(command, env={**variables, "PYTHONPATH": path}, capture_output=True, text=True, timeout=300)
    if done.returncode:
        return [("the whole group", f"ended with {done.returncode}: {done.stderr.strip()[-500:]}")]
    return [(label, answer) for label, answer in json.loads(done.stdout)]


def real_devices() -> tuple[int, int]:
    """Return how many devices the real driver has, and the compute capability of the first."""
    program = (
        "from cuda.bindings import driver as d\n"
        "d.cuInit(0)\n"
        "numbers = [d.cuDeviceGetAttribute(d.CUdevice_attribute(n), 0)[1] for n in (75, 76)]\n"
        "print(d.cuDeviceGetCount()[1], numbers[0] * 10 + numbers[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    count, capability = map(int, done.stdout.split())
    return count, capability


def environments() -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables of processes on the real driver and on the recording one, with as many devices."""
    count, capability = real_devices()
    settings = {"PODIUM_RECORDING_DEVICES": str(count), "PODIUM_RECORDING_CAPABILITY": str(capability)}
    real = {name: value for name, value in os.environ.items() if name != "PODIUM_NVIDIA_LIBCUDA"}
    return real, environment(build(), **settings)


def own(label: str) -> bool:
    """Tell whether the answer to a call is each machine's own."""
    return any(words in label for words in OWN)


def differences(group: str, real: dict[str, str], recorded: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return each call whose answers differ, with both of them."""
    first, second = answers(group, real), answers(group, recorded)
    found = [(label, one, other) for (label, one), (_, other) in zip(first, second) if one != other and not own(label)]
    if len(first) != len(second):
        found.append(("number of answers", str(len(first)), str(len(second))))
    return found


def main() -> int:
    """Compare the groups that the command line names, or all, and print what differs."""
    real, recorded = environments()
    total = 0
    for group in sys.argv[1:] or GROUPS:
        found = differences(group, real, recorded)
        total += len(found)
        lines = [f"    {label[:60]:60} real {one[:70]:40} recording {other[:70]}\n" for label, one, other in found]
        sys.stdout.write(f"{group}: {len(found)} differences\n{''.join(lines)}")
        sys.stdout.flush()
    sys.stdout.write(f"{total} differences\n")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
