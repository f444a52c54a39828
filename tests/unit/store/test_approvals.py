"""The file of an approval: strict, bounded, for one commit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import FileError
from gate.project.config import load_config
from gate.records import Acceptance, Approval, Metric, Waiver
from gate.store.approvals import (
    MAX_ACCEPTED,
    MAX_APPROVAL_BYTES,
    compute_expiry,
    decode_approval,
    load_approval,
    load_policy,
    merge_approvals,
    name_approval,
    name_gate,
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
    gate="a/gate.yml",
    environment="cpu-amd-epyc-torch2.13.0-1a2b3c4d",
)
SECOND = replace(FIRST, metric=Metric.GRAPH_BREAKS, allowance=2.0)
WAIVER = Waiver(
    cases=(FIRST.case,),
    reason="the first change with a gate",
    author="ada",
    expires="2026-11-15",
    gate=FIRST.gate,
    environment=FIRST.environment,
)
APPROVAL = Approval(commit=COMMIT, accepted=(FIRST, SECOND), first_baselines=(WAIVER,))
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
    gate: a/gate.yml
    environment: cpu-amd-epyc-torch2.13.0-1a2b3c4d
first_baselines:
  - cases: [bert/inference-float32-smoke-default]
    reason: "the first change with a gate"
    author: ada
    expires: "2026-11-15"
    gate: a/gate.yml
    environment: cpu-amd-epyc-torch2.13.0-1a2b3c4d
"""
    )


@pytest.mark.parametrize(
    "approval",
    [
        APPROVAL,
        replace(APPROVAL, accepted=()),
        replace(APPROVAL, first_baselines=()),
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
        (BEGIN + "first_baselines: [{reason: x, author: ada}]\n", "first_baselines[0]", "'cases' is missing"),
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
        ({"gate": "\u202egate.yml"}, "gate"),
        ({"environment": "../x"}, "environment"),
        ({"environment": "cpu-*"}, "environment"),  # of accepted.yml alone: nobody looked at all machines
    ],
)
def test_an_entry_that_says_too_little_or_too_much_is_refused(changes: dict[str, object], key: str) -> None:
    """One case, metric, gate and machine, a bounded reason of one line, somebody's login and a day."""
    entry = replace(FIRST, **changes)  # type: ignore[arg-type] # the test's
    with pytest.raises(FileError) as caught:
        decode(render_approval(Approval(commit=COMMIT, accepted=(entry,))))
    assert caught.value.key == f"accepted[0].{key}"


def test_a_file_is_bounded() -> None:
    """More entries or bytes than a person reads are refused; as many as may be are not."""
    longest = replace(FIRST, case="c" * 300, reason="\U0001f600" * 300, author="a" * 100)
    most = Approval(commit=COMMIT, accepted=(longest,) * MAX_ACCEPTED, first_baselines=(WAIVER,))
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


@pytest.mark.parametrize("gate", ["b/gate.yml", "a/gate.yml:slow", FIRST.gate])
def test_what_another_gate_or_machine_accepts_is_kept_apart(gate: str) -> None:
    """Of the same commit, case and metric: two entries, and two that take a lack of baselines."""
    other = "cpu-intel-torch2.13.0-1a2b3c4d" if gate == FIRST.gate else FIRST.environment
    entry = replace(FIRST, gate=gate, environment=other)
    waiver = replace(WAIVER, gate=gate, environment=other)
    merged = merge_approvals(APPROVAL, Approval(commit=COMMIT, accepted=(entry,), first_baselines=(waiver,)))
    assert merged.accepted == (FIRST, SECOND, entry)
    assert merged.first_baselines == (WAIVER, waiver)


@pytest.mark.parametrize(
    ("config", "key", "expected"),
    [
        ("gate.yml", "default", "gate.yml"),
        ("a/gate.yml", "default", "a/gate.yml"),
        ("a/gate.yml", "slow", "a/gate.yml:slow"),
        ("a/../b/gate.yml", "default", "b/gate.yml"),
        ("../gate.yml", "slow", ":slow"),  # outside of the repository
    ],
)
def test_a_gate_is_named_by_its_configuration_and_key(
    tmp_path: Path, config: str, key: str, expected: str
) -> None:
    """As git writes the path, whatever directory the job works in."""
    for directory in ("a", "b"):
        (tmp_path / directory).mkdir()
    assert name_gate(tmp_path / config, tmp_path, key) == expected


def test_an_approval_lasts_two_weeks() -> None:
    """14 days, over the end of a month."""
    assert compute_expiry("2026-02-20") == "2026-03-06"


@pytest.mark.parametrize("case", ["tag:night", "m/*"])
def test_a_policy_knows_the_tags_that_it_names(tmp_path: Path, case: str) -> None:
    """The tags of the configuration that judges; where nothing names one, no registry is read for them."""
    (tmp_path / "gate.yml").write_text(
        "version: 1\nreference_models: false\nbaselines: b\n"
        "models:\n  - {name: m, factory: 'a.b:c', cases: [{tags: [night]}, {mode: max-autotune}]}\n"
    )
    (tmp_path / "b").mkdir()
    entry = "{metric: drift, allowance: 1, reason: r, author: a, expires: 2027-01-01, case: "
    (tmp_path / "b/accepted.yml").write_text(f"version: 1\naccepted:\n  - {entry}'{case}'}}\n")
    policy = load_policy(load_config(tmp_path / "gate.yml"))
    fitting = [name for name in policy.tags if policy.fits(case, name)]
    assert fitting == (["m/inference-float32-smoke-default"] if case == "tag:night" else [])
    assert len(policy.tags) == (2 if case == "tag:night" else 0)
