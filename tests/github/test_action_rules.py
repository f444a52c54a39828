"""What a check is judged by comes from the base commit, whatever the change under test did to it."""

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from rule_repository import CONFIG, MODELS, Repo, make_baseline, make_step

from gate.action import rules as action_rules
from gate.action.base_commit import AcceptedFiles, BaseCommit
from gate.action.inputs import ActionStep
from gate.action.rules import open_rule_source
from gate.errors import GateError, MachineError, UsageError
from gate.git import MissingContentError, read_git
from gate.project.config import load_config, make_default_config
from gate.records.cases import Metric
from gate.store import rules as rules_module
from gate.store.rules import BaseRules
from tests.git import run_git


def test_a_change_cannot_move_its_own_bar(repo: Repo) -> None:
    """Thresholds, registry and baselines are the base's; the changed files are named."""
    base = repo.commit()
    repo.commit(
        {
            "gate.yml": CONFIG.replace("0.05", "0.90"),
            "models/cases.yml": MODELS.replace("5", "6"),
            "perf/baselines/x.json": make_baseline("head"),
            "perf/baselines/new.json": make_baseline("head", "other/test"),
        },
    )

    rules = repo.prepare(base)

    config = rules.config
    assert config.thresholds[Metric.COMPILED_LATENCY].relative == 0.05
    assert [case.expected_s for case in rules.cases] == [5]
    assert repo.list_reasons(base) == {"x.json": "base"}
    assert config.directory == repo.top  # where measured code is imported from is the head's
    assert config.out == repo.top / "results"
    assert rules.sha == base
    assert rules.changed == (
        "sub/gate.yml",
        "sub/models/cases.yml",
        "sub/perf/baselines/new.json",
        "sub/perf/baselines/x.json",
    )


def test_limits_that_nobody_set_stay_those_of_the_device_and_the_cases(repo: Repo) -> None:
    """A limit that the base sets holds; others are the defaults of the device that the change measures on."""
    (repo.top / "gate.yml").write_text(f"{CONFIG}budget_s: 77\n")
    config = repo.load(repo.commit())
    assert config.budget_s == 77
    assert {"budget_s", "trial_timeout_s", "pair_budget_s"} & set(config.origins) == {"budget_s"}


def test_a_history_is_written_where_the_checkout_has_it(repo: Repo) -> None:
    """Nothing may write to the base's rules while the change is measured."""
    (repo.top / "gate.yml").write_text(f"{CONFIG}history: kept/history\n")
    assert repo.load(repo.commit()).history == repo.top / "kept" / "history"


def test_what_the_base_did_meanwhile_is_no_change_of_the_head(repo: Repo) -> None:
    """Changed is what the change touched since it branched off, not where the two differ."""
    repo.commit()
    repo.commit({"src.py": "x = 1"})

    assert repo.prepare(repo.commit()).changed == ()


def test_the_working_tree_is_judged_by_itself_where_there_is_no_base(repo: Repo) -> None:
    """A push or a dispatch has nothing left to merge: no command gets a commit."""
    repo.commit()
    with open_rule_source(make_step(repo.directory, "head")) as source:
        assert source.rules.config == load_config(None)
        assert source.arguments == ()


def test_without_a_configuration_in_the_base_the_heads_holds(repo: Repo) -> None:
    """The change that introduces the gate has nothing else; a note reports it."""
    base = repo.commit(gone="gate.yml")
    repo.write({"gate.yml": CONFIG, "perf/mine.yml": "version: 1\n"})

    rules, named = repo.prepare(base), repo.prepare(base, config="perf/mine.yml")

    assert (rules.is_first, rules.sha, rules.changed) == (True, "", ("sub/gate.yml",))
    assert (named.is_first, named.sha, named.changed) == (True, "", ("sub/perf/mine.yml",))
    assert (rules.source, named.source) == (repo.top / "gate.yml", repo.top / "perf" / "mine.yml")


def test_without_any_configuration_the_defaults_hold(repo: Repo) -> None:
    """The gate is named by where its file would lie."""
    rules = repo.prepare(repo.commit(gone="gate.yml"))

    assert (rules.is_first, rules.sha, rules.changed) == (False, "", ())
    assert (rules.config, rules.source) == (make_default_config(), repo.top / "gate.yml")


def test_a_base_without_baselines_has_none(repo: Repo) -> None:
    """The change's own baselines are not used: nothing is compared, and the verdict reports it."""
    base = repo.commit(gone="perf/baselines/x.json")
    repo.write({"perf/baselines/mine.json": make_baseline("head")})

    assert repo.list_reasons(base) == {}


def test_baselines_may_be_named_by_the_workflow(repo: Repo) -> None:
    """The input overrides the configuration, and names a directory of the base."""
    base = repo.commit({"other/y.json": make_baseline("base")})

    assert repo.list_reasons(base, config="gate.yml", baselines="other") == {"y.json": "base"}


def test_a_shallow_clone_is_an_error_that_names_what_it_lacks(repo: Repo) -> None:
    """A missing base commit is never replaced by the head."""
    repo.commit()

    step = make_step(repo.directory, "f" * 40)
    with pytest.raises(UsageError, match="is not in this clone") as caught, open_rule_source(step):
        pass

    assert "fetch-depth: 0" in caught.value.fix


def test_a_path_outside_the_repository_is_refused(repo: Repo) -> None:
    """The base commit cannot have it, so the change would choose its rules."""
    base = repo.commit()

    with pytest.raises(UsageError, match="outside the repository"):
        repo.prepare(base, baselines="../../elsewhere")


def test_nothing_of_the_change_is_in_the_way(repo: Repo) -> None:
    """The base's rules lie where no file of the change can be."""
    base = repo.commit()
    (repo.top / ".gate-of-base.yml").mkdir()
    (repo.top / "gate.yml").unlink()
    (repo.top / "gate.yml").mkdir()

    rules = repo.prepare(base)

    assert rules.config.thresholds[Metric.COMPILED_LATENCY].relative == 0.05


def test_the_nearest_configuration_of_the_base_holds(repo: Repo) -> None:
    """The action looks upwards for it, as the command line does, and ignores one of the change alone."""
    (repo.top / "gate.yml").unlink()
    repo.write({"../gate.yml": CONFIG.replace("registry: [", "registry: [sub/")})
    base = repo.commit()
    repo.commit({"gate.yml": CONFIG.replace("0.05", "0.90")})

    rules = repo.prepare(base)
    assert rules.config.thresholds[Metric.COMPILED_LATENCY].relative == 0.05
    assert rules.config.directory == repo.root


@pytest.mark.parametrize(
    ("text", "others"),
    [
        (CONFIG.replace("0.05", "0.90"), ()),  # git's rename
        ("version: 1\nregistry: [models/cases.yml]\n", ()),  # nothing alike is left of it
        ("version: 1\nregistry: [models/cases.yml]\n", ("old/perf/gate.yml", "old/gate.yml")),
    ],
)
def test_a_configuration_that_the_change_moves_still_judges_it(
    repo: Repo, text: str, others: tuple[str, ...]
) -> None:
    """As git sees it, or as the nearest one that the change removes, however many it removes."""
    (repo.top / "gate.yml").unlink()
    repo.write({"ci/gate.yml": CONFIG, **dict.fromkeys(others, "version: 1\n")})
    repo.write({"ci/models/cases.yml": MODELS})
    base = repo.commit()
    for name in others:
        (repo.top / name).unlink()
    repo.commit({"gate.yml": text}, gone="ci/gate.yml")

    rules = repo.prepare(base)

    assert (rules.sha, rules.config.commit) == (base, base)
    assert rules.config.thresholds[Metric.COMPILED_LATENCY].relative == 0.05


def test_the_nearest_rules_that_a_change_moved_are_found(repo: Repo) -> None:
    """Of two that it removes, one two directories above and one a directory below."""
    bar = "thresholds: {{compiled_latency: {{relative: {}}}}}\n"
    above, below = (f"version: 1\nreference_models: true\n{bar.format(share)}" for share in (0.05, 0.07))
    (repo.top / "gate.yml").unlink()
    base = repo.commit({"gate.yml": above, "a/b/c/gate.yml": below})
    for name in ("gate.yml", "a/b/c/gate.yml"):
        (repo.top / name).unlink()
    models = "".join(f"  - {{name: m{index}, factory: 'm.f:ok', cases: [{{}}]}}\n" for index in range(9))
    repo.commit({"a/b/gate.yml": f"models:\n{models}version: 1\n"})

    rules = repo.prepare(base, config="a/b/gate.yml")

    assert rules.config.thresholds[Metric.COMPILED_LATENCY].relative == 0.07


def test_attributes_do_not_hide_rules(repo: Repo) -> None:
    """Files that `.gitattributes` excludes from archives, or rewrites there, are read as they are."""
    attributes = "gate.yml export-ignore\nsub/perf export-ignore\n*.json export-subst\n"
    base = repo.commit(
        {"../.gitattributes": attributes, "perf/baselines/x.json": make_baseline("$Format:%H$")}
    )

    assert repo.load(base).thresholds[Metric.COMPILED_LATENCY].relative == 0.05
    assert repo.list_reasons(base) == {"x.json": "$Format:%H$"}


@pytest.mark.parametrize("link", ["gate.yml", "models/cases.yml", "perf/baselines/x.json", "perf"])
def test_a_link_among_the_rules_is_refused_by_name(repo: Repo, link: str) -> None:
    """It could point anywhere, and files behind a linked directory would silently be missed."""
    (repo.top / link).rename(repo.top / "elsewhere")
    (repo.top / link).symlink_to(repo.top / "elsewhere")
    base = repo.commit()

    with pytest.raises(UsageError, match=f"sub/{link} of the base commit {base[:7]} is a symbolic link"):
        repo.prepare(base)


def test_rules_may_be_kept_by_git_lfs(repo: Repo) -> None:
    """A checkout runs the filters of the machine, as that of the measured code does."""
    repo.commit()
    (repo.directory / "kept").write_text(make_baseline("from the store"))
    repo.git("config", "filter.kept.smudge", f"cat '{repo.directory / 'kept'}'")
    repo.git("config", "filter.kept.clean", "echo pointer")
    repo.git("config", "filter.kept.required", "true")
    changed = {"perf/baselines/x.json": make_baseline("changed")}  # or git would not look at it again
    base = repo.commit({"../.gitattributes": "*.json filter=kept\n"} | changed)

    assert repo.git("cat-file", "-p", f"{base}:sub/perf/baselines/x.json") == "pointer"
    assert repo.list_reasons(base) == {"x.json": "from the store"}


def test_a_sparse_clone_leaves_no_rule_out(repo: Repo) -> None:
    """Git applies a clone's patterns to every worktree: baselines would be missing."""
    base = repo.commit()
    repo.git("sparse-checkout", "set", "sub/models")
    assert not (repo.top / "perf").exists()

    assert repo.list_reasons(base) == {"x.json": "base"}
    assert repo.prepare(base).sha == base


def test_rules_in_a_submodule_that_this_clone_lacks_are_not_taken_for_none(repo: Repo) -> None:
    """Otherwise the change would be judged by its own rules."""
    commit_id = repo.commit()
    (repo.root / ".gitmodules").write_text('[submodule "sub"]\n\tpath = sub\n\turl = https://x.invalid/sub\n')
    repo.git("rm", "--quiet", "-r", "--cached", "sub")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{commit_id[::-1]},sub")
    repo.git("add", ".gitmodules")
    repo.git("commit", "--quiet", "--message", "a submodule")
    base = repo.git("rev-parse", "HEAD")

    assert "this clone lacks the submodule of sub/gate.yml" in repo.prepare_in_vain(base).what


def test_names_of_any_kind_are_read(repo: Repo) -> None:
    """Names may have spaces, quotes, line ends and bytes that are no text."""
    names = ["a b.json", 'q".json', "line\nend.json", os.fsdecode(b"\xff.json")]
    base = repo.commit(
        {
            f"perf/baselines/{name}": make_baseline(f"b{index}", f"m{index}/test")
            for index, name in enumerate(names)
        },
    )

    assert repo.list_reasons(base) == {
        "x.json": "base",
        **{name: f"b{index}" for index, name in enumerate(names)},
    }


def test_changed_workflows_are_flagged_and_only_the_changes_own(repo: Repo) -> None:
    """A workflow runs as the change has it, so it is named apart; the base's later commits are not."""
    repo.commit()
    repo.git("checkout", "--quiet", "-b", "topic")
    repo.write({"../.github/workflows/gate.yml": "on: pull_request\n"})
    repo.commit()
    repo.git("checkout", "--quiet", "main")
    repo.write({"../.github/workflows/other.yml": "on: push\n"})
    base = repo.commit()
    repo.git("checkout", "--quiet", "topic")

    with open_rule_source(make_step(repo.directory, base)) as source:
        assert (source.rules.changed, source.workflows) == ((), (".github/workflows/gate.yml",))


def test_nothing_is_left_of_the_rules(repo: Repo) -> None:
    """The temporary directory, the checkout and git's list of worktrees are clean."""
    step = make_step(repo.directory / "temp", repo.commit())
    (repo.directory / "temp").mkdir()
    before = sorted(path for path in repo.top.rglob("*"))

    with open_rule_source(step) as source:
        assert source.rules.tree
        assert source.rules.tree.tree.is_dir()
        assert sorted(path for path in repo.top.rglob("*")) == before

    assert not source.rules.tree.tree.exists()
    assert list((repo.directory / "temp").iterdir()) == []
    assert len(repo.git("worktree", "list").splitlines()) == 1


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ("exec sleep 60", MachineError, "git merge-base hangs"),
        ("exit 128", MissingContentError, "lacks the content"),
    ],
)
def test_a_git_that_does_not_answer_is_not_a_base_without_configuration(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, answer: str, error: type[GateError], words: str
) -> None:
    """Otherwise a slow or damaged disk would let the change be judged by its own rules."""
    base = repo.commit()
    git_itself = shutil.which("git")
    (repo.directory / "bin").mkdir()
    script = repo.directory / "bin" / "git"
    slow = rf'case "$*" in *\ merge-base\ *) {answer};; esac'
    script.write_text(f'#!/bin/sh\n{slow}\nexec "{git_itself}" "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    monkeypatch.setattr(rules_module, "LIMIT_S", 0.5)

    with pytest.raises(error, match=words):
        repo.prepare(base)


def test_git_gets_two_minutes_for_the_rules(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large repository on a cold disk is no error."""
    base, limits = repo.commit(), []

    def record(directory: Path, *arguments: str, limit_s: float) -> bytes:
        limits.append(limit_s)
        return read_git(directory, *arguments, limit_s=limit_s)

    monkeypatch.setattr(rules_module, "read_git", record)
    repo.prepare(base)
    assert set(limits) == {120.0}


def test_names_are_no_patterns(repo: Repo) -> None:
    """A path with brackets is read, and reported as changed, as that path alone."""
    repo.write({"a.yml": MODELS.replace("5", "6"), "[ab].yml": MODELS})
    base = repo.commit({"gate.yml": CONFIG.replace("models/cases.yml", '"[ab].yml"')})
    repo.commit({"a.yml": MODELS.replace("5", "7")})

    rules = repo.prepare(base)

    assert [case.expected_s for case in rules.cases] == [5]
    assert rules.changed == ()


PULL = {"pull_request": {"head": {"sha": "a" * 40}}}
GROUP = {"merge_group": {"head_sha": "a" * 40}}


@pytest.mark.parametrize(
    ("event", "inputs", "refused"),
    [
        (PULL, {"fail-on": "new"}, "fail-on"),
        (PULL, {"select": "bert"}, "select"),
        (GROUP, {"select": "bert"}, "select"),
        ({}, {"fail-on": "new", "select": "bert"}, ""),
        (PULL, {"device": "cpu"}, ""),
    ],
)
def test_what_the_base_says_is_no_input_of_a_change(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    event: dict[str, object],
    inputs: dict[str, str],
    refused: str,
) -> None:
    """The publisher would not know of it; a push or a schedule has no publisher."""
    loaded = replace_loading(monkeypatch)
    step = make_step(tmp_path, "head")
    step = replace(step, inputs={**step.inputs, **inputs}, event=event)

    if refused:
        with pytest.raises(UsageError, match=f"^input {refused}: ") as caught, open_rule_source(step):
            pass
        assert f"`{refused.replace('-', '_')}:`" in caught.value.fix
    else:
        with open_rule_source(step):
            pass
    assert loaded == ([] if refused else [None])


def replace_loading(monkeypatch: pytest.MonkeyPatch) -> list[BaseCommit | None]:
    """Load nothing; return the base commits whose rules were asked for."""
    loaded: list[BaseCommit | None] = []

    def load(_: ActionStep, base: BaseCommit | None, __: object) -> tuple[BaseRules, tuple[str, ...]]:
        loaded.append(base)
        return BaseRules(config=make_default_config(), cases=()), ()

    monkeypatch.setattr(action_rules, "_load_rules", load)
    return loaded


@pytest.mark.parametrize("is_named", [True, False])
def test_what_was_accepted_is_kept_in_the_runners_directory_meanwhile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_named: bool
) -> None:
    """Or where temporary files go: never in the workspace, and no longer than the rules are held."""
    replace_loading(monkeypatch)
    kept: list[Path] = []

    def collect(_: object, __: object, directory: Path) -> AcceptedFiles:
        assert directory.is_dir()
        kept.append(directory)
        return AcceptedFiles()

    monkeypatch.setattr(action_rules, "collect_accepted", collect)
    for name in ("named", "usual", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "usual"))
    step = make_step(tmp_path / "named", "head")

    with open_rule_source(step if is_named else replace(step, environ={"RUNNER_TEMP": ""})):
        pass

    (directory,) = kept
    assert directory.parent == tmp_path / ("named" if is_named else "usual")
    assert not directory.exists()


@pytest.mark.parametrize(
    ("is_checkout", "key", "gate"),
    [(True, "default", "perf/gate.yml"), (True, "h200", "perf/gate.yml:h200"), (False, "default", "")],
)
def test_a_gate_is_called_by_its_configuration_in_the_checkout(
    tmp_path: Path, is_checkout: bool, key: str, gate: str
) -> None:
    """Outside of one no commit has acceptances for it."""
    if is_checkout:
        run_git(tmp_path, "init", "--quiet")
    rules = BaseRules(config=make_default_config(), cases=(), source=tmp_path / "perf" / "gate.yml")
    step = make_step(tmp_path, "head")

    named = action_rules._name_gate(rules, replace(step, inputs={**step.inputs, "comment-key": key}))

    assert named == gate
