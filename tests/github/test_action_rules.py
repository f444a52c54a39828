"""What a check is judged by comes from the base commit, whatever the change under test did to it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from action.samples import commit, git

from gate.action import tree
from gate.action.base import BaseCommit
from gate.action.inputs import parse_inputs
from gate.action.rules import RuleSource, hold_rules, prepare_rules
from gate.action.step import ActionStep
from gate.errors import MachineError, UsageError
from gate.project.config import load_config
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


def prepare(sha: str, place: Path, config: str = "", baselines: str = "") -> RuleSource:
    """Prepare the rules of a commit, or of the working tree."""
    return prepare_rules(config, baselines, BaseCommit(sha=sha, origin="") if sha else None, place)


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

    rules = prepare(base, tmp_path / "rules")

    config = load_config(Path(rules.config))
    assert config.thresholds[Metric.COMPILED_LATENCY].relative == 0.05
    assert [path.read_text() for path in config.registry] == ["version: 1\n# base\n"]
    assert {path.name: path.read_text() for path in Path(rules.baselines).iterdir()} == {"x.json": "base"}
    assert rules.directory == str(checkout)  # where measured code is imported from is the head's
    assert config.out == checkout / "results"
    assert rules.sha == base
    assert rules.changed == (
        "sub/gate.yml",
        "sub/models/cases.yml",
        "sub/perf/baselines/new.json",
        "sub/perf/baselines/x.json",
    )


def test_limits_that_nobody_set_stay_those_of_the_device_and_the_cases(
    checkout: Path, tmp_path: Path
) -> None:
    """A limit that the base sets holds; the others are the defaults of whatever the change measures on."""
    (checkout / "gate.yml").write_text(f"{CONFIG}budget_s: 77\n")
    config = load_config(Path(prepare(commit(checkout.parent, "base"), tmp_path / "rules").config))
    assert config.budget_s == 77
    assert {"budget_s", "trial_timeout_s", "pair_budget_s"} & set(config.origins) == {"budget_s"}


def test_a_history_is_written_where_the_checkout_has_it(checkout: Path, tmp_path: Path) -> None:
    """Not among the rules, which nothing may write to while it is measured."""
    (checkout / "gate.yml").write_text(f"{CONFIG}history: kept/history\n")
    rules = prepare(commit(checkout.parent, "base"), tmp_path / "rules")
    assert load_config(Path(rules.config)).history == checkout / "kept" / "history"


def test_what_the_base_did_meanwhile_is_not_held_against_the_change(checkout: Path, tmp_path: Path) -> None:
    """Changed is what the change touched since it branched off, not where the two differ."""
    commit(checkout.parent, "base")
    write(checkout, {"src.py": "x = 1"})
    commit(checkout.parent, "head")

    assert prepare(commit(checkout.parent, "again"), tmp_path / "rules").changed == ()


@pytest.mark.usefixtures("checkout")
def test_the_working_tree_is_judged_by_itself_where_there_is_no_base(tmp_path: Path) -> None:
    """A push or a dispatch changes nothing that is still to be merged."""
    rules = prepare("", tmp_path / "rules", config="my.yml", baselines="b")

    assert rules == RuleSource(config="my.yml", baselines="b")
    assert not (tmp_path / "rules").exists()


def test_a_base_without_configuration_says_that_the_heads_holds(checkout: Path, tmp_path: Path) -> None:
    """The change that introduces the gate has nothing else to go by, and that is told."""
    (checkout / "gate.yml").unlink()
    base = commit(checkout.parent, "base")
    write(checkout, {"gate.yml": CONFIG})

    rules = prepare(base, tmp_path / "rules")

    assert (rules.config, rules.sha, rules.changed) == ("", "", ("sub/gate.yml",))


def test_a_base_without_baselines_has_none(checkout: Path, tmp_path: Path) -> None:
    """Baselines that only the change brings are not used: nothing is compared, and the verdict says so."""
    (checkout / "perf/baselines/x.json").unlink()
    base = commit(checkout.parent, "base")
    write(checkout, {"perf/baselines/mine.json": "head"})

    rules = prepare(base, tmp_path / "rules")

    assert list(Path(rules.baselines).iterdir()) == []


def test_baselines_may_be_named_by_the_workflow(checkout: Path, tmp_path: Path) -> None:
    """The input goes before the configuration, and means the base's directory of that name."""
    write(checkout, {"other/y.json": "base"})
    base = commit(checkout.parent, "base")

    rules = prepare(base, tmp_path / "rules", config="gate.yml", baselines="other")

    assert [path.name for path in Path(rules.baselines).iterdir()] == ["y.json"]


def test_a_shallow_clone_is_told_what_it_lacks(checkout: Path, tmp_path: Path) -> None:
    """A base commit that is not there is an error with its fix, never a check against the head."""
    commit(checkout.parent, "head")

    with pytest.raises(UsageError, match="is not in this clone") as caught:
        prepare("f" * 40, tmp_path / "rules")

    assert "fetch-depth: 0" in caught.value.fix


def test_a_path_outside_the_repository_is_refused(checkout: Path, tmp_path: Path) -> None:
    """The base commit cannot have it, so a change could be judged by anything."""
    base = commit(checkout.parent, "base")

    with pytest.raises(UsageError, match="outside the repository"):
        prepare(base, tmp_path / "rules", baselines="../../elsewhere")


def test_nothing_of_the_change_is_in_the_way(checkout: Path, tmp_path: Path) -> None:
    """Whatever names a change brings, the base's rules lie where none of them can be."""
    base = commit(checkout.parent, "base")
    (checkout / ".gate-of-base.yml").mkdir()
    (checkout / "gate.yml").unlink()
    (checkout / "gate.yml").mkdir()

    rules = prepare(base, tmp_path / "rules")

    assert Path(rules.config).parent == tmp_path / "rules"
    assert load_config(Path(rules.config)).thresholds[Metric.COMPILED_LATENCY].relative == 0.05


def test_the_nearest_configuration_of_the_base_holds(checkout: Path, tmp_path: Path) -> None:
    """It is looked for upwards, as the command line does; one that only the change has is none."""
    (checkout / "gate.yml").rename(checkout.parent / "gate.yml")
    base = commit(checkout.parent, "base")
    write(checkout, {"gate.yml": CONFIG.replace("0.05", "0.90")})
    commit(checkout.parent, "head")

    rules = prepare(base, tmp_path / "rules")

    assert load_config(Path(rules.config)).thresholds[Metric.COMPILED_LATENCY].relative == 0.05
    assert rules.directory == str(checkout.parent)


def test_attributes_do_not_hide_rules(checkout: Path, tmp_path: Path) -> None:
    """What `.gitattributes` leaves out of archives, or rewrites in them, is read as it is."""
    write(
        checkout.parent,
        {".gitattributes": "gate.yml export-ignore\nsub/perf export-ignore\n*.json export-subst\n"},
    )
    write(checkout, {"perf/baselines/x.json": "$Format:%H$"})
    base = commit(checkout.parent, "base")

    rules = prepare(base, tmp_path / "rules")

    assert load_config(Path(rules.config)).thresholds[Metric.COMPILED_LATENCY].relative == 0.05
    assert (Path(rules.baselines) / "x.json").read_text() == "$Format:%H$"


@pytest.mark.parametrize("link", ["gate.yml", "models/cases.yml", "perf/baselines/x.json", "perf"])
def test_a_link_among_the_rules_is_refused_by_name(checkout: Path, tmp_path: Path, link: str) -> None:
    """It could point anywhere, and what lies behind one on the way would be missed in silence."""
    (checkout / link).rename(checkout / "elsewhere")
    (checkout / link).symlink_to(checkout / "elsewhere")
    base = commit(checkout.parent, "base")

    with pytest.raises(UsageError, match=f"sub/{link} of commit {base[:12]} is a symbolic link"):
        prepare(base, tmp_path / "rules")


def test_names_of_any_kind_are_read(checkout: Path, tmp_path: Path) -> None:
    """Spaces, quotes, line ends and bytes that are no text are all parts of names."""
    names = ["a b.json", 'q".json', "line\nend.json", os.fsdecode(b"\xff.json")]
    write(checkout, {f"perf/baselines/{name}": "{}\n\n" for name in names})
    base = commit(checkout.parent, "base")

    rules = prepare(base, tmp_path / "rules")

    stored = {path.name: path.read_text() for path in Path(rules.baselines).iterdir()}
    assert stored == {"x.json": "base", **dict.fromkeys(names, "{}\n\n")}


def test_changed_workflows_are_flagged_and_only_the_changes_own(checkout: Path, tmp_path: Path) -> None:
    """A workflow runs as the change has it, so it is named apart; the base's later commits are not."""
    commit(checkout.parent, "base")
    git(checkout.parent, "checkout", "--quiet", "-b", "topic")
    write(checkout.parent, {".github/workflows/gate.yml": "on: pull_request\n"})
    commit(checkout.parent, "head")
    git(checkout.parent, "checkout", "--quiet", "main")
    write(checkout.parent, {".github/workflows/other.yml": "on: push\n"})
    base = commit(checkout.parent, "meanwhile")
    git(checkout.parent, "checkout", "--quiet", "topic")

    rules = prepare(base, tmp_path / "rules")

    assert (rules.changed, rules.workflows) == ((), (".github/workflows/gate.yml",))


def make_step(place: Path, base: str) -> ActionStep:
    inputs = parse_inputs({"INPUT_BASELINE_REF": base})
    return ActionStep(inputs=inputs, environ={"RUNNER_TEMP": str(place)}, event={})


@pytest.mark.parametrize("touched", ["gate.yml", "files/sub/perf/baselines/x.json", "files/new.json"])
def test_rules_that_were_written_to_are_told(checkout: Path, tmp_path: Path, touched: str) -> None:
    """Measured code runs as the same user and can write to them: that it did is an error, not a verdict."""
    step = make_step(tmp_path, commit(checkout.parent, "base"))

    with pytest.raises(MachineError, match="were written to while measuring"), hold_rules(step) as rules:
        (Path(rules.config).parent / touched).write_text("mine")


def test_nothing_is_left_of_the_rules(checkout: Path, tmp_path: Path) -> None:
    """Neither in the runner's temporary directory nor in the checkout."""
    step = make_step(tmp_path / "temp", commit(checkout.parent, "base"))
    (tmp_path / "temp").mkdir()
    before = sorted(checkout.rglob("*"))

    with hold_rules(step) as rules:
        assert Path(rules.config).is_file()
        assert sorted(checkout.rglob("*")) == before

    assert list((tmp_path / "temp").iterdir()) == []


def test_a_git_that_does_not_answer_is_not_a_base_without_configuration(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the change would be judged by its own rules whenever the disk is slow."""
    base = commit(checkout.parent, "base")
    git_itself = shutil.which("git")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "git"
    slow = r'case "$*" in *\ ls-tree\ *) exec sleep 60;; esac'
    script.write_text(f'#!/bin/sh\n{slow}\nexec "{git_itself}" "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    monkeypatch.setattr(tree, "LIMIT_S", 0.5)

    with pytest.raises(MachineError, match=r"git ls-tree took longer than 0\.5 s"):
        prepare(base, tmp_path / "rules")


def test_names_are_no_patterns(checkout: Path, tmp_path: Path) -> None:
    """A path with brackets is that path, in what is read and in what is said to have changed."""
    for name in ("a.yml", "[ab].yml"):
        (checkout / name).write_text("version: 1\n# base\n")
    (checkout / "gate.yml").write_text(CONFIG.replace("models/cases.yml", '"[ab].yml"'))
    base = commit(checkout.parent, "base")
    (checkout / "a.yml").write_text("version: 1\n# head\n")
    commit(checkout.parent, "head")

    rules = prepare(base, tmp_path / "rules")

    assert [path.name for path in load_config(Path(rules.config)).registry] == ["[ab].yml"]
    assert rules.changed == ()
