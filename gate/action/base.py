"""Configuration, registries and baselines of the base commit, so that a pull request cannot move its own bar.

They are read from git's objects and written outside the checkout. Only the configuration goes beside
``gate.yml``, under another name, because its directory is where measured code is imported from.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gate.codec import write_atomic
from gate.config import DEFAULT_FILE, EXTRACTED_FILE, Config, load_config, render_config
from gate.errors import MachineError, UsageError
from gate.github.context import find_text

_GIT_LIMIT_S = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What a check is judged by. ``sha`` is empty where that is the working tree."""

    config: str  # for --config; empty means the default
    baselines: str  # for --baselines; empty means what the configuration says
    sha: str = ""
    changed: tuple[str, ...] = ()  # files of these that the change under test touches
    temporary: Path | None = None  # to be removed after the check


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """A directory of a repository and a commit: how git's paths and ours are told apart."""

    directory: Path
    top: Path
    sha: str

    def to_git(self, path: Path) -> str:
        """Path below the top of the repository, as git writes it."""
        absolute = Path(os.path.normpath(self.directory / path))
        if not absolute.is_relative_to(self.top):
            raise UsageError(
                f"{path} lies outside the repository: the base commit does not have it",
                "Move it into the repository, or set `baseline-ref: head`.",
            )
        return absolute.relative_to(self.top).as_posix()


def find_base_sha(event: Mapping[str, object]) -> str:
    """Find the commit that the event's change is to be merged into; empty for a push or a dispatch."""
    return find_text(event, "pull_request.base.sha") or find_text(event, "merge_group.base_sha")


def find_head_sha(event: Mapping[str, object]) -> str:
    """Find the commit under test: a pull request's own head, not its trial merge; empty otherwise."""
    return find_text(event, "pull_request.head.sha") or find_text(event, "merge_group.head_sha")


def prepare_rules(config: str, baselines: str, sha: str, temporary: Path) -> Rules:
    """Write the rules of the commit ``sha`` below ``temporary``; with no ``sha``, the working tree's hold.

    Raises:
        UsageError: The commit is not in this clone, or a path of its configuration cannot be had from it.
        FileError: Its configuration cannot be used.
    """
    if not sha:
        return Rules(config=config, baselines=baselines)
    directory = Path.cwd()
    place = _Place(
        directory=directory, top=Path(_ask_git(directory, "rev-parse", "--show-toplevel")), sha=sha
    )
    _check_commit(place)
    config_path = Path(config or DEFAULT_FILE)
    names = [place.to_git(config_path)]
    extract_paths(place, names, temporary)
    extracted = temporary / names[0]
    if not extracted.exists():
        # The base has no configuration yet: the head's is all there is, and that is said.
        return Rules(config=config, baselines=baselines, changed=tuple(names) if config_path.exists() else ())
    loaded = load_config(extracted)
    parts = [_relative(path, extracted.parent) for path in (*loaded.registry, loaded.baselines)]
    paths = [config_path.parent / part for part in parts]
    if baselines:
        paths[-1] = Path(baselines)
    names += [place.to_git(path) for path in paths]
    extract_paths(place, names[1:], temporary)
    stored = temporary / names[-1]
    stored.mkdir(parents=True, exist_ok=True)
    registry = tuple(temporary / name for name in names[1:-1])
    written = directory / config_path.parent / EXTRACTED_FILE
    write_atomic(written, _render(loaded, registry, stored, extracted.parent))
    return Rules(
        config=str(written),
        baselines=str(stored),
        sha=sha,
        changed=_list_changed(place, names),
        temporary=written,
    )


def _render(loaded: Config, registry: tuple[Path, ...], stored: Path, directory: Path) -> str:
    out = _relative(loaded.out, directory)
    return render_config(
        replace(loaded, registry=registry, baselines=stored, out=out, directory=Path(), origins={})
    )


def _relative(path: Path, directory: Path) -> Path:
    return path.relative_to(directory) if path.is_relative_to(directory) else path


def extract_paths(place: _Place, names: Sequence[str], temporary: Path) -> None:
    """Write files and directories of the commit below ``temporary``; what it does not have is left out."""
    there = [name for name in names if _ask_git(place.top, "ls-tree", place.sha, "--", name)]
    if not there:
        return
    command = ["git", "-C", str(place.top), "archive", "--format=tar", place.sha, "--", *there]
    done = subprocess.run(command, capture_output=True, check=False, timeout=_GIT_LIMIT_S)
    if done.returncode != 0:
        raise MachineError(f"git cannot read {place.sha}: {_say(done.stderr)}", "Check the clone.")
    temporary.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        # The filter refuses links and names that lead elsewhere.
        archive.extractall(temporary, filter="data")


def _check_commit(place: _Place) -> None:
    found = _run_git(place.top, "cat-file", "-e", f"{place.sha}^{{commit}}")
    if found.returncode != 0:
        raise UsageError(
            f"the base commit {place.sha} is not in this clone",
            "Give actions/checkout `fetch-depth: 0`, or set `baseline-ref: head`.",
        )


def _list_changed(place: _Place, names: Sequence[str]) -> tuple[str, ...]:
    listed = _ask_git(place.top, "diff", "--name-only", "-z", f"{place.sha}...HEAD", "--", *names)
    return tuple(name for name in listed.split("\0") if name)


def _ask_git(directory: Path, *arguments: str) -> str:
    done = _run_git(directory, *arguments)
    if done.returncode != 0:
        fix = "Run actions/checkout before this step, with `fetch-depth: 0`."
        raise UsageError(f"git {arguments[0]} failed: {_say(done.stderr)}", fix)
    return done.stdout.decode(errors="surrogateescape").strip("\n")


def _run_git(directory: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = ["git", "-C", str(directory), *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=_GIT_LIMIT_S)


def _say(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    return json.dumps(lines[-1][:200]) if lines else "no message"
