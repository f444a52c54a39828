"""``python -m gate`` is the same as ``compile-gate``."""

from __future__ import annotations

import sys

from gate.cli import main

if __name__ == "__main__":
    sys.exit(main())
