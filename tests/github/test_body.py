"""The comment's text: a golden file for each situation, its size levels, and its marker."""

import html
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import (
    CASES,
    GREEN,
    RUN,
    SHA,
    UNSTORED,
    make_base,
    make_comparison,
    make_failing,
    make_passing,
    make_regressed,
    make_rows,
    make_unchanged,
    make_verdict,
)

from gate.decide.conclude.exit_codes import FailOn
from gate.publish import results
from gate.publish.body import (
    MAX_BODY_BYTES,
    Marker,
    describe_outcome,
    link_commit,
    list_comment_steps,
    make_marker,
    parse_marker,
    render_body,
    render_marker,
    render_trusted_report,
)
from gate.publish.shown import make_shown
from gate.publish.submitted import CiRun, Refusal
from gate.publish.trusted import NO_CONTEXT, Base, RunContext, TrustedResult
from gate.records.cases import Case, Metric
from gate.records.codes import Code
from gate.records.facts import CAUSE_CODES, Fact, name_words
from gate.records.run import FailureKind
from gate.records.verdict import Cause, Outcome, PairBase, Reason, Status, Tally, Verdict
from gate.report.words.facts import describe_cause
from tests.golden_files import GOLDEN, check_golden
from tests.hosts import CUDA_HOST
from tests.make import make_failure


def make_many(number: int = 400, growth: float = 1.0) -> tuple[Verdict, Base]:
    """A verdict of ``number`` slower cases, each slower by ``growth`` times the one before."""
    cases = tuple(Case(id=f"model_{index:04}/test", model=f"model_{index:04}") for index in range(number))
    rows = [
        row
        for index, case in enumerate(cases)
        for row in make_regressed(case, (0.0121, 0.0158 * growth**index))
    ]
    return make_verdict(*rows, cases=cases), make_base(cases)


CHANGED_CODE = Fact(
    code=Code.CODE_CHANGED, numbers={"kernels": 23, "changed": 2}, names={"changed": ("evil", "whoever")}
)


CAUSES = tuple(
    Cause(case_id=CASES[0].id, fact=fact)
    for fact in (Fact(code=Code.GRAPH_BREAK, names=name_words(location="evil.py:1")), CHANGED_CODE)
)
FAILURE = make_failure(CASES[1].id, "Killed", trial=0, kind=FailureKind.KILLED, log_tail="x")
EVIL = Case(id="evil/<img>@all", model="evil")
MOVED = {
    "accepted": (Status.ACCEPTED, Reason.ACCEPTED, (0.01, 0.0108)),
    "improved": (Status.IMPROVED, Reason.BEYOND_BAR, (0.01, 0.008)),
    "inconclusive": (Status.INCONCLUSIVE, Reason.UNSETTLED, (0.01, 0.0106)),
}


def make_verdicts() -> dict[str, Verdict]:
    """Every kind of verdict that a reader can meet, by name."""
    first, second, third = CASES
    rest = (*make_unchanged(second), *make_unchanged(third))
    failed = replace(
        make_comparison(second, Metric.COMPILED_LATENCY, Status.FAILED, Reason.CASE_FAILED),
        baseline=None,
        candidate=None,
        change=None,
    )
    removed = replace(failed, status=Status.MISSING, reason=Reason.REMOVED, case_id=first.id)
    elsewhere = {"status": Status.NOT_COMPARABLE, "reason": Reason.OTHER_ENVIRONMENT, "change": None}
    other = replace(CUDA_HOST, torch="2.14.1", device_uuid="GPU-2")
    return {
        "pass": make_passing(),
        "regression": make_failing(causes=CAUSES),
        "incomplete": make_verdict(*make_regressed(first), failed, *rest[2:], failures=(FAILURE,)),
        "removed": make_verdict(*rest, removed),
        "nothing_compared": make_verdict(*make_rows(**UNSTORED), baseline_environments=()),
        "upgrade": make_verdict(*make_rows(**elsewhere), environment=other),
        "unknown_cases": make_verdict(*make_unchanged(first), *make_regressed(EVIL), cases=(first, EVIL)),
        **{
            name: make_verdict(make_comparison(first, Metric.COMPILED_LATENCY, status, reason, values), *rest)
            for name, (status, reason, values) in MOVED.items()
        },
    }


def make_situations() -> dict[str, TrustedResult]:
    """Every situation that a reader can meet, by name."""
    findings = {name: make_finding(verdict) for name, verdict in make_verdicts().items()}
    findings["many"] = make_finding(*make_many(60))
    findings["failed_run"] = make_finding(make_passing(), run=RUN)
    fork = replace(RUN, head_repository=2000, head_owner="contributor")
    findings["fork"] = make_finding(make_verdicts()["nothing_compared"], run=fork)
    findings["side_by_side"] = make_finding(
        make_paired(), context=RunContext(base_sha="b" * 40, remarks=REMARKS)
    )
    findings["rejected"] = TrustedResult(run=RUN, refusal=Refusal.NOT_A_VERDICT)
    findings["no_result"] = TrustedResult(
        run=replace(RUN, conclusion="cancelled", attempt=2), refusal=Refusal.NO_ARTIFACT
    )
    return findings


def make_finding(
    verdict: Verdict,
    base: Base | None = None,
    run: CiRun | None = None,
    context: RunContext = NO_CONTEXT,
) -> TrustedResult:
    """A result of a run that ended as its verdict requires."""
    passes = verdict.outcome in {Outcome.PASS, Outcome.INCONCLUSIVE}
    return results.make_finding(
        make_shown(verdict), base or make_base(), run or (GREEN if passes else RUN), context
    )


def render(finding: TrustedResult | str) -> str:
    """Render the comment of a result, or of a named situation."""
    result = make_situations()[finding] if isinstance(finding, str) else finding
    return render_body(make_marker("default", RUN), result)


def test_a_removal_without_the_workflow_that_accepts_lands_in_two_steps() -> None:
    """Nobody can accept it then: gate.yml changes first, while the code is there."""
    removed = make_finding(make_verdicts()["removed"])
    finding = replace(removed, base=replace(removed.base, can_accept=False))
    (step,) = list_comment_steps(finding)
    assert step.startswith("If what is removed is meant to go: merge the change of `gate.yml` first")


def test_a_removal_next_to_a_crash_is_reported_with_it() -> None:
    """The log of the crash comes first."""
    failed = make_verdicts()["incomplete"].comparisons
    verdict = make_verdict(*failed, *make_verdicts()["removed"].comparisons[-1:])
    steps = list_comment_steps(make_finding(verdict))
    assert [step.split()[0] for step in steps] == ["Open", "If"]


REMARKS = (Fact(code=Code.TOUCHES_RULES, names={"rules": ("gate.yml (1 file)",)}),)


def make_paired() -> Verdict:
    """A verdict of pairs, open in one case, on a machine that was busy for a while."""
    first, second, third = CASES
    slower = make_comparison(
        first, Metric.COMPILED_LATENCY, Status.REGRESSED, Reason.BEYOND_BAR, (0.0121, 0.0158)
    )
    broken = make_comparison(first, Metric.GRAPH_BREAKS, Status.REGRESSED, Reason.BEYOND_BAR, (0, 1))
    near = make_comparison(
        second, Metric.COMPILED_LATENCY, Status.INCONCLUSIVE, Reason.UNSETTLED, (0.010, 0.0103)
    )
    rows = (slower, broken, replace(near, more_pairs=3))
    broken_at = Fact(code=Code.GRAPH_BREAK, names=name_words(reason="evil", location="evil.py:1"))
    return make_verdict(
        *(replace(row, pairs=6) for row in rows),
        make_unchanged(second)[1],
        *make_unchanged(third),
        causes=(Cause(case_id=first.id, fact=broken_at),),
        base=PairBase(label="evil", commit="b" * 40),
        tally=Tally(trials=9, disturbed_trials=2, pairs=12, paired_cases=2, disturbed_pairs=1, cleared=1),
    )


@pytest.mark.parametrize("name", sorted(make_situations()))
def test_golden(name: str) -> None:
    """Each situation's comment reads as its golden file."""
    check_golden(f"comment/{name}.md", render(name))


def test_golden_files_are_used() -> None:
    """No golden file is left of a situation that is gone."""
    assert {path.stem for path in (GOLDEN / "comment").glob("*.md")} == set(make_situations())


def test_nothing_of_the_artifact_is_shown() -> None:
    """Texts of the measured side, which are in every verdict, are in no comment."""
    assert all("Headline of whoever measured" in str(verdict) for verdict in make_verdicts().values())
    for finding in make_situations().values():
        body = render(finding)
        for text in ("whoever measured", "evil", "Mallory", "Killed"):
            assert text not in body


@pytest.mark.parametrize("code", sorted(CAUSE_CODES - {Code.MORE}))
def test_no_cause_vanishes(code: Code) -> None:
    """Every cause of a change is shown, without a text of the measured side."""
    numbers = dict.fromkeys(code.numbers, 1.0)
    words = {"reason": ("Text of whoever measured.",), "reasons": ("Text of whoever measured.",)}
    fact = Fact(code=code, numbers=numbers, cases=("whoever",), names=words)
    cause = Cause(case_id=CASES[0].id, fact=fact)
    verdict = make_finding(make_failing(causes=(cause,))).verdict
    assert verdict is not None
    (shown,) = verdict.causes
    assert describe_cause(shown.fact).endswith(".")
    assert "whoever" not in describe_cause(shown.fact)


def test_no_command_for_a_machine_that_the_author_cannot_reach() -> None:
    """It asks for a push, a comment or a click, shows how to compare, and names who else is needed."""
    failed_and_passed = make_finding(make_passing(failures=(FAILURE,)))
    for finding in (*make_situations().values(), failed_and_passed):
        body = render(finding)
        assert set(re.findall("`compile-gate ([a-z-]+)", body)) <= {"ab"}
        assert "run again" not in body
        steps = list_comment_steps(finding)
        assert len(set(steps)) == len(steps)
        assert all("write access" in step for step in steps if "`/" in step or "Re-run" in step)


def test_no_refresh_for_a_fork() -> None:
    """The command is refused there, so the comment does not name it."""
    body = render("fork")
    assert "/refresh-baselines" not in body
    assert "/accept-regression" in body
    assert "`gate-refresh` on the default branch" in body


def test_a_failed_run_is_never_shown_as_pass() -> None:
    """The run failed after its verdict, or the verdict was forged: the heading names the failure."""
    finding = make_situations()["failed_run"]
    heading = render(finding).splitlines()[1]
    assert heading == "## \N{CROSS MARK} The run ended with failure, although its verdict is PASS"
    assert describe_outcome(finding) == "PASS: 6 unchanged; but the run ended with failure"


def test_what_limits_a_verdict_is_reported() -> None:
    """Numbers and codes show how many pairs there were, how many were disturbed, and the base commit."""
    body = render("side_by_side")
    limits = (
        f"against [bbbbbbbbbbbb](https://github.com/octo-org/models/commit/{'b' * 40})",
        "- **base** bbbbbbbbbb, side by side in 12 pairs of 2 cases",
        "The machine was disturbed during 2 of 9 trials.",
        "The machine was disturbed during 1 of 12 pairs, base and head alike.",
        "Worse than the stored baseline, but not worse than the base: 1 comparison.",
        "needs 3 more pairs",
    )
    assert [limit for limit in limits if limit not in body] == []


def test_a_base_that_github_does_not_confirm_is_not_named() -> None:
    """The artifact may name any commit as its base."""
    body = render(make_finding(make_paired()))
    assert "b" * 10 not in body
    assert "- **base** side by side in 12 pairs of 2 cases" in body


@pytest.mark.parametrize("name", sorted(make_situations()))
def test_headings_are_short(name: str) -> None:
    """At most two lines on GitHub: the outcome, the slowest call and the gravest change."""
    heading = render(name).splitlines()[1]
    assert len(html.unescape(heading)) <= 140


def test_a_plain_pass_is_one_line() -> None:
    """The heading with its counts, and the commit and the run."""
    body = render("pass")
    lines = [line for line in body.splitlines() if line]
    assert (
        lines[1] == "## \N{WHITE HEAVY CHECK MARK} PASS: Nothing got worse: 6 comparisons in 3 cases judged."
    )
    assert lines[2].startswith("<sub>`topic`, commit ")
    assert len(lines) == 3


def test_a_partial_pass_names_what_was_not_judged() -> None:
    """Of six comparisons two were judged: the heading counts, a note gives the reason and a step the fix."""
    body = render(make_finding(make_verdict(*make_unchanged(CASES[0]), *make_rows(**UNSTORED)[2:])))
    assert "PASS: Nothing got worse in what was judged: 2 of 6 comparisons, in 1 of 3 cases." in body
    assert "Not judged in 2 cases: compiled latency, cold compile time. No baseline is stored." in body
    assert "`/refresh-baselines`" in body


def test_a_partial_pass_that_fails_the_check_is_not_headed_pass() -> None:
    """With `fail-on: new` the check is red, and the heading gives the reason."""
    verdict = make_verdict(*make_unchanged(CASES[0]), *make_rows(**UNSTORED)[2:4])
    finding = results.make_finding(make_shown(verdict), make_base(), RUN, fail_on=FailOn.NEW)
    lines = render(finding).splitlines()
    assert lines[1] == "## \N{CROSS MARK} Not everything has a baseline, which this check demands"
    assert lines[3] == "Nothing got worse in what was judged: 2 of 4 comparisons, in 1 of 2 cases."


def test_a_long_comment_keeps_the_worst_rows() -> None:
    """However many cases got worse, 10 KB name the slowest one."""
    finding = make_finding(*make_many(400, growth=1.02))
    marker = make_marker("default", RUN)
    body = render_body(marker, finding, 10_000)
    assert "model_0399" in body
    assert body.splitlines()[0] == render_marker(marker)
    assert RUN.url in body


def test_without_a_verdict_the_comment_names_what_the_change_touches() -> None:
    """A changed workflow may be the reason that there is no verdict; it is named once."""
    finding = TrustedResult(run=RUN, refusal=Refusal.SKIPPED, context=RunContext(remarks=REMARKS))
    body = render(finding)
    note = "This change edits the gate's configuration: gate.yml (1 file). Review that first."
    notes = f"**Notes**\n\n- {note}"
    assert body.count(notes) == 1
    assert body.index("**Next**") < body.index(notes) < body.index("<sub>`topic`, commit ")
    assert "**Notes**" not in render(replace(finding, context=RunContext()))


def test_a_verdict_that_is_too_large_has_a_step_that_helps() -> None:
    """A second run would be as large; the step is to select fewer cases."""
    finding = TrustedResult(run=RUN, refusal=Refusal.TOO_LARGE)
    text = render(finding)
    assert "The check itself counts" in text
    assert "measure fewer cases" in text
    assert "run it again" not in text


def test_the_last_resort_is_counts_and_a_link() -> None:
    """Where the rows do not fit."""
    body = render_body(make_marker("default", RUN), make_finding(*make_many()), 500)
    assert "REGRESSION: 400 regressed, 400 unchanged" in body
    assert "too long for a comment" in body
    assert RUN.url in body


def test_limit_is_in_bytes() -> None:
    """A text of the limit in UTF-8 bytes fits; with one byte less room it does not."""
    finding = make_situations()["regression"]
    marker = make_marker("default", RUN)
    full = render_body(marker, finding)
    size = len(full.encode())
    assert size > len(full)
    assert render_body(marker, finding, size) == full
    assert render_body(marker, finding, size - 1) != full


@pytest.mark.parametrize(("size", "is_whole"), [(60_000, True), (60_001, False)])
def test_a_comment_takes_up_to_60000_bytes(size: int, is_whole: bool) -> None:
    """One more, and it is counts and a link."""
    marker = make_marker("default", RUN)
    finding = replace(make_situations()["regression"], preface="x")
    room = size - len(render_body(marker, finding).encode())

    body = render_body(marker, replace(finding, preface="x" * (room + 1)))

    assert (len(body.encode()) == size) is is_whole
    assert ("too long for a comment" in body) is not is_whole


@pytest.mark.parametrize("count", [10, 11])
def test_a_comment_names_ten_cases_of_a_group(count: int) -> None:
    """Of eleven cases that got worse alike the least is counted."""
    body = render(make_finding(*make_many(count, growth=1.02))).partition("Measured values")[0]

    assert sum(line.startswith("| `model_") for line in body.splitlines()) == 10
    assert ("... and 1 more case, in" in body) is (count == 11)


@pytest.mark.parametrize("count", [10, 11])
def test_a_comment_has_ten_rows_and_ten_cases_that_differ(count: int) -> None:
    """Each case got worse in other metrics than all others, so none is shown with another."""
    metrics = (
        Metric.COMPILED_LATENCY,
        Metric.COLD_COMPILE_TIME,
        Metric.WARM_COMPILE_TIME,
        Metric.PEAK_MEMORY,
    )
    cases = tuple(Case(id=f"model_{index:02}/test", model=f"model_{index:02}") for index in range(count))
    rows = [
        make_comparison(case, metric, Status.REGRESSED, Reason.BEYOND_BAR, (0.01, 0.02))
        for index, case in enumerate(cases, start=1)
        for bit, metric in enumerate(metrics)
        if index >> bit & 1
    ]
    body = render(make_finding(make_verdict(*rows, cases=cases), make_base(cases)))
    body = body.partition("Measured values")[0]

    assert sum(line.endswith(")** |") for line in body.splitlines()) == 10
    assert body.count("<summary><code>model") == 10
    assert ("... and 1 more case, in" in body) is (count == 11)


def test_a_commit_is_linked_where_the_repository_is_known() -> None:
    """By the beginning of its id, which is all that is shown elsewhere."""
    linked = f"[{'a' * 12}](https://github.com/octo-org/models/commit/{SHA})"

    assert link_commit(RUN, SHA) == linked
    assert link_commit(replace(RUN, url=""), SHA) == "a" * 12


def test_largest_verdict_fits() -> None:
    """However many cases got worse, alike or not, the comment stays below its limit."""
    for growth in (1.0, 1.002):
        finding = make_finding(*make_many(2000, growth=growth))
        assert len(render(finding).encode()) <= MAX_BODY_BYTES


@pytest.mark.parametrize(
    "line",
    [
        "",
        "<!-- compile-gate key=default run=1 attempt=1 head=" + "a" * 39 + " -->",
        " <!-- compile-gate key=default run=1 attempt=1 head=" + "a" * 40 + " -->",
        "<!-- compile-gate key=a b run=1 attempt=1 head=" + "a" * 40 + " -->",
        "<!-- compile-gate key=default run=" + "9" * 20 + " attempt=1 head=" + "a" * 40 + " -->",
        "<!-- compile-gate key=default run=\u0661 attempt=1 head=" + "a" * 40 + " -->",
        "> <!-- compile-gate key=default run=1 attempt=1 head=" + "a" * 40 + " -->",
        "text\n<!-- compile-gate key=default run=1 attempt=1 head=" + "a" * 40 + " -->",
    ],
)
def test_no_marker(line: str) -> None:
    """Only a whole first line is a marker."""
    assert parse_marker(line) is None


@given(
    key=st.from_regex(r"[A-Za-z0-9_.-]{1,40}", fullmatch=True),
    run=st.integers(1, 10**18),
    attempt=st.integers(1, 999),
    end=st.sampled_from(["", "\n", "\r\n", "\ntext"]),
)
def test_marker(key: str, run: int, attempt: int, end: str) -> None:
    """A marker is read back as it was written, whatever follows it."""
    marker = Marker(key=key, run_id=run, attempt=attempt, head_sha=SHA)
    assert parse_marker(render_marker(marker) + end) == marker


def test_descriptions() -> None:
    """The status shows the outcome and the counts, or why there is none."""
    situations = make_situations()
    assert describe_outcome(situations["regression"]) == "REGRESSION: 1 regressed, 5 unchanged"
    assert describe_outcome(situations["rejected"]) == (
        "no result: the artifact's verdict is not one that this compile-gate writes"
    )


def test_a_targets_comment_names_what_was_not_measured() -> None:
    """The comment lists speed and memory as not measured, as the report does."""
    unknown = "speed, compile time, memory, drift, cache use and CUDA graphs were not measured"
    passing = make_passing()
    target = replace(passing, environment=replace(passing.environment, device_kind="target"))
    assert unknown in render(make_finding(target))
    assert unknown not in render(make_finding(passing))


def test_markers_are_equal_whenever_their_runs_began() -> None:
    """That is not written down, so a marker that is read back does not have it."""
    assert make_marker("k", RUN) == make_marker("k", replace(RUN, started=""))
    assert make_marker("k", RUN) != make_marker("k", replace(RUN, attempt=2))
    assert make_marker("k", RUN).order < make_marker("k", replace(RUN, attempt=2)).order


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        (
            {"status": Status.IMPROVED, "reason": Reason.BEYOND_BAR},
            "To make the improvement the new baseline",
        ),
        ({"status": Status.IMPROVED, "reason": Reason.BEYOND_BAR, "decides": False}, ""),
        ({"reason": Reason.FEW_TRIALS}, "To have baselines for later changes"),
        ({"reason": Reason.FEW_TRIALS, "decides": False}, ""),
        (UNSTORED, "To have baselines for later changes"),
        ({**UNSTORED, "decides": False}, ""),
    ],
)
def test_a_pass_asks_for_baselines_where_some_could_be_better(changes: dict[str, Any], why: str) -> None:
    """What does not decide asks for nothing."""
    first, *others = make_rows()

    steps = list_comment_steps(make_finding(make_verdict(replace(first, **changes), *others)))

    assert [step.partition(":")[0] for step in steps] == ([why] if why else [])


@pytest.mark.parametrize(
    ("run", "can_refresh", "words"),
    [
        (GREEN, True, "comments `/refresh-baselines` and merges what it proposes."),
        (replace(GREEN, head_repository=2000), True, "merges this, then starts `compile-gate-respond`"),
        (replace(GREEN, event="merge_group"), True, "merges this, then starts `compile-gate-respond`"),
        (GREEN, False, "by `compile-gate baseline refresh`, and commits them."),
    ],
)
def test_how_baselines_are_recorded_depends_on_who_may(run: CiRun, can_refresh: bool, words: str) -> None:
    """A comment does it on a branch of the repository, where a workflow of it answers."""
    base = replace(make_base(), can_refresh=can_refresh)
    better = make_verdicts()["improved"]

    (step,) = list_comment_steps(make_finding(better, base, run))

    assert words in step


@pytest.mark.parametrize(
    ("fail_on", "begins"),
    [(FailOn.REGRESSION, ["Nothing", "To"]), (FailOn.INCONCLUSIVE, ["To"])],
)
def test_what_is_inconclusive_can_be_measured_again(fail_on: FailOn, begins: list[str]) -> None:
    """That is nobody's duty where it does not fail the check."""
    shown = make_shown(make_verdicts()["inconclusive"])
    run = GREEN if fail_on is FailOn.REGRESSION else RUN

    steps = list_comment_steps(results.make_finding(shown, make_base(), run, fail_on=fail_on))

    assert [re.split("[ :]", step)[0] for step in steps] == begins


@pytest.mark.parametrize(
    ("verdict", "lost_jobs", "begins"),
    [
        ("pass", (), ["something besides the verdict failed. Fix"]),
        ("pass", ("h200",), ["h200 failed and left no verdict. Fix"]),
        ("regression", ("h200", "cpu"), ["h200, cpu failed and left no verdict. Fix", "", "", ""]),
        ("regression", (), ["", "", ""]),
    ],
)
def test_a_job_that_left_no_verdict_is_looked_at_first(
    verdict: str, lost_jobs: tuple[str, ...], begins: list[str]
) -> None:
    """Its name is GitHub's; what the verdict asks for comes after it."""
    finding = make_finding(make_verdicts()[verdict], run=replace(RUN, lost_jobs=lost_jobs))

    steps = list_comment_steps(finding)

    assert len(steps) == len(begins)
    assert all(words in step for step, words in zip(steps, begins, strict=True))


@pytest.mark.parametrize(
    ("run", "refusal", "origin"),
    [
        (
            RUN,
            Refusal.NOT_A_VERDICT,
            "`topic`, commit {commit}, 2026-11-01 11:00 UTC, {run}, {data}. Written",
        ),
        (RUN, Refusal.EXPIRED, "`topic`, commit {commit}, 2026-11-01 11:00 UTC, {run}. Written"),
        (
            replace(RUN, attempt=2),
            Refusal.NO_ARTIFACT,
            "`topic`, commit {commit}, 2026-11-01 11:00 UTC, {run}, attempt 2.",
        ),
        (
            replace(RUN, head_branch="", started=""),
            Refusal.NO_ARTIFACT,
            "<sub>Commit {commit}, {run}. Written",
        ),
    ],
)
def test_the_last_line_names_branch_commit_time_and_run(run: CiRun, refusal: Refusal, origin: str) -> None:
    """As far as they are known, and the artifact where it holds something."""
    expected = origin.format(
        commit=link_commit(run, SHA),
        run=f"[run 100]({run.url})",
        data=f"[report and data]({run.url}#artifacts)",
    )

    assert expected in render(TrustedResult(run=run, refusal=refusal))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "The run ended with: failure. Nothing is known about this commit."),
        ({"event": "merge_group"}, "The run ended with: failure. Nothing is known about this commit."),
        ({"event": "schedule"}, "The run ended with: failure. Nothing was compared."),
        ({"conclusion": ""}, "no artifact with a result. Nothing is known"),
        ({"failed_step": "Install"}, "ended with: failure. The step that failed: Install. Nothing is"),
    ],
)
def test_without_a_verdict_the_comment_says_how_the_run_ended(changes: dict[str, Any], words: str) -> None:
    """And, of a change, that nothing is known about it."""
    body = render(TrustedResult(run=replace(RUN, **changes), refusal=Refusal.NO_ARTIFACT))

    assert words in body
    assert ("push or run it again" in body) is (changes.get("event") != "schedule")


@pytest.mark.parametrize(
    ("changes", "run", "preface", "is_brief"),
    [
        ({}, GREEN, "", True),
        ({"status": Status.IMPROVED, "reason": Reason.BEYOND_BAR}, GREEN, "", False),
        ({}, RUN, "", False),
        ({}, GREEN, "of an upgrade", False),
        ({"status": Status.INCONCLUSIVE, "reason": Reason.UNSETTLED}, GREEN, "", False),
    ],
)
def test_only_a_report_of_a_quiet_pass_is_brief(
    changes: dict[str, Any], run: CiRun, preface: str, is_brief: bool
) -> None:
    """One other row, a run that failed, or an upgrade needs more than a line."""
    first, *others = make_rows()
    finding = make_finding(make_verdict(replace(first, **changes), *others), run=run)

    report = render_trusted_report(replace(finding, preface=preface))

    assert (len([line for line in report.splitlines() if line]) == 2) is is_brief
