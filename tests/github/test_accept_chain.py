"""The whole way of a regression that is meant, through the shipped action: red, a comment, green, red again.

Jobs are separate, as on GitHub: outputs, artifacts and the repository's branches are all that goes from one
to the next. The check judges what a machine measured, in the clone that its runner keeps, and holds no token.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from action.checkout import check_out, make_clone
from action.composite import ActionRun, run_composite
from action.samples import ACTION, make_job
from deliveries import leave_comment
from fake.git_routes import BareRepository
from fake.server import TOKEN, FakeGitHub
from records import make_zip
from refreshes import CASE, ENVIRONMENT
from test_action_chain import Jobs
from workflow_files import load

from gate.decide.evidence.trials import make_baselines
from gate.files.codec import RUN, VERDICT
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.publish.shown import SHOWN_FILE
from gate.records.cases import Metric, Policy
from gate.records.run import Provenance, Run, Trial
from gate.records.verdict import Status
from gate.store.acceptances import BRANCH, name_commit_file
from gate.store.baselines import propose_baselines
from tests.told import tell_row

RUN_ID = 77
CONFIG = """\
version: 1
reference_models: false
select: bert
models:
  - {name: bert, factory: 'bench:bert', cases: [{size: smoke}]}
"""


def _name(given: dict[str, str]) -> dict[str, str]:
    """Inputs, as action.yml spells them."""
    return {name.replace("_", "-"): value for name, value in given.items()}


def pass_outputs(workflow: str, job: str, outputs: dict[str, str]) -> dict[str, str]:
    """Give a job of a workflow what it says it takes from the outputs of the job that authorised."""
    steps = load(ACTION.parent / "examples" / "workflows" / workflow)["jobs"][job]["steps"]
    given = {}
    for name, value in steps[-1]["with"].items():
        needed = str(value).removeprefix("${{ needs.authorize.outputs.").removesuffix(" }}")
        if needed in outputs:
            given[name] = outputs[needed]
    return given


class Stage:
    """A repository under GitHub's address of it, pull request 7, and the runner that checks it."""

    def __init__(self, github: FakeGitHub, python: Path, root: Path) -> None:
        self.github, self.python, self.root = github, python, root
        self.git = BareRepository.create(root / "octo-org" / "models")
        self.git.run("config", "uploadpack.allowAnySHA1InWant", "true")  # as on GitHub
        (root / "gate.yml").write_text(CONFIG)
        self.cases = load_cases(load_config(root / "gate.yml"))
        assert [case.id for case in self.cases] == [CASE]
        github.state.git = self.git
        github.state.permissions = {"ada": "write", "eve": "read"}
        self.clone = make_clone(root / "runner" / "work", f"file://{root}/octo-org/models")
        self.jobs = Jobs(github, self.git, python, root / "jobs")
        self.count = 0

    def begin(self, *, has_baselines: bool) -> str:
        """Fill the default branch, and return the head of a pull request from a fork."""
        files = {"gate.yml": CONFIG}
        if has_baselines:
            run = self.make_run("b" * 40, 0.0)
            proposals = propose_baselines(make_baselines(run, run.provenance), {}, Policy(thresholds={}))
            files |= {f"baselines/{one.path}": one.text for one in proposals}
        self.git.commit(files | {"b/gate.yml": CONFIG, "b/baselines/x": ""}, branch="main")
        self.git.run("branch", "topic", "main")
        head = self.push("x = 1\n")
        self.github.state.add_pull(7, head, owner="mallory")
        self.github.state.add_run(RUN_ID, head, owner="mallory")
        return head

    def push(self, text: str) -> str:
        return self.git.commit({"model.py": text}, branch="topic")

    def make_run(self, sha: str, graph_breaks: float) -> Run:
        trials = tuple(
            Trial(case_id=CASE, index=index, samples={Metric.GRAPH_BREAKS: (graph_breaks,)})
            for index in range(3)
        )
        provenance = Provenance(commit=sha, created="2026-11-01T10:00:00Z")
        planned = {"trials": trials, "trials_planned": 3, "finished": True}
        return Run(cases=self.cases, environment=ENVIRONMENT, provenance=provenance, **planned)  # type: ignore[arg-type] # the test's

    def check(self, head: str, graph_breaks: float, **given: str) -> ActionRun:
        """Run a check's job on the trial merge, as GitHub does, and leave its artifact and its end."""
        self.count += 1
        base = self.git.find_ref("heads/main")
        tree = self.git.run("merge-tree", "--write-tree", base, head)
        merge = self.git.run("commit-tree", tree, "-p", base, "-p", head, "-m", "Merge")
        check_out(self.clone, merge)
        shards = self.clone / given.get("working_directory", "") / "shards"
        shutil.rmtree(shards, ignore_errors=True)
        RUN.save(self.make_run(merge, graph_breaks), shards / "1" / "run.json")
        event = {"pull_request": {"head": {"sha": head}, "base": {"sha": "f" * 40}}}
        job = make_job(self.root / f"check {self.count}", event)
        job.workspace = self.clone
        job.environ |= {"GITHUB_SERVER_URL": f"file://{self.root}", "GITHUB_EVENT_NAME": "pull_request"}
        done = run_composite(ACTION, job, {"mode": "judge", "python": str(self.python)} | _name(given))
        assert done.outputs["result-path"], done.log
        content = Path(done.outputs["result-path"]).read_bytes()
        self.github.state.add_artifact(RUN_ID, "compile-gate", make_zip({SHOWN_FILE: content}))
        conclusion = "success" if done.succeeded else "failure"
        self.github.state.runs[RUN_ID] |= {"status": "completed", "conclusion": conclusion, "head_sha": head}
        assert TOKEN not in done.log
        return done

    def comment(self, author: str, body: str, **inputs: str) -> tuple[ActionRun, ActionRun | None]:
        """Let somebody comment: the job that authorises, and where it does, the job that accepts."""
        event = leave_comment(self.github, body, author)
        given = {"mode": "authorize-command", "command": "accept-regression"}
        authorized = self.jobs.run("issue_comment", event, given)
        if authorized.outputs["authorized"] != "true":
            return authorized, None
        passed = pass_outputs("gate-accept.yml", "accept", authorized.outputs)
        given = {"mode": "accept-regression"} | passed | _name(inputs)
        return authorized, self.jobs.run("issue_comment", event, given)


@pytest.fixture
def stage(github: FakeGitHub, bare_python: Path, tmp_path: Path) -> Stage:
    """Everything that the chain needs; the token must be in nothing that any job said."""
    return Stage(github, bare_python, tmp_path)


def test_a_regression_that_is_meant_can_be_merged(stage: Stage, github: FakeGitHub) -> None:
    """REGRESSION, a writer's comment, ACCEPTED by name and green; another gate, more or a push is red."""
    head = stage.begin(has_baselines=True)

    red = stage.check(head, 2.0)
    assert (red.steps[0].code, red.outputs["verdict"]) == (10, "REGRESSION")
    assert f"Nothing is accepted of this commit: this clone has no branch {BRANCH}." in red.log

    authorized, accepted = stage.comment("ada", '/accept-regression reason="the new decoder"')
    assert accepted is not None
    assert (authorized.succeeded, accepted.succeeded) == (True, True), authorized.log + accepted.log
    assert github.state.runs[RUN_ID]["run_attempt"] == 2
    assert stage.git.run("ls-tree", "-r", "--name-only", BRANCH) == name_commit_file(head)

    green = stage.check(head, 2.0)
    assert (green.steps[0].code, green.outputs["verdict"]) == (0, "PASS"), green.log
    (row,) = VERDICT.load(Path(green.outputs["result-path"]).with_name("verdict.json")).comparisons
    assert row.status is Status.ACCEPTED
    assert "Accepted by ada until" in tell_row(row)
    assert tell_row(row).endswith(": the new decoder.")
    assert f"Accepted of commit {head[:12]}: 1 of what regressed, by ada." in green.log
    assert "Accepted by ada until" in green.summary

    for given in (
        {"working_directory": "b", "baselines": "../baselines"},
        {"comment_key": "b"},
    ):
        beside = stage.check(head, 2.0, **given)
        assert (beside.steps[0].code, beside.outputs["verdict"]) == (10, "REGRESSION"), beside.log
        assert "Accepted by ada for gate.yml on" in beside.summary.replace("\\", "")

    worse = stage.check(head, 3.0)
    assert (worse.steps[0].code, worse.outputs["verdict"]) == (10, "REGRESSION")
    assert "and this is more" in worse.summary

    pushed = stage.check(stage.push("x = 2\n"), 2.0)
    assert (pushed.steps[0].code, pushed.outputs["verdict"]) == (10, "REGRESSION")
    assert "Nothing is accepted of commit" in pushed.log
    assert not any(TOKEN in text for text in stage.jobs.logs)


def test_a_first_change_without_baselines_can_be_merged(stage: Stage) -> None:
    """NOTHING_COMPARED stays that, is said aloud with who takes it, and this gate's check is green."""
    head = stage.begin(has_baselines=False)
    red = stage.check(head, 2.0)
    assert (red.steps[0].code, red.outputs["verdict"]) == (3, "NOTHING_COMPARED")

    _, accepted = stage.comment("ada", '/accept-regression reason="baselines come next"', comment_key="new")
    assert accepted is not None
    assert accepted.succeeded, accepted.log

    assert stage.check(head, 2.0).steps[0].code == 3  # of the same configuration, and without the key
    green = stage.check(head, 2.0, comment_key="new")
    assert (green.steps[0].code, green.outputs["verdict"]) == (0, "NOTHING_COMPARED"), green.log
    assert "NOTHING_COMPARED, BUT EXIT 0: somebody accepted that" in green.log
    assert "ada accepts that there are no baselines until" in green.summary
    assert stage.check(stage.push("x = 2\n"), 2.0, comment_key="new").steps[0].code == 3


def test_an_acceptance_in_the_change_itself_counts_nothing(stage: Stage) -> None:
    """A pull request that brings the file, on its own branch or as a branch of its fork, accepts nothing."""
    head = stage.begin(has_baselines=True)
    text = json.dumps({"version": 1, "commit": head})
    own = stage.git.commit(
        {name_commit_file(head): text, f"{BRANCH}/{name_commit_file(head)}": text}, branch="topic"
    )

    red = stage.check(own, 2.0)

    assert (red.steps[0].code, red.outputs["verdict"]) == (10, "REGRESSION")
