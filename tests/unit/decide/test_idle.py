"""Acceptances and baselines that match no case are reported."""

from dataclasses import replace

from gate.decide.explain.notes import note_idle
from gate.records.cases import Acceptance, Case, Metric, Policy
from gate.records.codes import Code
from tests.make import make_acceptance, make_baseline

CASE = Case(id="actor/x", model="actor", factory="m:f", definition="d1")


def test_an_acceptance_that_fits_nothing_is_reported() -> None:
    """Its author believes that it counts; its case is gone. One that fits some of the cases is not idle."""
    entries = tuple(make_acceptance(Metric.DRIFT, 1.0, case=pattern) for pattern in ("actor/*", "acter/*"))
    (note,) = note_idle(Policy(thresholds={}, acceptances=entries), [CASE, replace(CASE, id="mlp/x")])
    assert (note.code, note.metrics, note.name("pattern")) == (
        Code.UNUSED_ACCEPTANCE,
        (Metric.DRIFT,),
        "acter/*",
    )


def test_a_removed_cases_baselines_are_named() -> None:
    """Only its baselines show that a case was renamed or removed."""
    gone = [f"actor/gone{number}" for number in range(8)]
    stored = [make_baseline(case_id, {}) for case_id in (CASE.id, *reversed(gone), gone[0])]
    (note,) = note_idle(Policy(thresholds={}), [CASE], stored)
    assert (note.code, note.cases, note.numbers) == (Code.BASELINES_IDLE, tuple(gone), {"cases": 8})


def test_what_matches_cases_is_not_reported() -> None:
    """An acceptance and a baseline of a case that is there, and an acceptance of no metric."""
    of_all = Acceptance(case="acter/*", reason="first", author="ada", expires="2026-03-01", commit="c1")
    entries = (make_acceptance(Metric.DRIFT, 1.0, case="actor/*"), of_all)
    assert note_idle(Policy(thresholds={}, acceptances=entries), [CASE], [make_baseline(CASE.id, {})]) == ()
