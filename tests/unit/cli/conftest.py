"""A project whose workers are actors, and runs of it by hand: commands are real, nothing compiles."""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.capture import CaptureResult

from gate.bisect import points as bisect_points
from gate.cli import lanes, main
from gate.cli.parser import make_parser
from gate.files.codec import RUN
from gate.lab.host.locks import VARIABLE
from gate.lab.trials import opening, trials
from gate.records.cases import Case, Metric
from gate.records.run import Conditions, Provenance, Run
from gate.selftest import attempts
from gate.selftest import command as selftest
from tests import make
from tests.git import run_git
from tests.unit.cli.acting_gate import place_actors, read_quiet_host

ACTING_GATE = Path(__file__).with_name("acting_gate.py")
CASE_ID = "actor/inference-float32-smoke-default"
CONFIG = """\
version: 1
reference_models: false
sampling: {super_blocks: 3}
models:
  - name: actor
    factory: actor:build
    cases: [{tags: [smoke], expected_s: 1}]
"""

RunGate = Callable[..., "subprocess.CompletedProcess[str]"]
MakeRun = Callable[..., Run]


def make_run(latency_s: float = 0.010, breaks: float = 0.0, trials: int = 5) -> Run:
    """A run of one case: five trials that vary by 0.1 %."""
    samples = [
        {Metric.COMPILED_LATENCY: latency_s * (1 + 0.001 * index), Metric.GRAPH_BREAKS: breaks}
        for index in range(trials)
    ]
    case = Case(id=CASE_ID, model="actor", factory="actor:build", definition="d1")
    measured = make.make_trials(CASE_ID, samples)
    return make.make_run(*measured, cases=(case,), provenance=Provenance(commit="abc"), trials_planned=trials)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one model, in the current directory, with ``old.json`` and a slower ``slow.json``."""
    top = tmp_path / "project"
    top.mkdir()
    (top / "gate.yml").write_text(CONFIG, encoding="utf-8")
    (top / "actor.py").touch()
    RUN.save(make_run(), top / "old.json")
    RUN.save(make_run(latency_s=0.013, breaks=1.0), top / "slow.json")
    monkeypatch.chdir(top)
    return top


@pytest.fixture
def run_gate(project: Path, tmp_path: Path) -> RunGate:
    """Run the command line in a process of its own, in the project."""
    directory = tmp_path / "own"
    directory.mkdir()

    def run(
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        starter: Sequence[str] = (),
        **settings: Any,
    ) -> subprocess.CompletedProcess[str]:
        defaults: dict[str, Any] = {"cwd": project, "capture_output": True, "text": True, "timeout": 120}
        command = [*starter, sys.executable, str(ACTING_GATE), str(directory), *arguments]
        settings = defaults | {"env": {**os.environ, **(environment or {})}} | settings
        return subprocess.run(command, check=False, **settings)

    return run


@pytest.fixture(scope="session", autouse=True)
def parser() -> Iterator[None]:
    """Make the parser of all commands once: it takes 15 ms, and hundreds of tests run commands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gate.cli.make_parser", functools.cache(make_parser))
        yield


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """A project whose workers are actors; commands run in this process."""

    top: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, *arguments: str) -> int:
        """Run a command and return its exit code."""
        return main(arguments)

    def read(self) -> CaptureResult[str]:
        """Read what commands have printed since the last call."""
        return self.capsys.readouterr()

    def plant(self, fault: str, amount: float = 0.0) -> None:
        """Plant a fault into the project's working tree."""
        (self.top / "fault.json").write_text(json.dumps({"fault": fault, "amount": amount}), encoding="utf-8")

    def git(self, *arguments: str, check: bool = True) -> str:
        """Run git as Ada, and return what it printed."""
        return run_git(self.top, *arguments, check=check)

    def begin(self, *files: str) -> None:
        """Commit the project, or these files of it, to ``main``."""
        chosen = files or ("gate.yml", "baselines")
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("add", *chosen, *(["actor.py"] if "gate.yml" in chosen else []))
        self.git("commit", "--quiet", "--allow-empty", "--message", "Begin")

    def change(self, fault: str, amount: float = 0.0, *files: str) -> None:
        """Commit a fault, and these files, to a branch that leaves ``main`` here."""
        self.git("checkout", "--quiet", "-b", "feature")
        self.plant(fault, amount)
        self.git("add", "fault.json", *files)
        self.git("commit", "--quiet", "--message", "Change it")


def stage(top: Path, patch: pytest.MonkeyPatch) -> None:
    """Let the commands of this process work in ``top`` with actors, on a host where nothing else happens."""
    for module in (lanes, bisect_points, selftest):
        patch.setattr(module, "place_lab", place_actors)
    patch.setattr(trials, "read_host", read_quiet_host)
    patch.setattr(opening, "look_early", lambda _: Conditions())
    patch.setattr(attempts, "MIN_HANG_S", 1.0)
    patch.setattr(tempfile, "tempdir", str(top.parent))
    patch.setenv(VARIABLE, str(top.parent))
    patch.chdir(top)
    (top / "actor.py").touch()  # is looked for, and never imported


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with baselines of five trials."""
    top = tmp_path_factory.mktemp("recorded") / "project"
    top.mkdir()
    (top / "gate.yml").write_text(CONFIG, encoding="utf-8")
    RUN.save(make_run(), top / "old.json")
    RUN.save(make_run(latency_s=0.013, breaks=1.0), top / "slow.json")
    with pytest.MonkeyPatch.context() as patch:
        stage(top, patch)
        assert main(["baseline", "refresh", "--quiet"]) == 0
    shutil.rmtree(top / "out")
    return top


@pytest.fixture
def sandbox(
    recorded: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Sandbox:
    """A copy of the recorded project to work in."""
    top = tmp_path / "place" / "project"
    shutil.copytree(recorded, top)
    stage(top, monkeypatch)
    return Sandbox(top=top, capsys=capsys)
