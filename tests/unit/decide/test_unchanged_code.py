"""Which cases of a target have the base's code, and that a report says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gate.decide.evidence.case_evidence import find_unchanged_code, note_unchanged_code
from gate.records import (
    Case,
    CaseFailure,
    CodeIdentity,
    FailureKind,
    PairBase,
    Pairing,
    Provenance,
    Run,
    Trial,
)
from gate.report.words.notes import write_note
from tests.hosts import CPU_HOST
from tests.told import make_raised

TARGET = replace(CPU_HOST, device_kind="target", device_model="cuda:sm_90")
CASES = tuple(Case(id=f"{name}/x", model=name) for name in ("norm", "mlp", "conv"))


def make_run(*pairs: tuple[str, str, str]) -> Run:
    """A finished run of a target: of each pair the case's model, and the digests of base and head."""
    trials = [
        Trial(
            case_id=f"{model}/x",
            index=1,
            arm=arm,
            pairing=Pairing.TURNS,
            identity=CodeIdentity(digest=digest),
        )
        for model, *digests in pairs
        for arm, digest in zip(("base", "head"), digests, strict=True)
    ]
    named = {model for model, *_ in pairs}
    cases = tuple(case for case in CASES if case.model in named)
    return Run(cases=cases, environment=TARGET, provenance=Provenance(), trials=tuple(trials), finished=True)


def tell(run: Run) -> list[str]:
    return [write_note(fact, PairBase(label="main")) for fact in note_unchanged_code(run)]


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (
            make_run(("norm", "a", "a"), ("mlp", "b", "b")),
            (
                "The generated code is that of the base in 2 cases, all that were compiled:"
                " a GPU would run the same. `plan --after` then leaves nothing to measure."
            ),
        ),
        (
            make_run(("norm", "a", "c"), ("mlp", "b", "b")),
            (
                "The generated code is that of the base in 1 of 2 cases, and not in norm/x."
                " `plan --after` leaves these for a GPU to measure."
            ),
        ),
    ],
)
def test_a_report_says_whose_code_changed(run: Run, told: str) -> None:
    """Nothing got worse by any count, and the code may be another all the same."""
    assert tell(run) == [told]


def test_what_is_not_shown_to_be_the_same_is_not() -> None:
    """An identity that nobody knows, another pair that says otherwise, and a case that failed."""
    run = make_run(("norm", "", ""), ("mlp", "b", "b"), ("conv", "c", "c"))
    other = replace(run.trials[2], index=2, identity=CodeIdentity(digest="d"))
    alone = replace(run.trials[4], pairing=Pairing.ALONE, identity=CodeIdentity(digest="e"))
    assert find_unchanged_code(replace(run, trials=(*run.trials, alone))) == {"mlp/x", "conv/x"}
    assert find_unchanged_code(replace(run, trials=(*run.trials, other))) == {"conv/x"}
    failure = CaseFailure(
        case_id="conv/x", trial=2, kind=FailureKind.ERROR, stage="compile", fact=make_raised("")
    )
    assert find_unchanged_code(replace(run, failures=(failure,))) == {"mlp/x"}


def test_only_a_whole_run_of_a_target_says_so() -> None:
    """On a device the same code is told case by case; a run that was stopped has not seen all."""
    run = make_run(("norm", "a", "a"))
    assert tell(replace(run, environment=CPU_HOST)) == []
    assert tell(replace(run, finished=False)) == []
