"""What a verdict rests on: so many trials and pairs, and how many of them were disturbed."""

from __future__ import annotations

from collections.abc import Sequence

from gate.decide.disturbed import count_disturbed, describe_disturbed
from gate.decide.pairs import list_pairs
from gate.records import Comparison, Run, Tally
from gate.words import count_noun

STOPPED = "The run was stopped before its end."


def measure_tally(run: Run, cleared: Sequence[Comparison] = ()) -> Tally:
    """Count trials and pairs; ``cleared`` got worse since the baselines, but not by the change."""
    pairs = [pair for found in list_pairs(run).values() for pair in found] if run.base else []
    disturbed_trials, trials, disturbed_pairs = count_disturbed(run)
    return Tally(
        finished=run.finished,
        trials=trials,
        disturbed_trials=disturbed_trials,
        pairs=len(pairs),
        paired_cases=len({pair.head.case_id for pair in pairs}),
        pairs_in_turn=sum(not pair.is_live for pair in pairs),
        disturbed_pairs=disturbed_pairs,
        cleared=len(cleared),
    )


def note_tally(tally: Tally, base: str) -> tuple[str, ...]:
    """All notes that the counts alone give; ``base`` names what head was measured side by side with."""
    worse = count_noun(tally.cleared, "comparison")
    return (
        *([] if tally.finished else [STOPPED]),
        *note_pairs(tally, base),
        *([f"Worse than the stored baseline, but not than the base: {worse}."] if tally.cleared else []),
        *describe_disturbed(tally.disturbed_trials, tally.trials, "trials"),
        *describe_disturbed(tally.disturbed_pairs, tally.pairs, "pairs"),
    )


def note_pairs(tally: Tally, base: str) -> tuple[str, ...]:
    """What ran side by side with what, and how."""
    if not tally.pairs:
        return ()
    turns = tally.pairs_in_turn
    how = f", {turns} of them one process after the other" if turns else ""
    many = f"{count_noun(tally.pairs, 'pair')} of {count_noun(tally.paired_cases, 'case')}{how}"
    return (f"Measured side by side with {base} on this machine: {many}.",)
