"""Whether a machine was quiet enough for what is kept: a baseline, a calibration."""

from __future__ import annotations

from gate.decide.evidence.disturbed import list_hopeless, note_disturbed
from gate.errors import MachineError
from gate.records import Run
from gate.report.words.notes import write_note
from gate.units import join_some

_CASES_NAMED = 3


def refuse_disturbed(run: Run, fewest: int, *, anyway: bool) -> None:
    """Refuse to learn from a machine that others used: what it varied by would be taken for the code's.

    Raises:
        MachineError: Of a case trials were disturbed, fewer than ``fewest`` were not, and nobody wants it
            ``anyway``.
    """
    hopeless = list_hopeless(run, fewest)
    if not hopeless or anyway:
        return
    told = " ".join(map(write_note, note_disturbed(run)))
    what = f"fewer than {fewest} undisturbed trials came back of {join_some(hopeless, _CASES_NAMED)}. {told}"
    raise MachineError(what, "Run it again once the machine is quiet; --anyway takes what there is.")
