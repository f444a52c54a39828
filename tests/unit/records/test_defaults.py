"""What a stored file means by a key that it lacks, as an older one or one of another tool may."""

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from gate.files.codec import BASELINE, BISECTION, CALIBRATION, RUN, SHOWN, VERDICT
from gate.records.cases import Case, DType, Kind, Mode, Task
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


RECORDS = {record.__name__: record for kind in KINDS for record in list_records(kind.record)}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_a_key_that_a_file_lacks_means_nothing_was_seen(record: type[Any]) -> None:
    """It is nothing, unknown or none, but for the few keys that say how something usually is."""
    assert list_defaults(record) == DEFAULTS.get(record, {})
