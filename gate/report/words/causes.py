"""Why a case changed, in sentences: one for each of its causes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gate.records import AFTER, BEFORE, OTHER_PHASE, PHASES, PLACES, USES, Code, Fact, Recompile
from gate.records.facts import OF_TRIALS
from gate.report.words.measuring import describe_measuring
from gate.report.words.templates import MACHINE_CHANGED, describe_shifts, fill, sign_seconds, upper_first
from gate.units import count_rest, render_percent, render_seconds


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
    return f"{one.guard}{_mention_line(one.code, one.location)}"


_SHARED = "the cause is in the model, its libraries or the host"
# Beside a base the host is the same for both arms.
_SHARED_IN_PAIRS = "the cause is in the model or its libraries"
_ELSEWHERE = ": look at the machine, or at Python code outside the graphs"
_ELSEWHERE_IN_PAIRS = (
    ", and so is the machine: look at Python code outside the graphs, or at the libraries that it calls"
)
_TEMPLATES: Mapping[Code, str] = {
    Code.GRAPH_BREAK: "New graph break{at}: {reason}",
    Code.GRAPH_BREAK_GONE: "A graph break is gone{at}, which leaves a larger graph: {reason}",
    Code.RECOMPILED: "Recompiled because {reason}{at}",
    Code.RECOMPILED_NO_MORE: (
        "One graph serves what was recompiled before, because {reason}{at}: its code may be slower."
    ),
    Code.GUARDS_CHANGED: (
        "Guards went from {before} to {after}. A compile makes each of them, and every call checks them."
    ),
    Code.PRECISION_CHANGED: "The generated code {uses}.",
    Code.CALLS_ADDED: "{detail}.",
    Code.KERNELS_SPLIT: (
        "Operators are spread over more kernels: {before:kernel} before, {after} now{detail}."
    ),
    Code.KERNELS_ADDED: (
        "There are more kernels, of more operators: {before:kernel} before, {after} now{detail}."
    ),
    Code.KERNELS_JOINED: "Operators are in fewer kernels: {before:kernel} before, {after} now{detail}.",
    Code.STACK_CHANGED: "The software or the machine differs{detail}.",
    Code.STACK_UNUSED: "Only software that this device does not use differs{detail}.",
    Code.CODE_CHANGED: "The generated code changed{detail}.",
    Code.IMPORTS_CHANGED: "It imports {files:file} that {have} changed since the base{detail}.",
    Code.WORKLOAD_CHANGED: "The model itself changed{detail}.",
    Code.DEFINITION_CHANGED: "The case is defined differently, so it is another program{detail}.",
    Code.LONGEST_PHASES: "Longest phases of the compile: {detail}.",
    Code.CHANGED_PHASES: "Phases of the compile that changed: {detail}.",
    Code.MACHINE_CHANGED: MACHINE_CHANGED,
    Code.CACHE_MISSED: "The second process {finds} the compile cache{which}{uses}.",
    Code.KERNELS_MOVED: "Kernels of a call, {total} in all: {detail}.",
    Code.BOUND_BY: "A call is {limit}-bound: {least}.",
    Code.BOUND_BY_NEITHER: "A call is neither memory- nor arithmetic-bound: {least}.",
    Code.OPERATIONS_CHANGED: "The compiler captured {after:operation}, {before} before.",
    Code.EAGER_TOO: (
        "Eager changed as well, by {eager:slower}, and compiled by {compiled:slower}: {shared}."
    ),
    Code.EAGER_ALONE: (
        "Only eager changed: its latency by {eager:slower}, compiled latency by {compiled:slower}."
    ),
    Code.UNEXPLAINED: "Unexplained: nothing that was recorded explains it.",
    Code.MORE: "... and {more} more.",
    Code.CODE_SAME: ("The generated code is the same{elsewhere}."),
    Code.CODE_TUNED: (
        "The generated code is the same, but autotuning chose other configurations, which may differ in"
        " speed."
    ),
    Code.COMPILERS_TIME: "CPU time of the compilers it started: {change_s:signed_seconds}.",
    Code.KERNELS_STEADY: (
        "No kernel's time on the device changed: the change is between them, or on the host."
    ),
    Code.DEVICE_IDLE: ("The device is busy for {busy:part} of a call: launches or the host limit it."),
    Code.CLOCKS_LOWERED: "The device lowered its clocks: {reasons}.",
    Code.OTHER_PROCESSES: "Other processes on the device: {processes}.",
}
_PLACED: Mapping[Code, str] = {  # where the measurer's own words may not be shown, and a line may
    Code.GRAPH_BREAK: "New graph break{at}; why is in the run's summary.",
    Code.RECOMPILED: "It recompiled{at}; why is in the run's summary.",
}
_NAMELESS: Mapping[Code, str] = {
    Code.GRAPH_BREAK: "There are new graph breaks; their places are in the run's summary.",
    Code.RECOMPILED: "It recompiled; the reasons are in the run's summary.",
    Code.RECOMPILED_NO_MORE: "One graph serves what was recompiled before: its code may be slower.",
    Code.GRAPH_BREAK_GONE: "Graph breaks are gone, which leaves larger graphs.",
    Code.CLOCKS_LOWERED: "The device lowered its clocks.",
}


def _describe_place(fact: Fact) -> dict[str, str]:
    return {"at": _mention_line(fact.name("line"), fact.name("location"))}


def _mention_line(code: str, place: str) -> str:
    return f"{f' (made by `{code}`)' if code else ''}{f' at {place}' if place else ''}"


def _describe_precision(fact: Fact) -> dict[str, str]:
    uses = {"added": "now uses", "more": "uses far more of", "removed": "no longer uses"}
    parts = [f"{verb} {', '.join(fact.names[key])}" for key, verb in uses.items() if fact.names.get(key)]
    return {"uses": " and ".join(parts) or "has another precision"}


def _describe_calls(fact: Fact) -> dict[str, str]:
    """What became a call of its own, and what is not fused any more for it."""
    names = fact.names.get("calls")
    if not names:
        return {"detail": fill("No longer fused: {calls:operator}", fact)}
    calls = f"{', '.join(names)}{count_rest(fact.numbers['calls'] - len(names))}"
    if "operators" not in fact.names:
        return {"detail": f"The generated code calls {calls} now, which no kernel is fused with"}
    lost = ", ".join(fact.names["operators"])
    are = "is an extern call" if fact.numbers["calls"] == 1 else "are extern calls"
    return {"detail": f"No longer fused: {calls} {are}; no kernel fuses {lost} any more"}


def _describe_fusion(fact: Fact) -> dict[str, str]:
    was, now = (", ".join(fact.names.get(key, ())) for key in ("was", "now"))
    return {"detail": f" ({was} -> {now})" if was and now else f" ({now})" if now else ""}


def _describe_stack(fact: Fact) -> dict[str, str]:
    named = fact.names.get("differences", ())
    rest = count_rest(fact.numbers["differences"] - len(named))
    return {"detail": f": {', '.join(named)}{rest}" if named else " from before"}


def _describe_kernels(fact: Fact) -> dict[str, str]:
    verbs = [verb for verb in ("changed", "added", "removed") if fact.numbers.get(verb)]
    parts = [f"{fact.numbers[verb]:.0f} {verb}{_name_kernels(fact, verb)}" for verb in verbs]
    return {"detail": fill("; of {kernels:kernel}: {detail}", fact, detail=", ".join(parts)) if parts else ""}


def _name_kernels(fact: Fact, verb: str) -> str:
    names = fact.names.get(verb, ())
    rest = count_rest(fact.numbers[verb] - len(names))
    return f" ({', '.join(names)}{rest})" if fact.names else ""


def _describe_changes(fact: Fact) -> dict[str, str]:
    changes = [f"{key} {words[0]} -> {words[-1]}" for key, words in fact.names.items() if words]
    rest = count_rest(fact.numbers.get("more", 0))
    return {"detail": f": {', '.join(changes)}{rest}" if changes else ""}


def _describe_imports(fact: Fact) -> dict[str, str]:
    named, files = fact.names.get("files", ()), round(fact.numbers["files"])
    detail = f": {', '.join(named)}{count_rest(files - len(named))}" if named else ""
    return {"have": "has" if files == 1 else "have", "detail": detail}


def _describe_phases(fact: Fact) -> dict[str, str]:
    phases = [
        f"{phase} by {sign_seconds(after - before)} to {render_seconds(after)}"
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
    total = f"{render_seconds(numbers['before_s'])} -> {render_seconds(numbers['after_s'])}"
    named = [_describe_kernel(name, place, numbers) for name, place in zip(names, PLACES, strict=False)]
    if not named:
        return {"total": total, "detail": fill("the time of {moved} of them changed", fact)}
    return {"total": total, "detail": f"{', '.join(named)}{count_rest(numbers['moved'] - len(named))}"}


def _describe_kernel(name: str, place: str, numbers: Mapping[str, float]) -> str:
    before_s, after_s = numbers.get(place + BEFORE), numbers.get(place + AFTER)
    if before_s is None:
        return f"{name} is new with {render_seconds(after_s or 0.0)}"
    if after_s is None:
        return f"{name} is gone, {render_seconds(before_s)}"
    return f"{name} {render_seconds(before_s)} -> {render_seconds(after_s)}"


def _describe_bound(fact: Fact) -> dict[str, str]:
    limit, share = next(iter(fact.numbers.items()), ("memory", 0.0))
    percent = render_percent(share, signed=False)
    return {"limit": limit, "least": f"{limit} alone takes {percent} of it at this machine's measured rate"}


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
    Code.GRAPH_BREAK: _describe_place,
    Code.GRAPH_BREAK_GONE: _describe_place,
    Code.RECOMPILED: _describe_place,
    Code.RECOMPILED_NO_MORE: _describe_place,
    Code.PRECISION_CHANGED: _describe_precision,
    Code.CALLS_ADDED: _describe_calls,
    **dict.fromkeys((Code.KERNELS_SPLIT, Code.KERNELS_ADDED, Code.KERNELS_JOINED), _describe_fusion),
    **dict.fromkeys((Code.STACK_CHANGED, Code.STACK_UNUSED), _describe_stack),
    Code.CACHE_MISSED: _describe_cache,
    Code.EAGER_TOO: lambda fact: {"shared": _SHARED_IN_PAIRS if fact.numbers.get("in_pairs") else _SHARED},
    Code.CODE_SAME: lambda fact: {
        "elsewhere": _ELSEWHERE_IN_PAIRS if fact.numbers.get("in_pairs") else _ELSEWHERE
    },
    Code.CODE_CHANGED: _describe_kernels,
    Code.IMPORTS_CHANGED: _describe_imports,
    **dict.fromkeys((Code.WORKLOAD_CHANGED, Code.DEFINITION_CHANGED), _describe_changes),
    Code.LONGEST_PHASES: lambda fact: {
        "detail": ", ".join(f"{phase} {render_seconds(after)}" for phase, _, after in _list_phases(fact))
    },
    Code.CHANGED_PHASES: _describe_phases,
    Code.MACHINE_CHANGED: describe_shifts,
    Code.KERNELS_MOVED: _describe_device_time,
    **dict.fromkeys((Code.BOUND_BY, Code.BOUND_BY_NEITHER), _describe_bound),
}
