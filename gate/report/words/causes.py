"""Why a case changed, in sentences: one for each of its causes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gate.records import AFTER, BEFORE, OTHER_PHASE, PHASES, PLACES, USES, Code, Fact, Recompile
from gate.records.facts import OF_TRIALS
from gate.report.words.measuring import describe_measuring
from gate.report.words.templates import MACHINE_CHANGED, fill, upper_first
from gate.units import count_rest, render_seconds


def describe_cause(fact: Fact) -> str:
    """Describe one piece of evidence; without its names where they may not be shown."""
    if fact.code in OF_TRIALS:
        return f"{upper_first(describe_measuring(fact))}."
    by_names = _NAMELESS if not fact.names else _PLACED if set(fact.names) == {"location"} else {}
    template = by_names.get(fact.code) or _TEMPLATES[fact.code]
    parts = _PARTS[fact.code](fact) if fact.code in _PARTS else {}
    return fill(template, fact, **parts)


def doubt_cause(text: str) -> str:
    """A cause of what was not settled."""
    return f"If it is real: {lower_first(text)}"


def lower_first(text: str) -> str:
    """Begin it in the middle of a sentence; a name as CPU keeps its letters."""
    return text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def describe_recompile(one: Recompile) -> str:
    """Describe a guard that failed, the line that made it, and where that is."""
    made = f" (made by `{one.code}`)" if one.code else ""
    return f"{one.guard}{made}{f' at {one.location}' if one.location else ''}"


_AT = "[ (made by `{line}`)][ at {location}]"
_FUSED = "{before:kernel} before, {after} now[ ([{was} -> ]{now})]"
_TEMPLATES: Mapping[Code, str] = {
    Code.GRAPH_BREAK: f"New graph break{_AT}: {{reason}}",
    Code.GRAPH_BREAK_GONE: f"A graph break is gone{_AT}, which leaves a larger graph: {{reason}}",
    Code.RECOMPILED: f"Recompiled because {{reason}}{_AT}",
    Code.RECOMPILED_NO_MORE: (
        f"One graph serves what was recompiled before, because {{reason}}{_AT}: its code may be slower."
    ),
    Code.GUARDS_CHANGED: (
        "Guards went from {before} to {after}. A compile makes each of them, and every call checks them."
    ),
    Code.PRECISION_CHANGED: (
        "The precision of the generated code changed[; it now uses {added}][; it uses far more of {more}]"
        "[; it no longer uses {removed}]."
    ),
    Code.CALLS_ADDED: (
        "[No longer fused: {calls:named} ({calls:extern call}); no kernel fuses {operators} any more"
        "|[The generated code calls {calls:named} now, which no kernel is fused with"
        "|No longer fused: {calls:operator}]]."
    ),
    Code.KERNELS_SPLIT: f"Operators are spread over more kernels: {_FUSED}.",
    Code.KERNELS_ADDED: f"There are more kernels, of more operators: {_FUSED}.",
    Code.KERNELS_JOINED: f"Operators are in fewer kernels: {_FUSED}.",
    Code.STACK_CHANGED: "The software or the machine differs[: {differences:named}| from before].",
    Code.CODE_CHANGED: (
        "The generated code changed[; of {kernels:kernel}][, {changed} changed[ ({changed:named})]]"
        "[, {added} added[ ({added:named})]][, {removed} removed[ ({removed:named})]]."
    ),
    Code.IMPORTS_CHANGED: (
        "It imports {files:file} that {files:has} changed since the base[: {files:named}]."
    ),
    Code.WORKLOAD_CHANGED: "The model itself changed{detail}.",
    Code.DEFINITION_CHANGED: "The case is defined differently, so it is another program{detail}.",
    Code.CHANGED_PHASES: "Phases of the compile that changed: {detail}.",
    Code.MACHINE_CHANGED: MACHINE_CHANGED,
    Code.CACHE_MISSED: "The second process {finds} the compile cache{which}{uses}.",
    Code.KERNELS_MOVED: "Kernels of a call, {before_s:seconds} -> {after_s:seconds} in all: {detail}.",
    Code.OPERATIONS_CHANGED: "The compiler captured {after:operation}, {before} before.",
    Code.EAGER_TOO: (
        "Eager changed as well, by {eager:slower}, and compiled by {compiled:slower}: the cause is in"
        " [{in_pairs:?}the model or its libraries|the model, its libraries or the host]."
    ),
    Code.EAGER_ALONE: (
        "Only eager changed: its latency by {eager:slower}, compiled latency by {compiled:slower}."
    ),
    Code.UNEXPLAINED: "Unexplained: nothing that was recorded explains it.",
    Code.MORE: "... and {more} more.",
    Code.CODE_SAME: (
        "The generated code is the same[{in_pairs:?}, and so is the machine: look at Python code outside the"
        " graphs, or at the libraries that it calls|: look at the machine, or at Python code outside the"
        " graphs]."
    ),
    Code.CODE_TUNED: (
        "The generated code is the same, but autotuning chose other configurations, which may differ in"
        " speed."
    ),
    Code.KERNELS_STEADY: (
        "No kernel's time on the device changed: the change is between them, or on the host."
    ),
}
_PLACED: Mapping[Code, str] = {  # where the measurer's own words may not be shown, and a line may
    Code.GRAPH_BREAK: "New graph break at {location}; why is in the run's summary.",
    Code.RECOMPILED: "It recompiled at {location}; why is in the run's summary.",
}
_NAMELESS: Mapping[Code, str] = {
    Code.GRAPH_BREAK: "There are new graph breaks; their places are in the run's summary.",
    Code.RECOMPILED: "It recompiled; the reasons are in the run's summary.",
    Code.RECOMPILED_NO_MORE: "One graph serves what was recompiled before: its code may be slower.",
    Code.GRAPH_BREAK_GONE: "Graph breaks are gone, which leaves larger graphs.",
}


def _describe_changes(fact: Fact) -> dict[str, str]:
    changes = [f"{key} {words[0]} -> {words[-1]}" for key, words in fact.names.items() if words]
    rest = count_rest(fact.numbers.get("more", 0))
    return {"detail": f": {', '.join(changes)}{rest}" if changes else ""}


def _describe_phases(fact: Fact) -> dict[str, str]:
    phases = [
        f"{phase} by {'+' if after >= before else '-'}{render_seconds(abs(after - before))}"
        f" to {render_seconds(after)}"
        for phase, before, after in _list_phases(fact)
    ]
    return {"detail": ", ".join(phases)}


def _list_phases(fact: Fact) -> list[tuple[str, float, float]]:
    """Each phase with its own seconds before and after, in the fact's order."""
    ordered = dict.fromkeys(key.removesuffix(BEFORE).removesuffix(AFTER) for key in fact.numbers)
    return [
        (phase, fact.numbers.get(phase + BEFORE, 0.0), fact.numbers.get(phase + AFTER, 0.0))
        for phase in ordered
        if phase in (*PHASES, OTHER_PHASE)
    ]


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


_PARTS: Mapping[Code, Callable[[Fact], dict[str, str]]] = {
    Code.CACHE_MISSED: _describe_cache,
    **dict.fromkeys((Code.WORKLOAD_CHANGED, Code.DEFINITION_CHANGED), _describe_changes),
    Code.CHANGED_PHASES: _describe_phases,
    Code.KERNELS_MOVED: _describe_device_time,
}
