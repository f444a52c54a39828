"""Outside the worker: lock, prime, spawn, time out, isolate, save, resume. Knows no torch."""

from __future__ import annotations

from gate.lab.arms.arms import ArmOptions, ArmSource, ArmSources, make_working_tree_arm, open_arms
from gate.lab.host.provenance import load_provenance
from gate.lab.trials.opening import Lab, open_lab
from gate.lab.trials.runner import LabTrials, make_run, measure_plan
from gate.lab.trials.trials import LabSettings
from gate.records.events import Event, Observer

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
    "measure_plan",
    "open_arms",
    "open_lab",
]
