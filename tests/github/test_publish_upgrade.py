"""Publishing an upgrade end to end with the fake GitHub: the issue, and what it never does."""

from dataclasses import replace
from statistics import geometric_mean
from typing import Any

import pytest
from fake.clock import FakeClock
from fake.server import TOKEN
from publishing import Publisher
from records import CASES, ENVIRONMENT_ID, RUN, SHA, make_base, make_comparison, make_unchanged, make_verdict
from token_job import TokenJob

from gate.errors import UsageError
from gate.publish import results
from gate.publish.body import make_marker, render_body
from gate.publish.results import CommentWhen, list_upgrade_steps, make_upgrade_finding, render_upgrade
from gate.publish.shown import make_shown
from gate.publish.submitted import Refusal
from gate.publish.trusted import TrustedResult
from gate.records.cases import Case, Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import BASE_ARM, CaseFailure, FailureKind
from gate.records.shown import UPGRADABLE, StackPart
from gate.records.verdict import Comparison, MachineShift, Outcome, PairBase, Reason, Status, Tally, Verdict
from tests.golden_files import check_golden
from tests.hosts import CUDA_HOST

NEW_STACK = replace(CUDA_HOST, torch="2.14.0+cu130", device_uuid="GPU-2")
UPGRADED = replace(RUN, event="schedule", head_branch="main", conclusion="success")


def pair(
    case: Case, metric: Metric, status: Status, values: tuple[float, float] = (0.01, 0.01)
) -> Comparison:
    """A comparison that five pairs decided."""
    reason = {Status.UNCHANGED: Reason.BELOW_THRESHOLD, Status.INCONCLUSIVE: Reason.UNSETTLED}
    row = make_comparison(case, metric, status, reason.get(status, Reason.BEYOND_BAR), values)
    return replace(row, pairs=5, more_pairs=2 if status is Status.INCONCLUSIVE else None)


def make_upgrade(*rows: Comparison, **more: Any) -> Verdict:
    """A verdict of the old stack, which the base commit has baselines of, against a new one."""
    quiet = [
        replace(row, pairs=5, reason=Reason.BELOW_THRESHOLD)
        for case in CASES
        for row in make_unchanged(case)
        if all((row.case_id, row.metric) != (other.case_id, other.metric) for other in rows)
    ]
    stacks = {
        "environment": NEW_STACK,
        "baseline_environments": (ENVIRONMENT_ID,),
        "base": PairBase(label="torch 2.13.0", other_stack=True),
        "base_environment": CUDA_HOST,
        "tally": Tally(pairs=15, paired_cases=3),
        "machine": MachineShift(),
    }
    return make_verdict(*rows, *quiet, **{**stacks, **more})


def make_worse(**more: Any) -> Verdict:
    return make_upgrade(
        pair(CASES[0], Metric.COMPILED_LATENCY, Status.REGRESSED, (0.010, 0.013)),
        pair(CASES[1], Metric.COMPILED_LATENCY, Status.IMPROVED, (0.010, 0.008)),
        pair(CASES[0], Metric.GRAPH_BREAKS, Status.REGRESSED, (0, 1)),
        **more,
    )


def make_findings() -> dict[str, TrustedResult]:
    """Every situation that a reader can meet, by name."""
    verdicts = {
        "worse": make_worse(),
        "better": make_upgrade(pair(CASES[1], Metric.COMPILED_LATENCY, Status.IMPROVED, (0.010, 0.008))),
        "unsettled": make_upgrade(
            pair(CASES[2], Metric.COMPILED_LATENCY, Status.INCONCLUSIVE, (0.01, 0.0104))
        ),
        "same_stack": make_upgrade(environment=CUDA_HOST),
    }
    findings = {
        name: make_upgrade_finding(make_shown(shown), make_base(), UPGRADED)
        for name, shown in verdicts.items()
    }
    findings["no_result"] = TrustedResult(
        run=replace(UPGRADED, conclusion="failure"), refusal=Refusal.NO_ARTIFACT
    )
    return findings


@pytest.mark.parametrize("name", sorted(make_findings()))
def test_golden(name: str) -> None:
    """Each situation's issue reads as its golden file."""
    check_golden(f"issue/{name}.md", render_body(make_marker("h200", UPGRADED), make_findings()[name]))


def test_nothing_of_the_artifact_is_shown() -> None:
    """Texts of the measured side, which every verdict has, are in no issue."""
    assert all(word in str(make_worse()) for word in ("Headline of whoever measured", "Mallory"))
    for finding in make_findings().values():
        body = render_body(make_marker("default", UPGRADED), finding)
        assert "whoever measured" not in body
        assert "Mallory" not in body


def test_only_versions_are_shown_of_the_stacks() -> None:
    """An environment called @all has no version; nor has a base that the repository lacks."""
    sides = (replace(NEW_STACK, torch="9.9@all"), replace(NEW_STACK, torch="2.14@all"))
    hostile = make_worse(base_environment=sides[0], environment=sides[1])

    body = render_body(
        make_marker("k", UPGRADED), make_upgrade_finding(make_shown(hostile), make_base(), UPGRADED)
    )

    assert "@" not in body
    assert "1 other package changed. Cases that compile" in body


@pytest.mark.parametrize(("count", "is_counted"), [(8, False), (9, True)])
def test_of_an_upgrade_eight_packages_are_named_and_two_in_a_title(count: int, is_counted: bool) -> None:
    """The rest is counted."""
    stack = tuple(StackPart(name=name, base="1.0", head="2.0") for name in UPGRADABLE[:count])
    shown = replace(make_shown(make_upgrade()), stack=stack)

    finding = make_upgrade_finding(shown, make_base(), UPGRADED)

    named = ", ".join(f"{name} 1.0 -> 2.0" for name in UPGRADABLE[:8])
    rest = ", 1 other package changed" if is_counted else ""
    assert finding.preface.startswith(f"{named}{rest}. ")
    first, second = UPGRADABLE[:2]
    assert finding.title == (f"{first} 1.0 -> 2.0, {second} 1.0 -> 2.0, {count - 2} other packages changed")


@pytest.mark.parametrize(
    ("models", "middle", "end"),
    [
        ("abcdefgh", "`d` +100 %, `e` +100 %", "`h` +100 %."),
        ("abcdefghi", "`d` +100 %, `f` +100 %", "`i` +100 % and 1 more model."),
        ("abcdefghijk", "`d` +100 %, `h` +100 %", "`k` +100 % and 3 more models."),
    ],
)
def test_of_many_cases_models_are_named_and_counted(models: str, middle: str, end: str) -> None:
    """The command can be copied, with ten models at most; the text names the first and last."""
    cases = tuple(Case(id=f"{name}/t", model=name) for name in models)
    rows = (pair(case, Metric.COMPILED_LATENCY, Status.REGRESSED, (0.01, 0.02)) for case in cases)
    verdict = make_verdict(*rows, cases=cases)

    assert list_upgrade_steps(verdict, can_refresh=True)[1].endswith(f"--select {','.join(models[:10])}`")
    text = render_upgrade(verdict, make_shown(verdict))
    assert middle in text
    assert end in text


@pytest.mark.parametrize(
    ("centre", "status", "is_shown"),
    [
        (0.004, Status.UNCHANGED, False),
        (0.006, Status.UNCHANGED, True),
        (-0.004, Status.IMPROVED, False),
        (-0.006, Status.IMPROVED, True),
        (0.05, Status.UNCHANGED, True),
        (0.0501, Status.UNCHANGED, False),
        (-0.0501, Status.UNCHANGED, False),
        (0.0501, Status.REGRESSED, True),
        (0.0501, Status.INCONCLUSIVE, True),
        (0.0501, Status.FAILED, False),
        (0.0501, Status.MISSING, False),
        (-1.0, Status.IMPROVED, False),
        (float("inf"), Status.REGRESSED, False),
    ],
)
def test_a_mean_is_of_judged_changes_that_are_worth_a_line(
    centre: float, status: Status, is_shown: bool
) -> None:
    """From half a percent; of a change beyond its threshold only bytes or seconds may be too few."""
    row = pair(CASES[0], Metric.COMPILED_LATENCY, status)
    assert row.change is not None
    verdict = make_verdict(replace(row, change=replace(row.change, centre=centre)), cases=CASES[:1])

    assert ("Mean of" in render_upgrade(verdict, make_shown(verdict))) is is_shown
    unknown = replace(verdict, cases=CASES[1:])
    assert "Mean of" not in render_upgrade(unknown, make_shown(verdict))


def test_a_mean_of_just_what_is_visible_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A little less is not worth a line."""
    row = pair(CASES[0], Metric.COMPILED_LATENCY, Status.REGRESSED, (0.01, 0.02))
    verdict = make_verdict(row, cases=CASES[:1])
    shown = make_shown(verdict)
    mean = geometric_mean([2.0]) - 1.0

    monkeypatch.setattr(results, "_VISIBLE", mean)
    assert "Mean of" in render_upgrade(verdict, shown)
    monkeypatch.setattr(results, "_VISIBLE", mean * 1.0001)
    assert "Mean of" not in render_upgrade(verdict, shown)


@pytest.mark.parametrize(
    ("metric", "status", "decides", "expected"),
    [
        (Metric.DRIFT, Status.UNCHANGED, True, "3 of 3, measured"),
        (Metric.DRIFT, Status.IMPROVED, True, "3 of 3, measured"),
        (Metric.DRIFT, Status.REGRESSED, True, "2 of 3, measured"),
        (Metric.DRIFT, Status.REGRESSED, False, "3 of 3, measured"),
        (Metric.COMPILED_LATENCY, Status.REGRESSED, True, "3 of 3, measured"),
        (Metric.COMPILED_LATENCY, Status.FAILED, True, "2 of 3, measured"),
    ],
)
def test_a_case_works_where_it_compiles_and_agrees(
    metric: Metric, status: Status, decides: bool, expected: str
) -> None:
    """That it is slower does not matter for that; drift that got worse does."""
    verdict = make_upgrade(replace(pair(CASES[0], metric, status), decides=decides))

    assert f"agree on the new stack: {expected}" in render_upgrade(verdict, make_shown(verdict))


@pytest.mark.parametrize("status", [Status.REGRESSED, Status.MISSING, Status.INCONCLUSIVE])
def test_what_does_not_decide_is_in_no_step_of_an_upgrade(status: Status) -> None:
    """The new stack is taken all the same."""
    row = replace(pair(CASES[0], Metric.COMPILED_LATENCY, status), decides=False)

    (step,) = list_upgrade_steps(make_upgrade(row), can_refresh=True)

    assert step.startswith("Take the new stack")


def test_a_finding_of_a_whole_upgrade_has_no_notes() -> None:
    """Baselines are of the old stack, which the pairs measured: their age does not matter."""
    base = make_base()
    base = replace(base, policy=replace(base.policy, today="2027-11-01"))

    verdict = make_upgrade_finding(make_shown(make_upgrade()), base, UPGRADED).verdict

    assert verdict is not None
    assert verdict.notes == ()


@pytest.mark.parametrize(
    ("status", "first"),
    [
        (Status.FAILED, "Stay on the old stack"),
        (Status.MISSING, "Read the log of the run"),
        (Status.INCONCLUSIVE, "Start the workflow `upgrade` again"),
        (Status.UNCHANGED, "Take the new stack"),
    ],
)
def test_only_what_is_broken_on_the_new_stack_advises_to_stay(status: Status, first: str) -> None:
    """A case without a pair may have failed on the old stack, or had no time."""
    verdict = make_upgrade(pair(CASES[0], Metric.COMPILED_LATENCY, status))

    assert list_upgrade_steps(verdict, can_refresh=True)[0].startswith(first)


def make_base_failure(status: Status) -> Verdict:
    """The first case fails on the old stack; ``status`` is that of its rows."""
    rows = (replace(row, status=status, reason=Reason.UNPAIRED, pairs=0) for row in make_unchanged(CASES[0]))
    failure = CaseFailure(
        case_id=CASES[0].id,
        trial=1,
        kind=FailureKind.CRASH,
        stage="compile",
        fact=Fact(code=Code.NO_RESULT, numbers={"status": -11}),
        arm=BASE_ARM,
    )
    return make_upgrade(*rows, failures=(failure,))


@pytest.mark.parametrize("status", [Status.NOT_COMPARABLE, Status.FAILED])
def test_what_fails_on_the_old_stack_is_not_blamed_on_the_new_one(status: Status) -> None:
    """Whether it works on the new stack or not, nothing of it can be compared."""
    first, _ = list_upgrade_steps(make_base_failure(status), can_refresh=True)

    assert first == f"Mend what fails on the old stack, so that it can be compared: `{CASES[0].id}`."


@pytest.mark.parametrize("can_refresh", [True, False])
def test_an_upgrade_names_a_workflow_only_where_the_repository_has_it(can_refresh: bool) -> None:
    """Without gate-refresh.yml the new stack's baselines are recorded by hand."""
    base = replace(make_base(), can_refresh=can_refresh)

    (step,) = make_upgrade_finding(make_shown(make_upgrade()), base, UPGRADED).steps

    assert ("`gate-refresh`" in step) is can_refresh
    assert ("`compile-gate baseline refresh`" in step) is not can_refresh


def test_an_upgrade_of_which_nothing_was_judged_is_not_to_be_taken() -> None:
    """All of it is quarantined, so no step recommends the upgrade."""
    rows = tuple(replace(row, decides=False) for row in make_upgrade().comparisons)
    verdict = replace(make_upgrade(), comparisons=rows, outcome=Outcome.NOTHING_COMPARED)

    assert list_upgrade_steps(verdict, can_refresh=True) == ()


@pytest.fixture
def publisher(publisher: Publisher) -> Publisher:
    """A run of the default branch that compared two stacks, and whose verdict is published."""
    publisher.be_upgrade()
    return publisher


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
def test_an_upgrade_that_got_worse(publisher: Publisher, clock: FakeClock) -> None:
    """An issue with the paragraph on top, outputs and a summary, in few requests."""
    published = publisher.publish(make_worse())

    issue = publisher.issue
    assert (issue["title"], issue["state"]) == ("compile-gate: torch 2.13.0 -> 2.14.0+cu130 (h200)", "open")
    first, second, _, origin, _, third = issue["body"].splitlines()[:6]
    assert first == f"<!-- compile-gate key=h200 run=100 attempt=1 head={SHA} -->"
    assert second.startswith("## \N{CROSS MARK} REGRESSION: 2 metrics worse in bert: ")
    assert origin.startswith("<sub>`main`, commit ")
    assert third.startswith("torch 2.13.0 -> 2.14.0+cu130. Cases that compile and agree on the new ")
    assert published.outputs == {
        "verdict": "REGRESSION",
        "regressions": 2,
        "improvements": 1,
        "inconclusive": 0,
        "cases": 3,
        "environment-id": "",
        "head-sha": SHA,
        "issue-url": issue["html_url"],
    }
    assert "Issue of h200: created." in published.summary
    assert published.lines == ()
    assert len(publisher.github.requests) <= 8
    assert clock.slept == []
    assert TOKEN not in str(published)


def test_an_upgrade_writes_over_no_newer_run_of_its_workflow(publisher: Publisher) -> None:
    """The file is the run's, whatever the gate's own workflow is called."""
    publisher.run["path"] = ".github/workflows/upgrade.yml"
    publisher.state.add_run(101, SHA)["path"] = ".github/workflows/upgrade.yml"
    publisher.publish(make_worse())
    publisher.issue["body"] = publisher.issue["body"].replace("run=100", "run=101") + "newer"

    published = publisher.publish(make_worse())

    assert "left alone: it shows a newer run" in published.summary
    assert publisher.issue["body"].endswith("newer")


def test_a_pass_is_quiet_and_closes_what_was_open(publisher: Publisher) -> None:
    """A first PASS opens nothing; after trouble it updates and closes the issue."""
    publisher.publish(make_upgrade())
    assert publisher.issues == []
    publisher.add_issue()

    published = publisher.publish(make_upgrade())

    assert publisher.issue["state"] == "closed"
    assert "PASS: Nothing got worse" in publisher.issue["body"]
    assert "Issue of h200: closed" in published.summary


@pytest.mark.parametrize(
    ("verdict", "when"),
    [
        (make_base_failure(Status.NOT_COMPARABLE), CommentWhen.ON_CHANGE),
        (
            make_upgrade(pair(CASES[2], Metric.COMPILED_LATENCY, Status.INCONCLUSIVE, (0.01, 0.0104))),
            CommentWhen.ON_FAILURE,
        ),
    ],
    ids=["a case was not compared", "inconclusive"],
)
def test_an_issue_stays_open_where_something_is_unknown(
    publisher: Publisher, verdict: Verdict, when: CommentWhen
) -> None:
    """Only a pass in which every case was judged takes back what the issue says."""
    publisher.add_issue()

    publisher.publish(verdict, comment=when)

    assert publisher.issue["state"] == "open"


@pytest.mark.parametrize("when", [CommentWhen.ALWAYS, CommentWhen.ON_CHANGE, CommentWhen.ON_FAILURE])
def test_by_hand_trouble_is_reported_and_a_pass_takes_nothing_back(
    publisher: Publisher, when: CommentWhen
) -> None:
    """A run of chosen cases or of a chosen stack leaves the issue as it is, and its summary says so."""
    publisher.run["event"] = "workflow_dispatch"
    publisher.publish(make_worse())
    before = publisher.issue["body"]

    published = publisher.publish(make_upgrade(), comment=when)

    assert (publisher.issue["state"], publisher.issue["body"]) == ("open", before)
    assert "PASS: Nothing got worse" in published.summary
    assert "The issue was left alone" in published.summary
    assert published.outputs["issue-url"] == ""


@pytest.mark.parametrize(
    ("when", "verdict", "is_open"),
    [
        (CommentWhen.ALWAYS, make_upgrade(), True),
        (CommentWhen.ON_CHANGE, make_upgrade(), False),
        (CommentWhen.ON_CHANGE, make_worse(), True),
        (CommentWhen.ON_FAILURE, make_worse(), True),
        (CommentWhen.NEVER, make_worse(), False),
    ],
)
def test_when(publisher: Publisher, when: CommentWhen, verdict: Verdict, is_open: bool) -> None:
    """The setting decides when an issue is open."""
    publisher.publish(verdict, comment=when)

    assert bool(publisher.issues) is is_open


@pytest.mark.parametrize(
    ("conclusion", "line"), [("success", "(slower)"), ("failure", "there is no verdict")]
)
def test_an_earlier_attempts_result_counts_only_where_its_job_succeeded(
    publisher: Publisher, conclusion: str, line: str
) -> None:
    """If only the report runs again the measurement holds; if measuring failed anew it does not."""
    publisher.run |= {"run_attempt": 2, "run_started_at": "2027-01-01T00:00:00Z"}

    publisher.publish(make_worse(), conclusion=conclusion)

    assert line in publisher.issue["body"]


@pytest.mark.parametrize("more", [{"event": "pull_request"}, {"owner": "mallory"}])
def test_a_pull_requests_run_is_no_upgrade(publisher: Publisher, more: dict[str, str]) -> None:
    """A fork's run, whatever its name, cannot write the repository's issue."""
    publisher.state.add_run(RUN.id, SHA, **more)

    with pytest.raises(UsageError, match="measured a pull request"):
        publisher.publish(make_worse())
    assert publisher.github.list_writes() == []


def test_the_command(publisher: Publisher, job: TokenJob) -> None:
    """A job calls it with options, the checkout's registry and the runner's outputs."""
    publisher.leave(make_worse(), "upgrade")
    options = ("--conclusion=success", "--artifact-name=upgrade", "--comment-key=h200")

    ran = job.run("publish", "--issue", "--run-id=100", *options, event_name="schedule")

    assert ran.code == 0
    assert ran.outputs["issue-url"] == publisher.issue["html_url"]
    assert "`bert` +30.0 %" in ran.summary
