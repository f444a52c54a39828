"""The cases that a commit's own registry makes, read through the API: data, and no checkout of it.

What a run says of its cases could be anybody's word, above all their definitions: one that is made up
turns every stored value into that of something else. So both come from here.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from gate.errors import FileError, UsageError
from gate.files.key_types import VERSION
from gate.files.yaml_in import MAX_YAML_BYTES
from gate.github.git_data import GitData
from gate.project.config import load_config, make_config
from gate.project.entries import GateFile
from gate.project.registry import load_cases
from gate.records import Case

MAX_REGISTRIES = 50  # each is a request


class RegistryError(UsageError):
    """A commit's registry cannot be used. It is the branch's text, so none of it is repeated."""


def load_cases_at(data: GitData, sha: str, config: str) -> tuple[Case, ...]:
    """Load the cases of the configuration that lies at ``config`` in a commit; without one, the defaults'.

    Raises:
        RegistryError: Its files cannot be used, or lie outside the repository.
        GitHubError: GitHub does not tell.
    """
    with TemporaryDirectory(prefix="compile-gate-registry-") as place:
        files = _Files(data, sha, Path(place))
        try:
            return _load_cases(files, config)
        except UsageError:
            raise RegistryError(
                f"{config} of the measured commit, or a registry that it names, cannot be used",
                "Run `compile-gate models` on that branch: it says what is wrong.",
            ) from None


class _Files:
    """Files of a commit, copied to below a directory under the names that they have in it."""

    def __init__(self, data: GitData, sha: str, place: Path) -> None:
        self._data = data
        self._sha = sha
        self.place = place

    def copy(self, path: Path) -> bool:
        """Copy the file that belongs at ``path``, and say whether there is one."""
        name = path.relative_to(self.place).as_posix()
        content = self._data.load_file(name, self._sha, MAX_YAML_BYTES)
        if content is None:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return True


def _load_cases(files: _Files, config: str) -> tuple[Case, ...]:
    path = files.place / config
    if not files.copy(path):
        return load_cases(make_config(GateFile(version=VERSION)))
    loaded = load_config(path)
    # A registry may be named as `../models.yml`: what counts is where that is, and it must be in the commit.
    registry = tuple(Path(os.path.normpath(one)) for one in loaded.registry)
    if len(registry) > MAX_REGISTRIES:
        raise FileError(config, "registry", f"names more than {MAX_REGISTRIES} files", "Join some.")
    for one in registry:
        if not one.is_relative_to(files.place) or one == files.place or not files.copy(one):
            raise FileError(
                config, "registry", "names a file that the repository does not have", "Name another."
            )
    return load_cases(replace(loaded, registry=registry))
