"""Pairs: two workers take turns, and what follows if one of them does not."""

import itertools
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gate.check.schedule import Pace, Slot, fit_slot, predict_pair_s
from gate.check.work import list_pair_slots
from gate.decide.suspects import Suspect
from gate.lab.host.gpu import GpuState
from gate.lab.trials.bench import Bench
from gate.lab.trials.opening import open_base_bench
from gate.lab.trials.pairs import Sides, find_shared_caches, make_sides, measure_pair, plan_pair
from gate.lab.trials.runs import make_measurer
from gate.lab.workers import process
from gate.lab.workers.turns import make_turn_order
from gate.records.cases import Case, Kind, Metric, Mode
from gate.records.protocol import WorkerRole
from gate.records.run import FailureKind, Pairing, Run, Trial
from tests.make import make_failure, make_run

from .conftest import CountLeft, make_case, make_lab

LATENCY = frozenset({Metric.COMPILED_LATENCY})
COMPILE = frozenset({Metric.COLD_COMPILE_TIME})  # of which a pair after the first is a cold process alone
WARM_COMPILE = frozenset({Metric.WARM_COMPILE_TIME})
SUPER_BLOCKS = 5  # of the default's fifteen: blocks that do not differ need no more


def pace_of(run: Run) -> Pace:
    """The times of a run."""
    return Pace(run.cases, run.trials)


def open_sides(bench: Bench, base_case: Case, head_case: Case) -> Sides:
    """Both arms in the same tree; they differ in what the actors play."""
    base, environment = open_base_bench(bench, replace(bench.arm, name="base"))
    assert environment is None
    return make_sides(base, bench, base_case, head_case)


def test_turns_cancel_a_linear_drift() -> None:
    """Within a super-block both arms run E C C E; eager and compiled of both have the mean position 4.5."""
    order = make_turn_order(1)
    assert (0, 1, 1, 0, 0, 1, 1, 0) == order
    positions = [[index + 1 for index, turn in enumerate(order) if turn == arm] for arm in (0, 1)]
    assert [[1, 4, 5, 8], [2, 3, 6, 7]] == positions
    assert [9, 9] == [first + last for first, _, _, last in positions]
    assert (1, 0, 0, 1, 1, 0, 0, 1) == make_turn_order(2)[8:]


def test_live_pair_alternates_blocks(bench: Bench, count_left: CountLeft) -> None:
    """Both workers are alive: their blocks come in the order 0 1 1 0 0 1 1 0, then 1 0 0 1 ..."""
    case = make_case("turns", roles=["rounds"])
    pair = measure_pair(open_sides(bench, case, case), plan_pair(LATENCY, 1, "cpu", Pairing.LIVE))
    assert ["base", "head"] == [trial.arm for trial in pair.trials]
    assert [Pairing.LIVE] * 2 == [trial.pairing for trial in pair.trials]
    assert [2 * SUPER_BLOCKS] * 2 == [len(trial.samples[Metric.COMPILED_LATENCY]) for trial in pair.trials]
    workers = (bench.temporary / "order.txt").read_text(encoding="ascii").split()
    arms = {worker: index for index, worker in enumerate(dict.fromkeys(workers))}
    assert list(make_turn_order(SUPER_BLOCKS)) == [arms[worker] for worker in workers]
    assert count_left() == 0


def test_head_starts_first_in_every_other_pair(bench: Bench) -> None:
    """The second to start finds a warmer machine."""
    case = make_case("turns", roles=["rounds"])
    sides = open_sides(bench, case, case)
    pairs = [measure_pair(sides, plan_pair(LATENCY, index, "cpu", Pairing.LIVE)) for index in (1, 2)]
    assert [["base", "head"], ["head", "base"]] == [[trial.arm for trial in pair.trials] for pair in pairs]


AT_ONCE, IN_TURN = ["begins", "begins", "ends", "ends"], ["begins", "ends", "begins", "ends"]


@pytest.mark.parametrize(
    ("role", "metrics", "device", "expected"),
    [
        pytest.param("rounds", LATENCY, "cpu", AT_ONCE, id="latencies"),
        pytest.param("cold", COMPILE, "cpu", AT_ONCE, id="compile"),
        pytest.param("cold", COMPILE, "cuda", IN_TURN, id="GPU"),
    ],
)
def test_arms_load_at_the_same_time(
    bench: Bench, role: str, metrics: frozenset[Metric], device: str, expected: list[str]
) -> None:
    """On a GPU they load one after the other, since libraries time there what they choose."""
    bench = use_gpu(bench) if device == "cuda" else bench
    case = make_case("turns", roles=[role], how={"load_s": 1.0})
    pair = measure_pair(open_sides(bench, case, case), plan_pair(metrics, 2, device, Pairing.LIVE))
    assert ["head", "base"] == [trial.arm for trial in pair.trials]
    loading = (bench.temporary / "loading.txt").read_text(encoding="ascii").split()
    assert loading == expected


def test_arms_that_tune_kernels_load_one_after_the_other(bench: Bench) -> None:
    """The other arm's compile would change the timings that choose kernels."""
    case = replace(make_case("turns", roles=["rounds"], how={"load_s": 0.2}), mode=Mode.MAX_AUTOTUNE)
    pair = measure_pair(open_sides(bench, case, case), plan_pair(LATENCY, 1, "cpu", Pairing.LIVE))
    assert ["base", "head"] == [trial.arm for trial in pair.trials]
    loading = (bench.temporary / "loading.txt").read_text(encoding="ascii").split()
    assert loading == ["begins", "ends", "begins", "ends"]


def test_an_arm_is_charged_half_of_what_both_load_in(bench: Bench) -> None:
    """Simultaneous compiles slow each other: 4 s of both, with a limit of 3.9 s, is no hang."""
    case = make_case("turns", roles=["rounds"], how={"load_s": 4.0})
    hasty = replace(bench, settings=replace(bench.settings, trial_timeout_s=3.9))
    pair = measure_pair(open_sides(hasty, case, case), plan_pair(LATENCY, 1, "cpu", Pairing.LIVE))
    assert ["base", "head"] == [trial.arm for trial in pair.trials]


def test_second_processes_build_and_count_calls_at_once_and_take_turns_for_the_rest(
    bench: Bench, count_left: CountLeft
) -> None:
    """Both build, each compiles alone, both count, each looks at drift alone."""
    case = make_case("turns", roles=["cold", "warm"], how={"load_s": 0.5})
    pair = measure_pair(open_sides(bench, case, case), plan_pair(WARM_COMPILE, 1, "cpu", Pairing.LIVE))
    assert [(0.5,), (0.5,)] == [trial.samples[Metric.WARM_COMPILE_TIME] for trial in pair.trials]
    loading = (bench.temporary / "loading.txt").read_text(encoding="ascii").split()[4:]  # of the second ones
    assert loading[:2] == ["builds", "builds"]
    assert loading[2:6] == ["compiles", "compiled", "compiles", "compiled"]
    assert loading[6:10] == ["counts", "counts", "counted", "counted"]
    assert loading[10:] == ["looks", "looked", "looks", "looked"]
    assert count_left() == 0


def test_second_processes_without_room_for_two_run_one_after_the_other(bench: Bench) -> None:
    """The lack of memory is no failure, and the pair stays a live one."""
    case = make_case("turns", roles=["cold", "warm"], how={"says": "can't allocate memory"})
    pair = measure_pair(open_sides(bench, case, case), plan_pair(WARM_COMPILE, 1, "cpu", Pairing.LIVE))
    assert pair.failures == ()
    assert [trial.pairing for trial in pair.trials] == [Pairing.LIVE] * 2
    assert [(0.5,), (0.5,)] == [trial.samples[Metric.WARM_COMPILE_TIME] for trial in pair.trials]


def test_second_process_that_fails_before_its_compile_is_the_one_that_failed(
    bench: Bench, count_left: CountLeft
) -> None:
    """The other arm waits to compile, is stopped, and is not blamed."""
    good = make_case("turns", roles=["cold", "warm"])
    bad = make_case("turns", roles=["cold", "warm"], how={"says": "ValueError: no such layer"})
    pair = measure_pair(open_sides(bench, good, bad), plan_pair(WARM_COMPILE, 1, "cpu", Pairing.LIVE))
    assert [(failure.arm, failure.stage) for failure in pair.failures] == [("head", "build")]
    assert count_left() == 0


def test_arm_that_cannot_load_has_failed(bench: Bench, count_left: CountLeft) -> None:
    """The other arm, which has loaded, is not blamed, and nothing is left running."""
    good, bad = make_case("turns", roles=["rounds"]), make_case("error", roles=["rounds"])
    pair = measure_pair(open_sides(bench, bad, good), plan_pair(LATENCY, 2, "cpu", Pairing.LIVE))
    assert [("base", "build")] == [(failure.arm, failure.stage) for failure in pair.failures]
    assert count_left() == 0


def test_an_arm_that_fails_early_does_not_wait_for_the_others_compile(
    bench: Bench, count_left: CountLeft
) -> None:
    """The other's two-minute compile is ended after two seconds, and not blamed."""
    slow = make_case("turns", roles=["rounds"], how={"load_s": 120.0})
    bad = make_case("error", roles=["rounds"])
    begun = time.monotonic()
    pair = measure_pair(open_sides(bench, slow, bad), plan_pair(LATENCY, 1, "cpu", Pairing.LIVE))
    assert time.monotonic() - begun < 60.0
    assert [failure.arm for failure in pair.failures] == ["head"]
    assert count_left() == 0


@pytest.mark.parametrize("guilty", ["base", "head"])
def test_arm_that_crashes_is_the_one_that_failed(bench: Bench, count_left: CountLeft, guilty: str) -> None:
    """The other arm is stopped and not blamed, and nothing is left running."""
    good, bad = make_case("turns", roles=["cold"]), make_case("turns", roles=["cold"], how={"stop": 5})
    cases = (bad, good) if guilty == "base" else (good, bad)
    pair = measure_pair(open_sides(bench, *cases), plan_pair(COMPILE, 3, "cpu", Pairing.LIVE))
    assert ((), [(guilty, FailureKind.CRASH)]) == (
        pair.trials,
        [(failure.arm, failure.kind) for failure in pair.failures],
    )
    assert count_left() == 0


def test_arm_that_hangs_is_the_one_whose_time_is_up(bench: Bench, count_left: CountLeft) -> None:
    """Only the time of an arm's own turns counts, not its waiting."""
    bench = replace(bench, settings=replace(bench.settings, trial_timeout_s=2.0))
    good = make_case("turns", roles=["cold"])
    bad = make_case("turns", roles=["cold"], how={"stop": 5, "sleep_s": 120})
    begun = time.monotonic()
    pair = measure_pair(open_sides(bench, good, bad), plan_pair(COMPILE, 3, "cpu", Pairing.LIVE))
    assert [("head", FailureKind.HANG)] == [(failure.arm, failure.kind) for failure in pair.failures]
    assert time.monotonic() - begun < 60.0
    assert count_left() == 0


def test_arm_that_never_gets_ready_has_failed(bench: Bench) -> None:
    """A worker that ends before its rounds ends the pair with its own failure."""
    good, bad = make_case("turns", roles=["cold"]), make_case("error", roles=["cold"])
    pair = measure_pair(open_sides(bench, good, bad), plan_pair(COMPILE, 3, "cpu", Pairing.LIVE))
    assert [("head", "build")] == [(failure.arm, failure.stage) for failure in pair.failures]


def test_whole_processes_in_turn_are_noted(bench: Bench) -> None:
    """If two do not fit, the trials are marked: their blocks are no pairs."""
    plan = plan_pair(frozenset({Metric.COLD_COMPILE_TIME}), 1, "cpu", Pairing.TURNS)
    case = make_case()
    pair = measure_pair(open_sides(bench, case, case), plan)
    assert [Pairing.TURNS] * 2 == [trial.pairing for trial in pair.trials]
    assert [(2.0,), (2.0,)] == [trial.samples[Metric.COLD_COMPILE_TIME] for trial in pair.trials]
    assert [(0.5,), (0.5,)] == [trial.samples[Metric.WARM_COMPILE_TIME] for trial in pair.trials]


def use_gpu(bench: Bench, gpu: GpuState | None = None) -> Bench:
    """Let actors play on a GPU."""
    return replace(bench, settings=replace(bench.settings, device="cuda"), gpu=gpu)


@pytest.mark.parametrize(
    "says",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "RuntimeError: Triton Error [CUDA]: CUDA_ERROR_OUT_OF_MEMORY",
        "AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
    ],
)
def test_what_has_no_room_next_to_the_other_takes_turns(bench: Bench, says: str) -> None:
    """No message about a device too small for two is a failure of the case."""
    case = make_case("crowd", how={"says": says})
    sides = open_sides(use_gpu(bench), case, case)
    pair = measure_pair(sides, plan_pair(LATENCY, 1, "cuda", Pairing.LIVE))
    assert pair.failures == ()
    assert [trial.pairing for trial in pair.trials] == [Pairing.TURNS] * 2


@pytest.mark.parametrize(
    ("how", "oom_kills", "is_room"),
    [
        ({"says": "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory"}, 0, True),
        ({"says": "MemoryError: "}, 0, True),
        ({"ends": "exit_3"}, 0, True),  # which says std::bad_alloc
        ({"ends": "killed"}, 1, True),
        ({"ends": "killed"}, 0, False),
        ({"ends": "segfault"}, 1, False),
        ({"says": "OSError: [Errno 28] No space left on device"}, 1, False),
    ],
)
def test_want_of_memory_next_to_the_other_is_no_failure(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, how: dict[str, str], oom_kills: int, is_room: bool
) -> None:
    """On a CPU such a pair takes turns; one with another error has failed."""
    counts = itertools.count(0, oom_kills)
    monkeypatch.setattr(process, "load_oom_kills", lambda: next(counts))
    case = make_case("crowd", roles=["rounds"], how=how)
    pair = measure_pair(open_sides(bench, case, case), plan_pair(LATENCY, 1, "cpu", Pairing.LIVE))
    assert (not pair.failures) is is_room
    assert [trial.pairing for trial in pair.trials] == ([Pairing.TURNS] * 2 if is_room else [])


def test_an_error_of_the_model_is_no_want_of_room(bench: Bench) -> None:
    """Any other error next to the other arm is a failure."""
    case = make_case("crowd", how={"says": "ValueError: 3 devices are not available in this model"})
    pair = measure_pair(open_sides(use_gpu(bench), case, case), plan_pair(LATENCY, 1, "cuda", Pairing.LIVE))
    assert pair.failures


def test_a_gpu_for_one_process_gets_turns_at_once(bench: Bench) -> None:
    """In exclusive mode the second arm would be refused, so no live pair is tried."""
    case = make_case("ok", roles=["cold", "warm"])
    run = make_run(cases=(case,), base=(case,))
    gpu = GpuState(index=0, uuid="GPU-1", exclusive=True)
    lab = make_lab(use_gpu(bench, gpu), environment=run.environment)
    needs = [Suspect(case_id=case.id, metrics=LATENCY, more=1)]
    measurer = make_measurer(lab, lambda _: None)
    measured = measurer.add_pairs(run, needs, 600.0)
    assert [trial.pairing for trial in measured.trials] == [Pairing.TURNS] * 2


@pytest.mark.parametrize(
    ("metrics", "index", "device", "expected"),
    [
        ({Metric.COMPILED_LATENCY}, 1, "cpu", (WorkerRole.ROUNDS, False)),
        ({Metric.COMPILED_LATENCY}, 2, "cpu", (WorkerRole.ROUNDS, False)),
        ({Metric.COMPILED_LATENCY}, 2, "cuda", (WorkerRole.COLD, False)),
        ({Metric.COLD_COMPILE_TIME}, 1, "cpu", (WorkerRole.COLD, True)),
        ({Metric.COLD_COMPILE_TIME}, 2, "cpu", (WorkerRole.COLD, False)),
        ({Metric.WARM_COMPILE_TIME}, 1, "cpu", (WorkerRole.COLD, True)),
        ({Metric.WARM_COMPILE_TIME}, 2, "cpu", (WorkerRole.ROUNDS, True)),
        ({Metric.PEAK_MEMORY}, 3, "cpu", (WorkerRole.ROUNDS, True)),
        ({Metric.PEAK_MEMORY}, 3, "cuda", (WorkerRole.COLD, True)),
    ],
)
def test_pair_measures_what_is_wanted(
    metrics: set[Metric], index: int, device: str, expected: tuple[WorkerRole, bool]
) -> None:
    """A compile costs more than the rounds: it is repeated only for metrics that it decides."""
    plan = plan_pair(metrics, index, device, Pairing.LIVE)
    assert expected == (plan.first, plan.content.warm)


def test_pair_of_known_code_begins_with_the_caches_of_heads_trial(bench: Bench) -> None:
    """Neither arm compiles: each has a copy of the trial's caches."""
    bench = replace(bench, settings=replace(bench.settings, keeps_caches=True))
    case = make_case("turns", roles=["rounds"])
    kept = bench.get_kept_caches(case)
    kept.mkdir(parents=True)
    (kept / "code.so").write_text("compiled", encoding="utf-8")
    plan = plan_pair(LATENCY, 1, "cpu", Pairing.LIVE, kept)
    assert (plan.first, plan.content.warm) == (WorkerRole.ROUNDS, False)
    sides = open_sides(bench, case, case)
    assert len(measure_pair(sides, plan).trials) == 2
    for side in (sides.base, sides.head):
        (side.trial_cache / "code.so").write_text("loaded", encoding="utf-8")
    assert (kept / "code.so").read_text(encoding="utf-8") == "compiled"


@pytest.mark.parametrize(
    ("kind", "unchanged_code", "is_kept"),
    [
        (Kind.CALL, True, True),
        (Kind.CALL, False, False),
        (Kind.EXPORT, True, False),
        (Kind.ONNX, True, False),
    ],
)
def test_caches_are_kept_for_code_that_is_found_by_what_it_is(
    bench: Bench, kind: Kind, unchanged_code: bool, is_kept: bool
) -> None:
    """A package is found by its file's name: the base would load and time head's."""
    case = replace(make_case(), kind=kind)
    kept = bench.get_kept_caches(case)
    kept.mkdir(parents=True)
    lab: Any = SimpleNamespace(bench=bench, base=bench)
    assert find_shared_caches(lab, case, unchanged_code=unchanged_code) == (kept if is_kept else None)


def test_compile_time_is_measured_on_empty_caches_whatever_is_kept(bench: Bench) -> None:
    """A trial's caches would make a cold compile a warm one."""
    kept = bench.get_kept_caches(make_case())
    plan = plan_pair(frozenset({Metric.COLD_COMPILE_TIME}), 1, "cpu", Pairing.LIVE, kept)
    assert (plan.first, plan.content.warm) == (WorkerRole.COLD, True)


def test_pairs_are_numbered_after_those_there() -> None:
    """Each case gets as many as it needs; indices continue."""
    first, second = make_case(name="one"), make_case(name="two")
    taken = Trial(case_id=first.id, index=1, arm="base", pairing=Pairing.LIVE)
    alone = Trial(case_id=second.id, index=1)
    run = make_run(taken, replace(taken, arm="head"), alone, cases=(first, second), base=(first, second))
    needs = [
        Suspect(case_id=first.id, metrics=LATENCY, more=2),
        Suspect(case_id=second.id, metrics=LATENCY, more=1),
    ]
    slots = list_pair_slots(run, needs)
    assert [("one", 2), ("one", 3), ("two", 1)] == [(slot.case.model, slot.index) for slot in slots]


def test_cases_without_a_counterpart_get_no_pair() -> None:
    """The base lacks them, defines them otherwise or could not run them."""
    same, changed, new, failed = (make_case(name=name) for name in ("same", "changed", "new", "failed"))
    run = make_run(
        cases=(same, changed, new, failed), base=(same, replace(changed, definition="other"), failed)
    )
    failure = make_failure(failed.id, "", stage="build")
    needs = [Suspect(case_id=case.id, metrics=LATENCY, more=1) for case in run.cases]
    slots = list_pair_slots(replace(run, failures=(failure,)), needs)
    assert ["same"] == [slot.case.model for slot in slots]


def make_pair(case: Case, index: int, compile_s: float) -> tuple[Trial, ...]:
    """A pair of which each arm compiles for so long, and spends 0.5 s outside of all stages."""
    metric = Metric.COLD_COMPILE_TIME if compile_s else Metric.COMPILED_LATENCY
    return tuple(
        Trial(
            case_id=case.id,
            index=index,
            arm=arm,
            pairing=Pairing.LIVE,
            samples={metric: (compile_s,)},
            stages_s={"rounds": 2.0, "compile": compile_s, "turn": turn_s},
            overhead_s=0.5,
        )
        for arm, turn_s in (("base", 4.0), ("head", 2.0))
    )


# Each arm of the pair below: 0.5 s, rounds of 2 s and a compile of 7.5 s; the waiting counts once, not in
# both arms. Cold processes alone take half of that, a pair that compiles nothing two fifths.
WHOLE_S, COLD_S, LIGHT_S = 20.0, 10.0, 8.0
COLD = frozenset({Metric.COMPILED_LATENCY, Metric.GRAPH_BREAKS})
EVERYTHING = COLD | {Metric.PEAK_MEMORY}


def test_pair_is_expected_to_take_as_long_as_the_last_of_its_kind() -> None:
    """Without one, twice a trial; a pair that compiles nothing is cheaper than the first."""
    case = make_case()
    run = make_run(*make_pair(case, 1, 7.5), cases=(case,), base=(case,))
    whole = Slot(case=case, index=2, metrics=EVERYTHING)
    light = replace(whole, metrics=LATENCY)
    assert predict_pair_s(pace_of(replace(run, trials=())), whole, "cpu") == 2 * case.expected_s
    assert predict_pair_s(pace_of(run), whole, "cpu") == WHOLE_S
    assert predict_pair_s(pace_of(run), light, "cpu") == pytest.approx(LIGHT_S)
    assert predict_pair_s(pace_of(run), light, "cuda") == COLD_S
    later = replace(run, trials=(*run.trials, *make_pair(case, 2, 0.0)))
    assert predict_pair_s(pace_of(later), replace(light, index=3), "cpu") == 2 * 2.5
    assert predict_pair_s(pace_of(later), replace(whole, index=3), "cpu") == WHOLE_S


def test_what_a_further_pair_is_spared_is_not_expected() -> None:
    """Servers are there, and waiting counts once: of twice 0.5 + 1 + 3 + 4 + 2 s 11 are left."""
    case = make_case()
    stages_s = {"server": 1.0, "compile": 3.0, "turn": 4.0, "rounds": 2.0}
    light = tuple(replace(trial, stages_s=stages_s) for trial in make_pair(case, 2, 0.0))
    run = make_run(*light, cases=(case,), base=(case,))
    slot = Slot(case=case, index=3, metrics=LATENCY)
    assert predict_pair_s(pace_of(run), slot, "cpu") == 2 * (0.5 + 3.0 + 2.0)


def test_a_first_pair_is_expected_to_compile_untimed_once() -> None:
    """Trials of 30 s that compile for 20 s and load for 4: both arms at once, 16 s more than from caches.

    A second pair is spared them, and the loading of one arm.
    """
    case = make_case()
    samples = {Metric.COLD_COMPILE_TIME: (20.0,), Metric.WARM_COMPILE_TIME: (4.0,)}
    alone = Trial(case_id=case.id, index=1, samples=samples, stages_s={"rounds": 30.0})
    run = make_run(alone, cases=(case,), base=(case,))
    first = Slot(case=case, index=1, metrics=LATENCY)
    assert predict_pair_s(pace_of(run), first, "cpu") == pytest.approx(0.4 * 2 * 30.0 + 16.0)
    assert predict_pair_s(pace_of(run), replace(first, unchanged_code=True), "cpu") == pytest.approx(
        0.4 * 2 * 30.0
    )
    assert predict_pair_s(pace_of(run), replace(first, index=2), "cpu") == pytest.approx(0.4 * 2 * 30.0)

    stages_s = {"compile": 21.0, "rounds": 2.0}
    light = tuple(replace(trial, stages_s=stages_s, overhead_s=0.0) for trial in make_pair(case, 1, 0.0))
    later = pace_of(replace(run, trials=(alone, *light)))
    assert predict_pair_s(later, replace(first, index=2), "cpu") == pytest.approx(21.0 - 16.0 + 2 * 2.0)


def test_a_first_pair_is_expected_to_take_the_share_that_others_took() -> None:
    """A second pair took 5 s where two trials take 40: an eighth of two trials of 30 s.

    One with second processes as well, which take longer, teaches nothing.
    """
    begun, other = make_case(), make_case(name="other")
    alone = (
        Trial(case_id=begun.id, index=1, stages_s={"rounds": 20.0}),
        Trial(case_id=other.id, index=1, stages_s={"rounds": 30.0}),
    )
    run = make_run(*alone, *make_pair(begun, 2, 0.0), cases=(begun, other), base=(begun, other))
    slot = Slot(case=other, index=1, metrics=LATENCY, unchanged_code=True)
    assert predict_pair_s(pace_of(run), slot, "cpu") == pytest.approx(7.5)
    assert predict_pair_s(pace_of(replace(run, trials=alone)), slot, "cpu") == pytest.approx(0.4 * 60.0)
    samples = {Metric.COMPILED_LATENCY: (1.0,), Metric.PEAK_MEMORY: (1.0,)}
    warm = (replace(trial, samples=samples) for trial in make_pair(begun, 2, 0.0))
    assert predict_pair_s(pace_of(replace(run, trials=(*alone, *warm))), slot, "cpu") == pytest.approx(24.0)


def test_arms_that_tune_kernels_are_expected_to_compile_one_after_the_other() -> None:
    """As above, but twice 16 s of the first pair are compiles, and a later one loads twice as well."""
    case = replace(make_case(), mode=Mode.MAX_AUTOTUNE)
    samples = {Metric.COLD_COMPILE_TIME: (20.0,), Metric.WARM_COMPILE_TIME: (4.0,)}
    alone = Trial(case_id=case.id, index=1, samples=samples, stages_s={"rounds": 30.0})
    run = make_run(alone, cases=(case,), base=(case,))
    first = Slot(case=case, index=1, metrics=LATENCY)
    assert predict_pair_s(pace_of(run), first, "cpu") == pytest.approx(0.4 * 2 * 30.0 + 2 * 16.0)

    stages_s = {"compile": 21.0, "rounds": 2.0}
    light = tuple(replace(trial, stages_s=stages_s, overhead_s=0.0) for trial in make_pair(case, 1, 0.0))
    later = pace_of(replace(run, trials=(alone, *light)))
    assert predict_pair_s(later, replace(first, index=2), "cpu") == pytest.approx(2 * (21.0 - 16.0 + 2.0))


@pytest.mark.parametrize(
    ("left_s", "device", "expected"),
    [
        (WHOLE_S, "cpu", EVERYTHING),
        (WHOLE_S - 1, "cpu", COLD),
        (COLD_S - 1, "cpu", LATENCY),
        (LIGHT_S - 1, "cpu", None),
        (COLD_S - 1, "cuda", None),
    ],
)
def test_time_that_is_left_goes_to_counters_then_to_latencies(
    left_s: float, device: str, expected: frozenset[Metric] | None
) -> None:
    """If no whole pair fits, a counter may be measured again, or a latency settled."""
    case = make_case()
    run = make_run(*make_pair(case, 1, 7.5), cases=(case,), base=(case,))
    run = replace(run, environment=replace(run.environment, device_kind=device))
    slot = fit_slot(pace_of(run), Slot(case=case, index=2, metrics=EVERYTHING), device, left_s)
    assert expected == (slot and slot.metrics)


@pytest.mark.parametrize(
    ("index", "left_s", "expected"),
    [
        (2, WHOLE_S + LIGHT_S, EVERYTHING),
        (2, WHOLE_S + LIGHT_S - 1, COLD),
        (2, COLD_S + LIGHT_S - 1, LATENCY),
        (2, LIGHT_S, LATENCY),
        (2, LIGHT_S - 1, None),
        (3, WHOLE_S, EVERYTHING),
    ],
)
def test_calls_that_look_slower_keep_time_for_their_third_pair(
    index: int, left_s: float, expected: frozenset[Metric] | None
) -> None:
    """A whole second pair is measured where a third one of latencies ends in time as well."""
    case = make_case()
    run = make_run(*make_pair(case, 1, 7.5), cases=(case,), base=(case,))
    slot = Slot(case=case, index=index, metrics=EVERYTHING, slower=True)
    fitting = fit_slot(pace_of(run), slot, "cpu", left_s)
    assert expected == (fitting and fitting.metrics)


def test_latencies_alone_are_no_first_measurement() -> None:
    """A case whose counters and memory were never measured gets no such pair."""
    case, other = make_case(), make_case(name="other")
    run = make_run(*make_pair(other, 1, 7.5), cases=(case, other), base=(case, other))
    slot = Slot(case=case, index=1, metrics=EVERYTHING)
    whole_s = predict_pair_s(pace_of(run), slot, "cpu")
    assert fit_slot(pace_of(run), slot, "cpu", whole_s) == slot
    assert fit_slot(pace_of(run), slot, "cpu", whole_s - 1) is None
    alone = Trial(case_id=case.id, index=1, stages_s={"rounds": whole_s / 2})
    fitted = fit_slot(pace_of(replace(run, trials=(*run.trials, alone))), slot, "cpu", whole_s - 1)
    assert fitted is not None
    assert fitted.metrics == LATENCY
