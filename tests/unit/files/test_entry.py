"""Every key of the files that people write is explained, and its example is right."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from file_schemas import make_schema

from gate.files.entry import advise_key, read_docs
from gate.files.structure import fit
from gate.files.yaml_in import parse_yaml
from gate.project.entries import GateFile
from gate.project.model_entries import RegistryFile
from gate.records.bounds import Entry
from gate.store.acceptances import AcceptedFile

ROOTS = {"config": GateFile, "registry": RegistryFile, "accepted": AcceptedFile}


def list_entries(annotation: Any) -> Iterator[type[Entry]]:
    """The entries that a type is made of."""
    if isinstance(annotation, type) and issubclass(annotation, Entry):
        yield annotation
        parts = list(typing.get_type_hints(annotation, include_extras=True).values())
    else:
        parts = list(typing.get_args(annotation))
    for part in parts:
        yield from list_entries(part)


ENTRIES = {entry.__name__: (name, entry) for name, root in ROOTS.items() for entry in list_entries(root)}
KEYS = [
    pytest.param(name, entry, field, id=f"{entry.__name__}.{field.name}")
    for name, entry in ENTRIES.values()
    for field in dataclasses.fields(entry)  # type: ignore[arg-type] # all entries are dataclasses
]


def test_all_entries_are_found() -> None:
    """The walk reaches what lies in lists, mappings and unions."""
    assert ENTRIES.keys() == {
        "GateFile",
        "Sampling",
        "ThresholdEntry",
        "OverrideEntry",
        "LimitEntry",
        "Quarantine",
        "RegistryFile",
        "ModelEntry",
        "CaseEntry",
        "TestEntry",
        "AcceptedFile",
        "AcceptanceEntry",
    }


@pytest.mark.parametrize(("name", "entry", "field"), KEYS)
def test_every_key_is_explained(name: str, entry: type[Entry], field: dataclasses.Field[Any]) -> None:
    """A sentence or more below the field, ``Example:`` and a value that is right and not the default."""
    doc = read_docs(entry).get(field.name)
    assert doc is not None, f"write a text below {entry.__name__}.{field.name}, as below the other keys"
    assert doc.text.endswith(".")
    assert doc.example
    value = parse_yaml(doc.example.encode(), "the example").value
    hint = typing.get_type_hints(entry, include_extras=True)[field.name]
    assert fit(hint, value) != field.default
    schema = make_schema(name)
    definitions = typing.cast("dict[str, Any]", schema["$defs"])
    described = schema if entry is ROOTS[name] else definitions[entry.__name__]
    key = typing.cast("dict[str, Any]", described["properties"])[field.name]
    assert (key["description"], key["examples"]) == (doc.text, [value])
    jsonschema.Draft202012Validator({**key, "$defs": definitions}).validate(value)


def test_advice_shows_the_example_and_the_default() -> None:
    """What an error says in its second line."""
    assert advise_key(GateFile, "trials") == "Write, for example, `trials: 2`; the default is 1."
    assert advise_key(GateFile, "error_budget").endswith("`error_budget: 0.5%`; the default is 1%.")
    assert advise_key(GateFile, "budget_s").endswith("; the default is 330.")
    assert advise_key(GateFile, "reference_models").endswith("; the default is true.")
    assert advise_key(RegistryFile, "version") == "Write, for example, `version: 1`."
