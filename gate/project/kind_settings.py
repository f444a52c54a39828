"""What does not fit in the settings of a case's kind."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeVar

from gate.files.misfits import Misfit, suggest_nearest
from gate.files.untrusted import format_value
from gate.kinds import KIND_SPECS, KindSpec, Setting
from gate.records import DEFAULT_BACKEND, Kind, Mode

_T = TypeVar("_T")


def check_kind(
    case: Any,  # noqa: ANN401 - the entry that imports this
    path: list[str],
    *,
    dynamic: bool | None,
) -> Iterator[Misfit]:
    """Check that the kind measures the case's tasks and listens to what it is given, its model's too."""
    spec = KIND_SPECS[case.kind]
    for key, known in (("task", spec.tasks), ("dtype", spec.dtypes)):
        unknown = [word for word in list_values(getattr(case, key)) if word not in known]
        yield from (_refuse_word(spec, word, known, [f".{key}", *path]) for word in unknown)
    yield from _check_ignored(spec, case, path)
    if dynamic is not None and "dynamic" in spec.ignores:
        problem = f"the kind {spec.kind} ignores the model's `dynamic`"
        fix = "Measure it in a model of another name, without `dynamic`."
        yield Misfit(problem=problem, fix=fix, path=[".kind", *path])
    place = [".settings", *path]
    for name in case.settings:
        if name not in spec.settings:
            yield _refuse_name(spec, name, place)
    for name, setting in spec.settings.items():
        if name in case.settings:
            yield from _check_value(setting, case.settings[name], [f".{name}", *place])
        elif setting.is_required:
            problem = f"a case of the kind {spec.kind} needs the setting {name!r}"
            yield Misfit(problem=problem, fix=f"Write it: {setting.title}.", path=[".kind", *path])
    if case.kind is Kind.SHAPES:
        yield from _check_lists(case.settings.get("vary"), [".vary", *place])


def _check_ignored(spec: KindSpec, case: Any, path: list[str]) -> Iterator[Misfit]:  # noqa: ANN401 - as above
    """Refuse what a kind takes no notice of: the case would measure something else than its id says."""
    given = {
        "mode": any(mode is not Mode.DEFAULT for mode in list_values(case.mode)),
        "backend": any(backend != DEFAULT_BACKEND for backend in list_values(case.backend)),
        "options": bool(case.options),
    }
    for key in (key for key, is_given in given.items() if is_given and key in spec.ignores):
        fix = f"Remove it, or measure it in a case of another kind, as `{Kind.CALL}` is."
        yield Misfit(problem=f"the kind {spec.kind} ignores `{key}`", fix=fix, path=[f".{key}", *path])


def list_values(written: _T | tuple[_T, ...]) -> tuple[_T, ...]:
    """List what stands behind a key that takes one value or several."""
    return written if isinstance(written, tuple) else (written,)


def _refuse_word(spec: KindSpec, word: str, known: Collection[str], place: list[str]) -> Misfit:
    fix = f"Write {' or '.join(sorted(known))}."
    return Misfit(problem=f"the kind {spec.kind} measures no {word}", fix=fix, path=place)


def _refuse_name(spec: KindSpec, name: str, place: list[str]) -> Misfit:
    listed = f"Settings of this kind: {', '.join(spec.settings)}." if spec.settings else "It has none."
    return Misfit(
        problem=f"the kind {spec.kind} has no setting {format_value(name)}",
        fix=suggest_nearest(name, spec.settings, listed),
        path=[f".{name}", *place],
    )


def _check_value(setting: Setting, value: object, place: list[str]) -> Iterator[Misfit]:
    if setting.choices:
        if value not in setting.choices:
            known = ", ".join(setting.choices)
            yield Misfit(
                problem=f"expected one of {known}, got {format_value(value)}",
                fix=f"Write one of {known}.",
                path=place,
            )
    elif isinstance(setting.default, Mapping):
        if not isinstance(value, Mapping) or not value:
            yield _refuse_value(setting, "a mapping of names to lists", value, place)
    elif isinstance(value, bool) or not isinstance(value, (int, type(setting.default))):
        what = "a whole number" if isinstance(setting.default, int) else "a number"
        yield _refuse_value(setting, what, value, place)
    elif isinstance(value, (int, float)) and value < setting.minimum:
        yield _refuse_value(setting, f"{setting.minimum:g} or more", value, place)


def _refuse_value(setting: Setting, what: str, value: object, place: list[str]) -> Misfit:
    problem = f"expected {what}, got {format_value(value)}"
    return Misfit(problem=problem, fix=f"Write {setting.title}.", path=place)


def _check_lists(vary: object, place: list[str]) -> Iterator[Misfit]:
    """Lists that vary together have one length, of two values at least."""
    lists = list(vary.values()) if isinstance(vary, Mapping) else []
    if not lists:
        return
    if not all(isinstance(one, list) for one in lists) or len({len(one) for one in lists}) != 1:
        fix = "Write one value of each argument a shape: {batch: [4, 8], sequence: [64, 32]}."
        yield Misfit(problem="its lists are not of one length", fix=fix, path=place)
    elif len(lists[0]) < 2:  # noqa: PLR2004 - one shape does not vary
        yield Misfit(problem="has one shape, which does not vary", fix="List two values or more.", path=place)
