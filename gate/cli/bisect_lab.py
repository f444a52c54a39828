"""Between what ``bisect`` searches, and its one lab: the good end stays in it, other commits come and go."""

from __future__ import annotations

import hashlib
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gate.cli.place import add_base, note_config, place_lab
from gate.cli.setup import RUN_FILE, Project
from gate.errors import UsageError
from gate.files.codec import load_run, save_run
from gate.lab.arms.arms import ArmSource, ArmSources, open_arm
from gate.lab.arms.bisection import count_between
from gate.lab.arms.interpreter import ForeignInterpreter, prepare_interpreter
from gate.lab.host.scratch import open_scratch
from gate.lab.trials.long_lab import LongLab
from gate.lab.trials.merging import carry_over
from gate.lab.trials.opening import open_lab
from gate.lab.trials.runner import make_run
from gate.lab.trials.side_by_side import LabPairs
from gate.metrics import SPECS, Role
from gate.project.arm_cases import load_head_cases
from gate.records import BASE_ARM, CANDIDATE_ARM, Code, Fact, Metric, Run, name_words
from gate.records.events import Event, Noted, Observer
from gate.report.progress import show_progress
from gate.revisions import Revision, describe_resolved_commit, find_page, resolve_ancestor, resolve_ref

_POINT_CHARS = 12  # of a commit, in the name of its directory


@dataclass(frozen=True, kw_only=True, slots=True)
class Ends:
    """Between what to search: both ends, and all points where they are a list of interpreters."""

    directory: Path  # of gate.yml in the working tree
    good: str
    bad: str
    pythons: tuple[str, ...] = ()
    labels: tuple[str, str] = ("", "")

    @property
    def noun(self) -> str:
        """What a point is."""
        return "interpreter" if self.pythons else "commit"

    def count_between(self) -> int:
        """Count the points that are neither end."""
        if self.pythons:
            return len(self.pythons) - 2
        return count_between(self.directory, self.good, self.bad)

    def name_directory(self, point: str) -> str:
        """Where the files of a point go: whatever else the list names, an interpreter's are its own."""
        name = hashlib.sha256(point.encode()).hexdigest() if self.pythons else point
        return f"{'python-' if self.pythons else ''}{name[:_POINT_CHARS]}"

    def describe(self, point: str) -> str:
        """A point for a reader: a commit by its short id and its subject."""
        return point if self.pythons else describe_resolved_commit(self.directory, point)

    def find_page(self, point: str) -> str:
        """The address of a commit on GitHub; empty where there is none."""
        return "" if self.pythons else find_page(self.directory, point)

    def find_before(self, first: str) -> str:
        """The point before that one."""
        if self.pythons:
            return self.pythons[self.pythons.index(first) - 1]
        return resolve_ref(self.directory, f"{first}^").commit


def find_ends(options: Namespace, directory: Path) -> Ends:
    """Read the ends.

    Raises:
        UsageError: Neither or both kinds are named; or good is no ancestor of bad, or the same.
    """
    if options.pythons:
        if options.good or options.bad:
            what = "--pythons: the first is good and the last is bad, so --good and --bad say it twice"
            raise UsageError(what, "Leave them out.")
        names = tuple(options.pythons)
        if len(names) < 2 or len(set(names)) < len(names):  # noqa: PLR2004 - two ends
            raise UsageError("--pythons names no list", "Name two interpreters or more, each once, in order.")
        labels = (names[0], names[-1])
        return Ends(directory=directory, good=names[0], bad=names[-1], pythons=names, labels=labels)
    if not options.good:
        raise UsageError(
            "nothing says what is good", "Name a commit with --good, or interpreters with --pythons."
        )
    bad = resolve_ref(directory, options.bad or "HEAD")
    good = _resolve_good(directory, options.good, bad)
    return Ends(directory=directory, good=good.commit, bad=bad.commit, labels=(good.label, bad.label))


def parse_metric(name: str | None) -> Metric | None:
    """Read the metric that is named.

    Raises:
        UsageError: It is none that decides.
    """
    if name is None:
        return None
    known = {str(metric): metric for metric in SPECS if SPECS[metric].role is Role.DECIDES}
    if name not in known:
        raise UsageError(f"METRIC: {name!r} is no metric that decides", f"Name one of {', '.join(known)}.")
    return known[name]


def _resolve_good(directory: Path, name: str, bad: Revision) -> Revision:
    good = resolve_ancestor(directory, name, bad.commit)
    if good.commit == bad.commit:
        raise UsageError(
            f"--good and --bad are the same commit: {bad.label}", "Name an older one with --good."
        )
    return good


BISECT_DIRECTORY = "bisect"  # below ``out``


class UnusablePointError(UsageError):
    """A point that is nothing to measure: its code cannot be opened, or lacks the case."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenPairs:
    """Two points that are ready to be measured, the run so far, and the seconds of it that there are."""

    measurer: LabPairs
    run: Run
    limit_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectLab:
    """Opens two points of a bisection after the other, in one lab."""

    options: Namespace
    project: Project
    ends: Ends
    long_lab: LongLab
    good: ArmSource
    interpreters: Mapping[str, ForeignInterpreter]  # that are searched
    deadline: float  # of the whole command, by the monotonic clock
    observe: Observer

    def compute_left_s(self) -> float:
        """Seconds until the time of ``--minutes`` is up."""
        return self.deadline - time.monotonic()

    @contextmanager
    def open_pairs(self, base: str, head: str, out: Path) -> Iterator[OpenPairs]:
        """Make ``head`` ready to be held against ``base``; the files of it go to ``out``.

        Raises:
            UnusablePointError: The code or the configuration of ``head`` cannot be used.
            UsageError: What was saved cannot be read, or is another run; ``out`` cannot be written.
            MachineError: It cannot be checked out, or its interpreter cannot compile here.
        """
        with ExitStack() as stack:
            before = self.good if base == self.ends.good else stack.enter_context(self._open(BASE_ARM, base))
            config, cases = replace(self.project.config, out=out), self.project.cases
            try:
                sources = ArmSources(base=before, head=stack.enter_context(self._open(CANDIDATE_ARM, head)))
                if not self.ends.pythons:
                    cases = load_head_cases(config, cases, Path(sources.head.arm.directory))
            except UsageError as error:
                raise UnusablePointError(error.what, error.fix) from error
            pairs = self.long_lab.open_pairs(sources.base.arm, sources.head.arm, out, cases)
            side_by_side = stack.enter_context(pairs)
            run = make_run(side_by_side.lab, cases, config.select, 0)
            run = add_base(side_by_side, replace(run, provenance=sources.head.provenance), sources, config)
            if self.options.resume and (out / RUN_FILE).is_file():
                run = carry_over(run, load_run(out / RUN_FILE))
            save = partial(save_run, path=out / RUN_FILE)
            yield OpenPairs(
                measurer=LabPairs(lab=side_by_side.lab, save=save, side_by_side=side_by_side),
                run=run,
                limit_s=run.wall_s + self.compute_left_s(),
            )

    @contextmanager
    def _open(self, name: str, point: str) -> Iterator[ArmSource]:
        with _open_point(self.ends, name, point, self.interpreters) as source:
            for note in source.notes:
                self.observe(Noted(fact=note))
            yield source


@contextmanager
def open_bisect_lab(options: Namespace, project: Project, ends: Ends) -> Iterator[BisectLab]:
    """Lock the device until the end, and make the good end ready.

    Raises:
        UsageError, MachineError: As :func:`gate.lab.arms.arms.open_arm` and
            :func:`gate.lab.trials.opening.open_lab`.
    """
    deadline = time.monotonic() + 60 * options.minutes
    config = replace(project.config, out=project.config.out / BISECT_DIRECTORY)
    with ExitStack() as stack:
        observe = _tell_once(stack.enter_context(show_progress(quiet=options.quiet)))
        place = stack.enter_context(open_scratch())
        interpreters = {python: prepare_interpreter(python, "--pythons", place) for python in ends.pythons}
        good = stack.enter_context(_open_point(ends, BASE_ARM, ends.good, interpreters))
        names = name_words(base=ends.labels[0], head=ends.labels[1])
        for fact in (Fact(code=Code.ARMS, names=names), *good.notes):
            observe(Noted(fact=fact))
        arm, settings = place_lab(config, good.arm)
        lab = stack.enter_context(open_lab(arm, settings, observe))
        note_config(config, options, observe)
        yield BisectLab(
            options=options,
            project=project,
            ends=ends,
            long_lab=LongLab(lab=lab),
            good=good,
            interpreters=interpreters,
            deadline=deadline,
            observe=observe,
        )


def _open_point(
    ends: Ends, name: str, point: str, interpreters: Mapping[str, ForeignInterpreter]
) -> AbstractContextManager[ArmSource]:
    return open_arm(name, ends.directory, "" if ends.pythons else point, interpreters.get(point))


def _tell_once(observe: Observer) -> Observer:
    """Leave out the notes of a kind that has been told: each commit would say the same again."""
    told: set[Code] = set()

    def observe_once(event: Event) -> None:
        if isinstance(event, Noted):
            if event.fact.code in told and event.fact.code is not Code.TEXT:
                return
            told.add(event.fact.code)
        observe(event)

    return observe_once
