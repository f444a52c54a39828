"""docs/github.md and docs/github-workflows.md describe the workflows as they are."""

import re
import textwrap

from workflow_files import EXAMPLES, PERMISSIONS, ROOT, load

SHORT = (ROOT / "docs" / "github.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "github-workflows.md").read_text(encoding="utf-8")
RUNNERS = (ROOT / "docs" / "github-runners.md").read_text(encoding="utf-8")


def test_each_right_has_its_reason_in_the_workflow() -> None:
    """A comment follows each permission, as the guide promises."""
    rights = re.compile(
        r"^ +(?:actions|contents|issues|pull-requests|statuses): (?:read|write)(?P<because>.*)$", re.MULTILINE
    )
    matches = [(path.name, match) for path in EXAMPLES for match in rights.finditer(path.read_text("utf-8"))]
    assert matches
    assert [name for name, match in matches if not match["because"].startswith(" # ")] == []


def test_the_short_way_gives_a_reason_for_every_right() -> None:
    """The permissions of the second file; the first one has `contents: read` alone."""
    rights = dict(re.findall(r"^\| `([a-z-]+): (read|write)` \| .+ \|$", SHORT, re.MULTILINE))

    assert rights == PERMISSIONS["compile-gate-respond", "compile-gate"]


def test_the_short_way_shows_the_file_that_init_writes() -> None:
    """The page shows the example itself, but for the pin and the comment on top."""
    text = (ROOT / "examples/workflows/compile-gate.yml").read_text(encoding="utf-8")
    shown = textwrap.indent(text.partition("\n")[2].replace(f"{'0' * 40} # v0.1.0", "COMMIT"), "    ")

    assert shown in SHORT
    assert "`compile-gate / check`" in SHORT


def test_the_quick_start_names_what_there_is() -> None:
    """It names every example, and each value to replace is in a workflow."""
    steps = GUIDE.split("## Quick start")[1].split("\n### ")[0]
    copied = [path for path in EXAMPLES if f"`{path.name}`" in steps]
    texts = [path.read_text() for path in copied]

    assert [path.name for path in EXAMPLES if path.name not in SHORT + GUIDE + RUNNERS] == []
    assert [path.name for path in copied] == [
        "gate-accept.yml",
        "gate-publish.yml",
        "gate-refresh.yml",
        "gate-retarget.yml",
        "gate.yml",
    ]
    assert "OWNER/compile-gate@000" in steps
    assert "[self-hosted, linux, gpu]" in steps
    named = [line for text in texts for line in text.splitlines() if "python3" in line]
    assert len(named) == 2
    assert all(re.search(r"(python|PYTHON): python3\b", line) for line in named)
    assert load(ROOT / "examples/workflows/gate.yml")["jobs"]["check"]["name"] in steps
    assert "environment: refresh-baselines" in (ROOT / "examples/workflows/gate-refresh.yml").read_text()
