"""What a check is judged by comes from the base commit, whatever the change under test did to it."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from action.samples import commit
from refreshes import make_run

from gate.action import base as base_module
from gate.action.base import BaseCommit
from gate.action.inputs import parse_inputs
from gate.action.results import report_change
from gate.action.rules import RuleSource, hold_rules, prepare_rules
from gate.action.step import ActionStep
from gate.decide.evidence.baselines import make_baselines
from gate.errors import MachineError, UsageError
from gate.files.codec import BASELINE, decode_file
from gate.project.config import Config, load_config
from gate.project.registry import load_cases
from gate.records import Baseline, Metric
from gate.store.baselines import encode_baseline
from tests.git import run_git

MODELS = """\
version: 1
models:
  - {name: lin, factory: "mm.f:ok", sizes: {smoke: {width: 8}}, cases: [{expected_s: 5}]}
"""
CONFIG = """\
version: 1
reference_models: false
registry: [models/cases.yml]
baselines: perf/baselines
out: results
thresholds:
  compiled_latency: {relative: 0.05}
"""


class Repo:
    """A repository with a directory ``top`` for the gate, below a directory with a space, entered."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.root = place / "a repository"
        self.top = self.root / "sub"

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.top / name).parent.mkdir(parents=True, exist_ok=True)
            (self.top / name).write_text(text)

    def commit(self, files: dict[str, str] | None = None, *, gone: str = "") -> str:
        """Commit what there is, with these files and without that one."""
        if gone:
            (self.top / gone).unlink()
        self.write(files or {})
        return commit(self.root, "a commit")

    def git(self, *arguments: str) -> str:
        return run_git(self.root, *arguments)

    def prepare(self, sha: str, place: str = "rules", **more: str) -> RuleSource:
        """Prepare the rules of a commit, or of the working tree."""
        base = BaseCommit(sha=sha, origin="") if sha else None
        return prepare_rules(more.get("config", ""), more.get("baselines", ""), base, self.place / place)

    def load(self, sha: str, place: str = "rules") -> Config:
        """Load the configuration that is prepared of a commit."""
        return load_config(Path(self.prepare(sha, place).config))

    def prepare_in_vain(self, sha: str, **more: str) -> UsageError:
        with pytest.raises(UsageError) as caught:
            self.prepare(sha, **more)
        return caught.value


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """Return a repository with a configuration, a registry and a baseline."""
    made = Repo(tmp_path)
    stored = {"perf/baselines/x.json": make_baseline("base")}
    made.write({"gate.yml": CONFIG, "models/cases.yml": MODELS} | stored)
    (made.root / "README.md").write_text("hello")
    monkeypatch.chdir(made.top)
    return made


def make_baseline(reason: str, case: str = "lin/inference-float32-smoke-default") -> str:
    """Make the text of a baseline that holds its ``reason``."""
    run = make_run("a" * 40, cases=(case,))
    (baseline,) = make_baselines(run, replace(run.provenance, reason=reason))
    return encode_baseline(baseline)


def list_reasons(directory: str) -> dict[str, str]:
    """List why each baseline of a directory was recorded."""
    return {path.name: load_one(path).provenance.reason for path in Path(directory).iterdir()}


def load_one(path: Path) -> Baseline:
    return decode_file(BASELINE, path.read_bytes(), str(path))


def test_a_change_cannot_move_its_own_bar(repo: Repo) -> None:
    """Thresholds, registry and baselines are the base's; the files that were touched are named."""
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

    config = load_config(Path(rules.config))
    assert config.thresholds[Metric.COMPILED_LATENCY].relative == 0.05
    assert [case.expected_s for case in load_cases(config)] == [5]
    assert list_reasons(rules.baselines) == {"x.json": "base"}
    assert rules.directory == str(repo.top)  # where measured code is imported from is the head's
    assert config.out == repo.top / "results"
    assert rules.sha == base
    assert rules.changed == (
        "sub/gate.yml",
        "sub/models/cases.yml",
        "sub/perf/baselines/new.json",
        "sub/perf/baselines/x.json",
    )


def test_limits_that_nobody_set_stay_those_of_the_device_and_the_cases(repo: Repo) -> None:
    """A limit that the base sets holds; the others are the defaults of whatever the change measures on."""
    (repo.top / "gate.yml").write_text(f"{CONFIG}budget_s: 77\n")
    config = repo.load(repo.commit())
    assert config.budget_s == 77
    assert {"budget_s", "trial_timeout_s", "pair_budget_s"} & set(config.origins) == {"budget_s"}


def test_a_history_is_written_where_the_checkout_has_it(repo: Repo) -> None:
    """Not among the rules, which nothing may write to while it is measured."""
    (repo.top / "gate.yml").write_text(f"{CONFIG}history: kept/history\n")
    rules = repo.prepare(repo.commit())
    assert load_config(Path(rules.config)).history == repo.top / "kept" / "history"


def test_what_the_base_did_meanwhile_is_not_held_against_the_change(repo: Repo) -> None:
    """Changed is what the change touched since it branched off, not where the two differ."""
    repo.commit()
    repo.commit({"src.py": "x = 1"})

    assert repo.prepare(repo.commit()).changed == ()


def test_the_working_tree_is_judged_by_itself_where_there_is_no_base(repo: Repo) -> None:
    """A push or a dispatch changes nothing that is still to be merged."""
    rules = repo.prepare("", config="my.yml", baselines="b")

    assert rules == RuleSource(config="my.yml", baselines="b")
    assert not (repo.place / "rules").exists()


def test_a_base_without_configuration_says_that_the_heads_holds(repo: Repo) -> None:
    """The change that introduces the gate has nothing else to go by, and that is told."""
    base = repo.commit(gone="gate.yml")
    repo.write({"gate.yml": CONFIG})

    rules = repo.prepare(base)

    assert (rules.config, rules.sha, rules.changed) == ("", "", ("sub/gate.yml",))


def test_a_base_without_baselines_has_none(repo: Repo) -> None:
    """Baselines that only the change brings are not used: nothing is compared, and the verdict says so."""
    base = repo.commit(gone="perf/baselines/x.json")
    repo.write({"perf/baselines/mine.json": make_baseline("head")})

    rules = repo.prepare(base)

    assert list(Path(rules.baselines).iterdir()) == []


def test_baselines_may_be_named_by_the_workflow(repo: Repo) -> None:
    """The input goes before the configuration, and means the base's directory of that name."""
    base = repo.commit({"other/y.json": make_baseline("base")})

    rules = repo.prepare(base, config="gate.yml", baselines="other")

    assert [path.name for path in Path(rules.baselines).iterdir()] == ["y.json"]


def test_a_shallow_clone_is_told_what_it_lacks(repo: Repo) -> None:
    """A base commit that is not there is an error with its fix, never a check against the head."""
    repo.commit()

    with pytest.raises(UsageError, match="is not in this clone") as caught:
        repo.prepare("f" * 40)

    assert "fetch-depth: 0" in caught.value.fix


def test_a_path_outside_the_repository_is_refused(repo: Repo) -> None:
    """The base commit cannot have it, so a change could be judged by anything."""
    base = repo.commit()

    with pytest.raises(UsageError, match="outside the repository"):
        repo.prepare(base, baselines="../../elsewhere")


def test_nothing_of_the_change_is_in_the_way(repo: Repo) -> None:
    """Whatever names a change brings, the base's rules lie where none of them can be."""
    base = repo.commit()
    (repo.top / ".gate-of-base.yml").mkdir()
    (repo.top / "gate.yml").unlink()
    (repo.top / "gate.yml").mkdir()

    rules = repo.prepare(base)

    assert Path(rules.config).is_relative_to(repo.place / "rules")
    assert load_config(Path(rules.config)).thresholds[Metric.COMPILED_LATENCY].relative == 0.05


def test_the_nearest_configuration_of_the_base_holds(repo: Repo) -> None:
    """It is looked for upwards, as the command line does; one that only the change has is none."""
    (repo.top / "gate.yml").unlink()
    repo.write({"../gate.yml": CONFIG.replace("registry: [", "registry: [sub/")})
    base = repo.commit()
    repo.commit({"gate.yml": CONFIG.replace("0.05", "0.90")})

    rules = repo.prepare(base)
    assert load_config(Path(rules.config)).thresholds[Metric.COMPILED_LATENCY].relative == 0.05
    assert rules.directory == str(repo.root)


def test_attributes_do_not_hide_rules(repo: Repo) -> None:
    """What `.gitattributes` leaves out of archives, or rewrites in them, is read as it is."""
    attributes = "gate.yml export-ignore\nsub/perf export-ignore\n*.json export-subst\n"
    base = repo.commit(
        {"../.gitattributes": attributes, "perf/baselines/x.json": make_baseline("$Format:%H$")}
    )

    rules = repo.prepare(base)
    assert load_config(Path(rules.config)).thresholds[Metric.COMPILED_LATENCY].relative == 0.05
    assert list_reasons(rules.baselines) == {"x.json": "$Format:%H$"}


@pytest.mark.parametrize("link", ["gate.yml", "models/cases.yml", "perf/baselines/x.json", "perf"])
def test_a_link_among_the_rules_is_refused_by_name(repo: Repo, link: str) -> None:
    """It could point anywhere, and what lies behind one on the way would be missed in silence."""
    (repo.top / link).rename(repo.top / "elsewhere")
    (repo.top / link).symlink_to(repo.top / "elsewhere")
    base = repo.commit()

    with pytest.raises(UsageError, match=f"sub/{link} of commit {base[:12]} is a symbolic link"):
        repo.prepare(base)


def test_names_of_any_kind_are_read(repo: Repo) -> None:
    """Spaces, quotes, line ends and bytes that are no text are all parts of names."""
    names = ["a b.json", 'q".json', "line\nend.json", os.fsdecode(b"\xff.json")]
    base = repo.commit(
        {
            f"perf/baselines/{one}": make_baseline(f"b{index}", f"m{index}/test")
            for index, one in enumerate(names)
        },
    )

    rules = repo.prepare(base)

    assert list_reasons(rules.baselines) == {
        "x.json": "base",
        **{one: f"b{index}" for index, one in enumerate(names)},
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

    rules = repo.prepare(base)

    assert (rules.changed, rules.workflows) == ((), (".github/workflows/gate.yml",))


def make_step(place: Path, base: str) -> ActionStep:
    inputs = parse_inputs({"INPUT_BASELINE_REF": base})
    return ActionStep(inputs=inputs, environ={"RUNNER_TEMP": str(place)}, event={})


@pytest.mark.parametrize("touched", ["config/gate.yml", "files/sub/perf/baselines/x.json", "files/new.json"])
def test_rules_that_were_written_to_are_told(repo: Repo, touched: str) -> None:
    """Measured code runs as the same user and can write to them: that it did is an error, not a verdict."""
    step = make_step(repo.place, repo.commit())

    with pytest.raises(MachineError, match="were written to while measuring"), hold_rules(step) as rules:
        (Path(rules.config).parents[1] / touched).write_text("mine")


def test_nothing_is_left_of_the_rules(repo: Repo) -> None:
    """Neither in the runner's temporary directory nor in the checkout."""
    step = make_step(repo.place / "temp", repo.commit())
    (repo.place / "temp").mkdir()
    before = sorted(repo.top.rglob("*"))

    with hold_rules(step) as rules:
        assert Path(rules.config).is_file()
        assert sorted(repo.top.rglob("*")) == before

    assert list((repo.place / "temp").iterdir()) == []


def test_a_git_that_does_not_answer_is_not_a_base_without_configuration(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the change would be judged by its own rules whenever the disk is slow."""
    base = repo.commit()
    git_itself = shutil.which("git")
    (repo.place / "bin").mkdir()
    script = repo.place / "bin" / "git"
    slow = r'case "$*" in *\ ls-tree\ *) exec sleep 60;; esac'
    script.write_text(f'#!/bin/sh\n{slow}\nexec "{git_itself}" "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    monkeypatch.setattr(base_module, "LIMIT_S", 0.5)

    with pytest.raises(MachineError, match=r"git ls-tree took longer than 0\.5 s"):
        repo.prepare(base)


def test_names_are_no_patterns(repo: Repo) -> None:
    """A path with brackets is that path, in what is read and in what is said to have changed."""
    repo.write({"a.yml": MODELS.replace("5", "6"), "[ab].yml": MODELS})
    base = repo.commit({"gate.yml": CONFIG.replace("models/cases.yml", '"[ab].yml"')})
    repo.commit({"a.yml": MODELS.replace("5", "7")})

    rules = repo.prepare(base)

    assert [case.expected_s for case in load_cases(load_config(Path(rules.config)))] == [5]
    assert rules.changed == ()


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"gate.yml": CONFIG + "limits:\n\t- x\n"}, r"^sub/gate\.yml:9: is not YAML"),
        ({"gate.yml": CONFIG + "budget: 3\n"}, r"^sub/gate\.yml:8: budget: unknown key"),
        ({"gate.yml": CONFIG.replace("models/cases.yml", "gone.yml")}, r"^sub/gate\.yml:3: .*sub/gone\.yml"),
        (
            {"gate.yml": CONFIG.replace("results", "perf/baselines")},
            r"^sub/gate\.yml:5: out: .*same directory",
        ),
        ({"gate.yml": CONFIG + "select: tag:none\n"}, r"^sub/gate\.yml:8: select: .*none"),
        (
            {"gate.yml": CONFIG + "overrides: [{case: old/*, metric: drift, absolute: 1, reason: x}]\n"},
            r"^sub/gate\.yml:8: overrides\[0\]\.case: no model matches 'old/\*'",
        ),
        ({"models/cases.yml": MODELS + "models: []\n"}, r"^sub/models/cases\.yml:4: "),
        ({"perf/baselines/x.json": "x"}, r"^sub/perf/baselines/x\.json: is not JSON"),
        (
            {"perf/baselines/accepted.yml": "version: 1\naccepted: 5\n"},
            r"^sub/perf/baselines/accepted\.yml:2: ",
        ),
        ({"perf/baselines/anchor.yml": "version: 1\n"}, r"^sub/perf/baselines/anchor\.yml"),
    ],
)
def test_a_change_that_breaks_the_rules_is_refused_itself(
    repo: Repo, files: dict[str, str], told: str
) -> None:
    """Judged by the base's rules it would pass, and every later change would fail."""
    base = repo.commit()
    repo.commit(files)

    with pytest.raises(UsageError, match=told) as caught:
        repo.prepare(base)

    assert caught.value.fix.endswith("Merged as it is, this would fail the check of every change.")
    assert str(repo.place) not in str(caught.value)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"gate.yml": CONFIG + "\t- x\n"}, "sub/gate.yml of the base commit {base}:8: is not YAML"),
        ({"gate.yml": CONFIG + "select: tag:none\n"}, "sub/gate.yml of the base commit {base}:8: select: "),
        (
            {"models/cases.yml": "version: 1\nmodels: 3\n"},
            "sub/models/cases.yml of the base commit {base}:2: ",
        ),
        ({"perf/baselines/x.json": "x"}, "sub/perf/baselines/x.json of the base commit {base}: is not JSON"),
        (
            {"perf/baselines/accepted.yml": "accepted: 5\n"},
            "sub/perf/baselines/accepted.yml of the base commit {base}",
        ),
    ],
)
def test_a_change_that_mends_the_base_is_judged_by_its_own_rules(
    repo: Repo, files: dict[str, str], told: str
) -> None:
    """Any other change is refused by the name of the base's file, with what would help."""
    repo.commit()
    base = repo.commit(files)
    other = repo.prepare_in_vain(base, place="other")

    repo.git("revert", "--no-edit", "HEAD")
    rules = repo.prepare(base)

    assert other.what.startswith(told.format(base=base[:7]))
    assert other.fix.endswith("A change that mends this is judged by its own rules.")
    assert (rules.config, rules.baselines, rules.sha) == ("", "", "")
    assert rules.mended.startswith(told.format(base=base[:7]))
    assert str(repo.place) not in f"{other}{rules.mended}"


def test_a_change_that_mends_and_breaks_is_told_of_both(repo: Repo) -> None:
    """What is wrong with the change itself is as much in its way as what it mends."""
    base = repo.commit({"gate.yml": CONFIG + "\t- x\n"})
    repo.commit({"gate.yml": CONFIG, "perf/baselines/x.json": "x"})

    error = repo.prepare_in_vain(base)

    assert error.what.startswith(f"sub/gate.yml of the base commit {base[:7]}:8: ")
    assert [one.what.partition(":")[0] for one in error.others] == ["sub/perf/baselines/x.json"]


def test_a_base_that_the_clone_lacks_is_not_mended(repo: Repo) -> None:
    """What a partial clone does not have may well be sound: a change is never judged by its own for that."""
    base = repo.commit()
    blob = repo.git("rev-parse", f"{base}:sub/perf/baselines/x.json")
    repo.commit(gone="perf/baselines/x.json")
    (repo.root / ".git/objects" / blob[:2] / blob[2:]).unlink()

    assert "this clone lacks the content" in repo.prepare_in_vain(base).what


MOVED = MODELS.replace("mm.f:ok", "mm.models:build")
TEST = 'version: 1\ntests:\n  - {name: mine, node: "tests/test_a.py::test_old"}\n'
LIN, MINE = "lin/inference-float32-smoke-default", "mine/test"


@pytest.mark.parametrize(
    ("before", "after", "place", "moved", "removed"),
    [
        (MODELS, MOVED, "mm.models:build", ("lin: mm.f:ok, now mm.models:build",), ()),
        (
            TEST,
            TEST.replace("old", "new"),
            "tests/test_a.py::test_new",
            ("mine: tests/test_a.py::test_old, now tests/test_a.py::test_new",),
            (),
        ),
        (MODELS, MOVED.replace("8", "9"), "mm.f:ok", (), (LIN,)),  # another model
        (MODELS, MOVED.replace("lin", "line"), "mm.f:ok", (), (LIN,)),  # another name
        (MODELS, TEST, "mm.f:ok", (), (LIN,)),  # gone
        (TEST, MODELS, "tests/test_a.py::test_old", (), (MINE,)),
        (MODELS, MODELS.replace("5", "6"), "mm.f:ok", (), ()),
        (
            MODELS,
            MOVED.replace("[{", "[{dtype: bfloat16}, {"),
            "mm.models:build",
            ("lin: mm.f:ok, now mm.models:build",),
            (),
        ),
    ],
)
def test_a_model_is_measured_where_the_change_has_it(
    repo: Repo, before: str, after: str, place: str, moved: tuple[str, ...], removed: tuple[str, ...]
) -> None:
    """By the change's entry of the same definition; a case that has none there is named as removed."""
    base = repo.commit({"models/cases.yml": before})
    repo.commit({"models/cases.yml": after})

    rules = repo.prepare(base)

    (case,) = load_cases(load_config(Path(rules.config)))
    assert (case.factory or case.node, rules.moved, rules.removed) == (place, moved, removed)


def test_a_moved_model_brings_no_rules_of_its_own(repo: Repo) -> None:
    """Thresholds, limits, quarantine, sampling, tags and expectations stay the base's."""
    base = repo.commit()
    loose = f"""\
limits: [{{metric: drift, at_most: 99}}]
quarantine: [{{case: "*", owner: me, reason: x, expires: {datetime.now(UTC).date() + timedelta(days=30)}}}]
overrides: [{{case: "*", metric: drift, absolute: 99, reason: x}}]
sampling: {{super_blocks: 1}}
trials: 1
max_trials: 1
"""
    head = {"gate.yml": CONFIG.replace("0.05", "0.9") + loose, "models/cases.yml": MOVED.replace("5", "50")}
    repo.commit(head)
    own = repo.load(base)
    repo.git("checkout", "--quiet", base)
    before = repo.load(base, "base")

    (model,) = own.models
    assert (model.factory, model.cases) == ("mm.models:build", before.models[0].cases)
    assert (
        replace(own, models=before.models, baselines=before.baselines, directory=before.directory) == before
    )


@pytest.mark.parametrize(
    ("old", "new", "config"),
    [
        ("gate.yml", "ci/gate.yml", "ci/gate.yml"),
        ("gate.yml", "perf.yml", "perf.yml"),
        ("ci/perf.yml", "gate.yml", ""),
        ("ci/gate.yml", "gate.yml", ""),
    ],
)
def test_a_configuration_that_moves_is_followed(repo: Repo, old: str, new: str, config: str) -> None:
    """Else a change could be judged by its own rules by moving them and saying so in the workflow."""
    own = CONFIG.replace(
        "registry: [models/cases.yml]", 'models: [{name: lin, factory: "f:ok", cases: [{}]}]'
    )
    (repo.top / "gate.yml").unlink()
    base = repo.commit({old: own})
    (repo.top / old).unlink()
    repo.commit({new: own.replace("0.05", "0.90")})

    rules = repo.prepare(base, config=config)

    found = load_config(Path(rules.config))
    assert found.thresholds[Metric.COMPILED_LATENCY].relative == 0.05
    assert (rules.sha, rules.directory) == (base, str((repo.top / new).parent))
    assert found.out == (repo.top / new).parent / "results"


def test_a_configuration_that_the_workflow_names_must_stay(repo: Repo) -> None:
    """Without it every later check would end with an error."""
    base = repo.commit()
    repo.commit(gone="gate.yml")

    with pytest.raises(UsageError, match=r"this change has no gate\.yml, and the base commit does"):
        repo.prepare(base, config="gate.yml")


def test_a_change_without_a_configuration_removes_all_of_it(repo: Repo) -> None:
    """Nothing is left to measure its own code by, and that is named."""
    base = repo.commit()
    repo.commit(gone="gate.yml")

    assert repo.prepare(base).removed == (LIN,)


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4' * 64}\nsize 12345\n"


@pytest.mark.parametrize("name", ["perf/baselines/x.json", "models/cases.yml", "gate.yml"])
def test_a_pointer_of_git_lfs_is_named_by_file_and_commit(repo: Repo, name: str) -> None:
    """Git's objects hold it in the base, or in a change, where the working tree has the file."""
    good = repo.commit()
    base = repo.commit({name: POINTER})

    own, later = repo.prepare_in_vain(good, place="own"), repo.prepare_in_vain(base, place="later")

    assert f"sub/{name}" in own.what
    assert own.what.endswith("is a pointer of Git LFS, which the gate does not follow")
    assert f"sub/{name} of the base commit {base[:7]}" in later.what
    assert "-filter -diff -merge text` to .gitattributes" in later.fix


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        (
            {"changed": ("gate.yml",), "sha": "b" * 40, "moved": ("lin: mm.f:ok, now mm.models:build",)},
            "it was judged by commit bbbbbbbbbbbb's, with what it moves measured there (lin: mm.f:ok, now",
        ),
        (
            {"changed": ("gate.yml",), "sha": "b" * 40, "removed": (LIN,)},
            f"This change removes or redefines 1 case ({LIN}): once merged, nothing measures them",
        ),
        (
            {"mended": "gate.yml of the base commit bbbbbbb:7: is not YAML. Fix it."},
            "by its own rules, since it mends those of the base. gate.yml of the base commit bbbbbbb:7: ",
        ),
    ],
)
def test_what_is_followed_removed_or_mended_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rules: dict[str, Any], told: str
) -> None:
    """On the run's page: whoever reviews the change sees what it does to its own check."""
    report_change(make_step(tmp_path, "base"), RuleSource(config="", **rules))
    printed = capsys.readouterr().out
    assert printed.startswith("::warning title=compile-gate::This change ")
    assert told in printed
