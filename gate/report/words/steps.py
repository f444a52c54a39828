"""What to do next, in words, and the commands for it."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from gate.devices import DEFAULT_DEVICE, KINDS, name_target
from gate.metrics import SPECS, Family
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import Comparison, PairBase, Status, Verdict
from gate.report.words.facts import describe_disturbances
from gate.report.words.templates import COMMIT_CHARS, SENTENCES, describe_values, fill
from gate.store.baselines import Setback
from gate.units import count_noun, join_some


@dataclass(frozen=True, kw_only=True, slots=True)
class NextStep:
    """One thing to do next; ``command`` is empty where it is not a command."""

    text: str
    command: str = ""


def describe_hidden(setbacks: Sequence[Setback]) -> str:
    """Describe what has no reason."""
    return f"the refresh would hide a regression: {join_some([*map(describe_setback, setbacks)], comma='; ')}"


def describe_setback(setback: Setback) -> str:
    """Describe one: ``bert/x compiled_latency 12.1 ms -> 15.8 ms``."""
    values = describe_values(setback.metric, setback.old, setback.new)
    return f"{setback.case_id} {setback.metric} {values}"


# So many cases, or else models, are spelled out: a command that is too long to read is not copied.
_MAX_CASES = 3
_MAX_MODELS = 10
# Options that a command to run next repeats, where the verdict's own command had them.
_CONFIG = ("--config", "--reference-models")
_OF_AB, _OF_CHECK = ("--out", "--minutes"), ("--baselines", "--out")


def write_setting(verdict: Verdict, *more: str) -> str:
    """Write the options by which a command measures what the verdict did: gate.yml, and a target or device.

    The device is named although gate.yml may name it as well: what measures another one answers nothing.
    ``more`` options are repeated too.
    """
    environment = verdict.environment
    target = name_target(environment.device_kind, environment.device_traits.get("capability", ""))
    device = ""
    if target:
        device = f"--target {target}"
    elif environment.device_kind in KINDS.keys() - {DEFAULT_DEVICE}:  # a file may say anything
        device = f"--device {environment.device_kind}"
    return " ".join(filter(None, [_repeat(verdict, *_CONFIG), device, _repeat(verdict, *more)]))


def _repeat(verdict: Verdict, *names: str) -> str:
    """Write the options of these names as the verdict's command had them."""
    given = [(name, verdict.options[name]) for name in names if name in verdict.options]
    return " ".join(f"{name} {shlex.quote(value)}" if value else name for name, value in given)


def write_command(name: str, setting: str) -> str:
    """Write a command that reads gate.yml; an empty ``setting`` is the default and needs no option."""
    return f"compile-gate {name}" + (f" {setting}" if setting else "")


def write_selected(name: str, case_ids: Iterable[str], setting: str = "", options: str = "") -> str:
    """Write a command about these cases: a few by their ids, more by their models, of many the first."""
    names = list(dict.fromkeys(case_ids))
    if len(names) > _MAX_CASES:
        names = list(dict.fromkeys(name.partition("/")[0] for name in names))[:_MAX_MODELS]
    return f"{write_command(name, setting)} {options}--select {shlex.quote(','.join(names))}"


def write_ab(case_ids: Iterable[str], base: PairBase | None, setting: str = "") -> str:
    """Write the command that runs these cases side by side with ``base``, or with where the branch began.

    Capitals are for the reader to fill in.
    """
    sides = [base.commit[:COMMIT_CHARS] or "BASE", base.head_commit[:COMMIT_CHARS]] if base else []
    if base and (base.other_stack or base.pythons):
        old, new, *_ = map(shlex.quote, (*base.pythons, "OLD", "NEW"))
        code = [] if base.other_stack else sides  # two interpreters run one code
        sides = [*code, "--base-python", old, "--head-python", new]
    return write_selected("ab", case_ids, setting, "".join(f"{side} " for side in sides if side))


def write_again(
    case_ids: Iterable[str], comparisons: Iterable[Comparison], verdict: Verdict, *, fixed: bool = False
) -> str:
    """Write the command that measures and judges cases again as ``comparisons`` of them were.

    Once they are ``fixed``, head is the working tree, whichever commit it was before.
    """
    names = list(case_ids)
    if _list_new(verdict).issuperset(names):
        return write_selected("measure", names, write_setting(verdict, "--out"))
    # Side by side as they were; where nothing is stored, that is all there was.
    is_paired = any(one.pairs for one in comparisons) or not verdict.uses_baselines
    if is_paired and verdict.base:
        base = replace(verdict.base, head_commit="") if fixed else verdict.base
        return write_ab(names, base, write_setting(verdict, *_OF_AB))
    return write_selected("check", names, write_setting(verdict, *_OF_CHECK))


def _list_new(verdict: Verdict) -> set[str]:
    """What failed and has no counterpart in the base: a comparison with it would end without a result."""
    return {name for fact in verdict.next_steps if fact.code is Code.FIX_NEW for name in fact.cases}


def write_tlparse(trace: str, folder: str = "") -> str:
    """Write the command that reads one of torch's traces, which lies below ``folder``."""
    path = str(PurePosixPath(folder) / trace)
    return f"tlparse {shlex.quote(path)} -o {shlex.quote(path.removesuffix('.log'))}"


_FIXING = frozenset({Code.FIX, Code.ACCEPT})


def write_steps(verdict: Verdict) -> tuple[NextStep, ...]:
    """Write all steps of a verdict, the most pressing first; one is about all that got worse."""
    steps: list[NextStep] = []
    worse = [one for one in verdict.comparisons if one.decides and one.status is Status.REGRESSED]
    again = write_again(dict.fromkeys(one.case_id for one in worse), worse, verdict, fixed=True)
    fix = NextStep(text="Fix what got worse and measure it again:", command=again)
    for fact in verdict.next_steps:
        if fact.code in _FIXING and fix not in steps:
            steps.append(fix)
        if fact.code is not Code.FIX:
            steps.append(write_step(fact, verdict))
    return tuple(steps)


def write_step(fact: Fact, verdict: Verdict) -> NextStep:
    """Write one step; its command names gate.yml and the base as the verdict does."""
    has_failed = any(one.case_id in fact.cases for one in verdict.failures)
    parts = {
        "also": _describe_undecided(fact, verdict),
        "beside": _describe_beside(verdict),
        "disturbances": describe_disturbances(fact),
        "look": "Read the log of each failed case" if has_failed else "See why not all was measured",
    }
    write = _COMMANDS.get(fact.code)
    return NextStep(
        text=fill(_TEXTS[fact.code], fact, **parts), command=write(fact, verdict) if write else ""
    )


def _describe_undecided(fact: Fact, verdict: Verdict) -> str:
    """What is open of the step's case: pairs stop at the first metric that regressed."""
    open_rows = (one for one in verdict.comparisons if one.decides and one.status is Status.INCONCLUSIVE)
    count = sum(one.case_id in fact.cases for one in open_rows)
    is_or_are = "is" if count == 1 else "are"
    return (
        f"{count_noun(count, 'more metric')} of it {is_or_are} inconclusive and may follow" if count else ""
    )


def _describe_beside(verdict: Verdict) -> str:
    """What to compare with: the merge base, unless that is what was measured, or is not known."""
    facts = {fact.code: fact for fact in verdict.notes}
    if Code.NO_BASE in facts:
        return f"compare side by side. {facts[Code.NO_BASE].name('fix')}".rstrip()
    base = "the commit before" if Code.NOTHING_DIFFERS in facts else "the merge base"
    return f"compare side by side with {base}:"


def _again(fact: Fact, verdict: Verdict) -> str:
    rows = (one for one in verdict.comparisons if one.case_id in fact.cases)
    return write_again(fact.cases, rows, verdict, fixed=True)


def _check(options: str = "") -> Callable[[Fact, Verdict], str]:
    return lambda fact, verdict: (
        write_selected("check", fact.cases, write_setting(verdict, *_OF_CHECK)) + options
    )


def _check_longer(fact: Fact, verdict: Verdict) -> str:
    """Twice the trials that a case had at most: the same number again showed nothing."""
    rows = (one for one in verdict.comparisons if one.case_id in fact.cases and one.candidate)
    had = max((one.candidate.n for one in rows if one.candidate), default=1)
    return _check(f" --trials {2 * had}")(fact, verdict)


def _ab(fact: Fact, verdict: Verdict) -> str:
    codes = {one.code for one in verdict.notes}
    if Code.NO_BASE in codes:
        return ""
    before = "HEAD~1 " if Code.NOTHING_DIFFERS in codes else ""
    return write_selected("ab", fact.cases, write_setting(verdict, *_OF_AB), before)


def _ab_base(fact: Fact, verdict: Verdict) -> str:
    return write_ab(fact.cases, verdict.base, write_setting(verdict, *_OF_AB))


def _refresh(options: str = "") -> Callable[[Fact, Verdict], str]:
    return lambda _fact, verdict: (
        write_command("baseline refresh", write_setting(verdict, *_OF_CHECK)) + options
    )


def _accept(fact: Fact, verdict: Verdict) -> str:
    case_id, metric, allowance = fact.cases[0], fact.metrics[0], fact.numbers["allowance"]
    family = SPECS[metric].family
    allowed = f"{allowance:.0f}" if family is Family.EXACT else f"{100 * allowance:.0f}%"
    if family is Family.LOG2:
        allowed = f"{allowance:.2f}"
    command = write_command("baseline accept", _repeat(verdict, *_CONFIG, "--baselines"))
    expires = fact.name("expires", "YYYY-MM-DD")
    return f"{command} '{case_id}' {metric} --allow {allowed} --reason '...' --expires {expires}"


_TEXTS = SENTENCES["steps"]
_COMMANDS: Mapping[Code, Callable[[Fact, Verdict], str]] = {
    **dict.fromkeys((Code.FIX_FAILED, Code.FIX_NEW), _again),
    Code.MEASURE_AGAIN: _check(),
    **dict.fromkeys((Code.ACCEPT, Code.ACCEPT_TOO), _accept),
    **dict.fromkeys((Code.BE_SURE, Code.SETTLE), _ab),
    Code.SETTLE_BY_TRIALS: _check_longer,
    **dict.fromkeys((Code.SETTLE_WITH_PAIRS, Code.SETTLE_QUIETLY), _ab_base),
    Code.RECORD_MORE: _refresh(" --trials 5"),
    **dict.fromkeys((Code.RECORD, Code.RECORD_BETTER), _refresh()),
    Code.COMPARE_WITH_BASE: _check(" --base BASE"),
    Code.HOLD_AGAINST_ANCHOR: lambda fact, verdict: write_selected(
        "ab", fact.cases, write_setting(verdict, *_OF_AB), "--anchor "
    ),
}
