"""Takes the words out of a verdict, where it was measured: what is left can be published elsewhere."""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from gate.devices import TARGET_KIND
from gate.fingerprint import compute_environment_id
from gate.records.bounds import is_sha
from gate.records.facts import Fact
from gate.records.protocol import Stage
from gate.records.run import BASE_ARM, CANDIDATE_ARM
from gate.records.shown import (
    UNKNOWN_STAGE,
    WORDLESS,
    Release,
    Shown,
    ShownBase,
    ShownCause,
    ShownFailure,
    ShownRow,
)
from gate.records.verdict import Verdict

SHOWN_FILE = "shown.json"
_STAGES = frozenset(Stage)
# A release number and nothing else, at the beginning of what torch calls itself.
_RELEASE = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}")


def make_shown(verdict: Verdict) -> Shown:
    """Make what of a verdict may leave the machine that measured."""
    own, base = verdict.environment, verdict.base
    commit = base.commit if base and is_sha(base.commit) else ""
    ids = (compute_environment_id(replace(own, workers=workers)) for workers in (own.workers, ""))
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
        is_target=own.device_kind == TARGET_KIND,
        base=ShownBase(commit=commit, other_stack=base.other_stack) if base else None,
        stacks=find_stacks(verdict),
        tally=verdict.tally,
        trials=verdict.trials,
        wall_s=verdict.wall_s,
        toolchain_s=verdict.toolchain_s,
        overhead_s=verdict.overhead_s,
    )


def find_stacks(verdict: Verdict) -> tuple[Release, Release]:
    """Find the releases of torch of base and head, as bare numbers; ``""`` where one is unknown."""
    sides = (verdict.base_environment, verdict.environment)
    versions = (side.torch if side else "" for side in sides)
    base, head = (match[0] if (match := _RELEASE.match(version)) else "" for version in versions)
    return base, head


def _list_fields(record: Any, **changed: object) -> Mapping[str, Any]:  # noqa: ANN401 -- any dataclass
    return {field.name: getattr(record, field.name) for field in fields(record)} | changed


def _strip(fact: Fact) -> Fact:
    """Strip a fact of its words."""
    names = {
        name: words[:1]
        for name, words in fact.names.items()
        if name in WORDLESS and words and re.fullmatch(WORDLESS[name], words[0])
    }
    return replace(fact, cases=(), names=names)
