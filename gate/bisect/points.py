"""The points of a bisection, and its one lab: the device stays held and the good end stays open."""

import hashlib
import shutil
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from gate.bisect.search import OpenPairs, rank_list
from gate.cli.lanes import add_base, note_config, place_lab
from gate.cli.setup import RUN_FILE, Project
from gate.errors import UsageError
from gate.files.codec import RUN
from gate.git import read_git
from gate.lab.arms.arms import ArmSource, ArmSources, open_arm
from gate.lab.arms.interpreter import ForeignInterpreter, prepare_interpreter
from gate.lab.host.scratch import open_scratch
from gate.lab.trials.availability import list_unavailable_compiled
from gate.lab.trials.bench import Bench, check_disk
from gate.lab.trials.opening import Lab, open_lab, prime_bench
from gate.lab.trials.pairs import get_side_cache
from gate.lab.trials.runs import make_measurer, make_run
from gate.lab.trials.same_run import carry_over
from gate.lab.workers.worker import make_directory
from gate.project.arm_cases import load_head_cases
from gate.records.cases import Case, Metric, Policy
from gate.records.codes import Code
from gate.records.events import Event, Noted, Observer
from gate.records.facts import Fact, name_words
from gate.records.run import BASE_ARM, CANDIDATE_ARM, Arm, Environment
from gate.report.progress import show_progress
from gate.revisions import describe_resolved_commit, resolve_ancestor, resolve_ref

_POINT_CHARS = 12  # of a commit, in the name of its directory
_LIMIT_S = 600.0  # of the largest histories
_DIRECTORY = "bisect"  # below ``out``


@dataclass(frozen=True, kw_only=True, slots=True)
class Ends:
    """All points where they are a list of interpreters."""

    directory: Path  # of gate.yml in the working tree
    good: str
    bad: str
    pythons: tuple[str, ...] = ()
    labels: tuple[str, str] = ("", "")

    @property
    def noun(self) -> str:
        return "interpreter" if self.pythons else "commit"

    def list_after_good(self) -> Sequence[str]:
        """In their order; the bad end is the last."""
        if self.pythons:
            return self.pythons[1:]
        return self._list_commits("--reverse", [self.good], self.bad)

    def rank(self, good: Sequence[str], bad: str) -> Sequence[str]:
        """See :data:`gate.bisect.search.RankPoints`."""
        if self.pythons:
            return rank_list(self.pythons, good, bad)
        return self._list_commits("--bisect-all", good, bad)

    def _list_commits(self, how: str, good: Sequence[str], bad: str) -> list[str]:
        output = read_git(self.directory, "rev-list", how, bad, "--not", *good, limit_s=_LIMIT_S)
        return [line.split()[0] for line in output.decode().splitlines()]

    def name_directory(self, point: str) -> str:
        """Of the files of a point; the list of interpreters does not change it."""
        name = hashlib.sha256(point.encode()).hexdigest() if self.pythons else point
        return f"{'python-' if self.pythons else ''}{name[:_POINT_CHARS]}"

    def describe(self, point: str) -> str:
        """A commit by its short id and its subject."""
        return point if self.pythons else describe_resolved_commit(self.directory, point)

    def get_point_before(self, first: str) -> str:
        if self.pythons:
            return self.pythons[self.pythons.index(first) - 1]
        return resolve_ref(self.directory, f"{first}^").commit


def parse_ends(options: Namespace, directory: Path) -> Ends:
    """Raises: UsageError: Neither or both kinds are named; or good is no ancestor of bad, or the same."""
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
    good = resolve_ancestor(directory, options.good, bad.commit)
    if good.commit == bad.commit:
        raise UsageError(
            f"--good and --bad are the same commit: {bad.label}", "Name an older one with --good."
        )
    return Ends(directory=directory, good=good.commit, bad=bad.commit, labels=(good.label, bad.label))


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    options: Namespace
    project: Project
    policy: Policy
    ends: Ends
    metric: Metric | None

    @property
    def case_id(self) -> str:
        return self.project.cases[0].id

    @property
    def out(self) -> Path:
        return self.project.config.out / _DIRECTORY


@dataclass(kw_only=True)
class ReusableLab:
    lab: Lab
    _opened: int = 0  # arms, for the names of their directories
    _primed: dict[str, tuple[Path, Environment]] = field(default_factory=dict)  # where, by interpreter

    def __post_init__(self) -> None:
        bench = self.lab.bench
        self._primed[bench.arm.python] = bench.scratch, self.lab.environment

    @contextmanager
    def open_pairs(self, base: Arm, head: Arm, out: Path, cases: Sequence[Case]) -> Iterator[Lab]:
        """Prepare two arms; what was made for one that is not the lab's own is gone at the end.

        Head begins with the caches that the base has of the cases by now.

        Raises:
            MachineError: An interpreter cannot compile here, or a disk is full.
        """
        make_directory(out)
        with self._open(base, out) as base_bench, self._open(head, out) as head_bench:
            for case in cases:
                _keep_caches(base_bench, head_bench, case)
            _, environment = self._primed[head.python]
            yield replace(
                self.lab,
                bench=head_bench,
                base=base_bench,
                environment=environment,
                base_environment=self._primed[base.python][1],
                failed=list_unavailable_compiled(cases, environment, head_bench),
            )
        self.lab = replace(self.lab, toolchain_s=0.0)  # the next run does not wait for it

    @contextmanager
    def _open(self, arm: Arm, out: Path) -> Iterator[Bench]:
        bench = self.lab.bench
        is_own = arm == bench.arm
        self._opened += not is_own
        scratch = bench.scratch / ("own" if is_own else f"arm-{self._opened}")
        scratch.mkdir(exist_ok=True)
        arm_bench = replace(bench, arm=arm, scratch=scratch, settings=replace(bench.settings, out=out))
        check_disk(arm_bench)
        try:
            yield replace(arm_bench, toolchain=self._prime(arm_bench))
        finally:
            if not is_own:
                bench.pool.drop(arm)
                shutil.rmtree(scratch, ignore_errors=True)

    def _prime(self, bench: Bench) -> Path:
        """Prime the interpreter of a bench, unless that was done for an arm before; return its directory."""
        python = bench.arm.python
        if python not in self._primed:
            scratch = self.lab.bench.scratch / f"toolchain-{len(self._primed)}"
            (scratch / "tmp").mkdir(parents=True)
            self._primed[python] = scratch, prime_bench(replace(bench, scratch=scratch, folder=scratch.name))
        return self._primed[python][0]


def _keep_caches(base: Bench, head: Bench, case: Case) -> None:
    cache = get_side_cache(base, case)
    if cache.is_dir():
        kept = head.get_kept_caches(case)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(cache, kept, symlinks=True, dirs_exist_ok=True)


class UnusablePointError(UsageError):
    """The code of a point cannot be opened, or lacks the case."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectLab:
    question: Question
    reusable_lab: ReusableLab
    good: ArmSource
    interpreters: Mapping[str, ForeignInterpreter]  # that are searched
    deadline: float  # of the whole command, by the monotonic clock

    def compute_left_s(self) -> float:
        return self.deadline - time.monotonic()

    @contextmanager
    def open_pairs(self, base: str, head: str, out: Path) -> Iterator[OpenPairs]:
        """Prepare ``head`` to be compared with ``base``; its files go to ``out``.

        Raises:
            UnusablePointError: The code or the configuration of ``head`` cannot be used.
            UsageError: What was saved cannot be read, or is another run; ``out`` cannot be written.
            MachineError: It cannot be checked out, or its interpreter cannot compile here.
        """
        project, ends = self.question.project, self.question.ends
        config, cases = replace(project.config, out=out), project.cases
        with ExitStack() as stack:
            before = self.good if base == ends.good else stack.enter_context(self._open(BASE_ARM, base))
            try:
                sources = ArmSources(base=before, head=stack.enter_context(self._open(CANDIDATE_ARM, head)))
                if not ends.pythons:
                    cases = load_head_cases(config, cases, Path(sources.head.arm.directory))
            except UsageError as error:
                raise UnusablePointError(error.what, error.fix) from error
            pairs = self.reusable_lab.open_pairs(sources.base.arm, sources.head.arm, out, cases)
            lab = stack.enter_context(pairs)
            run = make_run(lab, cases, config.select, 0)
            run = add_base(lab, replace(run, provenance=sources.head.provenance), sources, config)
            if self.question.options.resume and (out / RUN_FILE).is_file():
                run = carry_over(run, RUN.load(out / RUN_FILE))
            save = partial(RUN.save, path=out / RUN_FILE)
            limit_s = run.wall_s + self.compute_left_s()
            yield OpenPairs(measurer=make_measurer(lab, save), run=run, limit_s=limit_s)

    @contextmanager
    def _open(self, name: str, point: str) -> Iterator[ArmSource]:
        with _open_point(self.question.ends, name, point, self.interpreters) as source:
            for note in source.notes:
                self.reusable_lab.lab.observe(Noted(fact=note))
            yield source


@contextmanager
def open_bisect_lab(question: Question) -> Iterator[BisectLab]:
    """Lock the device until the end, and prepare the good end.

    Raises:
        UsageError, MachineError: As :func:`gate.lab.arms.arms.open_arm` and
            :func:`gate.lab.trials.opening.open_lab`.
    """
    deadline = time.monotonic() + 60 * question.options.minutes
    config, ends = replace(question.project.config, out=question.out), question.ends
    with ExitStack() as stack:
        observe = _report_once(stack.enter_context(show_progress(quiet=question.options.quiet)))
        scratch = stack.enter_context(open_scratch())
        interpreters = {python: prepare_interpreter(python, "--pythons", scratch) for python in ends.pythons}
        good = stack.enter_context(_open_point(ends, BASE_ARM, ends.good, interpreters))
        names = name_words(base=ends.labels[0], head=ends.labels[1])
        for fact in (Fact(code=Code.ARMS, names=names), *good.notes):
            observe(Noted(fact=fact))
        arm, settings = place_lab(config, good.arm)
        lab = stack.enter_context(open_lab(arm, settings, observe))
        note_config(config, question.options, observe)
        yield BisectLab(
            question=question,
            reusable_lab=ReusableLab(lab=lab),
            good=good,
            interpreters=interpreters,
            deadline=deadline,
        )


def _open_point(
    ends: Ends, name: str, point: str, interpreters: Mapping[str, ForeignInterpreter]
) -> AbstractContextManager[ArmSource]:
    return open_arm(name, ends.directory, "" if ends.pythons else point, interpreters.get(point))


def _report_once(observe: Observer) -> Observer:
    """Each commit would repeat them."""
    seen: set[Code] = set()

    def observe_once(event: Event) -> None:
        if isinstance(event, Noted):
            if event.fact.code in seen and event.fact.code is not Code.TEXT:
                return
            seen.add(event.fact.code)
        observe(event)

    return observe_once
