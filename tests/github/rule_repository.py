"""A repository whose rules are read from its commits."""

from dataclasses import replace
from pathlib import Path

import pytest
from action.samples import commit
from refreshes import make_run

from gate.action.inputs import ActionStep, parse_inputs
from gate.decide.evidence.baseline import make_baselines
from gate.errors import UsageError
from gate.files.codec import BASELINE
from gate.lab.arms.base_checkout import open_base_tree
from gate.project.config import Config
from gate.records.run import Baseline
from gate.store.baselines import encode_baseline
from gate.store.rules import AskedRules, BaseRules, load_rules
from tests.git import run_git

MODELS = """\
version: 1
models:
  - {name: lin, factory: "mm.f:ok", sizes: {smoke: {width: 8}}, cases: [{expected_s: 5}]}
"""
CONFIG = """\
version: 1
reference_models: false
registry: [models/cases.yml]
baselines: perf/baselines
out: results
thresholds:
  compiled_latency: {relative: 0.05}
"""


class Repo:
    """A repository below a directory with a space, whose directory ``top`` the test has entered."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = directory / "a repository"
        self.top = self.root / "sub"

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.top / name).parent.mkdir(parents=True, exist_ok=True)
            (self.top / name).write_text(text)

    def commit(self, files: dict[str, str] | None = None, *, gone: str = "") -> str:
        """Commit everything, with these files and without ``gone``."""
        if gone:
            (self.top / gone).unlink()
        self.write(files or {})
        return commit(self.root, "a commit")

    def git(self, *arguments: str) -> str:
        return run_git(self.root, *arguments)

    def prepare(self, sha: str, **more: str) -> BaseRules:
        """Load the rules of a commit."""
        with open_base_tree(self.top, sha) as tree:
            return load_rules(tree, AskedRules(**more))

    def load(self, sha: str) -> Config:
        """Load the configuration that is in force."""
        return self.prepare(sha).config

    def list_reasons(self, sha: str, **more: str) -> dict[str, str]:
        """The recorded reason of each baseline that a change is judged by."""
        with open_base_tree(self.top, sha) as tree:
            directory = load_rules(tree, AskedRules(**more)).config.baselines
            paths = directory.iterdir() if directory.is_dir() else ()
            return {path.name: load_one(path).provenance.reason for path in paths}

    def prepare_in_vain(self, sha: str, **more: str) -> UsageError:
        with pytest.raises(UsageError) as caught:
            self.prepare(sha, **more)
        return caught.value


def make_baseline(reason: str, case: str = "lin/inference-float32-smoke-default") -> str:
    """Make the text of a baseline that holds its ``reason``."""
    run = make_run("a" * 40, cases=(case,))
    (baseline,) = make_baselines(run, replace(run.provenance, reason=reason))
    return encode_baseline(baseline)


def load_one(path: Path) -> Baseline:
    return BASELINE.decode(path.read_bytes(), str(path))


def make_step(temporary: Path, base: str) -> ActionStep:
    inputs = parse_inputs({"INPUT_BASELINE_REF": base})
    return ActionStep(inputs=inputs, environ={"RUNNER_TEMP": str(temporary)}, event={})
