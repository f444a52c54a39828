"""The cases that a configuration selects, and what it selects where it does not say."""

from __future__ import annotations

from dataclasses import dataclass

from gate.errors import FileError, UsageError
from gate.project.cases import is_reference
from gate.project.config import Config
from gate.project.selection import select_cases
from gate.records import Case

DEFAULT_TAG = "smoke"  # of the reference models, and of whoever follows the example
_DEFAULT_SELECTION = f"tag:{DEFAULT_TAG}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """The selected cases, and the selection: what gate.yml says, or what its default came to."""

    cases: tuple[Case, ...]
    selection: str
    note: str = ""  # where the default is another than the usual one


def choose_cases(config: Config, cases: tuple[Case, ...]) -> Choice:
    """Choose among all the cases of a configuration those that it selects.

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
    """Choose the cases with the usual tag; all of one's own where none of those has it.

    Who lists a model and no tag means it to be measured: to leave it out would be a green check of
    the reference models alone.
    """
    own = [case for case in cases if not (config.reference_models and is_reference(case))]
    if not own or any(DEFAULT_TAG in case.tags for case in own):
        return Choice(cases=select_cases(cases, _DEFAULT_SELECTION), selection=_DEFAULT_SELECTION)
    selection = ",".join([*([_DEFAULT_SELECTION] if len(own) < len(cases) else []), *_list_models(own)])
    note = (
        f"measuring all of your cases ({len(own)}):"
        f" none has the tag {DEFAULT_TAG!r}, the default of `select` in gate.yml"
    )
    return Choice(cases=select_cases(cases, selection), selection=selection, note=note)


def _list_models(cases: list[Case]) -> list[str]:
    return list(dict.fromkeys(case.model for case in cases))
