"""What publishing shows of acceptances: who accepted, and that a check is green without baselines."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import records
from fake.faults import NO_RIGHT, Fault
from fake.git_routes import BareRepository
from publishing import Publisher
from records import CASES, RUN, SHA, make_base, make_comparison, make_failing, make_unchanged, make_verdict

from gate.cli.github import load_base
from gate.github.publish import Publication
from gate.project.config import load_config
from gate.publish.body import make_marker, render_body
from gate.publish.results import make_finding
from gate.publish.shown import make_shown
from gate.records.cases import Acceptance, Metric
from gate.records.verdict import Reason, Status, Verdict
from gate.store.commit_files import BRANCH, name_commit_file, render_commit_file

LATENCY = Metric.COMPILED_LATENCY
SLOWER = make_comparison(CASES[0], LATENCY, Status.ACCEPTED, Reason.ACCEPTED, (0.010, 0.0108))
ACCEPTED = make_verdict(SLOWER, *make_unchanged(CASES[1]))
NEW = make_verdict(*(make_comparison(case, LATENCY, Status.NEW, Reason.NO_BASELINE) for case in CASES))
ENTRY = replace(records.ENTRY, allowance=0.1, reason="@octo-org/all ![x](https://evil.example)")
LACK = tuple(replace(ENTRY, case=case.id, metric=None, allowance=0.0) for case in CASES)


def change_lack(**changes: Any) -> tuple[Acceptance, ...]:
    return tuple(replace(entry, **changes) for entry in LACK)


@pytest.fixture
def publisher(publisher: Publisher, bare: BareRepository) -> Publisher:
    """A pull request whose check ran again after an acceptance, and is green."""
    assert bare
    publisher.run["conclusion"] = "success"
    publisher.base = replace(publisher.base, gate="gate.yml")
    return publisher


def publish_with(
    publisher: Publisher, verdict: Verdict, accepted: tuple[Acceptance, ...] | str
) -> tuple[Publication, str]:
    """Store acceptances, publish a verdict, and return the published result and the comment."""
    if accepted:
        text = accepted if isinstance(accepted, str) else render_commit_file(SHA, accepted)
        publisher.state.git.commit({name_commit_file(SHA): text}, branch=BRANCH)
    return publisher.publish(verdict), publisher.body


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_who_accepted_is_named_and_the_reason_is_not(publisher: Publisher) -> None:
    """The login is GitHub's; the reason stays in the comment that gave it."""
    published, body = publish_with(publisher, ACCEPTED, (ENTRY,))

    assert "ada accepted 1 change for this commit alone, until 2026-11-15." in body
    assert "evil" not in body
    assert "octo-org/all" not in body
    assert not any(line.startswith("::warning") for line in published.lines)
    assert published.outputs["status-state"] == "success"


@pytest.mark.parametrize(
    "entry",
    [
        replace(ENTRY, allowance=0.07),
        replace(ENTRY, metric=Metric.DRIFT),
        replace(ENTRY, case=CASES[1].id),
        replace(ENTRY, expires="2026-10-31"),
        replace(ENTRY, gate="b/gate.yml"),
        replace(ENTRY, gate="gate.yml:slow"),
        replace(ENTRY, environment="cpu-torch2.13"),
    ],
    ids=["smaller", "another metric", "another case", "expired", "another gate", "another key", "elsewhere"],
)
def test_what_no_acceptance_covers_names_nobody(publisher: Publisher, entry: Acceptance) -> None:
    """An artifact that calls a row accepted puts no name to it."""
    _, body = publish_with(publisher, ACCEPTED, (entry,))

    assert "accepted 1 change" not in body
    is_elsewhere = (entry.gate, entry.environment) != (ENTRY.gate, ENTRY.environment)
    note = f"Accepted by ada for {entry.gate} on {entry.environment}, so it does not count here"
    assert (note in body.replace("`", "").replace("\\", "")) is is_elsewhere


def test_a_check_that_is_green_without_baselines_is_reported_so(publisher: Publisher) -> None:
    """The status is green, the outcome stays NOTHING_COMPARED, and who accepts that is named."""
    published, body = publish_with(publisher, NEW, LACK)

    assert published.outputs["status-state"] == "success"
    assert published.outputs["verdict"] == "NOTHING_COMPARED"
    assert "ada accepts for this commit alone, until 2026-11-15, that baselines are missing." in body
    assert "## ⚠️ NOTHING_COMPARED" in body
    assert "/accept-regression" not in body


@pytest.mark.parametrize(("conclusion", "state"), [("success", "success"), ("failure", "failure")])
def test_the_change_that_adds_the_first_rules_need_not_compare(
    publisher: Publisher, conclusion: str, state: str
) -> None:
    """Its check passes, so the status does; nothing is offered to be accepted."""
    publisher.base = replace(publisher.base, cases=(), is_configured=False)
    publisher.run["conclusion"] = conclusion
    published, body = publish_with(publisher, NEW, ())

    assert published.outputs["status-state"] == state
    assert ("/accept-regression" in body) == (state == "failure")


@pytest.mark.parametrize(
    ("accepted", "conclusion"),
    [
        ((), "success"),
        ((ENTRY,), "success"),
        (change_lack(expires="2026-10-31"), "success"),
        (LACK, "failure"),
        (change_lack(gate="b/gate.yml"), "success"),
        (change_lack(environment="cpu-torch2.13"), "success"),
        (LACK[1:], "success"),
        ("version: 1\n", "success"),
    ],
    ids=[
        *("none", "of a regression", "expired", "not counted by the check"),
        *("of another gate", "of another machine", "of other cases", "broken"),
    ],
)
def test_without_an_acceptance_that_counts_nothing_compared_fails(
    publisher: Publisher, accepted: tuple[Acceptance, ...] | str, conclusion: str
) -> None:
    """A fork's own workflow may turn its exit code into anything."""
    publisher.run["conclusion"] = conclusion

    published, body = publish_with(publisher, NEW, accepted)

    assert published.outputs["status-state"] == "failure"
    assert 'comments `/accept-regression reason="..."`' in body


def test_a_file_that_cannot_be_read_is_reported(publisher: Publisher) -> None:
    """Silence would look as if nobody had accepted."""
    _, body = publish_with(publisher, ACCEPTED, "version: 1\n")

    assert "The acceptances of this commit cannot be read, and do not count." in body


def test_trouble_in_asking_changes_nothing_else(publisher: Publisher) -> None:
    """The verdict is published, with a note that who accepted is unknown."""
    publisher.github.fail("GET", r"/contents/", Fault(status=403, message=NO_RIGHT, times=9))

    published, body = publish_with(publisher, ACCEPTED, (ENTRY,))

    assert "PASS" in body
    assert "Trouble: Who accepted what could not be looked up: " in published.summary


def test_where_nothing_was_accepted_nobody_is_asked(publisher: Publisher) -> None:
    """Most verdicts are published with one request less."""
    publisher.run["conclusion"] = "failure"
    publish_with(publisher, make_failing(), ())

    assert not any("/contents/" in seen.path for seen in publisher.github.requests)


@pytest.mark.parametrize(
    ("names", "can_accept", "can_refresh"),
    [((), False, False), (("gate-accept",), True, False), (("gate-refresh",), False, True)],
)
def test_the_comment_names_only_what_the_repository_has(
    tmp_path: Path, names: tuple[str, ...], can_accept: bool, can_refresh: bool
) -> None:
    """Without its workflow on the default branch no command would be answered."""
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "gate.yml").write_text("on: pull_request\n")
    for name in names:
        example = Path(__file__).parents[2] / "examples" / "workflows" / f"{name}.yml"
        (workflows / f"{name}.yaml").write_text(example.read_text(encoding="utf-8"))
    (tmp_path / "gate.yml").write_text("version: 1\n")
    loaded = load_base(load_config(tmp_path / "gate.yml"), tmp_path)
    base = replace(make_base(), can_accept=loaded.can_accept, can_refresh=loaded.can_refresh)

    regressed, new, of_a_fork = (
        render_body(make_marker("default", run), make_finding(make_shown(verdict), base, run))
        for verdict, run in (
            (make_failing(), RUN),
            (NEW, RUN),
            (NEW, replace(RUN, head_repository=4711)),
        )
    )

    assert [("/accept-regression" in body) for body in (regressed, new)] == [can_accept] * 2
    in_two_steps = "`compile-gate baseline accept` writes in a pull request of its own"
    assert (in_two_steps in regressed) is not can_accept
    assert ("/refresh-baselines" in new) is can_refresh
    assert ("`gate-refresh`" in of_a_fork) is can_refresh
    for body in (new, of_a_fork):
        assert ("by `compile-gate baseline refresh`, and commits them." in body) is not can_refresh
