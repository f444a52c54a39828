"""``bisect``: find the first commit, or interpreter, at which a metric of a case is worse, in pairs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gate.check import Checked, count_pairs
from gate.check.bisect import (
    Candidates,
    ListSearch,
    Search,
    choose_metric,
    count_steps,
    make_suspect,
    read_mark,
    search_first,
    split_difference,
)
from gate.cli.ab import Factor, compare_arms
from gate.cli.output import save_reports
from gate.cli.setup import RUN_FILE, Project, load_project
from gate.decide import LOOKS, Suspect, judge_pairs
from gate.errors import ExitCode, UsageError
from gate.files.codec import BISECTION, load_run
from gate.lab.arms.arms import ArmOptions
from gate.lab.arms.bisection import count_between, open_git_search
from gate.metrics import SPECS, Role
from gate.records import Comparison, Metric, Policy, Run, Status
from gate.records.bisection import Bisection, BisectionStep, Mark
from gate.report.bisection import (
    FirstBad,
    render_bisection_plan,
    render_candidates,
    render_ends,
    render_finding,
    render_step,
)
from gate.revisions import Revision, describe_resolved_commit, find_page, resolve_ancestor, resolve_ref
from gate.store.policies import load_policy

BISECTION_FILE = "bisection.json"
_DIRECTORY = "bisect"  # below ``out``
_ENDS, _CONFIRMATION = "ends", "first-bad"
_POINT_CHARS = 12  # of a commit, in the name of its directory


@dataclass(frozen=True, kw_only=True, slots=True)
class Ends:
    """Between what to search: both ends, and all points where they are a list."""

    good: str
    bad: str
    pythons: tuple[str, ...] = ()
    labels: tuple[str, str] = ("", "")

    def make_arms(self, directory: Path, base: str, head: str) -> ArmOptions:
        """The arms that hold one point against another."""
        if self.pythons:
            return ArmOptions(directory=directory, base_python=base, head_python=head)
        return ArmOptions(directory=directory, base=base, head=head)

    def name_directory(self, point: str) -> str:
        """Where the files of a point go."""
        return f"python-{self.pythons.index(point)}" if self.pythons else point[:_POINT_CHARS]


@dataclass(kw_only=True)
class Bisector:
    """Holds points against each other, and remembers what came of it in a file."""

    options: Namespace
    project: Project
    policy: Policy
    ends: Ends
    metric: Metric | None

    @property
    def case_id(self) -> str:
        """The one case."""
        return self.project.cases[0].id

    @property
    def out(self) -> Path:
        """Where all of this goes."""
        return self.project.config.out / _DIRECTORY

    def compare(self, base: str, head: str, name: str) -> tuple[Checked, Comparison | None]:
        """Hold ``head`` against ``base``; where that could not tell, with as much time again."""
        suspect = make_suspect(self.case_id, self.metric)
        factor = Factor(
            name="",
            arms=self.ends.make_arms(self.project.config.directory, base, head),
            out=self.out / name,
            suspects=(suspect,),
        )
        previous = self._read_previous(factor.out)
        for times in (1, 2):
            options = Namespace(**{**vars(self.options), "minutes": times * self.options.minutes})
            checked = compare_arms(options, self.project, self.policy, factor, previous)
            row = self._find_row(checked.run, suspect)
            if not self._needs_time(checked.run, row):
                break
            previous = checked.run
        return checked, row

    def ask(self, state: Bisection, point: str) -> tuple[Bisection, Mark]:
        """Find out what one point is, and save it."""
        checked, row = self.compare(state.good, point, self.ends.name_directory(point))
        step = BisectionStep(
            point=point,
            mark=read_mark(row),
            pairs=count_pairs(checked.run, self.case_id),
            wall_s=checked.run.wall_s,
            change=row.change.centre if row and row.change else None,
        )
        state = replace(state, steps=(*state.steps, step))
        BISECTION.save(state, self.out / BISECTION_FILE)
        return state, step.mark

    def _needs_time(self, run: Run, row: Comparison | None) -> bool:
        """Whether more pairs might tell: there are none yet, or too few of them."""
        if row is None:
            return not run.failures and not count_pairs(run, self.case_id)
        return row.status is Status.INCONCLUSIVE and row.pairs < LOOKS[-1]

    def _find_row(self, run: Run, suspect: Suspect) -> Comparison | None:
        rows = judge_pairs(run, self.policy, (suspect,))
        if self.metric is None:
            return choose_metric(rows)
        return next((row for row in rows if row.metric is self.metric), None)

    def _read_previous(self, place: Path) -> Run | None:
        path = place / RUN_FILE
        return load_run(path) if self.options.resume and path.is_file() else None


def run_bisect(options: Namespace) -> ExitCode:
    """Measure the ends, search between them, hold what was found against what is before it, and tell."""
    if options.select is None:
        raise UsageError(
            "CASE: none is named", "Name it first: compile-gate bisect CASE --good REF, or CASE --pythons ..."
        )
    project = load_project(options)
    if len(project.cases) != 1:
        what = f"CASE: {options.select!r} is {len(project.cases)} cases, and a bisection is of one"
        raise UsageError(what, "Name one; `compile-gate models` lists them.")
    ends, metric = _find_ends(options, project.config.directory), _parse_metric(options.metric)
    bisector = Bisector(
        options=options,
        project=project,
        policy=load_policy(project.config),
        ends=ends,
        metric=metric,
    )
    stored = _load_state(bisector)
    checked, row = bisector.compare(ends.good, ends.bad, _ENDS)
    print(render_ends(ends.labels, checked.verdict, row))
    if checked.run.failures:
        return ExitCode.INCOMPLETE
    if row is None or row.status is not Status.REGRESSED or row.change is None:
        return ExitCode.INCONCLUSIVE
    bisector.metric = row.metric
    bisector.policy = split_difference(bisector.policy, row)
    state = stored or Bisection(
        case_id=bisector.case_id,
        metric=row.metric,
        good=ends.good,
        bad=ends.bad,
        change=row.change.centre,
    )
    return _search(bisector, state, checked.run.wall_s)


def _search(bisector: Bisector, state: Bisection, pair_s: float) -> ExitCode:
    """Search between the ends; ``pair_s`` is what holding one against the other took."""
    ends = bisector.ends
    directory = bisector.project.config.directory
    between = len(ends.pythons) - 2 if ends.pythons else count_between(directory, ends.good, ends.bad)
    noun = "interpreter" if ends.pythons else "commit"
    print(render_bisection_plan(between, count_steps(between), pair_s, noun), flush=True)
    known = {step.point: step.mark for step in state.steps}

    def ask(point: str) -> Mark:
        nonlocal state
        state, mark = bisector.ask(state, point)
        print(render_step(state.metric, state.steps[-1]), flush=True)
        return mark

    with _open_search(ends, directory) as search:
        answer = search_first(search, ask, known)
    return _conclude(bisector, state, answer)


def _conclude(bisector: Bisector, state: Bisection, candidates: Candidates) -> ExitCode:
    """Hold what was found against what is before it: it must be seen again."""
    ends, directory = bisector.ends, bisector.project.config.directory
    if len(candidates) > 1:
        print(render_candidates(candidates))
        return ExitCode.INCONCLUSIVE
    (first,) = candidates
    before = _find_before(ends, directory, first)
    checked, row = bisector.compare(before, first, _CONFIRMATION)
    confirmed = read_mark(row) is Mark.BAD
    code = ExitCode.PASS if confirmed else ExitCode.INCONCLUSIVE
    save_reports(checked.verdict, bisector.out / _CONFIRMATION, code)
    finding = FirstBad(
        name=first if ends.pythons else describe_resolved_commit(directory, first),
        page="" if ends.pythons else find_page(directory, first),
        state=state,
        labels=ends.labels,
        causes=tuple(one.fact for one in checked.verdict.causes if one.case_id == state.case_id),
        row=row,
        is_confirmed=confirmed,
        place=str(bisector.out / _CONFIRMATION),
    )
    print(render_finding(finding))
    return code


@contextmanager
def _open_search(ends: Ends, directory: Path) -> Iterator[Search]:
    if ends.pythons:
        yield ListSearch(points=ends.pythons)
        return
    with open_git_search(directory, ends.good, ends.bad) as search:
        yield search


def _find_before(ends: Ends, directory: Path, first: str) -> str:
    if ends.pythons:
        return ends.pythons[ends.pythons.index(first) - 1]
    return resolve_ref(directory, f"{first}^").commit


def _find_ends(options: Namespace, directory: Path) -> Ends:
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
        return Ends(good=names[0], bad=names[-1], pythons=names, labels=(names[0], names[-1]))
    if not options.good:
        raise UsageError(
            "nothing says what is good", "Name a commit with --good, or interpreters with --pythons."
        )
    bad = resolve_ref(directory, options.bad or "HEAD")
    good = _resolve_good(directory, options.good, bad)
    return Ends(good=good.commit, bad=bad.commit, labels=(good.label, bad.label))


def _resolve_good(directory: Path, name: str, bad: Revision) -> Revision:
    good = resolve_ancestor(directory, name, bad.commit)
    if good.commit == bad.commit:
        raise UsageError(
            f"--good and --bad are the same commit: {bad.label}", "Name an older one with --good."
        )
    return good


def _parse_metric(name: str | None) -> Metric | None:
    if name is None:
        return None
    known = {str(metric): metric for metric in SPECS if SPECS[metric].role is Role.DECIDES}
    if name not in known:
        raise UsageError(f"METRIC: {name!r} is no metric that decides", f"Name one of {', '.join(known)}.")
    return known[name]


def _load_state(bisector: Bisector) -> Bisection | None:
    """Load the bisection that is continued; none where this is a new one, or its ends are not settled.

    Raises:
        UsageError: There is none to continue, or it is of another question.
    """
    path = bisector.out / BISECTION_FILE
    if not bisector.options.resume:
        return None
    if not path.is_file():
        if not (bisector.out / _ENDS / RUN_FILE).is_file():
            what = f"--resume: {path} does not exist, so there is no bisection to continue"
            raise UsageError(what, "Run without --resume, or name its directory with --out.")
        return None
    stored = BISECTION.load(path)
    asked = (bisector.case_id, bisector.metric or stored.metric, bisector.ends.good, bisector.ends.bad)
    if asked != (stored.case_id, stored.metric, stored.good, stored.bad):
        what = f"--resume: {path} is of another case, metric or ends"
        raise UsageError(what, "Run without --resume, or name that bisection's directory with --out.")
    bisector.metric = stored.metric
    return stored
