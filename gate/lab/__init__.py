"""Outside the worker: lock, prime, spawn, time out, isolate, save, resume. Knows no torch."""

from __future__ import annotations

from gate.lab.arms import ArmOptions, ArmSource, ArmSources, make_working_tree_arm, open_arms
from gate.lab.events import Event, Observer
from gate.lab.provenance import load_provenance
from gate.lab.runner import Lab, LabTrials, make_run, open_lab, run_plan
from gate.lab.trials import LabSettings

__all__ = [
    "ArmOptions",
    "ArmSource",
    "ArmSources",
    "Event",
    "Lab",
    "LabSettings",
    "LabTrials",
    "Observer",
    "load_provenance",
    "make_run",
    "make_working_tree_arm",
    "open_arms",
    "open_lab",
    "run_plan",
]
