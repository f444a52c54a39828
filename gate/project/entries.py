"""The shape of gate.yml.

Read strictly by the codec; its JSON Schema and docs/configuration.md are generated from here. What it
becomes is in :mod:`gate.project.config`. The texts below the keys are described in :mod:`gate.files.entry`.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from gate.decide.conclude.outcome import FailOn
from gate.devices import DEFAULT_DEVICE
from gate.files.entry import DeviceName, ErrorBudget, MetricUnits, PathText, Share, StatusName, Threads
from gate.files.untrusted import InvalidValue, Values
from gate.metrics import SPECS, Family, Role
from gate.project.model_entries import RegistryFile
from gate.records.bounds import Count, Entry, NotNegative, Seconds, Text
from gate.records.cases import Metric, Quarantine
from gate.records.protocol import Sampling

DEFAULT_TRIALS = 1  # a suspect gets more
DEFAULT_MAX_TRIALS = 3  # what settles most, in the default budget
_PARTS = ("relative", "absolute")
_BOUNDS = ("at_most", "at_least")  # by whether more is better


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

    @staticmethod
    def find_contradictions(values: Values, wrong: Collection[str]) -> Iterator[InvalidValue]:
        """A threshold of neither part leaves everything as it is."""
        if not _list_parts(values) and not wrong:
            yield _refuse_nothing()


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

    @staticmethod
    def find_contradictions(values: Values, wrong: Collection[str]) -> Iterator[InvalidValue]:
        """An override must say something that its metric listens to."""
        if not _list_parts(values) and not set(wrong) & set(_PARTS):
            yield _refuse_nothing()
        elif "metric" in values:
            yield from _check_parts(values["metric"], _list_parts(values), [])


def _list_parts(values: Values) -> dict[str, float]:
    return {part: values[part] for part in _PARTS if values.get(part) is not None}


def _refuse_nothing() -> InvalidValue:
    fix = "Write one part or both: `relative: 8%`, and `absolute` in the metric's unit."
    return InvalidValue(problem="names neither `relative` nor `absolute`, and so changes nothing", fix=fix)


def _check_parts(metric: Metric, parts: Mapping[str, float], path: list[str]) -> Iterator[InvalidValue]:
    """Refuse parts that the metric's family does not look at: they would do nothing, unnoticed."""
    family = SPECS[metric].family
    if parts and family is Family.EXACT:
        yield _refuse_counter(metric, path)
    if parts.get("relative") and family is Family.LOG2:
        problem = f"{metric} has no relative part: its changes are differences of log2 units"
        fix = f"Write `absolute` alone; the default is {SPECS[metric].threshold.absolute:g}."
        yield InvalidValue(problem=problem, fix=fix, path=[".relative", *path])


def _refuse_counter(metric: Metric, path: list[str]) -> InvalidValue:
    if SPECS[metric].role is Role.EXPLAINS:
        problem = f"{metric} has no threshold: it only explains what other metrics show, and never decides"
        return InvalidValue(problem=problem, fix="Remove it.", path=path)
    problem = f"{metric} has no threshold: any change of this counter counts"
    fix = "Remove it; accept a known change with `compile-gate baseline accept`, or use `quarantine`."
    return InvalidValue(problem=problem, fix=fix, path=path)


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

    @staticmethod
    def find_contradictions(values: Values, wrong: Collection[str]) -> Iterator[InvalidValue]:
        """A limit is one bound, on the side on which the metric is worse."""
        given = [part for part in _BOUNDS if values.get(part) is not None]
        if set(wrong) & {"metric", *_BOUNDS} or "metric" not in values:
            return
        metric, right = values["metric"], _BOUNDS[SPECS[values["metric"]].higher_is_better]
        fix = f"Write `{right}` alone, in the metric's unit ({SPECS[metric].unit})."
        if not given:
            problem = "names neither `at_most` nor `at_least`, and so limits nothing"
            yield InvalidValue(problem=problem, fix=fix)
        for part in given:
            if part != right:
                direction = "more" if right == "at_least" else "less"
                problem = f"{metric} is better with {direction}: `{part}` would refuse what is good"
                yield InvalidValue(problem=problem, fix=fix, path=[f".{part}"])


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
    the default is 2400. If four times the slowest case's `expected_s` is more, that is used. Unless the key
    is set, two pairs of one case fit, whatever they take.

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

    @staticmethod
    def find_contradictions(values: Values, wrong: Collection[str]) -> Iterator[InvalidValue]:
        """Thresholds and quarantines must fit their metrics, and trials the most that there can be."""
        yield from _check_quarantine(values, wrong)
        for metric, entry in values.get("thresholds", {}).items():
            parts = {part: getattr(entry, part) for part in _PARTS}
            yield from _check_parts(metric, _list_parts(parts), [f".{metric}", ".thresholds"])
        trials, most = values.get("trials", DEFAULT_TRIALS), values.get("max_trials", DEFAULT_MAX_TRIALS)
        if trials > most and "max_trials" not in wrong:
            problem = f"every case gets {trials} trials, and max_trials is only {most}"
            fix = f"Write `max_trials: {trials}` or more, or fewer trials."
            yield InvalidValue(
                problem=problem, fix=fix, path=[".max_trials" if "max_trials" in values else ".trials"]
            )


def _check_quarantine(values: Values, wrong: Collection[str]) -> Iterator[InvalidValue]:
    """What never decides needs no quarantine; what has a limit decides."""
    if "limits" in wrong:
        return
    limited = [entry.metric for entry in values.get("limits", ())]
    for index, entry in enumerate(values.get("quarantine", ())):
        if entry.metric is not None and not can_decide(entry.metric, limited):
            problem = f"{entry.metric} never decides"
            fix = "There is nothing to keep from deciding: remove the entry."
            yield InvalidValue(problem=problem, fix=fix, path=[".metric", f"[{index}]", ".quarantine"])


def can_decide(metric: Metric, limited: Collection[Metric]) -> bool:
    """Whether a metric can fail a check: by its role, or since gate.yml has a limit for it."""
    return SPECS[metric].role is Role.DECIDES or metric in limited
