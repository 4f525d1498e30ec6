"""``python -m podium``: the command line."""

from __future__ import annotations

import sys

from podium._cli import main

if __name__ == "__main__":
    sys.exit(main())
