"""JSON Schemas of all files, made from the records; ``generate_docs.py`` writes them to ``gate/schemas/``."""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Mapping
from enum import EnumMeta, StrEnum
from typing import Any, cast

from gate.files.codec import BASELINE, BISECTION, CALIBRATION, RUN, SELFTEST, SHOWN, VERDICT, FileKind, encode
from gate.files.entry import VERSION, read_docs
from gate.files.yaml_in import parse_yaml
from gate.metrics import SPECS, MetricSpec
from gate.project.entries import GateFile
from gate.project.model_entries import RegistryFile
from gate.records.bounds import Entry, Format
from gate.records.cases import Metric
from gate.store.acceptances import AcceptedFile, CommitFile
from gate.store.policy import AnchorFile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Files that people write, each with its title, and those that only the gate writes.
_WRITTEN: Mapping[str, tuple[type, str]] = {
    "config": (GateFile, "gate.yml"),
    "registry": (RegistryFile, "a registry file"),
    "accepted": (AcceptedFile, "accepted.yml"),
    "anchor": (AnchorFile, "anchor.yml"),
    "acceptances": (CommitFile, "what was accepted of one commit"),
}
_KINDS: Mapping[str, FileKind[Any]] = {
    kind.name: kind for kind in (RUN, VERDICT, SHOWN, BASELINE, CALIBRATION, SELFTEST, BISECTION)
}
ROOTS = (*_WRITTEN, *_KINDS)
_SCALARS: Mapping[Any, dict[str, object]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    types.NoneType: {"type": "null"},
    object: {},
}


def render_schema(name: str) -> str:
    """Render the JSON Schema of a kind of file."""
    return json.dumps(make_schema(name), indent=1) + "\n"


def make_schema(name: str) -> dict[str, object]:
    """Make the JSON Schema of a kind of file as plain values."""
    kind, definitions = _KINDS.get(name), dict[str, dict[str, object]]()
    if kind is None:
        record, title = _WRITTEN[name]
        file, root = f"compile-gate/{name}/{VERSION}", _describe_record(record, definitions)
    else:
        file, title, root = kind.schema, f"{name}.json", _describe_record(kind.record, definitions)
        properties = cast("dict[str, object]", root["properties"])
        root["properties"] = {"schema": {"const": file}, **properties}
        root["required"] = ["schema", *cast("list[str]", root["required"])]
    return {
        "$schema": _DIALECT,
        "$id": f"urn:{file.replace('/', ':')}",
        "title": f"compile-gate: {title}",
        **root,
        "$defs": definitions,
    }


def _describe_type(annotation: Any, definitions: dict[str, dict[str, object]]) -> dict[str, object]:  # noqa: ANN401 -- an annotation can be anything
    if annotation in _SCALARS:
        return dict(_SCALARS[annotation])
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        rule = arguments[1]
        base = {} if isinstance(rule, Format) else _describe_type(arguments[0], definitions)
        return {**base, **rule.to_schema()}
    if origin is tuple:
        return {"type": "array", "items": _describe_type(arguments[0], definitions)}
    if origin is Mapping:
        return _describe_mapping(arguments, definitions)
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_describe_type(member, definitions) for member in arguments]}
    return _describe_named(annotation, definitions)


def _describe_mapping(
    arguments: tuple[Any, ...], definitions: dict[str, dict[str, object]]
) -> dict[str, object]:
    described: dict[str, object] = {
        "type": "object",
        "additionalProperties": _describe_type(arguments[1], definitions),
    }
    if arguments[0] is not str:
        described["propertyNames"] = _describe_type(arguments[0], definitions)
    if arguments == (Metric, tuple[float, ...]):
        described["properties"] = {metric.value: _describe_values(spec) for metric, spec in SPECS.items()}
    return described


def _describe_values(spec: MetricSpec) -> dict[str, object]:
    """Describe the values of one metric: what a measurement can give."""
    return {"type": "array", "items": {"type": "number", **spec.domain.to_schema()}}


def _describe_named(annotation: Any, definitions: dict[str, dict[str, object]]) -> dict[str, object]:  # noqa: ANN401 -- a record or an enumeration
    name = annotation.__name__
    if name not in definitions:
        definitions[name] = {}  # taken before its parts are described
        definitions[name] = (
            {"enum": [member.value for member in cast("type[StrEnum]", annotation)]}
            if isinstance(annotation, EnumMeta)
            else _describe_record(annotation, definitions)
        )
    return {"$ref": f"#/$defs/{name}"}


def _describe_record(record_type: type, definitions: dict[str, dict[str, object]]) -> dict[str, object]:
    hints = typing.get_type_hints(record_type, include_extras=True)
    properties: dict[str, object] = {}
    required: list[str] = []
    for field in dataclasses.fields(record_type):
        described = _describe_type(hints[field.name], definitions)
        described |= _describe_key(record_type, field.name)
        if field.default is not dataclasses.MISSING:
            described["default"] = encode(field.default)
        elif field.default_factory is dataclasses.MISSING:
            required.append(field.name)
        properties[field.name] = described
    return {
        "description": describe_record(record_type),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def describe_record(record_type: type) -> str:
    """Describe a record on one line: all that is said of one that people write, of others the summary."""
    text = inspect.getdoc(record_type) or ""
    summary = text if issubclass(record_type, Entry) else text.partition("\n")[0]
    return " ".join(summary.split()).replace("``", "`")


def _describe_key(record_type: type, name: str) -> dict[str, object]:
    """Describe a key for an editor: what it is for, and an example."""
    if not issubclass(record_type, Entry):
        return {}
    doc = read_docs(record_type)[name]
    return {"description": doc.text, "examples": [parse_yaml(doc.example.encode(), name).value]}
