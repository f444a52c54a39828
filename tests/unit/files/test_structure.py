import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from enum import EnumMeta
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.errors import FileError
from gate.files.codec import encode
from gate.files.invalid import find_nearest, format_key, is_integer, is_number
from gate.files.structure import decode
from gate.records.bounds import MOMENT, Fraction, Pattern, Range
from gate.records.cases import Case, DType, Metric
from gate.records.codes import Code
from gate.records.facts import Fact, OneOf
from gate.records.run import Baseline, GraphBreak, Run, Trial
from gate.records.verdict import Verdict

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
INTEGERS = st.integers(-(2**63) + 1, 2**63 - 1)
PLAIN = st.recursive(
    st.none() | st.booleans() | INTEGERS | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    float: NUMBERS,
    int: INTEGERS,
    bool: st.booleans(),
    types.NoneType: st.none(),
    object: PLAIN,
}


def make_limited(kind: type, limit: object) -> st.SearchStrategy[Any]:
    """Values of a type with a limit."""
    if limit is MOMENT:
        return st.just("") | st.dates().map(lambda day: f"{day.isoformat()}T12:00:00Z")
    if isinstance(limit, OneOf):
        return st.sampled_from(sorted(limit.codes)).map(make_fact)
    assert isinstance(limit, Range)
    assert limit.minimum is not None
    if kind is int:
        return st.integers(int(limit.minimum), int(limit.maximum or 2**63 - 1))
    return st.floats(limit.minimum, limit.maximum, allow_nan=False, allow_infinity=False)


def make_fact(code: Code) -> Fact:
    """A fact with the fields of its code."""
    numbers = dict.fromkeys(code.numbers, 1.0)
    return Fact(code=code, numbers=numbers, cases=("a",), metrics=(Metric.DRIFT,))


def make_strategy(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation that records use."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in SCALARS:
        strategy = SCALARS[annotation]
    elif origin is Annotated:
        strategy = make_limited(*arguments)
    elif origin is tuple:
        strategy = st.lists(make_strategy(arguments[0]), max_size=2).map(tuple)
    elif origin is Mapping:
        strategy = st.dictionaries(make_strategy(arguments[0]), make_strategy(arguments[1]), max_size=2)
    elif origin in (types.UnionType, typing.Union):
        strategy = st.one_of(*map(make_strategy, arguments))
    elif isinstance(annotation, EnumMeta):
        strategy = st.sampled_from(list(annotation))
    else:
        hints = typing.get_type_hints(annotation, include_extras=True)
        strategy = st.builds(annotation, **{name: make_strategy(hint) for name, hint in hints.items()})
    return strategy


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A record with a limit of each kind and a value that may be a list."""

    threads: Annotated[int, Range(minimum=1, maximum=8)] = 1
    share: Annotated[float, Range(above=0)] = 0.5
    name: Annotated[str, Pattern(regex="[a-z]+", what="a name of a-z")] = "a"
    dtype: DType | tuple[DType, ...] = DType.FLOAT32
    part: Annotated[float, Fraction()] = 0.5


def decode_error(record_type: type, value: object) -> FileError:
    with pytest.raises(FileError) as caught:
        decode(record_type, value, "run.json")
    return caught.value


def decode_or_refuse(record_type: type, value: object) -> None:
    """Decode; any exception but FileError fails the test, and so does an error of three lines."""
    lines = 2
    try:
        decode(record_type, value, "x")
    except FileError as error:
        lines = len(str(error).splitlines())
    assert lines == 2


@pytest.mark.parametrize("record_type", [Run, Verdict, Baseline])
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_decoding_what_was_encoded_gives_the_same_record(record_type: type, data: st.DataObject) -> None:
    """A record survives the way to plain values and back."""
    record = data.draw(make_strategy(record_type))
    assert record == decode(record_type, encode(record), "x")


@pytest.mark.parametrize("key", ["index", "case_id", "conditions"])
def test_the_order_of_keys_changes_neither_a_record_nor_its_error(key: str) -> None:
    """A record whose keys are in the order in which we write them is decoded another way."""
    plain = encode(Trial(case_id="a/b", index=3, samples={Metric.DRIFT: (0.5,)}))
    other = dict(reversed(plain.items()))
    assert decode(Trial, plain, "x") == decode(Trial, other, "x")
    for keys in (plain, other):
        with pytest.raises(FileError, match=rf"^x: {key}: expected .*, got a list of 0"):
            decode(Trial, {**keys, key: []}, "x")


@given(value=HOSTILE)
@settings(max_examples=200)
def test_any_foreign_value_is_refused_as_a_file_error_only(value: object) -> None:
    """No plain value makes the decoder raise anything but FileError, and its text is two lines."""
    for record_type in (Run, Trial, Case, Sample):
        decode_or_refuse(record_type, value)


@given(arguments=HOSTILE, metric=st.text(max_size=8), samples=HOSTILE)
@settings(max_examples=200)
def test_foreign_values_inside_a_record_are_refused_as_a_file_error_only(
    arguments: object, metric: str, samples: object
) -> None:
    """The same holds for values inside a record."""
    for record_type, value in (
        (Case, {"id": "a/b", "model": "a", "arguments": arguments}),
        (Trial, {"case_id": "a/b", "index": 0, "samples": {metric: samples, "drift": samples}}),
    ):
        decode_or_refuse(record_type, value)


def test_an_error_names_the_whole_key_path() -> None:
    """The path leads through lists, mappings and records to the value."""
    good = {"case_id": "a/b", "index": 0}
    bad = {"case_id": "a/b", "index": 1, "samples": {"compiled_latency": [0.1, 0.2, "0.3"]}}
    run = {"cases": [], "environment": {}, "provenance": {}, "trials": [good, bad]}
    # The trials come before the environment's missing keys because values are decoded in file order.
    error = decode_error(Run, {"trials": run["trials"]})
    assert error.key == "trials[1].samples.compiled_latency[2]"
    assert error.problem == "expected a finite number, got '0.3'"
    assert error.fix == "Write a finite number there."


FINITE = "expected a finite number, got "
WHOLE = "expected a whole number, got "
INFINITE = float("inf")


@pytest.mark.parametrize(
    ("keys", "key", "problem"),
    [
        ({"index": True}, "index", WHOLE + "True"),
        ({"index": 2**63}, "index", WHOLE + "a huge integer"),
        ({"index": 1.0}, "index", WHOLE + "1.0"),
        ({"case_id": 3}, "case_id", "expected text, got 3"),
        ({"case_id": None}, "case_id", "expected text, got null"),
        ({"case_id": "\ud800"}, "case_id", "expected text, got '\\ud800'"),
        ({"overhead_s": True}, "overhead_s", FINITE + "True"),
        ({"conditions": {"repeated": 1}}, "conditions.repeated", "expected true or false, got 1"),
        ({"overhead_s": INFINITE}, "overhead_s", FINITE + "inf"),
        ({"overhead_s": 2**63}, "overhead_s", FINITE + "a huge integer"),
        ({"samples": {"drift": [float("nan")]}}, "samples.drift[0]", FINITE + "nan"),
        ({"samples": {"drift": [1.0, INFINITE, -INFINITE]}}, "samples.drift[1]", FINITE + "inf"),
        ({"samples": {"drift": [1e308, 1e308, False]}}, "samples.drift[2]", FINITE + "False"),
        ({"warnings": "text"}, "warnings", "expected a list, got 'text'"),
        ({"phases_s": []}, "phases_s", "expected a mapping, got a list of 0"),
        ({"odd key\n": 1}, "['odd key\\n']", "unknown key"),
    ],
)
def test_a_wrong_value_is_refused(keys: dict[str, object], key: str, problem: str) -> None:
    """Each kind of invalid value is reported with its key."""
    error = decode_error(Trial, {"case_id": "a/b", "index": 0, **keys})
    assert (key, problem) == (error.key, error.problem)


def test_what_is_no_record_or_lacks_a_key_is_refused() -> None:
    """A record is a mapping with all keys that have no default."""
    assert decode_error(Trial, []).problem == "expected a mapping, got a list of 0"
    error = decode_error(Trial, {"index": 1})
    assert (error.problem, error.fix) == ("the key 'case_id' is missing", "Add 'case_id' there.")


def test_a_sum_that_overflows_is_not_taken_for_infinity() -> None:
    """The fast path sums samples; large finite ones still pass."""
    trial = decode(Trial, {"case_id": "a", "index": 1, "samples": {"drift": [1e308, 1e308]}}, "x")
    assert trial.samples == {Metric.DRIFT: (1e308, 1e308)}


def test_an_integer_is_accepted_where_a_number_is_due() -> None:
    """JSON writers drop the point of 2.0."""
    trial = decode(Trial, {"case_id": "a", "index": 1, "overhead_s": 2, "samples": {"drift": [1, 2.5]}}, "x")
    assert trial.overhead_s == 2.0
    assert isinstance(trial.overhead_s, float)
    assert trial.samples == {Metric.DRIFT: (1.0, 2.5)}


@pytest.mark.parametrize(("value", "holds"), [(2**63 - 1, True), (2**63, False)])
def test_an_integer_has_at_most_64_bits(value: int, *, holds: bool) -> None:
    """On either side of zero, as any reader of JSON can hold it."""
    assert [is_integer(value), is_integer(-value), is_number(-value)] == [holds] * 3


def test_an_unknown_key_names_the_nearest() -> None:
    """A typing error is fixed in the message."""
    error = decode_error(Case, {"id": "a/b", "model": "a", "factroy": "x:y"})
    assert error.key == "factroy"
    assert error.problem == "unknown key"
    assert error.fix == "Did you mean 'factory'?"


def test_an_unknown_key_that_is_like_none_lists_the_known_ones() -> None:
    error = decode_error(GraphBreak, {"reason": "a", "location": "b", "zzz": 1})
    assert error.fix == "Known keys: innermost, location, reason, registry, stack."


def test_an_unknown_member_names_the_nearest() -> None:
    """The same holds for enumerations."""
    error = decode_error(Case, {"id": "a/b", "model": "a", "dtype": "flaot32"})
    assert error.problem == "expected one of float32, bfloat16, float16, got 'flaot32'"
    assert error.fix == "Did you mean 'float32'?"


@pytest.mark.parametrize("keys", [{"k" * 4_000_000: 1}, {"dtype": "float32" * 600_000}])
def test_a_word_of_megabytes_is_cut_and_compared_with_nothing(keys: dict[str, object]) -> None:
    """The search for the nearest word takes the square of its length."""
    error = decode_error(Case, {"id": "a/b", "model": "a", **keys})
    assert len(str(error)) < 1000
    assert "Did you mean" not in error.fix


def test_words_of_a_hundred_characters_are_still_compared() -> None:
    """One character more is not."""
    candidates = ["x" * 99 + "y"]
    assert find_nearest("x" * 100, candidates) == candidates[0]
    assert find_nearest("x" * 101, candidates) == ""


def test_any_plain_value_has_a_depth_limit() -> None:
    """Arguments may be any plain value, but not a bottomless one."""
    value: object = 1
    for _ in range(16):
        value = {"of": [value]}
    case = {"id": "a/b", "model": "a", "arguments": {"x": value}}
    assert encode(decode(Case, case, "x"))["arguments"] == {"x": value}
    for deeper in ([value], {"of": value}):
        error = decode_error(Case, {**case, "arguments": {"x": deeper}})
        assert error.problem == "is nested deeper than 32 levels"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"threads": 0}, "expected a number from 1 to 8, got 0"),
        ({"threads": 9}, "expected a number from 1 to 8, got 9"),
        ({"share": 0}, "expected a number above 0, got 0"),
        ({"part": "half"}, "expected a percentage or a fraction, got 'half'"),
        ({"name": "A"}, "expected a name of a-z, got 'A'"),
        ({"name": "a\n"}, "expected a name of a-z, got 'a\\n'"),
    ],
)
def test_a_limit_is_applied(value: object, problem: str) -> None:
    """Limits in an annotation are part of decoding."""
    assert problem == decode_error(Sample, value).problem


def test_a_key_may_take_one_value_or_a_list() -> None:
    """The value decides in a union of a scalar and a tuple."""
    assert decode(Sample, {"dtype": "bfloat16"}, "x").dtype is DType.BFLOAT16
    assert decode(Sample, {"dtype": ["bfloat16"]}, "x").dtype == (DType.BFLOAT16,)


@pytest.mark.parametrize("kind", [int | str, tuple[int, ...] | tuple[str, ...], set[int]])
def test_decoding_a_type_of_no_record_is_a_bug(kind: type) -> None:
    """A value could not tell which of two is meant."""
    with pytest.raises(TypeError, match="the codec does not know"):
        decode(kind, 1, "x")


def test_encoding_an_unknown_type_is_a_bug() -> None:
    """Only what records are made of can be encoded."""
    with pytest.raises(TypeError, match="cannot encode set"):
        encode({1, 2})


def test_the_nearest_name_prefers_swapped_letters() -> None:
    """A transposition is the likeliest slip."""
    assert find_nearest("modle", ["mode", "model"]) == "model"
    assert find_nearest("modell", ["mode", "model"]) == "model"
    assert find_nearest("xyz", ["mode", "model"]) == ""
    assert find_nearest("model" * 10_000_000, ["mode", "model"]) == ""  # at once


def test_keys_are_formatted_as_they_are_read() -> None:
    """Odd keys are quoted and cut, so that a message keeps its two lines."""
    assert format_key("batch") == ".batch"
    assert format_key("a b") == "['a b']"
    assert format_key("k" * 60) == f".{'k' * 60}"
    assert format_key("k" * 61).startswith("['kkk")
    assert len(format_key("a b" * 100)) < 70
