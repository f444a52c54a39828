"""Which cases a GPU cannot be judged by, whatever the code: known before minutes are spent on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gate.records import DEFAULT_BACKEND, Case, DType

# Inductor compiles bfloat16 for these and newer; older ones it leaves to eager, with a warning.
_BFLOAT16_CAPABILITY = (8, 0)
_NAMED = 3  # cases spelled out in a line; the rest is counted


def explain_unavailable(case: Case, capability: str) -> str:
    """Say why a GPU of this compute capability (``9.0``) cannot run a case compiled; empty where it can.

    What does not tell its capability can be anything: nothing is ruled out.
    """
    found = _parse_capability(capability)
    if case.dtype is not DType.BFLOAT16 or case.backend != DEFAULT_BACKEND or found is None:
        return ""
    if found >= _BFLOAT16_CAPABILITY:
        return ""
    needed = ".".join(map(str, _BFLOAT16_CAPABILITY))
    return f"this GPU compiles no bfloat16: its compute capability is {capability}, {needed} is needed"


def list_unavailable(cases: Iterable[Case], capability: str) -> dict[str, str]:
    """List the cases that such a GPU cannot run compiled, by id, with the reason."""
    told = {case.id: explain_unavailable(case, capability) for case in cases}
    return {case_id: why for case_id, why in told.items() if why}


def describe_unavailable(unavailable: Mapping[str, str]) -> str:
    """Say in a line which cases are unavailable and why; empty where all are available."""
    if not unavailable:
        return ""
    named = ", ".join(list(unavailable)[:_NAMED])
    more = f" and {len(unavailable) - _NAMED} more" if len(unavailable) > _NAMED else ""
    return f"UNAVAILABLE: {named}{more}: {'; '.join(dict.fromkeys(unavailable.values()))}"


def _parse_capability(text: str) -> tuple[int, int] | None:
    major, _, minor = text.partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None
