"""What rows of a verdict and trials of a run say of themselves."""

from dataclasses import replace

import pytest

from gate.records.cases import Metric, Threshold
from gate.records.run import Place
from gate.records.verdict import RED, CaseEvidence, SideEvidence, Status
from tests.make import make_change, make_pair, make_row, make_run, make_trials

LATENCY = Metric.COMPILED_LATENCY


@pytest.mark.parametrize(
    ("relative", "absolute", "severity"),
    [(0.1, 0.0, 2.0), (0.1, 5.0, 2.0), (0.0, 0.4, 0.5)],
)
def test_a_severity_is_the_change_in_thresholds(relative: float, absolute: float, severity: float) -> None:
    """0.2 is twice 10 %, and half of 0.4; where both are set the fraction counts."""
    threshold = Threshold(relative=relative, absolute=absolute)
    assert make_row("a/x", LATENCY, change=make_change(0.2), threshold=threshold).severity == severity


def test_a_severity_without_a_threshold_is_ten_times_the_change() -> None:
    """A counter has none: one more is ten; and so it is where the threshold is zero."""
    row = make_row("a/x", Metric.GRAPH_BREAKS, change=make_change(1.0))
    assert row.severity == replace(row, threshold=Threshold(relative=0.0, absolute=0.0)).severity == 10.0


def test_what_does_not_decide_or_did_not_change_has_no_severity() -> None:
    """Each is enough."""
    row = make_row("a/x", LATENCY, change=make_change(0.2))
    assert row.severity > 0
    for other in (
        replace(row, change=None),
        replace(row, decides=False),
        replace(row, status=Status.UNCHANGED),
    ):
        assert other.severity == 0.0


def test_only_an_open_row_that_can_have_more_pairs_waits_for_them() -> None:
    """None is as far as pairs go; a decided row may name how many more would have settled it."""
    row = make_row("a/x", LATENCY, Status.INCONCLUSIVE, more_pairs=3)
    assert row.waits_for_pairs
    assert not replace(row, more_pairs=None).waits_for_pairs
    assert not replace(row, status=Status.REGRESSED).waits_for_pairs


def test_a_row_that_only_follows_is_not_incomparable() -> None:
    """What does not decide needs nothing to be compared with."""
    row = make_row("a/x", LATENCY, Status.NEW)
    assert row.is_incomparable
    assert not replace(row, decides=False).is_incomparable
    assert not replace(row, status=Status.UNCHANGED).is_incomparable


def test_a_failed_a_missing_and_a_regressed_case_are_red() -> None:
    """These three, and no other."""
    assert {Status.FAILED, Status.MISSING, Status.REGRESSED} == RED


def test_a_case_without_stored_evidence_has_an_empty_side_before() -> None:
    """A reader finds two sides."""
    after = SideEvidence()
    assert CaseEvidence(case_id="a/x", after=after).sides == (SideEvidence(), after)


def test_the_pairs_of_a_case_are_those_that_its_base_ended() -> None:
    """Of the third pair head's trial is missing; a trial alone is no pair."""
    arms = [trial for index in (1, 2, 3) for trial in make_pair("a/x", index)]
    (alone,) = make_trials("a/x", [{LATENCY: 0.01}])
    assert make_run(alone, *arms[:-1]).pair_counts == {"a/x": 3}


@pytest.mark.parametrize(
    ("device", "name", "title"),
    [("GPU-1", "GPU-1", "GPU-1 on host"), ("", "host:0-3", "host:0-3")],
)
def test_a_place_is_named_by_its_card_or_its_cores(device: str, name: str, title: str) -> None:
    """A card's UUID is its own; cores are those of a host."""
    place = Place(host="host", device=device, cores="0-3")
    assert (place.name, place.title) == (name, title)
