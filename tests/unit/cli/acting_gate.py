"""The real command line in a process of its own; its workers are actors and its host is idle.

``python acting_gate.py DIRECTORY COMMAND ...`` keeps lock and scratch in DIRECTORY.
"""

import itertools
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from gate.cli import lanes, main
from gate.lab.host.fitness import HostSample
from gate.lab.host.locks import VARIABLE
from gate.lab.trials import opening, trials
from gate.lab.trials.bench import LabSettings
from gate.project.config import Config
from gate.records.run import Arm, Conditions

ACTOR = Path(__file__).with_name("planted_worker.py")
SECONDS = itertools.count()


def read_quiet_host() -> HostSample:
    """Read a host on which nothing else happens, so that no trial is repeated for what the machine does."""
    return HostSample(at_s=next(SECONDS))


def place_actors(config: Config, arm: Arm | None = None) -> tuple[Arm, LabSettings]:
    """Place the lab as the command does, with actors for workers."""
    real, settings = place_lab(config, arm)
    return real, replace(settings, worker=("-P", "-S", str(ACTOR)), trial_timeout_s=30.0)


place_lab = lanes.place_lab

if __name__ == "__main__":
    temporary = Path(sys.argv[1])
    lanes.place_lab = place_actors
    trials.read_host = read_quiet_host  # type: ignore[attr-defined] # as trials.py knows it
    opening.look_early = lambda _: Conditions()  # type: ignore[attr-defined,assignment] # as opening.py knows it
    os.environ[VARIABLE] = str(temporary)
    tempfile.tempdir = str(temporary)
    sys.exit(main(sys.argv[2:]))
