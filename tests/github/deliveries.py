"""Payloads of events: GitHub's published examples, and ones derived from them that keep to its schema."""

from __future__ import annotations

import copy
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator

_PAYLOADS = Path(__file__).parent / "payloads"
# Where the published examples do not keep to the published schema.
_NEWEST = -1  # the last example of each event is the one that does


@cache
def _load(name: str) -> Any:
    return json.loads(gzip.decompress((_PAYLOADS / f"{name}.json.gz").read_bytes()))


def make_delivery(event: str, action: str) -> dict[str, Any]:
    """Make a fresh payload from the newest published example."""
    examples = [one for one in _load("examples")[event] if one["action"] == action]
    payload: dict[str, Any] = copy.deepcopy(examples[_NEWEST])
    return payload


def list_faults(event: str, payload: dict[str, Any]) -> list[str]:
    """List where a payload breaks GitHub's schema of its event."""
    schema = {**_load("schema"), "$ref": f"#/definitions/{event}${payload['action']}"}
    return [
        f"{list(e.absolute_path)}: {e.message[:200]}" for e in Draft7Validator(schema).iter_errors(payload)
    ]


def make_workflow_run(run: dict[str, Any]) -> dict[str, Any]:
    """Make the payload of a completed workflow_run that is about ``run``, an object of the API."""
    payload = make_delivery("workflow_run", "completed")
    told = payload["workflow_run"]
    same = ("id", "head_sha", "head_branch", "event", "conclusion", "run_attempt", "html_url")
    told |= {key: run[key] for key in (*same, "created_at", "run_started_at")}
    told["pull_requests"] = []  # as for every run of a fork
    for key in ("repository", "head_repository"):
        told[key] |= {"id": run[key]["id"], "full_name": run[key]["full_name"], "name": run[key]["name"]}
        told[key]["owner"] |= {"login": run[key]["owner"]["login"]}
    return payload
