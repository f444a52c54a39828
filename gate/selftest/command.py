"""``selftest``: plant known faults, judge them like any change, and count which ones were caught."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from gate.cli.lanes import note_config, place_lab
from gate.cli.output import report_study
from gate.cli.setup import Project, load_project
from gate.errors import ExitCode, UsageError
from gate.files.codec import SELFTEST
from gate.lab.host.provenance import load_provenance
from gate.lab.trials.opening import open_lab
from gate.records import Case, make_text
from gate.records.events import Noted
from gate.records.studies import Attempt, Fault, Method, SelftestReport
from gate.report.progress import show_progress
from gate.report.selftest import PASSED, describe_attempt, describe_fault, study_selftest
from gate.selftest.attempts import (
    AttemptContext,
    AttemptSubject,
    estimate_attempt_s,
    measure_base,
    try_in_pairs,
    try_once,
)
from gate.selftest.catalog import NOTHING, choose_faults, is_fitting, list_faults, score_faults
from gate.store.policy import load_policy

SELFTEST_FILE = "selftest.json"
# One undecided attempt must not eat the time of the others: it stops after this part of it.
ATTEMPTS_IN_TIME = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Agenda:
    """Which faults to try on which cases, how often those that take pairs, and for how long."""

    faults: tuple[Fault, ...]
    cases: tuple[Case, ...]
    repeats: int | None  # None: as often as time allows
    limit_s: float


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
    study = study_selftest(report)
    report_study(study, path)
    if any(score.complaint for score in report.scores):
        return ExitCode.REGRESSION
    if study.outcome == PASSED:
        return ExitCode.PASS
    print(f"exit {int(ExitCode.INCOMPLETE)}: {study.headline}; raise --minutes or --repeats.")
    return ExitCode.INCOMPLETE


def choose_attempted(cases: Sequence[Case], *, named: bool) -> tuple[Case, ...]:
    """Choose the cases that faults can be planted into: all that were named, else the cheapest.

    Raises:
        UsageError: There is none.
    """
    fitting = sorted((case for case in cases if is_fitting(NOTHING, case)), key=lambda case: case.expected_s)
    if not fitting:
        raise UsageError(
            "no selected case can carry a fault: it needs a factory and the default mode",
            "Select another case with --select; `compile-gate models` lists them.",
        )
    return tuple(fitting if named else fitting[:1])


def schedule_faults(agenda: Agenda) -> Iterator[tuple[Fault, Case, int]]:
    """Yield what to try next, with the number of the round: first what needs no statistics.

    Where there are several cases they take turns.
    """
    once = [fault for fault in agenda.faults if fault.method is Method.ONCE]
    for turn, fault in enumerate(once):
        if fitting := [case for case in agenda.cases if is_fitting(fault, case)]:
            yield fault, fitting[turn % len(fitting)], 1
    for number in count(1) if agenda.repeats is None else range(1, agenda.repeats + 1):
        for fault in agenda.faults:
            if fault.method is Method.PAIRS:
                yield fault, agenda.cases[(number - 1) % len(agenda.cases)], number


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

    Raises as :func:`gate.selftest.attempts.measure_base` and :func:`gate.selftest.attempts.try_in_pairs`.
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
    subjects = {one.id: AttemptSubject(case=one, base=measure_base(context, one)) for one in agenda.cases}
    for fault, case, number in schedule_faults(agenda):
        subject = subjects[case.id]
        if time.monotonic() - begun + estimate_attempt_s(fault, subject) > agenda.limit_s:
            return
        if fault.method is Method.ONCE:
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
