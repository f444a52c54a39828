"""Every record and enumeration of the domain: begin to read in :mod:`gate.records.cases`.

All records are frozen, keyword-only and torch-free. Sequences are tuples. Times are in seconds,
memory in bytes, ratios and changes are bare fractions (0.05 is 5 %), and a *change* is positive
when the candidate is worse. Records are parsed at the border (:mod:`gate.files.codec`) and trusted after.
"""

from gate.records.bounds import Time
from gate.records.cases import (
    DEFAULT_BACKEND,
    AbsoluteLimit,
    Acceptance,
    Case,
    DType,
    Kind,
    Metric,
    Mode,
    Override,
    Policy,
    Quarantine,
    Task,
    Threshold,
)
from gate.records.codes import Code
from gate.records.facts import Disturbance, Fact, list_distinct, make_text, name_words
from gate.records.run import (
    BASE_ARM,
    CANDIDATE_ARM,
    EXPECTED_THROTTLING,
    Arm,
    BaseArm,
    Baseline,
    CacheUse,
    CaseFailure,
    CodeIdentity,
    Compiled,
    Conditions,
    Environment,
    Extent,
    FailureKind,
    Frame,
    GraphBreak,
    Measured,
    Pairing,
    Place,
    Provenance,
    Recompile,
    Run,
    Shard,
    Trial,
    Worst,
)
from gate.records.verdict import (
    BROKEN,
    JUDGED,
    MAYBE_WORSE,
    MOVED,
    NOT_WORSE,
    QUIET,
    RED,
    UNJUDGED,
    CaseEvidence,
    Cause,
    CauseKind,
    Change,
    Comparison,
    Estimate,
    KernelChange,
    MachineShift,
    Outcome,
    PairBase,
    Reason,
    SideEvidence,
    Status,
    Tally,
    Verdict,
)
