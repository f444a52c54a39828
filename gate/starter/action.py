"""Which commit of which repository a workflow is to take as the action: that of this installation."""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path
from urllib.parse import unquote, urlparse

from gate.errors import GateError, UsageError
from gate.git import ask_git
from gate.revisions import find_repository, name_repository

_ACTION = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+@[0-9a-f]{40}")


def parse_action(text: str) -> str:
    """Check what ``--action`` names: ``OWNER/compile-gate@COMMIT``, with the whole commit id.

    Raises:
        UsageError: It is something else; a tag or a branch can be moved, a commit cannot.
    """
    if not _ACTION.fullmatch(text):
        fix = "Write OWNER/compile-gate@ and the 40 digits of a release's commit."
        raise UsageError(f"--action: {text!r} pins no commit of an action", fix)
    return text


def find_action(package: Path | None = None) -> str:
    """Find the repository and commit that this installation came from; empty where nothing tells both.

    pip writes down what it installed from. A clone counts where GitHub has its commit, too.
    """
    told = _read_origin()
    vcs = told.get("vcs_info")
    if isinstance(vcs, dict):
        found = f"{name_repository(str(told.get('url', '')))}@{vcs.get('commit_id')}"
        return found if _ACTION.fullmatch(found) else ""
    url = urlparse(str(told.get("url", "")))
    place = Path(unquote(url.path)) if url.scheme == "file" else package
    return _ask_clone(place) if place and (place / "action.yml").is_file() else ""


def _read_origin() -> dict[str, object]:
    try:
        text = importlib.metadata.distribution("compile-gate").read_text("direct_url.json")
        told = json.loads(text or "{}")
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _ask_clone(place: Path) -> str:
    try:
        repository = find_repository(place)
        commit = ask_git(place, "rev-parse", "HEAD")
        pushed = ask_git(place, "branch", "--remotes", "--contains", "HEAD")
    except GateError:
        return ""
    return f"{repository}@{commit.said}" if repository and pushed.said else ""
