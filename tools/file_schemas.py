"""JSON Schemas of all files, in ``gate/schemas/``; ``generate_docs.py`` writes them.

Those of the files that only the gate writes are made from the records. Those of the files that people write
are written by hand; of these the definitions that code has as well are made anew, and ``registry.json``
is the part of ``config.json`` that it shares.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import textwrap
import types
import typing
from collections.abc import Mapping
from enum import EnumMeta, StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

from gate.decide.conclude.exit_codes import FailOn
from gate.devices import DEVICE_FORMS, DEVICE_PATTERN
from gate.files.codec import BASELINE, BISECTION, CALIBRATION, RUN, SHOWN, VERDICT, FileKind, encode
from gate.files.entry import LINE
from gate.kinds import Dims, Part, Strategy
from gate.metrics import SPECS, MetricSpec
from gate.project.model_entries import RegistryFile
from gate.records.bounds import Count, Date, NotNegative, Pattern, Seconds, Text, Time
from gate.records.cases import DType, Kind, Metric, Mode, Task

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DIRECTORY = Path(__file__).parent.parent / "gate" / "schemas"
_REFERENCE = "#/$defs/"
_WIDTH = 110
WRITTEN = ("config", "registry", "accepted", "anchor", "acceptances")  # by people, registry after config
KINDS: Mapping[str, FileKind[Any]] = {
    kind.name: kind for kind in (RUN, VERDICT, SHOWN, BASELINE, CALIBRATION, BISECTION)
}
ROOTS = (*WRITTEN, *KINDS)
_SCALARS: Mapping[Any, dict[str, object]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    types.NoneType: {"type": "null"},
    object: {},
}


def render_schema(name: str) -> str:
    """Render the JSON Schema of a kind of file that only the gate writes."""
    return _render(make_schema(name)) + "\n"


def make_schema(name: str) -> dict[str, object]:
    """Make the JSON Schema of a kind of file that only the gate writes, as plain values."""
    kind, definitions = KINDS[name], dict[str, dict[str, object]]()
    root = _describe_record(kind.record, definitions)
    properties = cast("dict[str, object]", root["properties"])
    root["properties"] = {"schema": {"const": kind.schema}, **properties}
    root["required"] = ["schema", *cast("list[str]", root["required"])]
    return {
        "$schema": _DIALECT,
        "$id": f"urn:{kind.schema.replace('/', ':')}",
        "title": f"compile-gate: {name}.json",
        **root,
        "$defs": definitions,
    }


def refresh_schema(name: str, text: str) -> str:
    """Make anew what code says of the schema of a file that people write; all of it for ``registry``."""
    if name == "registry":
        return _render(_take_registry(json.loads((_DIRECTORY / "config.json").read_text("utf-8")))) + "\n"
    schema = json.loads(text)
    shared = list_shared()
    schema["$defs"] = {key: shared.get(key, described) for key, described in schema["$defs"].items()}
    return _render(schema) + "\n"


def list_shared() -> dict[str, dict[str, object]]:
    """List the definitions that code has as well: enumerations, and bounds of records."""
    definitions: dict[str, dict[str, object]] = {}
    for enumeration in (Metric, Task, DType, Mode, Kind, FailOn, Dims, Part, Strategy):
        _describe_named(enumeration, definitions)
    device = Pattern(regex=DEVICE_PATTERN, what=DEVICE_FORMS)
    bounds: dict[str, Any] = {"Text": Text, "Date": Date, "Time": Time, "Line": Annotated[str, LINE]}
    bounds |= {"Device": Annotated[str, device], "Count": Count}
    bounds |= {"Seconds": Seconds, "NotNegative": NotNegative}
    return definitions | {key: _describe_type(bound, {}) for key, bound in bounds.items()}


def _take_registry(config: dict[str, Any]) -> dict[str, Any]:
    """Take the keys of a registry file, and the definitions that they need, from the schema of gate.yml."""
    properties = {key.name: config["properties"][key.name] for key in dataclasses.fields(RegistryFile)}
    needed: dict[str, Any] = {}
    rest = [properties]
    while rest:
        names = re.findall(f'"{re.escape(_REFERENCE)}([^"]*)"', json.dumps(rest.pop()))
        for name in names:
            if name not in needed:
                needed[name] = config["$defs"][name]
                rest.append(needed[name])
    return {
        **config,
        "$id": config["$id"].replace("config", "registry"),
        "title": "compile-gate: a registry file",
        "description": "A registry file: models and tests, for lists that are too long for gate.yml.",
        "properties": properties,
        "$defs": needed,
    }


def _render(value: object, indent: int = 0, before: int = 0) -> str:
    """Render JSON: what fits on a line stands on one."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or indent + before + len(line) < _WIDTH:
        return line
    inner = " " * (indent + 1)
    if isinstance(value, dict):
        heads = {key: f"{json.dumps(key)}: " for key in value}
        parts = [heads[key] + _render(item, indent + 1, len(heads[key])) for key, item in value.items()]
    elif any(isinstance(item, (dict, list)) for item in value):
        parts = [_render(item, indent + 1) for item in value]
    else:
        parts = textwrap.wrap(line[1:-1], _WIDTH - indent - 2, break_long_words=False)
        return "[\n" + "\n".join(inner + part for part in parts) + f"\n{' ' * indent}]"
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(inner + part for part in parts) + f"\n{' ' * indent}{closing}"


def _describe_type(annotation: Any, definitions: dict[str, dict[str, object]]) -> dict[str, object]:  # noqa: ANN401 -- an annotation can be anything
    if annotation in _SCALARS:
        return dict(_SCALARS[annotation])
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        rule = arguments[1]
        base = _describe_type(arguments[0], definitions)
        return {**base, **rule.to_schema(), "errorMessage": rule.describe()}
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
    domain = spec.domain
    return {
        "type": "array",
        "items": {"type": "number", **domain.to_schema(), "errorMessage": domain.describe()},
    }


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
    """Describe a record on one line: the summary of what is said of it."""
    summary = (inspect.getdoc(record_type) or "").partition("\n")[0]
    return summary.replace("``", "`")
