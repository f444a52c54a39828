"""Cases of a target whose code is the base's, and the note on them."""

from dataclasses import replace
from itertools import chain

import pytest

from gate.decide.evidence.compiles import find_unchanged_code
from gate.decide.explain.notes import note_unchanged_code
from gate.records.cases import Case
from gate.records.run import CodeIdentity, FailureKind, Pairing, Run
from gate.records.verdict import PairBase
from gate.report.words.facts import write_note
from tests.hosts import CPU_HOST
from tests.make import make_failure, make_pair, make_run

TARGET = replace(CPU_HOST, device_kind="target", device_model="cuda:sm_90")
CASES = tuple(Case(id=f"{name}/x", model=name) for name in ("norm", "mlp", "conv"))


def run_target(*pairs: tuple[str, str, str]) -> Run:
    """A finished run of a target: for each pair the model and the digests of base and head."""
    arms = [[{"identity": CodeIdentity(digest=digest)} for digest in digests] for _, *digests in pairs]
    trials = [make_pair(f"{model}/x", 1, *of) for (model, *_), of in zip(pairs, arms, strict=True)]
    return make_run(*chain.from_iterable(trials), environment=TARGET)


def describe_unchanged(run: Run) -> list[str]:
    return [write_note(fact, PairBase(label="main")) for fact in note_unchanged_code(run)]


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (
            run_target(("norm", "a", "a"), ("mlp", "b", "b")),
            (
                "The generated code is that of the base in 2 cases, all that were compiled:"
                " a GPU would run the same. `plan --after` then leaves nothing to measure."
            ),
        ),
        (
            run_target(("norm", "a", "c"), ("mlp", "b", "b")),
            (
                "The generated code is that of the base in 1 of 2 cases, and not in norm/x."
                " `plan --after` leaves these for a GPU to measure."
            ),
        ),
    ],
)
def test_a_report_says_whose_code_changed(run: Run, sentence: str) -> None:
    """A note names cases whose code changed although no count got worse."""
    assert describe_unchanged(run) == [sentence]


def test_what_is_not_shown_to_be_the_same_is_not() -> None:
    """It may differ with an unknown digest, a failure, or a pair that differs or has other code."""
    run = run_target(("norm", "", ""), ("mlp", "b", "b"), ("conv", "c", "c"))
    other = replace(run.trials[2], index=2, identity=CodeIdentity(digest="d"))
    alone = replace(run.trials[4], pairing=Pairing.ALONE, identity=CodeIdentity(digest="e"))
    assert find_unchanged_code(replace(run, trials=(*run.trials, alone))) == {"mlp/x", "conv/x"}
    assert find_unchanged_code(replace(run, trials=(*run.trials, other))) == {"conv/x"}
    both = [replace(trial, index=2, identity=CodeIdentity(digest="d")) for trial in run.trials[2:4]]
    assert find_unchanged_code(replace(run, trials=(*run.trials, *both))) == {"conv/x"}
    failure = make_failure("conv/x", "", trial=2, kind=FailureKind.ERROR)
    assert find_unchanged_code(replace(run, failures=(failure,))) == {"mlp/x"}


def test_only_a_whole_run_of_a_target_says_so() -> None:
    """The note is only for a finished run of a target."""
    run = run_target(("norm", "a", "a"))
    assert describe_unchanged(replace(run, environment=CPU_HOST)) == []
    assert describe_unchanged(replace(run, finished=False)) == []
