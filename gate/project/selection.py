"""The cases that a selection names: ``tag:smoke,!bert/*,resnet50/*``, or the default."""

from dataclasses import dataclass

from gate.errors import FileError, UsageError
from gate.files.invalid import find_nearest
from gate.project.cases import is_reference
from gate.project.config import Config
from gate.records.cases import TAG, Case, fits_pattern, fits_term, split_pattern

_NAMED = 8  # names in a suggestion: what fits on a line
DEFAULT_TAG = "smoke"  # of the reference models, and of projects that follow the example
_DEFAULT_SELECTION = f"tag:{DEFAULT_TAG}"


def select_cases(cases: tuple[Case, ...], selection: str) -> tuple[Case, ...]:
    """Select cases, in their order.

    Raises:
        UsageError: A term matches nothing, or nothing is left.
    """
    selected = find_cases(cases, selection)
    removed, named = split_pattern(selection)
    if not removed and not named:
        raise UsageError("the selection is empty", "Name cases, as in --select tag:smoke.")
    for term in (*removed, *named):
        if not any(fits_term(term, case.id, case.tags) for case in cases):
            raise _describe_unknown(cases, term)
    if not selected:
        raise UsageError(
            f"the selection {selection!r} leaves no case", "List what there is with `compile-gate models`."
        )
    return selected


def find_cases(cases: tuple[Case, ...], selection: str) -> tuple[Case, ...]:
    return tuple(case for case in cases if fits_pattern(selection, case.id, case.tags))


def _describe_unknown(cases: tuple[Case, ...], term: str) -> UsageError:
    if not term.removeprefix(TAG):
        return UsageError("a term of the selection is empty", "Name something behind `!` and `tag:`.")
    model = term.partition("/")[0]
    models = sorted({case.model for case in cases})
    if term.startswith(TAG):
        tags = sorted({tag for case in cases for tag in case.tags})
        problem = f"no case has the tag {term.removeprefix(TAG)!r}"
        return _suggest(problem, term, [TAG + tag for tag in tags])
    if model in models:
        return _suggest(f"no case matches {term!r}", term, [case.id for case in cases if case.model == model])
    return _suggest(f"no model matches {term!r}", model, models)


def _suggest(problem: str, name: str, known: list[str]) -> UsageError:
    if nearest := find_nearest(name, known):
        return UsageError(problem, f"Did you mean {nearest!r}?")
    if not known:
        return UsageError(problem, "No case has any tag: name cases or models instead.")
    others = " and others" if len(known) > _NAMED else ""
    return UsageError(problem, f"There are {', '.join(known[:_NAMED])}{others}: see `compile-gate models`.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    cases: tuple[Case, ...]
    selection: str
    note: str = ""  # where the default is another than the usual one


def choose_cases(config: Config, cases: tuple[Case, ...]) -> Choice:
    """Choose the cases that a configuration selects.

    Raises:
        FileError: There is no case, or ``select`` of gate.yml matches nothing.
        UsageError: ``--select`` does.
    """
    if not cases:
        fix = "List a model under `models:`, or remove `reference_models: false`."
        raise FileError(config.locate("reference_models"), "reference_models", "leaves no case", fix)
    if not config.select:
        return _choose_default(config, cases)
    try:
        return Choice(cases=select_cases(cases, config.select), selection=config.select)
    except UsageError as error:
        if "select" not in config.origins or config.is_option("select"):
            raise
        raise FileError(config.locate("select"), "select", error.what, error.fix) from None


def _choose_default(config: Config, cases: tuple[Case, ...]) -> Choice:
    """All of one's own cases where none has the tag: else the reference models alone would be green."""
    project_cases = [case for case in cases if not (config.reference_models and is_reference(case))]
    if not project_cases or any(DEFAULT_TAG in case.tags for case in project_cases):
        return Choice(cases=select_cases(cases, _DEFAULT_SELECTION), selection=_DEFAULT_SELECTION)
    usual = find_cases(cases, _DEFAULT_SELECTION)  # reference models
    terms = [_DEFAULT_SELECTION] if usual else []
    chosen = {case.id for case in (*usual, *project_cases)}
    selection = ",".join((*terms, *dict.fromkeys(case.model for case in project_cases)))
    note = (
        f"measuring all of your cases ({len(project_cases)}):"
        f" none has the tag {DEFAULT_TAG!r}, the default of `select` in gate.yml"
    )
    return Choice(cases=tuple(case for case in cases if case.id in chosen), selection=selection, note=note)
