"""From events and the API to a run and its pull request, from any branch or fork."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from deliveries import list_faults, make_workflow_run
from fake.server import FakeGitHub
from fake.state import OWNER, State
from hypothesis import given
from hypothesis import strategies as st
from records import SHA

from gate.errors import FileError, UsageError
from gate.github.client import GitHubClient
from gate.github.job import JobContext, load_context, load_payload
from gate.github.run_events import (
    Target,
    has_moved,
    note_touched,
    parse_pull,
    parse_time,
    parse_workflow_run,
    resolve_target,
)
from gate.github.transport import GitHubError
from gate.records.codes import Code
from gate.records.facts import Fact

REPOSITORY = "octo-org/models"


def resolve(github: FakeGitHub, client: GitHubClient, run_id: int = 100) -> Target:
    """Resolve as the job of a workflow_run event does; the payload fits GitHub's schema."""
    payload = make_workflow_run(github.state.runs[run_id])
    assert list_faults("workflow_run", payload) == []
    return resolve_target(client, make_job("workflow_run", payload), run_id)


def make_job(event_name: str = "", event: Mapping[str, object] | None = None) -> JobContext:
    return JobContext(repository=REPOSITORY, event_name=event_name, event=event or {})


@pytest.mark.parametrize("conclusion", ["success", "failure", "cancelled", "timed_out"])
@pytest.mark.parametrize("owner", [OWNER, "mallory"])
@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_pull_request(github: FakeGitHub, owner: str, conclusion: str) -> None:
    """A run's pull request is found by its head, from a fork as from the repository itself."""
    github.state.add_pull(7, SHA, owner=owner)
    github.state.add_pull(8, "b" * 40, owner=owner, branch="other")
    github.state.add_run(100, SHA, owner=owner)["conclusion"] = conclusion
    target = resolve(github, github.client)
    assert target.pull is not None
    assert (target.pull.number, target.pull.head_sha, target.run.conclusion) == (7, SHA, conclusion)
    assert target.sharing == ""
    assert len(github.requests) == 3


def test_same_branch_of_two_forks(github: FakeGitHub) -> None:
    """The repository distinguishes two pull requests from branches of one name."""
    github.state.add_pull(7, SHA, owner="mallory")
    github.state.add_pull(8, SHA, owner=OWNER)
    github.state.add_run(100, SHA, owner="mallory")
    target = resolve(github, github.client)
    assert target.pull is not None
    assert target.pull.number == 7


def test_repository_id_decides(github: FakeGitHub) -> None:
    """A head of the right name in another repository is not the run's."""
    github.state.add_pull(7, SHA)["head"]["repo"]["id"] = 4711
    github.state.add_run(100, SHA)
    assert resolve(github, github.client).pull is None


def test_deleted_fork(github: FakeGitHub) -> None:
    """With the fork gone, the pull request is found by its commit."""
    github.state.add_pull(7, SHA, owner="mallory")["head"]["repo"] = None
    github.state.add_run(100, SHA, owner="mallory")
    github.state.runs[100]["head_repository"] = None
    target = resolve_target(github.client, make_job(), 100)
    assert target.pull is not None
    assert (target.pull.number, target.run.head_owner, target.run.head_repository) == (7, "", 0)
    # GitHub's description does not say that a run's head repository can be gone, but it can.
    assert all(
        "actions/runs/100" in violation or "head_repository" in violation or "'type'" in violation
        for violation in github.violations
    )
    github.violations.clear()


def set_closed(state: State) -> None:
    state.pulls[7]["state"] = "closed"


def set_moved(state: State) -> None:
    state.pulls[7]["head"]["sha"] = "e" * 40


@pytest.fixture
def state(github: FakeGitHub) -> State:
    """Pull request 7, and a run of its head."""
    github.state.add_pull(7, SHA)
    github.state.add_run(100, SHA)
    return github.state


Change = Callable[[State], object]


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (set_closed, "closed or merged"),
        (set_moved, "newer commit"),
        (lambda state: state.add_pull(8, SHA), "different bases"),
    ],
)
def test_no_pull_request(github: FakeGitHub, state: State, change: Change, note: str) -> None:
    """If no single open pull request has the run's very commit, there is none, with a reason."""
    change(state)
    target = resolve(github, github.client)
    assert target.pull is None
    assert note in target.note


@pytest.mark.parametrize("other", [{"branch": "other"}, {"owner": "mallory"}])
@pytest.mark.parametrize("change", [None, set_closed, set_moved])
@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_another_pull_request_has_the_commit(
    github: FakeGitHub, state: State, other: dict[str, str], change: Change | None
) -> None:
    """One from elsewhere with the same head shares the status, even if the run's own is closed."""
    state.add_pull(8, SHA, **other)
    if change:
        change(state)
    target = resolve(github, github.client)
    assert target.sharing == "another open pull request has this head"
    assert (target.pull is None) is bool(change)


def test_several_pull_requests_have_the_commit(github: FakeGitHub, state: State) -> None:
    """All others are counted."""
    state.add_pull(8, SHA, owner="mallory")
    state.add_pull(9, SHA, branch="third")
    assert resolve(github, github.client).sharing == "2 other open pull requests have this head"


def set_below(state: State) -> None:
    state.pulls[8]["head"]["sha"] = "e" * 40
    state.contained[8] = [SHA]


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.pulls[8].update(state="closed"),
        set_below,
        lambda state: state.pulls[8]["base"]["repo"].update(id=4711),
    ],
    ids=["closed", "below", "elsewhere"],
)
def test_a_pull_request_that_only_contains_the_commit_shares_nothing(
    github: FakeGitHub, state: State, change: Change
) -> None:
    """A closed one, a stacked one with more commits, and one into another repository do not count."""
    state.add_pull(8, SHA, branch="other")
    change(state)
    target = resolve(github, github.client)
    assert (target.pull is not None, target.sharing) == (True, "")


@pytest.mark.parametrize(
    ("event", "note"),
    [("merge_group", "merge queue"), ("schedule", "schedule"), ("workflow_dispatch", "workflow_dispatch")],
)
def test_other_events(github: FakeGitHub, event: str, note: str) -> None:
    """Runs that no pull request started belong to none, and no request looks for one."""
    github.state.add_pull(7, SHA)
    github.state.add_run(100, SHA, event=event)
    target = resolve(github, github.client)
    assert target.pull is None
    assert note in target.note
    assert len(github.requests) == 1


def test_another_run(github: FakeGitHub) -> None:
    """A run that the event does not name is refused before any request."""
    payload = make_workflow_run(github.state.add_run(100, SHA))
    with pytest.raises(UsageError, match="not the run that this event is about"):
        resolve_target(github.client, make_job("workflow_run", payload), 101)
    assert len(github.requests) == 0


def test_moved(github: FakeGitHub, state: State) -> None:
    """A new head, and a closed pull request, count as moved; no pull request does not."""
    target = resolve(github, github.client)
    assert not has_moved(github.client, target)
    set_moved(state)
    assert has_moved(github.client, target)
    state.add_pull(7, SHA)["state"] = "closed"
    assert has_moved(github.client, target)
    assert not has_moved(github.client, Target(run=target.run))


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (["src/a.py", "gate.yml.bak", "perf/gate.yml"], ()),
        (["gate.yml"], ("gate.yml (1 file)",)),
        (["perf/baselines/a.json", "perf/baselines/b/c.json", "perf/x"], ("perf/baselines/ (2 files)",)),
        (["perf/baselines/a.json", "gate.yml"], ("perf/baselines/ (1 file)", "gate.yml (1 file)")),
    ],
)
def test_events_note_the_touched_rules(
    github: FakeGitHub, state: State, files: list[str], named: tuple[str, ...]
) -> None:
    """A file, or what is below a directory; none of the change's own files is named."""
    state.files[7] = files
    noted = note_touched(github.client, 7, ["gate.yml", "perf/baselines/"])
    assert noted == ((Fact(code=Code.TOUCHES_RULES, names={"rules": named}),) if named else ())


@pytest.mark.parametrize(("count", "is_unseen"), [(299, False), (300, True), (301, True)])
def test_events_note_files_that_are_not_looked_at(
    github: FakeGitHub, state: State, count: int, is_unseen: bool
) -> None:
    """Three hundred are listed: there may be more."""
    state.files[7] = [f"src/{index}.py" for index in range(count)]
    unseen = Fact(code=Code.FILES_UNSEEN, numbers={"files": 300})
    assert note_touched(github.client, 7, ["gate.yml"]) == ((unseen,) if is_unseen else ())
    assert len(github.requests) == 3


@pytest.mark.parametrize(
    "name", ["", "o", "o/r/x", "o/..", "../r", "o/r?x=1", "o r/x", "o/r\n", "\u043e/r", "a" * 101 + "/r"]
)
def test_repository_names(name: str) -> None:
    """Anything but owner/name does not become part of a path."""
    with pytest.raises(UsageError):
        load_context({"GITHUB_REPOSITORY": name})


@pytest.mark.parametrize(("size", "is_read"), [(32 * 1024 * 1024, True), (32 * 1024 * 1024 + 1, False)])
def test_a_job_loads_an_event_of_32_mebibytes(tmp_path: Path, size: int, is_read: bool) -> None:
    """GitHub's largest payload is smaller."""
    path = tmp_path / "event.json"
    path.write_bytes(b'{"action": "created"}'.ljust(size))
    environ = {"GITHUB_EVENT_PATH": str(path)}
    if is_read:
        assert load_payload(environ) == {"action": "created"}
        return
    with pytest.raises(FileError, match="GITHUB_EVENT_PATH"):
        load_payload(environ)


def test_load_context_of_a_job(tmp_path: Path) -> None:
    """Every variable is used; without one GitHub's public server and the current directory are."""
    environ = {
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_SHA": SHA,
        "GITHUB_RUN_ID": "77",
        "GITHUB_WORKSPACE": str(tmp_path),
    }
    assert load_context(environ) == JobContext(
        repository=REPOSITORY,
        server_url="https://github.example",
        event_name="push",
        sha=SHA,
        run_id="77",
        workspace=tmp_path,
    )
    for bare in ({}, {"GITHUB_SERVER_URL": "", "GITHUB_WORKSPACE": ""}):
        context = load_context({"GITHUB_REPOSITORY": REPOSITORY, **bare})
        assert context == JobContext(
            repository=REPOSITORY, server_url="https://github.com", workspace=Path.cwd()
        )
        assert context.run_url == f"https://github.com/{REPOSITORY}/actions/runs/"


def test_load_event(tmp_path: Path) -> None:
    """The payload is read from the runner's file; outside GitHub Actions there is none."""
    path = tmp_path / "event.json"
    path.write_text(json.dumps({"action": "completed"}))
    environ = {"GITHUB_EVENT_PATH": str(path)}
    assert load_payload(environ) == {"action": "completed"}
    assert load_payload({}) == {}
    path.write_text("[]")
    assert load_payload(environ) == {}
    path.write_text("{")
    with pytest.raises(FileError):
        load_payload(environ)


@pytest.mark.parametrize(
    ("key", "value"),
    [("id", "5"), ("id", True), ("id", -1), ("head_sha", "x"), ("run_attempt", None), ("repository", None)],
)
def test_surprising_run(github: FakeGitHub, key: str, value: object) -> None:
    """An answer that breaks GitHub's description is reported as such."""
    with pytest.raises(GitHubError, match="no usable"):
        parse_workflow_run(github.state.add_run(100, SHA) | {key: value})


@pytest.mark.parametrize(
    ("times", "started"),
    [
        ({"run_started_at": "2026-11-01T12:00:00Z"}, "2026-11-01T12:00:00Z"),
        ({"run_started_at": None}, "2026-11-01T11:00:00Z"),
        ({"created_at": None}, "2026-11-01T11:00:00Z"),
        ({"run_started_at": None, "created_at": None}, ""),
        ({"run_started_at": "soon", "created_at": "later"}, ""),
    ],
)
def test_parse_workflow_run_with_its_times(
    github: FakeGitHub, times: dict[str, str | None], started: str
) -> None:
    """A run that was not started again began when it was made; one of no time cannot be ordered."""
    run = github.state.add_run(100, SHA) | times
    if started:
        assert parse_workflow_run(run).started == started
    else:
        with pytest.raises(GitHubError, match="no usable 'run_started_at'"):
            parse_workflow_run(run)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("2026-11-01T12:00:00Z", "2026-11-01T12:00:00Z"),
        ("2026-11-01T13:00:00.123+01:00", "2026-11-01T12:00:00Z"),
        ("2026-11-01T12:00:00", ""),
        ("0001-01-01T00:00:00+23:59", ""),
        ("yesterday", ""),
        (None, ""),
        (5, ""),
    ],
)
def test_times(text: object, parsed: str) -> None:
    """Times of any zone become texts that sort; others are none."""
    assert parse_time(text) == parsed


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(value=json_values)
def test_nonsense(value: Any) -> None:
    """No value crashes the parsers."""
    for parse in (parse_workflow_run, parse_pull):
        with pytest.raises(GitHubError):
            parse(value)
