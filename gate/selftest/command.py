"""``selftest``: plant known faults, judge them like any change, and count which ones were caught."""

import math
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gate.check.procedure import PairLimit, PairMeasurer, make_need, settle_pairs
from gate.check.schedule import compute_trial_s
from gate.cli.lanes import note_config, place_lab
from gate.cli.setup import RUN_FILE, Project, load_project
from gate.decide.evidence.values import collect_values
from gate.decide.judge.compare import get_threshold
from gate.decide.side_by_side import judge_pairs, list_unsettled
from gate.decide.suspects import Suspect
from gate.errors import ExitCode, UsageError
from gate.files.codec import RUN, SELFTEST
from gate.lab.arms.provenance import load_provenance
from gate.lab.trials.bench import Bench
from gate.lab.trials.opening import Lab, open_lab
from gate.lab.trials.runs import describe_base, make_measurer, make_run
from gate.lab.trials.trials import run_trial
from gate.lab.workers.worker import make_directory
from gate.metrics import list_watching
from gate.records.cases import Case, Policy
from gate.records.events import Noted
from gate.records.facts import make_text
from gate.records.run import BASE_ARM, Pairing, Provenance, Run, Trial
from gate.records.studies import Attempt, Fault, FaultKind, SelftestReport
from gate.report.progress import show_progress
from gate.report.studies import PASSED, describe_attempt, describe_fault, describe_result, render_selftest
from gate.report.words.facts import describe_failure
from gate.selftest.catalog import (
    NOTHING,
    Agenda,
    FaultSize,
    Opinion,
    choose_attempted,
    choose_faults,
    choose_size,
    find_scale,
    is_fitting,
    judge_fault,
    list_faults,
    measure_size,
    plant_case,
    schedule_faults,
    score_faults,
)
from gate.store.policy import load_policy

# The decision asks for a second look at a counter, at memory and at drift before it calls them red.
TRIALS_ONCE = 2
# Memory may flicker between two values: of one case in four pairs that looks like a change in 1 of 256.
MEMORY_TRIALS = 4
# One pair can clear but not convict: whatever the time, an attempt gets the pairs of so many looks.
FREE_LOOKS = 2
# What is exact does not get more so by sampling: as few timed blocks as the schedule allows.
SUPER_BLOCKS_ONCE = 3
MIN_HANG_S = 5.0  # the least limit of a case that hangs: by the clock it ends after four times as long


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptContext:
    """Where faults are tried: both arms are the same tree; what was measured is kept below ``out``.

    Both also carry the wrapping that faults come in, so that they differ by the fault alone.
    After ``limit_s`` seconds an attempt gets no further pairs, but it gets those of its first looks.
    """

    lab: Lab
    policy: Policy
    out: Path
    limit_s: float
    provenance: Provenance


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptSubject:
    """A case, trials of the base that measured everything, and its latest ones, which sizes come from."""

    case: Case
    base: tuple[Trial, ...]
    latest: tuple[Trial, ...] = ()


def try_in_pairs(
    context: AttemptContext, fault: Fault, subject: AttemptSubject, number: int
) -> tuple[Attempt, AttemptSubject]:
    """Plant a fault and measure pairs, look by look, until the decision is made.

    Returns the subject with the base's latest trials, too; with a fault in the base those are no measure.
    Raises as :meth:`gate.check.measurer.Measurer.add_pairs`.
    """
    begun, size = time.monotonic(), _choose_size(context, fault, subject)
    planted, bare = plant_case(subject.case, fault, size), plant_case(subject.case, NOTHING, FaultSize())
    base, head = (planted, bare) if fault.is_in_base else (bare, planted)
    suspects = _list_suspects(fault, subject.case)
    blank = _make_run(context, base, head)
    save = partial(RUN.save, path=context.out / f"{fault.name}-{number}" / RUN_FILE)
    measurer = make_measurer(context.lab, save)
    first = _take_first_pairs(measurer, blank, context.policy, suspects)
    limit = PairLimit(end_s=blank.wall_s + context.limit_s)
    run = settle_pairs(measurer, first, context.policy, limit, suspects)
    save(run)
    opinion = judge_fault(fault, judge_pairs(run, context.policy, suspects), run.failures)
    trials = tuple(trial for trial in run.trials if trial.arm == BASE_ARM)
    size = _measure_size(context, fault, size, trials)
    attempt = _make_attempt(fault, subject.case, size, opinion, begun)
    latest = () if fault.is_in_base else trials
    return attempt, replace(subject, latest=latest or subject.latest)


def try_once(context: AttemptContext, fault: Fault, subject: AttemptSubject) -> Attempt:
    """Plant a fault that leaves nothing to chance and compare a trial or two with the base's.

    Raises as :func:`gate.lab.trials.trials.run_trial`.
    """
    begun, size = time.monotonic(), _choose_size(context, fault, subject)
    head = plant_case(subject.case, fault, size)
    bench = _shorten_limits(context.lab.bench, fault, subject)
    run = _make_run(context, plant_case(subject.case, NOTHING, FaultSize()), head)
    for index in range(1, count_trials(fault) + 1):
        came = run_trial(bench, head, index)
        run = replace(run, trials=(*run.trials, *came.trials), failures=came.failures)
        if came.failures:
            break
    run = _add_base_trials(run, subject, count_trials(fault))
    suspects = _list_suspects(fault, subject.case) if fault.kind is FaultKind.MEMORY else None
    opinion = judge_fault(fault, judge_pairs(run, context.policy, suspects), run.failures)
    return _make_attempt(fault, subject.case, size, opinion, begun)


def count_trials(fault: Fault) -> int:
    """How many trials of each arm a fault takes that leaves nothing to chance."""
    return MEMORY_TRIALS if fault.kind is FaultKind.MEMORY else TRIALS_ONCE


def measure_base(context: AttemptContext, case: Case, count: int = TRIALS_ONCE) -> tuple[Trial, ...]:
    """Measure so many of the base's trials, which faults that leave nothing to chance are compared with.

    Raises:
        UsageError: The case cannot be measured even without a fault.
    """
    bench, bare = _shorten_sampling(context.lab.base), plant_case(case, NOTHING, FaultSize())
    make_directory(bench.settings.out)
    trials: list[Trial] = []
    for index in range(1, count + 1):
        came = run_trial(bench, bare, index)
        if came.failures:
            reason = describe_failure(came.failures[0])
            fix = "Fix it, or select another case with --select."
            raise UsageError(f"{case.id} cannot be measured: {reason}", fix)
        trials += came.trials
    return tuple(trials)


def estimate_attempt_s(fault: Fault, subject: AttemptSubject) -> float:
    """Estimate what an attempt takes at least, by the base's trials."""
    usual_s = max(map(compute_trial_s, subject.base), default=0.0)
    arms = 1 if fault.is_certain else 2
    return arms * count_trials(fault) * usual_s


def _choose_size(context: AttemptContext, fault: Fault, subject: AttemptSubject) -> FaultSize:
    metric = find_scale(fault)
    if metric is None:
        return FaultSize()
    values = collect_values(subject.latest).get(metric) or collect_values(subject.base)[metric]
    return choose_size(fault, values, get_threshold(context.policy, subject.case.id, metric, in_pairs=True))


def _measure_size(context: AttemptContext, fault: Fault, size: FaultSize, base: Sequence[Trial]) -> FaultSize:
    """Measure the size against what the base did in the same pairs."""
    metric, values = find_scale(fault), collect_values(base)
    if metric is None or metric not in values:
        return size
    threshold = get_threshold(context.policy, base[0].case_id, metric, in_pairs=True)
    original = [value - size.amount for value in values[metric]] if fault.is_in_base else values[metric]
    return measure_size(size.amount, original, threshold)


def _list_suspects(fault: Fault, case: Case) -> Sequence[Suspect] | None:
    """What the pairs are to settle: the metrics that the fault is about, or for none of it everything."""
    metric = find_scale(fault)
    return [Suspect(case_id=case.id, metrics=list_watching(metric), thorough=True)] if metric else None


def _take_first_pairs(
    measurer: PairMeasurer, run: Run, policy: Policy, suspects: Sequence[Suspect] | None
) -> Run:
    """Measure the pairs of the first looks, however long they take: with fewer nothing can be caught.

    Where nothing is planted everything is measured twice.
    """
    for look in range(FREE_LOOKS):
        needs = [make_need(run, one) for one in list_unsettled(run, policy, suspects)]
        if not look and suspects is None:
            needs = [replace(need, more=max(need.more, TRIALS_ONCE)) for need in needs]
        run = measurer.add_pairs(run, needs, math.inf)
    return run


def _make_run(context: AttemptContext, base: Case, head: Case) -> Run:
    run = make_run(context.lab, (head,), head.id, 0)
    return replace(run, base=describe_base(context.lab, "the same tree", run.provenance, (base,)))


def _shorten_limits(bench: Bench, fault: Fault, subject: AttemptSubject) -> Bench:
    """A bench that spends no time on timing, and little on waiting for the end of a hang."""
    bench = _shorten_sampling(bench)
    settings = bench.settings
    if fault.kind is FaultKind.HANG:
        usual_s = max(map(compute_trial_s, subject.base), default=0.0)
        limit_s = min(settings.trial_timeout_s, max(MIN_HANG_S, usual_s))
        settings = replace(settings, trial_timeout_s=limit_s)
    return replace(bench, settings=settings)


def _shorten_sampling(bench: Bench) -> Bench:
    settings = bench.settings
    sampling = replace(settings.sampling, super_blocks=SUPER_BLOCKS_ONCE)
    return replace(bench, settings=replace(settings, sampling=sampling, out=settings.out / "selftest"))


def _add_base_trials(run: Run, subject: AttemptSubject, count: int) -> Run:
    """Put as many of the base's trials beside the head's; they ran one after the other."""
    base = [replace(trial, index=index) for index, trial in enumerate(subject.base[:count], start=1)]
    trials = (replace(trial, pairing=Pairing.TURNS) for trial in (*base, *run.trials))
    return replace(run, trials=tuple(trials), finished=True)


def _make_attempt(fault: Fault, case: Case, size: FaultSize, opinion: Opinion, begun: float) -> Attempt:
    return Attempt(
        kind=fault.kind,
        size=fault.size,
        case_id=case.id,
        result=opinion.result,
        planted=size.planted,
        is_asked=size.is_asked,
        comparison=opinion.row,
        fact=opinion.fact,
        wall_s=time.monotonic() - begun,
    )


SELFTEST_FILE = "selftest.json"
# One undecided attempt must not eat the time of the others: it stops after this part of it.
ATTEMPTS_IN_TIME = 6


def run_selftest(options: Namespace) -> ExitCode:
    """Plant one fault after the other and report.

    What must be caught and was not is exit 10; a fault that there was no time for, or that stayed open, 12.
    """
    request = load_project(options)
    config, agenda = request.config, _make_agenda(options, request)
    path = config.out / SELFTEST_FILE
    with show_progress(quiet=options.quiet) as observe, open_lab(*place_lab(config), observe) as lab:
        note_config(config, options, observe)
        context = AttemptContext(
            lab=lab,
            policy=load_policy(config),
            out=config.out / "selftest",
            limit_s=agenda.limit_s / ATTEMPTS_IN_TIME,
            provenance=load_provenance(config.directory),
        )
        report = try_faults(context, agenda, path)
    print(f"{render_selftest(report)}\nWrote {path}.")
    if any(score.complaint for score in report.scores):
        return ExitCode.REGRESSION
    outcome, why = describe_result(report)
    if outcome == PASSED:
        return ExitCode.PASS
    print(f"exit {int(ExitCode.INCOMPLETE)}: {why}; raise --minutes or --repeats.")
    return ExitCode.INCOMPLETE


def _make_agenda(options: Namespace, request: Project) -> Agenda:
    kind = request.config.device.partition(":")[0]
    faults = list_faults(kind, quick=options.quick)
    cases = choose_attempted(request.cases, named=bool(options.select))
    faults = tuple(fault for fault in faults if any(is_fitting(fault, case) for case in cases))
    if options.faults:
        faults = choose_faults(faults, options.faults)
    return Agenda(
        faults=faults,
        cases=cases,
        repeats=1 if options.quick and options.repeats is None else options.repeats,
        limit_s=60 * options.minutes,
    )


def try_faults(context: AttemptContext, agenda: Agenda, path: Path) -> SelftestReport:
    """Try one fault after the other; the report is saved after each.

    Raises as :func:`measure_base` and :func:`try_in_pairs`.
    """
    begun = time.monotonic()
    attempts: list[Attempt] = []
    report = _make_report(context, agenda, attempts, 0.0)
    for attempt in _attempt_faults(context, agenda):
        attempts.append(attempt)
        context.lab.observe(Noted(fact=make_text(describe_attempt(attempt))))
        report = _make_report(context, agenda, attempts, time.monotonic() - begun)
        SELFTEST.save(report, path)
    SELFTEST.save(report, path)
    return report


def _attempt_faults(context: AttemptContext, agenda: Agenda) -> Iterator[Attempt]:
    """Attempt one fault after the other; what cannot end in time is not begun, what began is finished."""
    begun = time.monotonic()
    most = max(map(count_trials, agenda.faults), default=TRIALS_ONCE)
    subjects = {
        one.id: AttemptSubject(case=one, base=measure_base(context, one, most)) for one in agenda.cases
    }
    for fault, case, number in schedule_faults(agenda):
        subject = subjects[case.id]
        if time.monotonic() - begun + estimate_attempt_s(fault, subject) > agenda.limit_s:
            return
        if fault.is_certain:
            yield try_once(context, fault, subject)
            continue
        attempt, subjects[case.id] = try_in_pairs(context, fault, subject, number)
        yield attempt


def _make_report(
    context: AttemptContext, agenda: Agenda, attempts: Sequence[Attempt], wall_s: float
) -> SelftestReport:
    lab, tried = context.lab, {(one.kind, one.size) for one in attempts}
    untried = (fault for fault in agenda.faults if (fault.kind, fault.size) not in tried)
    return SelftestReport(
        environment=lab.environment,
        provenance=context.provenance,
        case_ids=tuple(case.id for case in agenda.cases),
        attempts=tuple(attempts),
        scores=score_faults(agenda.faults, attempts),
        untried=tuple(describe_fault(fault.kind, fault.size) for fault in untried),
        wall_s=wall_s,
    )
