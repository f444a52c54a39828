"""``selftest``: plant known faults, judge them like any change, and count which ones were caught."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from gate.cli.attempts import (
    Stand,
    Subject,
    Tried,
    is_reference,
    list_base_trials,
    try_in_pairs,
    try_once,
)
from gate.cli.place import note_config, place_lab
from gate.cli.setup import Request, load_request
from gate.codec import save_selftest
from gate.decide.selftest import score_faults
from gate.errors import ExitCode, UsageError
from gate.faults.catalog import NOTHING, Fault, Method, choose_faults, list_faults
from gate.faults.dose import is_fitting
from gate.lab.events import Noted
from gate.lab.pairs import BASE
from gate.lab.provenance import load_provenance
from gate.lab.runner import open_lab
from gate.lab.side_by_side import open_duel
from gate.policies import load_policy
from gate.records import Case
from gate.report.progress import show_progress
from gate.report.selftest import describe_attempt, describe_fault, render_selftest
from gate.selftest import Attempt, Result, SelftestReport

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

    What must be caught and was not is exit 10, a fault that there was no time for exit 12.
    """
    request = load_request(options)
    config, agenda = request.config, _make_agenda(options, request)
    path = config.out / SELFTEST_FILE
    with show_progress(quiet=options.quiet) as observe, open_lab(*place_lab(config), observe) as lab:
        note_config(config, options, observe)
        duel = open_duel(lab, replace(lab.bench.arm, name=BASE))
        stand = Stand(
            duel=duel,
            policy=load_policy(config),
            out=config.out / "selftest",
            limit_s=agenda.limit_s / ATTEMPTS_IN_TIME,
            provenance=load_provenance(config.directory),
        )
        report = try_faults(stand, agenda, path)
    print(render_selftest(report))
    print(f"Wrote {path}.")
    if any(score.complaint for score in report.scores):
        return ExitCode.REGRESSION
    if left := count_left(agenda, report):
        many = f"{left} fault was" if left == 1 else f"{left} faults were"
        print(f"exit {int(ExitCode.INCOMPLETE)}: {many} not tried for want of time; raise --minutes.")
        return ExitCode.INCOMPLETE
    return ExitCode.PASS


def count_left(agenda: Agenda, report: SelftestReport) -> int:
    """Count the faults that were not tried though a case could carry them."""
    tried = {(one.kind, one.size) for one in report.attempts}
    left = [fault for fault in agenda.faults if (fault.kind, fault.size) not in tried]
    return sum(any(is_fitting(fault, case) for case in agenda.cases) for fault in left)


def choose_cases(cases: Sequence[Case], *, named: bool) -> tuple[Case, ...]:
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
            is_due = fault.method is Method.PAIRS and (number > 1 or fault != NOTHING)
            if is_due:  # nothing was tried already, for the base's trials
                yield fault, agenda.cases[(number - 1) % len(agenda.cases)], number


def _make_agenda(options: Namespace, request: Request) -> Agenda:
    kind = request.config.device.partition(":")[0]
    faults = list_faults(kind, quick=options.quick)
    return Agenda(
        faults=choose_faults(faults, options.faults) if options.faults else faults,
        cases=choose_cases(request.cases, named=bool(options.select)),
        repeats=1 if options.quick and options.repeats is None else options.repeats,
        limit_s=60 * options.minutes,
    )


def try_faults(stand: Stand, agenda: Agenda, path: Path) -> SelftestReport:
    """Try one fault after the other; the report is saved after each.

    Raises as :func:`gate.cli.attempts.try_in_pairs`.
    """
    begun, attempts = time.monotonic(), []
    for attempt in _attempt_faults(stand, agenda):
        attempts.append(attempt)
        stand.duel.lab.observe(Noted(sentence=describe_attempt(attempt)))
        report = _make_report(stand, agenda, attempts, time.monotonic() - begun)
        save_selftest(report, path)
    return report


def _attempt_faults(stand: Stand, agenda: Agenda) -> Iterator[Attempt]:
    """Attempt one fault after the other; what began in time is finished."""
    begun, subjects = time.monotonic(), {}
    for case in agenda.cases:
        tried = _try_nothing(stand, case)
        subjects[case.id] = Subject(case=case, base=list_base_trials(tried.run, everything=True))
        yield tried.attempt
    for fault, case, number in schedule_faults(agenda):
        if time.monotonic() - begun > agenda.limit_s:
            return
        subject = subjects[case.id]
        if fault.method is Method.ONCE:
            yield try_once(stand, fault, subject).attempt
            continue
        tried = try_in_pairs(stand, fault, subject, number)
        if is_reference(fault):
            subjects[case.id] = replace(subject, latest=list_base_trials(tried.run, everything=False))
        yield tried.attempt


def _try_nothing(stand: Stand, case: Case) -> Tried:
    """Hold a case against itself.

    Raises:
        UsageError: It cannot be measured even without a fault.
    """
    tried = try_in_pairs(stand, NOTHING, Subject(case=case, base=()), 1)
    if tried.attempt.result is Result.BROKEN:
        raise UsageError(
            f"{case.id} cannot be measured: {tried.attempt.sentence}",
            "Fix it, or select another case with --select.",
        )
    return tried


def _make_report(stand: Stand, agenda: Agenda, attempts: Sequence[Attempt], wall_s: float) -> SelftestReport:
    lab, tried = stand.duel.lab, {(one.kind, one.size) for one in attempts}
    untried = (fault for fault in agenda.faults if (fault.kind, fault.size) not in tried)
    return SelftestReport(
        environment=lab.environment,
        provenance=stand.provenance,
        case_ids=tuple(case.id for case in agenda.cases),
        attempts=tuple(attempts),
        scores=score_faults(agenda.faults, attempts),
        untried=tuple(describe_fault(fault.kind, fault.size) for fault in untried),
        wall_s=wall_s,
    )
