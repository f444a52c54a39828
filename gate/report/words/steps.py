"""What to do next, in words, and the commands for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gate.metrics import SPECS, Family
from gate.records import Code, Fact, Status, Verdict
from gate.report.view import NextStep
from gate.report.words.commands import (
    write_ab,
    write_again,
    write_command,
    write_config,
    write_selected,
    write_setting,
)
from gate.report.words.measuring import describe_disturbances
from gate.report.words.templates import fill

_UNKNOWN_DAY = "YYYY-MM-DD"
_FIXING = frozenset({Code.FIX, Code.ACCEPT})


def write_steps(verdict: Verdict) -> tuple[NextStep, ...]:
    """Write all steps of a verdict, the most pressing first; what got worse is to be fixed, or accepted."""
    steps: list[NextStep] = []
    fix = _write_fix(verdict)
    for fact in verdict.next_steps:
        if fact.code in _FIXING and fix not in steps:
            steps.append(fix)
        if fact.code is not Code.FIX:
            steps.append(write_step(fact, verdict))
    return tuple(steps)


def _write_fix(verdict: Verdict) -> NextStep:
    """One step for all that got worse: it names its cases in a command that judges them again."""
    worse = [one for one in verdict.comparisons if one.decides and one.status is Status.REGRESSED]
    cases = dict.fromkeys(one.case_id for one in worse)
    return NextStep(
        text="Fix what got worse and measure it again:", command=write_again(cases, worse, verdict)
    )


def write_step(fact: Fact, verdict: Verdict) -> NextStep:
    """Write one step; its command names gate.yml and the base as the verdict does."""
    if fact.code is Code.TEXT:
        return NextStep(text=fact.name("text"), command=fact.name("command"))
    crowd = ", ".join(fact.names.get("crowd", ()))
    until = " to ".join(dict.fromkeys(fact.names.get("expires", ())))
    parts = {
        "until": f" until {until}" if until else "",
        "changes": _name_changes(fact),
        "are": _choose_verb(fact),
        "stop": f"stop {crowd}" if crowd else "make the machine quiet",
        "by": describe_disturbances(fact) or "the machine was disturbed",
    }
    write = _COMMANDS.get(fact.code)
    return NextStep(
        text=fill(_TEXTS[fact.code], fact, **parts), command=write(fact, verdict) if write else ""
    )


def _name_changes(fact: Fact) -> str:
    return "the change" if fact.numbers.get("commands") == 1 else "each change"


def _choose_verb(fact: Fact) -> str:
    return "is" if fact.numbers.get("cases") == 1 else "are"


_TEXTS: Mapping[Code, str] = {
    Code.CONTINUE: "Finish the run: run the same command again, with --resume.",
    Code.FIX_FAILED: "Read the log of each failed case, fix it and run:",
    Code.FIX_FAILED_BESIDE: "Read the log of each failed case, fix it and run:",
    Code.MEASURE_AGAIN: "Measure again what came back with fewer trials than planned, or with none:",
    Code.MORE_MINUTES: (
        "There was no time for {case_list:some}: run the same command again, with --resume and"
        " a larger --minutes."
    ),
    Code.FIX: "Fix {case_list}.",
    Code.ACCEPT_REMOVED: (
        'Where {case_list:some} may go, comment `/accept-regression reason="..."` on the pull request;'
        " else put back what the base's gate.yml names."
    ),
    Code.ACCEPT: "Or accept {changes} of {case_list} until a date:",
    Code.ACCEPT_TOO: "",
    Code.MORE_LIKE_THESE: "And {commands:more command} like these.",
    Code.BE_SURE: "To be sure of the times, compare side by side with the merge base:",
    Code.SETTLE: "Settle what could not be told, side by side with the merge base:",
    Code.SETTLE_BY_TRIALS: "Or measure again, with more trials, what could not be told:",
    Code.SETTLE_WITH_PAIRS: "Settle what could not be told, with more pairs:",
    Code.QUIET_FIRST: "First {stop}, and run the same again: during every trial {by}.",
    Code.SETTLE_QUIETLY: "Settle what could not be told, on a quiet machine:",
    Code.LIFT_QUARANTINE: (
        "{cases:case} {are} quarantined{until}: fix what is unstable and remove it from `quarantine` in"
        " gate.yml, or select other cases too."
    ),
    Code.RECORD_MORE: "Record more baseline trials:",
    Code.RECORD: "Record baselines on this machine, at a commit that is known to be good:",
    Code.RECORD_BETTER: "Make the improvement the new baseline:",
    Code.HOLD_AGAINST_ANCHOR: "See whether many small changes did it, against the release anchor:",
    Code.READ_BASE_LOGS: "Read the log of the base's cases: what failed there was not judged.",
}


def _check(options: str = "") -> Callable[[Fact, Verdict], str]:
    return lambda fact, verdict: write_selected("check", fact.cases, write_setting(verdict)) + options


def _check_longer(fact: Fact, verdict: Verdict) -> str:
    """Twice the trials that a case had at most: the same number again told nothing."""
    rows = (one for one in verdict.comparisons if one.case_id in fact.cases and one.candidate)
    had = max((one.candidate.n for one in rows if one.candidate), default=1)
    return _check(f" --trials {2 * had}")(fact, verdict)


def _ab(fact: Fact, verdict: Verdict) -> str:
    return write_ab(fact.cases, None, write_setting(verdict))


def _ab_base(fact: Fact, verdict: Verdict) -> str:
    return write_ab(fact.cases, verdict.base, write_setting(verdict))


def _refresh(options: str = "") -> Callable[[Fact, Verdict], str]:
    return lambda _fact, verdict: write_command("baseline refresh", write_setting(verdict)) + options


def _accept(fact: Fact, verdict: Verdict) -> str:
    allowed = _write_allowance(fact)
    command = write_command("baseline accept", write_config(verdict))
    expires = fact.name("expires", _UNKNOWN_DAY)
    case_id, metric = fact.cases[0], fact.metrics[0]
    return f"{command} '{case_id}' {metric} --allow {allowed} --reason '...' --expires {expires}"


def _write_allowance(fact: Fact) -> str:
    family, allowance = SPECS[fact.metrics[0]].family, fact.numbers["allowance"]
    if family is Family.LOG2:
        return f"{allowance:.2f}"
    return f"{allowance:.0f}" if family is Family.EXACT else f"{100 * allowance:.0f}%"


_COMMANDS: Mapping[Code, Callable[[Fact, Verdict], str]] = {
    Code.FIX_FAILED: _check(),
    Code.FIX_FAILED_BESIDE: _ab_base,
    Code.MEASURE_AGAIN: _check(),
    Code.ACCEPT: _accept,
    Code.ACCEPT_TOO: _accept,
    Code.BE_SURE: _ab,
    Code.SETTLE: _ab,
    Code.SETTLE_BY_TRIALS: _check_longer,
    Code.SETTLE_WITH_PAIRS: _ab_base,
    Code.SETTLE_QUIETLY: _ab_base,
    Code.RECORD_MORE: _refresh(" --trials 5"),
    Code.RECORD: _refresh(),
    Code.RECORD_BETTER: _refresh(),
    Code.HOLD_AGAINST_ANCHOR: lambda fact, verdict: write_selected(
        "ab", fact.cases, write_setting(verdict), "--anchor "
    ),
}
