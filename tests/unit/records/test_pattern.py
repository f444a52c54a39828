"""Patterns of cases, for selections, rules and acceptances alike."""

import pytest

from gate.records.cases import Policy, fits_pattern


@pytest.mark.parametrize(
    ("pattern", "fitting"),
    [
        ("bert", ["bert/a", "bert/b"]),
        ("*/a", ["bert/a", "gpt/a"]),
        ("bert/b,gpt", ["bert/b", "gpt/a"]),
        ("tag:night", ["bert/b"]),
        ("!tag:night,!gpt/*", ["bert/a"]),
        ("!bert/a, bert", ["bert/b"]),
        ("ber", []),
        ("tag:nigh", []),
        (" , ", []),
    ],
)
def test_a_pattern_means_cases(pattern: str, fitting: list[str]) -> None:
    """Models, globs and tags; a removed part stays removed; an empty pattern means nothing."""
    tags = {"bert/b": ("night", "slow")}
    ids = ["bert/a", "bert/b", "gpt/a"]
    assert [case_id for case_id in ids if fits_pattern(pattern, case_id, tags.get(case_id, ()))] == fitting
    policy = Policy(thresholds={}, tags=tags)
    assert [case_id for case_id in ids if policy.fits(pattern, case_id)] == fitting
