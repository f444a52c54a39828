"""The tables of keys in docs/configuration.md, from the entries themselves."""

from __future__ import annotations

import builtins
import collections.abc
import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any

from registry_page import render_table

from gate.files.entry import MetricUnits, PathText, read_docs, render_default
from gate.project.entries import GateFile, LimitEntry, OverrideEntry, ThresholdEntry
from gate.project.model_entries import CaseEntry, ModelEntry, TestEntry
from gate.records.bounds import Entry, NotEmpty, Text
from gate.records.cases import Metric, Quarantine
from gate.records.protocol import Sampling
from gate.store.acceptances import AcceptanceEntry
from gate.store.policy import AnchorFile

ENTRIES: tuple[type[Entry], ...] = (
    GateFile,
    ModelEntry,
    CaseEntry,
    TestEntry,
    Sampling,
    ThresholdEntry,
    OverrideEntry,
    LimitEntry,
    Quarantine,
    AcceptanceEntry,
    AnchorFile,
)
_WORDS: Mapping[Any, str] = {
    str: "text",
    Text: "text",
    PathText: "a path",
    MetricUnits: "a number of at least 0",
    bool: "`true` or `false`",
    Mapping[str, object]: "a mapping of keyword arguments",
    Metric: "a [metric](metrics.md)",
    ModelEntry: "a [model](#models)",
    CaseEntry: "a [case](#cases)",
    TestEntry: "a [test](#tests)",
    Sampling: "see [sampling](#sampling)",
    ThresholdEntry: "a [threshold](#thresholds)",
    OverrideEntry: "an [override](#overrides)",
    LimitEntry: "a [limit](#limits)",
    Quarantine: "a [quarantine](#quarantine)",
    AcceptanceEntry: "an [acceptance](#acceptedyml)",
}


def render_keys(entry: type[Any]) -> str:
    """Render the table of the keys of an ``Entry`` (each is a dataclass, which its type cannot say)."""
    rows = []
    hints = typing.get_type_hints(entry, include_extras=True)
    docs, known = read_docs(entry), read_docs(CaseEntry) if entry is TestEntry else {}
    for field in dataclasses.fields(entry):
        doc = docs[field.name]
        text = "As of a [case](#cases)." if doc == known.get(field.name) else doc.text
        value = describe_value(hints[field.name]) + describe_default(entry, field)
        rows.append((f"`{field.name}`", value, f"`{doc.example}`", text))
    return render_table(("key", "value", "example", "what it is for"), rows)


def describe_default(entry: type[Entry], field: dataclasses.Field[Any]) -> str:
    """Describe what holds where a key is left out, if anything does."""
    if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
        return "; required"
    default = render_default(entry, field.name)
    return f"; `{default}` by default" if default else ""


def describe_value(annotation: Any) -> str:  # noqa: ANN401 -- an annotation can be anything
    """Describe the values that a type takes, with their range."""
    arguments = typing.get_args(annotation)
    if annotation in _WORDS:
        return _WORDS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{member}`" for member in annotation)
    match typing.get_origin(annotation):
        case typing.Annotated:
            is_list = isinstance(arguments[1], NotEmpty)
            words = describe_value(arguments[0]) if is_list else str(arguments[1].describe())
        case builtins.tuple:
            words = f"a list, each {describe_value(arguments[0])}"
        case collections.abc.Mapping:
            words = f"a mapping from {describe_value(arguments[0])} to {describe_value(arguments[1])}"
        case _:  # a union: of null, or of a value and a list of such
            others = [part for part in arguments if part is not types.NoneType]
            words = describe_value(others[0]) + (", or a list" if len(others) > 1 else "")
    return words
