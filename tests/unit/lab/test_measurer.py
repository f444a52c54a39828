"""A check measured by the lab has the verdict of its rehearsal."""

from dataclasses import replace

import pytest

from gate.check.measurer import LaneMeasurer
from gate.check.procedure import Checked, CheckTerms, check_against_base
from gate.check.rehearsal import Rehearsal
from gate.check.schedule import Slot, want_whole
from gate.decide.evidence.baseline import make_baselines
from gate.decide.evidence.pairs import Pair, list_pairs
from gate.lab.trials.bench import Bench
from gate.lab.trials.opening import Lab
from gate.lab.trials.runs import describe_base, make_measurer, make_run
from gate.metrics import SPECS
from gate.records.cases import Case, Metric, Policy
from gate.records.run import Baseline, Provenance, Run, Trial

from .conftest import make_case, make_lab

STORED = 3
POLICY = Policy(thresholds={metric: spec.threshold for metric, spec in SPECS.items()})


@pytest.fixture
def lab(bench: Bench) -> Lab:
    return make_lab(bench)


def make_quiet(lab: Lab) -> LaneMeasurer:
    return make_measurer(lab, lambda _: None)


def begin(lab: Lab, *cases: Case) -> Run:
    """The first trial of each case, and a base with the same cases."""
    run = make_run(lab, cases, "all", 1)
    run = replace(run, base=describe_base(lab, "main", Provenance(), cases))
    return make_quiet(lab).add_trials(run, want_whole(case.id for case in cases), 1)


def store(run: Run, case: Case, factor: float) -> tuple[Baseline, ...]:
    """Store the trials, as often as a baseline needs, with other latencies of this case."""

    def change(trial: Trial) -> Trial:
        latencies = tuple(factor * latency for latency in trial.samples[Metric.COMPILED_LATENCY])
        return replace(trial, samples={**trial.samples, Metric.COMPILED_LATENCY: latencies})

    changed = [change(trial) if trial.case_id == case.id else trial for trial in run.trials]
    trials = [replace(trial, index=index) for index in range(1, STORED + 1) for trial in changed]
    return make_baselines(replace(run, trials=tuple(trials)), Provenance())


def rehearse(measured: Run, begun: Run, terms: CheckTerms) -> Checked:
    """Check the same run again, with its recorded slots instead of processes."""
    pairs = list_pairs(measured.trials)

    def take_trial(slot: Slot) -> Trial:
        raise AssertionError(slot)

    def take_pair(slot: Slot) -> Pair:
        return pairs[slot.case.id][slot.index - 1]

    return check_against_base(Rehearsal(take_trial=take_trial, take_pair=take_pair), begun, terms)


def test_rehearsal_and_lab_give_the_same_verdict(lab: Lab) -> None:
    """A case that looks 50 % slower is cleared by two pairs, measured and replayed."""
    slow, same = (make_case("turns", name, roles=["cold", "rounds"]) for name in ("slow", "same"))
    begun = begin(lab, slow, same)
    terms = CheckTerms(baselines=store(begun, slow, 1 / 1.5), policy=POLICY)
    live = check_against_base(make_quiet(lab), begun, terms)
    again = rehearse(live.run, begun, terms)
    assert len(list_pairs(live.run.trials)[slow.id]) == 2
    assert again.verdict.comparisons == live.verdict.comparisons
    assert again.verdict.outcome is live.verdict.outcome
    asked = [[(row.case_id, row.index, row.arm) for row in checked.run.trials] for checked in (live, again)]
    assert sorted(asked[0]) == sorted(asked[1])


def test_run_between_its_pairs_is_not_finished(lab: Lab) -> None:
    """A kill before or between the pairs leaves an unfinished run, though all trials are there."""
    case = make_case("turns", roles=["cold", "rounds"])
    begun = begin(lab, case)
    assert begun.finished
    saved: list[Run] = []
    watched = make_measurer(lab, saved.append)
    terms = CheckTerms(baselines=store(begun, case, 1 / 1.5), policy=POLICY)
    checked = check_against_base(watched, begun, terms)
    assert [(run.finished, len(run.trials)) for run in saved] == [
        (False, 1),
        *((False, n) for n in (3, 5)),
    ]
    assert checked.run.finished
