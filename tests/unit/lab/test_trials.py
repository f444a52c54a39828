"""Trials: two processes, one private cache, one record."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from gate.check.schedule import Content
from gate.errors import MachineError
from gate.lab.host.gpu import GpuState
from gate.lab.trials import bench as bench_module
from gate.lab.trials.bench import Bench, LabSettings, check_disk, make_case_path, make_job
from gate.lab.trials.trials import merge_results, repeat_samples, run_trial
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.protocol import Stage, WorkerResult, WorkerRole
from gate.records.run import CodeIdentity, Conditions, Extent, GraphBreak, Recompile, Trial
from gate.report.words.facts import describe_failure
from tests.words import describe_measuring, make_warnings

from .conftest import make_case

WALL_S = 10.0
LATENCIES = Content(compiles=False, warm=False)
SHAPE = Recompile(guard="shape")
BLANK = Trial(case_id="a/x", index=2)


def test_trial_joins_both_processes(bench: Bench) -> None:
    """A trial has the samples of the cold and the warm process, its start and its seconds."""
    came = run_trial(bench, make_case(), 3)
    assert came.failures == ()
    (trial,) = came.trials
    expected = {
        Metric.COLD_COMPILE_TIME: (2.0,),
        Metric.COMPILED_LATENCY: (0.010, 0.011),
        Metric.WARM_COMPILE_TIME: (0.5,),
        Metric.CACHE_MISSES: (0.0,),
        Metric.PEAK_MEMORY: (1024.0,),
    }
    assert expected == trial.samples
    assert (trial.case_id, trial.index, trial.arm) == ("actor/inference-float32-smoke-default", 3, "head")
    assert trial.stages_s == {"start": 0.002, "compile": 0.004}
    assert 0.01 < trial.overhead_s < 10.0
    assert trial.started.endswith("Z")


def test_cache_is_cold_then_warm_then_gone(bench: Bench) -> None:
    """The cold process finds the primer's files only, the warm one the cold one's too."""
    toolchain = bench.primer_cache / "inductor" / "isa.so"
    toolchain.parent.mkdir(parents=True)
    toolchain.write_text("probe", encoding="utf-8")
    for index in (1, 2):
        run_trial(bench, make_case(), index)
        logs = bench.settings.out / "logs" / "actor" / "inference-float32-smoke-default"
        assert (logs / f"{index}-cold.log").read_text(encoding="utf-8") == "cache holds isa.so\n"
        assert (logs / f"{index}-warm.log").read_text(encoding="utf-8") == "cache holds cold.txt isa.so\n"
        assert not bench.trial_cache.exists()
    assert toolchain.read_text(encoding="utf-8") == "probe"


def test_caches_of_the_last_trial_are_kept(bench: Bench) -> None:
    """Its cold process's code stays for its pairs; a failed trial leaves nothing."""
    bench = replace(bench, settings=replace(bench.settings, keeps_caches=True))
    case = make_case()
    for index in (1, 2):
        assert run_trial(bench, case, index).failures == ()
        kept = sorted(path.name for path in bench.get_kept_caches(case).rglob("*.txt"))
        assert kept == ["cold.txt"]
        assert not bench.trial_cache.exists()
    for role in ("cold", "warm"):
        failing = make_case("error", name="failing", roles=[role])
        assert run_trial(bench, failing, 1).failures != ()
        assert not bench.get_kept_caches(failing).exists()


def read_logs(bench: Bench, index: int) -> dict[str, str]:
    """The logs of a trial's workers, by role."""
    folder = bench.settings.out / "logs" / "actor" / "inference-float32-smoke-default"
    return {
        path.stem.partition("-")[2]: path.read_text(encoding="utf-8").strip()
        for path in folder.glob(f"{index}-*.log")
    }


def test_compile_is_timed_on_empty_caches_without_a_warm_process(bench: Bench) -> None:
    """Its result replaces the kept caches."""
    bench = replace(bench, settings=replace(bench.settings, keeps_caches=True))
    assert run_trial(bench, make_case(), 1).failures == ()
    (trial,) = run_trial(bench, make_case(), 2, Content(compiles=True, warm=False)).trials
    assert trial.extent is Extent.COLD
    assert set(trial.samples) == {Metric.COLD_COMPILE_TIME, Metric.COMPILED_LATENCY}
    assert read_logs(bench, 2) == {"cold": "cache holds"}
    assert [path.name for path in bench.get_kept_caches(make_case()).rglob("*.txt")] == ["cold.txt"]


def test_no_cache_is_kept_where_the_disk_is_short(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair then compiles."""
    monkeypatch.setattr(bench_module, "MIN_FREE_TO_KEEP_BYTES", 2**63)
    bench = replace(bench, settings=replace(bench.settings, keeps_caches=True))
    assert run_trial(bench, make_case(), 1).failures == ()
    assert not bench.get_kept_caches(make_case()).exists()


def test_benchmark_file_is_the_cold_ones(bench: Bench) -> None:
    """Each trial leaves one native benchmark file, named by case and index."""
    run_trial(bench, make_case(), 1)
    files = [str(path.relative_to(bench.settings.out)) for path in bench.settings.out.rglob("*.json")]
    assert files == ["benchmark/actor/inference-float32-smoke-default-1.json"]


def test_worker_gets_its_arm(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request has the arm's checkout and the gate's process; the arm's variables win."""
    monkeypatch.setenv("PYTHONPATH", "/mine")
    variables = {"PYTHONPATH": "/source:/mine", "COMPILE_GATE_PACKAGES": "/packages"}
    arm = replace(bench.arm, checkout="/scratch/base", origin="/project", variables=variables)
    job = make_job(replace(bench, arm=arm), WorkerRole.COLD, make_case(), 1)
    assert ("/scratch/base", "/project") == (job.request.checkout, job.request.origin)
    assert os.getpid() == job.request.parent
    assert variables.items() <= job.environment.items()


@pytest.mark.parametrize("role", [WorkerRole.PRIME, WorkerRole.COLD])
def test_workers_see_one_gpu_and_call_it_cuda(bench: Bench, role: WorkerRole) -> None:
    """A GPU's number would be in its generated code: cuda:1 would change all kernels."""
    settings = replace(bench.settings, device="cuda:1")
    gpu = GpuState(index=1, uuid="GPU-bbbb")
    job = make_job(replace(bench, settings=settings, gpu=gpu), role, make_case())
    assert (job.request.device, job.environment["CUDA_VISIBLE_DEVICES"]) == ("cuda", "GPU-bbbb")
    # Of one that nvidia-smi does not list, or a board in parts, the number is all there is.
    for unknown in (None, replace(gpu, mig=True)):
        job = make_job(replace(bench, settings=settings, gpu=unknown), role, make_case())
        assert job.request.device == "cuda:1"
        assert job.environment.get("CUDA_VISIBLE_DEVICES") == os.environ.get("CUDA_VISIBLE_DEVICES")


COLD_SAMPLES = {
    Metric.COLD_COMPILE_TIME: (2.0,),
    Metric.COMPILED_LATENCY: (0.010, 0.011),
}


@pytest.mark.parametrize(
    ("act", "role", "expected"),
    [
        pytest.param("segfault", "cold", None, id="cold_before_any_sample"),
        pytest.param("segfault", "warm", COLD_SAMPLES, id="warm_before_any_sample"),
        pytest.param("partial", "cold", {Metric.COLD_COMPILE_TIME: (2.0,)}, id="cold_in_the_middle"),
        pytest.param(
            "partial", "warm", {**COLD_SAMPLES, Metric.WARM_COMPILE_TIME: (0.5,)}, id="warm_in_the_middle"
        ),
        pytest.param("truncated", "warm", COLD_SAMPLES, id="result_that_cannot_be_read"),
    ],
)
def test_failure_keeps_what_was_measured(
    bench: Bench, act: str, role: str, expected: dict[Metric, tuple[float, ...]] | None
) -> None:
    """After a crash of either process the samples from before stay."""
    came = run_trial(bench, make_case(act, roles=[role]), 1)
    assert came.failures != ()
    assert f"in the {role} process" in describe_failure(came.failures[0])
    assert not bench.trial_cache.exists()
    if expected is None:
        assert came.trials == ()
        return
    (trial,) = came.trials
    assert expected == trial.samples
    warning = f"the {role} process failed: this trial is what was measured before"
    assert warning in map(describe_measuring, trial.warnings)


def test_part_of_an_earlier_trial_is_not_taken(bench: Bench) -> None:
    """A process that dies before it writes has no result of an earlier trial."""
    run_trial(bench, make_case(), 1)
    came = run_trial(bench, make_case("silent", roles=["cold"]), 2)
    assert (came.trials, len(came.failures)) == ((), 1)


def test_request_names_what_to_measure(bench: Bench) -> None:
    """The request on disk holds role, case, device, threads and the arm's directory."""
    run_trial(bench, make_case(), 1)
    request = json.loads((bench.scratch / "warm.request.json").read_text(encoding="utf-8"))
    assert tuple(request[key] for key in ("role", "device", "threads", "benchmark_json")) == (
        "warm",
        "cpu",
        1,
        "",
    )
    assert bench.arm.directory == request["directory"]
    assert request["case"]["arguments"] == {"act": "ok"}


def test_full_disk_is_the_machines_fault(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names directory and size, and no trial starts."""
    monkeypatch.setattr(bench_module, "MIN_FREE_BYTES", 2**60)
    with pytest.raises(MachineError, match="MiB free, a trial may need"):
        run_trial(bench, make_case(), 1)
    with pytest.raises(MachineError, match="MiB free"):
        check_disk(bench)
    assert not (bench.settings.out / "logs").exists()


def test_merge_believes_the_cold_process() -> None:
    """Of double values the cold process's count, except a warm compile's cache misses."""
    cold = WorkerResult(
        role=WorkerRole.COLD,
        stage=Stage.DONE,
        samples={Metric.GRAPH_BREAKS: (1.0,), Metric.CACHE_MISSES: (4.0,)},
        identity=CodeIdentity(digest="cold"),
        workload={"outputs": "1"},
        graph_breaks=(GraphBreak(reason="print", location="a.py:1"),),
        phases_s={"inductor": 2.0},
        stages_s={"start": 1.0, "compile": 4.0},
        conditions=Conditions(canaries_s={"matmul": 0.1}, throttled=("heat",)),
        warnings=make_warnings("one"),
    )
    warm = WorkerResult(
        role=WorkerRole.WARM,
        stage=Stage.DONE,
        samples={Metric.GRAPH_BREAKS: (0.0,), Metric.CACHE_MISSES: (2.0,), Metric.DRIFT: (0.1,)},
        identity=CodeIdentity(digest="warm"),
        workload={"outputs": "2", "parameters": "7"},
        phases_s={"inductor": 0.1, "dynamo": 0.2},
        stages_s={"start": 0.5, "compile": 1.0, "drift": 2.0},
        conditions=Conditions(throttled=("heat", "power"), foreign_processes=2),
        warnings=make_warnings("one", "two"),
    )
    disagree = Fact(code=Code.PROCESSES_DISAGREE, names=name_words(subject="outputs"))
    expected = Trial(
        case_id="a/x",
        index=2,
        samples={Metric.GRAPH_BREAKS: (1.0,), Metric.CACHE_MISSES: (2.0,), Metric.DRIFT: (0.1,)},
        identity=CodeIdentity(digest="cold"),
        workload={"outputs": "1", "parameters": "7"},
        graph_breaks=(GraphBreak(reason="print", location="a.py:1"),),
        phases_s={"inductor": 2.0, "dynamo": 0.2},
        stages_s={"start": 1.5, "compile": 5.0, "drift": 2.0},
        overhead_s=3.0,  # 10 s of wall time less 5 s and 2 s
        conditions=Conditions(
            canaries_s={"matmul": 0.1},
            throttled=("heat", "power"),
            foreign_processes=2,
        ),
        warnings=(*make_warnings("one", "two"), disagree),
    )
    assert expected == merge_results(BLANK, cold, warm, WALL_S)


def test_merge_takes_what_only_the_warm_process_has() -> None:
    """An identity that the cold process could not know comes from the warm one."""
    cold = WorkerResult(role=WorkerRole.COLD, stage=Stage.DONE)
    warm = WorkerResult(
        role=WorkerRole.WARM,
        stage=Stage.DONE,
        identity=CodeIdentity(digest="w"),
        recompile_reasons=(SHAPE,),
    )
    trial = merge_results(BLANK, cold, warm, WALL_S)
    assert (trial.identity.digest, trial.recompile_reasons, trial.overhead_s) == ("w", (SHAPE,), 10.0)


@pytest.mark.parametrize(
    ("case_id", "expected"),
    [
        ("bert/inference-float32-smoke-default", "bert/inference-float32-smoke-default"),
        ("../../etc/passwd", "etc/passwd"),
        ("/absolute//x y", "absolute/x_y"),
        ("..", "case"),
    ],
)
def test_case_paths_stay_inside(case_id: str, expected: str) -> None:
    """Any case id names a path below its directory."""
    assert Path(expected) == make_case_path(case_id)


def test_primer_has_its_own_cache(bench: Bench) -> None:
    """Trials only copy it."""
    prime = make_job(bench, WorkerRole.PRIME)
    cold = make_job(bench, WorkerRole.COLD, make_case(), 1)
    assert str(bench.primer_cache / "inductor") == prime.environment["TORCHINDUCTOR_CACHE_DIR"]
    assert str(bench.trial_cache / "inductor") == cold.environment["TORCHINDUCTOR_CACHE_DIR"]
    assert str(bench.trial_cache / "inductor") == cold.request.caches["TORCHINDUCTOR_CACHE_DIR"]
    assert prime.environment["TMPDIR"] == cold.environment["TMPDIR"]


def test_settings_name_the_real_worker(tmp_path: Path) -> None:
    """The default is the gate's worker, which ignores its working directory."""
    assert LabSettings(out=tmp_path).worker == ("-P", "-m", "gate.worker.worker")


def test_a_target_needs_one_process(bench: Bench) -> None:
    """Nothing runs for a target, so a second process would find nothing more."""
    bench = replace(bench, settings=replace(bench.settings, device="cuda:sm_90"))
    (trial,) = run_trial(bench, make_case(), 1).trials
    assert Metric.WARM_COMPILE_TIME not in trial.samples
    assert not list(bench.settings.out.rglob("*-warm.log"))


def test_the_one_process_of_a_target_reports_all() -> None:
    """It keeps a compile's Python calls, which otherwise a warm process counts."""
    cold = WorkerResult(role=WorkerRole.COLD, stage=Stage.DONE, samples={Metric.COMPILE_CALLS: (7.0,)})
    joined = merge_results(BLANK, cold, repeat_samples(cold), WALL_S)
    assert joined.samples == {Metric.COMPILE_CALLS: (7.0,)}


def test_each_arm_of_a_comparison_builds_its_own_extensions(bench: Bench) -> None:
    """They are found by their names alone: a base would load what head has just built."""
    places = {
        (arm.name, arm.checkout): make_job(
            replace(bench, arm=arm), WorkerRole.COLD, make_case()
        ).environment.get("TORCH_EXTENSIONS_DIR", "the user's")
        for arm in (
            bench.arm,
            replace(bench.arm, name="base"),
            replace(bench.arm, checkout="/worktree"),
        )
    }
    assert places[bench.arm.name, ""] == "the user's"
    assert len(set(places.values())) == 3
