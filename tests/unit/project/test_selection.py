import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import UsageError
from gate.project.selection import select_cases
from gate.records.cases import Case


def make_case(model: str, rest: str, *tags: str) -> Case:
    """Make a case that has only the fields for selecting."""
    return Case(id=f"{model}/{rest}", model=model, tags=tags)


CASES = (
    make_case("bert", "inference-smoke", "smoke", "pr"),
    make_case("bert", "training-smoke", "smoke"),
    make_case("bert", "inference-full", "nightly"),
    make_case("resnet50", "inference-smoke", "smoke", "pr"),
    make_case("mine", "test", "pr"),
)
TERMS = [
    "bert",
    "bert/*",
    "bert/inference-full",
    "*smoke",
    "tag:smoke",
    "tag:pr",
    "tag:nightly",
    "mine/test",
    "*",
]


def select(selection: str) -> list[str]:
    """Ids of the selected cases."""
    return [case.id for case in select_cases(CASES, selection)]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("bert/inference-full", ["bert/inference-full"]),
        ("mine", ["mine/test"]),
        ("*/inference-*,!bert/*", ["resnet50/inference-smoke"]),
        ("tag:nightly", ["bert/inference-full"]),
        (" tag:nightly , mine ,", ["bert/inference-full", "mine/test"]),
        ("mine,tag:nightly", ["bert/inference-full", "mine/test"]),
        ("!tag:smoke", ["bert/inference-full", "mine/test"]),
        ("tag:smoke,!bert/*,bert/inference-full", ["resnet50/inference-smoke"]),
        ("!bert,tag:pr", ["resnet50/inference-smoke", "mine/test"]),
        ("bert/[it]*-full", ["bert/inference-full"]),
    ],
)
def test_a_selection_names_cases(selection: str, expected: list[str]) -> None:
    """Ids, models, globs and tags; what is removed stays removed; the order is the registry's."""
    assert expected == select(selection)


@pytest.mark.parametrize(
    ("selection", "what", "fix"),
    [
        ("", "the selection is empty", "Name cases, as in --select tag:smoke."),
        (" , ", "the selection is empty", "Name cases, as in --select tag:smoke."),
        ("brt", "no model matches 'brt'", "Did you mean 'bert'?"),
        ("resnet5/*", "no model matches 'resnet5/*'", "Did you mean 'resnet50'?"),
        ("bert/training-smok", "no case matches 'bert/training-smok'", "Did you mean 'bert/training-smoke'?"),
        ("tag:smoke,tag:nightli", "no case has the tag 'nightli'", "Did you mean 'tag:nightly'?"),
        ("!brt,bert", "no model matches 'brt'", "Did you mean 'bert'?"),
        (
            "xyz",
            "no model matches 'xyz'",
            "There are bert, mine, resnet50: see `compile-gate models`.",
        ),
        (
            "tag:weekly",
            "no case has the tag 'weekly'",
            "There are tag:nightly, tag:pr, tag:smoke: see `compile-gate models`.",
        ),
        (
            "bert,!tag:smoke,!tag:nightly",
            "the selection 'bert,!tag:smoke,!tag:nightly' leaves no case",
            "List what there is with `compile-gate models`.",
        ),
    ],
)
def test_a_selection_of_nothing_is_refused(selection: str, what: str, fix: str) -> None:
    """Every term must match, also a removing one."""
    with pytest.raises(UsageError) as caught:
        select(selection)
    assert (what, fix) == (caught.value.what, caught.value.fix)


@pytest.mark.parametrize(("count", "others"), [(8, ""), (9, " and others")])
def test_a_selection_of_nothing_is_answered_with_eight_names(count: int, others: str) -> None:
    """As many as fit on a line."""
    cases = tuple(make_case(f"m{index}", "x") for index in range(count))
    with pytest.raises(UsageError) as caught:
        select_cases(cases, "zzz")
    assert caught.value.fix == f"There are m0, m1, m2, m3, m4, m5, m6, m7{others}: see `compile-gate models`."
    with pytest.raises(UsageError) as caught:
        select_cases(cases, "tag:zzz")
    assert caught.value.fix == "No case has any tag: name cases or models instead."


def select_or_nothing(terms: list[str]) -> set[str]:
    """The selected ids; none where the selection leaves none."""
    try:
        return set(select(",".join(terms)))
    except UsageError:
        return set()


@given(terms=st.lists(st.sampled_from(TERMS), min_size=1, max_size=4), data=st.data())
def test_naming_unites_in_any_order(terms: list[str], data: st.DataObject) -> None:
    """A selection is the union of its terms."""
    union = set().union(*(select(term) for term in terms))
    assert union == set(select(",".join(data.draw(st.permutations(terms)))))


@given(
    named=st.lists(st.sampled_from(TERMS), max_size=3),
    removed=st.lists(st.sampled_from(TERMS), min_size=1, max_size=3),
    data=st.data(),
)
def test_removing_subtracts_in_any_order(named: list[str], removed: list[str], data: st.DataObject) -> None:
    """What any removing term matches is out, wherever the term stands."""
    kept = set().union(*(select(term) for term in named)) if named else {case.id for case in CASES}
    expected = kept.difference(*(select(term) for term in removed))
    terms = data.draw(st.permutations([*named, *(f"!{term}" for term in removed)]))
    assert expected == select_or_nothing(list(terms))
