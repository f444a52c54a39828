"""The shape of gate.yml.

Read strictly by the codec; its JSON Schema and docs/configuration.md are generated from here. What it
becomes is in :mod:`gate.project.config`. The texts below the keys are described in :mod:`gate.files.entry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gate.devices import DEFAULT_DEVICE
from gate.files.entry import (
    Count,
    DeviceName,
    Entry,
    ErrorBudget,
    PathText,
    Seconds,
    Text,
    Threads,
    Version,
)
from gate.project.contradictions import (
    DEFAULT_MAX_TRIALS,
    DEFAULT_TRIALS,
    check_gate_file,
)
from gate.project.model_entries import ModelEntry, TestEntry
from gate.project.rule_entries import LimitEntry, OverrideEntry, QuarantineEntry, ThresholdEntry
from gate.records import Metric
from gate.records.bounds import NotNegative
from gate.records.protocol import Sampling

_SAMPLING = Sampling()


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingEntry(Entry):
    """How much a trial samples.

    The defaults suit most machines. Runs that sampled differently are not joined.
    """

    super_blocks: Count = _SAMPLING.super_blocks
    """How often a trial times eager and compiled in turn: each super-block is two timed blocks of either.
    More of them steady the value of a trial; the noise between trials stays as it is.

    Example: 30
    """
    block_s: Seconds = _SAMPLING.block_s
    """A timed block lasts at least this many seconds, so that the clock itself adds less than 0.1 %.
    Blocks of live pairs last 0.03 s, whatever is written here.

    Example: 0.02
    """
    max_block_calls: Count = _SAMPLING.max_block_calls
    """A timed block has at most so many calls, however short they are.

    Example: 5000
    """
    warmup_s: NotNegative = _SAMPLING.warmup_s
    """Seconds of calls before the first timed one, for caches, clocks and allocators to settle.

    Example: 1
    """
    min_warmup_calls: Count = _SAMPLING.min_warmup_calls
    """At least so many calls before the first timed one, however long they take.

    Example: 10
    """
    max_rounds_s: Seconds = _SAMPLING.max_rounds_s
    """Seconds after which a trial stops timing: slow models get fewer super-blocks, at least 3.

    Example: 60
    """
    drift_seeds: Count = _SAMPLING.drift_seeds
    """With how many seeds numerical drift is measured: one seed's error may be luck.

    Example: 4
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class GateFile(Entry):
    """``gate.yml``. Every key but `version` can be left out; paths are relative to the file's directory."""

    version: Version
    """The version of this file's format. A compile-gate that reads another one says so.

    Example: 1
    """
    device: DeviceName = DEFAULT_DEVICE
    """What to measure on. Baselines of one device are never compared with another's.

    Example: cuda:1
    """
    threads: Threads = 2
    """Threads of torch within one operation. Not all cores: a number that differs between machines makes
    their times incomparable, so it is the same everywhere unless you say otherwise.

    Example: 4
    """
    select: Text | None = None
    """The cases to measure: case ids, model names, patterns with `*` and `tag:NAME`, joined by commas; a `!`
    before one removes. Left out, it is `tag:smoke`; where none of your own cases has that tag, all of them
    are measured as well, and a note says so. `--select` replaces it.

    Example: tag:smoke,!bert
    """
    baselines: PathText = "baselines"
    """The directory of stored baselines, `accepted.yml` and `anchor.yml`, to be committed. `--baselines`
    replaces it.

    Example: perf/baselines
    """
    out: PathText = "out"
    """The directory for results: reports, raw samples, logs. Leave it out of git; it and `baselines` lie
    apart, neither in the other. `--out` replaces it.

    Example: build/compile-gate
    """
    history: PathText | None = None
    """Where `check`, `baseline refresh` and `ab --anchor` append a line for each run, for `trend`: a file
    that ends in `.jsonl`, or a directory with a file for each run. `--history` replaces it.

    Example: perf/history
    """
    reference_models: bool = True
    """Whether the models that come with compile-gate are measured beside your own.

    Example: false
    """
    registry: tuple[PathText, ...] = ()
    """Files with further models and tests.

    Example: [perf/models.yml]
    """
    models: tuple[ModelEntry, ...] = ()
    """Your models.

    Example: [{name: mixer, factory: "mixer.bench:build", cases: [{}]}]
    """
    tests: tuple[TestEntry, ...] = ()
    """Your own tests that use the `compile_benchmark` fixture.

    Example: [{name: smoothing, node: "tests/perf/test_smoothing.py::test_smoothing"}]
    """
    sampling: SamplingEntry = field(default_factory=SamplingEntry)
    """How much a trial samples. A part that is left out keeps its default.

    Example: {super_blocks: 30, drift_seeds: 4}
    """
    trials: Count = DEFAULT_TRIALS
    """Trials of every case before anything is judged, each in fresh processes with empty caches. One is
    enough where suspects get more; `--trials` replaces it.

    Example: 2
    """
    max_trials: Count = DEFAULT_MAX_TRIALS
    """The most trials of a case that looks changed and is not settled, while `budget_s` lasts. More settle
    more, and take longer.

    Example: 5
    """
    refresh_trials: Count = 5
    """Trials of every case when baselines are recorded. The noise between trials is learned from them; from
    fewer than 3 it cannot be.

    Example: 8
    """
    budget_s: Seconds = 330.0
    """Seconds of measuring after which no further trial is added to a case that is not settled. The default
    keeps the smoke selection within six minutes on two cores, with the preparation before it. On a GPU it is
    2400. Where neither is enough for the planned trials and one more of the slowest case, by their
    `expected_s`, it is what those take.

    Example: 900
    """
    pair_budget_s: Seconds = 600.0
    """Seconds on top for what `check --base` measures side by side with the base. What is not settled by then
    is INCONCLUSIVE. On a GPU the default is 2400; four times the slowest case's `expected_s`, two pairs, if
    that is more.

    Example: 1200
    """
    trial_timeout_s: Seconds = 300.0
    """Seconds after which a process that measures is taken for hung and ended; its case has then failed. On a
    GPU the default is 1800: tuning full-size models takes minutes. Where four times the slowest case's
    `expected_s` is more, it is that.

    Example: 900
    """
    lock_timeout_s: NotNegative = 60.0
    """Seconds to wait for a device that another compile-gate is measuring on; `--lock-timeout` replaces it.

    Example: 600
    """
    error_budget: ErrorBudget = 0.01
    """The probability of any false alarm in a whole verdict, however many cases it has. With less, only
    larger changes are regressions.

    Example: 0.5%
    """
    thresholds: Mapping[Metric, ThresholdEntry] = field(default_factory=dict)
    """The smallest change that counts, by metric, for all cases. docs/metrics.md lists the defaults; counters
    have none: any change of theirs counts.

    Example: {compiled_latency: {relative: 8%}, peak_memory: {relative: 5%, absolute: 8388608}}
    """
    overrides: tuple[OverrideEntry, ...] = ()
    """Other thresholds for some cases.

    Example: [{case: "bert/*", metric: compiled_latency, relative: 12%, reason: "two speeds, see #12"}]
    """
    limits: tuple[LimitEntry, ...] = ()
    """Absolute limits, judged with the same care for noise as changes are, and without any baseline.

    Example: [{metric: cold_compile_time, at_most: 60}, {metric: warm_speedup, at_least: 1.2}]
    """
    quarantine: tuple[QuarantineEntry, ...] = ()
    """Unstable cases that are measured and shown and do not decide until a date.

    Example: [{case: "bert/*", owner: compiler-team, reason: "crashes, see #12", expires: 2027-03-31}]
    """

    find_contradictions = staticmethod(check_gate_file)
