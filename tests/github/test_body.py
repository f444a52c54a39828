"""The comment's text: one golden file a situation, its size levels, and its marker."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import (
    CASES,
    RUN,
    SHA,
    make_base,
    make_comparison,
    make_failing,
    make_passing,
    make_regressed,
    make_unchanged,
    make_verdict,
)

from gate.github import publish
from gate.github.artifact import Refusal
from gate.github.body import (
    MAX_BODY_BYTES,
    Finding,
    Marker,
    describe_outcome,
    make_marker,
    parse_marker,
    render_body,
    render_marker,
)
from gate.github.trusted import Base
from gate.records import (
    Case,
    CaseFailure,
    Cause,
    Explanation,
    FailureKind,
    Metric,
    PairBase,
    Reason,
    Status,
    Verdict,
)
from tests.hosts import CUDA_HOST

GOLDEN = Path(__file__).parent.parent / "golden" / "comment"


def make_many(number: int = 400) -> tuple[Verdict, Base]:
    """A verdict in which every one of ``number`` cases got worse."""
    cases = tuple(Case(id=f"model_{index:04}/test", model=f"model_{index:04}") for index in range(number))
    rows = (row for case in cases for row in make_regressed(case))
    return make_verdict(*rows, cases=cases), make_base(cases)


def make_verdicts() -> dict[str, Verdict]:
    """Every kind of verdict that a reader can meet, by name."""
    first, second, third = CASES
    explained = [
        ("graph_break", "New graph break at evil.py:1"),
        ("changed_code", "evil.py was generated anew."),
    ]
    explanations = tuple(Explanation(case_id=first.id, kind=k, sentence=s) for k, s in explained)
    failure = CaseFailure(
        case_id=second.id, trial=0, kind=FailureKind.KILLED, stage="compile", message="Killed", log_tail="x"
    )
    failed = replace(
        make_comparison(second, Metric.COMPILED_LATENCY, Status.FAILED, Reason.CASE_FAILED),
        baseline=None,
        candidate=None,
        change=None,
    )
    rest = (*make_unchanged(second), *make_unchanged(third))
    one = {
        "accepted": (Status.ACCEPTED, Reason.ACCEPTED, (0.01, 0.0108)),
        "improved": (Status.IMPROVED, Reason.BEYOND_BAR, (0.01, 0.008)),
        "inconclusive": (Status.INCONCLUSIVE, Reason.SUSPECT, (0.01, 0.0106)),
    }
    other = replace(CUDA_HOST, torch="2.14.1", device_uuid="GPU-2")
    return {
        "pass": make_passing(),
        "regression": make_failing(explanations=explanations),
        "incomplete": make_verdict(*make_regressed(first), failed, *rest[2:], failures=(failure,)),
        "nothing_compared": make_verdict(
            *(
                replace(row, status=Status.NEW, reason=Reason.NO_BASELINE, baseline=None, change=None)
                for case in CASES
                for row in make_unchanged(case)
            ),
            baseline_environments=(),
        ),
        "upgrade": make_verdict(
            *(
                replace(row, status=Status.NOT_COMPARABLE, reason=Reason.OTHER_STACK, change=None)
                for case in CASES
                for row in make_unchanged(case)
            ),
            environment=other,
        ),
        "unknown_cases": make_verdict(
            *make_unchanged(first),
            *make_regressed(Case(id="evil/<img>@all", model="evil")),
            cases=(first, Case(id="evil/<img>@all", model="evil")),
        ),
        **{
            name: make_verdict(make_comparison(first, Metric.COMPILED_LATENCY, status, reason, values), *rest)
            for name, (status, reason, values) in one.items()
        },
    }


def make_situations() -> dict[str, Finding]:
    """Every situation that a reader can meet, by name."""
    findings = {name: make_finding(verdict) for name, verdict in make_verdicts().items()}
    findings["many"] = make_finding(*make_many(60))
    findings["rejected"] = Finding(run=RUN, refusal=Refusal.NOT_A_VERDICT)
    findings["no_result"] = Finding(
        run=replace(RUN, conclusion="cancelled", attempt=2), refusal=Refusal.NO_ARTIFACT
    )
    return findings


def make_finding(verdict: Verdict, base: Base | None = None) -> Finding:
    return publish.make_finding(verdict, base or make_base(), RUN)


@pytest.mark.parametrize("name", sorted(make_situations()))
def test_golden(name: str) -> None:
    """Each situation's comment reads as its golden file (GATE_WRITE_GOLDEN=1 writes them anew)."""
    actual = render_body(make_marker("default", RUN), make_situations()[name])
    path = GOLDEN / f"{name}.md"
    if os.environ.get("GATE_WRITE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(actual, encoding="utf-8")
    assert actual == path.read_text(encoding="utf-8")


def test_golden_files_are_used() -> None:
    """No golden file is left over from a situation that is gone."""
    assert {path.stem for path in GOLDEN.glob("*.md")} == {*make_situations(), "too_long"}


def test_nothing_of_the_artifact_is_told() -> None:
    """Texts of whoever measured are in no comment."""
    for finding in make_situations().values():
        body = render_body(make_marker("default", RUN), finding)
        for text in ("whoever measured", "evil", "Mallory", "Killed"):
            assert text not in body


@pytest.mark.parametrize("kind", Cause)
def test_no_kind_of_explanation_vanishes(kind: Cause) -> None:
    """Whatever was found to explain a change is told in our own words."""
    told = Explanation(case_id=CASES[0].id, kind=kind, sentence="Text of whoever measured.")
    eager = make_comparison(CASES[0], Metric.EAGER_LATENCY, Status.UNCHANGED, Reason.WITHIN_NOISE)
    verdict = make_failing(explanations=(told,))
    verdict = replace(verdict, comparisons=(*verdict.comparisons, replace(eager, decides=False)))
    (shown,) = make_finding(verdict).verdict.explanations
    assert shown.sentence.endswith(".")
    assert "whoever" not in shown.sentence


def test_commands_run_nothing_that_the_artifact_chose() -> None:
    """A command for the reader's own machine names no commit of the artifact: it may be anybody's."""
    verdict = make_failing(base=PairBase(commit="e" * 40, head_commit="e" * 40))
    rows = tuple(replace(row, pairs=3) for row in verdict.comparisons)
    body = render_body(make_marker("default", RUN), make_finding(replace(verdict, comparisons=rows)))
    assert f"compile-gate ab --select {CASES[0].id}" in body
    assert "eeee" not in body


@pytest.mark.parametrize(
    ("level", "said"), [(0, "Measured"), (1, "Shortened to the failing"), (2, "too long")]
)
def test_levels(level: int, said: str) -> None:
    """A report that is too long keeps the failing cases, then only counts and a link."""
    cases = tuple(Case(id=f"model_{index:03}/test", model=f"model_{index:03}") for index in range(50))
    rows = [row for case in cases[1:] for row in make_unchanged(case)]
    finding = make_finding(make_verdict(*make_regressed(cases[0]), *rows, cases=cases), make_base(cases))
    marker = make_marker("default", RUN)
    limit = MAX_BODY_BYTES
    for _ in range(level):
        limit = len(render_body(marker, finding, limit).encode()) - 1
    body = render_body(marker, finding, limit)
    assert len(body.encode()) <= limit
    assert said in body
    assert body.splitlines()[0] == render_marker(marker)
    assert RUN.url in body


def test_limit_is_in_bytes() -> None:
    """Exactly the limit fits and one byte less does not, counted in UTF-8."""
    finding = make_situations()["regression"]
    marker = make_marker("default", RUN)
    full = render_body(marker, finding)
    size = len(full.encode())
    assert size > len(full)
    assert render_body(marker, finding, size) == full
    assert render_body(marker, finding, size - 1) != full


def test_too_long() -> None:
    """The last level says the counts and where the rest is."""
    body = render_body(make_marker("default", RUN), make_finding(*make_many()), 1000)
    path = GOLDEN / "too_long.md"
    if os.environ.get("GATE_WRITE_GOLDEN"):
        path.write_text(body, encoding="utf-8")
    assert body == path.read_text(encoding="utf-8")


def test_largest_verdict_fits() -> None:
    """However many cases got worse, the comment stays below its limit."""
    assert (
        len(render_body(make_marker("default", RUN), make_finding(*make_many(2000))).encode())
        <= MAX_BODY_BYTES
    )


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
    """The status line says the outcome and the counts, or why there is none."""
    situations = make_situations()
    assert describe_outcome(situations["regression"]) == "REGRESSION: 1 regressed, 5 unchanged"
    assert describe_outcome(situations["rejected"]) == (
        "no result: the artifact's verdict is not one that this compile-gate reads"
    )
