"""What a command measures with: a lane of its own, or a fleet of many."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gate.check.fleet import Fleet
from gate.cli.output import make_saver
from gate.cli.place import note_config
from gate.lab.trials.lane import LaneTerms, OpenLane
from gate.lab.trials.side_by_side import LabPairs
from gate.project.config import Config
from gate.records import Fact, Run
from gate.report.progress import show_progress


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """What measures, and the run that is still to be measured."""

    measurer: LabPairs | Fleet
    run: Run
    without_base: tuple[Fact, ...] = ()  # why it has none, for the verdict


@contextmanager
def open_measurer(options: Namespace, config: Config, opening: OpenLane, *stale: Path) -> Iterator[Opened]:
    """Open what the command measures with, and show its progress. Saving removes ``stale`` files first.

    Raises as :func:`gate.lab.trials.opening.open_lab`.
    """
    save = make_saver(config.out, *stale)
    with (
        show_progress(quiet=options.quiet) as observe,
        opening(LaneTerms(out=config.out, observe=observe)) as lane,
    ):
        note_config(config, options, observe)
        yield Opened(measurer=lane.make_measurer(save), run=lane.run, without_base=lane.without_base)
