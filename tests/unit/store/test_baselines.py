import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gate.decide.evidence.baseline import make_baselines
from gate.errors import FileError, IncompleteError, MachineError, UsageError
from gate.fingerprint import compute_environment_id
from gate.metrics import SPECS, Role, Source
from gate.records.cases import Case, Metric, Override, Policy
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Baseline, CodeIdentity, Extent, GraphBreak, Provenance, Run, Trial
from gate.report.words.steps import describe_hidden
from gate.store.baselines import (
    ProposalKind,
    SetbackError,
    check_refresh,
    check_whole,
    encode_baseline,
    load_baselines,
    load_placed,
    propose_baselines,
    save_baselines,
)
from tests import make
from tests.hosts import CPU_HOST
from tests.make import make_failure, make_run
from tests.users import act_as_ordinary_user

ENVIRONMENT_ID = compute_environment_id(CPU_HOST)
PROVENANCE = Provenance(commit="abc", created="2026-03-04T05:06:07Z", gate_version="0.1.0")
CASE = Case(id="mlp/inference-float32-smoke-default", model="mlp", definition="d1")
OTHER = Case(id="vit/inference-float32-smoke-default", model="vit", definition="d2")
POLICY = Policy(thresholds={})
OLD = Path("old.json")
IDENTITY = CodeIdentity(digest="f00", kernels={"k": "1"})


def make_trial(index: int, case: Case = CASE, **samples: float) -> Trial:
    """Make a trial with one sample a metric."""
    return make.make_trial(case.id, {Metric(name): value for name, value in samples.items()}, index)


def make_baseline(case_id: str = CASE.id, /, **trials: float) -> Baseline:
    """Make a baseline with three equal trials."""
    return make.make_baseline(
        case_id, {Metric(name): (value,) * 3 for name, value in trials.items()}, provenance=PROVENANCE
    )


def test_parts_of_a_trial_are_no_baseline() -> None:
    """A check that measured latencies again has one whole trial, too few for a refresh."""
    light = [replace(make_trial(index, compiled_latency=2.0), extent=Extent.COLD) for index in (2, 3)]
    run = make_run(make_trial(1, compiled_latency=1.0, cold_compile_time=9.0), *light)
    (baseline,) = make_baselines(run, PROVENANCE)
    assert baseline.trials == {Metric.COMPILED_LATENCY: (1.0,), Metric.COLD_COMPILE_TIME: (9.0,)}
    with pytest.raises(IncompleteError, match=r"smoke-default \(1 of 3 trials\)"):
        check_refresh(run)


def test_a_baseline_from_before_there_were_phases_loads(tmp_path: Path) -> None:
    """An optional key needs no new version of the file."""
    old = json.loads(encode_baseline(make_baseline(drift=0.1)))
    del old["phases_s"]
    (tmp_path / "old.json").write_text(json.dumps(old))
    (loaded,) = load_baselines(tmp_path)
    assert loaded == make_baseline(drift=0.1)


def test_a_refresh_needs_every_case_well_measured() -> None:
    """The error names what each case lacks, and how to record the others."""
    failure = make_failure(OTHER.id, "m")
    trials = [make_trial(0), make_trial(1), *(make_trial(index, OTHER) for index in range(3))]
    run = replace(make_run(*trials, cases=(CASE, OTHER)), failures=(failure,), selection="tag:smoke")
    with pytest.raises(IncompleteError) as caught:
        check_refresh(run)
    assert caught.value.what == (
        "not fit to be recorded: mlp/inference-float32-smoke-default (2 of 3 trials), "
        "vit/inference-float32-smoke-default (failed in compile)"
    )
    left_out = "!mlp/inference-float32-smoke-default,!vit/inference-float32-smoke-default"
    assert f"--select 'tag:smoke,{left_out}'" in caught.value.fix


def test_a_refresh_needs_the_trials_that_were_planned() -> None:
    """Three would do, but two of the planned five are missing without a reason."""
    run = make_run(*map(make_trial, range(3)))
    with pytest.raises(IncompleteError, match=r"smoke-default \(3 of 5 trials\)"):
        check_refresh(replace(run, trials_planned=5))


def test_a_run_that_was_stopped_is_not_recorded() -> None:
    """Though each case has trials enough."""
    run = make_run(*map(make_trial, range(3)))
    with pytest.raises(IncompleteError, match="the run was stopped before its end"):
        check_refresh(replace(run, finished=False))


@pytest.mark.parametrize(
    ("changes", "key"), [({"finished": False}, "finished"), ({"trials_planned": 3}, "trials")]
)
def test_only_a_whole_run_is_compared_with(changes: dict[str, Any], key: str) -> None:
    """One that was stopped, or lacks planned trials, is refused with the key that shows it."""
    run = make_run(*map(make_trial, range(2)), trials_planned=2)
    check_whole(run, "main.json")
    with pytest.raises(FileError) as caught:
        check_whole(replace(run, **changes), "main.json")
    assert (caught.value.file, caught.value.key) == ("main.json", key)


def test_a_refresh_records_nothing_that_was_not_compiled() -> None:
    """A run that an older compile-gate measured may hold such a case."""
    trials = [make_trial(index, unique_graphs=float(index > 0)) for index in range(3)]
    with pytest.raises(IncompleteError, match="smoke-default \\(nothing was compiled\\)"):
        check_refresh(make_run(*trials))


def test_a_refresh_records_nothing_that_was_forked_in_part() -> None:
    """A busy machine's baselines would never apply; those of a model that cannot be forked do."""
    trials = [make_trial(index) for index in range(3)]
    silent, gone, threads = (
        Fact(code=code) for code in (Code.SERVER_SILENT, Code.SERVER_GONE, Code.IMPORT_STARTS_THREADS)
    )

    def make_warnings(fact: Fact, count: int) -> Run:
        warned = [replace(trial, warnings=(fact,)) for trial in trials[:count]]
        return make_run(*warned, *trials[count:])

    for run in (make_warnings(silent, 3), make_warnings(silent, 1), make_warnings(gone, 2)):
        with pytest.raises(IncompleteError, match=r"smoke-default \(not all workers were forked\)"):
            check_refresh(run)
    for run in (make_warnings(gone, 3), make_warnings(threads, 3)):
        check_refresh(run)


def test_a_refresh_with_three_trials_a_case_is_fit() -> None:
    """Three is the least; two of a target, of which nothing is timed."""
    check_refresh(make_run(*map(make_trial, range(3))))
    two = make_run(*map(make_trial, range(2)))
    check_refresh(replace(two, environment=replace(two.environment, device_kind="target")))
    with pytest.raises(IncompleteError, match=r"smoke-default \(2 of 3 trials\)"):
        check_refresh(two)


def test_saved_baselines_load_the_same(tmp_path: Path) -> None:
    """A folder an environment, a sub-folder a model, a file a case."""
    old = (make_baseline(compiled_latency=0.5), make_baseline(OTHER.id, compiled_latency=0.25))
    paths = save_baselines(tmp_path, propose_baselines(old, {}, POLICY))
    assert paths == tuple(tmp_path / ENVIRONMENT_ID / f"{baseline.case_id}.json" for baseline in old)
    assert load_baselines(tmp_path) == old


def test_the_same_values_are_the_same_bytes(tmp_path: Path) -> None:
    """Loading and writing again changes nothing, so that diffs show changes only."""
    (proposal,) = propose_baselines([make_baseline(compiled_latency=0.1, drift=-0.3)], {}, POLICY)
    save_baselines(tmp_path, [proposal])
    (again,) = propose_baselines(load_baselines(tmp_path), {}, POLICY)
    assert again.text == proposal.text


def test_a_baseline_file_is_easy_to_review_and_merge() -> None:
    """Sorted keys, a line a metric, no more digits than needed."""
    baseline = replace(
        make_baseline(graph_breaks=1.0, compiled_latency=0.00123457),
        graph_breaks=(GraphBreak(reason="print", location="a.py:1"),),
    )
    lines = encode_baseline(baseline).splitlines()
    keys = list(json.loads(encode_baseline(baseline)))
    assert keys == sorted(keys)
    assert ' "schema": "compile-gate/baseline/1",' in lines
    assert '  "compiled_latency": [0.00123457, 0.00123457, 0.00123457],' in lines
    assert '  "graph_breaks": [1, 1, 1]' in lines
    assert (
        '  {"innermost": null, "location": "a.py:1", "reason": "print", "registry": "", "stack": []}' in lines
    )
    assert encode_baseline(baseline).endswith("}\n")


def test_nothing_stored_is_no_error(tmp_path: Path) -> None:
    """A new repository has no baselines yet."""
    assert load_baselines(tmp_path / "none") == ()
    assert load_baselines(tmp_path) == ()


def test_other_files_next_to_the_baselines_are_left_alone(tmp_path: Path) -> None:
    """accepted.yml and a README are there too."""
    (tmp_path / "accepted.yml").write_text("version: 1\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("x", encoding="utf-8")
    assert load_baselines(tmp_path) == ()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is empty"),
        ('{"schema": "compile-gate/baseline/1"', "ends in the middle"),
        ("{}", "is not a compile-gate baseline file"),
        ('{"schema": "compile-gate/run/1"}', "expected 'compile-gate/baseline/1'"),
        ('{"schema": "compile-gate/baseline/9"}', "newer than this compile-gate reads"),
        (
            '{"schema": "compile-gate/baseline/1", "trials": {"drift": [NaN]}}',
            "trials.drift.0.: expected a number from -2100 to 2100, got nan",
        ),
        (
            '{"schema": "compile-gate/baseline/1", "trials": {"drift": [1e999]}}',
            "expected a number from -2100 to 2100, got inf",
        ),
    ],
)
def test_a_damaged_baseline_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    """A gate that skipped it would call the case new."""
    path = tmp_path / "env" / "mlp" / "x.json"
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FileError, match=problem) as caught:
        load_baselines(tmp_path)
    assert caught.value.file == str(path)


def test_a_metric_without_values_is_refused(tmp_path: Path) -> None:
    """There is nothing to compare with."""
    save_baselines(
        tmp_path, propose_baselines([replace(make_baseline(), trials={Metric.DRIFT: ()})], {}, POLICY)
    )
    with pytest.raises(FileError, match=r"trials\.drift: holds no value"):
        load_baselines(tmp_path)


def test_two_files_of_one_case_are_refused(tmp_path: Path) -> None:
    """It is unknown which of them counts."""
    (path,) = save_baselines(tmp_path, propose_baselines([make_baseline(drift=0.1)], {}, POLICY))
    (tmp_path / "copy.json").write_bytes(path.read_bytes())
    with pytest.raises(FileError, match="holds the case 'mlp/inference-float32-smoke-default' of the same"):
        load_baselines(tmp_path)


def test_a_file_in_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    """A run was named in place of baselines."""
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FileError, match="cannot be listed: Not a directory"):
        load_baselines(tmp_path / "run.json")


@pytest.fixture
def shared_directory() -> Iterator[Path]:
    """A directory that other users may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("hidden", [".", "{environment}", "{environment}/vit", "{file}"])
def test_what_may_not_be_read_is_not_taken_for_absent(shared_directory: Path, hidden: str) -> None:
    """A case with an unreadable baseline, file or directory, is not new."""
    stored = shared_directory / "baselines"
    proposals = propose_baselines([make_baseline(drift=0.1), make_baseline(OTHER.id, drift=0.1)], {}, POLICY)
    save_baselines(stored, proposals)
    named = hidden.format(environment=ENVIRONMENT_ID, file=f"{ENVIRONMENT_ID}/{OTHER.id}.json")
    (stored / named).chmod(0)
    with act_as_ordinary_user(), pytest.raises(FileError, match="Permission denied"):
        load_baselines(stored)
    (stored / named).chmod(0o700)
    assert len(load_baselines(stored)) == 2


def test_baselines_in_a_closed_directory_are_not_taken_for_absent(shared_directory: Path) -> None:
    """It is unknown whether there are any."""
    (shared_directory / "closed").mkdir(mode=0o700)
    (shared_directory / "closed" / "baselines").mkdir()
    (shared_directory / "closed").chmod(0)
    with act_as_ordinary_user(), pytest.raises(FileError, match="Permission denied"):
        load_baselines(shared_directory / "closed" / "baselines")
    (shared_directory / "closed").chmod(0o700)


@pytest.mark.parametrize("target", ["nowhere", "elsewhere"])
def test_a_link_in_place_of_a_directory_is_refused(tmp_path: Path, target: str) -> None:
    """A link is not followed, so its target must not pass for absent."""
    save_baselines(tmp_path / "elsewhere", propose_baselines([make_baseline(drift=0.1)], {}, POLICY))
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / ENVIRONMENT_ID).symlink_to(tmp_path / target)
    with pytest.raises(FileError, match=f"{ENVIRONMENT_ID}: is a link"):
        load_baselines(tmp_path / "baselines")


def test_a_link_that_leads_nowhere_is_not_an_empty_store(tmp_path: Path) -> None:
    """`baselines` may be a link whose target is not mounted."""
    (tmp_path / "baselines").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileError, match="No such file or directory"):
        load_baselines(tmp_path / "baselines")


@pytest.mark.parametrize("case_id", ["../x", "a/../../x", "/etc/passwd", "a", "a/b/c", "a/.hidden", "a/b\n"])
def test_a_case_id_never_leads_out_of_the_directory(case_id: str) -> None:
    """Runs come from elsewhere."""
    with pytest.raises(UsageError, match="is no file name"):
        propose_baselines([make_baseline(case_id)], {}, POLICY)


@pytest.mark.parametrize(
    ("old", "new", "metrics"),
    [
        # thresholds: latency 5 % and 20 us, compile 10 % and 0.5 s, drift 0.58, counters exact
        ({"compiled_latency": 0.100}, {"compiled_latency": 0.104}, []),
        ({"compiled_latency": 0.100}, {"compiled_latency": 0.106}, ["compiled_latency"]),
        ({"compiled_latency": 0.100}, {"compiled_latency": 0.050}, []),
        ({"compiled_latency": 100e-6}, {"compiled_latency": 119e-6}, []),
        ({"compiled_latency": 100e-6}, {"compiled_latency": 121e-6}, ["compiled_latency"]),
        ({"cold_compile_time": 2.0}, {"cold_compile_time": 2.4}, []),
        ({"cold_compile_time": 2.0}, {"cold_compile_time": 2.6}, ["cold_compile_time"]),
        ({"drift": -1.0}, {"drift": -0.5}, []),
        ({"drift": -1.0}, {"drift": -0.4}, ["drift"]),
        ({"graph_breaks": 0.0}, {"graph_breaks": 1.0}, ["graph_breaks"]),
        ({"graph_breaks": 1.0}, {"graph_breaks": 0.0}, []),
        ({"graph_breaks": 0.0, "drift": 0.0}, {"graph_breaks": 1.0}, ["drift", "graph_breaks"]),
        ({"eager_latency": 0.1}, {"eager_latency": 0.9}, []),
        ({"warm_speedup": 2.0}, {"warm_speedup": 1.0}, []),
        ({"guards": 5.0}, {"guards": 50.0}, []),
        # A ratio of memory, 5 %, follows the peak of compiled code, 3 % and 6 MiB: here eager got leaner,
        ({"peak_memory": 1e9, "memory_ratio": 1.0}, {"peak_memory": 1e9, "memory_ratio": 1.1}, []),
        # compiled code needs more,
        (
            {"peak_memory": 1e9, "memory_ratio": 1.0},
            {"peak_memory": 1.1e9, "memory_ratio": 1.1},
            ["peak_memory", "memory_ratio"],
        ),
        # the ratio is not measured any more, and it is unknown which of both it was.
        ({"peak_memory": 1e9, "memory_ratio": 1.0}, {"peak_memory": 1e9}, ["memory_ratio"]),
        ({"memory_ratio": 1.0}, {"memory_ratio": 1.1}, ["memory_ratio"]),
    ],
)
def test_a_proposal_names_what_moves_the_wrong_way(
    old: dict[str, float], new: dict[str, float], metrics: list[str]
) -> None:
    """Deciding metrics only, beyond both parts of their threshold; a missing one counts too."""
    (proposal,) = propose_baselines([make_baseline(**new)], {OLD: make_baseline(**old)}, POLICY)
    assert proposal.kind is ProposalKind.CHANGED
    assert metrics == [setback.metric.value for setback in proposal.setbacks]


@pytest.mark.parametrize(
    ("definition", "new", "metrics"),
    [
        (1, {"drift": 5.0, "compiled_latency": 0.2}, ["compiled_latency", "drift"]),
        (2, {"drift": 5.0, "compiled_latency": 0.2}, ["compiled_latency"]),
        (2, {"compiled_latency": 0.1}, []),
    ],
)
def test_drift_of_another_definition_is_no_setback(
    definition: int, new: dict[str, float], metrics: list[str]
) -> None:
    """Two definitions count other errors; times are compared all the same."""
    old = replace(make_baseline(drift=1.0, compiled_latency=0.1), drift_definition=definition)
    (proposal,) = propose_baselines([replace(make_baseline(**new), drift_definition=1)], {OLD: old}, POLICY)
    assert [setback.metric.value for setback in proposal.setbacks] == metrics


def test_what_a_refresh_looks_at_is_better_with_less() -> None:
    """A speedup is computed of latencies, which are looked at instead."""
    decides = {
        metric for metric, spec in SPECS.items() if spec.role is Role.DECIDES and spec.higher_is_better
    }
    assert decides == {metric for metric in decides if SPECS[metric].source is Source.DERIVED}


def test_an_override_widens_what_may_move() -> None:
    """The policy's threshold for this case holds for a refresh as for a verdict."""
    override = Override(case="mlp/*", metric=Metric.COMPILED_LATENCY, relative=0.2, reason="noisy")
    policy = Policy(thresholds={}, overrides=(override,))
    new, old = make_baseline(compiled_latency=0.119), make_baseline(compiled_latency=0.1)
    assert propose_baselines([new], {OLD: old}, policy)[0].setbacks == ()
    assert propose_baselines([new], {OLD: old}, POLICY)[0].setbacks != ()


def test_a_changed_definition_has_no_setbacks() -> None:
    """Its old values mean another workload."""
    old = replace(make_baseline(graph_breaks=0.0), definition="other")
    (proposal,) = propose_baselines([make_baseline(graph_breaks=5.0)], {OLD: old}, POLICY)
    assert (proposal.kind, proposal.setbacks) == (ProposalKind.REDEFINED, ())


def test_a_baseline_that_somebody_moved_is_replaced_where_it_lies(tmp_path: Path) -> None:
    """A second file of it would be refused by every command."""
    old = make_baseline(drift=0.2)
    (path,) = save_baselines(tmp_path, propose_baselines([old], {}, POLICY))
    (tmp_path / "ci").mkdir()
    path.rename(tmp_path / "ci" / "moved.json")
    new = make_baseline(drift=0.1)
    written = save_baselines(tmp_path, propose_baselines([new], load_placed(tmp_path), POLICY))
    assert written == (tmp_path / "ci" / "moved.json",)
    assert load_baselines(tmp_path) == (new,)


def test_baselines_of_other_environments_are_not_replaced() -> None:
    """A new machine records its own."""
    old = replace(make_baseline(graph_breaks=0.0), environment=replace(CPU_HOST, isa="avx512"))
    (proposal,) = propose_baselines([make_baseline(graph_breaks=5.0)], {OLD: old}, POLICY)
    assert (proposal.kind, proposal.setbacks) == (ProposalKind.NEW, ())


def test_a_regression_is_not_recorded_without_a_reason(tmp_path: Path) -> None:
    """Nothing is written, the good cases neither."""
    old = [make_baseline(graph_breaks=0.0), make_baseline(OTHER.id, graph_breaks=0.0)]
    save_baselines(tmp_path, propose_baselines(old, {}, POLICY))
    new = [make_baseline(graph_breaks=2.0), make_baseline(OTHER.id, graph_breaks=0.0)]
    with pytest.raises(SetbackError) as caught:
        save_baselines(tmp_path, propose_baselines(new, load_placed(tmp_path), POLICY))
    assert describe_hidden(caught.value.setbacks) == (
        "the refresh would hide a regression: mlp/inference-float32-smoke-default graph_breaks 0 -> 2"
    )
    assert load_baselines(tmp_path) == tuple(old)
    explained = [replace(item, provenance=Provenance(reason="the new attention breaks")) for item in new]
    save_baselines(tmp_path, propose_baselines(explained, load_placed(tmp_path), POLICY))
    assert load_baselines(tmp_path) == tuple(explained)


def test_a_full_disk_keeps_the_old_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the machine's, and the stored file is whole."""
    save_baselines(tmp_path, propose_baselines([make_baseline(drift=0.1)], {}, POLICY))

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(MachineError, match="the disk is full"):
        save_baselines(tmp_path, propose_baselines([make_baseline(drift=0.2)], {}, POLICY))
    assert load_baselines(tmp_path) == (make_baseline(drift=0.1),)
