"""The report's first lines, and values for the benchmark database."""

import json
from collections.abc import Mapping
from dataclasses import replace

from gate.records.cases import Metric, Threshold
from gate.records.run import Provenance
from gate.records.verdict import Change, Comparison, Estimate, PairBase, Reason, Status, Verdict
from gate.report.benchmark import render_benchmark
from gate.report.charts import draw_interval
from gate.report.content import make_report
from gate.report.footer import write_subject
from gate.report.words.comparisons import find_largest
from gate.report.words.headline import write_headline
from tests.make import make_change, make_row

LATENCY = Metric.COMPILED_LATENCY
BAR = Threshold(relative=0.05, absolute=20e-6)


def make_estimate(centre: float) -> Estimate:
    return Estimate(centre=centre, low=centre * 0.99, high=centre * 1.01, noise=0.01, n=3)


def make_unchanged(name: str, change: Change, seconds: float = 1.0) -> Comparison:
    return make_row(
        name,
        LATENCY,
        Status.UNCHANGED,
        reason=Reason.BELOW_THRESHOLD,
        change=change,
        baseline=make_estimate(seconds),
        threshold=BAR,
    )


def test_the_subject_names_repository_branch_both_commits_and_the_time(
    verdicts: Mapping[str, Verdict],
) -> None:
    """Unknown parts are left out."""
    where = Provenance(
        commit="0123456789abcdef",
        dirty=True,
        created="2026-11-22T11:00:59Z",
        repository="acme/models",
        branch="topic",
    )
    verdict = replace(verdicts["pass"], provenance=where, base=PairBase(label="main (5d6e7f8)"))
    assert write_subject(verdict) == (
        "acme/models, branch topic: 0123456789 with uncommitted changes against main (5d6e7f8),"
        " 2026-11-22 11:00 UTC"
    )
    bare = replace(verdict, provenance=Provenance(commit="0123456789abcdef"), base=None)
    assert write_subject(bare) == "0123456789 against stored baselines"


def test_the_largest_change_is_the_largest_part_of_its_threshold() -> None:
    """1 % of 1 s is 0.2 of 5 %; 2 % of 100 us is 0.1 of 20 us, since these are 20 %."""
    rows = [
        make_unchanged(name, make_change(by), seconds)
        for name, by, seconds in (("long", 0.01, 1.0), ("short", 0.02, 100e-6), ("same", 0.0, 1.0))
    ]
    rows.append(replace(make_unchanged("follows", make_change(0.5)), reason=Reason.LEADER_STANDS))
    largest = find_largest(rows)
    assert largest is not None
    assert largest.case_id == "long"
    assert find_largest(rows[2:]) is None  # by its rule, whatever it did


def test_a_pass_says_what_would_have_been_noticed(verdicts: Mapping[str, Verdict]) -> None:
    """A PASS has the detectable change of its largest unchanged change."""
    row = make_unchanged("a/x", make_change(0.01, detectable=0.04))
    report = make_report(replace(verdicts["pass"], comparisons=(row,), evidence=()))
    assert report.unchanged == (
        "largest unchanged: compiled latency +1.0 % (slower) in a/x; from 4.0 % on it would have been noticed"
    )


def test_a_pass_says_where_compiled_is_slower_than_eager(verdicts: Mapping[str, Verdict]) -> None:
    """In one case of two the speedup's upper end is below 1."""
    cases = verdicts["pass"].cases[:2]
    rows = [
        make_row(case.id, Metric.WARM_SPEEDUP, Status.UNCHANGED, candidate=make_estimate(speedup))
        for case, speedup in zip(cases, (0.8, 0.995), strict=True)
    ]
    headline = write_headline(replace(verdicts["pass"], cases=cases, comparisons=tuple(rows)))
    assert headline.endswith("; compiled is slower than eager in 1 of 2 cases (bert at most 0.808x).")


def test_what_is_beyond_the_scale_is_an_arrow() -> None:
    """Three thresholds are a point, five an arrow to their side."""
    assert "<circle" in str(draw_interval("", (2.0, 3.0, 4.0), "bad").__html__())
    right, left = (draw_interval("", (by, by, by), "bad").__html__() for by in (5.0, -5.0))
    assert "<circle" not in right + left
    assert right != left


def test_values_are_records_of_the_benchmark_database(verdicts: Mapping[str, Verdict]) -> None:
    """Schema v3 has a record for each metric with a value, the value before as target."""
    verdict = verdicts["regression"]
    records = json.loads(render_benchmark(verdict))
    assert len(records) == sum(row.candidate is not None for row in verdict.comparisons)
    latency = next(record for record in records if record["metric"]["name"] == LATENCY)
    assert latency["benchmark"]["mode"] == "inference"
    assert latency["model"]["name"] == "bert"
    assert latency["metric"]["target_value"] == 0.0121
    assert latency["metric"]["extra_info"] == {"status": "REGRESSED", "unit": "s"}
