"""What a check is judged by comes from the base commit, whatever the change under test did to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from action.samples import commit

from gate.action.base import find_base_sha, find_head_sha, prepare_rules
from gate.config import EXTRACTED_FILE, load_config
from gate.errors import UsageError
from gate.records import Metric

CONFIG = """\
version: 1
reference_models: false
registry: [models/cases.yml]
baselines: perf/baselines
out: results
thresholds:
  compiled_latency: {relative: 0.05}
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a directory for the gate, below a directory with a space, entered."""
    directory = tmp_path / "a repository" / "sub"
    write(
        directory,
        {"gate.yml": CONFIG, "models/cases.yml": "version: 1\n# base\n", "perf/baselines/x.json": "base"},
    )
    (directory.parent / "README.md").write_text("hello")
    monkeypatch.chdir(directory)
    return directory


def write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def test_a_change_cannot_move_its_own_bar(checkout: Path, tmp_path: Path) -> None:
    """Thresholds, registry and baselines are the base's; the files that were touched are named."""
    base = commit(checkout.parent, "base")
    write(
        checkout,
        {
            "gate.yml": CONFIG.replace("0.05", "0.90"),
            "models/cases.yml": "version: 1\n# head\n",
            "perf/baselines/x.json": "head",
            "perf/baselines/new.json": "head",
        },
    )
    commit(checkout.parent, "head")

    rules = prepare_rules("", "", base, tmp_path / "rules")

    config = load_config(Path(rules.config))
    assert config.thresholds[Metric.COMPILED_LATENCY].relative == 0.05
    assert [path.read_text() for path in config.registry] == ["version: 1\n# base\n"]
    assert {path.name: path.read_text() for path in Path(rules.baselines).iterdir()} == {"x.json": "base"}
    assert config.directory.resolve() == checkout  # where measured code is imported from is the head's
    assert config.out == checkout / "results"
    assert rules.sha == base
    assert rules.changed == (
        "sub/gate.yml",
        "sub/models/cases.yml",
        "sub/perf/baselines/new.json",
        "sub/perf/baselines/x.json",
    )


def test_what_the_base_did_meanwhile_is_not_held_against_the_change(checkout: Path, tmp_path: Path) -> None:
    """Changed is what the change touched since it branched off, not where the two differ."""
    commit(checkout.parent, "base")
    write(checkout, {"src.py": "x = 1"})
    commit(checkout.parent, "head")

    assert prepare_rules("", "", commit(checkout.parent, "again"), tmp_path / "rules").changed == ()


def test_the_working_tree_is_judged_by_itself_where_there_is_no_base(checkout: Path, tmp_path: Path) -> None:
    """A push or a dispatch changes nothing that is still to be merged."""
    rules = prepare_rules("my.yml", "b", "", tmp_path / "rules")

    assert (rules.config, rules.baselines, rules.sha, rules.temporary) == ("my.yml", "b", "", None)
    assert not (checkout / EXTRACTED_FILE).exists()


def test_a_base_without_configuration_says_that_the_heads_holds(checkout: Path, tmp_path: Path) -> None:
    """The change that introduces the gate has nothing else to go by, and that is told."""
    (checkout / "gate.yml").unlink()
    base = commit(checkout.parent, "base")
    write(checkout, {"gate.yml": CONFIG})

    rules = prepare_rules("", "", base, tmp_path / "rules")

    assert (rules.config, rules.sha, rules.changed) == ("", "", ("sub/gate.yml",))


def test_a_base_without_baselines_has_none(checkout: Path, tmp_path: Path) -> None:
    """Baselines that only the change brings are not used: nothing is compared, and the verdict says so."""
    (checkout / "perf/baselines/x.json").unlink()
    base = commit(checkout.parent, "base")
    write(checkout, {"perf/baselines/mine.json": "head"})

    rules = prepare_rules("", "", base, tmp_path / "rules")

    assert list(Path(rules.baselines).iterdir()) == []


def test_baselines_may_be_named_by_the_workflow(checkout: Path, tmp_path: Path) -> None:
    """The input goes before the configuration, and means the base's directory of that name."""
    write(checkout, {"other/y.json": "base"})
    base = commit(checkout.parent, "base")

    rules = prepare_rules("gate.yml", "other", base, tmp_path / "rules")

    assert [path.name for path in Path(rules.baselines).iterdir()] == ["y.json"]


def test_a_shallow_clone_is_told_what_it_lacks(checkout: Path, tmp_path: Path) -> None:
    """A base commit that is not there is an error with its fix, never a check against the head."""
    commit(checkout.parent, "head")

    with pytest.raises(UsageError, match="is not in this clone") as caught:
        prepare_rules("", "", "f" * 40, tmp_path / "rules")

    assert "fetch-depth: 0" in caught.value.fix


def test_a_path_outside_the_repository_is_refused(checkout: Path, tmp_path: Path) -> None:
    """The base commit cannot have it, so a change could be judged by anything."""
    base = commit(checkout.parent, "base")

    with pytest.raises(UsageError, match="outside the repository"):
        prepare_rules("", "../../elsewhere", base, tmp_path / "rules")


@pytest.mark.usefixtures("checkout")
def test_no_repository_is_told(tmp_path: Path) -> None:
    """Without actions/checkout there is nothing to read the base from."""
    with pytest.raises(UsageError, match="git rev-parse failed"):
        prepare_rules("", "", "f" * 40, tmp_path / "rules")


@pytest.mark.parametrize(
    ("event", "base", "head"),
    [
        ({"pull_request": {"base": {"sha": "b"}, "head": {"sha": "h"}}}, "b", "h"),
        ({"merge_group": {"base_sha": "b", "head_sha": "h"}}, "b", "h"),
        ({"ref": "refs/heads/main"}, "", ""),
        ({"pull_request": None}, "", ""),
        ({"pull_request": {"base": []}}, "", ""),
    ],
)
def test_base_and_head_are_the_events(event: dict[str, object], base: str, head: str) -> None:
    """A pull request and a merge group have both; a push has neither."""
    assert (find_base_sha(event), find_head_sha(event)) == (base, head)
