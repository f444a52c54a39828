"""``import gate`` judges as the command does."""

import inspect
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import gate
from gate.cli import main
from gate.decide.evidence.baseline import make_baselines
from gate.files.codec import RUN
from gate.records.verdict import Outcome
from gate.store.baselines import propose_baselines, save_baselines
from tests.unit.cli.conftest import CASE_ID, make_run

LATER = (datetime.now(UTC) + timedelta(days=300)).date().isoformat()
CONFIG = "version: 1\nthresholds:\n  compiled_latency: {relative: 50%}\n"
ACCEPTED = f"""\
version: 1
accepted:
  - case: {CASE_ID}
    metric: graph_breaks
    allowance: 1
    reason: a new print
    author: ada
    expires: {LATER}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run 30 % slower with a new graph break, and rules that allow both."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gate.yml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / "accepted.yml").write_text(ACCEPTED, encoding="utf-8")
    RUN.save(make_run(), tmp_path / "old.json")
    RUN.save(make_run(latency_s=0.013, breaks=1.0), tmp_path / "slow.json")
    return tmp_path


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("config", "code"), [(CONFIG, 0), ("version: 1\n", 10)])
def test_it_judges_by_the_rules_of_the_command(config: str, code: int) -> None:
    """Thresholds and acceptances count in both, with the same exit code."""
    Path("gate.yml").write_text(config, encoding="utf-8")
    verdict = gate.compare(
        baseline=gate.load_run("old.json"),
        candidate=gate.load_run("slow.json"),
        policy=gate.load_policy(),
    )
    assert gate.compute_exit_code(verdict) == code == main(["compare", "old.json", "slow.json"])
    by_name = gate.load_policy("gate.yml")
    assert by_name == gate.load_policy()
    assert [acceptance.author for acceptance in by_name.acceptances] == ["ada"]


def test_runs_are_keyword_arguments() -> None:
    """Exchanged runs would turn a regression into an improvement."""
    parameters = inspect.signature(gate.compare).parameters.values()
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}
    assert {parameter.default for parameter in parameters} == {inspect.Parameter.empty}


def test_baselines_that_are_not_there_are_no_baselines_to_judge_by(tmp_path: Path) -> None:
    """A directory that does not exist is refused."""
    with pytest.raises(gate.FileError, match="nodir: does not exist"):
        gate.load_baselines(tmp_path / "nodir")
    assert gate.load_baselines(tmp_path) == ()


@pytest.mark.usefixtures("project")
def test_a_verdict_that_is_rendered_as_json_is_loaded_again() -> None:
    """From a name or a path."""
    run = gate.load_run(Path("old.json"))
    verdict = gate.compare(baseline=run, candidate=run, policy=gate.load_policy())
    Path("again.json").write_text(gate.render(verdict, "json"), encoding="utf-8")
    assert gate.load_verdict("again.json") == gate.load_verdict(Path("again.json")) == verdict


@pytest.mark.usefixtures("project")
def test_exit_codes_follow_the_choice() -> None:
    """As with --fail-on; an unknown choice is refused."""
    run = gate.load_run("slow.json")
    verdict = gate.compare(baseline=(), candidate=run, policy=gate.load_policy())
    assert verdict.outcome is Outcome.NOTHING_COMPARED
    assert [gate.compute_exit_code(verdict, choice) for choice in ("new", "regression", "never")] == [3, 3, 0]
    with pytest.raises(gate.UsageError, match="'nothing' is no choice"):
        gate.compute_exit_code(verdict, "nothing")


@pytest.mark.usefixtures("project")
def test_a_directory_of_baselines_brings_its_own_acceptances(capsys: pytest.CaptureFixture[str]) -> None:
    """`compare DIR RUN` uses the acceptances next to those baselines, not the project's."""
    Path("elsewhere").mkdir()
    run = gate.load_run("old.json")
    proposals = propose_baselines(make_baselines(run, run.provenance), {}, gate.load_policy())
    save_baselines(Path("elsewhere"), proposals)
    save_baselines(Path("baselines"), proposals)
    assert main(["compare", "baselines", "slow.json"]) == 0
    assert main(["compare", "elsewhere", "slow.json"]) == 10
    Path("elsewhere/accepted.yml").write_text(ACCEPTED, encoding="utf-8")
    assert main(["compare", "elsewhere", "slow.json"]) == 0
    assert "Accepted" in capsys.readouterr().out
