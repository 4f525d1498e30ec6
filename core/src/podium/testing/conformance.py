"""The conformance suite: what every backend must do, in the words of podium's contracts.

A third party runs it on a driver class of its own::

    from podium.testing import Capabilities, DriverConformance

    class TestMine(DriverConformance):
        driver_class = MyDriver
        capabilities = Capabilities(half=False)

and on an installed backend with ``pytest --pyargs podium.testing.conformance --podium-backend NAME``.
The suite knows no vendor: it speaks of capabilities. What a backend does not claim is skipped, and is counted so in
the report at the end of the run. Each test's docstring begins with the rule that it holds the backend to, and
docs/contracts.md has all of them.
"""

from __future__ import annotations

from typing import Any

import podium
from podium.backend import Driver
from podium.testing._capabilities import Capabilities
from podium.testing._conformance.arguments import Arguments
from podium.testing._conformance.arrays import Arrays
from podium.testing._conformance.attributes import Attributes
from podium.testing._conformance.cache import Cache
from podium.testing._conformance.compilation import Compilation
from podium.testing._conformance.dialect import Dialect
from podium.testing._conformance.discovery import Detection, Discovery
from podium.testing._conformance.errors import Errors
from podium.testing._conformance.graphs import Graphs
from podium.testing._conformance.grids import Grids
from podium.testing._conformance.hooks import Hooks
from podium.testing._conformance.hostile import Hostile
from podium.testing._conformance.kernels import Kernels
from podium.testing._conformance.launchers import Launchers
from podium.testing._conformance.levels import Levels
from podium.testing._conformance.loading import Loading
from podium.testing._conformance.processes import Processes
from podium.testing._conformance.protocol import Protocol
from podium.testing._conformance.scratch import Scratch
from podium.testing._conformance.security import Security
from podium.testing._conformance.selection import Selection
from podium.testing._conformance.shutdown import Shutdown
from podium.testing._conformance.streams import Streams
from podium.testing._conformance.threads import Threads
from podium.testing._conformance.timeline import Timeline
from podium.testing._conformance.variables import Variables
from podium.testing._mistakes import without

__all__ = ["Capabilities", "DriverConformance"]


class DriverConformance(
    Discovery,
    Detection,
    Selection,
    Protocol,
    Compilation,
    Loading,
    Launchers,
    Levels,
    Attributes,
    Arguments,
    Hostile,
    Arrays,
    Grids,
    Streams,
    Timeline,
    Graphs,
    Scratch,
    Hooks,
    Cache,
    Threads,
    Processes,
    Shutdown,
    Errors,
    Security,
    Dialect,
    Variables,
    Kernels,
):
    """Everything that a backend must do. Set `driver_class`, and `capabilities` if there is something it cannot do."""


class TestInstalledBackend(DriverConformance):
    """The suite for the backend that ``--podium-backend`` names, or else the one that podium would choose."""

    @classmethod
    def choose(cls, config: Any) -> type[Driver]:
        """Set the driver class and its capabilities from the command line. Called by the plug-in of pytest."""
        cls.driver_class = type(podium.driver.resolve(config.getoption("--podium-backend") or None))
        cls.capabilities = without(config)
        return cls.driver_class
