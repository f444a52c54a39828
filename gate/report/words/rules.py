"""What a reader must know of the rules that a change was judged by."""

from gate.store.rules import BaseRules
from gate.units import count_noun, join_some

_SHOWN = 5  # files, models or cases in a note


def list_rule_notes(rules: BaseRules) -> list[str]:
    """List what the change does to what it is judged by."""
    touched = join_some(rules.changed, _SHOWN)
    notes = []
    if rules.mended:
        notes.append(
            f"This change is judged by its own rules, since it mends those of the base. {rules.mended}"
        )
    elif rules.changed and rules.sha:
        at_new_places = f", with what it moves measured there ({join_some(rules.moved, _SHOWN)})"
        moved = at_new_places if rules.moved else ""
        judged = f"it was judged by commit {rules.sha[:12]}'s{moved}"
        notes.append(f"This change touches what it is judged by ({touched}); {judged}.")
    elif rules.is_first:
        notes.append(
            f"The base commit has no configuration yet: this change is judged by its own ({touched})."
        )
    if rules.removed:
        what = f"{count_noun(len(rules.removed), 'case')} ({join_some(rules.removed, _SHOWN)})"
        later = "once merged, nothing measures them as the base does"
        notes.append(f"This change removes or redefines {what}: {later}.")
    return notes
