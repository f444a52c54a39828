"""``bisect``: find the first commit, or interpreter, at which a case is worse or fails, and say so."""

import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gate.bisect.levels import MAX_END_PAIRS
from gate.bisect.points import BisectLab, Question, UnusablePointError, open_bisect_lab, parse_ends
from gate.bisect.search import (
    FailureJudge,
    Forecast,
    StepJudge,
    find_change,
    find_end_failure,
    find_row,
    make_judge,
    predict_step_s,
    search_first,
    settle_ends,
    settle_found,
    settle_step,
)
from gate.cli.output import list_reports, remove_files, save_reports
from gate.cli.setup import RUN_FILE, load_project, note_origin, parse_metric
from gate.decide.side_by_side import decide_side_by_side
from gate.errors import ExitCode, UsageError
from gate.files.codec import BISECTION, RUN
from gate.metrics import SPECS, Family
from gate.records.cases import Metric
from gate.records.run import BASE_ARM, Run
from gate.records.studies import Bisection, BisectionStep, Mark
from gate.records.verdict import Comparison, Status, Verdict
from gate.report.clean import clean_line
from gate.report.words.comparisons import complete_sentence
from gate.report.words.facts import describe_cause, describe_failure, describe_whole
from gate.report.words.templates import describe_change, name_metric
from gate.store.policy import load_policy
from gate.units import format_duration, format_noun, join_some

BISECTION_FILE = "bisection.json"
_ENDS, _CONFIRMATION = "ends", "first-bad"
_GOES_ON = "Run the same again with --resume: it goes on from here."
_METRICS_NAMED = 5  # of those that the pairs leave open
_CAUSES_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """How a search ended; ``point`` is the first bad one, where it was seen again."""

    code: ExitCode
    point: str = ""
    steps: int = 0


@dataclass(kw_only=True)
class Bisector:
    lab: BisectLab
    judge: StepJudge | FailureJudge
    state: Bisection
    forecast: Forecast

    def ask(self, point: str) -> Mark | None:
        """``None`` where the time is up."""
        begun, question = time.monotonic(), self.lab.question
        out, why = question.out / question.ends.name_directory(point), ""
        try:
            with self.lab.open_pairs(question.ends.good, point, out) as pairs:
                run, mark = settle_step(pairs, self.judge)
                RUN.save(run, out / RUN_FILE)
                why = describe_whole(run.failures[0]) if run.failures else ""
        except UnusablePointError as error:  # its own gate.yml is broken, or lacks the case
            run, mark, why = None, Mark.SKIP, error.what
        if mark is None:
            return None
        step = BisectionStep(
            point=point,
            mark=mark,
            pairs=run.pair_counts[question.case_id] if run else 0,
            wall_s=max(time.monotonic() - begun, run.wall_s if run else 0.0),
            change=find_change(run, self.judge) if run else None,
        )
        self.state = replace(self.state, steps=(*self.state.steps, step))
        BISECTION.save(self.state, question.out / BISECTION_FILE)
        print(render_step(self.state, question.ends.describe(point), self.forecast, why), flush=True)
        return mark


def run_bisect(options: Namespace) -> ExitCode:
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
        ends=parse_ends(options, project.config.directory),
        metric=parse_metric(options.metric) if options.metric else None,
    )
    return search_points(question).code


def search_points(question: Question) -> Finding:
    """Print each step, and what was found.

    Raises:
        UsageError, MachineError: As :func:`gate.bisect.points.open_bisect_lab`; or there is none to continue.
    """
    stored = _load_state(question)
    if stored is not None:
        question = replace(question, metric=stored.metric)
    with open_bisect_lab(question) as lab:
        return _bisect(lab, stored)


def _bisect(lab: BisectLab, stored: Bisection | None) -> Finding:
    question = lab.question
    ends, policy = question.ends, question.policy
    with lab.open_pairs(ends.good, ends.bad, question.out / _ENDS) as pairs:
        run = settle_ends(pairs, policy, question.metric)
        RUN.save(run, question.out / _ENDS / RUN_FILE)
    row = find_row(run, policy, question.metric)
    judge = _make_judge(run, question, row)
    print(render_ends(ends.labels, decide_side_by_side(run, policy), row, question.metric))
    if judge is None:
        return Finding(code=ExitCode.INCOMPLETE if run.failures else ExitCode.INCONCLUSIVE)
    between = len(ends.list_after_good()) - 1
    forecast = Forecast(between=between, step_s=predict_step_s(run, judge), noun=ends.noun)
    state = stored or Bisection(
        case_id=question.case_id,
        metric=judge.metric,
        good=ends.good,
        bad=ends.bad,
        change=row.change.centre if row and row.change else 0.0,
    )
    BISECTION.save(state, question.out / BISECTION_FILE)
    print(render_bisection_plan(state, forecast, lab.compute_left_s()), flush=True)
    return _search(Bisector(lab=lab, judge=judge, state=state, forecast=forecast))


def _make_judge(run: Run, question: Question, row: Comparison | None) -> StepJudge | FailureJudge | None:
    """``None`` where the ends give nothing to search for."""
    if run.failures:
        failure = find_end_failure(run)
        return FailureJudge(failure=failure) if failure and question.metric is None else None
    if row is None or row.status is not Status.REGRESSED or row.change is None:
        return None
    return make_judge(run, question.policy, row)


def _search(bisector: Bisector) -> Finding:
    ends, marks = bisector.lab.question.ends, {step.point: step.mark for step in bisector.state.steps}
    first_bad = search_first(ends.rank, ends.good, ends.bad, bisector.ask, marks)
    if first_bad is None:
        print(render_time_up(bisector.state, bisector.forecast))
        return Finding(code=ExitCode.INCONCLUSIVE)
    candidates = [point for point in ends.list_after_good() if point in first_bad]
    if len(candidates) > 1:
        print(render_candidates([ends.describe(point) for point in candidates]))
        return Finding(code=ExitCode.INCONCLUSIVE)
    return _conclude(bisector, candidates[0])


def _conclude(bisector: Bisector, first: str) -> Finding:
    """It must be seen again, compared with the point before it."""
    question, state, judge = bisector.lab.question, bisector.state, bisector.judge
    directory = question.out / _CONFIRMATION
    with bisector.lab.open_pairs(question.ends.get_point_before(first), first, directory) as pairs:
        run, mark = settle_found(pairs, judge)
        RUN.save(run, directory / RUN_FILE)
    verdict = decide_side_by_side(run, question.policy if judge.metric is None else judge.policy)
    asked = question.options
    options = Namespace(config=asked.config, reference_models=asked.reference_models)
    verdict = note_origin(verdict, question.project.config, options)
    code = ExitCode.PASS if mark is Mark.BAD else ExitCode.INCONCLUSIVE
    save_reports(verdict, directory, code)
    if judge.metric is None:
        print(render_failure(question.ends.describe(first), run, mark))
    else:
        row = find_row(run, judge.policy, judge.metric)
        print(render_finding(question.ends.describe(first), judge.metric, row, mark))
    if mark is Mark.BAD:
        causes = [cause.fact for cause in verdict.causes if cause.case_id == state.case_id]
        for fact in causes[:_CAUSES_SHOWN]:
            print(f"  cause  {clean_line(describe_cause(fact))}")
        print(f"\nReport: {directory}")
    return Finding(code=code, point=first, steps=len(state.steps))


def _load_state(question: Question) -> Bisection | None:
    """The bisection that is continued; ``None`` where this is a new one, or its ends are not settled.

    Files of an earlier one are removed for a new one: continued later, they would count as its own.

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


def render_ends(
    labels: tuple[str, str], verdict: Verdict, row: Comparison | None, metric: Metric | None
) -> str:
    """``metric`` is the one that was named, if any."""
    head = f"{labels[1]} against {labels[0]}"
    if verdict.failures:
        return f"{head}: {_explain_failures(verdict, metric)}"
    if row is None and not verdict.tally.pairs:
        fix = "Run again with --resume and more --minutes, once the machine is quiet."
        return f"{head}: there was no time for a single pair. {fix}"
    if row is None and metric is not None:
        return f"{head}: the case has no {name_metric(metric)} in both. Name another METRIC."
    if row is None:
        return f"{head}: {_explain_no_row(verdict)}"
    text = f"{head}: {name_metric(row.metric)}: {complete_sentence(row)}"
    if row.status is Status.REGRESSED:
        return text
    return f"{text}\n{_explain_premise(row)}"


def _explain_failures(verdict: Verdict, metric: Metric | None) -> str:
    listed = "\n".join(
        f"  {failure.case_id} failed at {failure.stage}: {clean_line(describe_failure(failure))}"
        for failure in verdict.failures
    )
    if metric is None and all(failure.arm != BASE_ARM for failure in verdict.failures):
        return f"the case fails there, and not at the good end.\n{listed}"
    fix = "Name ends at which the case can be measured, or no METRIC to find what broke the bad one."
    return f"an end cannot be measured.\n{listed}\n{fix}"


def _explain_no_row(verdict: Verdict) -> str:
    opened = [row for row in verdict.comparisons if row.decides and row.status is Status.INCONCLUSIVE]
    if not opened:
        return "nothing got worse that decides. Name the METRIC, or other ends."
    names = join_some([name_metric(row.metric) for row in opened], _METRICS_NAMED)
    return (
        f"inconclusive for {format_noun(len(opened), 'metric')}: {names}. Once the machine is quiet, run"
        f" {_name_more(opened[0])}, or name the METRIC."
    )


def _explain_premise(row: Comparison) -> str:
    none = "There is nothing to search for:"
    if row.status is Status.IMPROVED:
        return f"{none} the bad end is better than the good one. Swap them, or name others."
    if row.status is Status.UNCHANGED and SPECS[row.metric].family is Family.EXACT:
        return f"{none} the ends do not differ in it. Name another METRIC, or other ends."
    if row.status is Status.UNCHANGED:
        return (
            f"{none} the ends do not differ by as much as matters, on this machine. Name another METRIC, ends"
            " that differ, or a lower threshold for this case (`overrides` in gate.yml)."
        )
    return (
        "Nothing to search for: the pairs do not show that the bad end is worse. Once the machine is quiet,"
        f" run {_name_more(row)}."
    )


def _name_more(row: Comparison) -> str:
    return "it anew" if row.pairs >= MAX_END_PAIRS else "again with --resume and more --minutes"


def render_bisection_plan(state: Bisection, forecast: Forecast, left_s: float) -> str:
    needed_s, steps = forecast.compute_left_s(state), forecast.count_left(state)
    between = format_noun(forecast.between, forecast.noun)
    again = f" ({format_noun(len(state.steps), 'step')} done before)" if state.steps else ""
    most = f"at most {format_noun(steps, 'step')} and one to see it again{again}"
    text = f"{between} between: {most}, about {format_duration(needed_s)} by what the ends took"
    if needed_s <= left_s:
        return text
    more = f"That is more than the {format_duration(left_s)} left of --minutes"
    return f"{text}\n{more}: what is not done by then goes on with --resume."


def render_step(state: Bisection, name: str, forecast: Forecast, why: str = "") -> str:
    """``why``: how the case failed, or why it could not be measured, where that is known."""
    step = state.steps[-1]
    if state.metric and step.change is not None:
        change = f"{name_metric(state.metric)} {describe_change(state.metric, step.change)}"
        came = f"{change} in {format_noun(step.pairs, 'pair')}"
    elif state.metric is None and step.mark is not Mark.SKIP:
        came = f"fails alike: {clean_line(why)}" if step.mark is Mark.BAD else "does not fail"
    else:
        came = f"not measured ({clean_line(why)})" if why else "not measured"
    left = forecast.count_left(state)
    most = f"at most {format_noun(left, 'step')} left" if left else "to see it again"
    return f"{step.mark:<4} {clean_line(name)}: {came}; {most}, about {_render_left(state, forecast)}"


def render_time_up(state: Bisection, forecast: Forecast) -> str:
    done, left = format_noun(len(state.steps), "step"), format_noun(forecast.count_left(state), "step")
    return (
        f"Inconclusive so far: the time of --minutes is up after {done}, at most {left} left, about"
        f" {_render_left(state, forecast)}.\n{_GOES_ON}"
    )


def _render_left(state: Bisection, forecast: Forecast) -> str:
    return format_duration(forecast.compute_left_s(state))


def render_candidates(candidates: Sequence[str]) -> str:
    return "\n".join(
        [
            f"Inconclusive: it is one of these {len(candidates)}, since those between could not be judged:",
            *(f"  {clean_line(name)}" for name in candidates),
            "They cannot be measured, lie between both ends, or vary too much. Compare two of them",
            "with `ab`, or run again once the machine is quiet.",
        ]
    )


def render_finding(name: str, metric: Metric, row: Comparison | None, mark: Mark) -> str:
    """``mark`` is SKIP where the pairs do not show that the point is worse than the one before."""
    first = f"first bad: {clean_line(name)}"
    sentence = complete_sentence(row) if row else "It could not be compared with the one before it."
    if mark is Mark.SKIP:
        why = "Inconclusive so far: the steps lead to this one, and it has not been seen again."
        quiet = f"Once the machine is quiet, run {_name_more(row)}." if row else ""
        return "\n".join([why, first, f"  {sentence}", quiet or _GOES_ON])
    if mark is Mark.GOOD:
        why = "Inconclusive: the steps lead to this one, and it is not worse than what is before it."
        fix = "A step was wrong, or many small changes add up. Run again once the machine is quiet."
        return "\n".join([why, first, f"  {sentence}", fix])
    return f"{first}\n  {name_metric(metric)}: {sentence}"


def render_failure(name: str, run: Run, mark: Mark) -> str:
    first = f"first bad: {clean_line(name)}"
    if mark is Mark.BAD:
        return f"{first}\n  {clean_line(describe_whole(run.failures[0]))}; it does not fail before it"
    why = "Inconclusive: the steps lead to this one, and beside the one before it, it did not fail alike."
    return (
        f"{why}\n{first}\nRun again once the machine is quiet: what fails now and then has no first commit."
    )
