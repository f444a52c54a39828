"""Extract from GitHub's published descriptions what compile-gate uses of its API and of its events.

    npm install @octokit/openapi @octokit/webhooks-examples @octokit/webhooks-schemas    # elsewhere; 385 MB
    python tests/github/extract.py DIRECTORY/node_modules/@octokit

Writes, less prose, openapi/<host>.json.gz: the listed operations with everything they refer to, and their
examples, which the fake GitHub makes its objects from. And payloads/examples.json.gz (event name -> payloads)
with payloads/schema.json.gz, their JSON Schemas.
"""

import gzip
import json
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from openapi_core import OpenAPI

HERE = Path(__file__).parent
HOSTS = ("api.github.com", "ghes-3.17")
_REPO = "/repos/{owner}/{repo}"
OPERATIONS: dict[str, tuple[str, ...]] = {
    "/user": ("get",),
    _REPO: ("get",),
    f"{_REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}": ("get",),
    f"{_REPO}/actions/runs/{{run_id}}": ("get",),
    f"{_REPO}/actions/runs/{{run_id}}/artifacts": ("get",),
    f"{_REPO}/actions/runs/{{run_id}}/jobs": ("get",),
    f"{_REPO}/actions/runs/{{run_id}}/rerun-failed-jobs": ("post",),
    f"{_REPO}/actions/workflows/{{workflow_id}}/runs": ("get",),
    f"{_REPO}/collaborators/{{username}}/permission": ("get",),
    f"{_REPO}/commits/{{commit_sha}}/pulls": ("get",),
    f"{_REPO}/commits/{{ref}}": ("get",),
    f"{_REPO}/commits/{{ref}}/statuses": ("get",),
    f"{_REPO}/compare/{{basehead}}": ("get",),
    f"{_REPO}/contents/{{path}}": ("get",),
    f"{_REPO}/environments/{{environment_name}}": ("get",),
    f"{_REPO}/git/blobs": ("post",),
    f"{_REPO}/git/blobs/{{file_sha}}": ("get",),
    f"{_REPO}/git/commits": ("post",),
    f"{_REPO}/git/commits/{{commit_sha}}": ("get",),
    f"{_REPO}/git/matching-refs/{{ref}}": ("get",),
    f"{_REPO}/git/ref/{{ref}}": ("get",),
    f"{_REPO}/git/refs": ("post",),
    f"{_REPO}/git/refs/{{ref}}": ("patch", "delete"),
    f"{_REPO}/git/trees": ("post",),
    f"{_REPO}/git/trees/{{tree_sha}}": ("get",),
    f"{_REPO}/issues": ("get", "post"),
    f"{_REPO}/issues/{{issue_number}}": ("get", "patch"),
    f"{_REPO}/issues/{{issue_number}}/comments": ("get", "post"),
    f"{_REPO}/issues/{{issue_number}}/events": ("get",),
    f"{_REPO}/issues/comments/{{comment_id}}": ("get", "patch", "delete"),
    f"{_REPO}/issues/comments/{{comment_id}}/reactions": ("post",),
    f"{_REPO}/pulls": ("get", "post"),
    f"{_REPO}/pulls/{{pull_number}}": ("get", "patch"),
    f"{_REPO}/pulls/{{pull_number}}/files": ("get",),
    f"{_REPO}/statuses/{{sha}}": ("post",),
}
EVENTS = {
    "issue_comment": ("created", "edited", "deleted"),
    "merge_group": ("checks_requested",),
    "pull_request": ("opened", "synchronize", "closed"),
    "workflow_run": ("completed",),
}
_PROSE = {"summary", "externalDocs", "x-github", "x-octokit", "tags"}


def main(packages: Path) -> None:
    for host in HOSTS:
        extract = extract_operations(_read(packages / "openapi" / "generated" / f"{host}.json"))
        OpenAPI.from_dict(extract)  # raises where the extract is no valid description
        _write(f"openapi/{host}", extract)
    listed = _read(packages / "webhooks-examples/api.github.com/index.json")
    examples = {
        entry["name"]: [item for item in entry["examples"] if item.get("action") in EVENTS[entry["name"]]]
        for entry in listed
        if entry["name"] in EVENTS
    }
    _write("payloads/examples", examples)
    _write("payloads/schema", extract_schema(_read(packages / "webhooks-schemas/schema.json")))


def extract_operations(description: dict[str, Any]) -> dict[str, Any]:
    """Keep the operations of OPERATIONS and, of the components, what is reachable from them."""
    paths = {
        path: {method: _drop_prose(description["paths"][path][method]) for method in methods}
        for path, methods in OPERATIONS.items()
    }
    components: dict[str, dict[str, Any]] = {}
    waiting = list(_list_references(paths))
    while waiting:
        _, _, kind, name = waiting.pop().split("/", 3)
        if name not in components.setdefault(kind, {}):
            components[kind][name] = _drop_prose(description["components"][kind][name])
            waiting += _list_references(components[kind][name])
    info = {key: description["info"][key] for key in ("title", "version", "license")}
    return {"openapi": description["openapi"], "info": info, "paths": paths, "components": components}


def extract_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Keep the definitions of EVENTS and what they refer to."""
    waiting = [f"{event}${action}" for event, actions in EVENTS.items() for action in actions]
    kept: dict[str, Any] = {}
    while waiting:
        name = waiting.pop()
        if name not in kept:
            kept[name] = _drop_prose(schema["definitions"][name], also={"description", "title"})
            waiting += [reference.rsplit("/", 1)[1] for reference in _list_references(kept[name])]
    return {"$schema": schema["$schema"], "definitions": kept}


def _drop_prose(value: Any, *, also: Collection[str] = (), is_properties: bool = False) -> Any:
    """Drop prose, and texts under keys that are ``also`` prose; a response keeps an empty description."""
    if isinstance(value, list):
        return [_drop_prose(item, also=also) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, item in value.items():
        if key in also and isinstance(item, str):
            continue
        if key == "description" and isinstance(item, str):
            kept[key] = ""
        elif key in {"example", "value"}:
            kept[key] = item
        elif is_properties or key not in _PROSE:
            kept[key] = _drop_prose(item, also=also, is_properties=key == "properties")
    return kept


def _list_references(value: Any) -> Iterator[str]:
    parts = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    reference = value.get("$ref") if isinstance(value, dict) else None
    if isinstance(reference, str) and reference.startswith("#/"):
        yield reference
    for part in parts:
        yield from _list_references(part)


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write(name: str, value: Any) -> None:
    text = json.dumps(value, separators=(",", ":"), sort_keys=True)
    (HERE / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
