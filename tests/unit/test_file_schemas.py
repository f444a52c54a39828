import json
from typing import Any

import jsonschema
import pytest
from file_schemas import KINDS, ROOTS, make_schema

from gate.files.codec import BASELINE, RUN, FileKind, encode
from gate.files.schema import read_schema
from gate.records.cases import Case, Metric
from gate.records.run import Baseline, Provenance, Run, Trial
from tests.hosts import CPU_HOST
from tests.make import make_baseline

RUN_RECORD = Run(
    cases=(Case(id="a/b", model="a", dynamic=None),),
    environment=CPU_HOST,
    provenance=Provenance(),
    trials=(Trial(case_id="a/b", index=0, samples={Metric.DRIFT: (0.5,)}),),
)
BASELINE_RECORD = make_baseline("a/b", {Metric.GRAPH_BREAKS: (0.0, 0.0)}, definition="d")


@pytest.mark.parametrize("name", ROOTS)
def test_every_schema_is_valid(name: str) -> None:
    """It is valid by the validator's metaschema."""
    jsonschema.Draft202012Validator.check_schema(json.loads(read_schema(name)))


def test_every_schema_has_an_identity_and_a_title() -> None:
    """The id has the version of the file's format."""
    schemas = [json.loads(read_schema(name)) for name in ROOTS]
    assert schemas[0]["$id"] == "urn:compile-gate:config:1"
    assert schemas[0]["title"] == "compile-gate: gate.yml"
    assert (
        len({schema["$id"] for schema in schemas})
        == len({schema["title"] for schema in schemas})
        == len(schemas)
    )


@pytest.mark.parametrize("name", KINDS)
def test_a_schema_states_the_keys_bounds_and_defaults_of_the_records(name: str) -> None:
    """What a file without a key means is read there, so a default that changes is another format."""
    assert json.loads(read_schema(name)) == make_schema(name)


@pytest.mark.parametrize(("kind", "record"), [(RUN, RUN_RECORD), (BASELINE, BASELINE_RECORD)])
def test_what_is_written_is_valid(kind: FileKind[Any], record: Run | Baseline) -> None:
    """A written file is valid by its schema."""
    content = json.loads(kind.encode(record))
    jsonschema.validate(content, make_schema(kind.name))


@pytest.mark.parametrize(
    ("keys", "is_valid"),
    [
        ({}, True),
        ({"schema": "compile-gate/run/2"}, False),
        ({"other": 1}, False),
        ({"trials": [{"case_id": "a/b", "index": 0, "samples": {"drift": ["x"]}}]}, False),
        ({"trials": [{"case_id": "a/b", "index": 0, "samples": {"dirft": [1]}}]}, False),
        ({"trials": [{"case_id": "a/b"}]}, False),
    ],
)
def test_a_schema_refuses_what_the_decoder_refuses(keys: dict[str, object], is_valid: bool) -> None:
    """Keys, types, enumerations and required fields."""
    content = {"schema": "compile-gate/run/1", **encode(RUN_RECORD), **keys}
    assert is_valid == jsonschema.Draft202012Validator(make_schema("run")).is_valid(content)
