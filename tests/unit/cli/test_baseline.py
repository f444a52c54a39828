"""What `compile-gate baseline` records, accepts and prints."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gate.cli import lanes
from gate.files.codec import RUN
from gate.lab.host.fitness import HostSample
from gate.lab.trials import trials
from gate.records.cases import Metric
from gate.records.run import Extent
from tests.unit.cli.conftest import CASE_ID, Sandbox, make_run

EXPIRES = (datetime.now(UTC) + timedelta(days=9)).date().isoformat()
ACCEPT = ("baseline", "accept", CASE_ID, "graph_breaks", "--allow", "2", "--reason", "a print")


def test_a_refresh_names_what_is_accepted_on_top_of_the_new_values(sandbox: Sandbox) -> None:
    """An entry of accepted.yml for a recorded metric allows its amount once more."""
    assert sandbox.run(*ACCEPT, "--expires", EXPIRES) == 0
    assert sandbox.run("baseline", "refresh", "--quiet", "--reason", "again") == 0
    assert f"accepted.yml allows 2 more of {CASE_ID} graph_breaks." in sandbox.read().out


def test_a_machine_that_others_use_records_nothing(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their noise would be taken for the case's; with --anyway the trials are marked."""
    sandbox.begin()
    before = {path: path.read_bytes() for path in (sandbox.top / "baselines").rglob("*.json")}
    look = itertools.count()
    crowd = lambda: HostSample(at_s=(at := float(next(look))), cores=2, busy_s=2.0 * at)  # noqa: E731
    monkeypatch.setattr(trials, "read_host", crowd)
    monkeypatch.setattr(trials, "read_crowd", lambda: ("chromium (pid 123, 95 %)",))
    refresh = ("baseline", "refresh", "--quiet", "--reason", "again")
    assert sandbox.run(*refresh) == 4
    errors = sandbox.read().err
    assert f"compile-gate: fewer than 3 undisturbed trials came back of {CASE_ID}." in errors
    assert (
        "during 10 of 10 trials: other programs kept 2.0 of 2 cores busy: chromium (pid 123, 95 %)." in errors
    )
    assert "--anyway --resume takes what there is" in errors
    assert before == {path: path.read_bytes() for path in (sandbox.top / "baselines").rglob("*.json")}
    monkeypatch.setattr(lanes, "find_release", lambda _: "2.13.0")
    monkeypatch.setattr(lanes, "open_lab", lambda *_: pytest.fail("it warms up for nothing"))
    assert sandbox.run(*refresh, "--anyway", "--resume") == 0
    sandbox.read()
    assert sandbox.run("baseline", "show") == 0
    assert "10, 10 disturbed" in sandbox.read().out


def test_a_refresh_goes_on_until_three_trials_were_undisturbed(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other programs disturb three of five trials, repeats included: a sixth gives the third."""
    sandbox.begin()
    look = itertools.count()

    def read_host() -> HostSample:
        at_s = float(next(look))
        return HostSample(at_s=at_s, cores=2, busy_s=2.0 * min(at_s, 9.0))  # two looks a trial, two repeats

    monkeypatch.setattr(trials, "read_host", read_host)
    monkeypatch.setattr(trials, "read_crowd", tuple)
    assert sandbox.run("baseline", "refresh", "--quiet", "--reason", "again") == 0
    run = RUN.load(sandbox.top / "out" / "run.json")
    assert [bool(trial.conditions.disturbances) for trial in run.trials] == [True] * 3 + [False] * 3


REFRESH = ("baseline", "refresh", "--quiet", "--reason", "again", "--resume")


def test_a_resumed_refresh_measures_anew_what_is_no_whole_trial(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of five trials one is a check's without drift: a baseline has five whole ones."""
    sandbox.begin()
    monkeypatch.setattr(lanes, "find_release", lambda _: "2.13.0")
    assert sandbox.run("measure", "--quiet", "--trials", "5") == 0
    saved = sandbox.top / "out" / "run.json"
    run = RUN.load(saved)
    RUN.save(replace(run, trials=(*run.trials[:4], replace(run.trials[4], extent=Extent.COLD))), saved)
    assert sandbox.run(*REFRESH) == 0
    assert [trial.extent for trial in RUN.load(saved).trials] == [Extent.WHOLE] * 5


def test_a_resumed_refresh_of_another_torch_is_refused(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials from before the upgrade would be recorded as if they came after it."""
    sandbox.begin()
    monkeypatch.setattr(lanes, "find_release", lambda _: "2.13.0")
    assert sandbox.run("measure", "--quiet", "--trials", "5") == 0
    saved = sandbox.top / "out" / "run.json"
    run = RUN.load(saved)
    RUN.save(replace(run, environment=replace(run.environment, torch="2.12.0")), saved)
    assert sandbox.run(*REFRESH) == 2
    assert "the saved run cannot be continued: torch 2.12.0 -> 2.13.0" in sandbox.read().err


def test_what_never_decides_cannot_be_accepted(sandbox: Sandbox) -> None:
    """Its acceptance would have no effect."""
    accept = ("baseline", "accept", CASE_ID, "guards", "--allow", "2", "--reason", "r", "--expires", EXPIRES)
    assert sandbox.run(*accept) == 2
    assert "METRIC: 'guards' is no metric that decides" in sandbox.read().err


def test_what_is_beyond_a_limit_of_ones_own_can_be_accepted_whatever_its_role(sandbox: Sandbox) -> None:
    """The command that the report prints makes the check green."""
    with (sandbox.top / "gate.yml").open("a", encoding="utf-8") as file:
        file.write("limits: [{metric: guards, at_most: 5}]\n")
    run = make_run()
    guarded = [replace(trial, samples={**trial.samples, Metric.GUARDS: (7.0,)}) for trial in run.trials]
    RUN.save(replace(run, trials=tuple(guarded)), sandbox.top / "old.json")
    compare = ("compare", "old.json", "old.json")
    assert sandbox.run(*compare) == 10
    accept = ("baseline", "accept", CASE_ID, "guards", "--allow", "2", "--reason", "r")
    assert sandbox.run(*accept, "--expires", EXPIRES) == 0
    assert sandbox.run(*compare) == 0


def test_an_acceptance_that_costs_comments_is_noted(sandbox: Sandbox) -> None:
    """The first is appended; the second replaces it, so the file is written anew."""
    assert sandbox.run(*ACCEPT, "--expires", EXPIRES) == 0
    assert "written anew" not in sandbox.read().err
    with (sandbox.top / "baselines" / "accepted.yml").open("a", encoding="utf-8") as file:
        file.write("# until the release\n")
    assert sandbox.run(*ACCEPT, "--expires", EXPIRES) == 0
    assert "was rewritten: its entries are kept, its comments are lost" in sandbox.read().err
