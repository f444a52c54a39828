"""A fact in words: how a case failed, what is reported of measuring, notes and causes.

Templates are in ``sentences.ini``; here stands what a template cannot express.
"""

import re
from collections.abc import Callable, Mapping

from gate.records.codes import Code
from gate.records.facts import AFTER, BEFORE, LANE_CODES, OF_TRIALS, PLACES, USES, WARNING_CODES, Fact
from gate.records.protocol import WorkerFailure
from gate.records.run import CaseFailure, FailureKind, Recompile
from gate.records.verdict import PairBase, Verdict
from gate.report.words.templates import (
    COMMIT_CHARS,
    PHRASES,
    SENTENCES,
    fill,
    name_base,
    name_metric,
    upper_first,
)
from gate.units import format_allowance, format_change, format_rest, format_seconds, join_some

_LACKS = SENTENCES["lacks"]
_UNJUDGED = SENTENCES["unjudged"]
_LATE = (FailureKind.HANG, FailureKind.TIMEOUT)
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
# Installed packages, this one, generated code.
_FOREIGN = re.compile(r"lib/python\d|(^|/)gate/(?!models/)|^<")
_USES = dict(zip(USES, ("found", "missed", "bypassed"), strict=True))
_EVENTS = frozenset({Code.NO_BASE, Code.NOTHING_DIFFERS, *LANE_CODES})  # are reported as the run goes, too


def describe_failure(failure: CaseFailure) -> str:
    return describe_quoted(failure.quote(Code.FAILURE))


def describe_whole(failure: CaseFailure) -> str:
    """``timeout in stage rounds: did not end in 300 CPU seconds``."""
    return f"{failure.kind} in stage {failure.stage}: {describe_failure(failure)}"


def find_failing_line(failure: CaseFailure) -> str:
    """The line of the user's code in a traceback, or in a fault handler's dump; ``""`` without one."""
    frames = [
        f"{path}:{line}" for path, line in _FRAME.findall(failure.log_tail) if not _FOREIGN.search(path)
    ]
    innermost = 0 if "most recent call first" in failure.log_tail else -1
    return frames[innermost] if frames else ""


def describe_quoted(fact: Fact) -> str:
    if fact.name("why") in _LACKS:
        advice = "".join(f"; {fill(PHRASES['leave_out'], case_id=case_id)}" for case_id in fact.cases)
        return f"UNAVAILABLE: {_describe_lack(fact, fact.name('why'))}{advice}"
    phrase = SENTENCES["failures"].get(fact.name("why"), "{message}")
    if "{message}" in phrase and not fact.name("message"):
        return SENTENCES["wordless"].get(fact.name("kind"), "")
    return fill(phrase, fact, where=fill(PHRASES["where"], fact))


def describe_failed_trial(fact: Fact) -> str:
    return fill(PHRASES["failed_trial"], fact, failure=describe_quoted(fact))


def describe_unavailable(unavailable: Mapping[str, Fact]) -> str:
    reasons: dict[str, list[str]] = {}
    for case_id, why in unavailable.items():
        reasons.setdefault(_describe_lack(why, why.code), []).append(case_id)
    text = "; ".join(f"{join_some(case_ids)}: {why}" for why, case_ids in reasons.items())
    return f"UNAVAILABLE: {text}" if text else ""


def _describe_lack(fact: Fact, code: str) -> str:
    packages = fact.names.get("packages", ())
    are, named = "are" if packages[1:] else "is", " and ".join(packages)
    return fill(_LACKS[code], fact, named=named, are=are, packages=" ".join(packages))


def describe_unprimed(failure: CaseFailure, device: str) -> str:
    template = PHRASES["primer_late" if failure.kind in _LATE else "primer_failed"]
    return fill(template, device=device, stage=failure.stage, failure=describe_failure(failure))


def advise_unprimed(kind: FailureKind, reported: WorkerFailure | None, log: str) -> str:
    """``reported`` is the failure that the primer wrote, if it did."""
    if kind in _LATE:
        return fill(PHRASES["fix_late_primer"], log=log)
    return (reported and reported.fix) or fill(PHRASES["fix_primer"], log=log)


def describe_measuring(fact: Fact) -> str:
    values = {
        "disturbances": describe_disturbances(fact),
        "failure": describe_quoted(fact),
        "output": fact.name("output", "an output"),
    }
    return fill(SENTENCES["measuring"][fact.code], fact, **values)


def describe_disturbances(fact: Fact) -> str:
    """The first ones, and how many more."""
    phrases = (phrase for code, phrase in SENTENCES["disturbances"].items() if code in fact.numbers)
    return join_some([fill(phrase, fact) for phrase in phrases])


def write_notes(verdict: Verdict) -> tuple[str, ...]:
    return tuple(write_note(fact, verdict.base) for fact in verdict.notes)


def write_note(fact: Fact, base: PairBase | None = None) -> str:
    """``base`` is what head was compared with."""
    if fact.code in WARNING_CODES:
        return f"{join_some(fact.cases)}: {describe_measuring(fact)}."
    if fact.code in _EVENTS:
        return f"{upper_first(describe_measuring(fact)).rstrip('.')}."
    if fact.code in _UNJUDGED:
        template = PHRASES["unjudged"].replace("{why}", _UNJUDGED[fact.code])
    else:
        template = SENTENCES["notes"][fact.code]
    parts = _PARTS[fact.code](fact) if fact.code in _PARTS else {}
    return fill(template, fact, base=name_base(base), disturbances=describe_disturbances(fact), **parts)


def _describe_exceeded(fact: Fact) -> dict[str, str]:
    allowed = format_allowance(fact.metrics[0], fact.numbers["allowance"]) if fact.metrics else ""
    stored = fact.numbers.get("stored", 0.0)
    in_all = format_change(fact.metrics[0], stored) if stored and fact.metrics else ""
    return {"allowed": allowed, "in_all": in_all}


def _describe_cleared(fact: Fact) -> dict[str, str]:
    rows = zip(fact.cases, fact.metrics, strict=False)
    named = [f"{case_id} {name_metric(metric)}" for case_id, metric in rows]
    rest = format_rest(fact.numbers["comparisons"] - len(named))
    return {"cleared": f"{', '.join(named)}{rest}" if named else ""}


def _describe_quarantine(fact: Fact) -> dict[str, str]:
    statuses, whole = fact.names.get("statuses", ()), fact.names.get("whole", ())
    worse = [
        f"{case_id} {'whole case' if case_id in whole else metric} {status}"
        for case_id, metric, status in zip(fact.cases, fact.metrics, statuses, strict=False)
    ]
    return {"worse": f"{', '.join(worse)}{format_rest(fact.numbers['worse'] - len(worse))}" if worse else ""}


def describe_cause(fact: Fact) -> str:
    if fact.code in OF_TRIALS:
        return f"{upper_first(describe_measuring(fact))}."
    parts = _PARTS[fact.code](fact) if fact.code in _PARTS else {}
    return fill(SENTENCES["causes"][fact.code], fact, **parts)


def doubt_cause(text: str) -> str:
    return f"Possible cause: {lower_first(text)}"


def lower_first(text: str) -> str:
    """A name such as CPU keeps its letters."""
    return text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def describe_recompile(recompile: Recompile) -> str:
    made = f" (made by `{recompile.code}`)" if recompile.code else ""
    return f"{recompile.guard}{made}{f' at {recompile.location}' if recompile.location else ''}"


def _describe_changes(fact: Fact) -> dict[str, str]:
    changes = [f"{key} {words[0]} -> {words[-1]}" for key, words in fact.names.items() if words]
    rest = format_rest(fact.numbers.get("more", 0))
    return {"detail": f": {', '.join(changes)}{rest}" if changes else ""}


def _describe_phases(fact: Fact) -> dict[str, str]:
    phases = []
    for phase in dict.fromkeys(key.removesuffix(BEFORE).removesuffix(AFTER) for key in fact.numbers):
        before, after = (fact.numbers.get(phase + moment, 0.0) for moment in (BEFORE, AFTER))
        change = f"{'+' if after >= before else '-'}{format_seconds(abs(after - before))}"
        phases.append(f"{phase} by {change} to {format_seconds(after)}")
    return {"detail": ", ".join(phases)}


def _describe_device_time(fact: Fact) -> dict[str, str]:
    numbers, names = fact.numbers, fact.names.get("kernels", ())
    named = [_describe_kernel(name, key, numbers) for name, key in zip(names, PLACES, strict=False)]
    if not named:
        return {"detail": fill(PHRASES["kernels_unnamed"], fact)}
    return {"detail": f"{', '.join(named)}{format_rest(numbers['moved'] - len(named))}"}


def _describe_kernel(name: str, key: str, numbers: Mapping[str, float]) -> str:
    before_s, after_s = numbers.get(key + BEFORE), numbers.get(key + AFTER)
    if before_s is None:
        return f"{name} is new with {format_seconds(after_s or 0.0)}"
    if after_s is None:
        return f"{name} is gone, {format_seconds(before_s)}"
    return f"{name} {format_seconds(before_s)} -> {format_seconds(after_s)}"


def _describe_cache(fact: Fact) -> dict[str, str]:
    """What is bypassed cannot be cached."""
    return {"now": _count_uses(fact, ""), "before": _count_uses(fact, "_before")}


def _count_uses(fact: Fact, moment: str) -> str:
    counts = {word: fact.numbers.get(use + moment) for use, word in _USES.items()}
    return ", ".join(f"{count:.0f} {word}" for word, count in counts.items() if count)


# What a template is filled with besides the fact's own numbers and names.
_PARTS: Mapping[Code, Callable[[Fact], dict[str, str]]] = {
    Code.ACCEPTANCE_EXCEEDED: _describe_exceeded,
    Code.ACCEPTANCE_LEFT: _describe_exceeded,
    Code.CLEARED: _describe_cleared,
    Code.QUARANTINE: _describe_quarantine,
    Code.CACHE_MISSED: _describe_cache,
    Code.WORKLOAD_CHANGED: _describe_changes,
    Code.DEFINITION_CHANGED: _describe_changes,
    Code.OPTIONS_CHANGED: _describe_changes,
    Code.DEFAULT_CHANGED: _describe_changes,
    Code.FIRST_BAD: lambda fact: {"commit": fact.name("commit")[:COMMIT_CHARS]},
    Code.DEFAULTS_DIFFER: _describe_changes,
    Code.CHANGED_PHASES: _describe_phases,
    Code.KERNELS_MOVED: _describe_device_time,
}
