"""``compare`` and ``merge`` of incomplete runs are never green, and report why."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gate.cli import main
from gate.files.codec import RUN, VERDICT
from gate.records.cases import Case
from gate.records.run import Run, Shard
from gate.records.verdict import Outcome, Reason
from tests.unit.cli.conftest import CASE_ID, CONFIG, Sandbox, make_run

Compare = Callable[..., tuple[int, str]]
BASE_CASE = Case(id="actor/training-float32-smoke-default", model="actor", definition="d1")


@pytest.fixture
def compare(project: Path, capsys: pytest.CaptureFixture[str]) -> Compare:
    """Compare a run with the old one; the exit code, and all output."""

    def play(run: Run, *options: str, as_baseline: bool = False) -> tuple[int, str]:
        RUN.save(run, project / "new.json")
        runs = ("new.json", "old.json") if as_baseline else ("old.json", "new.json")
        code = main(["compare", *runs, "--out", "told", *options])
        printed = capsys.readouterr()
        return code, " ".join((printed.out + printed.err).split())

    return play


def test_a_run_that_was_stopped_is_incomplete(compare: Compare, project: Path) -> None:
    """All its trials are there and none is worse; the output names --resume."""
    code, output = compare(replace(make_run(), finished=False))
    assert code == 12
    assert "INCOMPLETE The run was stopped before its end." in output
    assert "--resume" in output
    assert VERDICT.load(project / "told" / "verdict.json").outcome is Outcome.INCOMPLETE


def test_a_stopped_run_reports_its_regression_too(compare: Compare) -> None:
    """The trials that it has are judged."""
    code, output = compare(replace(make_run(breaks=1.0), finished=False))
    assert code == 12
    assert "The run was stopped before its end; 1 case worse" in output


def test_a_case_with_fewer_trials_than_planned_is_named(compare: Compare, project: Path) -> None:
    """Three of five trials, without a failure that explains it."""
    run = make_run()
    code, output = compare(replace(run, trials=run.trials[:3]))
    assert code == 12
    assert "1 of 1 case came back with fewer trials than planned." in output
    assert "3 of 5 planned trials came back" in output
    assert (
        "next Measure again what came back with fewer trials than planned, or with none: compile-gate check"
        in output
    )
    assert "log of each failed case" not in output
    rows = VERDICT.load(project / "told" / "verdict.json").comparisons
    assert [row.case_id for row in rows if row.reason is Reason.NOT_RUN] == [CASE_ID]


def test_a_case_whose_trials_measured_nothing_is_missing(compare: Compare) -> None:
    """It has no baseline either, so no metric of it would have a row."""
    run = make_run()
    empty = [replace(trial, case_id=BASE_CASE.id, samples={}) for trial in run.trials]
    code, output = compare(replace(run, cases=(*run.cases, BASE_CASE), trials=(*run.trials, *empty)))
    assert code == 12
    assert "its trials came back and measured nothing" in output


def test_more_trials_than_planned_are_welcome(compare: Compare) -> None:
    """Suspects get more trials."""
    assert compare(replace(make_run(), trials_planned=2))[0] == 0


@pytest.mark.parametrize(
    ("change", "key", "problem"),
    [
        ({"finished": False}, "finished", "the run was stopped before its end"),
        ({"trials": make_run().trials[:2]}, "trials", f"{CASE_ID} (2 of 5 trials)"),
        ({"cases": (*make_run().cases, BASE_CASE)}, "trials", f"{BASE_CASE.id} (0 of 5 trials)"),
    ],
)
def test_a_run_that_is_not_whole_is_no_baseline(
    compare: Compare, change: dict[str, object], key: str, problem: str
) -> None:
    """The error names file, key and problem."""
    code, output = compare(replace(make_run(), **change), as_baseline=True)  # type: ignore[arg-type] # the test's
    assert code == 2
    assert f"new.json: {key}: " in output
    assert problem in output


def test_merge_names_what_keeps_the_whole_from_passing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The runs are merged, with a note on the later verdict."""
    run = make_run()
    RUN.save(replace(run, finished=False, trials=run.trials[:3]), project / "shard.json")
    assert main(["merge", "shard.json", "--out", "joined"]) == 0
    output = capsys.readouterr().out
    assert "A run was stopped before its end: judging it is INCOMPLETE." in output
    assert "1 case came back with fewer trials than planned: judging it is INCOMPLETE." in output


def test_merge_of_whole_runs_prints_no_more(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints one line if the division is known."""
    shard = Shard(number=1, of=1, cases=1)
    RUN.save(replace(make_run(), shard=shard), project / "shard.json")
    assert main(["merge", "shard.json", "--out", "joined"]) == 0
    assert capsys.readouterr().out.splitlines() == ["Wrote joined/run.json: 1 case, 5 trials."]


@pytest.mark.parametrize(
    ("out", "problem"),
    [
        ("site", "site has files in it that compile-gate did not write"),
        ("baselines", "baselines is the same directory as `baselines`"),
    ],
)
def test_merge_writes_to_no_directory_of_others(
    project: Path, out: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report there stays, and a run never comes to lie among the baselines."""
    (project / out).mkdir(exist_ok=True)
    (project / out / "report.md").write_text("mine", encoding="utf-8")
    assert main(["merge", "old.json", "--out", out]) == 2
    assert problem in capsys.readouterr().err
    assert [path.name for path in (project / out).iterdir()] == ["report.md"]


def test_merge_warns_that_a_lost_shard_would_not_show(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs without shards and selection do not show what was divided."""
    assert main(["merge", str(project / "old.json"), "--out", "joined"]) == 0
    assert "note  A missing shard would not be noticed" in capsys.readouterr().out


def test_merge_refuses_to_go_on_without_a_shard(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of two is not the whole; with a selection its missing cases are reported."""
    RUN.save(replace(make_run(), shard=Shard(number=1, of=2, cases=2)), project / "shard.json")
    assert main(["merge", "shard.json", "--out", "joined"]) == 2
    assert "shard 2 of 2 is missing" in capsys.readouterr().err
    assert not (project / "joined").exists()


@pytest.mark.parametrize(
    "shard", [{"number": 1, "of": 10**12}, {"number": 1, "of": 0}, {"number": 0, "of": 2}]
)
def test_a_shard_that_cannot_be_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], shard: dict[str, int]
) -> None:
    """Counting to an absurd number of shards would take all memory."""
    RUN.save(replace(make_run(), shard=Shard(cases=1, **shard)), project / "shard.json")
    assert main(["merge", "shard.json", "--out", "joined"]) == 2
    assert "expected a whole number from 1 to 999" in capsys.readouterr().err


def test_two_runs_have_no_baselines_to_record(compare: Compare, project: Path) -> None:
    """Two trials are too few to know the noise of the other run, which is no baseline."""
    old = make_run()
    RUN.save(replace(old, trials=old.trials[:2], trials_planned=2), project / "old.json")
    _, output = compare(make_run())
    assert "too few trials" in output
    assert "baseline refresh" not in output


def test_a_run_that_is_compared_with_itself_is_reported(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a slip in a script it would pass for ever."""
    assert main(["compare", "old.json", "old.json"]) == 0
    assert "note: old.json is compared with itself" in capsys.readouterr().err
    assert project.exists()


def test_comparing_one_shard_is_noted(compare: Compare) -> None:
    """Other shards' cases are not judged."""
    code, output = compare(replace(make_run(), shard=Shard(number=1, of=2, cases=7)))
    assert code == 0
    assert "note This is shard 1 of 2: 6 of 7 cases are not part of it." in output


def test_quarantine_of_all_is_not_reported_as_a_lack_of_baselines(compare: Compare, project: Path) -> None:
    """New baselines would change nothing, so it explains how to leave quarantine."""
    day = (datetime.now(UTC) + timedelta(days=9)).date().isoformat()
    entry = f"quarantine:\n  - {{case: '*', owner: ada, reason: two speeds, expires: {day}}}\n"
    (project / "gate.yml").write_text(CONFIG + entry, encoding="utf-8")
    code, output = compare(make_run(breaks=1.0))
    assert code == 3
    assert "1 case measured, none judged: 1 is quarantined." in output
    assert "1 case is quarantined: fix what is unstable and remove it from `quarantine`" in output
    assert "Record baselines" not in output


@pytest.mark.parametrize("name", ["gate.yml", "baselines/accepted.yml"])
def test_nothing_is_set_aside_for_good(compare: Compare, project: Path, name: str) -> None:
    """Entries written by hand may last as long as those of `baseline accept`."""
    entry = "{case: '*', metric: graph_breaks, reason: r, expires: 9999-12-31, "
    texts = {
        "gate.yml": f"{CONFIG}quarantine:\n  - {entry}owner: ada}}\n",
        "baselines/accepted.yml": f"version: 1\naccepted:\n  - {entry}allowance: 1}}\n",
    }
    (project / "baselines").mkdir()
    (project / name).write_text(texts[name], encoding="utf-8")
    code, output = compare(make_run())
    assert code == 2
    assert f"{name}:" in output
    assert "].expires: expected a day at most 366 days from now, by the clock of this machine" in output
    assert ", got '9999-12-31'" in output


@pytest.mark.parametrize(
    ("asked", "code", "headline"),
    [
        (
            {"selection": "actor"},
            12,
            "1 of 2 cases could not be measured: actor/gone. Missing: no trial of it",
        ),
        ({"selection": "actor/training*"}, 0, "in 1 case judged; 1 case no longer checked."),
        (
            {"selection": "actor", "shard": Shard(number=1, of=2, cases=2)},
            0,
            "in 1 case judged; 1 case no longer checked.",
        ),
    ],
)
def test_a_case_of_the_other_run_that_is_gone_is_missing_where_it_was_selected(
    compare: Compare, project: Path, asked: dict[str, Any], code: int, headline: str
) -> None:
    """Removed or renamed it would pass; a smaller selection or a shard does not expect it."""
    old = RUN.load(project / "old.json")
    more = replace(old.cases[0], id="actor/gone")
    trials = (*old.trials, *(replace(trial, case_id=more.id) for trial in old.trials))
    RUN.save(replace(old, cases=(*old.cases, more), trials=trials), project / "old.json")
    ended, output = compare(replace(old, **asked))
    assert ended == code
    assert headline in output.replace(" why ", " ")
    assert "the base has 1 case that head does not have: actor/gone." in output


def test_the_last_verdict_and_its_worst_case_need_no_name(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`out` is gate.yml's, also from a subdirectory."""
    assert sandbox.run("compare", "old.json", "slow.json", "--out", "out", "--quiet") == 10
    below = sandbox.top / "zoo" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    sandbox.read()
    assert sandbox.run("report") == 0
    assert sandbox.read().out.startswith("REGRESSION")
    for named in ((), (str(sandbox.top / "out"),), (str(sandbox.top / "out" / "verdict.json"),)):
        assert sandbox.run("explain", *named) == 0
        assert sandbox.read().out.startswith(CASE_ID)


def test_compared_baselines_are_named_in_what_to_do_next(sandbox: Sandbox) -> None:
    """Those of gate.yml need no option."""
    shutil.copytree("baselines", "stored")
    for directory, named in (("stored", {"--baselines": "stored"}), ("baselines", {})):
        sandbox.run("compare", directory, "slow.json", "--out", "out")
        assert VERDICT.load(Path("out", "verdict.json")).options == named
