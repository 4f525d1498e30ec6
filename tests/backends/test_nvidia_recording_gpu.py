"""The recording CUDA driver answers as a real one does; it needs a GPU."""

from __future__ import annotations

import pytest
from recording.cuda.calls import GROUPS
from recording.cuda.compare import differences, environments

from podium_nvidia.driver import NvidiaDriver


@pytest.mark.gpu
@pytest.mark.parametrize("group", GROUPS)
def test_both_drivers_answer_the_same(gpu: NvidiaDriver, group: str) -> None:
    """Every call of a group, right or wrong, has the same status and the same numbers on both."""
    real, recorded = environments()
    assert differences(group, real, recorded) == []
