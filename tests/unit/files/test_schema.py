"""The schemas of files that people write fit the records, and each mistake has key, problem and fix."""

import dataclasses
import json
import typing
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from gate.errors import FileError
from gate.files.codec import BASELINE, encode
from gate.files.invalid import MAX_INVALID
from gate.files.schema import _choose_branch, get_example, list_invalid, read_schema
from gate.kinds import KIND_SPECS
from gate.project.entries import GateFile
from gate.project.model_entries import RegistryFile
from gate.records.cases import Metric
from gate.store.acceptances import AcceptedFile
from gate.store.anchor import AnchorFile
from gate.store.commit_files import CommitFile
from tests.make import make_baseline

FILES = (GateFile, RegistryFile, AcceptedFile, AnchorFile, CommitFile)
SCHEMAS: dict[str, Any] = {file.SCHEMA: json.loads(read_schema(file.SCHEMA)) for file in FILES}


def list_records(annotation: Any) -> Iterator[type[Any]]:
    """The records that a type is made of."""
    if dataclasses.is_dataclass(annotation):
        yield typing.cast("type[Any]", annotation)
        parts = list(typing.get_type_hints(annotation).values())
    else:
        parts = list(typing.get_args(annotation))
    for part in parts:
        yield from list_records(part)


RECORDS = {
    f"{file.SCHEMA}.{record.__name__}": (file, record) for file in FILES for record in list_records(file)
}


@pytest.mark.parametrize(("file", "record"), RECORDS.values(), ids=RECORDS)
def test_a_schema_has_the_keys_of_its_record(file: type[Any], record: type[Any]) -> None:
    """All in their order, with the required ones and the others' defaults."""
    schema = SCHEMAS[file.SCHEMA]
    described = schema if record is file else schema["$defs"][record.__name__]
    fields = dataclasses.fields(record)
    assert list(described["properties"]) == [field.name for field in fields]
    assert not described["additionalProperties"]
    for field in fields:
        has_default = {field.default, field.default_factory} != {dataclasses.MISSING}
        assert (field.name in described["required"]) != has_default
        if field.default is not dataclasses.MISSING:
            assert described["properties"][field.name]["default"] == encode(field.default)


def list_keys(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keys of a schema, each with its subschema."""
    for owner, described in [("", schema), *schema["$defs"].items()]:
        for key, subschema in described.get("properties", {}).items():
            yield f"{owner}.{key}", subschema


# What was accepted of one commit only the gate writes.
KEYS = {
    f"{name}{key}": (name, key)
    for name in ("config", "registry", "accepted", "anchor")
    for key, _ in list_keys(SCHEMAS[name])
}


@pytest.mark.parametrize(("name", "key"), KEYS.values(), ids=KEYS)
def test_every_key_is_explained(name: str, key: str) -> None:
    """In a sentence or more, with a valid example that is not the default."""
    described = dict(list_keys(SCHEMAS[name]))[key]
    assert described["description"].endswith(".")
    (example,) = described["examples"]
    assert "default" not in described or described["default"] != example
    whole = {**described, "$defs": SCHEMAS[name]["$defs"]}
    jsonschema.Draft202012Validator(whole).validate(example)


def test_every_setting_of_a_kind_has_a_schema() -> None:
    """With its default, if it has one."""
    for kind, spec in KIND_SPECS.items():
        described = SCHEMAS["config"]["$defs"].get(f"{kind.capitalize()}Settings", {"properties": {}})
        defaults = {name: key.get("default") for name, key in described["properties"].items()}
        assert defaults == {name: setting.default for name, setting in spec.settings.items()}


MODEL = {"name": "m", "factory": "a.b:c", "cases": [{}]}
CASE = "models[0].cases[0]"


def in_case(**keys: object) -> dict[str, object]:
    """A gate.yml with one case of these keys."""
    return {"models": [{**MODEL, "cases": [keys]}]}


@pytest.mark.parametrize(
    ("keys", "key", "problem", "fix"),
    [
        ({"trials": True}, "trials", "expected a whole number from 1 to 10000, got True", "`trials: 2`"),
        ({"trials": 2.0}, "trials", "expected a whole number from 1 to 10000, got 2.0", "default is 1."),
        ({"trials": 2**63}, "trials", "expected a whole number from 1 to 10000, got a huge integer", ""),
        (
            {"budget_s": 0},
            "budget_s",
            "expected a number above 0, got 0",
            "`budget_s: 900`; the default is 330.",
        ),
        ({"budget_s": float("nan")}, "budget_s", "expected a number above 0, got nan", ""),
        ({"error_budget": "x"}, "error_budget", "expected a percentage above 0%", "the default is 1%."),
        ({"error_budget": 0.7}, "error_budget", "expected a percentage above 0%", "the default is 1%."),
        ({"error_budget": 1}, "error_budget", "expected a percentage above 0%", "Write 1% or 0.01."),
        ({"reference_models": "no"}, "reference_models", "expected true or false", "default is true."),
        ({"select": []}, "select", "expected a text that is not empty, got a list of 0", "`select: "),
        ({"select": "a\ud800"}, "select", "expected text that UTF-8 can hold, got 'a\\ud800'", ""),
        ({"device": "gpu"}, "device", "expected cpu, cuda or cuda:N, got 'gpu'", "`device: cuda`"),
        ({"device": "cpu\n"}, "device", "expected cpu, cuda or cuda:N, got 'cpu\\n'", ""),
        ({"registry": "a"}, "registry", "expected a list, got 'a'", "`registry: [perf/models.yml]`."),
        ({"registry": [""]}, "registry[0]", "expected a path", "`registry: ["),
        ({"sampling": 5}, "sampling", "expected a mapping, got 5", "`sampling: {super_blocks: 30"),
        ({"fail_on": "nevr"}, "fail_on", "expected one of new, inconclusive", "Did you mean 'never'?"),
        ({"fail_on": "x"}, "fail_on", "expected one of new, inconclusive", "`fail_on: never`."),
        ({"selct": "x"}, "selct", "unknown key", "Did you mean 'select'?"),
        ({"a b": "x"}, "['a b']", "unknown key", "Known keys: baselines, budget_s, "),
        (
            {"thresholds": {"dirft": {}}},
            "thresholds.dirft",
            f"expected one of {len(Metric)} names",
            "'drift'?",
        ),
        ({"thresholds": {"x": {}}}, "thresholds.x", f"expected one of {len(Metric)} names", "Write one of"),
        ({"models": [{**MODEL, "cases": []}]}, "models[0].cases", "expected a list of at least one case", ""),
        (
            {"models": [{"nme": "m"}]},
            "models[0]",
            "the key 'factory' is missing",
            "`factory: mixer.bench:build`",
        ),
        (
            in_case(size=[]),
            f"{CASE}.size",
            "expected one size or more, got a list of 0",
            "`size: [smoke, full]`",
        ),
        (
            in_case(dtype=["x"]),
            f"{CASE}.dtype[0]",
            "expected one of float32, bfloat16, float16",
            "Write, for",
        ),
        (
            in_case(dtype=5),
            f"{CASE}.dtype",
            "expected one of float32, bfloat16, float16, got 5",
            "`dtype: bf",
        ),
        (in_case(kind="x"), f"{CASE}.kind", "expected one of call, shapes, ", "`kind: shapes`"),
        (
            in_case(settings={"vary": {"a": 1}}, kind="shapes"),
            f"{CASE}.settings.vary.a",
            "expected a list",
            "",
        ),
    ],
)
def test_a_mistake_has_its_key_problem_and_fix(
    keys: dict[str, object], key: str, problem: str, fix: str
) -> None:
    """From the key's entry in the schema of gate.yml."""
    invalid = list_invalid("config", {"version": 1, **keys})
    mistake = next(item for item in invalid if item.key == key and item.problem.startswith(problem))
    assert fix in mistake.fix


def test_a_key_that_is_meant_by_another_is_not_missing() -> None:
    """`nme` stands for `name`."""
    invalid = list_invalid("config", {"version": 1, "models": [{"nme": "m", "factory": "a:b"}]})
    assert [(item.key, item.problem) for item in invalid] == [
        ("models[0]", "the key 'cases' is missing"),
        ("models[0].nme", "unknown key"),
    ]


def test_of_alternatives_the_one_is_meant_that_fits_furthest_in() -> None:
    """By its innermost mistake, and the first of two that are as deep."""

    def make_leaf(branch: int, depth: int) -> SimpleNamespace:
        return SimpleNamespace(relative_schema_path=[branch], relative_path=["key"] * depth)

    shallow, missing, deep, other = (make_leaf(*location) for location in ((0, 1), (1, 0), (1, 2), (2, 2)))
    assert _choose_branch(SimpleNamespace(context=[shallow, missing, deep, other])) == [missing, deep]


def test_no_more_mistakes_are_looked_for_than_a_screen_holds() -> None:
    """A hostile file of a million mistakes costs no more than one of twenty."""
    for keys in ({"registry": [7] * 100_000}, {f"key {index}": 1 for index in range(100_000)}):
        assert len(list_invalid("config", keys)) == MAX_INVALID


def test_an_example_stands_where_its_key_does() -> None:
    """At the top of the file, or in an entry of a list; text without quotes."""
    assert get_example("config", "trials") == "2"
    assert get_example("accepted", "accepted.case") == "bert/*"


def test_the_mistakes_of_a_baseline_are_reported_at_once() -> None:
    """Each with its key, by the baseline's schema."""
    record = make_baseline("a/b", {Metric.GRAPH_BREAKS: (0.0,)}, definition="d")
    content = {
        "schema": BASELINE.schema,
        **encode(record),
        "definition": 1,
        "trials": {"dirft": [1], "drift": ["x"]},
    }
    with pytest.raises(FileError) as caught:
        BASELINE.decode(json.dumps(content).encode(), "a.json")
    errors = [caught.value, *caught.value.others]
    assert [error.what for error in errors] == [
        "a.json: definition: expected text, got 1",
        f"a.json: trials.dirft: expected one of {len(Metric)} names, got 'dirft'",
        "a.json: trials.drift[0]: expected a number from -2100 to 2100, got 'x'",
    ]
    assert errors[0].fix == "Write text there."
    assert errors[2].fix == "Write a number from -2100 to 2100 there."


def test_a_key_without_an_example_is_named_with_what_it_takes() -> None:
    """Files that only the gate writes have none."""
    fixes = {
        item.problem: item.fix for item in list_invalid("run", {"cases": [{"model": "m", "dtype": "x"}]})
    }
    assert fixes["the key 'id' is missing"] == "Add 'id' there."
    problem = "expected one of float32, bfloat16, float16, got 'x'"
    assert fixes[problem] == "Write one of float32, bfloat16, float16."


@pytest.mark.parametrize(
    ("expires", "valid"),
    [("2026-01-01", True), ("2999-01-01", False), ("2026-02-30", False), (20260101, False)],
)
def test_a_day_is_one_of_the_calendar_within_a_year(expires: object, *, valid: bool) -> None:
    """It may be past; a number is no day."""
    entry = {"case": "bert/*", "owner": "ada", "reason": "flaky", "expires": expires}
    invalid = list_invalid("config", {"version": 1, "quarantine": [entry]})
    assert [item.key for item in invalid] == ([] if valid else ["quarantine[0].expires"])
    assert all(item.problem.startswith("expected a day at most 366 days from now") for item in invalid)
