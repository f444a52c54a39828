"""The shape of gate.yml.

Read strictly by the codec; its JSON Schema and docs/configuration.md are generated from here. What it
becomes is in :mod:`gate.project.config`. The texts below the keys are described in :mod:`gate.files.entry`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gate.decide.conclude.outcome import FailOn
from gate.devices import DEFAULT_DEVICE
from gate.files.entry import DeviceName, ErrorBudget, MetricUnits, PathText, Share, StatusName, Threads
from gate.project.contradictions import (
    DEFAULT_MAX_TRIALS,
    DEFAULT_TRIALS,
    check_gate_file,
    check_limit,
    check_override,
    check_threshold,
)
from gate.project.model_entries import RegistryFile
from gate.records import Metric, Quarantine
from gate.records.bounds import Count, Entry, NotNegative, Seconds, Text
from gate.records.protocol import Sampling


@dataclass(frozen=True, kw_only=True, slots=True)
class ThresholdEntry(Entry):
    """The smallest change of a metric that counts: it must exceed both parts.

    A part that is left out keeps its default.
    """

    relative: Share | None = None
    """The part relative to the baseline.

    Example: 8%
    """
    absolute: MetricUnits | None = None
    """The part in the metric's unit: seconds, bytes, calls, or log2 units for drift. It keeps a large
    percentage of a tiny value from counting.

    Example: 0.00005
    """

    find_contradictions = staticmethod(check_threshold)


@dataclass(frozen=True, kw_only=True, slots=True)
class OverrideEntry(Entry):
    """Another threshold for some cases and one metric.

    A part that is left out is as for the other cases. Of several overrides that fit, the last counts.
    """

    case: Text
    """The cases, named as in `select`. Each part must match at least one.

    Example: "bert/*"
    """
    metric: Metric
    """The metric whose threshold differs for these cases.

    Example: compiled_latency
    """
    reason: Text
    """Why these cases need another threshold.

    Example: "its loop depends on the data: two speeds"
    """
    relative: Share | None = None
    """The part of the threshold relative to the baseline.

    Example: 12%
    """
    absolute: MetricUnits | None = None
    """The part of the threshold in the metric's unit.

    Example: 0.0001
    """

    find_contradictions = staticmethod(check_override)


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitEntry(Entry):
    """An absolute limit of a metric, held to whatever is stored.

    It decides even where nothing is. Of several limits that fit a case and a metric, the last counts.
    """

    metric: Metric
    """The metric that is limited.

    Example: cold_compile_time
    """
    case: Text = "*"
    """The cases, named as in `select`. Each part must match at least one.

    Example: "llama/*"
    """
    at_most: MetricUnits | None = None
    """The largest allowed value, in the metric's unit: seconds, bytes, calls, or log2 units for drift.

    Example: 60
    """
    at_least: MetricUnits | None = None
    """The smallest allowed value, for metrics where more is better.

    Example: 1.2
    """

    find_contradictions = staticmethod(check_limit)


@dataclass(frozen=True, kw_only=True, slots=True)
class GateFile(RegistryFile):
    """``gate.yml``. Every key but `version` can be left out; paths are relative to the file's directory."""

    device: DeviceName = DEFAULT_DEVICE
    """The device to measure on. Baselines of different devices are never compared.

    Example: cuda
    """
    threads: Threads = 2
    """torch's threads within one operation. The same number on all machines keeps their times comparable.
    If other programs run too, take fewer than there are cores.

    Example: 4
    """
    select: Text | None = None
    """The cases to measure: case ids, model names, patterns with `*` and `tag:NAME`, joined by commas; a `!`
    before one removes. Default: `tag:smoke`. If none of your own cases has that tag, all of them are measured
    as well, and a note says so. `--select` replaces it.

    Example: tag:smoke,!bert
    """
    fail_on: FailOn | None = None
    """The lowest outcome that fails. `new` also fails a PASS in which something has no baseline. Of a pull
    request the base's value counts. Default: `regression` in the action, `inconclusive` elsewhere.
    `--fail-on` replaces it.

    Example: never
    """
    status: StatusName = "compile-gate/report"
    """The name of the commit status that the action sets for a pull request or a merge queue. A gate with a
    `comment-key` adds that to it. Empty sets none. Never the name of the required check: GitHub would then
    require both.

    Example: ""
    """
    baselines: PathText = "baselines"
    """The directory of stored baselines, `accepted.yml` and `anchor.yml`. Commit it. `--baselines` replaces
    it.

    Example: perf/baselines
    """
    out: PathText = "out"
    """The directory for reports, raw samples and logs. Leave it out of git. Neither it nor `baselines` may
    contain the other. `--out` replaces it, with a directory that is new, empty or an earlier run's.

    Example: build/compile-gate
    """
    history: PathText | None = None
    """Where `check`, `baseline refresh` and `ab --anchor` append a line a run, for `trend`: a file that ends
    in `.jsonl`, or a directory with a file a run. `--history` replaces it.

    Example: perf/history
    """
    reference_models: bool = True
    """Whether to measure the models that come with compile-gate too.

    Example: false
    """
    registry: tuple[PathText, ...] = ()
    """Files with further models and tests.

    Example: [perf/models.yml]
    """
    sampling: Sampling = field(default_factory=Sampling)
    """How much a trial samples.

    Example: {super_blocks: 30, drift_seeds: 4}
    """
    trials: Count = DEFAULT_TRIALS
    """Trials of every case before anything is judged, each in fresh processes with empty caches. Suspects get
    more. `--trials` replaces it.

    Example: 2
    """
    max_trials: Count = DEFAULT_MAX_TRIALS
    """Most trials of a case that looks changed and is not settled, while `budget_s` lasts.

    Example: 5
    """
    refresh_trials: Count = 5
    """Trials of every case when baselines are recorded. The noise between trials is learned from them; it
    takes at least 3.

    Example: 8
    """
    budget_s: Seconds = 330.0
    """Seconds of measuring after which no further trial is added. The default fits the smoke selection into
    six minutes on two cores. On a GPU it is 2400. If the planned trials and one more of the slowest case take
    longer, by their `expected_s`, that is used.

    Example: 900
    """
    pair_budget_s: Seconds = 600.0
    """Further seconds for the pairs of `check`. Anything not settled by then is INCONCLUSIVE. On a GPU
    the default is 2400. If four times the slowest case's `expected_s` is more, that is used.

    Example: 1200
    """
    trial_timeout_s: Seconds = 300.0
    """Seconds after which a measuring process counts as hung and is ended; its case failed. On a GPU the
    default is 1800. If four times the slowest case's `expected_s` is more, that is used.

    Example: 900
    """
    lock_timeout_s: NotNegative = 60.0
    """Seconds to wait for a device that another compile-gate measures on. `--lock-timeout` replaces it.

    Example: 600
    """
    error_budget: ErrorBudget = 0.01
    """The probability of any false alarm in a whole verdict. With less, only larger changes are regressions.

    Example: 0.5%
    """
    thresholds: Mapping[Metric, ThresholdEntry] = field(default_factory=dict)
    """The smallest change that counts, by metric, for all cases. The page Metrics lists the defaults.
    Counters have none: any change counts.

    Example: {compiled_latency: {relative: 8%}, peak_memory: {relative: 5%, absolute: 8388608}}
    """
    overrides: tuple[OverrideEntry, ...] = ()
    """Other thresholds for some cases.

    Example: [{case: "bert/*", metric: compiled_latency, relative: 12%, reason: "two speeds, see #12"}]
    """
    limits: tuple[LimitEntry, ...] = ()
    """Absolute limits. They need no baseline, and noise is considered.

    Example: [{metric: cold_compile_time, at_most: 60}, {metric: warm_speedup, at_least: 1.2}]
    """
    quarantine: tuple[Quarantine, ...] = ()
    """Unstable cases that are measured and shown, and do not decide until a date.

    Example: [{case: "bert/*", owner: compiler-team, reason: "crashes, see #12", expires: 2027-03-31}]
    """

    find_contradictions = staticmethod(check_gate_file)
