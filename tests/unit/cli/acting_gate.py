"""The real command line in a process of its own; only what the lab starts as workers are actors.

``python acting_gate.py DIRECTORY COMMAND ...`` keeps lock and scratch in DIRECTORY.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from gate.cli import main, place
from gate.lab.host.lock import VARIABLE
from gate.lab.trials.trials import LabSettings
from gate.project.config import Config
from gate.records import Arm

ACTOR = Path(__file__).with_name("planted_worker.py")


def place_actors(config: Config, arm: Arm | None = None) -> tuple[Arm, LabSettings]:
    """Place the lab as the command does, with actors for workers."""
    real, settings = place_lab(config, arm)
    return real, replace(settings, worker=("-P", "-S", str(ACTOR)), trial_timeout_s=30.0)


place_lab = place.place_lab

if __name__ == "__main__":
    own = Path(sys.argv[1])
    place.place_lab = place_actors
    os.environ[VARIABLE] = str(own)
    tempfile.tempdir = str(own)
    sys.exit(main(sys.argv[2:]))
