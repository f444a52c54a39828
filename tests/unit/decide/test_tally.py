"""Notes on the numbers of cases and trials."""

from dataclasses import replace

import pytest

from gate.decide.conclude.coverage import measure_tally
from gate.decide.evidence.disturbed import collect_head
from gate.decide.explain.notes import note_shard, note_tally
from gate.records.cases import Case
from gate.records.run import Pairing, Shard
from gate.records.verdict import PairBase, Tally
from gate.report.words.facts import write_note
from tests.make import make_pair, make_run


def test_notes_on_all_counts() -> None:
    """Each incomplete count has a note, in this order."""
    tally = Tally(
        finished=False,
        trials=12,
        disturbed_trials=2,
        pairs=7,
        paired_cases=1,
        pairs_in_turn=3,
        disturbed_pairs=1,
        cleared=1,
    )
    assert tuple(write_note(fact, PairBase(label="main")) for fact in note_tally(tally)) == (
        "The run was stopped before its end.",
        "Worse than the stored baseline, but not worse than the base: 1 comparison.",
        "The machine was disturbed during 2 of 12 trials.",
        "The machine was disturbed during 1 of 7 pairs, base and head alike.",
    )


@pytest.mark.parametrize(("pairing", "in_turn"), [(Pairing.LIVE, 0), (Pairing.TURNS, 1)])
def test_pairs_count_where_there_is_a_base(pairing: Pairing, in_turn: int) -> None:
    """Two of one case, the second of them live; a run without a base has none."""
    pairs = (*make_pair("m/c", 1, pairing=pairing), *make_pair("m/c", 2, pairing=Pairing.LIVE))
    run = make_run(*pairs, base=(Case(id="m/c", model="m"),))
    tally = measure_tally(run, collect_head(run), ())
    assert (tally.pairs, tally.paired_cases, tally.pairs_in_turn) == (2, 1, in_turn)
    alone = replace(run, base=None)
    assert measure_tally(alone, collect_head(alone), ()).pairs == 0


def test_complete_counts_have_no_note() -> None:
    """A finished run of calm trials has no note."""
    assert note_tally(Tally(finished=True, trials=12)) == ()


def test_a_shard_names_how_many_cases_it_lacks() -> None:
    """A shard of one in seven cases is noted, a whole run is not."""
    run = make_run(cases=(Case(id="m/c", model="m"),))
    assert note_shard(run) == ()
    (note,) = note_shard(replace(run, shard=Shard(number=1, of=2, cases=7)))
    assert write_note(note) == "This is shard 1 of 2: 6 of 7 cases are not part of it."
