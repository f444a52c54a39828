import gc
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gate.errors import FileError
from gate.files.codec import BASELINE, RUN, VERDICT, encode
from gate.metrics import SPECS, Family, MetricSpec, Unit
from gate.records.cases import Case, Metric
from gate.records.codes import Code
from gate.records.facts import make_text
from gate.records.run import FailureKind, Provenance, Run, Trial
from gate.records.verdict import Comparison, Estimate, Outcome, Status, Tally
from tests import make
from tests.hosts import CPU_HOST
from tests.make import make_failure, make_row
from tests.words import make_facts

CASE = Case(id="mlp/inference", model="mlp", factory="a.b:c", arguments={"width": 8})
TRIAL = Trial(case_id=CASE.id, index=0, samples={Metric.COMPILED_LATENCY: (0.1, 0.25)})
FAILURE = make_failure(CASE.id, "too long", kind=FailureKind.HANG)
RUN_RECORD = Run(
    cases=(CASE,), environment=CPU_HOST, provenance=Provenance(), trials=(TRIAL,), failures=(FAILURE,)
)


def make_content(**keys: object) -> dict[str, Any]:
    """Make the plain content of a good run file with some keys replaced."""
    return {"schema": "compile-gate/run/1", **encode(RUN_RECORD), **keys}


def load_error(path: Path, content: object) -> FileError:
    """Load a run that must be refused."""
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(FileError) as caught:
        RUN.load(path)
    assert caught.value.file == str(path)
    assert len(str(caught.value).splitlines()) == 2
    return caught.value


def test_a_saved_run_loads_the_same(tmp_path: Path) -> None:
    """Raw samples survive bit for bit."""
    run = replace(RUN_RECORD, trials=(replace(TRIAL, samples={Metric.DRIFT: (1 / 3, 5e-324, -0.0)}),))
    RUN.save(run, tmp_path / "run.json")
    assert run == RUN.load(tmp_path / "run.json")


def test_a_saved_verdict_loads_the_same(tmp_path: Path) -> None:
    """So does a verdict."""
    verdict = make.make_verdict(
        outcome=Outcome.NOTHING_COMPARED,
        headline=make_facts(Code.REGRESSED_CASE, "all well"),
        failures=(FAILURE,),
        next_steps=make_facts(Code.SETTLE_QUIETLY, "none"),
        provenance=Provenance(commit="abc"),
    )
    VERDICT.save(verdict, tmp_path / "verdict.json")
    assert verdict == VERDICT.load(tmp_path / "verdict.json")


def test_a_run_file_begins_with_its_schema() -> None:
    """A reader sees its kind, and each key of the run has a line."""
    lines = RUN.encode(RUN_RECORD).splitlines()
    assert lines[:2] == ["{", '"schema": "compile-gate/run/1",']
    assert len(lines) == len(encode(RUN_RECORD)) + 3


def test_nan_is_never_written() -> None:
    """A record with NaN is a bug of its maker, not a file for others to stumble over."""
    broken = replace(RUN_RECORD, wall_s=float("nan"))
    with pytest.raises(ValueError, match="not JSON compliant"):
        RUN.encode(broken)


@pytest.mark.parametrize("content", [[], {}, 3, None, {"cases": []}])
def test_a_foreign_file_is_refused(tmp_path: Path, content: object) -> None:
    """JSON without our schema is another kind of file."""
    assert load_error(tmp_path / "x.json", content).problem == "is not a compile-gate run file"


@pytest.mark.parametrize(
    "schema",
    [
        *("compile-gate/verdict/1", "compile-gate/run", "compile-gate/run/0", "compile-gate/run/1\n"),
        *("compile-gate/run/1.1", "run/1", 1),
    ],
)
def test_another_schema_is_refused(tmp_path: Path, schema: object) -> None:
    """A verdict, or a record that only resembles a run, is no run."""
    error = load_error(tmp_path / "x.json", make_content(schema=schema))
    assert error.key == "schema"
    assert error.problem.startswith("expected 'compile-gate/run/1', got ")


@pytest.mark.parametrize(
    ("version", "fix"),
    [
        ("0.7.1", "Install compile-gate 0.7.1 or newer: that wrote the file."),
        ("$(rm)", "Install the newest compile-gate."),
        (None, "Install the newest compile-gate."),
    ],
)
def test_a_newer_file_names_the_version_to_install(tmp_path: Path, version: object, fix: str) -> None:
    """Its provenance has the version; nothing but a version is repeated."""
    content = make_content(schema="compile-gate/run/4", provenance={"gate_version": version}, novelty=1)
    error = load_error(tmp_path / "x.json", content)
    assert (
        error.problem == "is 'compile-gate/run/4', newer than this compile-gate reads ('compile-gate/run/1')"
    )
    assert fix == error.fix


@pytest.mark.parametrize("is_enabled", [True, False])
def test_loading_leaves_the_garbage_collector_as_it_was(tmp_path: Path, is_enabled: bool) -> None:
    """It is paused while a file is parsed, after a failure as after a success."""
    RUN.save(RUN_RECORD, tmp_path / "run.json")
    try:
        if not is_enabled:
            gc.disable()
        RUN.load(tmp_path / "run.json")
        load_error(tmp_path / "x.json", {"schema": "other"})
        assert is_enabled == gc.isenabled()
    finally:
        gc.enable()


def test_a_cut_file_is_refused_at_every_length(tmp_path: Path) -> None:
    """No prefix of a run file is a run."""
    text = RUN.encode(RUN_RECORD).rstrip()
    for length in range(0, len(text), 7):
        (tmp_path / "run.json").write_text(text[:length], encoding="utf-8")
        with pytest.raises(FileError):
            RUN.load(tmp_path / "run.json")


TRIAL_CONTENT = encode(TRIAL)
GONE = encode(replace(FAILURE, case_id="gone/inference"))


@pytest.mark.parametrize(
    ("keys", "key", "problem"),
    [
        ({"cases": [encode(CASE)] * 2}, "cases", "plans a case twice"),
        ({"trials": [TRIAL_CONTENT] * 2}, "trials[1]", "repeats a trial that came before"),
        ({"cases": []}, "trials[0].case_id", "the case 'mlp/inference' is not planned"),
        ({"cases": [], "trials": []}, "failures[0].case_id", "the case 'mlp/inference' is not planned"),
        ({"trials": [{**TRIAL_CONTENT, "arm": "x"}]}, "trials[0].arm", "expected one of base, head, got 'x'"),
        (
            {"shard": {"number": 1, "of": 2, "cases": 0}},
            "shard.cases",
            "0 of all shards, fewer than the 1 of this one",
        ),
        ({"retried": [GONE]}, "retried[0].case_id", "the case 'gone/inference' is not planned"),
    ],
)
def test_a_run_that_contradicts_its_plan_is_refused(
    tmp_path: Path, keys: dict[str, object], key: str, problem: str
) -> None:
    """The comparison with the plan rests on these keys."""
    error = load_error(tmp_path / "x.json", make_content(**keys))
    assert (key, problem) == (error.key, error.problem)


def test_a_run_may_hold_all_of_its_plan_and_a_pair_beside_a_trial() -> None:
    """No shard is larger than the plan, and a pair has numbers of its own."""
    live = {**TRIAL_CONTENT, "pairing": "live"}
    pair = [live, {**live, "arm": "base"}]
    content = make_content(shard={"number": 1, "of": 2, "cases": 1}, trials=[TRIAL_CONTENT, *pair])
    assert len(RUN.decode(json.dumps(content).encode(), "x").trials) == 3
    content = make_content(trials=[*pair, {**live, "pairing": "turns"}])
    with pytest.raises(FileError, match=r"trials\[2\]: repeats a trial"):
        RUN.decode(json.dumps(content).encode(), "x")


@pytest.mark.parametrize(
    ("values", "key", "problem"),
    [
        ((), "trials.drift", "holds no value"),
        ((1.0, 1e9), "trials.drift[1]", "drift is a number from -2100 to 2100, not 1e+09"),
    ],
)
def test_a_baseline_holds_possible_values(values: tuple[float, ...], key: str, problem: str) -> None:
    """At least one of each metric."""
    content = BASELINE.encode(make.make_baseline(CASE.id, {Metric.DRIFT: values})).encode()
    with pytest.raises(FileError) as caught:
        BASELINE.decode(content, "x")
    assert (caught.value.key, caught.value.problem) == (key, problem)
    whole = make.make_baseline(CASE.id, {Metric.DRIFT: (1.0,)})
    assert BASELINE.decode(BASELINE.encode(whole).encode(), "x") == whole


def make_samples(metric: str, *values: float) -> dict[str, object]:
    """Make the key of trials with samples of one metric."""
    return {"trials": [{**TRIAL_CONTENT, "samples": {metric: list(values)}}]}


@pytest.mark.parametrize(
    ("keys", "key", "problem"),
    [
        (
            make_samples("peak_memory", 5.0, -1),
            "trials[0].samples.peak_memory[1]",
            "peak_memory is a number from 0 to 1e+18, not -1",
        ),
        (
            {"trials": [{**TRIAL_CONTENT, "undisturbed_s": {"eager_latency": [0.0, -0.1]}}]},
            "trials[0].undisturbed_s.eager_latency[1]",
            "eager_latency is a number from 0 to 1e+18, not -0.1",
        ),
        (
            make_samples("cold_compile_time", 1e308),
            "trials[0].samples.cold_compile_time[0]",
            "cold_compile_time is a number from 0 to 1e+18, not 1e+308",
        ),
        (
            make_samples("cold_compile_time", 0.0, 5e-324),
            "trials[0].samples.cold_compile_time[1]",
            "cold_compile_time is a number from 0 to 1e+18, not 4.94066e-324",
        ),
        (
            make_samples("cold_compile_time", 0.0, 5e-324, 1.0),
            "trials[0].samples.cold_compile_time[1]",
            "cold_compile_time is a number from 0 to 1e+18, not 4.94066e-324",
        ),
        (
            make_samples("graph_breaks", -7),
            "trials[0].samples.graph_breaks[0]",
            "graph_breaks is a whole number from 0 to 1e+18, not -7",
        ),
        (
            make_samples("graph_breaks", 1, 0.5),
            "trials[0].samples.graph_breaks[1]",
            "graph_breaks is a whole number from 0 to 1e+18, not 0.5",
        ),
        (
            make_samples("graph_breaks", 0, 0.5, 1),
            "trials[0].samples.graph_breaks[1]",
            "graph_breaks is a whole number from 0 to 1e+18, not 0.5",
        ),
        (
            make_samples("drift", -1e9),
            "trials[0].samples.drift[0]",
            "drift is a number from -2100 to 2100, not -1e+09",
        ),
        ({"trials_planned": -2}, "trials_planned", "expected a whole number of at least 0, got -2"),
        (
            {"trials": [{**TRIAL_CONTENT, "index": -1}]},
            "trials[0].index",
            "expected a whole number of at least 0, got -1",
        ),
        (
            {"provenance": {"created": "yesterday"}},
            "provenance.created",
            "expected a time such as 2027-03-31T12:00:00Z, or an empty text, got 'yesterday'",
        ),
        (
            {"trials": [{**TRIAL_CONTENT, "started": "2026-13-01"}]},
            "trials[0].started",
            "expected a time such as 2027-03-31T12:00:00Z, or an empty text, got '2026-13-01'",
        ),
        ({"wall_s": -0.5}, "wall_s", "expected a number of at least 0, got -0.5"),
    ],
)
def test_what_no_measurement_gives_is_refused(
    tmp_path: Path, keys: dict[str, object], key: str, problem: str
) -> None:
    """A value outside of its metric's domain could pass for an improvement."""
    error = load_error(tmp_path / "x.json", make_content(**keys))
    assert (key, problem) == (error.key, error.problem)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (1.5, "device_utilization is a number from 0 to 1, not 1.5"),
        (-0.1, "device_utilization is a number from 0 to 1, not -0.1"),
    ],
)
def test_a_share_above_the_whole_is_refused(tmp_path: Path, value: float, problem: str) -> None:
    """A device cannot run kernels for longer than a call takes."""
    trial = {**TRIAL_CONTENT, "samples": {"device_utilization": [1.0, value]}}
    error = load_error(tmp_path / "x.json", make_content(trials=[trial]))
    assert (error.key, error.problem) == ("trials[0].samples.device_utilization[1]", problem)


@pytest.mark.parametrize("created", ["", "2026-03-04", "2026-03-04T05:06:07Z", "2026-03-04T05:06:07+02:00"])
def test_a_time_may_be_unknown_a_day_or_a_moment(created: str) -> None:
    """As older files and other tools write it."""
    content = make_content(provenance={"created": created})
    assert RUN.decode(json.dumps(content).encode(), "x").provenance.created == created


@pytest.mark.parametrize("spec", SPECS.values(), ids=lambda spec: spec.metric)
def test_every_metric_has_a_domain(spec: MetricSpec) -> None:
    """A count takes no half; only a logarithm is negative; a share is 1 at most."""
    assert spec.domain.holds(1.0)
    assert spec.domain.holds(2.0) is (spec.unit is not Unit.FRACTION)
    assert spec.domain.holds(0.5) is (spec.family is not Family.EXACT)
    assert spec.domain.holds(-0.5) is (spec.family is Family.LOG2)


ROW = make_row(
    CASE.id, Metric.GRAPH_BREAKS, candidate=Estimate(centre=1.0, low=1.0, high=1.0, noise=None, n=3)
)


def make_verdict_content(outcome: Outcome, row: Comparison = ROW, tally: Tally | None = None) -> bytes:
    """Make the content of a verdict of one comparison."""
    verdict = make.make_verdict(
        row,
        outcome=outcome,
        headline=make_facts(Code.REGRESSED_CASE, "1 case worse"),
        cases=(CASE,),
        tally=tally or Tally(),
    )
    return VERDICT.encode(verdict).encode()


@pytest.mark.parametrize(
    ("written", "row", "tally", "expected"),
    [
        (Outcome.PASS, ROW, Tally(), Outcome.REGRESSION),
        (Outcome.REGRESSION, replace(ROW, status=Status.UNCHANGED), Tally(), Outcome.PASS),
        (Outcome.PASS, replace(ROW, status=Status.NEW), Tally(), Outcome.NOTHING_COMPARED),
        (Outcome.PASS, replace(ROW, status=Status.UNCHANGED), Tally(finished=False), Outcome.INCOMPLETE),
    ],
)
def test_an_outcome_that_its_rows_do_not_call_for_is_refused(
    written: Outcome, row: Comparison, tally: Tally, expected: Outcome
) -> None:
    """An edited verdict is not rendered; the same one with its true outcome is read."""
    with pytest.raises(FileError) as caught:
        VERDICT.decode(make_verdict_content(written, row, tally), "verdict.json")
    assert str(caught.value).startswith(
        f"verdict.json: outcome: is {written}, but what was compared makes it {expected}"
    )
    assert VERDICT.decode(make_verdict_content(expected, row, tally), "x").outcome is expected


@pytest.mark.parametrize(
    ("tally", "key", "count"),
    [(Tally(cases=2, comparisons=1), "cases", 2), (Tally(cases=1, comparisons=3), "comparisons", 3)],
)
def test_a_verdict_that_was_cut_is_refused(tally: Tally, key: str, count: int) -> None:
    """Without the removed rows the rest would be green: the verdict has their number."""
    unchanged = replace(ROW, status=Status.UNCHANGED)
    with pytest.raises(FileError) as caught:
        VERDICT.decode(make_verdict_content(Outcome.PASS, unchanged, tally), "verdict.json")
    assert caught.value.args[0] == f"verdict.json: {key}: holds 1, and was written with {count}"
    whole = make_verdict_content(Outcome.PASS, unchanged, Tally(cases=1, comparisons=1))
    assert VERDICT.decode(whole, "x").comparisons == (unchanged,)


def test_a_sentence_in_a_verdict_is_refused() -> None:
    """A file holds facts; the sentences of a report are not its writer's."""
    content = make_verdict_content(Outcome.REGRESSION, replace(ROW, remarks=(make_text("all well"),)))
    with pytest.raises(FileError) as caught:
        VERDICT.decode(content, "verdict.json")
    assert caught.value.key == "comparisons[0].remarks[0]"
    assert "expected a fact that can stand there" in caught.value.problem


def test_a_verdict_with_impossible_values_is_refused() -> None:
    """A half may lie between two counts; less than none may not."""
    half = replace(ROW, candidate=Estimate(centre=0.5, low=0.0, high=1.0, noise=None, n=2))
    assert VERDICT.decode(make_verdict_content(Outcome.REGRESSION, half), "x").comparisons
    less = replace(ROW, candidate=Estimate(centre=-1.0, low=None, high=None, noise=None, n=2))
    with pytest.raises(FileError) as caught:
        VERDICT.decode(make_verdict_content(Outcome.REGRESSION, less), "x")
    assert caught.value.key == "comparisons[0].candidate.centre"
