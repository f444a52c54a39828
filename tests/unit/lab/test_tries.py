"""Cases that are tried and not measured."""

from __future__ import annotations

from collections.abc import Callable

from gate.lab.trials.trials import Bench
from gate.lab.trials.tries import try_in_worker
from gate.records import Case, FailureKind

MakeCase = Callable[..., Case]


def test_case_that_can_be_called_is_no_failure(bench: Bench, make_case: MakeCase) -> None:
    """Nothing is left of it but its log."""
    assert try_in_worker(bench, make_case("ok")) is None
    assert not bench.trial_cache.exists()
    assert (bench.settings.out / "logs" / "actor" / "inference-float32-smoke-default" / "0-try.log").exists()


def test_case_that_raises_or_crashes_is_a_failure(bench: Bench, make_case: MakeCase) -> None:
    """Each with its kind: the cases after it are tried all the same, in processes of their own."""
    kinds = []
    for act in ("error", "segfault"):
        failure = try_in_worker(bench, make_case(act, roles=["try"]))
        assert failure is not None
        kinds.append(failure.kind)
    assert kinds == [FailureKind.ERROR, FailureKind.CRASH]
