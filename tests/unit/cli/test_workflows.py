"""The modes that a clone's workflows use, by the inputs of their steps."""

from pathlib import Path

import pytest

from gate.cli.github import has_mode

ROOT = Path(__file__).parents[3]
MODE = "accept-regression"
STEP = "on: issue_comment\njobs:\n  accept:\n    steps:\n      - run: make\n      - uses: some/fork@abc\n"


def has_mode_in(directory: Path, *texts: str) -> bool:
    """Whether one of these workflows, written into a clone, has the mode."""
    workflows = directory / "workflows"
    workflows.mkdir()
    for number, text in enumerate(texts):
        (workflows / f"{number}.yml").write_text(text, encoding="utf-8", errors="surrogateescape")
    return has_mode(directory, MODE)


@pytest.mark.parametrize(
    "text",
    [
        STEP + "        with:\n          mode: accept-regression\n",
        STEP + '        with:\n          mode: "accept-regression"  # of a comment\n',
        STEP + "        with: {token: x, 'mode':   'accept-regression'}\n",
        "jobs:\n  accept:\n    uses: a/b/.github/workflows/c.yml@abc\n    with: {mode: accept-regression}\n",
        (ROOT / "examples/workflows/compile-gate-respond.yml").read_text(encoding="utf-8"),
    ],
    ids=["plain", "quoted", "flow", "a workflow that is called", "ours that is called"],
)
def test_a_step_with_the_mode_counts_however_it_is_written(tmp_path: Path, text: str) -> None:
    """YAML has many ways to write one value."""
    assert has_mode_in(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        STEP + "        # with:\n        #   mode: accept-regression\n",
        STEP + "        with:\n          mode: accept-regression-later\n",
    ],
    ids=["comment", "longer"],
)
def test_the_words_alone_do_not_count(tmp_path: Path, text: str) -> None:
    """A comment and a step of another mode."""
    assert not has_mode_in(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "jobs: [\n",
        "\udcff",
    ],
)
def test_what_is_no_workflow_stops_nothing(tmp_path: Path, text: str) -> None:
    """GitHub refuses such a file; the other files still count."""
    assert not has_mode_in(tmp_path, text)
    workflow = STEP + "        with: {mode: accept-regression}\n"
    (tmp_path / "workflows" / "z.yaml").write_text(workflow, encoding="utf-8")
    (tmp_path / "workflows" / "directory.yml").mkdir()
    assert has_mode(tmp_path, MODE)


def test_without_workflows_there_is_no_mode(tmp_path: Path) -> None:
    """A repository may have none."""
    assert not has_mode(tmp_path, MODE)


def test_the_check_alone_accepts_nothing(tmp_path: Path) -> None:
    """Without the second file no command in a comment is offered."""
    assert not has_mode_in(
        tmp_path, (ROOT / "examples/workflows/compile-gate.yml").read_text(encoding="utf-8")
    )


def test_this_repository_accepts() -> None:
    """Its own workflow uses the action by its path."""
    assert has_mode(ROOT / ".github", MODE)
