"""What the action gives its runner: outputs, summary, annotations; the command itself is a stand-in."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from action.played_step import ActionStep, Command
from action.samples import commit
from records import make_comparison
from refreshes import CASE, make_run
from runner_log import list_commands

import gate
from gate.action import modes
from gate.action.inputs import ActionMode, parse_inputs
from gate.action.step import list_annotations, make_child_environment
from gate.errors import ExitCode
from gate.files.codec import RUN, VERDICT
from gate.fingerprint import compute_environment_id
from gate.github.job import MAX_SUMMARY_BYTES, append_summary, render_annotation, write_outputs
from gate.project.config import Config, load_config
from gate.records.cases import Case, Metric
from gate.records.run import GraphBreak, Run, Trial
from gate.records.verdict import Outcome, PairBase, Reason, Status
from gate.store.anchor import RECORD_ANCHOR, AnchorFile, save_anchor
from tests.git import run_git
from tests.make import make_failure, make_verdict

SHA = "a" * 40


@pytest.fixture
def action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> ActionStep:
    """A step that is about to run, whose command finds nothing."""
    action = ActionStep(tmp_path, monkeypatch, capsys)
    action.command = make_passing()
    return action


def make_check(run: Run, baseline: Run, code: int) -> Command:
    """Make a command that writes the files of ``check``."""

    def check(argv: list[str], _: dict[str, str]) -> int:
        config = next((word.partition("=")[2] for word in argv if word.startswith("--config=")), "")
        out = load_config(Path(config) if config else None).out
        verdict = gate.compare(baseline=baseline, candidate=run, policy=gate.load_policy())
        if any(word.startswith("--base-python=") for word in argv):  # of pairs, whose base has its torch
            verdict = replace(verdict, base=PairBase(), base_environment=baseline.environment)
        RUN.save(run, out / "run.json")
        VERDICT.save(verdict, out / "verdict.json")
        (out / "report.md").write_text(gate.render(verdict, "markdown"))
        sys.stdout.write("::set-output name=verdict::PASS\n")
        return code

    return check


def make_passing(code: int = 0) -> Command:
    """Make a command that finds nothing, and ends with a code."""
    return make_check(make_run(SHA), make_run("b" * 40), code)


def make_broken_run(location: str) -> Run:
    """Make a run in which the case has one more graph break than ``make_run`` has."""
    trial = Trial(
        case_id=CASE,
        index=0,
        samples={Metric.COMPILED_LATENCY: (0.01,) * 3, Metric.GRAPH_BREAKS: (1.0,)},
        graph_breaks=(GraphBreak(reason="print", location=location),),
    )
    return make_run(SHA, trials=(trial,), trials_planned=1)


def test_a_regression_is_shown_in_every_way(action: ActionStep) -> None:
    """Outputs, summary, headline and the new graph break's line; the exit code is the gate's."""
    action.command = make_check(make_broken_run("model.py:1"), make_run("b" * 40), 10)

    code = action.run()

    outputs = action.outputs
    base, head = action.base, action.head
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
        "out-path": str(Path("out").absolute()),
        "result-path": str(Path("out/shown.json").absolute()),
        "report-path": str(Path("out/report.md").absolute()),
        "page-path": str(Path("out/report.html").absolute()),
    }
    printed = action.read_printed()
    assert "\n::error title=compile-gate::REGRESSION: " in printed
    annotation = f"title=compile-gate%3A {CASE} graph_breaks,file=model.py,line=1::"
    assert f"\n::error {annotation}" in printed
    assert "REGRESSION" in action.summary


def test_the_line_of_a_break_that_the_base_has_too_is_not_shown(action: ActionStep) -> None:
    """The run holds both; only the new one is annotated."""
    run, base = make_broken_run("model.py:1"), make_broken_run("model.py:1")
    (trial,) = run.trials
    new = GraphBreak(reason="data-dependent branch", location="more.py:2")
    samples = {**trial.samples, Metric.GRAPH_BREAKS: (2.0,)}
    trial = replace(trial, samples=samples, graph_breaks=(*trial.graph_breaks, new))
    Path("more.py").write_text("a = 1\nb = 2\n", encoding="utf-8")
    action.command = make_check(replace(run, trials=(trial,)), base, 10)

    assert action.run() == 10
    assert f"title=compile-gate%3A {CASE} graph_breaks,file=more.py,line=2::" in action.read_printed()


@pytest.mark.parametrize(
    "location",
    ["../../etc/passwd:1", "/etc/passwd:1", "nowhere.py:1", "model.py", "", f"{'a' * 300}.py:1", "a\0.py:1"],
)
def test_a_line_that_is_not_in_the_clone_is_not_shown(action: ActionStep, location: str) -> None:
    """Measured code chose the location; only a file of the clone is annotated."""
    action.command = make_check(make_broken_run(location), make_run("b" * 40), 10)

    action.run()

    assert "file=" not in action.read_printed()


def test_a_case_that_failed_is_shown_on_its_line(tmp_path: Path) -> None:
    """Its annotation names the innermost line of the user's code, without the runner's directory."""
    failure = make_failure("a/x", "boom", log_tail='File "model.py", line 1, in forward')
    row = make_comparison(Case(id="a/x", model="a"), Metric.DRIFT, Status.FAILED, Reason.CASE_FAILED)
    verdict = make_verdict(row, outcome=Outcome.INCOMPLETE, failures=(failure,))
    (tmp_path / "model.py").write_text("x\n", encoding="utf-8")
    lines = list(list_annotations(verdict, tmp_path, ExitCode.INCOMPLETE))
    assert lines[1].startswith("::error title=compile-gate%3A a/x,file=model.py,line=1::")


def test_what_measured_code_prints_is_no_command_to_the_runner(action: ActionStep) -> None:
    """Between two tokens, which differ each time, the runner executes nothing."""
    tokens = []

    for _ in range(2):
        action.run()
        lines = action.read_printed().splitlines()
        (first,) = (line for line in lines if line.startswith("::stop-commands::"))
        token = first.removeprefix("::stop-commands::")
        assert not any(line.startswith("::") for line in lines[: lines.index(first)])
        assert lines.index("::set-output name=verdict::PASS") < lines.index(f"::{token}::")
        tokens.append(token)

    assert len(set(tokens)) == 2
    assert all(len(token) == 32 for token in tokens)


def test_a_passing_check_under_a_lenient_rule_is_not_an_error(action: ActionStep) -> None:
    """If nothing fails, a regression is a warning: a green job shows no error."""
    action.command = make_check(make_broken_run(""), make_run("b" * 40), 0)

    assert action.run() == 0
    printed = action.read_printed()
    assert "::warning title=compile-gate::REGRESSION" in printed
    assert "::error" not in printed


@pytest.mark.parametrize(("code", "ended"), [(3, 0), (10, 10), (11, 11)])
def test_the_change_that_adds_the_configuration_need_not_compare_anything(
    action: ActionStep, code: int, ended: int
) -> None:
    """Its base has none, so the first check is green with a notice, unless it finds a failure."""
    action.command = make_passing(code)
    assert action.run() == code  # where the base has one

    base = run_git(Path.cwd(), "commit-tree", "-m", "empty", run_git(Path.cwd(), "mktree"))
    run_git(Path.cwd(), "reset", "--quiet", "--soft", base)
    action.set_pull(base, commit(Path.cwd(), "add gate.yml"))

    assert action.run() == ended
    assert action.outputs["exit-code"] == str(ended)
    printed = action.read_printed()
    assert "::notice title=compile-gate::The base commit has no configuration yet" in printed


@pytest.mark.parametrize("code", [1, 2, 4, 130, 137])
def test_a_verdict_next_to_a_failure_is_none(action: ActionStep, code: int) -> None:
    """Measured code could have written it and ended the command: it is not published."""
    action.command = make_passing(code)

    assert action.run() == code
    assert action.outputs == {"exit-code": str(code), "out-path": str(Path("out").absolute())}


@pytest.mark.parametrize("name", ["out", "out/verdict.json"])
def test_what_lies_where_results_go_is_reported(action: ActionStep, name: str) -> None:
    """A change may bring a file or a directory of that name."""
    action.command = 0
    if name == "out":
        Path(name).write_text("")
    else:
        Path(name).mkdir(parents=True)

    assert action.run() == 2
    assert "::error title=compile-gate::" in (printed := action.read_printed())
    assert "out/verdict.json cannot be replaced: " in printed


@pytest.mark.parametrize("mode", ["check", "measure", "refresh"])
def test_an_error_of_the_command_is_the_annotation(action: ActionStep, mode: str) -> None:
    """The run's page shows the error and the fix."""
    action.command = "no tag matches 'tag:pr'. Did you mean 'tag:gpu'?"

    assert action.run(mode=mode, **({"shard": "1/2"} if mode == "measure" else {})) == 2
    printed = action.read_printed()
    assert "::error title=compile-gate::no tag matches 'tag:pr'. Did you mean 'tag:gpu'?\n" in printed
    assert "see the log" not in printed
    assert action.outputs["exit-code"] == "2"


def test_a_bug_of_the_action_is_an_annotation_and_exit_code_1(
    action: ActionStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The traceback, which may quote the change, is no command to the runner."""

    def fail(_: object) -> int:
        raise TypeError("unexpected\n::set-output name=verdict::PASS")

    monkeypatch.setitem(modes._MODES, ActionMode.CHECK, (fail, ()))

    assert action.run() == 1
    printed = action.read_printed()
    commands = list_commands(printed)
    assert [command.name for command in commands] == ["stop-commands", "error"]
    assert "Traceback" in printed
    assert "TypeError: unexpected. This is a bug in compile-gate" in commands[-1].data
    assert action.outputs == {"exit-code": "1"}


@pytest.mark.parametrize("name", ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"])
def test_a_file_of_the_runner_that_cannot_be_written_changes_no_code(action: ActionStep, name: str) -> None:
    """On a full disk the exit code is the regression's, with a message and no traceback."""
    action.environ[name] = "/dev/full"
    action.command = make_check(make_broken_run("model.py:1"), make_run("b" * 40), 10)

    assert action.run() == 10
    printed = action.read_printed()
    assert "::error title=compile-gate::/dev/full: cannot be written" in printed
    assert "Traceback" not in printed


def test_a_line_is_named_from_the_top_of_the_repository(action: ActionStep) -> None:
    """GitHub looks for it there, wherever configuration and working directory are."""
    top = Path.cwd()
    Path("perf").mkdir()
    for name in ("gate.yml", "model.py"):
        (top / name).rename(top / "perf" / name)
    base = commit(top, "base")
    action.set_pull(base, commit(top, "head"))
    action.command = make_check(make_broken_run("model.py:1"), make_run("b" * 40), 10)

    action.run(config="perf/gate.yml")
    from_above = action.read_printed()
    action.command = make_check(make_broken_run(f"{top}/perf/model.py:1"), make_run("b" * 40), 10)
    action.run(working_directory="perf")

    assert ",file=perf/model.py,line=1::" in from_above
    assert ",file=perf/model.py,line=1::" in action.read_printed()


def test_a_check_that_ends_well_and_leaves_nothing_is_no_pass(action: ActionStep) -> None:
    """Not even if a self-hosted runner's workspace has an earlier run's verdict."""
    make_passing()([], {})
    action.command = 0

    assert action.run() == 2
    assert action.outputs == {"exit-code": "2", "out-path": str(Path("out").absolute())}


def test_a_change_to_the_rules_is_reported_and_does_not_hold(action: ActionStep) -> None:
    """The command gets the base's rules; page and summary name the changed file."""
    Path("gate.yml").write_text("version: 1\nerror_budget: 0.5\n")
    commit(Path.cwd(), "head")

    action.run()

    (argv,) = action.seen
    assert argv[:2] == ["check", f"--rules={action.base}"]
    tree = Path(argv[2].removeprefix("--base-tree="))
    assert tree.name == "base"
    assert not tree.exists()
    text = "This change touches what it is judged by (gate.yml); it was judged by commit "
    assert f"::warning title=compile-gate::{text}" in action.read_printed()
    assert f"> {text}" in action.summary


@pytest.mark.parametrize(("keys", "expected"), [("", "regression"), ("fail_on: new\nselect: bert\n", "new")])
def test_the_base_decides_what_is_measured_and_what_fails_a_change(
    action: ActionStep, keys: str, expected: str
) -> None:
    """The change's gate.yml differs; without a setting in the base's, the action's default holds."""
    configs: list[Config] = []

    def check(argv: list[str], _: dict[str, str]) -> int:
        configs.append(load_config(Path(argv[2].removeprefix("--base-tree="), "gate.yml")))
        return 2

    action.command = check
    Path("gate.yml").write_text(f"version: 1\n{keys}")
    base = commit(Path.cwd(), "another base")
    Path("gate.yml").write_text("version: 1\nfail_on: never\nselect: unet\n")
    action.set_pull(base, commit(Path.cwd(), "head"))

    assert action.run() == 2

    options = [argument for argument in action.seen[0] if argument.startswith(("--fail-on", "--select"))]
    assert options == ([] if keys else ["--fail-on=regression"])
    assert (configs[0].fail_on or "regression") == expected
    assert configs[0].select == ("bert" if keys else "")


@pytest.mark.parametrize("mode", ["check", "measure", "judge"])
@pytest.mark.parametrize("name", ["fail-on", "select"])
def test_a_workflow_does_not_decide_how_a_change_is_judged(action: ActionStep, mode: str, name: str) -> None:
    """The publisher would not know; on a push or a schedule a workflow may."""
    shard = Path("shards/run.json")
    shard.parent.mkdir()
    shard.write_text("{}")

    assert action.run(mode=mode, shard="1/2", **{name.replace("-", "_"): "never"}) == 2
    assert "of a pull request or a merge group the base's gate.yml says that" in action.read_printed()


def list_base_arguments(argv: list[str]) -> list[str]:
    return [argument for argument in argv if argument.startswith(("--base=", "--no-base"))]


@pytest.mark.parametrize(
    ("inputs", "is_pull", "expected"),
    [
        ({}, True, True),
        ({"confirm": "true"}, True, True),
        ({"confirm": "false"}, True, False),
        ({}, False, False),
    ],
)
def test_suspects_are_confirmed_against_the_base_commit(
    action: ActionStep, inputs: dict[str, str], is_pull: bool, expected: bool
) -> None:
    """By default a pull request's command gets the base commit for pairs."""
    if not is_pull:
        action.set_event({})

    assert action.run(**inputs) == 0
    assert list_base_arguments(action.seen[0]) == [f"--base={action.base}" if expected else "--no-base"]
    assert "side by side" not in action.read_printed()


def test_a_base_out_of_reach_is_a_note_and_no_failure(action: ActionStep) -> None:
    """In a shallow clone the check does not confirm; page and summary show the fix."""
    base, head = commit(Path.cwd(), "base"), commit(Path.cwd(), "head")
    shallow = Path.cwd().parent / "shallow"
    clone = ["git", "clone", "--quiet", "--depth=1", f"file://{Path.cwd()}", str(shallow)]
    subprocess.run(clone, check=True)
    action.set_pull(base, head)

    code = action.run(working_directory=str(shallow), baseline_ref="head")

    reason = f"the base commit {base} is not in this clone."
    note = f"What looks worse is not measured again side by side: {reason}"
    assert code == 0
    assert list_base_arguments(action.seen[0]) == ["--no-base"]
    assert (
        f"::warning title=compile-gate::{note} Give actions/checkout `fetch-depth: 0`."
        in action.read_printed()
    )
    assert note in action.summary


def test_an_upgrade_begins_its_summary_with_the_paragraph(action: ActionStep) -> None:
    """The command is ``ab`` on both interpreters; summary and outputs show the result."""
    assert action.run(mode="upgrade", base_python="old/python", head_python="new/python") == 0
    assert action.seen[0] == [
        *("ab", "--fail-on=regression"),
        *("--base-python=old/python", "--head-python=new/python"),
    ]
    summary = action.summary
    assert summary.startswith("torch 2.13.0 in both stacks. Cases that compile and agree on the new ")
    assert "\n\n## " in summary
    assert action.outputs["result-path"].endswith("shown.json")


@pytest.mark.parametrize(("given", "where"), [("", "perf"), ("other", "other")])
def test_the_anchor_is_looked_for_beside_the_baselines(action: ActionStep, given: str, where: str) -> None:
    """Without one nothing is measured, and a notice names the file and how to record it."""
    Path("gate.yml").write_text("version: 1\nbaselines: perf\n")
    assert action.run(mode="anchor", baselines=given) == 0
    assert (action.seen, action.outputs.get("result-path")) == ([], None)
    printed = action.read_printed()
    assert "::notice title=compile-gate::" in printed
    assert f"{where}/anchor.yml does not exist" in printed
    assert RECORD_ANCHOR in printed
    save_anchor(
        Path(where), AnchorFile(version=1, commit=SHA, created="2026-11-01T12:00:00Z", reason="a release")
    )

    assert action.run(mode="anchor", baselines=given) == 0
    assert action.seen == [
        ["ab", "--anchor", "--fail-on=regression", *([f"--baselines={given}"] * bool(given))]
    ]


def test_a_refresh_outputs_where_the_run_is(action: ActionStep) -> None:
    """It measures as many trials as a baseline needs; the next job gets the run."""

    def measure(*_: object) -> int:
        RUN.save(make_run(SHA), Path("out/run.json"))
        return 0

    action.command = measure

    assert action.run(mode="refresh", select="bert") == 0
    assert action.seen == [["measure", "--trials=5", "--select=bert"]]
    outputs = action.outputs
    assert (outputs["result-path"], outputs["head-sha"]) == (str(Path("out/run.json").absolute()), SHA)


def test_a_plan_needs_no_base_and_no_torch(action: ActionStep) -> None:
    """The command only reads the checkout's gate.yml; its error is an annotation."""
    action.set_event({})
    action.command = 0
    assert action.run(mode="plan") == 0
    action.command = "gate.yml:1: cannot be read."
    assert action.run(mode="plan") == 2
    assert action.seen == [["plan"]] * 2
    assert "::error title=compile-gate::gate.yml:1: cannot be read." in action.read_printed()


@pytest.mark.parametrize("mode", ["check", "measure", "judge", "upgrade", "anchor", "refresh"])
def test_code_under_test_has_no_way_to_the_runner(action: ActionStep, mode: str) -> None:
    """It gets no token, no inputs, and none of the files of outputs, variables and paths."""
    hidden = {
        **dict.fromkeys(("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"), "x"),
        **dict.fromkeys(("ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "INPUT_TOKEN"), "x"),
    }
    needed = {"INPUT_BASE_PYTHON": "a", "INPUT_HEAD_PYTHON": "b", "INPUT_SHARD": "1/2"}
    inputs = parse_inputs({"INPUT_MODE": mode, **needed})

    kept = make_child_environment({**action.environ, **hidden, "GITHUB_SHA": SHA}, inputs)

    assert sorted(kept) == ["GITHUB_SHA", "PATH"]


def test_what_writes_gets_the_token_and_nothing_measured(action: ActionStep) -> None:
    """The input becomes the command's variable, and is in none of its arguments."""
    inputs = parse_inputs({"INPUT_MODE": "publish", "INPUT_TOKEN": "ghs_x"})

    kept = make_child_environment({**action.environ, "INPUT_TOKEN": "ghs_x"}, inputs)

    assert kept["GITHUB_TOKEN"] == "ghs_x"
    assert "INPUT_TOKEN" not in kept


@pytest.mark.parametrize(
    ("run_id", "event", "expected"), [("5", {}, "5"), ("", {"workflow_run": {"id": 9}}, "9")]
)
def test_a_run_to_publish_is_the_inputs_or_the_events(
    action: ActionStep, run_id: str, event: dict[str, Any], expected: str
) -> None:
    """Without either, the error names the input."""
    action.command = 0
    action.set_event(event)
    given = {"mode": "publish", "token": "ghs_x"}

    assert action.run(**given, run_id=run_id) == 0
    assert f"--run-id={expected}" in action.seen[0]
    action.set_event({})
    assert action.run(**given) == 2


def test_an_output_cannot_forge_another(action: ActionStep) -> None:
    """A value with lines that look like outputs stays one value."""
    hostile = "x\nverdict=PASS\nend\nverdict<<end\nPASS\nend"

    write_outputs(action.environ, {"select": hostile, "cases": 3})

    assert action.outputs == {"select": hostile, "cases": "3"}


def test_a_summary_stays_within_what_github_takes(action: ActionStep) -> None:
    """Beyond 1 MiB GitHub drops all of it, so it is cut on a character, with a note."""
    for _ in range(3):
        append_summary(action.environ, "\u00e9" * MAX_SUMMARY_BYTES)

    content = Path(action.environ["GITHUB_STEP_SUMMARY"]).read_bytes()
    assert len(content) <= MAX_SUMMARY_BYTES
    assert content.decode().count("Cut short") == 1


def test_outside_github_actions_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """No file appears and nothing is printed."""
    monkeypatch.chdir(tmp_path)
    write_outputs({}, {"a": "b"})
    append_summary({}, "text")
    assert list(tmp_path.iterdir()) == []
    assert tuple(capfd.readouterr()) == ("", "")


def test_an_annotation_is_one_command() -> None:
    """Line ends, percent signs, and in properties colons and commas are escaped.

    Escapes of a terminal, and characters that are invisible or turn the writing, are shown.
    """
    assert render_annotation("error", "50 %\n::warning::x", "a: b, c", "dir/f.py:3") == (
        "::error title=a%3A b%2C c,file=dir/f.py,line=3::50 %25%0A::warning::x"
    )
    assert render_annotation("error", "a\x1b[31mb\u202ec\u200bd", "\u2066x") == (
        "::error title=?x::a?[31mb?c?d"
    )
