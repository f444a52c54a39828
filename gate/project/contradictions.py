"""What does not fit together in the files that people write, though each key by itself is right.

A check gets the values of an entry's keys that are right by themselves, and the names of those that
are not. Keys that were not written are in neither.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeVar

from gate.files.entry import REFERENCE_PACKAGE
from gate.files.structure import fit
from gate.files.untrusted import format_value
from gate.files.validation import InvalidValue, ValidationError, suggest_nearest
from gate.kinds import KIND_SPECS, KindSpec
from gate.metrics import SPECS, Family, Role
from gate.records import DEFAULT_BACKEND, Kind, Metric, Mode
from gate.records.bounds import MOST_ALLOWED, read_amount

Values = Mapping[str, Any]

DEFAULT_SIZE = "smoke"
_DEAF_BACKENDS = {"eager", "aot_eager"}  # they take neither mode nor options: torch._dynamo.backends.common
DEFAULT_TRIALS = 1  # a suspect gets more
DEFAULT_MAX_TRIALS = 3  # what settles most, in the default budget
_PARTS = ("relative", "absolute")
_BOUNDS = ("at_most", "at_least")  # by whether more is better


def check_threshold(values: Values, wrong: Collection[str]) -> Iterator[InvalidValue]:
    """A threshold of neither part leaves everything as it is."""
    if not _list_parts(values) and not wrong:
        yield _refuse_nothing()


def check_override(values: Values, wrong: Collection[str]) -> Iterator[InvalidValue]:
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


def check_limit(values: Values, wrong: Collection[str]) -> Iterator[InvalidValue]:
    """A limit is one bound, on the side on which the metric is worse."""
    given = [part for part in _BOUNDS if values.get(part) is not None]
    if set(wrong) & {"metric", *_BOUNDS} or "metric" not in values:
        return
    metric, right = values["metric"], _BOUNDS[SPECS[values["metric"]].higher_is_better]
    fix = f"Write `{right}` alone, in the metric's unit ({SPECS[metric].unit})."
    if not given:
        yield InvalidValue(problem="names neither `at_most` nor `at_least`, and so limits nothing", fix=fix)
    for part in given:
        if part != right:
            direction = "more" if right == "at_least" else "less"
            problem = f"{metric} is better with {direction}: `{part}` would refuse what is good"
            yield InvalidValue(problem=problem, fix=fix, path=[f".{part}"])


def check_gate_file(values: Values, wrong: Collection[str]) -> Iterator[InvalidValue]:
    """Thresholds and quarantines must fit their metrics, and a case cannot get more trials than the most."""
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


def check_acceptance(values: Values, wrong: Collection[str]) -> Iterator[InvalidValue]:
    """An allowance is in the metric's unit. Which metrics can fail is known with gate.yml's limits alone."""
    del wrong
    if "metric" in values and "allowance" in values:
        yield from check_allowance(values["metric"], values["allowance"])


def check_allowance(metric: Metric, written: float | str) -> Iterator[InvalidValue]:
    """A percentage for what is compared by ratio, a plain number for counters and drift."""
    spec = SPECS[metric]
    if not spec.is_ratio and isinstance(written, str):
        problem = f"{written} does not fit {metric}, which is not compared by ratio"
        yield _refuse_allowance(problem, f"Write a plain number: the unit is {spec.unit}.")
    elif spec.family is Family.EXACT and not isinstance(written, str) and not float(written).is_integer():
        problem = f"{metric} is a count: it cannot get worse by {written:g}"
        yield _refuse_allowance(problem, f"Write a whole number, {math.ceil(written)} or more.")
    if not read_amount(written):
        example = {Family.EXACT: "1", Family.LOG2: "0.5"}.get(spec.family, "8%")
        problem = f"{written if isinstance(written, str) else 0} accepts no change at all"
        yield _refuse_allowance(problem, f"Write how much worse it may be, for example {example}.")
    if spec.is_ratio and isinstance(written, str) and read_amount(written) > MOST_ALLOWED:
        problem = f"{written} is more than {MOST_ALLOWED:.0%}"
        fix = "Record new baselines, or put the case into quarantine in gate.yml."
        yield _refuse_allowance(problem, fix)
    if spec.is_ratio and not isinstance(written, str) and written >= 1:
        problem = f"{written:g} would allow {written:.0%}"
        yield _refuse_allowance(problem, f"Write {written:g}% or {written / 100:g}.")


def _refuse_allowance(problem: str, fix: str) -> InvalidValue:
    return InvalidValue(problem=problem, fix=fix, path=[".allowance"])


_T = TypeVar("_T")


def list_values(written: _T | tuple[_T, ...]) -> tuple[_T, ...]:
    """List what stands behind a key that takes one value or several."""
    return written if isinstance(written, tuple) else (written,)


def check_model(values: Values, wrong: Collection[str]) -> Iterator[InvalidValue]:
    """Cases must be of the model's sizes and of what their kinds and backends listen to; `gate` is taken."""
    del wrong
    package = values.get("factory", "").partition(":")[0]
    if f"{package}.".startswith("gate.") and not package.startswith(f"{REFERENCE_PACKAGE}."):
        problem = "a factory cannot be imported from the package `gate`: that is compile-gate's own name"
        fix = "Rename your package, or put the factory, and what it imports, in one of another name."
        yield InvalidValue(problem=problem, fix=fix, path=[".factory"])
    for index, case in enumerate(values.get("cases", ())):
        path = [f"[{index}]", ".cases"]
        yield from _check_sizes(list_values(case.size), values.get("sizes", {}), path)
        yield from _check_ignored(case, path)
        yield from _check_kind(case, path, dynamic=values.get("dynamic"))


def _check_sizes(sizes: tuple[str, ...], known: Collection[str], path: list[str]) -> Iterator[InvalidValue]:
    for size in sizes:
        if known and size not in known:
            fix = suggest_nearest(size, known, f"Sizes of this model: {', '.join(known)}.")
            suffix = ", the default" if size == DEFAULT_SIZE else ""
            yield InvalidValue(problem=f"unknown size {size!r}{suffix}", fix=fix, path=[".size", *path])


def _check_ignored(case: Any, path: list[str]) -> Iterator[InvalidValue]:  # noqa: ANN401 - the entry that imports this
    """Refuse what nobody takes notice of: the case would measure something else than its id says."""
    modes = [mode for mode in list_values(case.mode) if mode is not Mode.DEFAULT]
    backends = [backend for backend in list_values(case.backend) if backend != DEFAULT_BACKEND]
    given = [
        key for key, found in (("mode", modes), ("backend", backends), ("options", case.options)) if found
    ]
    if case.options and modes:
        problem = f"cannot be combined with the mode {str(modes[0])!r}: torch.compile takes one of the two"
        fix = "Remove one; torch._inductor.list_mode_options() shows which options a mode stands for."
        yield InvalidValue(problem=problem, fix=fix, path=[".options", *path])
    for backend in (one for one in backends if one in _DEAF_BACKENDS):
        for key in (key for key in given if key != "backend"):
            problem = f"the backend {backend!r} ignores `{key}`, as torch's own other than inductor do"
            fix = f"Remove it, or measure that backend in a case of its own, without `{key}`."
            yield InvalidValue(problem=problem, fix=fix, path=[f".{key}", *path])
    for key in (key for key in given if key in KIND_SPECS[case.kind].ignores):
        fix = f"Remove it, or measure it in a case of another kind, as `{Kind.CALL}` is."
        yield InvalidValue(problem=f"the kind {case.kind} ignores `{key}`", fix=fix, path=[f".{key}", *path])


def _check_kind(case: Any, path: list[str], *, dynamic: bool | None) -> Iterator[InvalidValue]:  # noqa: ANN401 - as above
    """Check that the kind measures the case's tasks and has its settings, and listens to its model."""
    spec = KIND_SPECS[case.kind]
    for key, known in (("task", spec.tasks), ("dtype", spec.dtypes)):
        for word in (word for word in list_values(getattr(case, key)) if word not in known):
            problem, fix = f"the kind {spec.kind} measures no {word}", f"Write {' or '.join(sorted(known))}."
            yield InvalidValue(problem=problem, fix=fix, path=[f".{key}", *path])
    if dynamic is not None and "dynamic" in spec.ignores:
        problem = f"the kind {spec.kind} ignores the model's `dynamic`"
        fix = "Measure it in a model of another name, without `dynamic`."
        yield InvalidValue(problem=problem, fix=fix, path=[".kind", *path])
    for name, value in case.settings.items():
        yield from _check_setting(spec, name, value, [f".{name}", ".settings", *path])
    for name, setting in spec.settings.items():
        if name not in case.settings and setting.default is None:
            problem = f"a case of the kind {spec.kind} needs the setting {name!r}"
            yield InvalidValue(problem=problem, fix=f"Write it: {setting.title}.", path=[".kind", *path])


def _check_setting(spec: KindSpec, name: str, value: object, place: list[str]) -> Iterator[InvalidValue]:
    if name not in spec.settings:
        listed = f"Settings of this kind: {', '.join(spec.settings)}." if spec.settings else "It has none."
        problem = f"the kind {spec.kind} has no setting {format_value(name)}"
        yield InvalidValue(problem=problem, fix=suggest_nearest(name, spec.settings, listed), path=place)
        return
    try:
        decoded = fit(spec.settings[name].takes, value)
    except ValidationError as error:
        for invalid in error.found:
            invalid.path += place
            invalid.says_little = False  # no key around it says more
        yield from error.found
    else:
        if spec.kind is Kind.SHAPES and name == "vary":
            yield from _check_lengths([len(one) for one in decoded.values()], place)


def _check_lengths(lengths: list[int], place: list[str]) -> Iterator[InvalidValue]:
    """Lists that vary together have one length, of two values at least."""
    if len(set(lengths)) > 1:
        fix = "Write one value of each argument a shape: {batch: [4, 8], sequence: [64, 32]}."
        yield InvalidValue(problem="its lists are not of one length", fix=fix, path=place)
    elif lengths[0] < 2:  # noqa: PLR2004 - one shape does not vary
        yield InvalidValue(
            problem="has one shape, which does not vary", fix="List two values or more.", path=place
        )
