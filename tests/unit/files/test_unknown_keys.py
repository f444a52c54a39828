"""Reading what a newer minor version wrote: unknown keys go, and nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import FileError
from gate.files.codec import drop_unknown_keys
from gate.files.structure import decode
from gate.records import Baseline, Run, Verdict
from gate.records.bounds import NotEmpty

HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Inner:
    """A record within others."""

    size: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Outer:
    """A record with records in each kind of container."""

    one: Inner | None = None
    many: Annotated[tuple[Inner, ...], NotEmpty(what="a list")] = ()
    named: Mapping[str, Inner] = field(default_factory=dict)
    free: Mapping[str, object] = field(default_factory=dict)
    numbers: tuple[float, ...] = ()


def test_keys_are_dropped_in_every_container_and_from_records_only() -> None:
    """A mapping's own keys are its content, whatever they are called."""
    inner = {"size": 1.0, "novelty": 2}
    value = {
        "one": inner,
        "many": [inner, {"novelty": []}],
        "named": {"novelty": inner},
        "free": {"novelty": {"novelty": 1}},
        "numbers": [1.0],
        "novelty": {"size": 1.0},
    }

    assert drop_unknown_keys(Outer, value) == {
        "one": {"size": 1.0},
        "many": [{"size": 1.0}, {}],
        "named": {"novelty": {"size": 1.0}},
        "free": {"novelty": {"novelty": 1}},
        "numbers": [1.0],
    }


def test_what_is_no_record_where_one_is_due_is_left_to_the_decoder() -> None:
    """Dropping judges nothing."""
    values: tuple[object, ...] = ({"one": 3}, {"many": {"a": 1}}, {"named": [1]}, [], None, "text")
    for value in values:
        assert drop_unknown_keys(Outer, value) == value


@given(value=HOSTILE)
@settings(max_examples=200)
def test_any_value_can_be_dropped_from(value: object) -> None:
    """Nothing is raised, and what a strict decoder takes it takes as it is."""
    for record_type in (Run, Verdict, Baseline, Outer):
        left = drop_unknown_keys(record_type, value)
        try:
            expected = decode(record_type, value, "x")
        except FileError:
            continue
        assert decode(record_type, left, "x") == expected
