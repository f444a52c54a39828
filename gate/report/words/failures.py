"""How a case failed, and why a machine cannot compile, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gate.records import CaseFailure, Code, Fact, FailureKind, quote_failure
from gate.records.protocol import WorkerFailure
from gate.report.words.templates import fill
from gate.units import join_some

_UNFINISHED = "before the result was complete; see the log"
_PHRASES: Mapping[str, str] = {
    Code.RAISED: "{message}",
    Code.NO_END: "timed out after {limit_s:.6g} s{where}",
    Code.SIGKILLED: (
        "killed by SIGKILL, which the gate did not send ([{oom_kills:?}the kernel's out-of-memory killer was"
        " at work meanwhile|most often the machine, or the container's limit, was out of memory]){where}"
    ),
    Code.NO_RESULT: "ended with {status:status}, it left no result{where}",
    Code.RESULT_UNFINISHED: "ended with {status:status}, its result is unfinished{where}",
    Code.RESULT_TOO_LARGE: "ended with {status:status}, its result is larger than {bytes} bytes{where}",
    Code.RESULT_UNREADABLE: "ended with {status:status}, its result cannot be read: {message}{where}",
    Code.PYTEST_ENDED: f"pytest ended with status {{status}} {_UNFINISHED}",
    Code.LANE_LOST: "each of {losses} lanes was lost while it measured this case",
    Code.PYTEST_RAISED: f"pytest ended with {{message}} {_UNFINISHED}",
}
_LACKS: Mapping[str, str] = {
    Code.NO_GPU_EACH: "its two processes need a GPU each, and workers see one",
    Code.NO_BFLOAT16: (
        "this GPU compiles no bfloat16: its compute capability is {capability:.1f}, {needed:.1f} is needed"
    ),
    Code.TOO_LITTLE_MEMORY: "it needs {needed_gib:.6g} GiB at least, and this GPU has {gib:.1f}",
    Code.PACKAGES_LACKING: "{listed} {verb} not installed{advice}",
}
# Of those that quote others, where that may not be shown.
_WORDLESS: Mapping[str, str] = {
    FailureKind.ERROR: "an exception; see the run's log",
    FailureKind.CRASH: "the process died; see the run's log",
    FailureKind.KILLED: "the process was killed, most often because memory ran out",
    FailureKind.HANG: "over the time limit",
    FailureKind.NOT_FINITE: "NaN or infinity",
}
_NAMED = 3  # cases spelled out in a line; the rest is counted
_SLOW_FIX = "Raise `trial_timeout_s` in gate.yml, or wait until the machine is idle; {log} says where it was."
_GENERAL_FIX = "Read {log}, then try `compile-gate doctor`."


def describe_failure(failure: CaseFailure) -> str:
    """Describe how a case failed, in one line."""
    return describe_quoted(quote_failure(Code.FAILURE, failure))


def describe_whole(failure: CaseFailure) -> str:
    """Describe it with its kind and where: ``hang in stage rounds: timed out after 300 s``."""
    return f"{failure.kind} in stage {failure.stage}: {describe_failure(failure)}"


def find_place(failure: CaseFailure) -> str:
    """Find the line of the user's code in a traceback, or in a fault handler's dump; ``""`` without one."""
    places = [
        f"{path}:{line}" for path, line in _FRAME.findall(failure.log_tail) if not _FOREIGN.search(path)
    ]
    innermost = 0 if _DUMP in failure.log_tail else -1
    return places[innermost] if places else ""


_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
_FOREIGN = re.compile(
    r"lib/python\d|(^|/)gate/(?!models/)|^<"
)  # installed packages, this one, generated code
_DUMP = "most recent call first"


def describe_quoted(fact: Fact) -> str:
    """Describe the failure that another fact quotes."""
    if fact.name("why") in _LACKS:
        advice = "".join(f"; leave it out here: --select '...,!{case_id}'" for case_id in fact.cases)
        return f"UNAVAILABLE: {_describe_lack(fact, fact.name('why'))}{advice}"
    phrase = _PHRASES.get(fact.name("why"), "{message}")
    if "{message}" in phrase and not fact.name("message"):
        return _WORDLESS.get(fact.name("kind"), "")
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
    text = "; ".join(f"{join_some(case_ids, _NAMED)}: {why}" for why, case_ids in reasons.items())
    return f"UNAVAILABLE: {text}" if text else ""


def _describe_lack(fact: Fact, code: str) -> str:
    packages = fact.names.get("packages", ())
    listed = " and ".join(packages) or "a package that it needs"
    advice = f" (pip install {' '.join(packages)})" if packages else ""
    return fill(_LACKS[code], fact, listed=listed, verb="are" if packages[1:] else "is", advice=advice)


def describe_unprimed(failure: CaseFailure, device: str) -> str:
    """Describe how the primer failed."""
    where = f"on {device}, at stage {failure.stage}"
    if failure.kind is FailureKind.HANG:
        limit_s = failure.fact.numbers["limit_s"]
        return f"warming up took longer than the {limit_s:.6g} s of `trial_timeout_s` in gate.yml, {where}"
    return f"torch.compile does not work here {where}: {describe_failure(failure)}"


def advise_unprimed(kind: FailureKind, told: WorkerFailure | None, log: str) -> str:
    """Advise what fixes a primer's failure, of which it may have ``told``."""
    if kind is FailureKind.HANG:
        return _SLOW_FIX.format(log=log)
    return (told and told.fix) or _GENERAL_FIX.format(log=log)
