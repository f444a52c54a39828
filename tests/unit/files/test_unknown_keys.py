"""Reading what a newer minor version wrote: unknown keys go, and nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import FileError
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
    inner, found = {"size": 1.0, "novelty": 2}, Inner(size=1.0)
    value = {
        "one": inner,
        "many": [inner, {"novelty": []}],
        "named": {"novelty": inner},
        "free": {"novelty": {"novelty": 1}},
        "numbers": [1.0],
        "novelty": {"size": 1.0},
    }

    decoded = decode(Outer, value, "x", drops_unknown=True)

    assert decoded == Outer(
        one=found,
        many=(found, Inner()),
        named={"novelty": found},
        free={"novelty": {"novelty": 1}},
        numbers=(1.0,),
    )
    with pytest.raises(FileError, match="unknown key"):
        decode(Outer, value, "x")


@pytest.mark.parametrize("value", [{"one": 3}, {"many": {"a": 1}}, {"named": [1]}, [], None, "text"])
def test_what_is_no_record_where_one_is_due_is_refused(value: object) -> None:
    """Only keys are dropped."""
    with pytest.raises(FileError):
        decode(Outer, value, "x", drops_unknown=True)


@given(value=HOSTILE)
@settings(max_examples=200)
def test_what_a_strict_decoder_takes_is_the_same(value: object) -> None:
    """And nothing else than a FileError is raised."""
    for record_type in (Run, Verdict, Baseline, Outer):
        try:
            expected = decode(record_type, value, "x")
        except FileError:
            with suppress(FileError):
                decode(record_type, value, "x", drops_unknown=True)
        else:
            assert decode(record_type, value, "x", drops_unknown=True) == expected
