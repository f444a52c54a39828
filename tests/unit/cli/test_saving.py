"""A run is saved as it grows: how often, and what is on disk when the command ends."""

import resource
import shutil
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gate.cli import lanes
from gate.cli.lanes import open_measurer
from gate.cli.output import REPORT_FILES, RunSaver
from gate.cli.setup import Project
from gate.errors import MachineError
from gate.files.codec import RUN
from gate.lab.trials.opening import open_lab
from gate.lab.trials.runs import LaneTerms
from gate.project.config import make_default_config
from gate.records.cases import Case, Metric
from gate.records.events import Event, Noted, Progress, TrialFinished
from gate.records.facts import make_text
from gate.records.run import Run, Trial
from tests.make import make_run, make_trials
from tests.unit.cli.conftest import Sandbox

CASE = Case(id="mlp/inference", model="mlp", factory="a.b:c")


def grow(count: int) -> list[Run]:
    """An empty run, and its states after each trial."""
    trials = make_trials(CASE.id, [{Metric.COMPILED_LATENCY: 0.1}] * count)
    return [make_run(*trials[:end], cases=(CASE,), finished=False) for end in range(count + 1)]


class Clock:
    """Passes a second at each reading, and more when a test adds it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s


def test_a_run_is_on_disk_after_each_trial_that_took_longer_than_writing_it(tmp_path: Path) -> None:
    """Writing takes a second here, so it is written again after fifty."""
    path, clock = tmp_path / "run.json", Clock()
    saver = RunSaver(path=path, read_s=clock)
    for run in grow(3):
        saver.save(run)
        assert RUN.load(path) == run
        clock.now_s += 60


def test_a_run_that_takes_long_to_write_is_written_when_it_ends(tmp_path: Path) -> None:
    """Later trials are on disk after a pause, or when the command ends in any way."""
    path, clock = tmp_path / "run.json", Clock()
    saver, runs = RunSaver(path=path, read_s=clock), grow(4)
    for run in runs[:3]:
        saver.save(run)
        assert RUN.load(path) == runs[0]
    clock.now_s += 60
    saver.save(runs[3])
    assert RUN.load(path) == runs[3]
    saver.save(runs[4])
    saver.close()
    assert RUN.load(path) == runs[4]


def test_a_run_that_goes_on_is_made_only_where_it_is_written(tmp_path: Path) -> None:
    """Its trials are not copied after each of them: of these three, for the first write and for the last."""
    saver, runs, made = RunSaver(path=tmp_path / "run.json", read_s=Clock()), grow(3), list[Run]()

    def make_run() -> Run:
        made.append(runs.pop(0))
        return made[-1]

    for _ in range(3):
        saver.keep(make_run)
    assert len(made) == 1
    saver.close()
    assert len(made) == 2
    assert RUN.load(tmp_path / "run.json") == made[-1]


def test_a_slot_is_reported_once_it_is_on_disk(tmp_path: Path) -> None:
    """A kill takes no reported slot; a beginning is reported at once."""
    path, clock, events = tmp_path / "run.json", Clock(), list[Event]()
    saver, runs = RunSaver(path=path, read_s=clock, observe=events.append), grow(3)
    note = Noted(fact=make_text("a note"))

    def end_trial(run: Run) -> None:
        saver.save(run)
        saver.report(TrialFinished(trial=run.trials[-1], progress=Progress(done=1, total=3, left_s=0.0)))

    def list_reported() -> list[Trial]:
        return [event.trial for event in events if isinstance(event, TrialFinished)]

    end_trial(runs[1])
    assert list_reported() == list(RUN.load(path).trials) == list(runs[1].trials)
    end_trial(runs[2])
    saver.report(note)
    assert events[-1] == note
    assert list_reported() == list(RUN.load(path).trials) == list(runs[1].trials)
    clock.now_s += 60
    end_trial(runs[3])
    assert list_reported() == list(RUN.load(path).trials) == list(runs[3].trials)


def test_what_a_kill_leaves_shows_whether_the_run_was_finished(tmp_path: Path) -> None:
    """Going on and having ended are written at once."""
    path = tmp_path / "run.json"
    saver, (run,) = RunSaver(path=path, read_s=Clock()), grow(0)
    for is_finished in (False, True, False, True):
        saver.save(replace(run, finished=is_finished))
        assert RUN.load(path).finished is is_finished


def test_what_a_killed_writer_left_goes_with_the_next_run(tmp_path: Path) -> None:
    """A kill while run.json is written leaves a temporary file."""
    (tmp_path / ".run.json.0123456789ab.tmp").write_text("{", encoding="utf-8")
    RunSaver(path=tmp_path / "run.json").save(grow(0)[0])
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_second_writer_is_replaced_and_never_mixed(tmp_path: Path) -> None:
    """Of two processes with one out directory the file is the run of the last that saved."""
    path = tmp_path / "run.json"
    first, second = grow(4), [replace(run, selection="other") for run in grow(4)]
    clock = Clock()
    savers = RunSaver(path=path, read_s=clock), RunSaver(path=path, read_s=clock)
    for runs in zip(first, second, strict=True):
        clock.now_s += 200
        for saver, run in zip(savers, runs, strict=True):
            saver.save(run)
            assert RUN.load(path) == run


def test_a_full_disk_leaves_what_was_saved(tmp_path: Path) -> None:
    """The machine's error keeps the file, which is written again once there is room."""
    path, clock = tmp_path / "run.json", Clock()
    saver, runs = RunSaver(path=path, read_s=clock), grow(2)
    saver.save(runs[0])
    clock.now_s += 60
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))
    try:
        with pytest.raises(MachineError, match="cannot be written: File too large"):
            saver.save(runs[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    saver.close()
    assert RUN.load(path) == runs[1]


def test_all_is_on_disk_before_a_lane_is_closed(tmp_path: Path) -> None:
    """Removing checkouts and caches takes seconds, in which a stopped job is killed."""
    config, runs = replace(make_default_config(), out=tmp_path), grow(2)
    seen: list[Run] = []

    @contextmanager
    def open_lane(_: Project, terms: LaneTerms) -> Iterator[Any]:
        lab = Namespace(observe=terms.observe)
        yield Namespace(lab=lab, run=runs[0])
        seen.append(RUN.load(tmp_path / "run.json"))

    options = Namespace(quiet=True, config=None, reference_models=False, device=None)
    project = Project(config=config, registry=(), cases=())
    with open_measurer(options, project, open_lane, None) as (measurer, _):
        for run in runs:
            measurer.save(run)
    assert seen == [runs[2]]


@pytest.mark.parametrize("command", [("check", "--base", "HEAD"), ("ab", "HEAD")])
def test_a_verdict_is_on_disk_before_a_lane_is_closed(
    command: tuple[str, ...], sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A close that hangs withholds no verdict."""
    sandbox.begin()
    (sandbox.top / "actor.py").write_text("# changed\n", encoding="utf-8")
    written = list_at_closing(sandbox.top / "out", monkeypatch)
    assert sandbox.run(*command, "--quiet") == 0
    assert {path.name for path in written} >= set(REPORT_FILES)


def test_a_baseline_is_on_disk_before_a_lane_is_closed(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minutes of measuring are not lost with a lane that hangs by then."""
    shutil.rmtree(sandbox.top / "baselines")
    written = list_at_closing(sandbox.top / "baselines", monkeypatch)
    assert sandbox.run("baseline", "refresh", "--quiet") == 0
    assert [path.suffix for path in written if path.is_file()] == [".json"]


def list_at_closing(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Empty before; what lies below the directory then."""
    written: list[Path] = []

    @contextmanager
    def watch_closing(*terms: Any) -> Iterator[Any]:
        with open_lab(*terms) as lab:
            yield lab
            written.extend(directory.rglob("*"))

    monkeypatch.setattr(lanes, "open_lab", watch_closing)
    return written
