"""What a reader must know to trust a verdict no further than it goes, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gate.records import Code, Fact, PairBase, Verdict
from gate.records.facts import WARNING_CODES
from gate.report.words.measuring import describe_disturbances, describe_measuring
from gate.report.words.templates import (
    MACHINE_CHANGED,
    fill,
    name_base,
    name_metric,
    upper_first,
)
from gate.units import count_rest, join_some, render_allowance, render_change


def write_notes(verdict: Verdict) -> tuple[str, ...]:
    """Write all notes of a verdict."""
    return tuple(write_note(fact, verdict.base) for fact in verdict.notes)


def write_note(fact: Fact, base: PairBase | None = None) -> str:
    """Write one note; ``base`` is what head was compared with."""
    if fact.code in WARNING_CODES:
        return f"{join_some(fact.cases)}: {describe_measuring(fact)}."
    if fact.code in _EVENTS:
        return f"{upper_first(describe_measuring(fact)).rstrip('.')}."
    if fact.code in _UNJUDGED:
        template = f"Not judged in {{cases:case}}: {{metric_list:some}}. {_UNJUDGED[fact.code]}."
    else:
        template = _TEMPLATES[fact.code]
    parts = _PARTS[fact.code](fact) if fact.code in _PARTS else {}
    return fill(template, fact, base=name_base(base), disturbances=describe_disturbances(fact), **parts)


_EVENTS = frozenset({Code.NO_BASE, Code.NOTHING_DIFFERS})  # are reported as the run goes, too
_UNJUDGED: Mapping[Code, str] = {
    Code.NO_BASELINE: "No baseline is stored",
    Code.OTHER_MACHINES: (
        "No baseline was recorded in this environment (another machine, software or number of threads)"
    ),
    Code.OTHER_SPEED: "This machine runs fixed test programs at another speed than the one that recorded",
    Code.OTHER_STACK: (
        "The baselines were recorded with other software or on another kind of GPU, another instruction set"
        " or another number of threads"
    ),
    Code.REDEFINED: "The case is defined differently than when its baseline was recorded",
    Code.NOT_RECORDED: "The baselines do not have these metrics",
    Code.BASE_LACKS_CASES: "{base} does not have them",
    Code.BASE_NOT_MEASURED: "{base} could not be measured on them",
    Code.BASE_DEFINES_CASES_OTHERWISE: "{base} defines these cases differently",
    Code.BASE_LACKS_METRICS: "{base} did not measure these metrics",
}
_TEMPLATES: Mapping[Code, str] = {
    Code.STOPPED: "The run was stopped before its end.",
    Code.TIME_UP: (
        "The time of --minutes was up before {case_list:some} could be settled: allow more, or continue with"
        " --resume."
    ),
    Code.STORED_ONLY: "Not measured side by side with the base: the times of {cases:case}.",
    Code.LACK_ACCEPTED: "{author} accepts that there are no baselines until {expires}: {reason}.",
    Code.LACK_EXPIRED: "{author} accepted that there are no baselines; that expired on {expires}.",
    Code.LACK_UNACCEPTED: "Missing baselines were not accepted for each commit judged: {case_list:some}.",
    Code.ACCEPTED_ELSEWHERE: (
        "Accepted by {author} for {gate} on {environment}, so it does not count here:"
        " {acceptances:acceptance}."
    ),
    Code.ACCEPTANCE_EXPIRED: (
        "The acceptance of {pattern} {metric_keys} expired on {expires} and no longer counts: {reason}."
    ),
    Code.ACCEPTANCE_EXCEEDED: (
        "{case_list} {metric_list}: [{author}|somebody] accepted up to {allowed} until {expires},"
        " and this is more[: {in_all} against the stored baseline]."
    ),
    Code.UNUSED_ACCEPTANCE: "The acceptance of {pattern} {metric_keys} matches no case: remove it.",
    Code.ACCEPTANCE_LEFT: (
        "accepted.yml still allows {allowed} of {pattern} {metric_keys} on top of these values: remove the"
        " entry if these values contain the change."
    ),
    Code.DRIFT_ABOVE: (
        "{case_list}: {metric_list} is above its limit of {limit:log2} with {drift:log2}, and so is the"
        " [{in_pairs:?}base's|baseline's]: only the change counts."
    ),
    Code.BASELINES_OLD: (
        "{baselines:baseline} older than {days} days, the oldest {oldest}: record new ones."
    ),
    Code.CLEARED: "Worse than the stored baseline, but not worse than the base: {cleared}.",
    Code.UNCHANGED_SPEEDUP: (
        "Latencies of {case_list:some} differ from the baselines, or vary too much to tell. They count as"
        " unchanged because the generated code is the same and compiled calls kept pace with eager's in the"
        " same processes. A slowdown of both by up to {hidden:share} could hide: `compile-gate ab` would"
        " show it."
    ),
    Code.UNCHANGED_SOURCES: (
        "Not measured side by side, since no file that they import differs from the base: {case_list}."
    ),
    Code.ONE_SHARD: "This is {shard}: {left} of {cases:case} are not part of it.",
    Code.CASES_GONE: "{base} has {cases:case} that head does not have: {case_list}.",
    Code.BASELINES_IDLE: (
        "Baselines are stored of {cases:case} that gate.yml does not have: {case_list}. Renamed or"
        " removed cases are not checked. If that was intended, remove their baselines."
    ),
    Code.NEAREST_DIFFERS: "The nearest baselines are of another environment: {differences}.",
    Code.MACHINE_CHANGED: MACHINE_CHANGED,
    Code.TRIALS_DISTURBED: (
        "The machine was disturbed during {disturbed} of {measured} trials[: {disturbances}]."
    ),
    Code.PAIRS_DISTURBED: (
        "The machine was disturbed during {disturbed} of {measured} pairs, base and head alike"
        "[: {disturbances}]."
    ),
    Code.DISTURBED_KEPT: (
        "Disturbed trials are recorded too of {case_list:some}: fewer than {fewest} others came back."
        " Record again on a quiet machine."
    ),
    Code.MORE_WARNINGS: "{warnings} more warnings of trials are in run.json.",
    Code.QUARANTINE: (
        "Quarantined by {owner} until {expires}, so it does not decide: {pattern} ({reason}). Now: {found}."
    ),
    Code.QUARANTINE_EXPIRED: (
        "The quarantine of {pattern} by {owner} expired on {expires} and it decides again: {reason}."
    ),
    Code.BASE_CASES_FAILED: "{base} failed in {cases:case}: {case_list}.",
    Code.RULES_OF: "Configuration, registry, thresholds and baselines are those of commit {commit}.",
    Code.ANCHOR: ("Compared with the anchor {anchor}. A change is the sum of all commits since then."),
    Code.TOUCHES_RULES: "This change touches the rules that judge changes: {rules}. Review that first.",
    Code.FILES_UNSEEN: "Only the first {files} files were examined.",
    Code.CASES_UNSHOWN: (
        "{cases:case} of this change {cases:is} not on the default branch, so only counted here:"
        " {regressed} of {comparisons:comparison} regressed, {failed} failed."
    ),
    Code.NO_BASELINES_HERE: "The default branch has no baselines of this environment.",
    Code.NO_DEVICE: (
        "Code for a target is compiled and not run: speed, compile time, memory, drift, cache use and"
        " CUDA graphs were not measured."
    ),
    Code.CODE_IS_THE_BASES: (
        "The generated code is that of the base in {cases:case}, all that were compiled: a GPU would run the"
        " same. `plan --after` then leaves nothing to measure."
    ),
    Code.CODE_DIFFERS: (
        "The generated code is that of the base in {same} of {cases:case}, and not in {case_list:some}."
        " `plan --after` leaves these for a GPU to measure."
    ),
    Code.ACCEPTED_HERE: "{author} accepted {changes:change} for this commit alone, until {expires}.",
    Code.LACK_ACCEPTED_HERE: (
        "{author} accepts for this commit alone, until {expires}, that baselines are missing."
    ),
    Code.ACCEPTANCES_UNREADABLE: ("The acceptances of this commit cannot be read, and do not count."),
    Code.NOISE_UNKNOWN: (
        "Not enough trials of {case_list}[ and {more} more]: it takes {trials} trials of a case."
    ),
    Code.SOME_NOT_REPLAYED: (
        "{short} of {cases:case} were not replayed: that takes {trials} trials of each (--trials {trials})."
    ),
    Code.REPLAY_MIXES: (
        "The replay uses trials of one session: it includes the noise between trials, not between days."
        " Its intervals do not include that the trials are few."
    ),
    Code.REPLAYED_ALONE: (
        "Replayed without a base: that takes {pairs} pairs of every case (--pairs {pairs}) with all that its"
        " trials measured; later pairs of a check have latencies alone."
    ),
}


def _describe_exceeded(fact: Fact) -> dict[str, str]:
    allowed = render_allowance(fact.metrics[0], fact.numbers["allowance"]) if fact.metrics else ""
    stored = fact.numbers.get("stored", 0.0)
    in_all = render_change(fact.metrics[0], stored) if stored and fact.metrics else ""
    return {"allowed": allowed, "in_all": in_all}


def _describe_cleared(fact: Fact) -> dict[str, str]:
    named = [f"{one} {name_metric(metric)}" for one, metric in zip(fact.cases, fact.metrics, strict=False)]
    if not named:
        return {"cleared": fill("{comparisons:comparison}", fact)}
    why = "The machine changed, or an earlier commit did it: if it stays so, record new baselines"
    return {"cleared": f"{', '.join(named)}{count_rest(fact.numbers['comparisons'] - len(named))}. {why}"}


def _describe_quarantine(fact: Fact) -> dict[str, str]:
    statuses = fact.names.get("statuses", ())
    whole = fact.names.get("whole", ())
    rows = zip(fact.cases, fact.metrics, statuses, strict=False)
    found = [
        f"{case_id} {'whole case' if case_id in whole else metric} {status}"
        for case_id, metric, status in rows
    ]
    text = f"{', '.join(found)}{count_rest(fact.numbers['worse'] - len(found))}"
    return {"found": text if found else fill("none of {comparisons} comparisons is worse", fact)}


_PARTS: Mapping[Code, Callable[[Fact], dict[str, str]]] = {
    Code.ACCEPTANCE_EXCEEDED: _describe_exceeded,
    Code.ACCEPTANCE_LEFT: _describe_exceeded,
    Code.CLEARED: _describe_cleared,
    Code.QUARANTINE: _describe_quarantine,
}
