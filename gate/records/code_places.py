"""Which facts stand where: the codes that each place of a record may have."""

from __future__ import annotations

from gate.records.codes import Code


def _list_codes(first: Code, last: Code) -> frozenset[Code]:
    """The codes from one to another, in their order, and the text of an older version."""
    ordered = list(Code)
    return frozenset((Code.TEXT, *ordered[ordered.index(first) : ordered.index(last) + 1]))


HEADLINE_CODES = _list_codes(Code.NO_CONFIGURATION, Code.AGAINST_BASE)
# Compiled gives another answer than eager: no drift, however large.
MISMATCH_CODES = frozenset({Code.OUTPUT_FAR, Code.OUTPUT_LOST, Code.OUTPUT_RESHAPED, Code.OUTPUT_DIFFERS})
REMARK_CODES = _list_codes(Code.MACHINE_MOVED, Code.NO_PAIR) | MISMATCH_CODES
# What a trial tells of itself, and what may be why it changed.
OF_TRIALS = frozenset({Code.GRAPH_DIFFERS, Code.MEMORY_KEPT, *MISMATCH_CODES})
CAUSE_CODES = _list_codes(Code.GRAPH_BREAK, Code.UNEXPLAINED) | OF_TRIALS
WARNING_CODES = _list_codes(Code.VARIABLES_DROPPED, Code.OUTPUT_DIFFERS)
NOTE_CODES = _list_codes(Code.NO_BASELINE, Code.REPLAY_MIXES) | {
    *(Code.STOPPED, Code.MACHINE_CHANGED),
    *WARNING_CODES,
}
UNKNOWN_CODES = _list_codes(Code.NO_TRACE, Code.TRACE_CUT) | {Code.UNKNOWN_HERE}
INSTABILITY_CODES = _list_codes(Code.TRIAL_FAILED, Code.PAIRS_VARY)
ATTEMPT_CODES = _list_codes(Code.ARM_FAILED, Code.NOT_JUDGED)
STEP_CODES = _list_codes(Code.CONTINUE, Code.READ_BASE_LOGS)
FAILURE_CODES = _list_codes(Code.RAISED, Code.PACKAGES_LACKING)
EVENT_CODES = _list_codes(Code.UNCOMMITTED_BEFORE, Code.BASE_MISCONFIGURED) | WARNING_CODES
FINDING_CODES = _list_codes(Code.INTERPRETER_DEAD, Code.SERVICE_UNUSED)
