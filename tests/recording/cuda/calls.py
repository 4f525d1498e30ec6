"""Calls of the CUDA driver, right ones and wrong ones, whose answers a real driver and the recording one must share.

``python -m recording.cuda.calls GROUP`` makes those of a group and writes the answers as JSON.
"""

from __future__ import annotations

import json
import os
import sys

from recording.cuda import calls_objects, calls_work  # they fill GROUPS
from recording.cuda.answers import GROUPS, Answers

__all__ = ["GROUPS", "calls_objects", "calls_work"]

if __name__ == "__main__":
    answers = Answers()
    GROUPS[sys.argv[1]](answers)
    sys.stdout.write(json.dumps(answers.lines))
    sys.stdout.flush()
    os._exit(0)  # what a group leaves behind is no part of it
