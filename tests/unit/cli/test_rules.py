"""``check --rules base``: the base commit's rules judge a change, as in the action."""

import shutil
from pathlib import Path

import pytest

from gate.check.procedure import Checked, check_against_base
from gate.cli import check
from gate.errors import ExitCode
from gate.files.codec import VERDICT
from gate.records.codes import Code
from tests.unit.cli.conftest import CONFIG, Sandbox

LENIENT = f"{CONFIG}fail_on: never\nthresholds: {{compiled_latency: {{relative: 0.9}}}}\n"


@pytest.fixture
def change(sandbox: Sandbox) -> Sandbox:
    """A branch that breaks a graph, with a configuration that tolerates it."""
    sandbox.begin()
    (sandbox.top / "gate.yml").write_text(LENIENT, encoding="utf-8")
    sandbox.change("graph_break", 0.0, "gate.yml")
    return sandbox


def test_a_change_is_judged_by_the_rules_of_its_base(change: Sandbox) -> None:
    """By its own it would be green; a note names its changes of the rules."""
    assert change.run("check", "--quiet") == ExitCode.PASS
    assert change.run("check", "--quiet", "--rules", "base") == ExitCode.REGRESSION
    base = change.git("rev-parse", "main")
    touched = (
        f"note: This change touches what it is judged by (gate.yml); it was judged by commit {base[:12]}'s."
    )
    assert touched in change.read().err.splitlines()
    notes = VERDICT.load(Path("out/verdict.json")).notes
    assert [note.name("commit") for note in notes if note.code is Code.RULES_OF] == [base]
    assert len(change.git("worktree", "list").splitlines()) == 1


def test_what_is_written_to_the_base_while_it_is_measured_moves_no_rule(
    change: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base's rules are read before anything of the change runs, and never again."""
    judge = check_against_base
    written: list[Path] = []

    def loosen_and_judge(*arguments: object) -> Checked:
        for config in change.top.parent.glob("compile-gate-*/base/gate.yml"):
            config.write_text(LENIENT, encoding="utf-8")
            shutil.rmtree(config.parent / "baselines")
            written.append(config)
        return judge(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(check, "check_against_base", loosen_and_judge)

    assert change.run("check", "--quiet", "--rules", "base") == ExitCode.REGRESSION
    assert len(written) == 1


def test_on_the_main_branch_its_own_rules_hold(change: Sandbox) -> None:
    """Nothing differs from the base there."""
    change.git("checkout", "--quiet", "main")
    assert change.run("check", "--quiet", "--rules", "base") == ExitCode.PASS


@pytest.mark.parametrize(
    ("rules", "what"),
    [("main", "--rules: expected base, or a whole commit id"), ("f" * 40, "git cannot check ffffffffff out")],
)
def test_rules_of_nothing_are_refused(change: Sandbox, rules: str, what: str) -> None:
    """A name can be moved by whoever pushes; the base is where the change left it."""
    assert change.run("check", "--quiet", "--rules", rules) in {ExitCode.USAGE, ExitCode.MACHINE}
    assert what in change.read().err


def test_the_reference_models_have_no_rules(change: Sandbox) -> None:
    """They read no gate.yml."""
    assert change.run("check", "--rules", "base", "--reference-models") == ExitCode.USAGE
    assert "Leave out --rules or --reference-models." in change.read().err


def test_a_base_that_is_a_directory_has_no_rules(change: Sandbox) -> None:
    """Rules are those of a commit."""
    assert change.run("check", "--rules", "base", "--base", ".") == ExitCode.USAGE
    assert "--rules base: . is no commit" in change.read().err
