import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import UsageError
from gate.project.merge import list_missing_shards, merge_runs, pool_runs
from gate.project.plan import pick_shard, render_github_matrix, shard_cases, sum_expected_s
from gate.records.cases import Case
from gate.records.run import BaseArm, FailureKind, Pairing, Provenance, Run, Shard, Trial
from tests import make
from tests.hosts import CPU_HOST
from tests.make import make_failure

ENVIRONMENT = replace(CPU_HOST, device_uuid="a")


def make_case(name: str, expected_s: float = 10.0) -> Case:
    """Make a case that has nothing but an id and a duration."""
    return Case(id=f"{name}/x", model=name, expected_s=expected_s, definition=name)


def make_run(*names: str, measured: str | None = None) -> Run:
    """Make a run that planned ``names`` and measured all of them, or some."""
    trials = (Trial(case_id=f"{name}/x", index=0) for name in (names if measured is None else measured))
    return make.make_run(
        *trials,
        cases=tuple(map(make_case, names)),
        environment=ENVIRONMENT,
        provenance=Provenance(commit="abc"),
        selection=",".join(names),
        toolchain_s=2.0,
        wall_s=10.0,
    )


CASES = st.lists(st.floats(0.1, 100), min_size=1, max_size=12).map(
    lambda durations: tuple(make_case(f"m{index}", expected_s) for index, expected_s in enumerate(durations))
)


def sum_expected(cases: tuple[Case, ...]) -> float:
    """Expected seconds of some cases."""
    return sum(case.expected_s for case in cases)


def test_a_plan_expects_the_time_of_all_trials() -> None:
    """Cases one after the other, each as often as asked."""
    assert sum_expected_s((make_case("a", 10), make_case("b", 5)), 3) == 45


def test_the_longest_case_goes_first() -> None:
    """9 | 5 + 4: worked out by hand."""
    cases = (make_case("a", 4), make_case("b", 9), make_case("c", 5))
    assert shard_cases(cases, 2) == ((cases[1],), (cases[0], cases[2]))


@given(cases=CASES, shards=st.integers(1, 15))
def test_shards_partition_the_cases(cases: tuple[Case, ...], shards: int) -> None:
    """Each case is in exactly one shard; a shard is empty only if cases are too few."""
    parts = shard_cases(cases, shards)
    assert len(parts) == min(shards, len(cases))
    assert all(parts)
    assert sorted(case.id for part in parts for case in part) == sorted(case.id for case in cases)


@given(cases=CASES, shards=st.integers(1, 5), data=st.data())
def test_shards_depend_on_the_set_of_cases_only(
    cases: tuple[Case, ...], shards: int, data: st.DataObject
) -> None:
    """Every job of a matrix computes the same division, whatever order it read the cases in."""
    shuffled = tuple(data.draw(st.permutations(cases)))
    expected = {frozenset(case.id for case in part) for part in shard_cases(cases, shards)}
    assert expected == {frozenset(case.id for case in part) for part in shard_cases(shuffled, shards)}


@given(cases=CASES, shards=st.integers(1, 5))
def test_shards_are_balanced(cases: tuple[Case, ...], shards: int) -> None:
    """No two shards differ by more than the longest case."""
    loads = [sum_expected(part) for part in shard_cases(cases, shards)]
    longest = max(case.expected_s for case in cases)
    assert max(loads) - min(loads) <= longest * (1 + 1e-9)


def test_cases_that_take_no_time_are_divided_by_number() -> None:
    """So that none of the shards is empty."""
    cases = tuple(make_case(name, 0) for name in "abcd")
    assert [len(part) for part in shard_cases(cases, 2)] == [2, 2]


@pytest.mark.parametrize("shards", [0, -1])
def test_no_shards_are_refused(shards: int) -> None:
    """There is nothing to divide into."""
    with pytest.raises(UsageError, match="cannot divide into"):
        shard_cases((make_case("a"),), shards)


def test_the_matrix_of_an_empty_plan_is_the_one_that_workflows_ask_for() -> None:
    """GitHub fails a job whose matrix is empty: its condition compares with this text."""
    assert render_github_matrix((), 1, 2) == '{"include": []}'
    guide = Path(__file__).parents[3] / "docs" / "targets.md"
    assert """!= '{"include": []}'""" in guide.read_text(encoding="utf-8")


def test_the_matrix_selects_each_shard() -> None:
    """One entry a job, with what the job passes to --select."""
    cases = (make_case("a", 4), make_case("b", 9), make_case("c", 5.12))
    assert json.loads(render_github_matrix(cases, 2, 2)) == {
        "include": [
            {"shard": 1, "shards": 2, "select": "b/x", "cases": 1, "expected_s": 18.0},
            {"shard": 2, "shards": 2, "select": "a/x,c/x", "cases": 2, "expected_s": 18.2},
        ]
    }


def merge(runs: list[Run], planned: tuple[Case, ...] = ()) -> Run:
    """Merge runs that are named by their numbers."""
    return merge_runs(runs, [f"{number}.json" for number in range(1, len(runs) + 1)], planned)


def test_merged_shards_are_one_run() -> None:
    """All cases and trials; seconds of all machines; provenance of the first."""
    failure = make_failure("c/x", "m", trial=0)
    second = replace(make_run("c", measured=""), failures=(failure,))
    merged = merge([make_run("a", "b"), second])
    assert [case.id for case in merged.cases] == ["a/x", "b/x", "c/x"]
    assert [trial.case_id for trial in merged.trials] == ["a/x", "b/x"]
    assert merged.failures == (failure,)
    assert merged.selection == "a,b,c"
    assert (merged.toolchain_s, merged.wall_s, merged.trials_planned) == (4.0, 20.0, 1)
    assert merged.provenance == Provenance(commit="abc")
    assert merged.finished


def make_paired(name: str, commit: str = "base") -> Run:
    return make.give_base(make_run(name), environment=CPU_HOST, provenance=Provenance(commit=commit))


def test_merged_shards_keep_the_base_of_all() -> None:
    """Pairs of a case that the merged base lacks would not count."""
    merged = merge([make_paired("a"), make_paired("b")])
    assert merged.base is not None
    assert [case.id for case in merged.base.cases] == ["a/x", "b/x"]


@pytest.mark.parametrize(
    ("other", "named"),
    [(make_run("b"), "none"), (make_paired("b", "other"), "other"), (make_paired("b", ""), "in no commit")],
)
def test_shards_with_another_base_are_refused(other: Run, named: str) -> None:
    """A regression against one base would be judged against the other."""
    with pytest.raises(UsageError, match=f"the base of 2.json is {named}, and that of 1.json base"):
        merge([make_paired("a"), other])


def test_one_run_merges_to_itself() -> None:
    run = make_run("a", "b")
    assert merge([run]) == run


def test_a_case_whose_shard_is_missing_stays_planned() -> None:
    """It has no trials, which is INCOMPLETE later."""
    planned = tuple(map(make_case, "abc"))
    merged = merge([make_run("a"), make_run("c")], planned)
    assert merged.cases == planned
    assert [trial.case_id for trial in merged.trials] == ["a/x", "c/x"]


def test_runs_that_all_hold_the_whole_plan_merge() -> None:
    """The measured cases must not overlap; the plans may."""
    merged = merge([make_run("a", "b", measured="a"), make_run("a", "b", measured="b")])
    assert [case.id for case in merged.cases] == ["a/x", "b/x"]
    assert merged.selection == "a,b"


def make_shard(name: str, number: int, of: int = 3, cases: int = 3, selection: str = "tag:pr") -> Run:
    """Make the run of one case that is a shard of a plan of ``cases``."""
    shard = Shard(number=number, of=of, cases=cases)
    return replace(make_run(name), shard=shard, selection=selection)


def test_a_shard_is_a_part_of_the_cases_and_names_itself() -> None:
    """Of 4, 9 and 5 seconds the second of two parts has the 4 and the 5."""
    cases = (make_case("a", 4), make_case("b", 9), make_case("c", 5))
    assert pick_shard(cases, 2, 2) == ((cases[0], cases[2]), Shard(number=2, of=2, cases=3))


@pytest.mark.parametrize(
    ("number", "of", "what"),
    [
        (0, 2, "there is no shard 0 of 2"),
        (3, 2, "there is no shard 3 of 2"),
        (1, 0, "cannot divide into 0 shards"),
        (4, 4, "4 shards of 3 cases"),
    ],
)
def test_a_shard_that_cannot_be_is_refused(number: int, of: int, what: str) -> None:
    """Nobody would miss a shard without cases."""
    with pytest.raises(UsageError) as caught:
        pick_shard(tuple(map(make_case, "abc")), number, of)
    assert caught.value.what == what


def test_all_shards_are_the_whole() -> None:
    """In any order; merged, it is no shard."""
    merged = merge([make_shard("b", 2), make_shard("a", 1), make_shard("c", 3)])
    assert (merged.shard, merged.selection, len(merged.cases)) == (None, "tag:pr", 3)


def test_a_missing_shard_is_refused_unless_its_cases_are_planned() -> None:
    """Nothing else names its cases: without them the rest would pass."""
    runs = [make_shard("a", 1), make_shard("c", 3)]
    with pytest.raises(UsageError) as caught:
        merge(runs)
    assert caught.value.what == "shard 2 of 3 is missing"
    assert "--select 'tag:pr'" in caught.value.fix
    assert list_missing_shards(runs) == [2]
    assert list_missing_shards(runs[1:]) == [1, 2]
    with pytest.raises(UsageError) as caught:
        merge(runs[:1])
    assert caught.value.what == "shards 2, 3 of 3 are missing"
    assert len(merge(runs, tuple(map(make_case, "abc"))).cases) == 3


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (
            make_shard("b", 2, of=2),
            "two.json is shard 2 of 2 of 3 cases by 'tag:pr'",
        ),
        (
            make_shard("b", 2, selection="tag:night"),
            "two.json is shard 2 of 3 of 3 cases by 'tag:night'",
        ),
    ],
)
def test_shards_of_different_plans_are_refused(other: Run, what: str) -> None:
    """The second of two is not the second of three."""
    with pytest.raises(UsageError) as caught:
        merge_runs([make_shard("a", 1), other], NAMES)
    assert caught.value.what == f"{what}, and one.json shard 1 of 3 of 3 cases by 'tag:pr'"


def test_shards_that_lack_a_case_of_the_plan_are_refused() -> None:
    """Two machines with two registries divide otherwise: a case is in no part."""
    runs = [make_shard("a", 1, of=2), make_shard("b", 2, of=2)]
    with pytest.raises(UsageError, match="all shards together hold 2 cases, and 3 were divided"):
        merge(runs)


def test_an_unfinished_shard_leaves_the_whole_unfinished() -> None:
    """One that was stopped may lack trials."""
    assert not merge([make_run("a"), replace(make_run("b"), finished=False)]).finished


def test_shards_of_other_numbers_of_trials_do_not_merge() -> None:
    """Some cases would seem to lack trials, or be excused from them."""
    with pytest.raises(UsageError, match=r"the number of trials of 2\.json is 3, and that of 1\.json 1"):
        merge([make_run("a"), replace(make_run("b"), trials_planned=3)])


def test_another_card_of_the_same_model_may_join() -> None:
    """The UUID is no part of a host's identity."""
    other = replace(make_run("b"), environment=replace(ENVIRONMENT, device_uuid="b"))
    assert len(merge([make_run("a"), other]).trials) == 2


NAMES = ["one.json", "two.json"]
FAILED_IN_A = make_failure("a/x", "m", trial=0, kind=FailureKind.HANG, stage="rounds")


@pytest.mark.parametrize(
    ("runs", "what"),
    [
        ([make_run("a", "b"), make_run("b", "c")], "two.json holds what one.json holds as well: b/x"),
        (
            [make_run(*"abcde"), make_run(*"abcde")],
            "two.json holds what one.json holds as well: a/x, b/x, c/x and 2 more",
        ),
        (
            [make_run("a"), replace(make_run("a", measured=""), failures=(FAILED_IN_A,))],
            "two.json holds what one.json holds as well: a/x",
        ),
        (
            [make_run("a"), replace(make_run("b"), environment=replace(ENVIRONMENT, isa="avx512"))],
            "two.json has another environment than one.json: instruction set avx2 -> avx512",
        ),
        (
            [make_run("a"), replace(make_run("b"), provenance=Provenance(commit="def"))],
            "the commit of two.json is def, and that of one.json abc",
        ),
        (
            [make_run("a"), replace(make_run("b"), sampling={"super_blocks": 5.0, "block_s": 0.01})],
            "two.json sampled differently than one.json: block_s 0.01, super_blocks 5",
        ),
        (
            [replace(make_run("a"), sampling={"super_blocks": 5.0}), make_run("b")],
            "two.json sampled differently than one.json: not recorded",
        ),
        (
            [
                make_run("a"),
                replace(make_run("b"), cases=(replace(make_case("a"), definition="other"),), trials=()),
            ],
            "two.json defines the case 'a/x' differently than one.json",
        ),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(runs: list[Run], what: str) -> None:
    """Joining them would compare what cannot be compared."""
    with pytest.raises(UsageError) as caught:
        merge_runs(runs, NAMES[: len(runs)])
    assert what == caught.value.what


def record(case: str, alone: int, pairs: int, **changes: object) -> Run:
    """Make a run of one case with so many lone trials and pairs, each numbered from 1."""
    trials = [Trial(case_id=f"{case}/x", index=index) for index in range(1, alone + 1)]
    trials += [
        Trial(case_id=f"{case}/x", index=index, arm=arm, pairing=Pairing.LIVE)
        for index in range(1, pairs + 1)
        for arm in ("base", "head")
    ]
    run = make_run(case)
    base = BaseArm(label="main", environment=ENVIRONMENT, provenance=run.provenance, cases=run.cases)
    return replace(run, trials=tuple(trials), base=base if pairs else None, **changes)  # type: ignore[arg-type] # the test's


def test_pooled_trials_are_numbered_anew() -> None:
    """Two and one lone trials of ``a`` are 1 to 3, and so are the pairs of both runs, in either arm."""
    pooled = pool_runs(
        [record("a", 2, 1), record("b", 1, 0), record("a", 1, 2)], ["1.json", "2.json", "3.json"]
    )
    of_a = [trial for trial in pooled.trials if trial.case_id == "a/x"]
    assert [trial.index for trial in of_a if trial.pairing is Pairing.ALONE] == [1, 2, 3]
    assert [(trial.index, trial.arm) for trial in of_a if trial.pairing is Pairing.LIVE] == [
        (index, arm) for index in (1, 2, 3) for arm in ("base", "head")
    ]
    assert [case.id for case in pooled.cases] == ["a/x", "b/x"]
    assert pooled.base is not None
    assert [case.id for case in pooled.base.cases] == ["a/x"]
    assert pooled.wall_s == 30.0


def test_other_commits_are_pooled() -> None:
    """Nightly runs of one program are of one commit each."""
    other = record("a", 1, 0, provenance=Provenance(commit="def"))
    assert len(pool_runs([record("a", 1, 0), other], NAMES).trials) == 2


@pytest.mark.parametrize(
    ("runs", "what"),
    [
        (
            [record("a", 1, 0), record("a", 1, 0, environment=replace(ENVIRONMENT, torch="2.14.0"))],
            "two.json has another environment than one.json: torch 2.13.0+cpu -> 2.14.0",
        ),
        (
            [record("a", 1, 0), record("a", 1, 0, sampling={"super_blocks": 3.0})],
            "two.json sampled differently than one.json: super_blocks 3",
        ),
        (
            [record("a", 1, 0), record("a", 1, 0, cases=(replace(make_case("a"), definition="other"),))],
            "two.json defines the case 'a/x' differently than one.json",
        ),
    ],
)
def test_what_is_no_noise_is_not_pooled(runs: list[Run], what: str) -> None:
    """Another stack, other sampling or another definition would pass for noise."""
    with pytest.raises(UsageError, match=f"^{re.escape(what)}\n"):
        pool_runs(runs, NAMES[: len(runs)])


def test_a_selection_that_lacks_cases_of_a_missing_shard_is_refused() -> None:
    """It names one of three divided cases: the third would be gone, and not MISSING."""
    runs = [make_shard("a", 1), make_shard("c", 3)]
    with pytest.raises(UsageError, match="names 2 of the 3 cases that were divided") as caught:
        merge(runs, (make_case("a"),))
    assert "--select 'tag:pr'" in caught.value.fix


def test_a_trial_is_pooled_once() -> None:
    """An earlier save of a run has the same trials: copies agree, and look like little noise."""
    run = record("a", 2, 0)
    run = replace(run, trials=tuple(replace(trial, started="2026-03-01T00:00:00Z") for trial in run.trials))
    earlier = replace(run, trials=run.trials[:1])
    with pytest.raises(UsageError, match=r"^two\.json holds a trial of a/x that one.json holds as well"):
        pool_runs([run, earlier], NAMES)
    later = replace(run, trials=tuple(replace(trial, started="2026-03-01T01:00:00Z") for trial in run.trials))
    assert len(pool_runs([run, later], NAMES).trials) == 4
