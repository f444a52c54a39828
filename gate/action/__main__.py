"""``python -m gate.action``: what action.yml runs; :mod:`gate.action.launch` says how it is started."""

from __future__ import annotations

import os
import sys

from gate.action.launch import read_given
from gate.action.modes import run_action

if __name__ == "__main__":
    given = read_given(sys.argv[1]) if sys.argv[1:] else {}
    sys.exit(run_action({**os.environ, **given}))
