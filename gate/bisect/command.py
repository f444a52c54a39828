"""``bisect``: find the first commit, or interpreter, at which a metric of a case is worse, in pairs."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import dataclass, replace

from gate.bisect.lab import BisectLab, Question, UnusablePointError, find_ends, open_bisect_lab
from gate.bisect.search import (
    StepJudge,
    count_steps,
    find_change,
    find_row,
    make_judge,
    predict_step_s,
    read_mark,
    search_first,
    settle_ends,
    settle_finding,
    settle_step,
)
from gate.bisect.words import (
    FirstBad,
    Forecast,
    render_bisection_plan,
    render_candidates,
    render_ends,
    render_finding,
    render_step,
    render_time_up,
)
from gate.check.pair_schedule import count_pairs
from gate.cli.output import list_reports, remove_files, save_reports
from gate.cli.setup import RUN_FILE, load_project, parse_metric
from gate.decide.side_by_side import decide_side_by_side
from gate.errors import ExitCode, UsageError
from gate.files.codec import BISECTION, RUN
from gate.records import Comparison, Run, Status
from gate.records.studies import Bisection, BisectionStep, Mark
from gate.store.policy import load_policy

BISECTION_FILE = "bisection.json"
_ENDS, _CONFIRMATION = "ends", "first-bad"


@dataclass(kw_only=True)
class Bisector:
    """Asks about one point after the other, and remembers in a file what came of it."""

    lab: BisectLab
    judge: StepJudge
    state: Bisection
    forecast: Forecast

    def ask(self, point: str) -> Mark | None:
        """Find out what one point is, save that and report it; ``None`` where the time is up."""
        begun, question = time.monotonic(), self.lab.question
        out, why = question.out / question.ends.name_directory(point), ""
        try:
            with self.lab.open_pairs(question.ends.good, point, out) as pairs:
                run, mark = settle_step(pairs.measurer, pairs.run, self.judge, pairs.limit_s)
                RUN.save(run, out / RUN_FILE)
        except UnusablePointError as error:  # its own gate.yml is broken, or lacks the case
            run, mark, why = None, Mark.SKIP, error.what
        if mark is None:
            return None
        step = BisectionStep(
            point=point,
            mark=mark,
            pairs=count_pairs(run, question.case_id) if run else 0,
            wall_s=max(time.monotonic() - begun, run.wall_s if run else 0.0),
            change=find_change(run, self.judge) if run else None,
        )
        self.state = replace(self.state, steps=(*self.state.steps, step))
        BISECTION.save(self.state, question.out / BISECTION_FILE)
        print(render_step(self.state, question.ends.describe(point), self.forecast, why), flush=True)
        return mark

    def confirm(self, first: str) -> tuple[Run, Comparison | None]:
        """Compare what was found with the point before it, by the rule of every other comparison."""
        question = self.lab.question
        before, out = question.ends.find_before(first), question.out / _CONFIRMATION
        with self.lab.open_pairs(before, first, out) as pairs:
            run = settle_finding(pairs.measurer, pairs.run, self.judge, pairs.limit_s)
            RUN.save(run, out / RUN_FILE)
        return run, find_row(run, self.judge.policy, self.judge.case_id, self.judge.metric)


def run_bisect(options: Namespace) -> ExitCode:
    """Measure the ends, search between them, compare what was found with the point before it, and report."""
    if options.select is None:
        raise UsageError(
            "CASE: none is named", "Name it first: compile-gate bisect CASE --good REF, or CASE --pythons ..."
        )
    project = load_project(options)
    if len(project.cases) != 1:
        what = f"CASE: {options.select!r} is {len(project.cases)} cases, and a bisection is of one"
        raise UsageError(what, "Name one; `compile-gate models` lists them.")
    # By its id: at another commit a pattern may fit other cases.
    by_id = replace(project, config=replace(project.config, select=project.cases[0].id))
    question = Question(
        options=options,
        project=by_id,
        policy=load_policy(project.config),
        ends=find_ends(options, project.config.directory),
        metric=parse_metric(options.metric) if options.metric else None,
    )
    stored = _load_state(question)
    if stored is not None:
        question = replace(question, metric=stored.metric)
    with open_bisect_lab(question) as lab:
        return _bisect(lab, stored)


def _bisect(lab: BisectLab, stored: Bisection | None) -> ExitCode:
    question = lab.question
    ends, policy = question.ends, question.policy
    with lab.open_pairs(ends.good, ends.bad, question.out / _ENDS) as pairs:
        run = settle_ends(pairs.measurer, pairs.run, policy, question.metric, pairs.limit_s)
        RUN.save(run, question.out / _ENDS / RUN_FILE)
    row = find_row(run, policy, question.case_id, question.metric)
    print(render_ends(ends.labels, decide_side_by_side(run, policy), row, question.metric))
    if run.failures:
        return ExitCode.INCOMPLETE
    if row is None or row.status is not Status.REGRESSED or row.change is None:
        return ExitCode.INCONCLUSIVE
    judge = make_judge(run, policy, row)
    between = len(ends.list_after_good()) - 1
    forecast = Forecast(
        between=between,
        steps=count_steps(between),
        step_s=predict_step_s(run, judge),
        noun=ends.noun,
    )
    state = stored or Bisection(
        case_id=question.case_id,
        metric=row.metric,
        good=ends.good,
        bad=ends.bad,
        change=row.change.centre,
    )
    BISECTION.save(state, question.out / BISECTION_FILE)
    print(render_bisection_plan(state, forecast, lab.compute_left_s()), flush=True)
    return _search(Bisector(lab=lab, judge=judge, state=state, forecast=forecast))


def _search(bisector: Bisector) -> ExitCode:
    ends, known = bisector.lab.question.ends, {step.point: step.mark for step in bisector.state.steps}
    found = search_first(ends.rank, ends.good, ends.bad, bisector.ask, known)
    if found is None:
        print(render_time_up(bisector.state, bisector.forecast))
        return ExitCode.INCONCLUSIVE
    candidates = [point for point in ends.list_after_good() if point in found]
    if len(candidates) > 1:
        print(render_candidates([ends.describe(one) for one in candidates]))
        return ExitCode.INCONCLUSIVE
    return _conclude(bisector, candidates[0])


def _conclude(bisector: Bisector, first: str) -> ExitCode:
    """Compare what was found with the point before it: it must be seen again."""
    question, state = bisector.lab.question, bisector.state
    run, row = bisector.confirm(first)
    verdict = decide_side_by_side(run, bisector.judge.policy)
    mark, place = read_mark(row), question.out / _CONFIRMATION
    code = ExitCode.PASS if mark is Mark.BAD else ExitCode.INCONCLUSIVE
    save_reports(verdict, place, code)
    finding = FirstBad(
        name=question.ends.describe(first),
        metric=state.metric,
        causes=tuple(one.fact for one in verdict.causes if one.case_id == state.case_id),
        row=row,
        mark=mark,
        place=str(place),
    )
    print(render_finding(finding))
    return code


def _load_state(question: Question) -> Bisection | None:
    """Load the bisection that is continued; none where this is a new one, or its ends are not settled.

    What an earlier one has left is removed for a new one: continued later, it would count as its own.

    Raises:
        UsageError: There is none to continue, or it is of another question.
    """
    path, ends = question.out / BISECTION_FILE, question.ends
    if not question.options.resume:
        runs = question.out.glob(f"*/{RUN_FILE}")
        remove_files(*list_reports(question.out / _CONFIRMATION), path, *runs)
        return None
    if not path.is_file():
        if not (question.out / _ENDS / RUN_FILE).is_file():
            what = f"--resume: {path} does not exist, so there is no bisection to continue"
            raise UsageError(what, "Run without --resume, or name its directory with --out.")
        return None
    stored = BISECTION.load(path)
    asked = (question.case_id, question.metric or stored.metric, ends.good, ends.bad)
    if asked != (stored.case_id, stored.metric, stored.good, stored.bad):
        what = f"--resume: {path} is of another case, metric or ends"
        raise UsageError(what, "Run without --resume, or name that bisection's directory with --out.")
    return stored
