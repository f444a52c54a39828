"""The whole: that trials, pairs and planted faults on this device give what the gate expects."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from gate.contact.assumptions import CUDA, Place, assume
from gate.contact.findings import AssumptionResult, claim, expect_range, find_memory_speed, tell
from gate.decide.evidence.shown import part_phases
from gate.files.codec import load_run
from gate.files.entry import VERSION
from gate.project.config import DEFAULT_FILE
from gate.records.metric import Metric
from gate.records.run import Pairing, Run, Trial
from gate.report.words.failures import describe_failure
from gate.report.words.measuring import describe_measuring

# Milliseconds of an H100: eager and compiled, lowest and highest. Elementwise follows from bytes at 3 TB/s
# (76 passes of 268 MB eagerly, 3 fused), the others from operations and bytes to a factor of two. By its
# memory an H200 is up to 1.4 times as fast.
_EXPECTED_MS = {
    "elementwise/inference-float32-full-default": ((6.0, 9.5), (0.25, 0.40)),
    "elementwise/inference-bfloat16-full-default": ((3.0, 5.0), (0.12, 0.22)),
    "stencil/inference-float32-full-default": ((5.0, 10.0), (0.4, 2.0)),
    "resnet50/inference-bfloat16-full-default": ((4.0, 12.0), (2.5, 8.0)),
    "bert/training-bfloat16-full-default": ((12.0, 35.0), (8.0, 25.0)),
}
# Seconds of a serial cold compile beside a host of 16 cores: tracing, and 0.4 s for each of Triton's
# configurations.
_COLD_S = {
    "elementwise/inference-float32-full-default": (3.0, 10.0),
    "elementwise/inference-bfloat16-full-default": (3.0, 10.0),
    "resnet50/inference-bfloat16-full-default": (25.0, 60.0),
    "bert/training-bfloat16-full-default": (30.0, 90.0),
}
_SMALL = "elementwise/inference-bfloat16-smoke-default"
_MOST_SPREAD = 0.03
_DRIFT = (-6.0, 1.0)  # log2: what is better than eager refutes nothing
_TESTS = Path("tests/gpu")
_PASSED, _FAILED = 0, 1  # what pytest exits with once tests have run
_STARTING_S = 20  # that an assumption may take beside its command


def _run_gate(place: Place, folder: str, limit_s: float, *arguments: str) -> int:
    """Run a command of the gate on the device; its log and what it wrote go into the bundle.

    The cases are the gate's own: what the user's gate.yml says of them is not asked here.
    """
    out, config = place.out / folder, place.out / DEFAULT_FILE
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    place.keep(DEFAULT_FILE, f"version: {VERSION}\n")
    options = ("--config", str(config), "--device", place.name, "--quiet", "--out", str(out))
    with (out / "command.log").open("w") as log:
        return subprocess.run(
            (sys.executable, "-P", "-m", "gate", *arguments, *options),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=limit_s,
        ).returncode


def _read_run(place: Place, folder: str) -> Run:
    return load_run(place.out / folder / "run.json")


def _median(trial: Trial, metric: Metric) -> float:
    values = trial.samples.get(metric, ())
    return statistics.median(values) if values else float("nan")


@assume(limit_s=200, alone=True)
def a_small_trial_is_whole(place: Place) -> dict[str, AssumptionResult]:
    """A trial of the smallest case is measured without a failure, a fallback, a cache miss or a stranger."""
    status = _run_gate(place, "small", 180, "measure", "--select", _SMALL, "--trials", "1")
    return {"status": expect_range(status, 0, 0), **_judge_trials(_read_run(place, "small"))}


@assume(CUDA, limit_s=400 + _STARTING_S, alone=True)
def pairs_of_one_program_are_live_and_alike(place: Place) -> dict[str, AssumptionResult]:
    """Both arms fit on the device at once, see no stranger, generate one code, compile in as many calls."""
    once = ("--trials", "1", "--pairs", "2", "--anyway")
    _run_gate(place, "alike", 400, "calibrate", "--select", _SMALL, *once)
    run = _read_run(place, "alike")
    paired = [trial for trial in run.trials if trial.pairing is Pairing.LIVE]
    strangers = max((trial.conditions.foreign_processes for trial in paired), default=0)
    digests = {trial.identity.digest for trial in run.trials if trial.identity.digest}
    calls = [
        _median(trial, Metric.COMPILE_CALLS)
        for trial in run.trials
        if trial.samples.get(Metric.COMPILE_CALLS)
    ]
    spread = (max(calls) - min(calls)) / min(calls) if calls else float("nan")
    return {
        "live trials": expect_range(len(paired), 4, 4),
        "strangers": expect_range(strangers, 0, 0),
        "codes": expect_range(len(digests), 1, 1),
        "spread of calls": expect_range(spread, 0.0, 0.01),
    }


@assume(CUDA, limit_s=580 + _STARTING_S, alone=True)
def full_trials_take_what_physics_says(place: Place) -> dict[str, AssumptionResult]:
    """Five cases at full size take what bytes and operations make one expect of an H100 or H200."""
    status = _run_gate(place, "full", 580, "measure", "--select", ",".join(_EXPECTED_MS), "--trials", "1")
    run = _read_run(place, "full")
    times = dict(_judge_times(run.trials, run.environment.device_model))
    return {"status": expect_range(status, 0, 0), **_judge_trials(run), **times}


def _judge_trials(run: Run) -> dict[str, AssumptionResult]:
    found = {
        one.case_id: claim(holds=False, found=f"{one.kind}: {describe_failure(one)}") for one in run.failures
    }
    for trial in run.trials:
        name, compiled = trial.case_id, trial.samples.get(Metric.COMPILED_LATENCY, ())
        found[f"{name} fallbacks"] = expect_range(_median(trial, Metric.EAGER_FALLBACKS), 0, 0)
        found[f"{name} cache misses"] = expect_range(_median(trial, Metric.CACHE_MISSES), 0, 0)
        found[f"{name} drift"] = expect_range(_median(trial, Metric.DRIFT), *_DRIFT)
        found[f"{name} spread of blocks"] = expect_range(
            statistics.stdev(compiled) / statistics.mean(compiled), 0, _MOST_SPREAD
        )
        seen = (*trial.conditions.disturbances, *map(describe_measuring, trial.warnings))
        calm = not trial.conditions.disturbances
        found[f"{name} disturbances"] = claim(calm, ", ".join(map(str, seen)) or "none")
        if run.environment.device_kind == CUDA:
            found[f"{name} launches"] = claim(
                Metric.LAUNCHES in trial.samples, f"{_median(trial, Metric.LAUNCHES):g}"
            )
        found[f"{name} stages"] = tell(_list_seconds(trial.stages_s))
        found[f"{name} phases"] = tell(_list_seconds(part_phases(trial.phases_s)))
        found[f"{name} caches"] = tell({cache: asdict(use) for cache, use in trial.caches.items()})
    return found


def _list_seconds(parts_s: Mapping[str, float]) -> str:
    return f"{', '.join(f'{part} {seconds:.1f}' for part, seconds in parts_s.items())} s"


def _judge_times(trials: Iterable[Trial], model: str) -> Iterable[tuple[str, AssumptionResult]]:
    faster = find_memory_speed(model)
    for trial in trials:
        metrics = (Metric.EAGER_LATENCY, Metric.COMPILED_LATENCY)
        for metric, (low, high) in zip(metrics, _EXPECTED_MS[trial.case_id], strict=True):
            value_ms = 1e3 * _median(trial, metric)
            judged = (
                expect_range(value_ms, low / faster, high, "ms") if faster else tell(f"{value_ms:.3g} ms")
            )
            yield f"{trial.case_id} {metric}", judged
        cold_s, usual_s = _median(trial, Metric.COLD_COMPILE_TIME), _COLD_S.get(trial.case_id)
        judged = expect_range(cold_s, *usual_s, "s") if faster and usual_s else tell(f"{cold_s:.3g} s")
        yield f"{trial.case_id} {Metric.COLD_COMPILE_TIME}", judged


@assume(CUDA, limit_s=400 + _STARTING_S, alone=True)
def planted_faults_are_caught(place: Place) -> dict[str, AssumptionResult]:
    """A selftest catches every exact fault and a slowdown of 30 %."""
    status = _run_gate(place, "selftest", 400, "selftest", "--select", _SMALL, "--quick", "--minutes", "5")
    log = (place.out / Path("selftest") / "command.log").read_text()
    return {"status": expect_range(status, 0, 0), "said": tell(log.strip().splitlines()[-1:])}


@assume(CUDA, limit_s=300)
def the_tests_of_a_gpu_pass(place: Place) -> AssumptionResult:
    """tests/gpu passes, where this is asked in a checkout that has what tests need."""
    if not _TESTS.is_dir():
        return tell("this is no checkout")
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(_TESTS))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=290)
    place.keep("tests-gpu.log", f"{done.stdout}{done.stderr}")
    last = " ".join(done.stdout.strip().splitlines()[-1:]) or done.stderr.strip()[-100:]
    if done.returncode not in (_PASSED, _FAILED):
        return tell(f"they do not run here: {last}")
    return claim(done.returncode == _PASSED, last)
