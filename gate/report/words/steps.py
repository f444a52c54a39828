"""What to do next, in words, and the commands for it."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

from gate.devices import DEFAULT_DEVICE, KINDS, name_target
from gate.metrics import SPECS, Family
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Setback
from gate.records.verdict import Comparison, PairBase, Status, Verdict
from gate.report.words.facts import describe_disturbances
from gate.report.words.templates import COMMIT_CHARS, PHRASES, SENTENCES, describe_values, fill
from gate.units import format_noun, join_some

# So many cases, or else models, are spelled out: a command that is too long to read is not copied.
_MAX_CASES = 3
_MAX_MODELS = 10
# Options that a command to run next repeats, where the verdict's own command had them.
_CONFIG = ("--config", "--reference-models")
_OF_AB, _OF_CHECK = ("--baselines", "--out", "--minutes"), ("--baselines", "--out")
_FIXING = frozenset({Code.FIX, Code.ACCEPT})
_TEXTS = SENTENCES["steps"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NextStep:
    """``command`` is empty where it is not a command."""

    text: str
    command: str = ""


def describe_hidden(setbacks: Sequence[Setback]) -> str:
    listed = join_some([*map(describe_setback, setbacks)], comma="; ")
    return fill(PHRASES["refresh_hides"], setbacks=listed)


def describe_setback(setback: Setback) -> str:
    """``bert/x compiled_latency 12.1 ms -> 15.8 ms``."""
    values = describe_values(setback.metric, setback.old, setback.new)
    return f"{setback.case_id} {setback.metric} {values}"


def write_setting(verdict: Verdict, *more: str) -> str:
    """The device is named although gate.yml may name it as well: measuring another one answers nothing."""
    environment = verdict.environment
    target = name_target(environment.device_kind, environment.device_traits.get("capability", ""))
    device = ""
    if target:
        device = f"--target {target}"
    elif environment.device_kind in KINDS.keys() - {DEFAULT_DEVICE}:  # a file may hold anything
        device = f"--device {environment.device_kind}"
    return " ".join(filter(None, [_repeat(verdict, *_CONFIG), device, _repeat(verdict, *more)]))


def _repeat(verdict: Verdict, *names: str) -> str:
    given = [(name, verdict.options[name]) for name in names if name in verdict.options]
    return " ".join(f"{name} {shlex.quote(value)}" if value else name for name, value in given)


def _write_ab_setting(verdict: Verdict) -> str:
    """Twice the minutes, where they were up before all was settled."""
    spent = {note.code: note.numbers.get("minutes", 0) for note in verdict.notes}.get(Code.TIME_UP)
    if spent:
        verdict = replace(verdict, options={**verdict.options, "--minutes": f"{2 * spent:g}"})
    return write_setting(verdict, *_OF_AB)


def write_command(name: str, setting: str) -> str:
    return f"compile-gate {name}" + (f" {setting}" if setting else "")


def write_selected(name: str, case_ids: Iterable[str], setting: str = "", options: str = "") -> str:
    """Many cases are selected by their models."""
    names = list(dict.fromkeys(case_ids))
    if len(names) > _MAX_CASES:
        names = list(dict.fromkeys(name.partition("/")[0] for name in names))[:_MAX_MODELS]
    return f"{write_command(name, setting)} {options}--select {shlex.quote(','.join(names))}"


def write_ab(case_ids: Iterable[str], base: PairBase | None, setting: str = "") -> str:
    """Without ``base``: with where the branch began. Capitals are for the reader to fill in."""
    sides = [base.commit[:COMMIT_CHARS] or "BASE", base.head_commit[:COMMIT_CHARS]] if base else []
    if base and (base.other_stack or base.pythons):
        old, new, *_ = map(shlex.quote, (*base.pythons, "OLD", "NEW"))
        code = [] if base.other_stack else sides  # two interpreters run one code
        sides = [*code, "--base-python", old, "--head-python", new]
    return write_selected("ab", case_ids, setting, "".join(f"{side} " for side in sides if side))


def write_again(
    case_ids: Iterable[str], comparisons: Iterable[Comparison], verdict: Verdict, *, fixed: bool = False
) -> str:
    """As ``comparisons`` of the cases were measured; once ``fixed``, head is the working tree."""
    names = list(case_ids)
    # What failed and has no counterpart in the base: a comparison with it would end without a result.
    new = {case_id for fact in verdict.next_steps if fact.code is Code.FIX_NEW for case_id in fact.cases}
    if new.issuperset(names):
        return write_selected("measure", names, write_setting(verdict, "--out"))
    # Side by side as they were; where nothing is stored, that is all there was.
    is_paired = any(comparison.pairs for comparison in comparisons) or not verdict.uses_baselines
    if is_paired and verdict.base:
        base = replace(verdict.base, head_commit="") if fixed else verdict.base
        return write_ab(names, base, _write_ab_setting(verdict))
    return write_selected("check", names, write_setting(verdict, *_OF_CHECK))


def write_tlparse(trace: str, folder: str = "") -> str:
    path = str(PurePosixPath(folder) / trace)
    return f"tlparse {shlex.quote(path)} -o {shlex.quote(path.removesuffix('.log'))}"


def write_steps(verdict: Verdict) -> tuple[NextStep, ...]:
    """The most pressing first; one step is about all that got worse."""
    steps: list[NextStep] = []
    worse = [row for row in verdict.comparisons if row.decides and row.status is Status.REGRESSED]
    again = write_again(dict.fromkeys(row.case_id for row in worse), worse, verdict, fixed=True)
    fix = NextStep(text=PHRASES["fix_worse"], command=again)
    for fact in verdict.next_steps:
        if fact.code in _FIXING and fix not in steps:
            steps.append(fix)
        if fact.code is not Code.FIX:
            steps.append(write_step(fact, verdict))
    return tuple(steps)


def write_step(fact: Fact, verdict: Verdict) -> NextStep:
    has_failed = any(failure.case_id in fact.cases for failure in verdict.failures)
    text = fill(
        _TEXTS[fact.code],
        fact,
        also=_describe_undecided(fact, verdict),
        compare=_describe_base(verdict),
        disturbances=describe_disturbances(fact),
        look=PHRASES["read_logs" if has_failed else "see_why"],
    )
    write = _COMMANDS.get(fact.code)
    return NextStep(text=text, command=write(fact, verdict) if write else "")


def _describe_undecided(fact: Fact, verdict: Verdict) -> str:
    """Pairs stop at the first metric that regressed."""
    rows = (row for row in verdict.comparisons if row.decides and row.status is Status.INCONCLUSIVE)
    count = sum(row.case_id in fact.cases for row in rows)
    metrics = format_noun(count, "more metric")
    return fill(PHRASES["may_follow"], metrics=metrics, are="is" if count == 1 else "are") if count else ""


def _describe_base(verdict: Verdict) -> str:
    """The merge base, unless that is what was measured, or is not known."""
    notes = {fact.code: fact for fact in verdict.notes}
    if Code.NO_BASE in notes:
        return fill(PHRASES["compare_once_fixed"], notes[Code.NO_BASE]).rstrip()
    is_same = Code.NOTHING_DIFFERS in notes
    return fill(PHRASES["compare_with"], base="the commit before" if is_same else "the merge base")


def _list_rows(fact: Fact, verdict: Verdict) -> list[Comparison]:
    return [comparison for comparison in verdict.comparisons if comparison.case_id in fact.cases]


def _again(fact: Fact, verdict: Verdict) -> str:
    return write_again(fact.cases, _list_rows(fact, verdict), verdict, fixed=True)


def _check(fact: Fact, verdict: Verdict, options: str = "") -> str:
    return write_selected("check", fact.cases, write_setting(verdict, *_OF_CHECK)) + options


def _check_longer(fact: Fact, verdict: Verdict) -> str:
    """Twice the most trials of a case: the same number again showed nothing."""
    trials = (row.candidate.n for row in _list_rows(fact, verdict) if row.candidate)
    return _check(fact, verdict, f" --trials {2 * max(trials, default=1)}")


def _ab(fact: Fact, verdict: Verdict) -> str:
    codes = {note.code for note in verdict.notes}
    if Code.NO_BASE in codes:
        return ""
    before = "HEAD~1 " if Code.NOTHING_DIFFERS in codes else ""
    return write_selected("ab", fact.cases, _write_ab_setting(verdict), before)


def _ab_base(fact: Fact, verdict: Verdict) -> str:
    return write_ab(fact.cases, verdict.base, _write_ab_setting(verdict))


def _ab_anchor(fact: Fact, verdict: Verdict) -> str:
    return write_selected("ab", fact.cases, _write_ab_setting(verdict), "--anchor ")


def _refresh(_fact: Fact, verdict: Verdict) -> str:
    return write_command("baseline refresh", write_setting(verdict, *_OF_CHECK))


def _accept(fact: Fact, verdict: Verdict) -> str:
    case_id, metric, allowance = fact.cases[0], fact.metrics[0], fact.numbers["allowance"]
    family = SPECS[metric].family
    allowed = f"{allowance:.0f}" if family is Family.EXACT else f"{100 * allowance:.0f}%"
    if family is Family.LOG2:
        allowed = f"{allowance:.2f}"
    command = write_command("baseline accept", _repeat(verdict, *_CONFIG, "--baselines"))
    expires = fact.name("expires", "YYYY-MM-DD")
    return f"{command} '{case_id}' {metric} --allow {allowed} --reason '...' --expires {expires}"


_COMMANDS: Mapping[Code, Callable[[Fact, Verdict], str]] = {
    Code.FIX_FAILED: _again,
    Code.FIX_NEW: _again,
    Code.MEASURE_AGAIN: _check,
    Code.ACCEPT: _accept,
    Code.ACCEPT_TOO: _accept,
    Code.BE_SURE: _ab,
    Code.SETTLE: _ab,
    Code.SETTLE_BY_TRIALS: _check_longer,
    Code.SETTLE_WITH_PAIRS: _ab_base,
    Code.SETTLE_QUIETLY: _ab_base,
    Code.RECORD_MORE: lambda fact, verdict: f"{_refresh(fact, verdict)} --trials 5",
    Code.RECORD: _refresh,
    Code.RECORD_BETTER: _refresh,
    Code.COMPARE_WITH_BASE: partial(_check, options=" --base BASE"),
    Code.HOLD_AGAINST_ANCHOR: _ab_anchor,
}
