from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import FileError, UsageError
from gate.files.codec import decode
from gate.files.schema import list_invalid
from gate.metrics import SPECS
from gate.project.config import apply_options, check_places, load_config, make_config
from gate.project.config_text import render_config
from gate.project.entries import GateFile
from gate.records.cases import Metric, Override, Quarantine, Threshold
from gate.records.protocol import Sampling
from gate.store.policy import load_policy

FULL = """\
version: 1
device: cuda:1
threads: 4
select: tag:pr
baselines: ../stored
out: /tmp/out
reference_models: false
registry: [models.yml]
models:
  - name: my_mlp
    factory: my_project.bench:build
    arguments: {width: 256, name: "yes", rate: 1e-5}
    sizes: {smoke: {batch: 8}, full: {batch: 1024}}
    dynamic: true
    cases:
      - {size: [smoke, full], dtype: [float32, bfloat16], tags: [smoke, pr], expected_s: 20}
tests:
  - {name: mine, node: "tests/perf/test_mine.py::test_mine[a-1]", tags: [pr]}
sampling: {super_blocks: 5, block_s: 1e-3}
trials: 2
max_trials: 4
thresholds:
  compiled_latency: {relative: 8%}
  cold_compile_time: {relative: 150%, absolute: 1}
  drift: {absolute: 1}
overrides:
  - {case: "my_mlp/*", metric: compiled_latency, relative: 0.1, reason: noisy}
quarantine:
  - {case: "my_mlp/*", metric: drift, owner: ada, expires: 2026-01-01, reason: two speeds}
  - {case: "mine/test", owner: ada, expires: 2026-01-01, reason: crashes}
"""


def write_config(directory: Path, text: str) -> Path:
    """Write a gate.yml."""
    path = directory / "gate.yml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory without gate.yml is no error."""
    monkeypatch.chdir(tmp_path)
    config = load_config(None)
    assert config == make_config(GateFile(version=1))
    assert config.device == "cpu"
    assert config.baselines == Path("baselines")
    assert config.sampling == Sampling()
    assert (config.threads, config.error_budget, config.lock_timeout_s) == (2, 0.01, 60.0)
    assert (config.trials, config.max_trials, config.refresh_trials) == (1, 3, 5)
    assert (config.out, config.status) == (Path("out"), "compile-gate/report")
    assert config.reference_models
    assert not config.counts_only
    assert config.thresholds == {metric: spec.threshold for metric, spec in SPECS.items()}


def test_the_file_in_the_current_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As make and git do."""
    write_config(tmp_path, "version: 1\nthreads: 7\n")
    monkeypatch.chdir(tmp_path)
    assert load_config(None).threads == 7


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    """Falling back to defaults would hide a typing error."""
    with pytest.raises(FileError, match=r"none\.yml: does not exist"):
        load_config(tmp_path / "none.yml")


def test_every_key_is_read(tmp_path: Path) -> None:
    """Paths are relative to the file, thresholds replace the defaults part by part."""
    config = load_config(write_config(tmp_path, FULL))
    assert config.device == "cuda:1"
    assert config.threads == 4
    assert config.select == "tag:pr"
    assert config.baselines == tmp_path / ".." / "stored"
    assert config.out == Path("/tmp/out")  # noqa: S108 -- nothing is written there
    assert config.registry == (tmp_path / "models.yml",)
    assert not config.reference_models
    assert config.models[0].arguments == {"width": 256, "name": "yes", "rate": 1e-5}
    assert config.tests[0].node == "tests/perf/test_mine.py::test_mine[a-1]"
    assert config.sampling == replace(Sampling(), super_blocks=5, block_s=0.001)
    assert (config.trials, config.max_trials, config.refresh_trials) == (2, 4, 5)
    assert config.thresholds[Metric.COMPILED_LATENCY] == Threshold(relative=0.08, absolute=20e-6)
    assert config.thresholds[Metric.COLD_COMPILE_TIME] == Threshold(relative=1.5, absolute=1.0)
    assert config.thresholds[Metric.DRIFT] == Threshold(relative=0.0, absolute=1.0)
    assert config.thresholds[Metric.WARM_COMPILE_TIME] == SPECS[Metric.WARM_COMPILE_TIME].threshold
    assert config.overrides == (
        Override(
            case="my_mlp/*",
            metric=Metric.COMPILED_LATENCY,
            relative=0.1,
            reason="noisy",
        ),
    )
    assert config.quarantine == (
        Quarantine(
            case="my_mlp/*", metric=Metric.DRIFT, owner="ada", expires="2026-01-01", reason="two speeds"
        ),
        Quarantine(case="mine/test", metric=None, owner="ada", expires="2026-01-01", reason="crashes"),
    )


def test_the_dump_loads_as_the_same_configuration(tmp_path: Path) -> None:
    """So that a printed configuration can be kept as a file."""
    config = load_config(write_config(tmp_path, FULL))
    text = render_config(config)
    assert config == load_config(write_config(tmp_path, text))
    assert render_config(make_config(GateFile(version=1))).startswith("version: 1\nmodels: [] ")


def test_the_dump_shows_where_each_value_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of the file, an option, or the default."""
    monkeypatch.chdir(tmp_path)
    write_config(tmp_path, FULL)
    text = render_config(apply_options(load_config(None), device="cpu"))
    lines = {line.partition(":")[0].strip(): line.partition("# ")[2] for line in text.splitlines()}
    assert f"threads: 4{' ' * 34} # gate.yml:3\n" in text
    assert lines["device"] == "--device"
    assert lines["threads"] == "gate.yml:3"
    assert lines["budget_s"] == "default"
    assert lines["super_blocks"] == "gate.yml:19"
    assert lines["drift_seeds"] == "default"
    assert lines["fail_on"] == "default: inconclusive; in the action: regression"
    assert lines["compiled_latency"] == "gate.yml:23"
    assert lines["eager_latency"] == "default"
    assert lines["- {name"] == "gate.yml:18"


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_limits_of_a_gpu_have_room_for_its_compiles(tmp_path: Path, device: str) -> None:
    """A tuned UNet compiles for 7 minutes, which a limit of 5 takes for a hang; set limits stay."""
    plain = make_config(GateFile(version=1))
    gpu, cpu = apply_options(plain, device=device), apply_options(plain, device="cpu")
    assert (cpu.budget_s, cpu.pair_budget_s, cpu.trial_timeout_s) == (330.0, 600.0, 300.0)
    assert gpu.trial_timeout_s >= 3 * 7 * 60
    # Two pairs settle nothing less than nothing: each is two trials of up to 350 s.
    assert min(gpu.budget_s, gpu.pair_budget_s) >= 2 * 2 * 350
    config = load_config(write_config(tmp_path, f"version: 1\ndevice: {device}\nbudget_s: 330\n"))
    given = apply_options(config, pair_budget_s=60.0)
    assert (given.budget_s, given.pair_budget_s, given.trial_timeout_s) == (330.0, 60.0, gpu.trial_timeout_s)
    assert apply_options(config, device="cpu").trial_timeout_s == 300.0


def test_options_replace_keys_and_none_leaves_them(tmp_path: Path) -> None:
    """An option's path is relative to the current directory, not to gate.yml."""
    config = load_config(write_config(tmp_path, FULL))
    changed = apply_options(config, out="elsewhere", device=None, trials=9)
    assert changed == replace(config, out=Path("elsewhere"), trials=9, max_trials=9)
    assert changed.origins["out"] == "--out"


def test_wrong_options_are_refused_as_such() -> None:
    """The message names the options as they are typed, and shows one that is right."""
    with pytest.raises(UsageError) as caught:
        apply_options(make_config(GateFile(version=1)), lock_timeout_s=-1.0, trials=0, select=" ")
    assert str(caught.value).splitlines() == [
        "--select must be a text that is not empty, got ' '",
        "Write, for example, `--select 'tag:smoke,!bert'`.",
        "--trials must be a whole number from 1 to 10000, got 0",
        "Write, for example, `--trials 2`.",
        "--lock-timeout must be a number of at least 0, got -1.0",
        "Write, for example, `--lock-timeout 600`.",
    ]


@pytest.mark.parametrize(
    ("out", "relation"),
    [
        ("stored", "the same directory as"),
        ("stored/in/it", "inside the directory of"),
        (".", "around the directory of"),
        ("stored-out", ""),
        ("out", ""),
    ],
)
def test_results_may_not_lie_among_baselines(tmp_path: Path, out: str, relation: str) -> None:
    """Every run writes over the one, and nothing may over the other."""
    config = load_config(write_config(tmp_path, f"version: 1\nbaselines: stored\nout: {out}\n"))
    if not relation:
        check_places(config)
        return
    with pytest.raises(FileError, match=f"is {relation} `baselines`") as caught:
        check_places(config)
    with pytest.raises(FileError):
        apply_options(config, device="cpu")
    assert (caught.value.file, caught.value.key) == (f"{tmp_path}/gate.yml:3", "out")


@pytest.mark.parametrize(
    ("limit", "value"),
    [("recompiles, at_most: 0", 0), ("recompiles, at_most: 3", 3), ("warm_speedup, at_least: 1.5", 1.5)],
)
def test_a_limit_is_the_bound_that_is_written(tmp_path: Path, limit: str, value: float) -> None:
    """None at all is a bound too."""
    config = load_config(write_config(tmp_path, f"version: 1\nlimits: [{{metric: {limit}}}]\n"))
    assert [item.value for item in config.limits] == [value]


@pytest.mark.parametrize(("bound", "metric"), [("at_most: 2", "warm_speedup"), ("at_least: 2", "recompiles")])
def test_a_limit_on_the_wrong_side_is_refused(tmp_path: Path, bound: str, metric: str) -> None:
    """It would refuse what is good: the message says which way is better."""
    better = "more" if metric == "warm_speedup" else "less"
    with pytest.raises(FileError, match=f"{metric} is better with {better}: ") as caught:
        load_config(write_config(tmp_path, f"version: 1\nlimits: [{{metric: {metric}, {bound}}}]\n"))
    assert caught.value.key == f"limits[0].{bound.partition(':')[0]}"


def test_the_policy_holds_all_that_decides(tmp_path: Path) -> None:
    """Thresholds, overrides, limits, quarantine and budget of the file."""
    config = load_config(write_config(tmp_path, FULL))
    policy = load_policy(config)
    assert policy.thresholds == config.thresholds
    assert policy.overrides == config.overrides
    assert policy.limits == config.limits
    assert policy.quarantine == config.quarantine
    assert policy.error_budget == 0.01


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-2, 2).filter(lambda number: not number.is_integer())
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
CHANGES: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    # That trials and max_trials fit together is beyond what a schema can say.
    st.sampled_from([name for name in [*GateFile.__dataclass_fields__, "other"] if name != "max_trials"]),
    VALUES,
    max_size=2,
)


@given(changes=CHANGES)
@settings(max_examples=300)
def test_what_the_schema_takes_the_decoder_takes(changes: dict[str, Any]) -> None:
    """A file without a mistake becomes a record."""
    value = {"version": 1, **changes}
    if not list_invalid("config", value):
        decode(GateFile, value, "x")


QUARANTINE = (
    "version: 1\nquarantine:\n  - {case: a, metric: guards, owner: o, reason: r, expires: 2026-01-01}\n"
)


def test_a_quarantine_of_what_never_decides_is_refused(tmp_path: Path) -> None:
    """It would silently do nothing."""
    with pytest.raises(FileError, match=r"gate.yml:3: quarantine\[0\].metric: guards never decides"):
        load_config(write_config(tmp_path, QUARANTINE))


def test_a_metric_with_a_limit_can_be_put_into_quarantine(tmp_path: Path) -> None:
    """It decides, whatever its role."""
    limited = QUARANTINE + "limits:\n  - {metric: guards, at_most: 5}\n"
    (entry,) = load_config(write_config(tmp_path, limited)).quarantine
    assert entry.metric is Metric.GUARDS


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("trials: 5\nmax_trials: 4\n", "max_trials"),
        ("trials: 50\n", "trials"),
        ("trials: 50\nmax_trials: many\n", "max_trials"),
    ],
)
def test_more_trials_than_a_case_may_have_are_one_mistake(tmp_path: Path, text: str, key: str) -> None:
    """It is at the key that was written; where the limit is wrong itself, nothing is said of the trials."""
    with pytest.raises(FileError) as caught:
        load_config(write_config(tmp_path, f"version: 1\n{text}"))
    assert [error.key for error in (caught.value, *caught.value.others)] == [key]  # type: ignore[attr-defined]


def test_with_wrong_limits_no_quarantine_is_called_idle(tmp_path: Path) -> None:
    """The wrong limit may be meant for that metric."""
    with pytest.raises(FileError) as caught:
        load_config(write_config(tmp_path, QUARANTINE + "limits:\n  - {metric: guard, at_most: 5}\n"))
    assert [error.key for error in (caught.value, *caught.value.others)] == ["limits[0].metric"]  # type: ignore[attr-defined]
