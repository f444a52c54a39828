"""Publishing while GitHub fails: at each request, once and for good."""

from dataclasses import replace

import pytest
from fake.faults import Fault
from fake.server import TOKEN
from publishing import FOR_GOOD, TRANSIENT, Publisher, make_faults
from records import SHA, make_failing

PLACES = {
    "files": ("GET", r"/pulls/7/files$"),
    "run": ("GET", r"/actions/runs/100$"),
    "pulls": ("GET", r"models/pulls$"),
    "pulls of the commit": ("GET", r"/commits/.*/pulls$"),
    "pull": ("GET", r"/pulls/7$"),
    "events": ("GET", r"/issues/7/events$"),
    "jobs": ("GET", r"/jobs$"),
    "artifacts": ("GET", r"/artifacts$"),
    "download": ("GET", r"/zip$"),
    "storage": ("GET", r"^/artifact/"),
    "comments": ("GET", r"/comments$"),
    "comment": ("POST", r"/comments$"),
    "change": ("PATCH", r"/comments/\d+$"),
    "statuses": ("GET", r"/commits/.*/statuses$"),
    "status": ("POST", r"/statuses/"),
    # Of an upgrade, which has an issue.
    "issues": ("GET", r"/issues$"),
    "issue": ("POST", r"/issues$"),
    "change of the issue": ("PATCH", r"/issues/\d+$"),
}


# One of each kind that the client distinguishes: to be sent again, perhaps done, a right that lacks, nothing
# there, refused, and what is no answer to the question.
KINDS = (*(("503", 1), ("lost", 1), ("403 rights", 1), ("404", 1), ("422", 1)), *(("list", 1), ("object", 1)))
GOOD_KINDS = tuple((fault, 99) for fault in ("403 secondary", "502 HTML", "empty"))
# Where each single fault is played: what is read, what is written, and the archive.
ALL_FAULTS_AT = ("pull", "comment", "storage")


def list_faults() -> dict[tuple[str, str, int], None]:
    """Route, fault and count: each route with each kind, and each fault where it may differ."""
    every = [*((fault, 1) for fault in make_faults()), *((fault, 99) for fault in FOR_GOOD)]
    played = [(route, *fault) for route in PLACES for fault in (*KINDS, *GOOD_KINDS)]
    return dict.fromkeys([*played, *((route, *fault) for route in ALL_FAULTS_AT for fault in every)])


@pytest.mark.parametrize(("route", "fault", "times"), list_faults())
def test_faults(
    publisher: Publisher, route: str, fault: str, times: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """No fault causes a crash, a doubled comment, a changed verdict or a visible token."""
    if route == "change":
        publisher.add_comment(99, "b" * 40)
    if "issue" in route:
        publisher.be_upgrade()
    if route == "change of the issue":
        publisher.add_issue()
    publisher.know_rules("gate.yml")
    broken = make_faults()[fault]
    broken.times = times
    publisher.github.fail(*PLACES[route], broken)
    published = publisher.publish(make_failing())
    assert published.outputs.get("verdict", "") in {"", "REGRESSION", "INCOMPLETE"}
    assert len(publisher.comments) + len(publisher.issues) <= 1
    assert len(publisher.state.statuses.get(SHA, [])) <= 2
    assert len(publisher.github.requests) <= 40
    output = f"{published} {capfd.readouterr()} {list(publisher.state.comments.values())} {publisher.issues}"
    assert TOKEN not in output
    assert "storage-secret" not in output
    if fault in TRANSIENT and times == 1:
        assert published.outputs["verdict"] == "REGRESSION"
        assert len(publisher.comments) + len(publisher.issues) == 1
        if "issue" not in route:
            assert [status["state"] for status in publisher.state.statuses[SHA]] == ["failure"]
    if route == "status" and times == 99:
        assert len(publisher.comments) == 1  # one part's trouble is not the other's
    if "issue" in route:
        assert published.outputs["verdict"] == "REGRESSION"
    if route in {"comments", "comment", "change"}:
        assert publisher.status["state"] == "failure"
    complains = "Trouble" in published.summary or "could not be fetched" in published.summary
    assert complains == any(line.startswith("::warning") for line in published.lines)


@pytest.mark.parametrize("route", ["artifacts", "download", "storage"])
@pytest.mark.parametrize("fault", [Fault(status=503), Fault(status=404), Fault(status=410), Fault()])
def test_a_verdict_that_cannot_be_fetched_leaves_no_earlier_one_standing(
    publisher: Publisher, route: str, fault: Fault
) -> None:
    """An earlier attempt's PASS is taken back if this one's result cannot be read."""
    publisher.leave_pass()
    publisher.github.fail(*PLACES[route], replace(fault, times=99))
    published = publisher.publish(make_failing())
    status = publisher.status
    assert published.outputs["verdict"] == "INCOMPLETE"
    assert (status["state"], status["description"]) == (
        "error",
        "no result: the result of the run could not be fetched from GitHub",
    )
    assert "The result of the run could not be fetched from GitHub." in publisher.body
    assert "Trouble: The verdict could not be fetched: " in published.summary
    assert published.lines[-1].startswith("::warning title=compile-gate::The verdict could not be fetched: ")
