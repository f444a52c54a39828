"""Why a case changed, in sentences: one for each of its causes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gate.records import AFTER, BEFORE, OTHER_PHASE, PHASES, PLACES, Code, Fact
from gate.report.words.templates import describe_slower, fill, sign_seconds
from gate.units import count_rest, render_percent, render_seconds

_SUMMARY = "in the run's summary."


def describe_cause(fact: Fact) -> str:
    """Describe one piece of evidence; without its names where they may not be told."""
    write = _WRITERS.get(fact.code)
    if write is not None:
        return write(fact)
    template = _TEMPLATES[fact.code] if fact.names else _NAMELESS.get(fact.code) or _TEMPLATES[fact.code]
    return fill(template, fact)


def _describe_break(fact: Fact) -> str:
    if not fact.names:
        return f"There are new graph breaks; their places are {_SUMMARY}"
    at = " at {location}" if fact.name("location") else ""
    return fill(f"New graph break{at}: {{reason}}", fact)


def _describe_kernels(fact: Fact) -> str:
    """Which kernels are changed, added or removed, where both sides list them."""
    verbs = [verb for verb in ("changed", "added", "removed") if fact.numbers.get(verb)]
    told = [
        f"{{{verb}}} {verb}" + (f" ({_name_kernels(fact, verb)})" if fact.names else "") for verb in verbs
    ]
    changes = f"; of {{kernels}} kernels: {', '.join(told)}" if told else ""
    numbers = {verb: f"{value:.0f}" for verb, value in fact.numbers.items()}
    return f"The generated code changed{changes.format_map(numbers)}."


def _name_kernels(fact: Fact, verb: str) -> str:
    names = fact.names.get(verb, ())
    return ", ".join(names).replace("{", "{{").replace("}", "}}") + count_rest(
        fact.numbers[verb] - len(names)
    )


def _describe_workload(fact: Fact) -> str:
    """What changed of a case, before and after, behind what that means."""
    changes = [f"{key} {words[0]} -> {words[-1]}" for key, words in fact.names.items() if words]
    told = f": {', '.join(changes)}{count_rest(fact.numbers.get('more', 0))}" if changes else ""
    return f"{_OTHERWISE[fact.code]}{told}."


_OTHERWISE: Mapping[Code, str] = {
    Code.WORKLOAD_CHANGED: "The model itself changed",
    Code.DEFINITION_CHANGED: "The case is defined differently, so it is another program",
}


def _describe_longest(fact: Fact) -> str:
    own = [f"{phase} {render_seconds(after)}" for phase, _, after in _list_phases(fact)]
    return f"Longest phases of the compile: {', '.join(own)}."


def _describe_changed(fact: Fact) -> str:
    told = [
        f"{phase} by {sign_seconds(after - before)} to {render_seconds(after)}"
        for phase, before, after in _list_phases(fact)
    ]
    return f"Phases of the compile that changed: {', '.join(told)}."


def _list_phases(fact: Fact) -> list[tuple[str, float, float]]:
    """Each phase with its own seconds before and after, in the fact's order."""
    ordered = dict.fromkeys(key.removesuffix(BEFORE).removesuffix(AFTER) for key in fact.numbers)
    return [
        (phase, fact.numbers.get(phase + BEFORE, 0.0), fact.numbers.get(phase + AFTER, 0.0))
        for phase in ordered
        if phase in (*PHASES, OTHER_PHASE)
    ]


def _describe_shifts(fact: Fact) -> str:
    changes = [
        f"{name} {describe_slower(fact.numbers[key])}" for key, name in _SHIFTS.items() if key in fact.numbers
    ]
    return f"The machine changed since the baseline: {', '.join(changes)}."


_SHIFTS: Mapping[str, str] = {
    "canary": "fixed test programs over the run",
    "suite": "eager over all cases",
    "case": "fixed test programs beside this case",
}


def _describe_device(fact: Fact) -> str:
    """Kernels of a call, before and after; without their names, how many."""
    numbers = fact.numbers
    total = f"{render_seconds(numbers['before_s'])} -> {render_seconds(numbers['after_s'])}"
    named = [
        _describe_kernel(name, place, numbers)
        for name, place in zip(fact.names.get("kernels", ()), PLACES, strict=False)
    ]
    if not named:
        return fill(f"Kernels of a call, {total} in all: {{moved}} of them take another time.", fact)
    return (
        f"Kernels of a call, {total} in all: {', '.join(named)}{count_rest(numbers['moved'] - len(named))}."
    )


def _describe_kernel(name: str, place: str, numbers: Mapping[str, float]) -> str:
    before_s, after_s = numbers.get(place + BEFORE), numbers.get(place + AFTER)
    if before_s is None:
        return f"{name} is new with {render_seconds(after_s or 0.0)}"
    if after_s is None:
        return f"{name} is gone, {render_seconds(before_s)}"
    return f"{name} {render_seconds(before_s)} -> {render_seconds(after_s)}"


def _describe_bound(fact: Fact) -> str:
    limit, share = next(iter(fact.numbers.items()), ("memory", 0.0))
    percent = render_percent(share, signed=False)
    least = f"{limit} alone takes {percent} of a call at this machine's own rate"
    if fact.code is Code.BOUND_BY:
        return f"A call is bound by {limit}: {least}."
    return f"Neither memory nor arithmetic bounds a call: {least}."


def _describe_guard(fact: Fact) -> str:
    if not fact.names:
        return f"It recompiled; the reasons are {_SUMMARY}"
    line = " (made by `{line}`)" if fact.name("line") else ""
    at = " at {location}" if fact.name("location") else ""
    return fill(f"Recompiled because {{reason}}{line}{at}", fact)


def _describe_precision(fact: Fact) -> str:
    told = [f"{verb} {', '.join(fact.names[key])}" for key, verb in _USES.items() if fact.names.get(key)]
    return (
        f"The generated code {' and '.join(told)}." if told else "The generated code has another precision."
    )


_USES: Mapping[str, str] = {"added": "now uses", "removed": "no longer uses"}


def _describe_calls(fact: Fact) -> str:
    """What became a call of its own, and what is not fused any more for it."""
    if not fact.names.get("calls"):
        return fill("No longer fused: {calls:operator} became calls of their own.", fact)
    lost = (
        f"; no kernel fuses {', '.join(fact.names['operators'])} any more"
        if "operators" in fact.names
        else ""
    )
    names = fact.names["calls"]
    told = f"{', '.join(names)}{count_rest(fact.numbers['calls'] - len(names))}"
    if not lost:
        return f"The generated code calls {told} now, which no kernel is fused with."
    return f"No longer fused: {told} is a call of its own{lost}."


def _describe_fusion(fact: Fact) -> str:
    """The same operators in more kernels, or fewer, or more operators."""
    was, now = (", ".join(fact.names.get(key, ())) for key in ("was", "now"))
    told = f" ({was} -> {now})" if was and now else f" ({now})" if now else ""
    return fill(f"{_FUSIONS[fact.code]}: {{before:kernel}} before, {{after}} now{told}.", fact)


_FUSIONS: Mapping[Code, str] = {
    Code.KERNELS_SPLIT: "Operators are spread over more kernels",
    Code.KERNELS_ADDED: "There are more kernels, of more operators",
    Code.KERNELS_JOINED: "Operators are in fewer kernels",
}


def _describe_stack(fact: Fact) -> str:
    named = fact.names.get("differences", ())
    rest = count_rest(fact.numbers["differences"] - len(named))
    told = f": {', '.join(named)}{rest}" if named else " than before"
    return f"{_OTHER_STACKS[fact.code]}{told}."


_OTHER_STACKS: Mapping[Code, str] = {
    Code.STACK_CHANGED: "The software or the machine is another",
    Code.STACK_UNUSED: "Only software that this device does not use is another",
}


def _describe_cache(fact: Fact) -> str:
    off = " It is turned off, or the graphs cannot be kept." if fact.numbers.get("bypasses") else ""
    return fill("The second process missed the full compile cache {misses:time}.", fact) + off


_WRITERS: Mapping[Code, Callable[[Fact], str]] = {
    Code.GRAPH_BREAK: _describe_break,
    Code.RECOMPILED: _describe_guard,
    Code.PRECISION_CHANGED: _describe_precision,
    Code.CALLS_ADDED: _describe_calls,
    Code.KERNELS_SPLIT: _describe_fusion,
    Code.KERNELS_ADDED: _describe_fusion,
    Code.KERNELS_JOINED: _describe_fusion,
    Code.STACK_CHANGED: _describe_stack,
    Code.STACK_UNUSED: _describe_stack,
    Code.CACHE_MISSED: _describe_cache,
    Code.CODE_CHANGED: _describe_kernels,
    Code.WORKLOAD_CHANGED: _describe_workload,
    Code.DEFINITION_CHANGED: _describe_workload,
    Code.LONGEST_PHASES: _describe_longest,
    Code.CHANGED_PHASES: _describe_changed,
    Code.MACHINE_CHANGED: _describe_shifts,
    Code.KERNELS_MOVED: _describe_device,
    Code.BOUND_BY: _describe_bound,
    Code.BOUND_BY_NEITHER: _describe_bound,
}
_TEMPLATES: Mapping[Code, str] = {
    Code.TEXT: "{text}",
    Code.GRAPH_BREAK_GONE: "A graph break is gone, at {location}: {reason}",
    Code.OPERATIONS_CHANGED: "The program has {after:operation} for the compiler, {before} before.",
    Code.CACHE_LOST: (
        "The second process finds less in the compile cache ({caches}): {after:graph} instead of {before}."
    ),
    Code.EAGER_TOO: (
        "Eager changed as well, by {eager:slower}, and compiled by {compiled:slower}: it is in what both"
        " share, as the model, its libraries or the host."
    ),
    Code.EAGER_ALONE: (
        "Only eager changed: its latency by {eager:slower}, compiled latency by {compiled:slower}."
    ),
    Code.UNEXPLAINED: "Unexplained: nothing that was recorded accounts for it.",
    Code.MORE: "... and {more} more.",
    Code.CODE_SAME: (
        "The generated code is the same: look at the machine, or at Python code outside the graphs."
    ),
    Code.CODE_TUNED: (
        "The generated code is the same, its kernels were tuned otherwise: their speed may differ by that"
        " alone."
    ),
    Code.BOTH_LATENCIES: "Eager latency changed by {eager:slower}, compiled latency by {compiled:slower}.",
    Code.COMPILERS_TIME: "Processor time of the compilers it started: {change_s:signed_seconds}.",
    Code.NO_CHANGED_PHASE: "No phase of the compile changed by more than {share:share} of the whole.",
    Code.KERNELS_STEADY: (
        "No kernel takes another time on the device: what changed is between them, or on the host."
    ),
    Code.DEVICE_IDLE: (
        "The device is busy for {busy:part} of a call: launches, and the host between them, bound it."
    ),
    Code.CLOCKS_LOWERED: "The device lowered its clocks: {reasons}.",
    Code.OTHER_PROCESSES: "Other processes on the device: {processes}.",
}
_NAMELESS: Mapping[Code, str] = {
    Code.GRAPH_BREAK_GONE: "Graph breaks are gone.",
    Code.CLOCKS_LOWERED: "The device lowered its clocks.",
    Code.CACHE_LOST: "The second process finds less in the compile cache: {after:graph} instead of {before}.",
}
