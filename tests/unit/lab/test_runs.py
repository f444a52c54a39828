"""Runs: in order, saved after each trial, stopped and continued, within the budget."""

import itertools
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gate.check.schedule import compute_trial_s, want_whole
from gate.decide.verdict import decide_verdict
from gate.errors import InterruptedRunError, MachineError, UsageError
from gate.files.codec import RUN
from gate.lab.host import device_lock
from gate.lab.host import gpu as gpu_module
from gate.lab.host.fitness import HostSample
from gate.lab.host.gpu import GpuState
from gate.lab.trials import opening as opening_module
from gate.lab.trials import trials as trials_module
from gate.lab.trials.bench import LabSettings
from gate.lab.trials.opening import Lab, open_lab
from gate.lab.trials.runs import make_measurer, make_run, measure_plan
from gate.lab.trials.same_run import resume_run
from gate.lab.workers.worker import JobOutcome, WorkerJob, run_worker
from gate.lab.workers.worker_environment import list_dropped_variables
from gate.records.cases import Case, DType, Metric, Policy
from gate.records.codes import Code
from gate.records.events import (
    CaseFailed,
    Event,
    Noted,
    PrimeFinished,
    PrimeStarted,
    TrialFinished,
    TrialStarted,
    WorkerPlanned,
)
from gate.records.facts import Disturbance
from gate.records.run import Arm, CaseFailure, CodeIdentity, Conditions, Extent, FailureKind, Run
from gate.records.verdict import Outcome
from gate.report.words.facts import describe_failure
from tests.words import describe_measuring

from .conftest import make_case


class Workshop:
    """Opens labs and keeps their events and saved runs."""

    def __init__(self, arm: Arm, settings: LabSettings) -> None:
        self.arm = arm
        self.settings = settings
        self.events: list[Event] = []
        self.saved: list[Run] = []

    @contextmanager
    def open(self, *cases: Case) -> Iterator[Lab]:
        with open_lab(self.arm, self.settings, self.events.append, cases) as lab:
            yield lab

    def run(self, *cases: Case, trials: int = 1, previous: Run | None = None) -> Run:
        with self.open() as lab:
            return self.measure(lab, cases, trials, previous)

    def measure(self, lab: Lab, cases: Sequence[Case], trials: int, previous: Run | None = None) -> Run:
        measurer = make_measurer(lab, self.saved.append)
        run = make_run(lab, cases, "all", trials)
        return measure_plan(measurer, resume_run(run, previous, self.events.append) if previous else run)

    def list_started(self) -> list[tuple[str, int]]:
        started = [event for event in self.events if isinstance(event, TrialStarted)]
        return [(event.case_id.partition("/")[0], event.index) for event in started]


@pytest.fixture
def workshop(arm: Arm, settings: LabSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A workshop whose locks and scratch directories are the test's own."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(device_lock, "make_lock_directory", lambda: tmp_path)
    return Workshop(arm, settings)


@pytest.fixture
def list_scratch(tmp_path: Path) -> Callable[[], list[str]]:
    """List the scratch directories in the temporary directory."""
    return lambda: sorted(path.name for path in (tmp_path / "temporary").iterdir())


def test_what_modules_take_to_import_is_not_charged_to_the_toolchain(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are imported half a second longer than the primer takes, and that is no time of the run."""
    ended = threading.Event()

    def run(job: WorkerJob) -> JobOutcome:
        outcome = run_worker(job)
        ended.set()
        return outcome

    def try_imports(*_: object) -> tuple[CaseFailure, ...]:
        assert ended.wait(60.0)
        time.sleep(0.5)
        return ()

    monkeypatch.setattr(opening_module, "run_worker", run)
    monkeypatch.setattr(opening_module, "try_imports", try_imports)
    begun = time.monotonic()
    with workshop.open(make_case()) as lab:
        assert 0.0 < lab.toolchain_s < time.monotonic() - begun - 0.5


def test_an_exclusive_gpu_is_the_primers_alone(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that tries an import would be refused by it, and its case called broken."""
    at_work, seen = set[int](), list[bool]()

    def run(job: WorkerJob) -> JobOutcome:
        at_work.add(1)
        outcome = run_worker(job)
        at_work.clear()
        return outcome

    def try_imports(*_: object) -> tuple[CaseFailure, ...]:
        seen.append(bool(at_work))
        return ()

    gpu = GpuState(index=0, uuid="GPU-1", exclusive=True)
    monkeypatch.setattr(opening_module, "run_worker", run)
    monkeypatch.setattr(opening_module, "try_imports", try_imports)
    monkeypatch.setattr(opening_module, "find_gpu", lambda *_: gpu)
    monkeypatch.setattr(opening_module, "choose_cores", lambda *_: ())
    with workshop.open(make_case()):
        assert seen == [False]


def test_measures_round_robin_and_saves(workshop: Workshop, list_scratch: Callable[[], list[str]]) -> None:
    """Trials go round-robin; the run is saved before the first, after each, and when it is finished."""
    run = workshop.run(make_case(name="a"), make_case(name="b"), trials=2)
    assert workshop.list_started() == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert [(len(saved.trials), saved.finished) for saved in workshop.saved] == [
        (0, False),
        (1, False),
        (2, False),
        (3, False),
        (4, False),
        (4, True),
    ]
    assert run == workshop.saved[-1]
    assert (run.environment.torch, run.selection, run.trials_planned) == ("2.13.0", "all", 2)
    assert 0.0 < run.toolchain_s < run.wall_s
    assert list_scratch() == []


def test_sends_progress(workshop: Workshop) -> None:
    """Priming, starts and ends come in order, with counts and a time left that ends at 0."""
    workshop.run(make_case(name="a"), make_case(name="b"))
    events = [event for event in workshop.events if not isinstance(event, Noted | WorkerPlanned)]
    expected = [PrimeStarted, PrimeFinished, TrialStarted, TrialFinished, TrialStarted, TrialFinished]
    assert expected == [type(event) for event in events]
    progress = [event.progress for event in events if isinstance(event, (TrialStarted, TrialFinished))]
    assert [(item.done, item.total) for item in progress] == [(0, 2), (1, 2), (1, 2), (2, 2)]
    assert progress[0].left_s == pytest.approx(2.0)  # nothing seen yet: what the two cases expect
    assert progress[-1].left_s == 0.0


def test_failure_of_one_case_leaves_the_others(workshop: Workshop) -> None:
    """A crashed case is recorded once and not tried again; the other case is measured in full."""
    run = workshop.run(make_case("segfault", name="a"), make_case(name="b"), trials=3)
    assert workshop.list_started() == [("a", 1), ("b", 1), ("b", 2), ("b", 3)]
    assert [(failure.kind, failure.trial) for failure in run.failures] == [(FailureKind.CRASH, 1)]
    assert [trial.case_id[0] for trial in run.trials] == ["b", "b", "b"]
    assert run.finished
    failed = next(event for event in workshop.events if isinstance(event, CaseFailed))
    assert failed.progress is not None
    assert (failed.progress.done, failed.progress.total) == (1, 4)


def test_failure_next_to_its_trial(workshop: Workshop) -> None:
    """A trial that failed half-way is in the run with its failure, counts once, and is tried again."""
    case, other = make_case("partial", name="a", roles=["warm"]), make_case(name="b")
    first = workshop.run(case, other, trials=2)
    assert [(trial.case_id[0], trial.index) for trial in first.trials] == [("a", 1), ("b", 1), ("b", 2)]
    assert [(failure.case_id[0], failure.trial) for failure in first.failures] == [("a", 1)]
    ended = [event.progress for event in workshop.events if isinstance(event, (CaseFailed, TrialFinished))]
    assert [(item.done, item.total) for item in ended if item] == [(1, 3), (2, 3), (3, 3)]
    workshop.events.clear()
    again = workshop.run(case, other, trials=2, previous=first)
    assert workshop.list_started() == [("a", 1)]
    assert len(again.failures) == 1


def test_interrupt_saves_and_leaves_nothing(
    workshop: Workshop, list_scratch: Callable[[], list[str]], count_left: Callable[[], int]
) -> None:
    """Ctrl-C keeps the finished trials, ends all processes and removes all scratch."""

    def interrupt(event: Event) -> None:
        workshop.events.append(event)
        if isinstance(event, TrialStarted) and event.case_id.startswith("b"):
            threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()

    cases = (make_case(name="a"), make_case("hang", name="b"))
    with (
        pytest.raises(InterruptedRunError) as caught,
        open_lab(workshop.arm, workshop.settings, interrupt) as lab,
    ):
        workshop.measure(lab, cases, 1)
    assert caught.value.what == "stopped after 1 of 2 trials"
    assert [trial.case_id[0] for trial in workshop.saved[-1].trials] == ["a"]
    assert not workshop.saved[-1].finished
    assert (list_scratch(), count_left()) == ([], 0)


def test_interrupt_while_priming(
    workshop: Workshop,
    list_scratch: Callable[[], list[str]],
    count_left: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C before the first trial is an interruption too, and leaves nothing."""
    monkeypatch.setenv("ACTING_PRIME", "hang")
    threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(InterruptedRunError), workshop.open():
        pytest.fail("priming was interrupted")
    assert (list_scratch(), count_left()) == ([], 0)


def test_resume_measures_only_what_is_missing(workshop: Workshop) -> None:
    """A resumed run repeats no finished trial, tries failures again, and keeps its time."""
    case, other = make_case(name="a"), make_case(name="b")
    first = workshop.run(case, other, trials=1)
    workshop.events.clear()
    run = workshop.run(case, other, trials=2, previous=replace(first, finished=False))
    assert workshop.list_started() == [("a", 2), ("b", 2)]
    assert [(trial.case_id[0], trial.index) for trial in run.trials] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("b", 2),
    ]
    assert run.wall_s > first.wall_s


def test_resume_elsewhere_is_refused(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of another environment is not continued, and nothing is overwritten."""
    first = workshop.run(make_case())
    workshop.saved.clear()
    monkeypatch.setenv("ACTING_VERSION", "2.14.1")
    with pytest.raises(UsageError, match=r"torch 2\.13\.0 -> 2\.14\.1"):
        workshop.run(make_case(), previous=first)
    assert workshop.saved == []


def test_resume_with_other_sampling_is_refused(workshop: Workshop) -> None:
    """Trials that sampled otherwise are not mixed with new ones."""
    first = workshop.run(make_case())
    sampling = replace(workshop.settings.sampling, block_s=0.5)
    workshop.settings = replace(workshop.settings, sampling=sampling)
    with pytest.raises(UsageError, match=r"sampling\.block_s 0\.01 -> 0\.5"):
        workshop.run(make_case(), previous=first)


LATENCY = {Metric.COMPILED_LATENCY}


def measure_open(workshop: Workshop, case: Case, code: str = "c0de") -> Run:
    """Measure a first trial, with this code, and a second one for an inconclusive latency."""
    with workshop.open() as lab:
        run = workshop.measure(lab, (case,), 1)
        trials = tuple(replace(trial, identity=CodeIdentity(digest=code)) for trial in run.trials)
        measurer = make_measurer(lab, workshop.saved.append)
        return measurer.add_trials(replace(run, trials=trials), {case.id: LATENCY}, 2)


def test_open_latency_is_measured_by_a_cold_process_alone(workshop: Workshop) -> None:
    """The further trial has its own conditions and start."""
    run = measure_open(workshop, make_case("code", how={"cold": "c0de"}, roles=["cold"]))
    assert [trial.extent for trial in run.trials] == [Extent.WHOLE, Extent.COLD]
    assert [trial.identity.digest for trial in run.trials] == ["c0de"] * 2
    assert all(trial.started and trial.overhead_s > 0 for trial in run.trials)
    assert (len(run.failures), run.finished) == (0, True)


def test_other_code_is_measured_whole(workshop: Workshop) -> None:
    """If a light trial compiles to other code, memory and drift are measured too."""
    run = measure_open(workshop, make_case("code", how={"cold": "c0de"}, roles=["cold"]), code="0ther")
    assert [(trial.index, trial.extent) for trial in run.trials] == [(1, Extent.WHOLE), (2, Extent.WHOLE)]
    assert all(Metric.PEAK_MEMORY in trial.samples for trial in run.trials)


def test_output_that_cannot_be_written_shows_at_once(workshop: Workshop) -> None:
    """When the run cannot be saved no trial is started."""

    def refuse(run: Run) -> None:
        raise MachineError(f"{len(run.trials)} trials: disk full", "Free some space.")

    with pytest.raises(MachineError, match="0 trials"), workshop.open() as lab:
        measure_plan(make_measurer(lab, refuse), make_run(lab, (make_case(),), "all", 1))
    assert workshop.list_started() == []


def test_failed_priming_unlocks(
    workshop: Workshop, list_scratch: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a MachineError the device is free and no scratch directory is left."""
    monkeypatch.setenv("ACTING_PRIME", "no_torch")
    with pytest.raises(MachineError), workshop.open():
        pytest.fail("priming failed")
    assert list_scratch() == []
    monkeypatch.setenv("ACTING_PRIME", "ok")
    with workshop.open() as lab:
        assert lab.environment.torch == "2.13.0"


def test_variables_that_workers_do_not_get_are_noted(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log and the report name a setting of torch in the caller's environment."""
    for name in list_dropped_variables(os.environ):
        monkeypatch.delenv(
            name
        )  # torch sets some, once something is compiled in this process; so may a shell
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    with workshop.open(make_case()) as lab:
        run = workshop.measure(lab, (make_case(),), 1)
    notes = [describe_measuring(event.fact) for event in workshop.events if isinstance(event, Noted)]
    note = "workers do not inherit PYTORCH_ALLOC_CONF, which would change the measurement"
    assert note in notes
    assert note in map(describe_measuring, run.trials[0].warnings)


def crowd_host(monkeypatch: pytest.MonkeyPatch, *attempts: bool) -> None:
    """Let other programs keep both cores busy during some attempts at a trial."""
    looks = itertools.count()

    def look() -> HostSample:
        number = next(looks)
        busy = sum(attempts[: (number + 1) // 2])
        return HostSample(at_s=float(number), cores=2, busy_s=2.0 * busy)

    monkeypatch.setattr(trials_module, "read_host", look)
    monkeypatch.setattr(trials_module, "read_crowd", lambda: ("chromium (pid 123, 95 %)",))


def test_a_disturbed_trial_is_repeated(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the second, undisturbed attempt is kept, with a note."""
    crowd_host(monkeypatch, True, False)
    run = workshop.run(make_case(name="a"))
    (trial,) = run.trials
    assert (trial.index, trial.conditions.repeated, trial.conditions.disturbances) == (1, True, ())
    notes = [describe_measuring(event.fact) for event in workshop.events if isinstance(event, Noted)]
    repeated = "trial 1 is repeated: other programs kept 2.0 of 2 cores busy: chromium (pid 123, 95 %)"
    assert any(note.endswith(repeated) for note in notes)


def test_counts_alone_are_not_measured_again(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs do not change counts."""
    crowd_host(monkeypatch, True, False)
    workshop.settings = replace(workshop.settings, counts_only=True)
    (trial,) = workshop.run(make_case(name="a")).trials
    assert (trial.conditions.repeated, trial.conditions.disturbances) == (False, (Disturbance.CROWDED,))


def test_a_repeat_that_is_killed_leaves_the_disturbed_trial(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The case ran before, so it has not failed; a note names the kept trial."""
    crowd_host(monkeypatch, True, False)
    run = workshop.run(make_case("killed_again", name="a"))
    (trial,) = run.trials
    assert (run.failures, trial.conditions.repeated) == ((), True)
    assert trial.conditions.disturbances == (Disturbance.CROWDED,)
    kept = "the repeat of a disturbed trial was killed, so that trial is kept: "
    (warning,) = [text for text in map(describe_measuring, trial.warnings) if text.startswith(kept)]
    assert "SIGKILL" in warning
    notes = [describe_measuring(event.fact) for event in workshop.events if isinstance(event, Noted)]
    assert warning in notes


def test_a_repeat_that_fails_by_itself_is_a_failure(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case that crashes every other time has crashed."""
    crowd_host(monkeypatch, True, False)
    run = workshop.run(make_case("crash_again", name="a"))
    assert [failure.kind for failure in run.failures] == [FailureKind.CRASH]


def test_a_stranger_on_the_card_is_reported_by_his_memory(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container hides the process: a note at the start, and a disturbance of its trial."""
    gpu = GpuState(index=0, uuid="GPU-a", name="H200", memory_total_mib=143771.0, memory_used_mib=60000.0)
    shares = iter((0.0, 0.0, 0.0, 0.42, 0.42, 0.42))  # before and after; the second trial is repeated
    monkeypatch.setattr(opening_module, "find_gpu", lambda *_: gpu)
    monkeypatch.setattr(trials_module, "read_memory_share", lambda card: next(shares) if card is gpu else 0.0)
    calm, disturbed = workshop.run(make_case(name="a"), trials=2).trials
    assert (calm.conditions.disturbances, calm.conditions.foreign_memory) == ((), 0.0)
    assert disturbed.conditions.disturbances == (Disturbance.HELD_MEMORY,)
    assert disturbed.conditions.foreign_memory == 0.42


@pytest.mark.parametrize(("device", "is_noted"), [("cuda", True), ("cpu", False)])
def test_a_card_that_nobody_sees_is_reported(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, device: str, is_noted: bool
) -> None:
    """Without nvidia-smi the owner of its memory is unknown, which does not make it free."""
    monkeypatch.setattr(opening_module, "find_gpu", lambda *_: None)
    monkeypatch.setattr(gpu_module, "_DRIVERS", (Path("/dev/null"),))
    monkeypatch.setattr(opening_module, "refuse_stack", lambda _: None)
    blind = Workshop(workshop.arm, replace(workshop.settings, device=device))
    with blind.open():
        pass
    notes = [describe_measuring(event.fact) for event in blind.events if isinstance(event, Noted)]
    note = "the GPU cannot be monitored for memory that others hold: nvidia-smi does not list it"
    assert (note in notes) is is_noted


def test_a_machine_without_a_driver_has_no_card(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The error comes before any import or wait."""
    monkeypatch.setattr(opening_module, "load_gpus", tuple)
    monkeypatch.setattr(gpu_module, "_DRIVERS", (tmp_path / "driver",))
    monkeypatch.setattr(opening_module, "refuse_stack", lambda _: None)
    none = Workshop(workshop.arm, replace(workshop.settings, device="cuda"))
    with pytest.raises(MachineError, match="nvidia-smi is missing"), none.open():
        pass
    assert none.events == []


def test_nothing_is_measured_behind_the_multi_process_service(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes before any wait or file; a CPU does not need one."""
    (tmp_path / "control").touch()
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    with workshop.open():
        pass
    behind = Workshop(workshop.arm, replace(workshop.settings, device="cuda", out=tmp_path / "unwritten"))
    with pytest.raises(MachineError, match="Multi-Process Service"), behind.open():
        pass
    assert not (tmp_path / "unwritten").exists()


def test_a_run_can_be_read_back(workshop: Workshop, tmp_path: Path) -> None:
    """A run's file can hold every sampling setting of a lab."""
    run = workshop.run(make_case(name="a"))
    RUN.save(run, tmp_path / "run.json")
    assert RUN.load(tmp_path / "run.json") == run


def test_a_host_that_stays_unfit_is_reported(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """No trial is repeated twice, and repeats end with a quarter of the plan: here with one of three."""
    crowd_host(monkeypatch, *[True] * 4)
    run = workshop.run(make_case(name="a"), trials=3)
    assert [trial.conditions.repeated for trial in run.trials] == [True, False, False]
    disturbances = {disturbance for trial in run.trials for disturbance in trial.conditions.disturbances}
    assert disturbances == {Disturbance.CROWDED}


def test_no_repeat_beyond_the_budget(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of time, an extra disturbed trial is kept as it is."""
    case = make_case("long", name="a")
    with workshop.open() as lab:
        run = workshop.measure(lab, (case,), 1)
        crowd_host(monkeypatch, True, True)
        assert compute_trial_s(run.trials[0]) == 60.0  # as both processes report, in two seconds
        # Enough for the trial itself, a second after now, and not for another after it.
        budget_s = run.wall_s + 61.0
        measurer = replace(make_measurer(lab, workshop.saved.append), budget_s=budget_s)
        run = measurer.add_trials(run, want_whole([case.id]), 2)
    assert [trial.conditions.repeated for trial in run.trials] == [False, False]
    assert run.trials[1].conditions.disturbances != ()


def test_factory_that_cannot_be_imported_is_reported_during_the_priming(workshop: Workshop) -> None:
    """Its case fails with its log and gets no trial; the others are measured."""
    broken = replace(make_case(name="broken"), factory="models:error")
    sound = replace(make_case(name="sound"), factory="models:build")
    with workshop.open(broken, sound) as lab:
        run = workshop.measure(lab, (broken, sound), 2)
    kinds = [type(event) for event in workshop.events]
    assert kinds.index(PrimeStarted) < kinds.index(CaseFailed) < kinds.index(PrimeFinished)
    (failure,) = run.failures
    assert (failure.case_id, failure.stage, failure.trial) == (broken.id, "import", 1)
    assert (describe_failure(failure), failure.log_tail) == (
        "ValueError: no such model",
        "Traceback\n  line 3",
    )
    assert failure.log.endswith("out/logs/import/0-import.log")
    assert [("sound", 1), ("sound", 2)] == workshop.list_started()
    assert run.finished
    assert (run.failures, ()) == (workshop.saved[0].failures, workshop.saved[0].trials)


def test_where_no_case_is_left_nobody_waits_for_the_compiler(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake in the only factory shows in seconds, with the environment; the primer would never end."""
    monkeypatch.setenv("ACTING_PRIME", "hang")
    with workshop.open(replace(make_case(name="broken"), factory="models:error")) as lab:
        assert [failure.case_id for failure in lab.failed] == ["broken/inference-float32-smoke-default"]
        assert lab.environment.threads
    assert PrimeFinished not in {type(event) for event in workshop.events}


def test_a_package_that_is_not_here_is_reported_before_the_priming(workshop: Workshop) -> None:
    """Its case is unavailable; a module without a distribution is present."""
    lacking = replace(make_case(name="lacking"), needs=("no-such-package-at-all",))
    complete = replace(make_case(name="beside"), needs=("xml",))
    with workshop.open(lacking, complete) as lab:
        assert [failure.case_id for failure in lab.failed] == [lacking.id]
        text = describe_failure(lab.failed[0])
    kinds = [type(event) for event in workshop.events]
    assert kinds.index(CaseFailed) < kinds.index(PrimeStarted)
    assert text.startswith(
        "UNAVAILABLE: no-such-package-at-all is not installed (pip install no-such-package-at-all); leave"
    )


@pytest.mark.parametrize(("capability", "is_available"), [("7.5", False), ("8.0", True), ("", True)])
def test_case_that_the_gpu_cannot_run_fails_at_once(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capability: str, is_available: bool
) -> None:
    """A T4 runs compiled bfloat16 as eager: the case is not measured, the run INCOMPLETE."""
    monkeypatch.setenv("ACTING_CAPABILITY", capability)
    brain = replace(make_case(name="brain"), dtype=DType.BFLOAT16)
    backend = replace(brain, id="backend/x", model="backend", backend="eager")
    plain = make_case(name="plain")
    with workshop.open(brain, backend, plain) as lab:
        run = workshop.measure(lab, (brain, backend, plain), 1)
    started = {name for name, _ in workshop.list_started()}
    assert started == {"backend", "plain"} | ({"brain"} if is_available else set())
    if is_available:
        assert run.failures == ()
        return
    (failure,) = run.failures
    assert failure.case_id == brain.id
    assert describe_failure(failure).startswith(
        "UNAVAILABLE: this GPU compiles no bfloat16: its compute capability is 7.5, 8.0 is needed"
    )
    assert decide_verdict(run, (), Policy(thresholds={})).outcome is Outcome.INCOMPLETE


def test_case_that_has_no_room_on_the_gpu_fails_at_once(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the memory that it needs; what fits is measured."""
    monkeypatch.setenv("ACTING_MEMORY", "24 GiB")
    large = replace(make_case(name="large"), gpu_memory_gib=25)
    fitting = replace(make_case(name="fitting"), gpu_memory_gib=24)
    with workshop.open(large, fitting) as lab:
        run = workshop.measure(lab, (large, fitting), 1)
    assert workshop.list_started() == [("fitting", 1)]
    (failure,) = run.failures
    assert describe_failure(failure).startswith(
        "UNAVAILABLE: it needs 25 GiB at least, and this GPU has 24.0; leave"
    )


def test_import_that_kills_its_process_blames_nobody(workshop: Workshop) -> None:
    """The trials find out which factory it was."""
    crashing = replace(make_case(), factory="models:crash")
    with workshop.open(crashing) as lab:
        assert () == lab.failed


def test_reference_models_are_not_tried_beforehand(workshop: Workshop) -> None:
    """They come with the gate; their imports take longer than a trial's own."""
    with workshop.open(replace(make_case(), factory="gate.models.bert:error")) as lab:
        assert () == lab.failed
    assert not (workshop.settings.out / "logs" / "import").exists()


def test_a_crowded_machine_is_reported_before_minutes_are_spent(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the warm-up a note names the busy cores and programs."""
    crowd = Conditions(foreign_cores=1.5, disturbances=(Disturbance.CROWDED,), crowd=("rsync (pid 7, 90 %)",))
    monkeypatch.setattr(opening_module, "look_early", lambda _: crowd)
    with workshop.open():
        pass
    before = itertools.takewhile(lambda event: not isinstance(event, PrimeStarted), workshop.events)
    (fact,) = (
        event.fact for event in before if isinstance(event, Noted) and event.fact.code is Code.CROWDED_EARLY
    )
    assert (fact.numbers["crowded"], fact.names["crowd"]) == (1.5, crowd.crowd)
