"""Acceptances and baselines that match no case are reported."""

from gate.decide.explain.notes import note_idle
from gate.records.cases import Case, Metric, Policy
from gate.records.codes import Code
from tests.make import make_acceptance, make_baseline

CASE = Case(id="actor/x", model="actor", factory="m:f", definition="d1")


def test_an_acceptance_that_fits_nothing_is_reported() -> None:
    """Its author believes that it counts; its case is gone."""
    entries = tuple(make_acceptance(Metric.DRIFT, 1.0, case=pattern) for pattern in ("actor/*", "acter/*"))
    (note,) = note_idle(Policy(thresholds={}, acceptances=entries), [CASE])
    assert (note.code, note.metrics, note.name("pattern")) == (
        Code.UNUSED_ACCEPTANCE,
        (Metric.DRIFT,),
        "acter/*",
    )


def test_a_removed_cases_baselines_are_named() -> None:
    """Only its baselines show that a case was renamed or removed."""
    stored = [make_baseline(case_id, {}) for case_id in (CASE.id, "actor/gone", "actor/gone")]
    (note,) = note_idle(Policy(thresholds={}), [CASE], stored)
    assert (note.code, note.cases, note.numbers) == (Code.BASELINES_IDLE, ("actor/gone",), {"cases": 1})


def test_what_matches_cases_is_not_reported() -> None:
    """An acceptance and a baseline of a case that is there."""
    entries = (make_acceptance(Metric.DRIFT, 1.0, case="actor/*"),)
    assert note_idle(Policy(thresholds={}, acceptances=entries), [CASE], [make_baseline(CASE.id, {})]) == ()
