"""What a reader must know of the rules that a change was judged by."""

from collections.abc import Sequence

from gate.report.words.templates import COMMIT_CHARS, PHRASES, fill
from gate.store.rules import BaseRules
from gate.units import format_noun, join_some


def list_rule_notes(rules: BaseRules) -> list[str]:
    touched, notes = _join(rules.changed), []
    if rules.mended:
        notes.append(fill(PHRASES["rules_mended"], mended=rules.mended))
    elif rules.changed and rules.sha:
        commit, moved = rules.sha[:COMMIT_CHARS], _join(rules.moved)
        notes.append(fill(PHRASES["rules_touched"], touched=touched, commit=commit, moved=moved))
    elif rules.is_first:
        notes.append(fill(PHRASES["rules_new"], touched=touched))
    if rules.removed:
        cases, removed = format_noun(len(rules.removed), "case"), _join(rules.removed)
        notes.append(fill(PHRASES["cases_redefined"], cases=cases, removed=removed))
    return notes


def _join(names: Sequence[str]) -> str:
    return join_some(names, 5)
