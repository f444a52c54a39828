"""What may be told of an upgrade of the stack, and what to do next about it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable
from dataclasses import replace

from gate.decide.conclude.outcome import FailOn
from gate.decide.explain.side_advice import list_pair_notes
from gate.publish.ci_run import CiRun
from gate.publish.telling import make_result
from gate.publish.trusted import Base, make_trusted_verdict, note_unknown
from gate.publish.trusted_result import TrustedResult
from gate.records import Outcome, Run, Status, Verdict
from gate.report.markdown import escape_code
from gate.report.upgrade import find_stacks, render_upgrade

_MAX_NAMED = 6  # cases in a command
MAX_COMMAND = 1200  # characters: six long case ids


def make_upgrade_finding(
    verdict: Verdict, base: Base, run: CiRun, fail_on: FailOn = FailOn.REGRESSION
) -> TrustedResult:
    """Make what may be told of an upgrade's verdict that anybody could have written."""
    trusted = make_trusted_verdict(verdict, base, run)
    shown = Run(
        cases=trusted.cases, environment=trusted.environment, provenance=trusted.provenance, finished=True
    )
    notes = (*note_unknown(verdict, trusted.cases), *list_pair_notes(shown, trusted, base.policy))
    return replace(
        make_result(verdict, replace(trusted, notes=notes), run, fail_on),
        steps=list_upgrade_steps(trusted, can_refresh=base.can_refresh),
        preface=render_upgrade(trusted, escape_code, find_stacks(verdict)),
        can_refresh=base.can_refresh,
    )


def list_upgrade_steps(verdict: Verdict, *, can_refresh: bool = True) -> tuple[str, ...]:
    """What to do next about an upgrade, in Markdown: fixed words and cases that the base commit knows.

    ``can_refresh`` is whether a workflow of the repository records baselines.
    """
    worse = _list_cases(verdict, _WORSE)
    missing, undecided = (_list_cases(verdict, {one}) for one in (Status.MISSING, Status.INCONCLUSIVE))
    if worse:
        return (
            "Stay on the old stack until this is fixed.",
            _suggest_pairs("To see it again", worse),
            _CLOSING,
        )
    if missing:
        read = (
            "Read the log of the run: did these cases fail on the old stack, or was there no time for them?"
        )
        return (f"{read} {_AGAIN}.", _suggest_pairs("Or compare them alone", missing), _CLOSING)
    if undecided:
        alone = _suggest_pairs("Or compare these cases alone", undecided)
        return (f"{_AGAIN}: more pairs may tell.", alone, _CLOSING)
    if verdict.outcome is not Outcome.PASS:
        return ()  # nothing was judged: what every check says of that holds
    record = "start the workflow `gate-refresh` on that branch"
    by_hand = "record its baselines there, on that machine, by `compile-gate baseline refresh`"
    return (f"Take the new stack: pin it on a branch, and {record if can_refresh else by_hand}.",)


_WORSE = frozenset({Status.REGRESSED, Status.FAILED})
_AGAIN = "Start the workflow `upgrade` again, by hand or with more `minutes`"
_CLOSING = (
    "The first scheduled run that passes closes this issue. One by hand does not: it may be of other cases,"
    " or of another stack."
)


def _list_cases(verdict: Verdict, statuses: Collection[Status]) -> list[str]:
    rows = (one for one in verdict.comparisons if one.decides and one.status in statuses)
    return list(dict.fromkeys(one.case_id for one in rows))


def _suggest_pairs(why: str, case_ids: Iterable[str]) -> str:
    """The command for who has both stacks on that machine, by some of the cases."""
    named = shlex.quote(",".join([*case_ids][:_MAX_NAMED]))
    command = f"compile-gate ab --base-python OLD --head-python NEW --select {named}"
    return f"{why}, on that machine, with both interpreters: {escape_code(command, MAX_COMMAND)}"
