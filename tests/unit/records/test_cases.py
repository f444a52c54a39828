from dataclasses import fields

import pytest

from gate.files.structure import decode
from gate.records.cases import Case, Mode, collect_columns, group_by
from gate.records.run import Conditions


@pytest.mark.parametrize(
    ("mode", "options", "tuned"),
    [
        (Mode.DEFAULT, {}, False),
        (Mode.REDUCE_OVERHEAD, {"epilogue_fusion": True}, False),
        (Mode.MAX_AUTOTUNE, {}, True),
        (Mode.MAX_AUTOTUNE_NO_CUDAGRAPHS, {}, True),
        (Mode.DEFAULT, {"max_autotune": True}, True),
        (Mode.DEFAULT, {"max_autotune_gemm": True}, True),
        (Mode.DEFAULT, {"max-autotune-pointwise": True}, True),
        (Mode.DEFAULT, {"max_autotune": False}, False),
    ],
)
def test_a_case_is_tuned_by_its_mode_or_an_option(
    mode: Mode, options: dict[str, object], *, tuned: bool
) -> None:
    """Such kernels are chosen by timing, so nothing else may run meanwhile."""
    assert Case(id="a/b", model="a", mode=mode, options=options).is_tuned is tuned


def test_of_a_host_of_which_nothing_is_known_nothing_is_assumed() -> None:
    """An older file lacks some of its numbers."""
    conditions = decode(Conditions, {}, "run.json")
    assert not any(getattr(conditions, each.name) for each in fields(conditions))


def test_values_are_grouped_in_their_order() -> None:
    """Groups in the order of their first values."""
    assert group_by(["bb", "a", "cc", "d"], len) == {2: ["bb", "cc"], 1: ["a", "d"]}
    assert list(group_by(["bb", "a"], len)) == [2, 1]


def test_columns_have_the_values_of_the_tables_that_have_them() -> None:
    """A table without the key leaves no gap."""
    assert collect_columns([{"a": 1, "b": 2}, {"b": 3}, {"a": 4}]) == {"a": (1, 4), "b": (2, 3)}
