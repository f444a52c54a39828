"""The file of an approval: strict, bounded, for one commit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import FileError
from gate.records import Acceptance, Approval, Metric, Policy, Waiver
from gate.store.approvals import (
    MAX_ACCEPTED,
    MAX_APPROVAL_BYTES,
    approve_policy,
    compute_expiry,
    decode_approval,
    load_approval,
    merge_approvals,
    name_approval,
    render_approval,
)

COMMIT = "a" * 40
FIRST = Acceptance(
    case="bert/inference-float32-smoke-default",
    metric=Metric.COMPILED_LATENCY,
    allowance=0.33,
    reason='the "new" attention: #123',
    author="ada",
    expires="2026-11-15",
)
SECOND = replace(FIRST, metric=Metric.GRAPH_BREAKS, allowance=2.0)
WAIVER = Waiver(reason="the first change with a gate", author="ada", expires="2026-11-15")
APPROVAL = Approval(commit=COMMIT, accepted=(FIRST, SECOND), first_baselines=WAIVER)
BEGIN = f"version: 1\ncommit: {COMMIT}\n"


def decode(text: str) -> Approval:
    return decode_approval(text.encode(), "x.yml", COMMIT)


def test_the_file_is_for_people_to_read() -> None:
    """A key a line, as accepted.yml is, and a header that says how to take it back."""
    assert (
        render_approval(replace(APPROVAL, accepted=(FIRST,)))
        == """\
# Written by compile-gate: what was accepted for this commit, and no other. Remove the file to revoke it.
version: 1
commit: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
accepted:
  - case: bert/inference-float32-smoke-default
    metric: compiled_latency
    allowance: 33%
    reason: "the \\"new\\" attention: #123"
    author: ada
    expires: "2026-11-15"
first_baselines:
  reason: "the first change with a gate"
  author: ada
  expires: "2026-11-15"
"""
    )


@pytest.mark.parametrize(
    "approval",
    [
        APPROVAL,
        replace(APPROVAL, accepted=()),
        replace(APPROVAL, first_baselines=None),
        Approval(commit=COMMIT),
    ],
)
def test_what_is_rendered_is_read_back(approval: Approval, tmp_path: Path) -> None:
    """With acceptances, with a lack of baselines that somebody takes, with both and with neither."""
    path = tmp_path / name_approval(COMMIT)
    path.parent.mkdir()
    path.write_text(render_approval(approval), encoding="utf-8")
    assert load_approval(path, COMMIT) == approval


@given(st.text(min_size=1, max_size=300).filter(lambda text: text.isprintable() and text.strip()))
def test_whatever_reason_can_be_seen_is_read_back(reason: str) -> None:
    """Quotes, colons and letters of any script survive."""
    approval = Approval(commit=COMMIT, accepted=(replace(FIRST, reason=reason),))
    assert decode(render_approval(approval)) == approval


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("", "", "is empty"),
        ("version: 1\n", "", "the key 'commit' is missing"),
        ("version: 2\n", "version", "this compile-gate reads version 1"),
        (f"version: 1\ncommit: {'b' * 40}\n", "commit", "another commit than aaaaaaaaaaaa"),
        ("version: 1\ncommit: main\n", "commit", "a whole commit id"),
        (BEGIN + "accepted: [{}]\n", "accepted[0]", "the key 'case' is missing"),
        (BEGIN + "first_baselines: {reason: x, author: ada}\n", "first_baselines", "'expires' is missing"),
        (BEGIN + "anything: 1\n", "anything", "unknown key"),
        (BEGIN + "commit: x\n", "commit", "is given twice, first in line 2"),
        (BEGIN + "accepted: &a []\n", "", "an anchor or alias"),
    ],
)
def test_a_file_that_is_no_approval_is_refused(text: str, key: str, words: str) -> None:
    """Another commit's, another version's, cut short, extended: the error names file, key and fix."""
    with pytest.raises(FileError, match=words) as caught:
        decode(text)
    assert caught.value.key == key
    assert caught.value.file.startswith("x.yml")
    assert caught.value.fix


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"case": "bert/*"}, "case"),  # a pattern would cover cases that nobody looked at
        ({"case": ""}, "case"),
        ({"allowance": -0.1}, "allowance"),
        ({"reason": ""}, "reason"),
        ({"reason": "two\nlines"}, "reason"),
        ({"reason": "\u202eturned"}, "reason"),
        ({"reason": "x" * 301}, "reason"),
        ({"author": "a b"}, "author"),
        ({"author": ""}, "author"),
        ({"expires": "2026-02-30"}, "expires"),
        ({"expires": "soon"}, "expires"),
    ],
)
def test_an_entry_that_says_too_little_or_too_much_is_refused(changes: dict[str, object], key: str) -> None:
    """One case, one metric, a bounded reason of one line, somebody's login and a day."""
    entry = replace(FIRST, **changes)  # type: ignore[arg-type] # the test's
    with pytest.raises(FileError) as caught:
        decode(render_approval(Approval(commit=COMMIT, accepted=(entry,))))
    assert caught.value.key == f"accepted[0].{key}"


def test_a_file_is_bounded() -> None:
    """More entries or bytes than a person reads are refused; as many as may be are not."""
    longest = replace(FIRST, case="c" * 300, reason="\U0001f600" * 300, author="a" * 100)
    most = Approval(commit=COMMIT, accepted=(longest,) * MAX_ACCEPTED, first_baselines=WAIVER)
    assert len(render_approval(most).encode()) < MAX_APPROVAL_BYTES
    assert decode(render_approval(most)) == most
    with pytest.raises(FileError, match="more than 200"):
        decode(render_approval(replace(most, accepted=(FIRST,) * (MAX_ACCEPTED + 1))))
    with pytest.raises(FileError, match="is larger than"):
        decode(BEGIN + "#" * MAX_APPROVAL_BYTES)


def test_a_second_approval_adds_to_the_first() -> None:
    """Of the same case and metric the newer word counts; the rest stays."""
    again = replace(FIRST, allowance=0.5, author="bob")
    merged = merge_approvals(APPROVAL, Approval(commit=COMMIT, accepted=(again,)))
    assert merged == replace(APPROVAL, accepted=(again, SECOND))


def test_approvals_are_added_to_what_decides() -> None:
    """Apart from what accepted.yml says: they are of what is judged alone."""
    policy = Policy(thresholds={}, acceptances=(SECOND,))
    approved = approve_policy(policy, [Approval(commit=COMMIT, accepted=(FIRST,))])
    assert (approved.acceptances, approved.approved, approved.waiver) == ((SECOND,), (FIRST,), None)
    assert approved.accepted == (SECOND, FIRST)
    assert approve_policy(policy, []) == policy


def test_a_lack_of_baselines_must_be_taken_for_each_commit() -> None:
    """In a merge group of two, one says nothing for the other; the first to expire counts."""
    sooner = replace(WAIVER, expires="2026-11-02")
    both = [APPROVAL, Approval(commit="b" * 40, first_baselines=sooner)]
    one = [APPROVAL, Approval(commit="b" * 40, accepted=(FIRST,))]
    assert approve_policy(Policy(thresholds={}), both).waiver == sooner
    assert approve_policy(Policy(thresholds={}), one).waiver is None


def test_an_approval_lasts_two_weeks() -> None:
    """14 days, over the end of a month."""
    assert compute_expiry("2026-02-20") == "2026-03-06"
