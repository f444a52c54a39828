"""The tables of keys in docs/configuration.md, from the JSON Schemas of the files that people write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from registry_page import render_table

from gate.files.yaml_out import write_scalar
from gate.records.bounds import write_percent

_SCHEMAS = Path(__file__).parent.parent / "gate" / "schemas"
_DEFINITIONS = "#/$defs/"
# Each section with the schema that its keys are in; what is no definition is the file itself.
SECTIONS: Mapping[str, str] = {
    "GateFile": "config",
    "ModelEntry": "config",
    "CaseEntry": "config",
    "TestEntry": "config",
    "Sampling": "config",
    "ThresholdEntry": "config",
    "OverrideEntry": "config",
    "LimitEntry": "config",
    "Quarantine": "config",
    "AcceptanceEntry": "accepted",
    "AnchorFile": "anchor",
}
_WORDS: Mapping[str, str] = {
    "Text": "text",
    "Path": "a path",
    "MetricUnits": "a number of at least 0",
    "Metric": "a [metric](metrics.md)",
    "ModelEntry": "a [model](#models)",
    "CaseEntry": "a [case](#cases)",
    "TestEntry": "a [test](#tests)",
    "Sampling": "see [sampling](#sampling)",
    "ThresholdEntry": "a [threshold](#thresholds)",
    "OverrideEntry": "an [override](#overrides)",
    "LimitEntry": "a [limit](#limits)",
    "Quarantine": "a [quarantine](#quarantine)",
    "AcceptanceEntry": "an [acceptance](#acceptedyml)",
}
_Schema = Mapping[str, Any]


def render_keys(section: str) -> str:
    """Render the table of the keys of a file, or of an entry in it."""
    schema = json.loads((_SCHEMAS / f"{SECTIONS[section]}.json").read_text(encoding="utf-8"))
    definitions = schema["$defs"]
    described = definitions.get(section, schema)
    own_keys = definitions["CaseEntry"]["properties"] if section == "TestEntry" else {}
    rows = []
    for name, key in described["properties"].items():
        is_known = key == own_keys.get(name)
        text = "As of a [case](#cases)." if is_known else key["description"]
        rest = "; required" if name in described["required"] else describe_default(key, definitions)
        value = describe_value(key, definitions) + rest
        rows.append((f"`{name}`", value, f"`{write_scalar(key['examples'][0])}`", text))
    return render_table(("key", "value", "example", "what it is for"), rows)


def describe_default(key: _Schema, definitions: _Schema) -> str:
    """Describe what holds where a key is left out, if it is a single value."""
    default = key.get("default")
    if default in (None, "", []):
        return ""
    is_fraction = isinstance(resolve(key, definitions).get("type"), list)
    return f"; `{write_percent(default) if is_fraction else write_default(default)}` by default"


def write_default(value: object) -> str:
    """Write a value without quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def resolve(key: _Schema, definitions: _Schema) -> _Schema:
    """Replace a reference by what it refers to."""
    return definitions[key["$ref"].removeprefix(_DEFINITIONS)] if "$ref" in key else key


def describe_value(key: _Schema, definitions: _Schema) -> str:
    """Describe the values that a key takes, with their range."""
    if word := _WORDS.get(key.get("$ref", "").removeprefix(_DEFINITIONS)):
        return word
    key = resolve(key, definitions)
    if "enum" in key:
        return ", ".join(f"`{member}`" for member in key["enum"])
    if "anyOf" in key:  # a value or null, or a value and a list of such
        first, other = key["anyOf"]
        return describe_value(first, definitions) + (", or a list" if other["type"] == "array" else "")
    if key.get("type") == "array":
        return f"a list, each {describe_value(key['items'], definitions)}"
    if key.get("type") == "object":
        return _describe_mapping(key, definitions)
    return key.get("errorMessage") or {"boolean": "`true` or `false`", "string": "text"}[key["type"]]


def _describe_mapping(key: _Schema, definitions: _Schema) -> str:
    if "additionalProperties" not in key:
        return "a mapping of keyword arguments"
    parts = key["propertyNames"], key["additionalProperties"]
    names, values = (describe_value(part, definitions) for part in parts)
    return f"a mapping from {names} to {values}"
