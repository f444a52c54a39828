"""What a mode starts with which arguments, and what it reports: rules and commands are stand-ins."""

import os
import runpy
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from action.step import parse_command_file
from records import CASES, make_passing
from refreshes import make_run
from runner_log import list_commands

from gate.action import modes
from gate.action.base_commit import AcceptedFiles
from gate.action.inputs import ActionMode, ActionStep, parse_inputs
from gate.action.modes import make_check_arguments, make_compare_arguments, run_action
from gate.action.rules import RuleSource
from gate.action.step import Ended
from gate.errors import FileError, UsageError
from gate.files.codec import RUN, SHOWN, VERDICT
from gate.git import GIT_SETTINGS
from gate.project.config import make_default_config
from gate.publish.shown import make_shown
from gate.store.rules import BaseRules
from tests.git import run_git

SHA = "a" * 40
BASE = "b" * 40
START = {
    ActionMode.CHECK: modes.start_check,
    ActionMode.MEASURE: modes.start_measure,
    ActionMode.JUDGE: modes.start_judge,
    ActionMode.UPGRADE: modes.start_pairs,
    ActionMode.REFRESH: modes.start_refresh,
}
NEEDED = {"base_python": "a", "head_python": "b", "shard": "1/2"}


class Workspace:
    """Of a runner, with stand-ins: ``source`` has the rules; each command ends with the next of ``codes``."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(root)
        config = replace(make_default_config(), refresh_trials=9)
        rules = BaseRules(config=config, cases=CASES, sha=BASE)
        self.root, self.source = root, RuleSource(rules=rules, origin="why")
        self.event: dict[str, object] = {}
        self.codes = [0]
        self.leaves: Mapping[str, str] = {}  # what the last command writes, by its name below ``out``
        self.seen: list[tuple[str, ...]] = []
        monkeypatch.setattr(modes, "open_rule_source", self._open)
        monkeypatch.setattr(modes, "load_config", lambda _: self.source.rules.config)
        monkeypatch.setattr(modes, "find_confirming_commit", lambda _: SHA)
        monkeypatch.setattr(modes, "run_command", self._run)

    @contextmanager
    def _open(self, _: ActionStep) -> Iterator[RuleSource]:
        yield self.source

    def _run(self, _: ActionStep, arguments: tuple[str, ...]) -> Ended:
        self.seen.append(arguments)
        code = self.codes.pop(0)
        if not self.codes:
            for name, text in self.leaves.items():
                (self.root / "out" / name).parent.mkdir(exist_ok=True)
                (self.root / "out" / name).write_text(text)
        return Ended(code=code, complaints=("a complaint.",) if code else ())

    def leave_verdict(self) -> None:
        self.leaves = {"verdict.json": VERDICT.encode(make_passing()), "report.md": "# A report\n"}

    def change(self, *, rules: Mapping[str, Any] | None = None, **changes: Any) -> None:
        """Change the configuration, or with ``rules`` what is around it."""
        config = replace(self.source.rules.config, **changes)
        self.source = replace(self.source, rules=replace(self.source.rules, config=config, **(rules or {})))

    def start(self, mode: str, **inputs: str) -> int:
        given = {f"INPUT_{name.upper()}": value for name, value in {**NEEDED, **inputs}.items()}
        environ = {
            "GITHUB_OUTPUT": str(self.root / "output"),
            "GITHUB_STEP_SUMMARY": str(self.root / "summary"),
            "GITHUB_RUN_ID": "77",
        }
        if mode.startswith("publish"):
            given["INPUT_TOKEN"] = "ghs_x"
        parsed = parse_inputs({**given, "INPUT_MODE": mode})
        step = ActionStep(inputs=parsed, environ=environ, event=self.event)
        return START.get(ActionMode(mode), modes.start_publish)(step)

    def put_shards(self, *names: str) -> list[str]:
        paths = [self.root / "shards" / name / "run.json" for name in names]
        for path in paths:
            path.parent.mkdir(parents=True)
            path.touch()
        return [str(path.relative_to(self.root)) for path in paths]

    @property
    def outputs(self) -> dict[str, str]:
        path = self.root / "output"
        return parse_command_file(path.read_text()) if path.exists() else {}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    return Workspace(tmp_path, monkeypatch)


@pytest.mark.parametrize("mode", START)
def test_no_mode_takes_an_earlier_result_for_its_own(workspace: Workspace, mode: str) -> None:
    """A self-hosted runner keeps its workspace; where results go is an output from the start."""
    workspace.put_shards("1")
    (workspace.root / "out").mkdir()
    for name in ("verdict.json", "run.json"):
        (workspace.root / "out" / name).write_text("{}")
    workspace.codes = [1]

    assert workspace.start(mode) == 1
    assert list((workspace.root / "out").iterdir()) == []
    assert workspace.outputs["out-path"] == str(workspace.root / "out")


@pytest.mark.parametrize("mode", ["check", "measure", "judge"])
def test_every_mode_that_judges_says_by_which_rules(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    """The commit and how it was found are in the log before anything runs."""
    workspace.put_shards("1")
    workspace.codes = [1]

    workspace.start(mode)

    first = f"Configuration and baselines are those of commit {BASE}: why."
    assert capsys.readouterr().out.splitlines()[0] == first


def test_a_measuring_job_fails_for_nothing_that_it_measured(workspace: Workspace) -> None:
    """Its outputs name the run and the rules; what is worse is for the job that judges."""
    workspace.leaves = {"run.json": RUN.encode(make_run(SHA))}

    assert workspace.start("measure") == 0
    assert workspace.seen == [("check", f"--base={SHA}", "--shard=1/2", "--fail-on=never")]
    outputs = workspace.outputs
    assert (outputs["cases"], outputs["head-sha"], outputs["baseline-sha"]) == ("1", SHA, BASE)
    assert outputs["result-path"] == str(workspace.root / "out" / "run.json")


def test_a_measuring_job_that_leaves_no_run_has_no_result(workspace: Workspace) -> None:
    """The exit code is the command's."""
    workspace.codes = [4]

    assert workspace.start("refresh") == 4
    assert workspace.seen == [("measure", "--trials=9")]
    assert "result-path" not in workspace.outputs


@pytest.mark.parametrize(
    ("given", "configured", "expected"),
    [
        ("", None, ["--fail-on=regression"]),
        ("", "new", []),
        ("never", None, ["--fail-on=never"]),
        ("never", "new", ["--fail-on=never"]),
    ],
)
@pytest.mark.parametrize("mode", ["check", "judge", "upgrade"])
def test_a_regression_fails_a_job_unless_something_else_is_set(
    workspace: Workspace, mode: str, given: str, configured: str | None, expected: list[str]
) -> None:
    """By the workflow, or by gate.yml, which the command reads itself."""
    workspace.put_shards("1")
    workspace.change(fail_on=configured)
    workspace.codes = [0, 1] if mode == "judge" else [1]

    workspace.start(mode, fail_on=given)

    assert [word for word in workspace.seen[-1] if word.startswith("--fail-on")] == expected


@pytest.mark.parametrize(
    ("files", "gate", "expected"),
    [
        ((), "gate.yml", ()),
        (("a.yml",), "", ("--accepted=a.yml",)),
        (("a.yml", "b.yml"), "gate.yml", ("--accepted=a.yml", "--accepted=b.yml", "--gate=gate.yml")),
    ],
)
def test_a_command_is_given_what_was_accepted_and_for_which_gate(
    workspace: Workspace, files: tuple[str, ...], gate: str, expected: tuple[str, ...]
) -> None:
    """Without an acceptance it needs no name of its gate."""
    source = replace(workspace.source, accepted=AcceptedFiles(files=files), gate=gate)
    inputs = parse_inputs({})

    assert make_check_arguments(inputs, source) == ("check", "--no-base", *expected)
    compared = make_compare_arguments({**inputs, "mode": "judge"}, source, ("b", "r.json"))
    assert compared == ("compare", *expected, "--out=out", "--", "b", "r.json")


def test_the_shards_are_merged_in_order_and_then_compared(workspace: Workspace) -> None:
    """Of the base's selection, with the base's baselines; where none are stored there is a verdict, too."""
    paths = workspace.put_shards("4", "1", "8", "2", "7", "3", "6", "5")
    workspace.change(select="bert", baselines=workspace.root / "perf" / "stored")
    workspace.codes = [0, 2]

    assert workspace.start("judge", config="c.yml") == 2
    assert workspace.seen == [
        ("merge", "--config=c.yml", "--select=bert", "--out=out", "--", *sorted(paths)),
        (
            *("compare", "--out=out", "--fail-on=regression", "--config=c.yml", "--"),
            *(str(workspace.root / "perf" / "stored"), str(workspace.root / "out" / "run.json")),
        ),
    ]
    assert (workspace.root / "perf" / "stored").is_dir()


def test_shards_that_cannot_be_merged_are_not_compared(workspace: Workspace) -> None:
    """The exit code is that of the command that failed."""
    workspace.put_shards("1")
    workspace.codes = [12]

    with pytest.raises(FileError, match=r"verdict\.json: was not written"):
        workspace.start("judge")
    assert [arguments[0] for arguments in workspace.seen] == ["merge"]


def test_without_a_shard_there_is_nothing_to_judge(workspace: Workspace) -> None:
    """No command is started, and the fix is to download them."""
    (workspace.root / "shards").mkdir()

    with pytest.raises(UsageError, match=r"no run\.json below 'shards'"):
        workspace.start("judge")
    assert workspace.seen == []


@pytest.mark.parametrize(
    ("commit", "given", "expected"),
    [("", "", "baselines"), ("", "mine", "mine"), (BASE, "mine", "baselines"), (BASE, "", "baselines")],
)
def test_baselines_of_the_workflow_count_where_no_commit_has_the_rules(
    workspace: Workspace, commit: str, given: str, expected: str
) -> None:
    """Those of a base commit were looked up there already; a directory that exists is used as it is."""
    workspace.put_shards("1")
    workspace.change(commit=commit)
    (workspace.root / expected).mkdir()
    workspace.codes = [0, 1]

    workspace.start("judge", baselines=given)

    assert workspace.seen[-1][-2] == expected


@pytest.mark.parametrize(("given", "expected"), [("", "tag:smoke"), ("unet", "unet")])
def test_a_selection_of_the_workflow_comes_before_the_usual_one(
    workspace: Workspace, given: str, expected: str
) -> None:
    """Every job of a run must choose the same cases."""
    workspace.put_shards("1")
    cases = tuple(replace(case, tags=("smoke", "pr")) for case in CASES)
    workspace.change(rules={"cases": cases}, select="tag:smoke")
    workspace.codes = [1]

    workspace.start("judge", select=given)

    assert f"--select={expected}" in workspace.seen[0]


@pytest.mark.parametrize(
    ("is_first", "code", "has_verdict", "expected", "levels"),
    [
        (True, 3, False, 0, ["notice", "warning"]),
        (True, 3, True, 0, ["notice", "notice"]),
        (True, 2, False, 2, ["notice", "error"]),
        (True, 10, True, 10, ["notice", "error"]),
        (False, 3, True, 3, ["error"]),
        (False, 2, False, 2, ["error"]),
    ],
)
def test_only_the_change_that_adds_the_rules_may_compare_nothing(
    workspace: Workspace,
    capsys: pytest.CaptureFixture[str],
    *,
    is_first: bool,
    code: int,
    has_verdict: bool,
    expected: int,
    levels: list[str],
) -> None:
    """Then why is a warning, or a verdict that fails nothing; any other code stays what it is."""
    workspace.change(rules={"sha": "", "changed": ("gate.yml",)} if is_first else {})
    if has_verdict:
        workspace.leave_verdict()
    workspace.codes = [code]

    assert workspace.start("check") == expected
    assert [command.name for command in list_commands(capsys.readouterr().out)] == levels
    assert ("verdict" in workspace.outputs) is has_verdict


def test_a_verdict_is_left_without_its_words_for_who_publishes(workspace: Workspace) -> None:
    """The summary is the command's report; outputs name all files of it."""
    workspace.leave_verdict()

    assert workspace.start("check") == 0
    out = workspace.root / "out"
    assert SHOWN.load(out / "shown.json") == make_shown(make_passing())
    assert (workspace.root / "summary").read_text() == "# A report\n"
    outputs = workspace.outputs
    assert [outputs[name] for name in ("result-path", "report-path", "page-path")] == [
        *(str(out / name) for name in ("shown.json", "report.md", "report.html"))
    ]
    assert (outputs["verdict"], outputs["baseline-sha"], outputs["head-sha"]) == ("PASS", BASE, "d" * 40)


@pytest.mark.parametrize(
    ("mode", "given", "event", "expected"),
    [
        ("publish", "", {"workflow_run": {"id": 9}}, "9"),
        ("publish", "5", {"workflow_run": {"id": 9}}, "5"),
        ("publish", "5", {}, "5"),
        ("publish-upgrade", "", {"workflow_run": {"id": 9}}, "77"),
        ("publish-upgrade", "5", {}, "5"),
    ],
)
def test_a_run_to_publish_is_named_once(
    workspace: Workspace, mode: str, given: str, event: dict[str, object], expected: str
) -> None:
    """By the input, else by the event, or for an upgrade by the job itself."""
    workspace.event = event

    assert workspace.start(mode, run_id=given) == 0
    (arguments,) = workspace.seen
    assert arguments[:2] == ("github", "publish")
    assert [word for word in arguments if word.startswith("--run-id")] == [f"--run-id={expected}"]


def test_without_a_run_nothing_is_published(workspace: Workspace) -> None:
    """The job's own run is none that is published, unless it measured an upgrade."""
    with pytest.raises(UsageError, match="input run-id: this event has no run to publish"):
        workspace.start("publish")
    assert workspace.seen == []


def test_a_pull_requests_own_head_is_what_was_judged(workspace: Workspace) -> None:
    """What was measured is GitHub's trial merge, which no branch has."""
    workspace.event = {"pull_request": {"head": {"sha": SHA}}}
    workspace.leave_verdict()

    workspace.start("check")

    assert workspace.outputs["head-sha"] == SHA


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, at the top of a repository."""
    (tmp_path / "work").mkdir()
    run_git(tmp_path / "work", "init", "--quiet")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.mark.parametrize("before", ["", "/home/me/gitconfig"])
def test_git_trusts_the_checkout_while_a_mode_runs(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """By a file in the runner's directory; nothing else of the step's gets into the environment."""
    if before:
        monkeypatch.setenv(GIT_SETTINGS, before)
    else:
        monkeypatch.delenv(GIT_SETTINGS, raising=False)

    with modes._trust_workspace({"RUNNER_TEMP": str(tmp_path), "INPUT_TOKEN": "ghs_x"}) as trusting:
        file = Path(os.environ[GIT_SETTINGS])
        assert file.parents[1] == tmp_path
        assert f'directory = "{checkout}"' in file.read_text()
        assert trusting == {"RUNNER_TEMP": str(tmp_path), "INPUT_TOKEN": "ghs_x", GIT_SETTINGS: str(file)}
        assert "INPUT_TOKEN" not in os.environ

    assert os.environ.get(GIT_SETTINGS, "") == before
    assert not file.exists()


def test_outside_a_runner_the_settings_lie_where_temporary_files_go(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty variable names no directory: nothing appears in the checkout."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with modes._trust_workspace({"RUNNER_TEMP": ""}):
        assert Path(os.environ[GIT_SETTINGS]).parents[1] == tmp_path
        assert [path.name for path in checkout.iterdir()] == [".git"]


@pytest.mark.parametrize(
    ("error", "code", "texts"),
    [
        (UsageError("it is wrong", "Fix it."), 2, ["it is wrong. Fix it.", "so is this. Fix it, too."]),
        (KeyboardInterrupt(), 130, []),
        (TypeError("a\nb"), 1, ["TypeError: a. This is a bug in compile-gate: please report it with the"]),
    ],
)
def test_however_a_mode_ends_the_exit_code_is_an_output(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    error: BaseException,
    code: int,
    texts: list[str],
) -> None:
    """Every mistake is an annotation with its fix; who stops a step knows why."""
    monkeypatch.chdir(tmp_path)
    if isinstance(error, UsageError):
        error.others = (UsageError("so is this", "Fix it, too."),)

    def fail(_: ActionStep) -> int:
        raise error

    monkeypatch.setitem(modes._MODES, ActionMode.CHECK, (fail, ()))

    assert run_action({"GITHUB_OUTPUT": str(tmp_path / "output")}) == code
    assert parse_command_file((tmp_path / "output").read_text()) == {"exit-code": str(code)}
    printed = capsys.readouterr().out
    assert ("Traceback (most recent call last)" in printed) is isinstance(error, TypeError)
    errors = [command.data for command in list_commands(printed) if command.name == "error"]
    assert [data[: len(text)] for data, text in zip(errors, texts, strict=True)] == texts


def test_a_mode_runs_in_the_working_directory_of_its_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that cannot be entered is named, and nothing runs elsewhere instead."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    places: list[Path] = []

    def note_place(_: ActionStep) -> int:
        places.append(Path.cwd())
        return 0

    monkeypatch.setitem(modes._MODES, ActionMode.CHECK, (note_place, ()))

    assert run_action({"INPUT_WORKING_DIRECTORY": "nowhere"}) == 2
    assert "input working-directory: 'nowhere' cannot be entered: " in capsys.readouterr().out
    assert run_action({"INPUT_WORKING_DIRECTORY": "sub"}) == 0
    assert places == [tmp_path / "sub"]


def test_as_a_program_it_reads_what_it_was_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inputs come by the file whose number is its argument, the rest by the environment."""
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    file = tmp_path / "given"
    file.write_text('{"INPUT_MODE": "chek"}')
    monkeypatch.setattr(sys, "argv", ["modes", str(os.open(file, os.O_RDONLY))])

    with pytest.raises(SystemExit) as ended:
        runpy.run_path(modes.__file__, run_name="__main__")

    assert ended.value.code == 2
    assert "input mode: 'chek' is not check, measure" in capsys.readouterr().out
    assert parse_command_file((tmp_path / "output").read_text()) == {"exit-code": "2"}
