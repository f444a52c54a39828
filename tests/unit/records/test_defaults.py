"""What a file or message means by a key that it lacks, as an older one or one of another tool may."""

import dataclasses
import math
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from gate.check.procedure import CheckTerms, PairLimit
from gate.check.schedule import EVERY_METRIC, Content, Slot
from gate.check.work import Unit, UnitResult
from gate.files.codec import BASELINE, BISECTION, CALIBRATION, RUN, SHOWN, VERDICT
from gate.files.messages import ServerAnswer, ServerOrder
from gate.records.cases import Acceptance, Case, DType, Kind, Mode, Policy, Task
from gate.records.events import Progress
from gate.records.protocol import Offer, RoundPlan, Sampling, WorkerRequest, WorkerResult
from gate.records.run import Baseline, CaseFailure, Extent, Pairing, Run, Trial
from gate.records.shown import ShownFailure
from gate.records.verdict import Tally

KINDS = (RUN, VERDICT, SHOWN, BASELINE, CALIBRATION, BISECTION)
# All that is more than nothing.
DEFAULTS: dict[type[Any], dict[str, object]] = {
    Case: {
        "task": Task.INFERENCE,
        "dtype": DType.FLOAT32,
        "size": "smoke",
        "mode": Mode.DEFAULT,
        "backend": "inductor",
        "kind": Kind.CALL,
        "expected_s": 30.0,
    },
    Trial: {"arm": "head", "pairing": Pairing.ALONE, "extent": Extent.WHOLE, "drift_definition": 1},
    Baseline: {"drift_definition": 1},
    Run: {"trials_planned": 1},
    CaseFailure: {"arm": "head"},
    ShownFailure: {"arm": "head"},
    Tally: {"finished": True},
    WorkerResult: {"drift_definition": 1},
    Sampling: {"super_blocks": 15, "block_s": 0.010, "warmup_s": 0.2, "max_rounds_s": 20.0, "drift_seeds": 2},
    WorkerRequest: {"warms_up": True, "channel": -1},
    ServerOrder: {"channel": -1},
    Slot: {"metrics": EVERY_METRIC},
    PairLimit: {"end_s": math.inf},
    CheckTerms: {"trials": 1, "max_trials": 1, "pair_budget_s": math.inf},
    Acceptance: {"environment": "*"},
    Policy: {"error_budget": 0.01, "times_judged": 1},
}


def list_records(annotation: Any) -> Iterator[type[Any]]:
    """The records that a type is made of."""
    parts = typing.get_args(annotation)
    if dataclasses.is_dataclass(annotation):
        yield typing.cast("type[Any]", annotation)
        parts = tuple(typing.get_type_hints(annotation).values())
    for part in parts:
        yield from list_records(part)


def list_defaults(record: type[Any]) -> dict[str, object]:
    """The defaults of a record's keys, but for those that are empty or records with only such keys."""
    defaults: dict[str, object] = {}
    for field in dataclasses.fields(record):
        value = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        is_empty_record = dataclasses.is_dataclass(value) and not isinstance(value, type)
        if value and value is not dataclasses.MISSING and not is_empty_record:
            defaults[field.name] = value
    return defaults


# What is sent between processes, asked of a run, decided by and shown.
SENT = (WorkerRequest, WorkerResult, Offer, RoundPlan, ServerOrder, ServerAnswer, Unit, UnitResult)
ROOTS = (*(kind.record for kind in KINDS), *SENT, Slot, Content, PairLimit, CheckTerms, Progress)
RECORDS = {record.__name__: record for root in ROOTS for record in list_records(root)}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_a_key_that_a_file_lacks_means_nothing_was_seen(record: type[Any]) -> None:
    """It is nothing, unknown or none, but for the few keys that say how something usually is."""
    assert list_defaults(record) == DEFAULTS.get(record, {})
