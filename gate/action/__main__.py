"""``python -m gate.action``: what action.yml runs."""

from __future__ import annotations

import os
import sys

from gate.action.modes import run_action

if __name__ == "__main__":
    sys.exit(run_action(dict(os.environ)))
