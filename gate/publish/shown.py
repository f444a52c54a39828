"""Takes the words out of a verdict, where it was measured: what is left can be published elsewhere."""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from gate.devices import TARGET_KIND
from gate.fingerprint import PACKAGE, compute_environment_id, list_parts
from gate.records.bounds import is_sha
from gate.records.facts import Fact
from gate.records.protocol import Stage
from gate.records.run import BASE_ARM, CANDIDATE_ARM
from gate.records.shown import (
    UNKNOWN_STAGE,
    UPGRADABLE,
    VERSION,
    WORDLESS,
    Shown,
    ShownBase,
    ShownCause,
    ShownFailure,
    ShownRow,
    StackPart,
)
from gate.records.verdict import Verdict

SHOWN_FILE = "shown.json"
_STAGES = frozenset(Stage)
_OF_PACKAGES = ("library ", f"{PACKAGE} ")  # how differences of environments name distributions


def make_shown(verdict: Verdict) -> Shown:
    environment, base = verdict.environment, verdict.base
    commit = base.commit if base and is_sha(base.commit) else ""
    ids = (compute_environment_id(each) for each in (environment, replace(environment, workers="")))
    stack, more_upgraded = list_upgraded(verdict)
    rows = tuple(
        ShownRow(**_list_fields(row, remarks=tuple(map(_strip, row.remarks)))) for row in verdict.comparisons
    )
    return Shown(
        outcome=verdict.outcome,
        cases=tuple(case.id for case in verdict.cases),
        comparisons=rows,
        failures=tuple(
            ShownFailure(
                case_id=failure.case_id,
                trial=failure.trial,
                kind=failure.kind,
                stage=failure.stage if failure.stage in _STAGES else UNKNOWN_STAGE,
                fact=_strip(failure.fact),
                arm=BASE_ARM if failure.arm == BASE_ARM else CANDIDATE_ARM,
            )
            for failure in verdict.failures
        ),
        causes=tuple(ShownCause(**_list_fields(cause, fact=_strip(cause.fact))) for cause in verdict.causes),
        machine=verdict.machine,
        environments=tuple(dict.fromkeys(ids)),
        baseline_environments=verdict.baseline_environments,
        is_target=environment.device_kind == TARGET_KIND,
        base=ShownBase(commit=commit, other_stack=base.other_stack) if base else None,
        stack=stack,
        more_upgraded=more_upgraded,
        tally=verdict.tally,
        trials=verdict.trials,
        wall_s=verdict.wall_s,
        toolchain_s=verdict.toolchain_s,
        overhead_s=verdict.overhead_s,
    )


def list_upgraded(verdict: Verdict) -> tuple[tuple[StackPart, ...], int]:
    """List torch of base and head, and what else differs; count what cannot be shown."""
    if verdict.base_environment is None:
        return (), 0
    shown, more = [], 0
    for label, base, head in list_parts(verdict.base_environment, verdict.environment):
        name = label.removeprefix(_OF_PACKAGES[0]).removeprefix(_OF_PACKAGES[1])
        if base == head and name != "torch":
            continue
        if name in UPGRADABLE and all(re.fullmatch(VERSION, version) for version in (base, head)):
            shown.append(StackPart(name=name, base=base, head=head))
        else:
            more += name == "torch" or label.startswith(_OF_PACKAGES)
    return tuple(sorted(shown, key=lambda part: UPGRADABLE.index(part.name))), more


def _list_fields(record: Any, **changed: object) -> Mapping[str, Any]:  # noqa: ANN401 -- any dataclass
    return {field.name: getattr(record, field.name) for field in fields(record)} | changed


def _strip(fact: Fact) -> Fact:
    names = {
        name: words[:1]
        for name, words in fact.names.items()
        if name in WORDLESS and words and re.fullmatch(WORDLESS[name], words[0])
    }
    return replace(fact, cases=(), names=names)
