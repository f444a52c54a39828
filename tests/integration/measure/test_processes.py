"""Workers end to end: real processes, real compiles, tiny models."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gate.kinds import SPECIAL
from gate.metrics import SPECS, Family, Source
from gate.records.cases import Case, DType, Metric, Mode, Task
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.protocol import OPTIONS_FILE, Stage, WorkerResult, WorkerRole
from gate.records.run import FailureKind
from tests.integration.measure.conftest import Workshop

Both = tuple[WorkerResult, WorkerResult]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def make_case(fault: str = "", **changes: Any) -> Case:
    """Return a case of the workshop's model."""
    fields: dict[str, Any] = {"factory": "made_up:build", "arguments": {"fault": fault}, **changes}
    return Case(id=f"layers/{fault or 'healthy'}", model="layers", **fields)


def make_planted_case(fault: str) -> Case:
    """Return a case of the workshop's model with a fault in compiled code alone."""
    arguments = {"factory": "made_up:build", "arguments": {}, "fault": fault}
    planted = {"factory": "gate.selftest.planted:plant", "arguments": arguments}
    return make_case(f"planted_{fault}", **planted, backend="eager")  # what is traced differs


def read_one(result: WorkerResult, metric: Metric) -> float:
    """Return a metric's only sample."""
    (value,) = result.samples[metric]
    return value


def pick_counts(result: WorkerResult) -> dict[Metric, tuple[float, ...]]:
    """Pick the counts, which cannot differ between two processes."""
    return {
        metric: values for metric, values in result.samples.items() if SPECS[metric].family is Family.EXACT
    }


def find_headers(workshop: Workshop) -> dict[str, int]:
    """The precompiled headers of a run, with their times of change."""
    return {path.name: path.stat().st_mtime_ns for path in workshop.temporary.rglob("*.gch")}


@pytest.fixture(scope="module")
def healthy(workshop: Workshop) -> Both:
    """The results of both processes of the healthy model, and pytest-benchmark's file in healthy.json."""
    results = workshop.measure_both(make_case())
    shutil.copy(workshop.directory / "benchmark.json", workshop.directory / "healthy.json")
    return results


def test_primer_leaves_toolchain_files_only(project: Path, primer: Path) -> None:
    """The primer's caches hold what the instruction-set probe left, the options, and no compiled graph."""
    left = {path.suffix for path in primer.rglob("*") if path.is_file() and path.name != OPTIONS_FILE}
    assert left <= {".cpp", ".so", ".lock", ".o", ".isas", ".load_ok"}
    names = {path.name for path in primer.rglob("*") if path.is_dir()}
    assert names.isdisjoint({"fxgraph", "aotautograd"})
    assert list((project / "tmp").rglob("*.h.gch"))


def test_both_processes_finish(healthy: Both) -> None:
    """Between them they measure every metric of inference that is not derived and exists on a CPU."""
    cold, warm = healthy
    assert (Stage.DONE, Stage.DONE, None, None) == (cold.stage, warm.stage, cold.failure, warm.failure)
    expected = {
        metric
        for metric, spec in SPECS.items()
        if not spec.is_gpu_only
        and spec.source is not Source.DERIVED
        and metric not in {*SPECIAL, Metric.DRIFT_STEPS}
    }
    assert {*cold.samples, *warm.samples} == expected
    assert {Metric.COMPILED_LATENCY, Metric.DRIFT, Metric.FLOPS} <= expected


def test_counters_of_a_healthy_model(healthy: Both) -> None:
    """One graph of four operations (linear, gelu, linear, relu), no breaks, nothing left to eager."""
    cold, warm = healthy
    counts = {
        Metric.UNIQUE_GRAPHS: 1,
        Metric.CAPTURED_OPS: 4,
        Metric.GRAPH_BREAKS: 0,
        Metric.RECOMPILES: 0,
        Metric.EAGER_FALLBACKS: 0,
        Metric.CUDAGRAPH_SKIPS: 0,
    }
    assert counts == {metric: read_one(cold, metric) for metric in counts}
    assert read_one(warm, Metric.CACHE_MISSES) == 0
    assert read_one(cold, Metric.GENERATED_KERNELS) == len(cold.identity.kernels)
    assert abs(read_one(warm, Metric.DRIFT)) < 0.5


def test_latencies_are_paired_and_in_the_benchmark_file(project: Path, healthy: Both) -> None:
    """Three super-blocks give six pairs; pytest-benchmark's own file has the same numbers."""
    cold, _ = healthy
    written = json.loads((project / "healthy.json").read_text())["benchmarks"]
    rows = {row["extra_info"]["arm"]: row for row in written}
    assert {"layers/healthy"} == {row["group"] for row in written}
    assert list(cold.samples[Metric.EAGER_LATENCY]) == rows["eager"]["stats"]["data"]
    assert list(cold.samples[Metric.COMPILED_LATENCY]) == rows["compiled"]["stats"]["data"]
    assert len(rows["eager"]["stats"]["data"]) == 6


def test_what_workers_believe_changes_no_code(workshop: Workshop, healthy: Both) -> None:
    """A worker that probes instruction sets itself generates the same kernels as one that does not.

    It finds the primer's precompiled header.
    """
    headers = find_headers(workshop)
    workshop.seed_cache()
    (workshop.cache / "inductor" / "all.isas").unlink()
    cold = workshop.run(WorkerRole.COLD, make_case())
    assert cold.identity == healthy[0].identity
    assert read_one(cold, Metric.GENERATED_KERNELS) == read_one(healthy[0], Metric.GENERATED_KERNELS)
    assert find_headers(workshop) == headers != {}


def test_fresh_processes_find_what_forked_ones_did(workshop: Workshop, healthy: Both) -> None:
    """Another trial has the same code, drift and counts, and all but the same calls and memory.

    In a forked process nothing is imported.
    """
    fresh = workshop.measure_both(make_case(), is_forked=False)
    for ours, theirs in zip(fresh, healthy, strict=True):
        assert ours.identity == theirs.identity
        assert pick_counts(ours) == pick_counts(theirs) != {}
        assert ours.samples.keys() == theirs.samples.keys()
        assert theirs.stages_s[Stage.IMPORT] < 0.5 * ours.stages_s[Stage.IMPORT]
    warm, before = fresh[1], healthy[1]
    assert warm.workload == before.workload
    assert read_one(warm, Metric.DRIFT) == read_one(before, Metric.DRIFT)
    assert read_one(warm, Metric.MEMORY_RATIO) == read_one(before, Metric.MEMORY_RATIO)
    calls = read_one(warm, Metric.COMPILE_CALLS), read_one(before, Metric.COMPILE_CALLS)
    assert calls[0] == pytest.approx(calls[1], rel=0.02)
    peaks = read_one(warm, Metric.PEAK_MEMORY), read_one(before, Metric.PEAK_MEMORY)
    assert peaks[0] == pytest.approx(peaks[1], abs=2 * 2**20)


def test_graph_break_is_located(project: Path, workshop: Workshop) -> None:
    """A planted break is counted once, with the user's file and line."""
    cold = workshop.measure_cold(make_case("break", backend="eager"))
    line = (project / "made_up.py").read_text().splitlines().index("            torch._dynamo.graph_break()")
    assert read_one(cold, Metric.GRAPH_BREAKS) == 1
    assert [f"made_up.py:{line + 1}"] == [graph_break.location for graph_break in cold.graph_breaks]
    assert "torch._dynamo.graph_break()" in cold.graph_breaks[0].reason
    assert cold.graph_breaks[0].registry == "GB0025"
    assert cold.workload["nested_graph_breaks"] == "off"  # torch 2.13's default


def test_recompiles_are_counted_with_reasons(project: Path, workshop: Workshop) -> None:
    """A value that changes over the first calls compiles anew until it settles; the reason has its line."""
    cold = workshop.measure_cold(make_case("recompile", backend="eager"))
    assert cold.failure is None
    assert read_one(cold, Metric.RECOMPILES) >= 3
    recompile = next(
        recompile for recompile in cold.recompile_reasons if recompile.guard.startswith("self.calls == ")
    )
    assert (recompile.code, recompile.function) == ("self.calls += 1", "forward")
    lines = (project / "made_up.py").read_text().splitlines()
    assert recompile.location == f"made_up.py:{lines.index('            self.calls += 1') + 1}"


@pytest.mark.parametrize(
    ("factory", "backend"),
    [
        pytest.param("build_lstm", "inductor", id="a module that Dynamo skips"),
        pytest.param("build_text", "inductor", id="no tensors at all"),
        pytest.param("build_disabled", "eager", id="Dynamo disabled"),
    ],
)
def test_nothing_compiled_is_a_failure(workshop: Workshop, factory: str, backend: str) -> None:
    """A case that ran eagerly on both sides fails in the compile; no figure of it is kept."""
    cold = workshop.measure_cold(make_case(factory=f"made_up:{factory}", arguments={}, backend=backend))
    assert cold.failure is not None
    assert cold.stage == Stage.COMPILE
    assert cold.failure.fact.name("message").startswith("nothing was compiled, 0 graphs: ")
    assert {} == cold.samples


@pytest.mark.parametrize(
    ("changes", "kernels"),
    [
        pytest.param({"mode": Mode.MAX_AUTOTUNE_NO_CUDAGRAPHS}, True, id="mode"),
        pytest.param({"backend": "aot_eager"}, False, id="aot_eager"),
        pytest.param({"backend": "eager"}, False, id="eager"),
    ],
)
def test_other_ways_to_compile(workshop: Workshop, changes: dict[str, Any], kernels: bool) -> None:
    """Every mode and backend is measured; a backend that generates no code has graphs and no kernels."""
    cold = workshop.measure_cold(make_case(**changes))
    assert (cold.failure, read_one(cold, Metric.UNIQUE_GRAPHS)) == (None, 1)
    assert bool(read_one(cold, Metric.GENERATED_KERNELS)) is kernels


def test_float16_with_fullgraph_and_options(workshop: Workshop) -> None:
    """Drift in half precision is compared with float64 too."""
    case = make_case(dtype=DType.FLOAT16, fullgraph=True, options={"max_autotune": False})
    warm = workshop.measure_warm(case)
    assert warm.failure is None
    assert "float16[32, 64]" in warm.workload["outputs"]
    assert abs(read_one(warm, Metric.DRIFT)) < 1


def test_an_order_that_follows_the_hash_seed_misses_the_caches(workshop: Workshop) -> None:
    """The second process iterates a set of strings in another order, and so compiles another graph."""
    _, warm = workshop.measure_both(make_case("order"))
    assert read_one(warm, Metric.CACHE_MISSES) >= 1
    assert Fact(code=Code.GRAPH_DIFFERS) in warm.warnings


@pytest.mark.parametrize(
    ("case", "message"),
    [
        pytest.param(make_case("break", fullgraph=True), "Unsupported: ", id="graph break"),
        pytest.param(
            make_case(options={"no_such": 1}), "Unexpected optimization option no_such", id="option"
        ),
        pytest.param(make_case(backend="no_such"), "InvalidBackend", id="backend"),
    ],
)
def test_what_torch_refuses_fails_in_the_compile(workshop: Workshop, case: Case, message: str) -> None:
    """A graph break under fullgraph, or an unknown option, fails with torch's own message."""
    cold = workshop.measure_cold(case)
    assert cold.failure is not None
    assert (cold.failure.kind, cold.stage) == (FailureKind.ERROR, Stage.COMPILE)
    assert message in cold.failure.fact.name("message")


def test_bfloat16_training_step(workshop: Workshop) -> None:
    """Gradients are compared, and the float32 twin is compiled for the second drift."""
    cold, warm = workshop.measure_both(make_case(task=Task.TRAINING, dtype=DType.BFLOAT16))
    assert (cold.failure, warm.failure) == (None, None)
    assert read_one(warm, Metric.CACHE_MISSES) == 0
    assert abs(read_one(warm, Metric.DRIFT)) < 1
    assert abs(read_one(warm, Metric.DRIFT_FLOAT32)) < 1
    assert abs(read_one(warm, Metric.DRIFT_STEPS)) < 1


def test_downcast_is_seen_in_drift(workshop: Workshop, healthy: Both) -> None:
    """A compiled program that rounds to bfloat16 on the way has many times eager's error."""
    warm = workshop.measure_warm(make_planted_case("low_precision"))
    assert read_one(warm, Metric.DRIFT) > read_one(healthy[1], Metric.DRIFT) + 5


def test_nan_in_compiled_code_only(workshop: Workshop) -> None:
    """A case whose compiled output is not finite fails in the drift stage, naming output and side."""
    warm = workshop.measure_warm(make_planted_case("not_a_number"))
    assert warm.failure is not None
    assert (FailureKind.NOT_FINITE, Stage.DRIFT) == (warm.failure.kind, warm.stage)
    assert "output of the compiled call" in warm.failure.fact.name("message")


@pytest.mark.parametrize(
    ("source", "stage", "message"),
    [
        pytest.param(
            "def build():\n    raise OSError('no data set\\nsecond line')",
            Stage.BUILD,
            "OSError: no data set",
            id="factory raises",
        ),
        pytest.param(
            "import no_such_module_at_all",
            Stage.IMPORT,
            "ModuleNotFoundError: No module named 'no_such_module_at_all'",
            id="module cannot be imported",
        ),
    ],
)
def test_broken_factory_is_a_failure(
    project: Path, workshop: Workshop, source: str, stage: Stage, message: str
) -> None:
    """The result has the stage and the traceback; the process ends well."""
    module = f"broken_{stage}"  # what has been imported once stays as it was for the whole run
    (project / f"{module}.py").write_text(source + "\n")
    cold = workshop.measure_cold(make_case(factory=f"{module}:build", arguments={}))
    assert cold.failure is not None
    assert (stage, FailureKind.ERROR, message) == (
        cold.stage,
        cold.failure.kind,
        cold.failure.fact.name("message"),
    )
    assert "Traceback" in cold.failure.traceback


def test_users_own_test(project: Path, workshop: Workshop) -> None:
    """A user's test is measured like a registry model, in its project with its conftest."""
    (project / "conftest.py").write_text("import pytest\n\n@pytest.fixture\ndef width():\n    return 16\n")
    everyday = "--benchmark-disable -n 2 --cov=. -m 'not slow' -p no:cacheprovider"
    (project / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = error\naddopts = {everyday}\n")
    (project / "test_mine.py").write_text(
        "import torch\n\n"
        "def test_mine(compile_benchmark, width):\n"
        "    compile_benchmark(torch.nn.Linear(width, width), torch.randn(4, width))\n"
    )
    case = Case(id="mine/test", model="mine", node="test_mine.py::test_mine")
    cold, warm = workshop.measure_both(case)
    assert (cold.failure, warm.failure) == (None, None)
    assert read_one(cold, Metric.UNIQUE_GRAPHS) == 1
    assert {Metric.DRIFT, Metric.PEAK_MEMORY, Metric.COMPILE_CALLS} <= warm.samples.keys()


def test_trace_of_a_process_that_imports_torch_itself_is_complete(workshop: Workshop) -> None:
    """It holds graphs, code and figures, and nothing is measured."""
    workshop.seed_cache()
    written = workshop.directory / "trace"
    result = workshop.run(WorkerRole.TRACE, make_case(), is_forked=False, TORCH_TRACE=str(written))
    assert (result.stage, result.failure, result.samples) == (Stage.DONE, None, {})
    (path,) = written.glob("*.log")
    text = path.read_text()
    assert all(
        f'"{name}"' in text for name in ("dynamo_output_graph", "inductor_output_code", "compilation_metrics")
    )
