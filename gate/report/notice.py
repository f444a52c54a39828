"""What the exit code means, said out loud where it hides something; pure."""

from __future__ import annotations

from collections.abc import Mapping

from gate.errors import ExitCode
from gate.records import Outcome

_PARTIAL = "PASS in what was judged, but not everything has a baseline: --fail-on new"
_HIDDEN: Mapping[Outcome, str] = {
    Outcome.INCOMPLETE: "At least one planned case crashed, hung or is missing: nothing is known about it.",
    Outcome.REGRESSION: "At least one metric that decides got worse.",
    Outcome.INCONCLUSIVE: (
        "It could not tell whether something got worse: this is neither a pass nor a regression.\n"
        "Measure more (`--trials`), or let it fail with `--fail-on inconclusive`."
    ),
    Outcome.NOTHING_COMPARED: (
        "No baseline applied, or all is quarantined: everything was measured and nothing was judged."
    ),
}


def render_exit_notice(outcome: Outcome, exit_code: ExitCode, *, is_waived: bool = False) -> str:
    """Return what to print last: "" after a plain pass, loud lines where exit 0 hides the outcome.

    ``is_waived`` is whether it is 0 because somebody takes the lack of baselines.
    """
    if exit_code is not ExitCode.PASS:
        return f"exit {int(exit_code)} ({_PARTIAL if outcome is Outcome.PASS else outcome.value})"
    if outcome not in _HIDDEN:
        return ""
    because = "an approval takes it; the notes say whose" if is_waived else "--fail-on lets it pass"
    lines = (f"{outcome.value}, BUT EXIT 0: {because}.", *_HIDDEN[outcome].split("\n"))
    return "\n".join(f"!! {line}" for line in lines)
