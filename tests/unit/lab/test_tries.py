"""Cases that are tried and not measured."""

from dataclasses import replace

import pytest

from gate.errors import NothingComparedError
from gate.lab.trials import bench as bench_module
from gate.lab.trials.availability import refuse_base, try_imports, try_in_worker
from gate.lab.trials.bench import Bench
from gate.lab.workers.worker import WorkerJob
from gate.records.cases import Kind
from gate.records.protocol import Stage, WorkerFailure, WorkerResult, WorkerRole
from gate.records.run import FailureKind
from tests.words import make_raised

from .conftest import make_case


def test_case_that_can_be_called_is_no_failure(bench: Bench) -> None:
    """Only its log is left."""
    assert try_in_worker(bench, make_case("ok")) is None
    assert not bench.trial_cache.exists()
    assert (bench.settings.out / "logs" / "actor" / "inference-float32-smoke-default" / "0-try.log").exists()


def test_case_that_raises_or_crashes_is_a_failure(bench: Bench) -> None:
    """Each has its kind, and later cases are tried in their own processes."""
    kinds = []
    for act in ("error", "segfault"):
        failure = try_in_worker(bench, make_case(act, roles=["try"]))
        assert failure is not None
        kinds.append(failure.kind)
    assert kinds == [FailureKind.ERROR, FailureKind.CRASH]


def test_a_factory_that_fails_next_to_another_is_tried_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both modules import ``helpers`` from a path that each adds: a trial has one of them."""
    asked: list[tuple[str, ...]] = []

    def run(job: WorkerJob) -> WorkerResult:
        asked.append(job.request.factories)
        failure = WorkerFailure(kind=FailureKind.ERROR, fact=make_raised("No module named 'helpers'"))
        failed = [
            name for name in job.request.factories if name == "gone:build" or len(job.request.factories) > 1
        ]
        return WorkerResult(
            role=WorkerRole.IMPORT, stage=Stage.DONE, unimportable=dict.fromkeys(failed[-2:], failure)
        )

    cases = [replace(make_case(name=name), factory=f"{name}:build") for name in ("first", "second", "gone")]
    monkeypatch.setattr(bench_module, "run_worker", run)
    failures = try_imports(bench, cases)
    assert asked == [("first:build", "second:build", "gone:build"), ("second:build",), ("gone:build",)]
    assert [failure.case_id for failure in failures] == [cases[2].id]


def test_what_cannot_be_built_without_memory_is_built_in_earnest(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the warm-up, alone, and once for a factory with the same arguments."""
    asked: list[tuple[str, ...]] = []

    def run(job: WorkerJob) -> WorkerResult:
        builds, factories = job.request.builds, job.request.factories
        asked.append((*factories, *(case.model for case in builds)))
        failure = WorkerFailure(kind=FailureKind.ERROR, fact=make_raised("no such width"))
        unbuilt = {"wrong", "values"} if factories else {"wrong"}
        failed = [case.id for case in builds if case.model in unbuilt]
        return WorkerResult(
            role=WorkerRole.IMPORT, stage=Stage.DONE, unimportable=dict.fromkeys(failed, failure)
        )

    monkeypatch.setattr(bench_module, "run_worker", run)
    cases = [
        replace(make_case(), id=f"{name}/{task}", model=name, factory="mine:build", arguments={"name": name})
        for name in ("good", "values", "wrong")
        for task in ("inference", "training")
    ]
    other = replace(cases[4], id="wrong/export", kind=Kind.EXPORT)
    failures = try_imports(bench, [*cases, other])
    assert asked == [("mine:build", "good", "values", "wrong"), ("values",), ("wrong",)]
    assert [failure.case_id for failure in failures] == ["wrong/inference", "wrong/training", "wrong/export"]
    assert {failure.stage for failure in failures} == {Stage.BUILD}


def test_a_base_that_can_build_no_case_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before head is measured for minutes; a base that builds one case is measured."""
    failure = WorkerFailure(kind=FailureKind.ERROR, fact=make_raised("No module named 'helpers'"))
    result = WorkerResult(role=WorkerRole.IMPORT, stage=Stage.DONE, unimportable={"gone:build": failure})
    monkeypatch.setattr(bench_module, "run_worker", lambda _: result)
    gone, good = (replace(make_case(name=name), factory=f"{name}:build") for name in ("gone", "good"))
    refuse_base(bench, [gone, good])
    with pytest.raises(NothingComparedError, match="No module named 'helpers'"):
        refuse_base(bench, [gone])
