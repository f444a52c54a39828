"""A run's time limits if gate.yml sets none."""

from dataclasses import replace

import pytest

from gate.project.config import fit_limits, make_config
from gate.project.entries import GateFile
from gate.records.cases import Case

CONFIG = make_config(GateFile(version=1))


def make_case(expected_s: float) -> Case:
    return Case(id=f"m/{expected_s:g}", model="m", expected_s=expected_s)


@pytest.mark.parametrize(
    ("expected", "trials", "timeout_s", "budget_s", "pair_budget_s"),
    [
        ([40.0, 75.0], 1, 300, 330, 600),  # as gate.yml's defaults: four times 75 is the limit, not beyond it
        ([200.0], 1, 800, 400, 800),
        ([100.0, 200.0], 2, 800, 800, 800),  # two trials of each, and a third of the slowest
        ([], 1, 300, 330, 600),
    ],
)
def test_slow_cases_get_the_time_that_they_are_expected_to_take(
    expected: list[float], trials: int, timeout_s: float, budget_s: float, pair_budget_s: float
) -> None:
    """Limits of small cases would end a slow one as hung, and leave no time for its second pair."""
    fitted = fit_limits(replace(CONFIG, trials=trials), [make_case(expected_s) for expected_s in expected])
    assert (fitted.trial_timeout_s, fitted.budget_s, fitted.pair_budget_s) == (
        timeout_s,
        budget_s,
        pair_budget_s,
    )


def test_what_somebody_has_set_stays() -> None:
    """However slow the cases are."""
    keys = ("trial_timeout_s", "budget_s", "pair_budget_s")
    config = replace(CONFIG, origins=dict.fromkeys(keys, "gate.yml:3"))
    assert fit_limits(config, [make_case(5000.0)]) == config
