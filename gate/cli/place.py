"""What the lab is opened with; apart from :mod:`gate.cli.setup`, since most commands need no lab."""

from __future__ import annotations

import os
from argparse import Namespace

from gate.cli.setup import describe_source, is_surprising
from gate.lab.arms.arms import make_working_tree_arm
from gate.lab.host.toolchain_place import find_toolchain_place
from gate.lab.trials.trials import LabSettings
from gate.project.config import Config
from gate.records import Arm, make_text
from gate.records.events import Noted, Observer


def place_lab(config: Config, arm: Arm | None = None) -> tuple[Arm, LabSettings]:
    """Make what the lab is opened with: an arm, the working tree unless it is given, and how to measure."""
    settings = LabSettings(
        out=config.out,
        device=config.device,
        threads=config.threads,
        sampling=config.sampling,
        trial_timeout_s=config.trial_timeout_s,
        lock_timeout_s=config.lock_timeout_s,
        toolchain_cache=find_toolchain_place(os.environ, config.device).directory,
    )
    return arm or make_working_tree_arm(config.directory), settings


def note_config(config: Config, options: Namespace, observe: Observer) -> None:
    """Tell which gate.yml is in force, where that has not been told yet."""
    if not is_surprising(config, options):
        observe(Noted(fact=make_text(describe_source(config))))
