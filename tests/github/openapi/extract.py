"""Extract from GitHub's OpenAPI descriptions the operations that compile-gate uses.

    npm install @octokit/openapi            # in any other directory; 385 MB
    python tests/github/openapi/extract.py DIRECTORY/node_modules/@octokit/openapi

Writes one gzipped description per host beside this script: the listed operations with everything they
refer to, less prose. The examples stay: the fake GitHub makes its objects from them.
"""

from __future__ import annotations

import gzip
import json
import sys
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
_PROSE = {"summary", "externalDocs", "x-github", "x-octokit", "tags"}


def main(package: Path) -> None:
    """Write the extract of each host."""
    for host in HOSTS:
        description = json.loads((package / "generated" / f"{host}.json").read_text(encoding="utf-8"))
        extract = extract_operations(description)
        OpenAPI.from_dict(extract)  # raises where the extract is no valid description
        text = json.dumps(extract, separators=(",", ":"), sort_keys=True)
        (HERE / f"{host}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


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


def _drop_prose(value: Any, *, is_properties: bool = False) -> Any:
    if isinstance(value, list):
        return [_drop_prose(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _shorten(key, item) for key, item in value.items() if is_properties or key not in _PROSE}


def _shorten(key: str, item: Any) -> Any:
    if key in {"example", "value"}:
        return item
    if key == "description" and isinstance(item, str):
        return ""  # a response must have one
    return _drop_prose(item, is_properties=key == "properties")


def _list_references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for item in value for name in _list_references(item)]
    if not isinstance(value, dict):
        return []
    own = value.get("$ref")
    found = [own] if isinstance(own, str) and own.startswith("#/components/") else []
    return found + [name for item in value.values() for name in _list_references(item)]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
