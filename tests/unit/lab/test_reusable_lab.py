"""One lab for many comparisons: what stays, what goes, and that each interpreter is primed once."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gate.bisect import points
from gate.bisect.points import ReusableLab
from gate.decide.suspects import Suspect
from gate.lab.trials.bench import Bench
from gate.lab.trials.opening import Lab
from gate.lab.trials.pairs import get_side_cache
from gate.lab.trials.runs import describe_base, make_measurer, make_run
from gate.lab.workers.server_pool import ServerPool
from gate.records.cases import Case, Metric
from gate.records.run import Arm, Environment, Provenance, Run
from tests.hosts import CPU_HOST

from .conftest import make_case, make_lab

LATENCY = frozenset({Metric.COMPILED_LATENCY})


def open_reusable_lab(bench: Bench) -> ReusableLab:
    """A lab whose own arm is a good commit's."""
    good = replace(bench, arm=replace(bench.arm, name="base"))
    return ReusableLab(lab=make_lab(good, toolchain_s=3.0))


def measure_one(lab: Lab, cases: Sequence[Case]) -> Run:
    """One light pair of the only case."""
    run = make_run(lab, cases, "all", 0)
    run = replace(run, base=describe_base(lab, "good", Provenance(), cases))
    measurer = make_measurer(lab, lambda _: None)
    need = Suspect(case_id=cases[0].id, metrics=LATENCY, more=1, unchanged_code=True)
    return measurer.add_pairs(run, (need,), float("inf"))


def test_the_second_comparison_begins_with_the_caches_of_the_first(bench: Bench) -> None:
    """The first pair compiles into empty caches; the next commit's reuses the good end's.

    The seconds of the toolchain count in the first run alone.
    """
    case, reusable_lab = make_case("turns", roles=["rounds"]), open_reusable_lab(bench)
    good, head = reusable_lab.lab.bench.arm, bench.arm
    cached, toolchain_s, scratches = [], [], []
    for name in ("first", "second"):
        out = bench.settings.out / name
        with reusable_lab.open_pairs(good, head, out, [case]) as lab:
            run = measure_one(lab, [case])
            caches = [get_side_cache(arm, case) for arm in (lab.base, lab.bench)]
            cached.append([(cache / "code.so").is_file() for cache in caches])
            (caches[0] / "code.so").write_text("compiled", encoding="utf-8")
            scratches.append(lab.bench.scratch)
        toolchain_s.append(run.toolchain_s)
    assert cached == [[False, False], [True, True]]
    assert toolchain_s == [3.0, 0.0]
    assert not any(path.exists() for path in scratches)
    assert (bench.scratch / "own").is_dir()


def test_an_interpreter_is_primed_once(bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The lab's own before it opens, another one in its first comparison."""
    primed: list[str] = []

    def prime(other: Bench) -> Environment:
        primed.append(Path(other.arm.python).name)
        return replace(CPU_HOST, torch="9.9")

    monkeypatch.setattr(points, "prime_bench", prime)
    other = tmp_path / "other-python"
    other.symlink_to(sys.executable)
    reusable_lab = open_reusable_lab(bench)
    good, head = reusable_lab.lab.bench.arm, replace(bench.arm, python=str(other))
    for _ in range(2):
        with reusable_lab.open_pairs(good, head, bench.settings.out, [make_case()]) as lab:
            torches = (lab.base_environment.torch, lab.environment.torch)
        assert torches == (CPU_HOST.torch, "9.9")
    assert primed == ["other-python"]


def test_only_the_arm_that_goes_loses_its_servers(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both arms are of a lab with servers."""
    dropped: list[Arm] = []
    monkeypatch.setattr(ServerPool, "drop", lambda _self, arm: dropped.append(arm))
    reusable_lab = open_reusable_lab(replace(bench, pool=ServerPool()))
    with reusable_lab.open_pairs(reusable_lab.lab.bench.arm, bench.arm, bench.settings.out, [make_case()]):
        assert not dropped
    assert dropped == [bench.arm]
