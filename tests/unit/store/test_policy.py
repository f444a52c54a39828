"""The file of a commit's acceptances: strict, bounded, for one commit."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import FileError
from gate.project.config import load_config
from gate.records.cases import Acceptance, Metric
from gate.store.commit_files import (
    MAX_ACCEPTED,
    MAX_COMMIT_BYTES,
    compute_expiry,
    decode_commit_file,
    load_commit_file,
    merge_acceptances,
    name_commit_file,
    render_commit_file,
)
from gate.store.policy import load_policy, name_gate

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
    commit=COMMIT,
)
SECOND = replace(FIRST, metric=Metric.GRAPH_BREAKS, allowance=2.0)
LACK = replace(FIRST, metric=None, allowance=0.0, reason="the first change with a gate")
BEGIN = f"version: 1\ncommit: {COMMIT}\n"


def decode(text: str) -> tuple[Acceptance, ...]:
    return decode_commit_file(text.encode(), "x.yml", COMMIT).acceptances


def test_the_file_is_for_people_to_read() -> None:
    """A key a line, as accepted.yml is, and a header that says how to take it back."""
    assert (
        render_commit_file(COMMIT, (FIRST, LACK))
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
    environment: cpu-amd-epyc-torch2.13.0-1a2b3c4d
    gate: a/gate.yml
  - case: bert/inference-float32-smoke-default
    reason: "the first change with a gate"
    author: ada
    expires: "2026-11-15"
    environment: cpu-amd-epyc-torch2.13.0-1a2b3c4d
    gate: a/gate.yml
"""
    )


@pytest.mark.parametrize("accepted", [(FIRST, SECOND, LACK), (LACK,), (FIRST,), ()])
def test_what_is_rendered_is_read_back(accepted: tuple[Acceptance, ...], tmp_path: Path) -> None:
    """With changes, with a lack of baselines, with both and with neither."""
    path = tmp_path / name_commit_file(COMMIT)
    path.parent.mkdir()
    path.write_text(render_commit_file(COMMIT, accepted), encoding="utf-8")
    assert load_commit_file(path).acceptances == accepted


@given(st.text(min_size=1, max_size=300).filter(lambda text: text.isprintable() and text.strip()))
def test_whatever_reason_can_be_seen_is_read_back(reason: str) -> None:
    """Quotes, colons and letters of any script survive."""
    accepted = (replace(FIRST, reason=reason),)
    assert decode(render_commit_file(COMMIT, accepted)) == accepted


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("", "", "is empty"),
        ("version: 1\n", "", "the key 'commit' is missing"),
        ("version: 2\n", "version", "this compile-gate reads version 1"),
        (f"version: 1\ncommit: {'b' * 40}\n", "commit", "another commit than aaaaaaaaaaaa"),
        ("version: 1\ncommit: main\n", "commit", "a whole commit id"),
        (BEGIN + "accepted: [{}]\n", "accepted[0]", "the key 'case' is missing"),
        (BEGIN + "anything: 1\n", "anything", "unknown key"),
        (BEGIN + "commit: x\n", "commit", "is given twice, first in line 2"),
        (BEGIN + "accepted: &a []\n", "", "an anchor or alias"),
    ],
)
def test_a_file_of_something_else_is_refused(text: str, key: str, words: str) -> None:
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
def test_an_entry_with_too_few_or_too_many_keys_is_refused(changes: dict[str, object], key: str) -> None:
    """One case, metric, gate and machine, a bounded reason of one line, a login and a day."""
    entry = replace(FIRST, **changes)  # type: ignore[arg-type] # the test's
    with pytest.raises(FileError) as caught:
        decode(render_commit_file(COMMIT, (entry,)))
    assert caught.value.key == f"accepted[0].{key}"


def test_a_file_is_bounded() -> None:
    """More entries or bytes than a person reads are refused."""
    most = (replace(FIRST, reason="x" * 300),) * MAX_ACCEPTED
    assert decode(render_commit_file(COMMIT, most)) == most
    with pytest.raises(FileError, match="more than 1000"):
        decode(render_commit_file(COMMIT, (*most, FIRST)))
    with pytest.raises(FileError, match="is larger than"):
        decode(BEGIN + "#" * MAX_COMMIT_BYTES)


def test_a_second_comment_adds_to_the_first() -> None:
    """For the same case and metric the newer entry counts; the rest stays."""
    again = replace(FIRST, allowance=0.5, author="bob")
    assert merge_acceptances((FIRST, SECOND, LACK), (again,)) == (again, SECOND, LACK)


@pytest.mark.parametrize("gate", ["b/gate.yml", "a/gate.yml:slow", FIRST.gate])
def test_what_another_gate_or_machine_accepts_is_kept_apart(gate: str) -> None:
    """Of the same commit, case and metric: two entries, and two of a lack of baselines."""
    other = "cpu-intel-torch2.13.0-1a2b3c4d" if gate == FIRST.gate else FIRST.environment
    others = tuple(replace(acceptance, gate=gate, environment=other) for acceptance in (FIRST, LACK))
    assert merge_acceptances((FIRST, LACK), others) == (FIRST, LACK, *others)


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


def test_an_acceptance_of_a_commit_lasts_two_weeks() -> None:
    """14 days, over the end of a month."""
    assert compute_expiry("2026-02-20") == "2026-03-06"


@pytest.mark.parametrize("case", ["tag:night", "m/*"])
def test_a_policy_knows_the_tags_that_it_names(tmp_path: Path, case: str) -> None:
    """The judging configuration's tags; no registry is read if no entry names a tag."""
    (tmp_path / "gate.yml").write_text(
        "version: 1\nreference_models: false\nbaselines: b\n"
        "models:\n  - {name: m, factory: 'a.b:c', cases: [{tags: [night]}, {mode: max-autotune}]}\n"
    )
    (tmp_path / "b").mkdir()
    entry = "{metric: drift, allowance: 1, reason: r, author: a, expires: 2027-01-01, case: "
    entries = "".join(f"  - {entry}'{pattern}'}}\n" for pattern in (case, "other/*"))
    (tmp_path / "b/accepted.yml").write_text(f"version: 1\naccepted:\n{entries}")
    policy = load_policy(load_config(tmp_path / "gate.yml"))
    fitting = [name for name in policy.tags if policy.fits(case, name)]
    assert fitting == (["m/inference-float32-smoke-default"] if case == "tag:night" else [])
    assert len(policy.tags) == (2 if case == "tag:night" else 0)
