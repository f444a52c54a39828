"""The shipped workflows and the examples, as the tests read them."""

from collections.abc import Iterator
from functools import cache
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
    ("mutants", "play"): {"contents": "read"},
    ("torch", "test"): {"contents": "read"},
    ("docs", "build"): {"contents": "read"},
    ("docs", "deploy"): {"id-token": "write", "pages": "write"},
    ("package", "build"): {"contents": "read"},
    ("gate", "plan"): {"contents": "read"},
    ("gate", "check"): {"contents": "read"},
    ("check", "plan"): {"contents": "read"},
    ("check", "check"): {"contents": "read"},
    ("compile-gate", "compile-gate"): {"contents": "read"},
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
    ("compile-gate-respond", "compile-gate"): {
        "actions": "write",
        "contents": "write",
        "pull-requests": "write",
        "statuses": "write",
    },
}
# A job of the called workflow respond.yml -> the file and job that does the same in full.
IN_FULL = {
    "publish": ("gate-publish", "publish"),
    "authorize-acceptance": ("gate-accept", "authorize"),
    "accept": ("gate-accept", "accept"),
    "authorize-refresh": ("gate-refresh", "authorize"),
    "measure": ("gate-refresh", "measure"),
    "propose": ("gate-refresh", "propose"),
    "retarget": ("gate-retarget", "retarget"),
}
PERMISSIONS |= {("respond", name): PERMISSIONS[full] for name, full in IN_FULL.items()}


def name_file(path: Path) -> str:
    """A file with its owner: ``examples/gate.yml``."""
    return f"{path.parent.parent.name}/{path.name}"


@cache
def load(path: Path) -> dict[str, Any]:
    """Load a workflow, for reading only; YAML reads the key ``on`` as true."""
    loaded = {"on" if key is True else key: value for key, value in yaml.safe_load(path.read_text()).items()}
    if isinstance(loaded["on"], list):
        loaded["on"] = dict.fromkeys(loaded["on"])
    return loaded


def list_jobs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The workflow's own jobs, without those of workflows that it calls."""
    yield from ((name, job) for name, job in load(path)["jobs"].items() if "uses" not in job)


def list_calls(path: Path) -> Iterator[tuple[str, dict[str, Any], Path]]:
    """The jobs that are calls, each with the workflow of this repository that it calls."""
    for name, job in load(path)["jobs"].items():
        if "uses" in job:
            called = job["uses"].partition("@")[0].removeprefix("OWNER/compile-gate/")
            yield name, job, ROOT / called


def list_checks(path: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """The jobs of a run, through all calls: name of the check, file and job."""
    if set(load(path)["on"]) == {"workflow_call"}:
        return
    yield from ((job["name"], path, job) for _, job in list_jobs(path))
    for _, call, called in list_calls(path):
        yield from ((f"{call['name']} / {job['name']}", called, job) for _, job in list_jobs(called))


def list_steps(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in list_jobs(path):
        for step in job["steps"]:
            yield name, step


CLONED = "./.git/compile-gate"  # where a called workflow clones its own repository


def is_gate(step: dict[str, Any]) -> bool:
    """Whether a step uses our action."""
    return str(step.get("uses", "")).startswith(("./", "OWNER/compile-gate@"))
