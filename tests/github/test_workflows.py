"""Rules that the shipped workflows, the examples and action.yml must keep."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from action.step import ACTION
from workflow_files import (
    CLONED,
    IN_FULL,
    PERMISSIONS,
    ROOT,
    WORKFLOWS,
    is_gate,
    list_calls,
    list_jobs,
    list_steps,
    load,
    name_file,
)

DEPENDABOT = ROOT / ".github" / "dependabot.yml"
SHARED = ("compile-gate.yml", "compile-gate-respond.yml", "upgrade.yml")
# How an example differs from the workflow of the same name here: where the action, or what it calls, is from.
OURS = re.compile(
    r"uses: \.(?:/\.git/compile-gate|(/\.github/workflows/\w+\.yml)|/)"
    r"(?: # zizmor: ignore\[self-repository\].*)?$",
    re.MULTILINE,
)
THEIRS = rf"uses: OWNER/compile-gate\1@{'0' * 40} # v0.1.0"
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
# Jobs that run code under test: on their own machine, without a token, and nothing trusted after it.
MEASURING = {
    ("anchor", "compare"),
    ("gate", "check"),
    ("check", "check"),
    ("gate-refresh", "measure"),
    ("respond", "measure"),
    ("upgrade", "compare"),
    ("trend", "measure"),
    ("shards", "measure"),
}
# Jobs that share no GPU with another job: each runner has one of its own.
ON_THEIR_OWN = {("shards", "measure")}
# This repository's alone, on GitHub's own runners.
NEVER_IN_A_CONTAINER = {"ci.yml", "docs.yml", "mutants.yml", "package.yml", "release.yml", "torch.yml"}

every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=name_file)


@every_workflow
def test_permissions_are_none_but_for_what_a_job_is_known_to_need(path: Path) -> None:
    """The default is none; each job's rights are those listed here, each with a comment."""
    assert load(path)["permissions"] == {}
    jobs = load(path)["jobs"]
    assert {(path.stem, name): job["permissions"] for name, job in jobs.items()} == {
        key: rights for key, rights in PERMISSIONS.items() if key[0] == path.stem
    }
    rights = re.findall(r"^      [a-z-]+: (?:read|write)\b(.*)$", path.read_text(), re.MULTILINE)
    assert len(rights) == sum(len(job["permissions"]) for job in jobs.values())
    assert all(comment.startswith(" # ") for comment in rights)


LEVELS = ("none", "read", "write")
every_call = pytest.mark.parametrize(
    "path", [path for path in WORKFLOWS if any(list_calls(path))], ids=name_file
)


@every_call
def test_a_call_grants_just_what_the_called_jobs_need(path: Path) -> None:
    """With less GitHub starts no job; more could be misused by the called workflow."""
    for _, call, called in list_calls(path):
        needed: dict[str, str] = {}
        for _, job in list_jobs(called):
            for right, level in job["permissions"].items():
                needed[right] = max(needed.get(right, "none"), level, key=LEVELS.index)
        assert call["permissions"] == needed, f"{path.name} calls {called.name}"


@every_call
def test_a_call_gives_what_is_taken_and_no_secret(path: Path) -> None:
    """GitHub refuses an input that the called workflow lacks.

    A caller that holds the group which its own job waits for would be cancelled.
    """
    assert "concurrency" not in load(path)
    for _, call, called in list_calls(path):
        assert set(call) <= {"name", "if", "permissions", "uses", "with"}
        assert load(called)["on"]["workflow_call"]["inputs"].keys() >= call["with"].keys()
        assert set(load(called)["on"]) == {"workflow_call"}
        assert not list(list_calls(called))


@pytest.mark.parametrize(("name", "most"), [("compile-gate.yml", 15), ("compile-gate-respond.yml", 25)])
def test_the_files_that_init_writes_are_short(name: str, most: int) -> None:
    """One or two files, each with two settings of the project."""
    path = ROOT / "examples/workflows" / name
    ((_, call, _),) = list_calls(path)

    assert len(path.read_text().splitlines()) <= most
    assert set(call["with"]) == {"runner", "python"}


def strip_job(path: Path, job: dict[str, Any]) -> dict[str, Any]:
    """A job without what differs where it is called: conditions, groups and the action's source."""
    steps = [
        step | {"uses": "ours"} if is_gate(step) else step
        for step in job["steps"]
        if step.get("name") not in {"Check the runner", "Clone compile-gate", "Install"}
    ]
    kept = {
        key: value for key, value in job.items() if key in {"timeout-minutes", "permissions", "environment"}
    }
    if kept["timeout-minutes"] == "${{ inputs.timeout }}":
        kept["timeout-minutes"] = load(path)["on"]["workflow_call"]["inputs"]["timeout"]["default"]
    text = yaml.safe_dump(kept | {"steps": steps})
    return dict(yaml.safe_load(re.sub(r"needs\.authorize-\w+", "needs.authorize", text)))


def test_what_is_called_does_what_the_long_workflows_do() -> None:
    """Rights, commands and inputs of each step are equal, except those that name the caller's file."""
    paths = {path.stem: path for path in WORKFLOWS}
    called = {stem: dict(list_jobs(path)) for stem, path in paths.items()}
    pairs = {("check", "check"): ("gate", "check")} | {
        ("respond", name): full for name, full in IN_FULL.items()
    }
    changed: dict[tuple[str, str], object] = {}
    for (file, name), (long, job) in pairs.items():
        short, full = strip_job(paths[file], called[file][name]), strip_job(paths[long], called[long][job])
        for mine, theirs in zip(short.pop("steps"), full.pop("steps"), strict=True):
            for key in ("with", "env"):
                given, wanted = mine.pop(key, {}), theirs.pop(key, {})
                changed |= {
                    (name, option): given.get(option)
                    for option in given.keys() | wanted.keys()
                    if given.get(option) != wanted.get(option)
                }
            assert mine == theirs, name
        assert short == full, name
    assert set(called["respond"]) == set(IN_FULL)
    asked = {
        **dict.fromkeys(("check", "measure"), ("working-directory", "config", "lock-timeout", "submodules")),
        **dict.fromkeys(("publish", "accept"), ("working-directory", "config", "workflow", "comment-key")),
        "propose": ("working-directory", "config"),
        **dict.fromkeys(("authorize-acceptance", "authorize-refresh"), ("working-directory",)),
    }
    passed = {(job, key): f"${{{{ inputs.{key} }}}}" for job, keys in asked.items() for key in keys}
    assert changed == passed | {
        ("check", "comment-key"): "${{ inputs.comment-key }}",
        ("check", "python"): "${{ inputs.python }}",
        ("publish", "ref"): "${{ github.event.repository.default_branch }}",
        ("measure", "PYTHON"): "${{ inputs.python }}",
        ("measure", "PACKAGES"): "${{ github.event.inputs.packages }}",
        ("propose", "reason"): "${{ github.event.inputs.reason }}",
    }


def test_jobs_of_a_command_come_after_the_one_that_authorises() -> None:
    """In the workflow that all events call; the tests in ``act`` run each event."""
    jobs = dict(list_jobs(ROOT / ".github/workflows/respond.yml"))

    assert {name: job["needs"] for name, job in jobs.items() if "needs" in job} == {
        "accept": "authorize-acceptance",
        "measure": "authorize-refresh",
        "propose": ["authorize-refresh", "measure"],
    }


@every_workflow
def test_every_job_has_a_name_and_an_end(path: Path) -> None:
    """Required checks go by name, and a job that hangs must not hold a GPU for six hours."""
    for _, job in list_jobs(path):
        assert job["name"]
        limit = job["timeout-minutes"]
        asked = load(path)["on"].get("workflow_call", {}).get("inputs", {}).get("timeout", {})
        assert 0 < (asked["default"] if limit == "${{ inputs.timeout }}" else limit) <= 180


@every_workflow
def test_actions_are_pinned_and_name_their_version(path: Path) -> None:
    """A tag can be moved, a commit cannot; the comment names the tag."""
    for line in path.read_text().splitlines():
        action = re.search(r"\buses: (.*)$", line)
        if action and not OURS.search(line):
            assert PINNED.fullmatch(action[1].strip()), line


@every_workflow
def test_no_clone_keeps_credentials(path: Path) -> None:
    """Later steps must find no token in .git/config."""
    clones = [step for _, step in list_steps(path) if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in clones)


@every_workflow
def test_no_expression_reaches_a_shell(path: Path) -> None:
    """Shell code in a title or a branch name stays a variable's value."""
    assert [step for _, step in list_steps(path) if "${{" in step.get("run", "")] == []


@every_workflow
def test_jobs_that_run_code_under_test_have_no_token(path: Path) -> None:
    """They have no token in an input, a variable or a secret, and no cache."""
    for name, job in list_jobs(path):
        if (path.stem, name) in MEASURING:
            text = yaml.safe_dump(job)
            assert not re.search(r"token|secrets\.|actions/cache|GITHUB_TOKEN", text)
            called = load(path)["on"].get("workflow_call")
            runner = "${{ fromJSON(inputs.runner) }}" if called else ["self-hosted", "linux", "gpu"]
            assert job["runs-on"] == runner


def is_own_clone(step: dict[str, Any]) -> bool:
    """Whether a step clones the called workflow's own commit, out of reach of any change."""
    given: dict[str, Any] = step.get("with", {})
    return given == {
        "repository": "${{ job.workflow_repository }}",
        "ref": "${{ job.workflow_sha }}",
        "path": ".git/compile-gate",
        "persist-credentials": False,
    }


@every_workflow
def test_a_called_workflow_takes_the_action_from_its_own_commit(path: Path) -> None:
    """The caller's pin pins the action too: each job clones it at that commit."""
    for _, job in list_jobs(path):
        used = [index for index, step in enumerate(job["steps"]) if step.get("uses") == CLONED]
        if "workflow_call" in load(path)["on"]:
            assert used == [index for index, step in enumerate(job["steps"]) if is_gate(step)]
        for index in used:
            assert is_own_clone(job["steps"][index - 1]) or is_own_clone(job["steps"][index - 2])


@every_workflow
def test_only_measuring_jobs_clone_a_head(path: Path) -> None:
    """A job with a token clones only the default branch."""
    for name, job in list_jobs(path):
        if not any("token" in step.get("with", {}) for step in job["steps"]):
            continue
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@") and not is_own_clone(step):
                allowed = (None, "${{ github.event.repository.default_branch }}")
                assert step["with"].get("ref") in allowed, (path.name, name)
        if "workflow_run" not in load(path)["on"]:
            assert job["steps"][0]["with"]["ref"] == "${{ github.event.repository.default_branch }}"


@pytest.mark.parametrize("path", [path for path in WORKFLOWS if "plan" in load(path)["jobs"]], ids=name_file)
def test_what_cannot_be_planned_is_red_without_a_gpu(path: Path) -> None:
    """A hosted runner plans from gate.yml alone; the required check does not wait for it."""
    jobs = dict(list_jobs(path))
    assert jobs["plan"]["runs-on"] == "ubuntu-24.04"
    assert jobs["plan"]["steps"][-1]["with"]["mode"] == "plan"
    assert [name for name, job in jobs.items() if job.get("needs") == "plan"] == (
        ["measure"] if path.stem == "shards" else []
    )


@every_workflow
def test_a_queue_for_the_gpu_drops_nobody(path: Path) -> None:
    """All measuring jobs share a group whose pending jobs wait instead of cancelling each other."""
    for name, job in list_jobs(path):
        if (path.stem, name) in MEASURING - ON_THEIR_OWN:
            assert job["concurrency"] == {"group": "gate-gpu", "queue": "max"}


@every_workflow
def test_acceptances_of_one_pull_request_come_one_after_the_other(path: Path) -> None:
    """A check that the first one started would clone before the second is stored."""
    for _, job in list_jobs(path):
        if any(step.get("with", {}).get("mode") == "accept-regression" for step in job["steps"]):
            group, queue = job["concurrency"]["group"], job["concurrency"]["queue"]
            assert group.startswith("gate-accept-${{ needs.authorize")
            assert (group.endswith(".outputs.pr-number }}"), queue) == (True, "max")


@every_workflow
def test_what_a_workflow_gives_the_action_is_what_the_action_takes(path: Path) -> None:
    """On GitHub an unknown input is only a warning, and a default would hold silently."""
    for _, step in list_steps(path):
        if is_gate(step):
            assert set(step.get("with", {})) <= set(ACTION["inputs"])


@every_workflow
def test_every_output_that_is_read_is_declared(path: Path) -> None:
    """An unknown output is silently empty."""
    jobs = dict(list_jobs(path))
    for name, job in jobs.items():
        steps = {step["id"]: step for step in job["steps"] if "id" in step}
        text = yaml.safe_dump(job)
        for step, output in re.findall(r"steps\.([\w-]+)\.outputs\.([\w-]+)", text):
            ours, script = is_gate(steps[step]), steps[step].get("run", "")
            assert output in ACTION["outputs"] if ours else f'"{output}=' in script, (name, step, output)
        for needed, output in re.findall(r"needs\.([\w-]+)\.outputs\.([\w-]+)", text):
            assert needed in ([job["needs"]] if isinstance(job["needs"], str) else job["needs"])
            assert output in jobs[needed]["outputs"]


@pytest.mark.parametrize("path", ["examples/workflows/gate-publish.yml", ".github/workflows/respond.yml"])
def test_red_runs_are_published_too(path: str) -> None:
    """Otherwise no regression, hanging change or skipped check would be published."""
    condition = load(ROOT / path)["jobs"]["publish"]["if"]

    # What GitHub calls the end of a run, but for action_required, neutral and stale.
    (ends,) = re.findall(r"contains\(fromJSON\('(.*)'\), github.event.workflow_run.conclusion\)", condition)
    assert set(json.loads(ends)) == {
        *("success", "failure", "cancelled", "timed_out", "startup_failure", "skipped"),
    }


@pytest.mark.parametrize(
    ("publisher", "gate"),
    [("gate-publish.yml", "gate.yml"), ("compile-gate-respond.yml", "compile-gate.yml")],
)
def test_the_publisher_listens_to_the_workflow_that_there_is(publisher: str, gate: str) -> None:
    """GitHub matches it by name: a workflow with another name silently starts nothing."""
    heard, heard_of = (load(ROOT / "examples/workflows" / name) for name in (publisher, gate))

    assert heard["on"]["workflow_run"]["workflows"] == [heard_of["name"]]


def test_a_refresh_that_could_not_be_measured_is_reported() -> None:
    """The answering job runs after a failed or skipped one, if the command was authorised."""
    job = load(ROOT / "examples/workflows/gate-refresh.yml")["jobs"]["propose"]

    assert job["if"] == "${{ !cancelled() && needs.authorize.outputs.authorized == 'true' }}"
    assert job["steps"][-1]["with"]["conclusion"] == "${{ needs.measure.result }}"


def test_the_examples_are_this_repositorys_own_workflows() -> None:
    """They differ only in the source of the action."""
    for name in SHARED:
        ours, example = (ROOT / directory / "workflows" / name for directory in (".github", "examples"))
        assert example.read_text() == OURS.sub(THEIRS, ours.read_text()), f"run: python {__file__} --write"


def test_a_release_can_be_published_again() -> None:
    """If only the release failed, the second run skips what the index has."""
    steps = load(ROOT / ".github/workflows/release.yml")["jobs"]["publish"]["steps"]
    (upload,) = [step for step in steps if step.get("uses", "").startswith("pypa/gh-action-pypi-publish@")]

    assert upload["with"] == {"skip-existing": True}


def test_shards_are_published_as_a_single_gate_is() -> None:
    """The names of workflow, check and artifact are gate.yml's."""
    single, divided = (load(ROOT / "examples/workflows" / name) for name in ("gate.yml", "shards.yml"))

    assert divided["name"] == single["name"]
    assert divided["jobs"]["judge"]["name"] == single["jobs"]["check"]["name"]
    artifact = divided["jobs"]["judge"]["steps"][-1]["with"]["name"]
    assert artifact == ACTION["inputs"]["artifact-name"]["default"]


def test_a_missing_shard_keeps_nobody_from_judging() -> None:
    """The last job runs whatever became of the shards, and looks for all cases."""
    jobs = load(ROOT / "examples/workflows/shards.yml")["jobs"]
    inputs = [next(filter(is_gate, jobs[name]["steps"]))["with"] for name in ("measure", "judge")]

    assert jobs["measure"]["strategy"]["fail-fast"] is False
    assert not any("select" in values for values in inputs)


def test_a_shard_that_is_lost_when_all_run_again_leaves_no_earlier_run() -> None:
    """Before it measures, each overwrites the artifact with a file that is no run."""
    steps = load(ROOT / "examples/workflows/shards.yml")["jobs"]["measure"]["steps"]
    uploads = [
        index
        for index, step in enumerate(steps)
        if step.get("uses", "").startswith("actions/upload-artifact@")
    ]
    first, last = (steps[index]["with"] for index in uploads)
    assert uploads[0] < next(index for index, step in enumerate(steps) if is_gate(step)) < uploads[1]
    assert (first["name"], first["overwrite"]) == (last["name"], True)
    assert not first["path"].endswith("run.json")


@every_workflow
def test_an_artifact_is_written_over_when_a_job_is_run_again(path: Path) -> None:
    """Otherwise the upload of a second attempt fails, because the name is taken."""
    uploads = [
        step for _, step in list_steps(path) if step.get("uses", "").startswith("actions/upload-artifact@")
    ]

    assert all(step["with"]["overwrite"] is True for step in uploads)


@every_workflow
def test_every_step_works_in_a_container(path: Path) -> None:
    """There the default shell is sh, and the temporary directory's expression names the host's."""
    assert "runner.temp" not in path.read_text()
    scripts = [step for _, step in list_steps(path) if "run" in step]
    assert path.name in NEVER_IN_A_CONTAINER or all(step.get("shell") == "bash" for step in scripts)


@every_workflow
def test_the_configuration_says_what_is_measured(path: Path) -> None:
    """A copied workflow's tag that the project lacks would fail its first check."""
    assert "tag:" not in re.sub("description: .*", "", path.read_text())


def test_dependabot_looks_where_versions_are_pinned() -> None:
    """Our workflows, the examples and the action's list."""
    looked = {
        (update["package-ecosystem"], directory)
        for update in yaml.safe_load(DEPENDABOT.read_text())["updates"]
        for directory in update.get("directories", [update.get("directory")])
    }

    assert looked == {
        ("github-actions", "/"),
        ("github-actions", "/examples/workflows"),
        ("pip", "/gate/action"),
    }
    assert (ROOT / "gate/action/requirements.txt").is_file()


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("custom.github-workflows-require-timeout", WORKFLOWS),
        ("vendor.github-actions", [ROOT / "action.yml"]),
        ("vendor.dependabot", [DEPENDABOT]),
    ],
)
def test_the_schemas_of_github_hold(schema: str, paths: list[Path]) -> None:
    """GitHub's published schemas accept every file."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing() -> None:
    """The auditor runs at its strictest, offline; each exception has its reason on the line."""
    zizmor = Path(sys.executable).with_name("zizmor")
    command = [
        str(zizmor),
        "--offline",
        "--persona=pedantic",
        "--no-progress",
        "--format=plain",
        *map(str, (ROOT / "action.yml", DEPENDABOT, *WORKFLOWS)),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"NO_COLOR": "1"}
    )

    assert done.returncode == 0, done.stdout
    for path in WORKFLOWS:
        for line in path.read_text().splitlines():
            if "zizmor: ignore" in line:
                assert re.search(r"ignore\[[a-z-]+\] .{20,}", line), (
                    f"{path.name}: no reason beside {line.strip()}"
                )


if __name__ == "__main__" and "--write" in sys.argv:
    for name in SHARED:
        text = (ROOT / ".github" / "workflows" / name).read_text()
        (ROOT / "examples" / "workflows" / name).write_text(OURS.sub(THEIRS, text))


def test_the_documents_name_the_releases_of_torch_that_are_tested_each_night() -> None:
    """Those of the matrix, in its order."""
    job = load(ROOT / ".github" / "workflows" / "torch.yml")["jobs"]["test"]
    *others, newest = job["strategy"]["matrix"]["torch"]
    evidence = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    assert f"each night with {', '.join(others)} and {newest}." in evidence
