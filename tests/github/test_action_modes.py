"""What the action tells its runner: outputs, summary, annotations; the command itself is a stand-in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from action.composite import parse_command_file
from action.samples import commit, git
from refreshes import CASE, make_run
from runner_log import list_commands

import gate
from gate.action import modes, step
from gate.action.inputs import ActionMode, parse_inputs
from gate.action.modes import run_action
from gate.action.step import Ended, make_child_environment
from gate.files.codec import save_run, save_verdict
from gate.fingerprint import compute_environment_id
from gate.github.job import MAX_SUMMARY_BYTES, append_summary, render_annotation, write_outputs
from gate.project.config import Config, load_config
from gate.records import GraphBreak, Metric, PairBase, Run, Trial

SHA = "a" * 40
Command = Callable[[list[str], dict[str, str]], int | str]


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a step in a clone, with command files."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "gate.yml").write_text("version: 1\n")
    (workspace / "model.py").write_text("x = 1\n")
    monkeypatch.chdir(workspace)
    base, head = commit(workspace, "base"), commit(workspace, "head")
    write_event(tmp_path / "event.json", base, head)
    return {
        "PATH": os.environ["PATH"],
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "RUNNER_TEMP": str(tmp_path),
    }


def write_event(path: Path, base: str, head: str) -> None:
    """Write the payload of a pull request."""
    path.write_text(json.dumps({"pull_request": {"base": {"sha": base}, "head": {"sha": head}}}))


def read_event(environ: dict[str, str]) -> tuple[str, str]:
    """Read base and head of the pull request."""
    pull = json.loads(Path(environ["GITHUB_EVENT_PATH"]).read_text())["pull_request"]
    return pull["base"]["sha"], pull["head"]["sha"]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Command], None]:
    """Set what runs instead of ``gate``; a text that it gives is why it failed, with exit code 2."""

    def set_command(stand_in: Command) -> None:
        def run(argv: list[str], environment: dict[str, str], **_: object) -> Ended:
            assert argv[1:3] == ["-I", "-S"]
            assert argv[4] == "gate"
            came = stand_in(argv[5:], environment)
            return Ended(code=2, complaints=(came,)) if isinstance(came, str) else Ended(code=came)

        monkeypatch.setattr(step, "run_child", run)

    return set_command


def note_arguments(seen: list[list[str]], then: Command) -> Command:
    """Make a command that notes its arguments before it does what ``then`` does."""

    def run(argv: list[str], environment: dict[str, str]) -> int | str:
        seen.append(argv)
        return then(argv, environment)

    return run


def make_check(run: Run, baseline: Run, code: int) -> Command:
    """Make a command that leaves what ``check`` leaves."""

    def check(argv: list[str], _: dict[str, str]) -> int:
        config = next((one.partition("=")[2] for one in argv if one.startswith("--config=")), "")
        out = load_config(Path(config) if config else None).out
        verdict = gate.compare(baseline=baseline, candidate=run, policy=gate.load_policy())
        if any(one.startswith("--base-python=") for one in argv):  # of pairs, whose base tells its torch
            verdict = replace(verdict, base=PairBase(torch=baseline.environment.torch))
        save_run(run, out / "run.json")
        save_verdict(verdict, out / "verdict.json")
        (out / "report.md").write_text(gate.render(verdict, "markdown"))
        sys.stdout.write("::set-output name=verdict::PASS\n")
        return code

    return check


def make_broken_run(location: str) -> Run:
    """Make a run in which the case has one more graph break than ``make_run`` has."""
    trial = Trial(
        case_id=CASE,
        index=0,
        samples={Metric.COMPILED_LATENCY: (0.01,) * 3, Metric.GRAPH_BREAKS: (1.0,)},
        graph_breaks=(GraphBreak(reason="print", location=location),),
    )
    return make_run(SHA, trials=(trial,), trials_planned=1)


def read_outputs(environ: dict[str, str]) -> dict[str, str]:
    return parse_command_file(Path(environ["GITHUB_OUTPUT"]).read_text())


def test_a_regression_is_told_in_every_way(
    environ: dict[str, str], command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Outputs, summary, the headline and the line of the new graph break; the exit code is the gate's."""
    command(make_check(make_broken_run("model.py:1"), make_run("b" * 40), 10))

    code = run_action(environ)

    outputs = read_outputs(environ)
    base, head = read_event(environ)
    assert code == 10
    assert outputs == {
        "baseline-sha": base,
        "verdict": "REGRESSION",
        "exit-code": "10",
        "regressions": "1",
        "improvements": "0",
        "inconclusive": outputs["inconclusive"],
        "cases": "1",
        "environment-id": compute_environment_id(make_run(SHA).environment),
        "head-sha": head,
        "result-path": str(Path("out/verdict.json").absolute()),
        "report-path": str(Path("out/report.md").absolute()),
        "page-path": str(Path("out/report.html").absolute()),
    }
    printed = capsys.readouterr().out
    assert "\n::error title=compile-gate::REGRESSION: " in printed
    place = f"title=compile-gate%3A {CASE} graph_breaks,file=model.py,line=1::"
    assert f"\n::error {place}" in printed
    assert "REGRESSION" in Path(environ["GITHUB_STEP_SUMMARY"]).read_text()


def test_the_line_of_a_break_that_the_base_has_too_is_not_shown(
    environ: dict[str, str], command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """The run holds both; the annotation is on the one that the report calls new."""
    run, base = make_broken_run("model.py:1"), make_broken_run("model.py:1")
    (trial,) = run.trials
    new = GraphBreak(reason="data-dependent branch", location="more.py:2")
    samples = {**trial.samples, Metric.GRAPH_BREAKS: (2.0,)}
    trial = replace(trial, samples=samples, graph_breaks=(*trial.graph_breaks, new))
    Path("more.py").write_text("a = 1\nb = 2\n", encoding="utf-8")
    command(make_check(replace(run, trials=(trial,)), base, 10))

    assert run_action(environ) == 10
    assert f"title=compile-gate%3A {CASE} graph_breaks,file=more.py,line=2::" in capsys.readouterr().out


@pytest.mark.parametrize("location", ["../../etc/passwd:1", "/etc/passwd:1", "nowhere.py:1", "model.py", ""])
def test_a_line_that_is_not_in_the_clone_is_not_shown(
    environ: dict[str, str],
    command: Callable[[Command], None],
    capsys: pytest.CaptureFixture[str],
    location: str,
) -> None:
    """A place is what measured code said; only a file of the clone becomes one."""
    command(make_check(make_broken_run(location), make_run("b" * 40), 10))

    run_action(environ)

    assert "file=" not in capsys.readouterr().out


def test_what_measured_code_prints_is_no_command_to_the_runner(
    environ: dict[str, str], command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Between the two tokens, which differ each time, the runner obeys nothing."""
    command(make_check(make_run(SHA), make_run("b" * 40), 0))
    tokens = []

    for _ in range(2):
        run_action(environ)
        lines = capsys.readouterr().out.splitlines()
        (first,) = (line for line in lines if line.startswith("::stop-commands::"))
        token = first.removeprefix("::stop-commands::")
        assert not any(line.startswith("::") for line in lines[: lines.index(first)])
        assert lines.index("::set-output name=verdict::PASS") < lines.index(f"::{token}::")
        tokens.append(token)

    assert len(set(tokens)) == 2
    assert all(len(token) == 32 for token in tokens)


def test_a_passing_check_under_a_lenient_rule_is_not_an_error(
    environ: dict[str, str], command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing fails a regression is a warning: a green job shows no error."""
    command(make_check(make_broken_run(""), make_run("b" * 40), 0))

    assert run_action(environ) == 0
    printed = capsys.readouterr().out
    assert "::warning title=compile-gate::REGRESSION" in printed
    assert "::error" not in printed


@pytest.mark.parametrize(("code", "ended"), [(3, 0), (10, 10), (11, 11)])
def test_the_change_that_adds_the_configuration_need_not_compare_anything(
    environ: dict[str, str],
    command: Callable[[Command], None],
    capsys: pytest.CaptureFixture[str],
    code: int,
    ended: int,
) -> None:
    """Its base has none, so a first check is green with a notice; what it does find fails all the same."""
    base = git(Path.cwd(), "commit-tree", "-m", "empty", git(Path.cwd(), "mktree"))
    git(Path.cwd(), "reset", "--quiet", "--soft", base)
    write_event(Path(environ["GITHUB_EVENT_PATH"]), base, commit(Path.cwd(), "add gate.yml"))
    command(make_check(make_run(SHA), make_run("b" * 40), code))

    assert run_action(environ) == ended
    assert read_outputs(environ)["exit-code"] == str(ended)
    printed = capsys.readouterr().out
    assert "::notice title=compile-gate::The base commit has no configuration yet" in printed


def test_what_compares_nothing_fails_where_the_base_has_a_configuration(
    environ: dict[str, str], command: Callable[[Command], None]
) -> None:
    """Only the first change is let through."""
    command(make_check(make_run(SHA), make_run("b" * 40), 3))

    assert run_action(environ) == 3


def test_an_earlier_runs_verdict_is_not_taken_for_this_ones(
    environ: dict[str, str], command: Callable[[Command], None]
) -> None:
    """A self-hosted runner keeps its workspace: what lies there is removed before measuring."""
    make_check(make_run(SHA), make_run("b" * 40), 0)([], {})
    command(lambda _, __: 4)

    assert run_action(environ) == 4
    assert read_outputs(environ) == {"exit-code": "4"}


@pytest.mark.parametrize("code", [1, 2, 4, 130, 137])
def test_a_verdict_beside_a_failure_is_none(
    environ: dict[str, str], command: Callable[[Command], None], code: int
) -> None:
    """What is measured could have written it, and have ended the command: it is not published."""
    command(make_check(make_run(SHA), make_run("b" * 40), code))

    assert run_action(environ) == code
    assert read_outputs(environ) == {"exit-code": str(code)}


@pytest.mark.parametrize("name", ["out", "out/verdict.json"])
def test_what_lies_where_results_go_is_told(
    environ: dict[str, str], command: Callable[[Command], None], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """A change may bring a file, or a directory, in place of either."""
    command(lambda _, __: 0)
    if name == "out":
        Path(name).write_text("")
    else:
        Path(name).mkdir(parents=True)

    assert run_action(environ) == 2
    assert "::error title=compile-gate::" in (printed := capsys.readouterr().out)
    assert "out/verdict.json cannot be replaced: " in printed


def test_an_error_of_the_command_is_the_annotation(
    environ: dict[str, str], command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever looks at the run's page reads what is wrong and the fix, and need not look for a log."""
    command(lambda _, __: "no tag matches 'tag:pr'. Did you mean 'tag:gpu'?")

    assert run_action(environ) == 2
    printed = capsys.readouterr().out
    assert "::error title=compile-gate::no tag matches 'tag:pr'. Did you mean 'tag:gpu'?\n" in printed
    assert "see the log" not in printed


@pytest.mark.parametrize("mode", ["plan", "measure", "refresh"])
def test_modes_without_a_verdict_say_why_they_failed(
    environ: dict[str, str],
    command: Callable[[Command], None],
    capsys: pytest.CaptureFixture[str],
    mode: str,
) -> None:
    """There is no report that would say it."""
    command(lambda _, __: "no such case: bart. Did you mean bert?")

    assert run_action({**environ, "INPUT_MODE": mode}) == 2
    assert "::error title=compile-gate::no such case: bart. Did you mean bert?\n" in capsys.readouterr().out
    assert read_outputs(environ)["exit-code"] == "2"


def test_a_bug_of_the_action_is_an_annotation_and_exit_code_1(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The traceback, which may quote the change, is no command to the runner; the output is there."""

    def fail(_: object) -> int:
        raise TypeError("unexpected\n::set-output name=verdict::PASS")

    monkeypatch.setitem(modes._MODES, ActionMode.CHECK, (fail, ()))

    assert run_action(environ) == 1
    printed = capsys.readouterr().out
    found = list_commands(printed)
    assert [one.name for one in found] == ["stop-commands", "error"]
    assert "Traceback" in printed
    assert "TypeError: unexpected. This is a bug in compile-gate" in found[-1].data
    assert read_outputs(environ) == {"exit-code": "1"}


def test_a_line_is_told_from_the_top_of_the_repository(
    environ: dict[str, str], command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """GitHub shows an annotation there, wherever the configuration and the working directory are."""
    top = Path.cwd()
    Path("perf").mkdir()
    for name in ("gate.yml", "model.py"):
        (top / name).rename(top / "perf" / name)
    base = commit(top, "base")
    write_event(Path(environ["GITHUB_EVENT_PATH"]), base, commit(top, "head"))
    command(make_check(make_broken_run("model.py:1"), make_run("b" * 40), 10))

    run_action({**environ, "INPUT_CONFIG": "perf/gate.yml"})
    from_above = capsys.readouterr().out
    command(make_check(make_broken_run(f"{top}/perf/model.py:1"), make_run("b" * 40), 10))
    run_action({**environ, "INPUT_WORKING_DIRECTORY": "perf"})

    assert ",file=perf/model.py,line=1::" in from_above
    assert ",file=perf/model.py,line=1::" in capsys.readouterr().out


def test_a_check_that_ends_well_and_leaves_nothing_is_no_pass(
    environ: dict[str, str], command: Callable[[Command], None]
) -> None:
    """Exit code 0 without a verdict is an error."""
    command(lambda _, __: 0)

    assert run_action(environ) == 2


def test_a_change_to_the_rules_is_said_and_does_not_hold(
    environ: dict[str, str], command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """The command is given the base's rules; page and summary name the file; nothing is left behind."""
    seen: list[list[str]] = []
    check = make_check(make_run(SHA), make_run("b" * 40), 0)
    command(note_arguments(seen, check))
    Path("gate.yml").write_text("version: 1\nerror_budget: 0.5\n")
    commit(Path.cwd(), "head")

    run_action(environ)

    (argv,) = seen
    base, _ = read_event(environ)
    assert argv[0] == "check"
    assert argv[1].startswith(f"--config={environ['RUNNER_TEMP']}/compile-gate-rules-")
    assert argv[2:4] == [f"--directory={Path.cwd()}", f"--rules-commit={base}"]
    assert argv[4].startswith(f"--baselines={environ['RUNNER_TEMP']}")
    text = "This change touches what it is judged by (gate.yml); it was judged by commit "
    assert f"::warning title=compile-gate::{text}" in capsys.readouterr().out
    assert f"> {text}" in Path(environ["GITHUB_STEP_SUMMARY"]).read_text()


@pytest.mark.parametrize(("keys", "expected"), [("", "regression"), ("fail_on: new\nselect: bert\n", "new")])
def test_what_fails_a_change_and_what_is_measured_are_said_by_the_base(
    environ: dict[str, str], command: Callable[[Command], None], keys: str, expected: str
) -> None:
    """The change's own gate.yml says otherwise; the action's default holds where the base's says nothing."""
    seen: list[list[str]] = []
    found: list[Config] = []

    def check(argv: list[str], _: dict[str, str]) -> int:
        seen.append(argv)
        found.append(load_config(Path(argv[1].partition("=")[2])))
        return 2

    command(check)
    Path("gate.yml").write_text(f"version: 1\n{keys}")
    base = commit(Path.cwd(), "another base")
    Path("gate.yml").write_text("version: 1\nfail_on: never\nselect: unet\n")
    write_event(Path(environ["GITHUB_EVENT_PATH"]), base, commit(Path.cwd(), "head"))

    assert run_action(environ) == 2

    said = [one for one in seen[0] if one.startswith(("--fail-on", "--select"))]
    assert said == ([] if keys else ["--fail-on=regression"])
    assert (found[0].fail_on or "regression") == expected
    assert found[0].select == ("bert" if keys else "")


@pytest.mark.parametrize("mode", ["check", "plan", "judge"])
@pytest.mark.parametrize("name", ["fail-on", "select"])
def test_a_workflow_does_not_say_how_a_change_is_judged(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str], mode: str, name: str
) -> None:
    """The publisher would have to say the same; on a push or a schedule a workflow may."""
    shard = Path("shards/run.json")
    shard.parent.mkdir()
    shard.write_text("{}")
    given = {"INPUT_MODE": mode, f"INPUT_{name.upper().replace('-', '_')}": "never"}

    assert run_action({**environ, **given}) == 2
    assert "of a pull request or a merge group the base's gate.yml says that" in capsys.readouterr().out


def list_base_arguments(argv: list[str]) -> list[str]:
    return [argument for argument in argv if argument.startswith(("--base=", "--no-base"))]


@pytest.mark.parametrize(("confirm", "expected"), [(None, True), ("true", True), ("false", False)])
def test_suspects_are_confirmed_against_the_base_commit(
    environ: dict[str, str], command: Callable[[Command], None], confirm: str | None, expected: bool
) -> None:
    """By default, for a pull request: the command is given the base's commit to run side by side with."""
    seen: list[list[str]] = []
    check = make_check(make_run(SHA), make_run("b" * 40), 0)
    command(note_arguments(seen, check))
    base, _ = read_event(environ)

    assert run_action(environ | ({"INPUT_CONFIRM": confirm} if confirm else {})) == 0
    assert list_base_arguments(seen[0]) == [f"--base={base}" if expected else "--no-base"]


def test_a_trial_merge_is_judged_by_what_it_was_merged_into(
    environ: dict[str, str], command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """With a stale payload, too, nothing that main did meanwhile is this change's."""
    seen: list[list[str]] = []
    check = make_check(make_run(SHA), make_run("b" * 40), 0)
    command(note_arguments(seen, check))
    stale, _ = read_event(environ)
    git(Path.cwd(), "checkout", "--quiet", "-b", "topic", stale)
    Path("README.md").write_text("topic")
    head = commit(Path.cwd(), "topic")
    git(Path.cwd(), "checkout", "--quiet", "main")
    Path("gate.yml").write_text("version: 1\nerror_budget: 0.02\n")
    base = commit(Path.cwd(), "main goes on")
    git(Path.cwd(), "merge", "--quiet", "--no-ff", "--message", "trial", "topic")
    write_event(Path(environ["GITHUB_EVENT_PATH"]), stale, head)

    assert run_action(environ) == 0

    assert f"--rules-commit={base}" in seen[0]
    assert list_base_arguments(seen[0]) == [f"--base={base}"]
    assert read_outputs(environ)["baseline-sha"] == base
    printed = capsys.readouterr().out
    assert f"commit {base}: what GitHub merged this change into, to try it." in printed
    assert "::warning" not in printed


def test_a_changed_workflow_is_said(
    environ: dict[str, str], command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """GitHub runs a pull request's own workflows, so whoever reads the result must look at them."""
    command(make_check(make_run(SHA), make_run("b" * 40), 0))
    Path(".github/workflows").mkdir(parents=True)
    Path(".github/workflows/gate.yml").write_text("on: pull_request\n")
    commit(Path.cwd(), "head")

    run_action(environ)

    said = "This change touches .github/workflows/gate.yml: GitHub ran this check as the change has it."
    assert f"::warning title=compile-gate::{said}" in capsys.readouterr().out
    assert said in Path(environ["GITHUB_STEP_SUMMARY"]).read_text()


def test_a_push_has_nothing_to_be_confirmed_against(
    environ: dict[str, str], command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a base commit in the event there is no side-by-side run, and nothing to say about it."""
    seen: list[list[str]] = []
    check = make_check(make_run(SHA), make_run("b" * 40), 0)
    command(note_arguments(seen, check))
    Path(environ["GITHUB_EVENT_PATH"]).write_text("{}")

    assert run_action(environ) == 0
    assert list_base_arguments(seen[0]) == ["--no-base"]
    assert "side by side" not in capsys.readouterr().out


def test_a_base_out_of_reach_is_a_note_and_no_failure(
    environ: dict[str, str], command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """In a shallow clone the check goes on without confirming, and page and summary say how to fix it."""
    seen: list[list[str]] = []
    check = make_check(make_run(SHA), make_run("b" * 40), 0)
    command(note_arguments(seen, check))
    base, head = commit(Path.cwd(), "base"), commit(Path.cwd(), "head")
    shallow = Path.cwd().parent / "shallow"
    clone = ["git", "clone", "--quiet", "--depth=1", f"file://{Path.cwd()}", str(shallow)]
    subprocess.run(clone, check=True)
    write_event(Path(environ["GITHUB_EVENT_PATH"]), base, head)

    code = run_action({**environ, "INPUT_WORKING_DIRECTORY": str(shallow), "INPUT_BASELINE_REF": "head"})

    reason = f"the base commit {base} is not in this clone."
    said = f"What looks worse is not measured again side by side: {reason}"
    assert code == 0
    assert list_base_arguments(seen[0]) == ["--no-base"]
    assert (
        f"::warning title=compile-gate::{said} Give actions/checkout `fetch-depth: 0`."
        in capsys.readouterr().out
    )
    assert said in Path(environ["GITHUB_STEP_SUMMARY"]).read_text()


def test_a_base_without_a_common_ancestor_is_out_of_reach(
    environ: dict[str, str], command: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """The commit is there, and there is no place where the change left it."""
    command(make_check(make_run(SHA), make_run("b" * 40), 0))
    base, _ = read_event(environ)
    subprocess.run(["git", "checkout", "--quiet", "--orphan", "other"], check=True)
    write_event(Path(environ["GITHUB_EVENT_PATH"]), base, commit(Path.cwd(), "unrelated"))

    assert run_action({**environ, "INPUT_BASELINE_REF": "head"}) == 0
    assert f"HEAD and the base commit {base[:12]} have no commit in common." in capsys.readouterr().out


def test_an_upgrade_begins_its_summary_with_the_paragraph(
    environ: dict[str, str], command: Callable[[Command], None]
) -> None:
    """The command is ``ab`` on both interpreters; summary and outputs tell what came of it."""
    seen: list[list[str]] = []
    check = make_check(make_run(SHA), make_run("b" * 40), 0)
    command(note_arguments(seen, check))
    given = {"INPUT_MODE": "upgrade", "INPUT_BASE_PYTHON": "old/python", "INPUT_HEAD_PYTHON": "new/python"}

    assert run_action({**environ, **given}) == 0
    assert seen[0] == [
        *("ab", "--fail-on=regression"),
        *("--base-python=old/python", "--head-python=new/python"),
    ]
    summary = Path(environ["GITHUB_STEP_SUMMARY"]).read_text()
    assert summary.startswith("torch 2.13.0 in both stacks: 1 case of 1 model, measured side by side.")
    assert "\n\n## " in summary
    assert read_outputs(environ)["result-path"].endswith("verdict.json")


def test_the_anchor_is_told_as_a_verdict_is(
    environ: dict[str, str], command: Callable[[Command], None]
) -> None:
    """The command is ``ab --anchor``; its report is the summary, its exit code the step's."""
    seen: list[list[str]] = []
    check = make_check(make_run(SHA), make_run("b" * 40), 0)
    command(note_arguments(seen, check))

    assert run_action({**environ, "INPUT_MODE": "anchor", "INPUT_MINUTES": "150"}) == 0
    assert seen == [["ab", "--anchor", "--fail-on=regression", "--minutes=150"]]
    assert Path(environ["GITHUB_STEP_SUMMARY"]).read_text().startswith("## ")
    assert read_outputs(environ)["result-path"].endswith("verdict.json")


def test_a_refresh_tells_where_the_run_is(
    environ: dict[str, str], command: Callable[[Command], None]
) -> None:
    """It measures as often as a baseline wants; the run is what the next job is given."""
    seen: list[list[str]] = []

    def measure(argv: list[str], _: dict[str, str]) -> int:
        seen.append(argv)
        save_run(make_run(SHA), Path("out/run.json"))
        return 0

    command(measure)

    assert run_action({**environ, "INPUT_MODE": "refresh", "INPUT_SELECT": "bert"}) == 0
    assert seen == [["measure", "--trials=5", "--select=bert"]]
    assert run_action({**environ, "INPUT_MODE": "refresh", "INPUT_TRIALS": "4"}) == 0
    assert seen[1] == ["measure", "--trials=4"]
    outputs = read_outputs(environ)
    assert (outputs["result-path"], outputs["head-sha"]) == (str(Path("out/run.json").absolute()), SHA)


@pytest.mark.parametrize("mode", ["check", "plan", "measure", "judge", "upgrade", "anchor", "refresh"])
def test_code_under_test_has_no_way_to_the_runner(environ: dict[str, str], mode: str) -> None:
    """No token, no inputs, none of the files through which outputs, variables and paths are set."""
    hidden = {
        **dict.fromkeys(("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"), "x"),
        **dict.fromkeys(("ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "INPUT_TOKEN"), "x"),
    }
    stacks = {"INPUT_BASE_PYTHON": "a", "INPUT_HEAD_PYTHON": "b"} if mode == "upgrade" else {}
    inputs = parse_inputs({"INPUT_MODE": mode, **stacks})

    kept = make_child_environment({**environ, **hidden, "GITHUB_SHA": SHA}, inputs)

    assert sorted(kept) == ["GITHUB_SHA", "PATH"]


def test_what_writes_gets_the_token_and_nothing_measured(environ: dict[str, str]) -> None:
    """The input becomes the variable that the command reads, and is in none of its arguments."""
    inputs = parse_inputs({"INPUT_MODE": "publish", "INPUT_TOKEN": "ghs_x"})

    kept = make_child_environment({**environ, "INPUT_TOKEN": "ghs_x"}, inputs)

    assert kept["GITHUB_TOKEN"] == "ghs_x"
    assert "INPUT_TOKEN" not in kept


@pytest.mark.parametrize(
    ("run_id", "event", "expected"), [("5", {}, "5"), ("", {"workflow_run": {"id": 9}}, "9")]
)
def test_a_run_to_publish_is_the_inputs_or_the_events(
    environ: dict[str, str],
    command: Callable[[Command], None],
    run_id: str,
    event: dict[str, Any],
    expected: str,
) -> None:
    """With neither, the input is named."""
    seen: list[list[str]] = []
    command(note_arguments(seen, lambda *_: 0))
    Path(environ["GITHUB_EVENT_PATH"]).write_text(json.dumps(event))
    given = {**environ, "INPUT_MODE": "publish", "INPUT_TOKEN": "ghs_x"}

    assert run_action({**given, "INPUT_RUN_ID": run_id}) == 0
    assert f"--run-id={expected}" in seen[0]
    Path(environ["GITHUB_EVENT_PATH"]).write_text("{}")
    assert run_action(given) == 2


def test_an_output_cannot_forge_another(environ: dict[str, str]) -> None:
    """A value with lines that look like outputs stays one value."""
    hostile = "x\nverdict=PASS\nend\nverdict<<end\nPASS\nend"

    write_outputs(environ, {"select": hostile, "cases": 3})

    assert read_outputs(environ) == {"select": hostile, "cases": "3"}


def test_a_summary_stays_within_what_github_takes(environ: dict[str, str]) -> None:
    """Beyond 1 MiB GitHub drops all of it: it is cut on a character, and says so once."""
    for _ in range(3):
        append_summary(environ, "\u00e9" * MAX_SUMMARY_BYTES)

    content = Path(environ["GITHUB_STEP_SUMMARY"]).read_bytes()
    assert len(content) <= MAX_SUMMARY_BYTES
    assert content.decode().count("Cut short") == 1


def test_outside_github_actions_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """There is nobody to tell: no file appears and nothing is printed."""
    monkeypatch.chdir(tmp_path)
    write_outputs({}, {"a": "b"})
    append_summary({}, "text")
    assert list(tmp_path.iterdir()) == []
    assert tuple(capfd.readouterr()) == ("", "")


def test_an_annotation_is_one_command() -> None:
    """Line ends, percent signs, and in properties colons and commas, are escaped as the runner wants."""
    assert render_annotation("error", "50 %\n::warning::x", "a: b, c", "dir/f.py:3") == (
        "::error title=a%3A b%2C c,file=dir/f.py,line=3::50 %25%0A::warning::x"
    )


def test_an_annotation_shows_what_would_hide_text() -> None:
    """Escapes of a terminal, characters that turn the writing, and such that show nothing."""
    assert render_annotation("error", "a\x1b[31mb\u202ec\u200bd", "\u2066x") == (
        "::error title=?x::a?[31mb?c?d"
    )
