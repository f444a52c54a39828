"""Extract from GitHub's published webhook examples and schemas the events that compile-gate reads.

    npm install @octokit/webhooks-examples @octokit/webhooks-schemas     # in any other directory
    python tests/github/payloads/extract.py DIRECTORY/node_modules/@octokit

Writes examples.json.gz (event name -> payloads) and schema.json.gz (their JSON Schemas, less prose)
beside this script.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EVENTS = {
    "issue_comment": ("created", "edited", "deleted"),
    "merge_group": ("checks_requested",),
    "pull_request": ("opened", "synchronize", "closed"),
    "workflow_run": ("completed",),
}


def main(packages: Path) -> None:
    """Write both extracts."""
    listed = json.loads(
        (packages / "webhooks-examples/api.github.com/index.json").read_text(encoding="utf-8")
    )
    examples = {
        entry["name"]: [one for one in entry["examples"] if one.get("action") in EVENTS[entry["name"]]]
        for entry in listed
        if entry["name"] in EVENTS
    }
    _write("examples", examples)
    schema = json.loads((packages / "webhooks-schemas/schema.json").read_text(encoding="utf-8"))
    _write("schema", extract_schema(schema))


def extract_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Keep the definitions of EVENTS and what they refer to."""
    waiting = [f"{event}${action}" for event, actions in EVENTS.items() for action in actions]
    kept: dict[str, Any] = {}
    while waiting:
        name = waiting.pop()
        if name not in kept:
            kept[name] = _drop_prose(schema["definitions"][name])
            waiting += [found.rsplit("/", 1)[1] for found in _list_references(kept[name])]
    return {"$schema": schema["$schema"], "definitions": kept}


def _drop_prose(value: Any) -> Any:
    if isinstance(value, list):
        return [_drop_prose(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _drop_prose(item)
        for key, item in value.items()
        if not (key in {"description", "title"} and isinstance(item, str))
    }


def _list_references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for item in value for name in _list_references(item)]
    if not isinstance(value, dict):
        return []
    own = value.get("$ref")
    return ([own] if isinstance(own, str) else []) + [
        name for item in value.values() for name in _list_references(item)
    ]


def _write(name: str, value: Any) -> None:
    text = json.dumps(value, separators=(",", ":"), sort_keys=True)
    (HERE / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
