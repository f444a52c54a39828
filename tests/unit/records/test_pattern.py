"""One way to say which cases are meant, for selections, rules and acceptances alike."""

import pytest

from gate.records.cases import Policy, fits_pattern


@pytest.mark.parametrize(
    ("pattern", "fitting"),
    [
        ("bert", ["bert/a", "bert/b"]),
        ("*/a", ["bert/a", "gpt/a"]),
        ("tag:night", ["bert/b"]),
        ("!tag:night,!gpt/*", ["bert/a"]),
        ("!bert/a, bert", ["bert/b"]),
        ("ber", []),
        ("tag:nigh", []),
        (" , ", []),
    ],
)
def test_a_pattern_means_cases(pattern: str, fitting: list[str]) -> None:
    """Models, globs and tags; a part that is removed stays so; what says nothing means nothing."""
    tags = {"bert/b": ("night", "slow")}
    ids = ["bert/a", "bert/b", "gpt/a"]
    assert [one for one in ids if fits_pattern(pattern, one, tags.get(one, ()))] == fitting
    policy = Policy(thresholds={}, tags=tags)
    assert [one for one in ids if policy.fits(pattern, one)] == fitting
