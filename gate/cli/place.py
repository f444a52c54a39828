"""What the lab is opened with; apart from :mod:`gate.cli.setup`, since most commands need no lab."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from gate.cli.setup import Project, describe_source, is_surprising
from gate.lab.arms.arms import ArmSources, make_working_tree_arm
from gate.lab.host.provenance import find_tree
from gate.lab.trials.side_by_side import SideBySide, describe_base
from gate.lab.trials.trials import LabSettings
from gate.project.arm_cases import lend_files, load_base_cases
from gate.project.config import Config
from gate.records import Arm, Code, Fact, Run, make_text, name_words
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
        tree=find_tree(config.directory),
    )
    return arm or make_working_tree_arm(config.directory), settings


def note_config(config: Config, options: Namespace, observe: Observer) -> None:
    """Report which gate.yml is in force, unless that was reported before."""
    if not is_surprising(config, options):
        observe(Noted(fact=make_text(describe_source(config))))


def add_base(side_by_side: SideBySide, run: Run, sources: ArmSources, config: Config) -> Run:
    """Add the base to a run: its label, environment, provenance, and the cases as it defines them."""
    source = sources.base
    defined = load_base_cases(config, run.cases, Path(source.arm.directory))
    for note in defined.notes:
        side_by_side.lab.observe(Noted(fact=note))
    base = describe_base(side_by_side, source.label, source.provenance, defined.cases)
    return replace(run, base=replace(base, head_commit=sources.head.commit))


def begin_sources(sources: ArmSources, request: Project, observe: Observer) -> None:
    """Tell what is compared with what; what is checked out without a gate.yml gets the working tree's."""
    names = name_words(base=sources.base.label, head=sources.head.label)
    observe(Noted(fact=Fact(code=Code.ARMS, names=names)))
    for source in (sources.base, sources.head):
        for note in source.notes:
            observe(Noted(fact=note))
        place = Path(source.arm.directory)
        if source.commit and (lent := lend_files(request.config, request.cases, place)):
            observe(Noted(fact=Fact(code=Code.LENT, names={"arm": (source.label,), "paths": lent})))
