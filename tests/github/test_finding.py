"""What is asked of GitHub about a run before its verdict is published."""

from typing import Any

import pytest
from publishing import Publisher
from records import CASES, SHA, UNSTORED, make_failing, make_rows, make_verdict

from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import Cause, PairBase, Verdict

BASE, TIP = "d" * 40, "e" * 40
UNCOMPARED = make_verdict(*make_rows(**UNSTORED))


def count_requests(publisher: Publisher, part: str) -> int:
    """The requests whose path has this part."""
    return sum(part in seen.path for seen in publisher.github.requests)


@pytest.mark.parametrize(
    ("run", "settings", "is_asked"),
    [
        ({"run_attempt": 1, "conclusion": "failure"}, {}, True),
        ({"run_attempt": 2, "conclusion": "failure"}, {}, True),
        ({"run_attempt": 2, "conclusion": None, "status": "in_progress"}, {}, True),
        ({"run_attempt": 1, "conclusion": None, "status": "in_progress"}, {}, False),
        ({"run_attempt": 2, "conclusion": "failure"}, {"conclusion": "failure"}, False),
    ],
)
def test_finding_adopts_the_jobs_conclusion(
    publisher: Publisher, run: dict[str, Any], settings: dict[str, str], is_asked: bool
) -> None:
    """Jobs are listed where one may have ended otherwise than its run: not in a first attempt under way."""
    publisher.run |= run
    publisher.publish(make_failing(), **settings)
    assert count_requests(publisher, "/jobs") == is_asked


@pytest.mark.parametrize(
    ("base", "is_open", "is_on_branch", "is_shown"),
    [
        (PairBase(commit=BASE, label="main"), True, True, True),
        (PairBase(commit=BASE, label="main"), True, False, False),
        (PairBase(commit=BASE, label="main"), False, True, None),
        (PairBase(label="another stack"), True, True, None),
        (None, True, True, None),
    ],
)
def test_finding_checks_the_base(
    publisher: Publisher, base: PairBase | None, is_open: bool, is_on_branch: bool, is_shown: bool | None
) -> None:
    """A commit that is on the base branch is shown; without commit or pull request nothing is asked."""
    publisher.state.history["main"] = [BASE, TIP] if is_on_branch else [TIP]
    publisher.state.pulls[7]["state"] = "open" if is_open else "closed"
    published = publisher.publish(make_failing(base=base))
    assert count_requests(publisher, "/compare/") == (is_shown is not None)
    assert (BASE[:7] in "".join(comment["body"] for comment in publisher.comments)) is bool(is_shown)
    assert published.outputs["verdict"] == "REGRESSION"


@pytest.mark.parametrize(
    ("rules", "is_open", "asked"), [(("gate.yml",), True, 1), ((), True, 0), (("x",), False, 0)]
)
def test_finding_lists_remarks_of_a_pull_request_and_its_rules(
    publisher: Publisher, rules: tuple[str, ...], is_open: bool, asked: int
) -> None:
    """Without rules to look for, or a pull request, its files are not listed."""
    publisher.know_rules(*rules)
    publisher.state.pulls[7]["state"] = "open" if is_open else "closed"
    publisher.publish(make_failing())
    assert count_requests(publisher, "/files") == asked


@pytest.mark.parametrize(("names", "is_asked"), [({"location": ("a.py:1",)}, True), ({}, False)])
def test_finding_lists_files_where_a_cause_has_a_line(
    publisher: Publisher, names: dict[str, tuple[str, ...]], is_asked: bool
) -> None:
    """A line is shown only of a file that the commit has."""
    cause = Cause(case_id=CASES[0].id, fact=Fact(code=Code.GRAPH_BREAK, names=names))
    publisher.publish(make_failing(causes=(cause,)))
    assert bool(count_requests(publisher, f"/git/commits/{SHA}")) is is_asked


@pytest.mark.parametrize(
    ("verdict", "event", "is_asked"),
    [
        (UNCOMPARED, "pull_request", True),
        (make_failing(), "pull_request", False),
        (UNCOMPARED, "merge_group", False),
    ],
)
def test_finding_notes_acceptances_of_what_a_pull_request_needs_them_for(
    publisher: Publisher, verdict: Verdict, event: str, is_asked: bool
) -> None:
    """A lack of baselines is, for one commit; a queue's commit is nobody's."""
    publisher.run["event"] = event
    publisher.publish(verdict)
    assert bool(count_requests(publisher, "/contents/")) is is_asked
