"""A fact in words: how a case failed, what is reported of measuring, notes and causes.

Templates are in ``sentences.ini``; here stands what they cannot say.
"""

import re
from collections.abc import Callable, Mapping

from gate.records.codes import Code
from gate.records.facts import AFTER, BEFORE, LANE_CODES, OF_TRIALS, PLACES, USES, WARNING_CODES, Fact
from gate.records.protocol import WorkerFailure
from gate.records.run import CaseFailure, FailureKind, Recompile
from gate.records.verdict import PairBase, Verdict
from gate.report.words.templates import SENTENCES, fill, name_base, name_metric, upper_first
from gate.units import count_rest, join_some, render_allowance, render_change, render_seconds

_LACKS = SENTENCES["lacks"]
_SLOW_FIX = "Raise `trial_timeout_s` in gate.yml, or wait until the machine is idle; {log} says where it was."
_LATE = (FailureKind.HANG, FailureKind.TIMEOUT)
_GENERAL_FIX = "Read {log}, then try `compile-gate doctor`."


def describe_failure(failure: CaseFailure) -> str:
    """Describe how a case failed, in one line."""
    return describe_quoted(failure.quote(Code.FAILURE))


def describe_whole(failure: CaseFailure) -> str:
    """Describe it with its kind and where: ``timeout in stage rounds: did not end in 300 CPU seconds``."""
    return f"{failure.kind} in stage {failure.stage}: {describe_failure(failure)}"


def find_place(failure: CaseFailure) -> str:
    """Find the line of the user's code in a traceback, or in a fault handler's dump; ``""`` without one."""
    places = [
        f"{path}:{line}" for path, line in _FRAME.findall(failure.log_tail) if not _FOREIGN.search(path)
    ]
    innermost = 0 if "most recent call first" in failure.log_tail else -1
    return places[innermost] if places else ""


_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
# Installed packages, this one, generated code.
_FOREIGN = re.compile(r"lib/python\d|(^|/)gate/(?!models/)|^<")


def describe_quoted(fact: Fact) -> str:
    """Describe the failure that another fact quotes."""
    if fact.name("why") in _LACKS:
        advice = "".join(f"; leave it out here: --select '...,!{case_id}'" for case_id in fact.cases)
        return f"UNAVAILABLE: {_describe_lack(fact, fact.name('why'))}{advice}"
    phrase = SENTENCES["failures"].get(fact.name("why"), "{message}")
    if "{message}" in phrase and not fact.name("message"):
        return SENTENCES["wordless"].get(fact.name("kind"), "")
    where = fill("[ in the {role} process][; the log mentions {shortage}]", fact)
    return fill(phrase, fact, where=where)


def describe_failed_trial(fact: Fact) -> str:
    """Describe the failure that a fact quotes, with its trial and arm too."""
    template = "{kind} in stage {stage} of trial {trial}[ of {arm}]: {failure}"
    return fill(template, fact, failure=describe_quoted(fact))


def describe_unavailable(unavailable: Mapping[str, Fact]) -> str:
    """Say in a line which cases are unavailable and why, reason by reason; empty where all are available."""
    reasons: dict[str, list[str]] = {}
    for case_id, why in unavailable.items():
        reasons.setdefault(_describe_lack(why, why.code), []).append(case_id)
    text = "; ".join(f"{join_some(case_ids)}: {why}" for why, case_ids in reasons.items())
    return f"UNAVAILABLE: {text}" if text else ""


def _describe_lack(fact: Fact, code: str) -> str:
    packages = fact.names.get("packages", ())
    listed = " and ".join(packages) or "a package that it needs"
    advice = f" (pip install {' '.join(packages)})" if packages else ""
    return fill(_LACKS[code], fact, listed=listed, verb="are" if packages[1:] else "is", advice=advice)


def describe_unprimed(failure: CaseFailure, device: str) -> str:
    """Describe how the primer failed."""
    where = f"on {device}, at stage {failure.stage}"
    if failure.kind in _LATE:
        return f"warming up {describe_failure(failure)}, {where}"
    return f"torch.compile does not work here {where}: {describe_failure(failure)}"


def advise_unprimed(kind: FailureKind, told: WorkerFailure | None, log: str) -> str:
    """Advise what fixes a primer's failure, of which it may have ``told``."""
    if kind in _LATE:
        return _SLOW_FIX.format(log=log)
    return (told and told.fix) or _GENERAL_FIX.format(log=log)


def describe_measuring(fact: Fact) -> str:
    """Describe what a run reports as it goes, or what a trial could not do."""
    values = {
        "disturbances": describe_disturbances(fact),
        "failure": describe_quoted(fact),
        "output": fact.name("output", "an output"),
    }
    return fill(SENTENCES["measuring"][fact.code], fact, **values)


def describe_disturbances(fact: Fact) -> str:
    """The first of what disturbed, and how many more."""
    phrases = (phrase for code, phrase in SENTENCES["disturbances"].items() if code in fact.numbers)
    return join_some([fill(phrase, fact) for phrase in phrases])


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
        template = SENTENCES["notes"][fact.code]
    parts = _PARTS[fact.code](fact) if fact.code in _PARTS else {}
    return fill(template, fact, base=name_base(base), disturbances=describe_disturbances(fact), **parts)


_EVENTS = frozenset({Code.NO_BASE, Code.NOTHING_DIFFERS, *LANE_CODES})  # are reported as the run goes, too
_UNJUDGED = SENTENCES["unjudged"]


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


def describe_cause(fact: Fact) -> str:
    """Describe one piece of evidence; without its names where they may not be shown."""
    if fact.code in OF_TRIALS:
        return f"{upper_first(describe_measuring(fact))}."
    parts = _PARTS[fact.code](fact) if fact.code in _PARTS else {}
    return fill(SENTENCES["causes"][fact.code], fact, **parts)


def doubt_cause(text: str) -> str:
    """A cause of what is inconclusive."""
    return f"Possible cause: {lower_first(text)}"


def lower_first(text: str) -> str:
    """Begin it in the middle of a sentence; a name as CPU keeps its letters."""
    return text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def describe_recompile(one: Recompile) -> str:
    """Describe a guard that failed, the line that made it, and where that is."""
    made = f" (made by `{one.code}`)" if one.code else ""
    return f"{one.guard}{made}{f' at {one.location}' if one.location else ''}"


def _describe_changes(fact: Fact) -> dict[str, str]:
    changes = [f"{key} {words[0]} -> {words[-1]}" for key, words in fact.names.items() if words]
    rest = count_rest(fact.numbers.get("more", 0))
    return {"detail": f": {', '.join(changes)}{rest}" if changes else ""}


def _describe_phases(fact: Fact) -> dict[str, str]:
    """Each phase with its own seconds, in the fact's order."""
    phases = []
    for phase in dict.fromkeys(key.removesuffix(BEFORE).removesuffix(AFTER) for key in fact.numbers):
        before, after = (fact.numbers.get(phase + moment, 0.0) for moment in (BEFORE, AFTER))
        change = f"{'+' if after >= before else '-'}{render_seconds(abs(after - before))}"
        phases.append(f"{phase} by {change} to {render_seconds(after)}")
    return {"detail": ", ".join(phases)}


def _describe_device_time(fact: Fact) -> dict[str, str]:
    """Kernels of a call, before and after; without their names, how many."""
    numbers, names = fact.numbers, fact.names.get("kernels", ())
    named = [_describe_kernel(name, place, numbers) for name, place in zip(names, PLACES, strict=False)]
    if not named:
        return {"detail": fill("the time of {moved} of them changed", fact)}
    return {"detail": f"{', '.join(named)}{count_rest(numbers['moved'] - len(named))}"}


def _describe_kernel(name: str, place: str, numbers: Mapping[str, float]) -> str:
    before_s, after_s = numbers.get(place + BEFORE), numbers.get(place + AFTER)
    if before_s is None:
        return f"{name} is new with {render_seconds(after_s or 0.0)}"
    if after_s is None:
        return f"{name} is gone, {render_seconds(before_s)}"
    return f"{name} {render_seconds(before_s)} -> {render_seconds(after_s)}"


def _describe_cache(fact: Fact) -> dict[str, str]:
    """One cache's own numbers, now and before; what is bypassed cannot be cached."""
    now, before = (
        ", ".join(
            f"{fact.numbers[use + moment]:.0f} {word}"
            for use, word in zip(USES, ("found", "missed", "bypassed"), strict=True)
            if fact.numbers.get(use + moment)
        )
        for moment in ("", "_before")
    )
    cache = fact.name("cache")
    return {
        "finds": "does not find everything in" if now else "no longer asks",
        "which": f" {cache}" if cache else "",
        "uses": f"{f': {now}' if now else ', which is turned off'}{f' ({before} before)' if before else ''}",
    }


# What a template is filled with besides the fact's own numbers and names.
_PARTS: Mapping[Code, Callable[[Fact], dict[str, str]]] = {
    **dict.fromkeys((Code.ACCEPTANCE_EXCEEDED, Code.ACCEPTANCE_LEFT), _describe_exceeded),
    Code.CLEARED: _describe_cleared,
    Code.QUARANTINE: _describe_quarantine,
    Code.CACHE_MISSED: _describe_cache,
    **dict.fromkeys((Code.WORKLOAD_CHANGED, Code.DEFINITION_CHANGED), _describe_changes),
    **dict.fromkeys((Code.OPTIONS_CHANGED, Code.DEFAULT_CHANGED, Code.DEFAULTS_DIFFER), _describe_changes),
    Code.CHANGED_PHASES: _describe_phases,
    Code.KERNELS_MOVED: _describe_device_time,
}
