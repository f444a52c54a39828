"""Generated documents are up to date, and their examples are valid."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gate.files.yaml_in import decode_yaml
from gate.project.entries import GateFile
from gate.store.acceptances import AcceptedFile
from gate.store.anchor import AnchorFile

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (
    "README.md",
    "docs/accepting.md",
    "docs/configuration.md",
    "docs/adding-a-model.md",
    "docs/selftest.md",
)
SCHEMA_LINE = "# yaml-language-server: $schema="
BLOCKS = [
    pytest.param(block, id=f"{name}-{number}")
    for name in DOCUMENTS
    for number, block in enumerate(
        re.findall(r"^```yaml\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    )
    if not block.startswith((" ", "- uses:"))  # the rest of a list that began above; a workflow's step
]


def test_generated_parts_match_the_code() -> None:
    """Metrics, commands, exit codes and keys are the code's."""
    command = [sys.executable, str(ROOT / "tools" / "generate_docs.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("block", BLOCKS)
def test_configurations_in_documents_are_right(block: str) -> None:
    """Each block is loaded as a file of ours or a part of gate.yml."""
    text = block if "version:" in block else f"version: 1\n{block}"
    kinds = {"accepted:": AcceptedFile, "commit:": AnchorFile}
    kind = next((kind for key, kind in kinds.items() if key in text), GateFile)
    decode_yaml(kind, text.encode(), "the block")


def test_documents_show_every_part_of_the_configuration() -> None:
    """Each part that a table does not explain has a block."""
    shown = "".join(str(parameters.values[0]) for parameters in BLOCKS)
    parts = ("models", "tests", "sampling", "thresholds", "overrides", "quarantine", "accepted", "commit")
    assert [part for part in parts if f"{part}:" not in shown] == []


def test_our_own_file_points_to_its_schema() -> None:
    """Its first line is for editors."""
    schema = "gate/schemas/config.json"
    assert (ROOT / "gate.yml").read_text(encoding="utf-8").startswith(f"{SCHEMA_LINE}{schema}\n")
    assert (ROOT / schema).is_file()


def test_the_example_points_to_the_schema_that_its_readme_makes() -> None:
    """gate.yml's first line names the file that the first command writes."""
    example = ROOT / "examples" / "custom-model"
    first = (example / "gate.yml").read_text(encoding="utf-8").partition("\n")[0]
    match = re.search(
        r"compile-gate schema config > (\S+)", (example / "README.md").read_text(encoding="utf-8")
    )
    assert match is not None
    assert first == SCHEMA_LINE + match[1]
