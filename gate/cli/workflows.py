"""What the workflows of a clone use the action for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from gate.errors import FileError
from gate.files.untrusted import load_bytes
from gate.files.yaml_in import MAX_YAML_BYTES, parse_yaml

_DIRECTORY = "workflows"


def has_mode(directory: Path, mode: str) -> bool:
    """Whether a workflow below ``directory`` (``.github``) uses the action in a mode.

    The action is not told by its name, which is another one in a fork or a mirror: a step that uses
    anything with that ``mode`` counts. A file that our YAML refuses, as for an anchor, does not count, and
    stops nothing.
    """
    paths = sorted(directory.joinpath(_DIRECTORY).glob("*.y*ml"))
    return any(mode == given for path in paths for given in _list_modes(_load(path)))


def _load(path: Path) -> object:
    try:
        return parse_yaml(load_bytes(path, MAX_YAML_BYTES), str(path)).value
    except FileError:
        return None


def _list_modes(workflow: object) -> Iterator[object]:
    """List the input ``mode`` of each step, and of each job that is a workflow of its own."""
    for job in _get_mapping(workflow, "jobs").values():
        steps = job.get("steps") if isinstance(job, Mapping) else None
        for user in (job, *(steps if isinstance(steps, list) else ())):
            if isinstance(user, Mapping) and user.get("uses"):
                yield _get_mapping(user, "with").get("mode")


def _get_mapping(value: object, key: str) -> Mapping[str, object]:
    """Get the mapping under a key; empty where there is none."""
    inner = value.get(key) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}
