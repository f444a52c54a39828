"""The configuration of a command, and that its output names it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gate.cli import main
from gate.decide.verdict import decide_verdict
from gate.errors import ExitCode
from gate.files.codec import VERDICT
from gate.records.cases import Policy
from gate.report.words.steps import write_ab, write_command, write_selected, write_setting
from tests.hosts import CPU_HOST
from tests.unit.cli.conftest import CASE_ID, RunGate, Sandbox, make_run
from tests.words import describe_steps


def test_a_subdirectory_is_the_projects(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`cd sub && compile-gate plan` plans the project's cases, and names the file."""
    (project / "sub").mkdir()
    monkeypatch.chdir(project / "sub")
    assert main(["plan", "--format", "json"]) == ExitCode.PASS
    printed = capsys.readouterr()
    assert json.loads(printed.out)["shards"][0]["cases"] == [CASE_ID]
    assert printed.err == f"note: using {project / 'gate.yml'}\n"


def test_a_check_names_its_configuration(run_gate: RunGate, project: Path) -> None:
    """Among the notes of its progress."""
    assert f"note: using {project / 'gate.yml'}" in run_gate("check").stderr


@pytest.mark.usefixtures("project")
def test_config_names_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    """As a comment, so that the output stays a valid gate.yml."""
    assert main(["config"]) == ExitCode.PASS
    printed = capsys.readouterr().out
    assert printed.startswith(f"# using {Path.cwd() / 'gate.yml'}\nversion: 1")


@pytest.mark.usefixtures("project")
def test_config_prints_the_limits_of_a_check(capsys: pytest.CaptureFixture[str]) -> None:
    """A case of 200 s has hung after 800 s, not after the 300 s that are the default of small cases."""
    models = "models:\n- {name: a, factory: 'a:b', cases: [{expected_s: 200}]}\n"
    slow = f"version: 1\nreference_models: false\n{models}"
    Path("slow.yml").write_text(slow, encoding="utf-8")
    assert main(["config", "--config", "slow.yml"]) == ExitCode.PASS
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("trial_t", "pair_b"))]
    origin = "what expected_s of the selected cases asks for"
    assert [line.split("# ") for line in lines] == [
        [f"{'pair_budget_s: 800.0':<44} ", origin],
        [f"{'trial_timeout_s: 800.0':<44} ", origin],
    ]
    Path("slow.yml").write_text(f"{slow}trial_timeout_s: 500\n", encoding="utf-8")
    main(["config", "--config", "slow.yml", "--device", "cuda"])
    printed = capsys.readouterr().out
    assert "trial_timeout_s: 500" in printed
    assert f"{'pair_budget_s: 2400.0':<44} # default" in printed  # a GPU's default is more than 800 s


@pytest.mark.usefixtures("project")
def test_config_is_printed_without_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty selection, an error of a check, prints limits of no case, with a note."""
    assert main(["config", "--select", "nothing/*"]) == ExitCode.PASS
    output = capsys.readouterr()
    assert "trial_timeout_s: 300.0 " in output.out
    assert output.err.startswith("note: limits are those of no case: no model matches 'nothing/*'")


def test_suggested_commands_name_the_configuration(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the option they would find other cases, or none."""
    (project / "gate.yml").rename(project / "nightly gate.yml")
    named = ["--config", "nightly gate.yml"]
    assert main(["compare", *named, "old.json", "slow.json", "--out", "out"]) == ExitCode.REGRESSION
    printed = capsys.readouterr().out
    verdict = VERDICT.load(Path("out/verdict.json"))
    assert verdict.options == {"--config": "nightly gate.yml"}
    output = " ".join(printed.split())
    commands = re.findall("compile-gate (?:check|ab|baseline \\w+)( --config 'nightly gate.yml')?", output)
    assert len(commands) > 2
    assert "" not in commands
    assert all("--config 'nightly gate.yml'" in step for step in describe_steps(verdict))


def test_suggested_commands_name_the_baselines(sandbox: Sandbox) -> None:
    """Without the option they would read or record others."""
    (sandbox.top / "baselines").rename(sandbox.top / "stored")
    sandbox.plant("graph_break")
    assert sandbox.run("check", "--quiet", "--baselines", "stored") == ExitCode.REGRESSION
    verdict = VERDICT.load(sandbox.top / "out" / "verdict.json")
    steps = describe_steps(verdict)
    commands = [step for step in steps if "compile-gate check" in step or "baseline" in step]
    assert commands
    assert all("--baselines stored" in command for command in commands)


def test_suggested_commands_repeat_where_results_go_and_for_how_long(sandbox: Sandbox) -> None:
    """Without the options they would replace other results, or end too early."""
    sandbox.begin()
    sandbox.plant("graph_break")
    options = ("--out", "my out", "--minutes", "90")
    assert sandbox.run("ab", "HEAD", "--quiet", *options) == ExitCode.REGRESSION
    verdict = VERDICT.load(sandbox.top / "my out" / "verdict.json")
    (again, *_) = [step for step in describe_steps(verdict) if "compile-gate ab" in step]
    assert "--out 'my out' --minutes 90" in again


def test_the_default_needs_no_option(project: Path) -> None:
    """Also where it is named."""
    assert main(["compare", "--config", "gate.yml", "old.json", "slow.json", "--out", "out"]) == 10
    verdict = VERDICT.load(project / "out" / "verdict.json")
    assert (verdict.options, "--config" in " ".join(describe_steps(verdict))) == ({}, False)


def make_setting(config: str, kind: str = "cpu", capability: str = "") -> str:
    """The options that commands of this verdict, configuration and device name."""
    host = replace(CPU_HOST, device_kind=kind, device_traits={"capability": capability})
    verdict = decide_verdict(replace(make_run(), environment=host), (), Policy(thresholds={}))
    return write_setting(replace(verdict, options={"--config": config} if config else {}))


def test_a_command_names_the_configuration() -> None:
    """After its own name, quoted for a shell; the default is not named."""
    mine, plain = make_setting("my c.yml"), make_setting("c.yml")
    assert write_command("baseline refresh", mine) == "compile-gate baseline refresh --config 'my c.yml'"
    assert write_selected("check", ["a"], plain) == "compile-gate check --config c.yml --select a"
    assert write_ab(["a"], None, make_setting("")) == "compile-gate ab --select a"


def test_a_command_names_the_target_that_was_judged() -> None:
    """Otherwise the device of gate.yml would measure; so with a real GPU."""
    setting = make_setting("c.yml", kind="target", capability="9.0")
    assert write_ab(["a"], None, setting) == "compile-gate ab --config c.yml --target cuda:sm_90 --select a"
    assert make_setting("", kind="cuda", capability="9.0") == "--device cuda"
    assert make_setting("", kind="cpu", capability="") == ""
    assert make_setting("", kind="target", capability="9.0; rm") == ""


def test_a_command_for_many_cases_is_short() -> None:
    """Up to three ids, else models, of many models the first ten."""
    three = ["a/x", "a/y", "b/x"]
    assert write_selected("check", three) == "compile-gate check --select a/x,a/y,b/x"
    assert write_ab([*three, "b/y"], None) == "compile-gate ab --select a,b"
    many = [f"m{number}/{case}" for number in range(12) for case in "xy"]
    assert write_selected("check", many) == "compile-gate check --select m0,m1,m2,m3,m4,m5,m6,m7,m8,m9"
