"""The change's own rules are read as data: broken ones are refused, moved or removed ones are reported."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rule_repository import CONFIG, MODELS, Repo, make_step

from gate.action.rules import RuleSource
from gate.action.step import report_change
from gate.errors import ExitCode, MachineError, UsageError
from gate.project.config import load_config, make_default_config
from gate.records.cases import Metric
from gate.store.rules import BaseRules
from tests.git import run_git


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"gate.yml": CONFIG + "limits:\n\t- x\n"}, r"^sub/gate\.yml:9: is indented by a tab"),
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
    repo: Repo, files: dict[str, str], message: str
) -> None:
    """By the base's rules it would pass, and every later change would fail."""
    base = repo.commit()
    repo.commit(files)

    with pytest.raises(UsageError, match=message) as caught:
        repo.prepare(base)

    assert caught.value.fix.endswith("Merged as it is, this would fail the check of every change.")
    assert str(repo.directory) not in str(caught.value)


@pytest.mark.parametrize("name", ["perf/baselines/x.json", "perf/baselines/accepted.yml"])
def test_a_change_that_brings_broken_rules_is_refused(repo: Repo, name: str) -> None:
    """Its own run reads neither file, and the next change's would."""
    base = repo.commit(gone="gate.yml")
    repo.commit({"gate.yml": CONFIG, name: "x"})
    error = repo.prepare_in_vain(base)
    assert error.what.startswith(f"sub/{name}")
    assert error.fix.endswith("Merged as it is, this would fail the check of every change.")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"gate.yml": CONFIG + "\t- x\n"}, "sub/gate.yml of the base commit {base}:8: is indented by a tab"),
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
    repo: Repo, files: dict[str, str], message: str
) -> None:
    """Any other change is refused, with the name of the base's file and the fix."""
    repo.commit()
    base = repo.commit(files)
    other = repo.prepare_in_vain(base)

    repo.git("revert", "--no-edit", "HEAD")
    rules = repo.prepare(base)

    assert other.what.startswith(message.format(base=base[:7]))
    assert other.fix.endswith("A change that mends this is judged by its own rules.")
    assert (rules.config, rules.sha) == (load_config(None), "")
    assert rules.mended.startswith(message.format(base=base[:7]))
    assert str(repo.directory) not in f"{other}{rules.mended}"


def test_a_change_that_mends_and_breaks_is_refused_for_both(repo: Repo) -> None:
    """The error names the base's broken file and the change's."""
    base = repo.commit({"gate.yml": CONFIG + "\t- x\n"})
    repo.commit({"gate.yml": CONFIG, "perf/baselines/x.json": "x"})

    error = repo.prepare_in_vain(base)

    assert error.what.startswith(f"sub/gate.yml of the base commit {base[:7]}:8: ")
    assert [error.what.partition(":")[0] for error in error.others] == ["sub/perf/baselines/x.json"]


def test_a_base_that_the_clone_lacks_is_not_mended(repo: Repo) -> None:
    """What a partial clone lacks may be valid: the change is not judged by its own rules."""
    base = repo.commit()
    blob = repo.git("rev-parse", f"{base}:sub/perf/baselines/x.json")
    repo.commit(gone="perf/baselines/x.json")
    (repo.root / ".git/objects" / blob[:2] / blob[2:]).unlink()

    with pytest.raises(MachineError, match=f"git cannot check {base[:10]} out"):
        repo.prepare(base)


@pytest.mark.parametrize("kind", ["blob:none", "tree:0"])
def test_a_partial_clone_is_not_judged_by_the_changes_own_rules(
    repo: Repo, tmp_path: Path, kind: str
) -> None:
    """Its remote is out of reach, so it lacks the base's gate.yml."""
    base = repo.commit({"gate.yml": CONFIG + "fail_on: inconclusive\n"})
    repo.commit({"gate.yml": CONFIG + "fail_on: never\n"})
    repo.git("config", "uploadpack.allowFilter", "true")
    clone, remote = tmp_path / "clone", repo.root.rename(tmp_path / "remote")
    run_git(tmp_path, "clone", "--quiet", f"--filter={kind}", remote.as_uri(), str(clone))
    clone.rename(repo.root)
    remote.rename(tmp_path / "gone")
    os.chdir(repo.top)

    error = repo.prepare_in_vain(base)

    assert error.exit_code is ExitCode.USAGE
    assert f"this clone lacks the content of a file of commit {base[:12]}" in error.what
    assert "filter:" in error.fix


MOVED = MODELS.replace("mm.f:ok", "mm.models:build")
TEST = 'version: 1\ntests:\n  - {name: mine, node: "tests/test_a.py::test_old"}\n'
LIN, MINE = "lin/inference-float32-smoke-default", "mine/test"


@pytest.mark.parametrize(
    ("before", "after", "measured", "moved", "removed"),
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
    repo: Repo, before: str, after: str, measured: str, moved: tuple[str, ...], removed: tuple[str, ...]
) -> None:
    """The change's entry of the same definition counts; a case without one is reported as removed."""
    base = repo.commit({"models/cases.yml": before})
    repo.commit({"models/cases.yml": after})

    rules = repo.prepare(base)

    (case,) = rules.cases
    assert (case.factory or case.node, rules.moved, rules.removed) == (measured, moved, removed)


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
    after = repo.load(base)
    repo.git("checkout", "--quiet", base)
    before = repo.load(base)

    (model,) = after.models
    assert (model.factory, model.cases) == ("mm.models:build", before.models[0].cases)
    assert (
        replace(after, models=before.models, baselines=before.baselines, directory=before.directory) == before
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
    """Otherwise a change could move its configuration to be judged by its own rules."""
    text = CONFIG.replace(
        "registry: [models/cases.yml]", 'models: [{name: lin, factory: "f:ok", cases: [{}]}]'
    )
    (repo.top / "gate.yml").unlink()
    base = repo.commit({old: text})
    (repo.top / old).unlink()
    repo.commit({new: text.replace("0.05", "0.90")})

    rules = repo.prepare(base, config=config)

    assert rules.config.thresholds[Metric.COMPILED_LATENCY].relative == 0.05
    assert (rules.sha, rules.config.directory) == (base, (repo.top / new).parent)
    assert rules.config.out == (repo.top / new).parent / "results"


def test_a_configuration_that_the_workflow_names_must_stay(repo: Repo) -> None:
    """Without it every later check would end with an error."""
    base = repo.commit()
    repo.commit(gone="gate.yml")

    with pytest.raises(UsageError, match=r"this change has no gate\.yml, and the base commit does"):
        repo.prepare(base, config="gate.yml")


def test_a_change_without_a_configuration_removes_all_of_it(repo: Repo) -> None:
    """Nothing is left to measure, and the removal is reported."""
    base = repo.commit()
    repo.commit(gone="gate.yml")

    assert repo.prepare(base).removed == (LIN,)


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4' * 64}\nsize 12345\n"


@pytest.mark.parametrize("name", ["perf/baselines/x.json", "models/cases.yml", "gate.yml"])
def test_a_pointer_of_git_lfs_is_named_by_file_and_commit(repo: Repo, name: str) -> None:
    """It is in git's objects of the base or of the change; the working tree has the file."""
    good = repo.commit()
    base = repo.commit({name: POINTER})

    first, second = repo.prepare_in_vain(good), repo.prepare_in_vain(base)

    assert f"sub/{name}" in first.what
    assert first.what.endswith("is a pointer of Git LFS, which the gate does not follow")
    assert f"sub/{name} of the base commit {base[:7]}" in second.what
    assert "-filter -diff -merge text` to .gitattributes" in second.fix


@pytest.mark.parametrize(
    ("rules", "workflows", "line"),
    [
        (
            {"changed": ("gate.yml",), "sha": "b" * 40, "moved": ("lin: mm.f:ok, now mm.models:build",)},
            (),
            "it was judged by commit bbbbbbbbbbbb's, with what it moves measured there (lin: mm.f:ok, now",
        ),
        (
            {"changed": ("gate.yml",), "sha": "b" * 40, "removed": (LIN,)},
            (),
            f"This change removes or redefines 1 case ({LIN}): once merged, nothing measures them",
        ),
        (
            {"mended": "gate.yml of the base commit bbbbbbb:7: is not YAML. Fix it."},
            (),
            "by its own rules, since it mends those of the base. gate.yml of the base commit bbbbbbb:7: ",
        ),
        (  # GitHub runs a pull request's own workflows: whoever reads the result must look at them
            {},
            (".github/workflows/gate.yml",),
            "touches .github/workflows/gate.yml: GitHub ran this check as the change has it.",
        ),
    ],
)
def test_what_is_followed_removed_or_mended_is_reported(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rules: dict[str, Any],
    workflows: tuple[str, ...],
    line: str,
) -> None:
    """A reviewer sees on the run's page what the change does to its own check."""
    judged = BaseRules(config=make_default_config(), cases=(), **rules)
    report_change(make_step(tmp_path, "base"), RuleSource(rules=judged, workflows=workflows))
    printed = capsys.readouterr().out
    assert printed.startswith("::warning title=compile-gate::This change ")
    assert line in printed


def test_the_change_that_brings_the_gate_is_one_notice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its gate.yml and its workflow are new, as they must be."""
    judged = BaseRules(config=make_default_config(), cases=(), changed=("gate.yml",))
    report_change(
        make_step(tmp_path, "base"), RuleSource(rules=judged, workflows=(".github/workflows/g.yml",))
    )
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("::notice title=compile-gate::The base commit has no configuration yet")
