"""The release anchor's file: a written one reads back, and a mistake has its line."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import FileError, UsageError
from gate.project.config import load_config
from gate.store.anchor import AnchorFile, describe_anchor, load_anchor, name_anchor, save_anchor
from gate.store.policy import load_policy

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ANCHOR = AnchorFile(
    version=1,
    commit=COMMIT,
    name="v1.2",
    created="2026-03-01T10:00:00Z",
    author="Ada",
    reason="the release of March: #12",
)
BARE = AnchorFile(version=1, commit=COMMIT, created="2026-03-01", reason="r")


def test_there_is_none_until_one_is_written(tmp_path: Path) -> None:
    """A directory without the file, or none at all, has no anchor."""
    assert load_anchor(tmp_path) is None
    assert load_anchor(tmp_path / "none") is None


def test_the_file_is_for_people_to_read(tmp_path: Path) -> None:
    """A key a line, so that a review sees what moved."""
    path = save_anchor(tmp_path / "baselines", ANCHOR)
    assert path.read_text(encoding="utf-8").splitlines()[1:] == [
        "version: 1",
        f'commit: "{COMMIT}"',
        "name: v1.2",
        'created: "2026-03-01T10:00:00Z"',
        "author: Ada",
        'reason: "the release of March: #12"',
    ]
    assert load_anchor(tmp_path / "baselines") == ANCHOR


def test_an_anchor_is_replaced_and_what_it_lacks_is_left_out(tmp_path: Path) -> None:
    """There is one anchor; a commit without a tag has no name."""
    save_anchor(tmp_path, ANCHOR)
    text = save_anchor(tmp_path, BARE).read_text(encoding="utf-8")
    assert "name" not in text
    assert load_anchor(tmp_path) == BARE


@given(
    name=st.from_regex(r"[A-Za-z0-9][ -~]{0,40}", fullmatch=True),
    reason=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip),
)
def test_whatever_is_written_reads_back(
    name: str, reason: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Quotes, colons, and texts that YAML takes for other types."""
    anchor = AnchorFile(version=1, commit=COMMIT, name=name, created="2026-03-01", reason=reason)
    save_anchor(tmp_path_factory.getbasetemp(), anchor)
    assert load_anchor(tmp_path_factory.getbasetemp()) == anchor


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (COMMIT, "0123456", ":2: commit: expected a whole commit id, got "),
        ("created: 2026-03-01", "created: soon", ":3: created: expected a time such as"),
        ("reason: r", "reason: ' '", ":4: reason: expected a text that is not empty"),
        ("reason: r", "raeson: r", ":4: raeson: unknown key"),
        ("version: 1", "version: 2", ":1: version: "),
    ],
)
def test_what_is_wrong_is_reported_with_line_key_and_fix(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """As for every other file that people write."""
    text = f"version: 1\ncommit: '{COMMIT}'\ncreated: 2026-03-01\nreason: r\n"
    (tmp_path / "anchor.yml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(FileError) as caught:
        load_anchor(tmp_path)
    assert f"anchor.yml{message}" in caught.value.what
    assert caught.value.fix


def test_an_anchor_without_a_reason_is_not_written(tmp_path: Path) -> None:
    """The missing option is named."""
    with pytest.raises(UsageError, match="--reason: expected a text that is not empty"):
        save_anchor(tmp_path, replace(BARE, reason=""))
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_leads_nowhere_is_not_no_anchor(tmp_path: Path) -> None:
    """Its target was meant to count."""
    (tmp_path / "anchor.yml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileError, match="does not exist"):
        load_anchor(tmp_path)


def test_what_is_judged_by_knows_whether_there_is_an_anchor(tmp_path: Path) -> None:
    """It lies next to the baselines; a broken one stops a check, as accepted.yml does."""
    (tmp_path / "gate.yml").write_text("version: 1\nbaselines: stored\n", encoding="utf-8")
    config = load_config(tmp_path / "gate.yml")
    assert not load_policy(config).has_anchor
    path = save_anchor(tmp_path / "stored", ANCHOR)
    assert load_policy(config).has_anchor
    path.write_text("version: 1\n", encoding="utf-8")
    with pytest.raises(FileError, match="commit"):
        load_policy(config)


def test_it_is_described_in_a_line() -> None:
    """Name, commit, day, author and reason; with the time of day also its age."""
    assert describe_anchor(ANCHOR) == (
        "v1.2 (0123456), recorded 2026-03-01 by Ada: the release of March: #12"
    )
    assert describe_anchor(BARE, "2026-03-11") == "0123456, recorded 2026-03-01 (10 days old): r"
    assert describe_anchor(replace(BARE, created=""), "2026-03-11") == "0123456: r"
    assert describe_anchor(BARE) == "0123456, recorded 2026-03-01: r"
    assert name_anchor(BARE) == "0123456"
