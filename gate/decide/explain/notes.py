"""What a reader must know to trust a verdict no further than it goes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from statistics import median

from gate.decide.conclude import accept
from gate.decide.conclude.coverage import classify_unjudged, is_lack_accepted, is_unconfirmed, list_unaccepted
from gate.decide.evidence.compiles import find_unchanged_code
from gate.decide.evidence.disturbed import note_count
from gate.decide.evidence.gather import Evidence
from gate.decide.explain.defaults import note_defaults
from gate.decide.judge.drift import get_limit
from gate.decide.judge.machine import name_shifts
from gate.decide.judge.screening import Screening
from gate.devices import TARGET_KIND
from gate.fingerprint import compares_stacks, describe_difference
from gate.metrics import SPECS, Family
from gate.records.cases import Case, Metric, Policy, collect_columns, group_by
from gate.records.codes import Code
from gate.records.facts import Fact, list_distinct, name_words
from gate.records.run import BASE_ARM, Baseline, Environment, Run
from gate.records.verdict import Comparison, MachineShift, Reason, Status, Tally

# Machines age: after this many days a baseline is mentioned.
OLD_BASELINE_DAYS = 30
# So many comparisons are named.
_MAX_NAMED = 3
_MAX_WARNINGS = 5  # more are in run.json
_SLOW_LANE = 0.2  # more than the others' fixed test programs take; cards of one model differ by 8 %
_OTHER_BASELINES = (Code.OTHER_MACHINES, Code.OTHER_SPEED, Code.OTHER_STACK)
_UNJUDGED = {
    Reason.NO_BASELINE: Code.NO_BASELINE,
    Reason.STALE_DEFINITION: Code.REDEFINED,
    Reason.MEASURED_OTHERWISE: Code.MEASURED_BEFORE,
    Reason.NOT_MEASURED: Code.NOT_RECORDED,
}
_UNJUDGED_IN_PAIRS = {
    Reason.NO_BASELINE: Code.BASE_LACKS_CASES,
    Reason.UNPAIRED: Code.BASE_NOT_MEASURED,
    Reason.STALE_DEFINITION: Code.BASE_DEFINES_CASES_OTHERWISE,
    Reason.NOT_MEASURED: Code.BASE_LACKS_METRICS,
}


def list_notes(
    run: Run,
    comparisons: Sequence[Comparison],
    used: Sequence[Baseline],
    policy: Policy,
    *,
    in_pairs: bool = False,
) -> tuple[Fact, ...]:
    """What limits how far the verdict can be trusted.

    ``used`` are the stored baselines that were compared with; none counts where all is ``in_pairs``.
    """
    alone = {row.case_id for row in comparisons if is_unconfirmed(row) and not in_pairs}
    lost = (failure.case_id for failure in run.failures if failure.arm == BASE_ARM)
    return (
        *([] if run.finished else [Fact(code=Code.STOPPED)]),
        *note_cases(Code.BASE_CASES_FAILED, lost),
        *_note_unjudged(comparisons, _UNJUDGED_IN_PAIRS if in_pairs else _UNJUDGED),
        *([Fact(code=Code.STORED_ONLY, numbers={"cases": len(alone)})] if alone else []),
        *_note_lack(comparisons, policy),
        *_note_expired(comparisons, policy),
        *_note_exceeded(comparisons, policy),
        *accept.note_elsewhere(policy),
        *_note_limits(run, comparisons),
        *([] if in_pairs else _note_age(used, policy)),
    )


def list_notes_of_run(run: Run, *, in_pairs: bool) -> tuple[Fact, ...]:
    return (
        *note_defaults(run),
        *note_target(run.environment.device_kind == TARGET_KIND),
        *([Fact(code=Code.COUNTS_ONLY)] if run.counts_only else []),
        *(note_unchanged_code(run) if in_pairs else ()),
    )


def list_notes_of_rows(run: Run, screening: Screening, comparisons: Sequence[Comparison]) -> tuple[Fact, ...]:
    # Unknown in a shard: the base also has the cases of the other shards.
    planned = run.base.cases if run.base and not run.shard else ()
    return (
        *note_acquitted(screening.base.acquitted),
        *note_unchanged_speedup(comparisons),
        *note_cases(Code.UNCHANGED_SOURCES, screening.base.same),
        *note_gone((case.id for case in planned), run.cases),
        *note_difference(screening.evidence, run.environment),
        *note_machine(screening.machine.since_recorded, judged=any(row.is_judged for row in comparisons)),
    )


def note_target(is_target: bool) -> tuple[Fact, ...]:
    return (Fact(code=Code.NO_DEVICE),) if is_target else ()


def note_unchanged_code(run: Run) -> tuple[Fact, ...]:
    if run.environment.device_kind != TARGET_KIND or not run.finished or compares_stacks(run):
        return ()
    same = find_unchanged_code(run)
    others = tuple(case.id for case in run.cases if case.id not in same)
    code = Code.CODE_DIFFERS if others else Code.CODE_IS_THE_BASES
    return (Fact(code=code, numbers={"same": len(same), "cases": len(run.cases)}, cases=others),)


def note_difference(evidence: Iterable[Evidence], environment: Environment) -> tuple[Fact, ...]:
    nearest = next(
        (case.stored[0] for case in evidence if case.stored and not case.stored[0].same_host), None
    )
    lines = describe_difference(nearest.baseline.environment, environment) if nearest else ()
    return (Fact(code=Code.NEAREST_DIFFERS, names={"differences": lines}),) if lines else ()


def note_machine(machine: MachineShift, judged: bool) -> tuple[Fact, ...]:
    numbers = name_shifts(machine)
    return (Fact(code=Code.MACHINE_CHANGED, numbers=numbers),) if judged and numbers else ()


def _note_expired(comparisons: Sequence[Comparison], policy: Policy) -> list[Fact]:
    return [
        Fact(
            code=Code.ACCEPTANCE_EXPIRED,
            metrics=tuple(filter(None, [entry.metric])),
            names=name_words(pattern=entry.case, expires=entry.expires, reason=entry.reason.rstrip(".")),
        )
        for entry in policy.acceptances
        if not accept.is_in_force(entry, policy)
        and any(accept.fits_row(entry, row, policy) for row in comparisons)
    ]


def _is_open_by_baseline(row: Comparison) -> bool:
    """Pairs convicted it, and its change from stored exceeds an acceptance."""
    return row.status is Status.INCONCLUSIVE and row.found is Reason.BEYOND_BAR and row.pairs > 0


def _note_exceeded(comparisons: Sequence[Comparison], policy: Policy) -> list[Fact]:
    notes = []
    worse = [
        row
        for row in comparisons
        if row.change and (row.status is Status.REGRESSED or _is_open_by_baseline(row))
    ]
    in_force = [entry for entry in policy.acceptances if accept.is_in_force(entry, policy)]
    for entry in in_force:
        for row in (row for row in worse if accept.fits_row(entry, row, policy)):
            since = accept.measure_since_stored(row)
            is_stored = accept.measure_worsening(row) <= entry.allowance < since
            note = Fact(
                code=Code.ACCEPTANCE_EXCEEDED,
                numbers={"allowance": entry.allowance, **({"stored": since} if is_stored else {})},
                cases=(row.case_id,),
                metrics=(row.metric,),
                names=name_words(author=entry.author, expires=entry.expires),
            )
            notes.append(note)
    return notes


def _note_lack(comparisons: Sequence[Comparison], policy: Policy) -> list[Fact]:
    accepted = [entry for entry in policy.acceptances if entry.metric is None]
    if not accepted or not any(row.is_incomparable for row in comparisons):
        return []
    in_force = [entry for entry in accepted if accept.is_in_force(entry, policy)]
    if is_lack_accepted(comparisons, policy):
        first = min(in_force, key=lambda entry: entry.expires)  # all of them must still count
        return [Fact(code=Code.LACK_ACCEPTED, names=accept.name_terms(first))]
    if not in_force:
        return [Fact(code=Code.LACK_EXPIRED, names=accept.name_terms(accepted[0]))]
    return [Fact(code=Code.LACK_UNACCEPTED, cases=list_unaccepted(comparisons, policy))]


def _note_unjudged(comparisons: Sequence[Comparison], codes: Mapping[Reason, Code]) -> list[Fact]:
    unjudged = [row for row in comparisons if row.is_incomparable]
    notes = []
    for code in (*codes.values(), *_OTHER_BASELINES):
        rows = [row for row in unjudged if (classify_unjudged(row) or codes.get(row.reason)) is code]
        metrics_found = {row.metric for row in rows}
        metrics = tuple(metric for metric in SPECS if metric in metrics_found)
        if rows:
            cases = len({row.case_id for row in rows})
            notes.append(Fact(code=code, numbers={"cases": cases}, metrics=metrics))
    return notes


def _note_limits(run: Run, comparisons: Sequence[Comparison]) -> list[Fact]:
    cases, notes = {case.id: case for case in run.cases}, []
    for row in comparisons:
        if SPECS[row.metric].family is not Family.LOG2 or row.status is Status.REGRESSED or not row.candidate:
            continue
        drift, limit = row.candidate.centre, get_limit(cases[row.case_id], row.metric)
        if drift > limit:
            numbers = {"drift": drift, "limit": limit, **({"in_pairs": 1} if row.pairs else {})}
            note = Fact(code=Code.DRIFT_ABOVE, numbers=numbers, cases=(row.case_id,), metrics=(row.metric,))
            notes.append(note)
    return notes


def _note_age(used: Sequence[Baseline], policy: Policy) -> list[Fact]:
    today = parse_day(policy.today)
    days = [parse_day(baseline.provenance.created) for baseline in used]
    ages = [(today - day).days for day in days if today and day]
    old = [age for age in ages if age > OLD_BASELINE_DAYS]
    if not old:
        return []
    numbers = {"baselines": len(old), "days": OLD_BASELINE_DAYS, "oldest": max(old)}
    return [Fact(code=Code.BASELINES_OLD, numbers=numbers)]


def parse_day(text: str) -> date | None:
    """``None`` where it is no ISO 8601 time."""
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def note_gone(before: Iterable[str], planned: Iterable[Case]) -> tuple[Fact, ...]:
    """A reader of a PASS may think that it covers them."""
    planned_ids = {case.id for case in planned}
    return note_cases(Code.CASES_GONE, (case_id for case_id in before if case_id not in planned_ids))


def note_shard(run: Run) -> tuple[Fact, ...]:
    """A reader of a PASS may think that it covers all cases."""
    if run.shard is None:
        return ()
    numbers = {"left": run.shard.cases - len(run.cases), "cases": run.shard.cases}
    return (Fact(code=Code.ONE_SHARD, numbers=numbers, names=name_words(shard=str(run.shard))),)


def note_acquitted(convicted: Sequence[Comparison]) -> tuple[Fact, ...]:
    if not convicted:
        return ()
    named = convicted[:_MAX_NAMED]
    return (
        Fact(
            code=Code.CLEARED,
            numbers={"comparisons": len(convicted)},
            cases=tuple(row.case_id for row in named),
            metrics=tuple(row.metric for row in named),
        ),
    )


def note_unchanged_speedup(comparisons: Iterable[Comparison]) -> tuple[Fact, ...]:
    """Latencies that the ratio cleared may hide that eager and compiled are slower together."""
    latencies = (row for row in comparisons if row.metric is Metric.COMPILED_LATENCY)
    rows = [row for row in latencies if row.reason is Reason.SAME_WORK]
    if not rows:
        return ()
    hidden = max(max(row.change.detectable, row.change.high) for row in rows if row.change)
    numbers = {"cases": len(rows), "hidden": hidden}
    return (Fact(code=Code.UNCHANGED_SPEEDUP, numbers=numbers, cases=tuple(row.case_id for row in rows)),)


def note_cases(code: Code, case_ids: Iterable[str]) -> tuple[Fact, ...]:
    cases = tuple(dict.fromkeys(case_ids))
    return (Fact(code=code, numbers={"cases": len(cases)}, cases=cases),) if cases else ()


def note_tally(tally: Tally) -> tuple[Fact, ...]:
    worse = {"comparisons": tally.cleared}
    return (
        *([] if tally.finished else [Fact(code=Code.STOPPED)]),
        *([Fact(code=Code.CLEARED, numbers=worse)] if tally.cleared else []),
        *note_count(Code.TRIALS_DISTURBED, tally.disturbed_trials, tally.trials),
        *note_count(Code.PAIRS_DISTURBED, tally.disturbed_pairs, tally.pairs),
    )


def note_lanes(run: Run) -> tuple[Fact, ...]:
    by_place = group_by((trial for trial in run.trials if trial.place), lambda trial: trial.place)
    speeds = {
        name: {
            program: median(values)
            for program, values in collect_columns(trial.conditions.canaries_s for trial in trials).items()
        }
        for name, trials in by_place.items()
        if name in run.places
    }
    slow = []
    for name, canaries_s in speeds.items():
        columns = collect_columns(usual_s for place, usual_s in speeds.items() if place != name)
        usual = {program: median(values) for program, values in columns.items()}
        ratios = [seconds / usual[program] for program, seconds in canaries_s.items() if usual.get(program)]
        if ratios and median(ratios) > 1 + _SLOW_LANE:
            names = name_words(lane=run.places[name].title)
            slow.append(Fact(code=Code.LANE_SLOW, numbers={"slower": median(ratios) - 1}, names=names))
    return (*run.lanes, *slow)


def note_warnings(run: Run) -> tuple[Fact, ...]:
    """The most frequent first, with the cases that they came from.

    Before them: what failed before the run was continued, and did not fail again.
    """
    warned = [(warning, trial.case_id) for trial in run.trials for warning in trial.warnings]
    notes = [
        replace(warning, cases=tuple(dict.fromkeys(case_id for fact, case_id in warned if fact == warning)))
        for warning in list_distinct(warning for warning, _ in warned)
    ]
    widest = sorted(notes, key=lambda note: len(note.cases), reverse=True)
    more = len(widest) - _MAX_WARNINGS
    failed = {failure.case_id for failure in run.failures}
    return (
        *list_distinct(
            Fact(
                code=Code.FAILED_BEFORE,
                cases=(failure.case_id,),
                names=name_words(kind=failure.kind.value, stage=failure.stage),
            )
            for failure in run.retried
            if failure.case_id not in failed
        ),
        *widest[:_MAX_WARNINGS],
        *([Fact(code=Code.MORE_WARNINGS, numbers={"warnings": more})] if more > 0 else []),
    )


def note_idle(
    policy: Policy, registry: Iterable[Case], baselines: Iterable[Baseline] = ()
) -> tuple[Fact, ...]:
    """Acceptances and baselines that match no case."""
    ids = [case.id for case in registry]
    notes = [
        Fact(
            code=Code.UNUSED_ACCEPTANCE,
            metrics=(acceptance.metric,),
            names=name_words(pattern=acceptance.case),
        )
        for acceptance in policy.acceptances
        if acceptance.metric and not any(policy.fits(acceptance.case, name) for name in ids)
    ]
    if gone := tuple(sorted({baseline.case_id for baseline in baselines} - set(ids))):
        notes.append(Fact(code=Code.BASELINES_IDLE, numbers={"cases": len(gone)}, cases=gone))
    return tuple(notes)
