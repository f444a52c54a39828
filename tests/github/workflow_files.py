"""The shipped workflows and the examples, as the tests read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
OWN = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
EXAMPLES = sorted((ROOT / "examples" / "workflows").glob("*.yml"))
WORKFLOWS = [*OWN, *EXAMPLES]
# What a job may be given, by file and job; anything more must be argued for here too.
PERMISSIONS = {
    ("target", "compile"): {"contents": "read"},
    ("anchor", "compare"): {"contents": "read"},
    ("trend", "measure"): {"contents": "read"},
    ("trend", "render"): {"contents": "read"},
    ("trend", "publish"): {"contents": "write"},  # the branch gh-pages
    ("ci", "test"): {"contents": "read"},
    ("gate", "check"): {"contents": "read"},
    ("gate-accept", "authorize"): {"contents": "read", "pull-requests": "write"},
    ("gate-accept", "accept"): {"actions": "write", "contents": "write", "pull-requests": "write"},
    ("gate-publish", "publish"): {
        "actions": "read",
        "contents": "read",
        "pull-requests": "write",
        "statuses": "write",
    },
    ("gate-refresh", "authorize"): {"actions": "read", "contents": "read", "pull-requests": "write"},
    ("gate-refresh", "measure"): {"contents": "read"},
    ("gate-refresh", "propose"): {"actions": "read", "contents": "write", "pull-requests": "write"},
    ("gate-retarget", "retarget"): {},
    ("upgrade", "compare"): {"contents": "read"},
    ("upgrade", "report"): {"actions": "read", "contents": "read", "issues": "write"},
    ("shards", "plan"): {"contents": "read"},
    ("shards", "measure"): {"contents": "read"},
    ("shards", "judge"): {"contents": "read"},
    ("release", "build"): {"contents": "read"},
    ("release", "publish"): {"attestations": "write", "contents": "write", "id-token": "write"},
}


def name_file(path: Path) -> str:
    """Whose workflow it is and its file: ``examples/gate.yml``."""
    return f"{path.parent.parent.name}/{path.name}"


def load(path: Path) -> dict[str, Any]:
    """Load a workflow; YAML reads the key ``on`` as true."""
    return {"on" if key is True else key: value for key, value in yaml.safe_load(path.read_text()).items()}


def list_jobs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from load(path)["jobs"].items()


def list_steps(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in list_jobs(path):
        for step in job["steps"]:
            yield name, step


def is_gate(step: dict[str, Any]) -> bool:
    """Whether a step uses our action."""
    return str(step.get("uses", "")).startswith(("./", "OWNER/compile-gate@"))
