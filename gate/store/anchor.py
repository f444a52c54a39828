"""The release anchor, ``baselines/anchor.yml``: a commit that many small changes together are compared with.

Twenty changes of 1.5 % each pass. The anchor stays where it is until somebody moves it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gate.errors import UsageError
from gate.files.codec import encode, write_atomic
from gate.files.disk import is_present
from gate.files.schema import list_invalid
from gate.files.yaml_in import load_yaml
from gate.files.yaml_out import write_scalar
from gate.units import format_age

ANCHOR_FILE = "anchor.yml"
RECORD_ANCHOR = "compile-gate baseline anchor REF --reason TEXT"
_EXAMPLE = '`--reason "the release of March"`'
_SHORT_CHARS = 7  # of a commit, as git shows it
_DAY_CHARS = 10  # of a moment in ISO 8601
_HEADER = """\
# The commit that `compile-gate ab --anchor` compares with, so that small slowdowns do not add up.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnchorFile:
    SCHEMA: ClassVar[str] = "anchor"

    version: int
    commit: str
    name: str = ""
    created: str
    author: str = ""
    reason: str


def load_anchor(directory: Path) -> AnchorFile | None:
    """Load the anchor next to the baselines.

    Raises:
        FileError: It cannot be used.
    """
    path = directory / ANCHOR_FILE
    return load_yaml(AnchorFile, path)[0] if is_present(path) else None


def save_anchor(directory: Path, anchor: AnchorFile) -> Path:
    """Replace the anchor; return its path.

    Raises:
        MachineError: The disk is full or read-only.
        UsageError: It could not be read back, or the path cannot be written.
    """
    path = directory / ANCHOR_FILE
    plain = {key: value for key, value in encode(anchor).items() if value or key == "reason"}
    for invalid in list_invalid(AnchorFile.SCHEMA, plain):
        raise UsageError(f"--{invalid.key}: {invalid.problem}", f"Write, for example, {_EXAMPLE}.")
    write_atomic(path, _HEADER + "".join(f"{key}: {write_scalar(value)}\n" for key, value in plain.items()))
    return path


def name_anchor(anchor: AnchorFile) -> str:
    """As a revision: ``v1.2 (1a2b3c4)``, or the short commit alone."""
    short = anchor.commit[:_SHORT_CHARS]
    return f"{anchor.name} ({short})" if anchor.name else short


def describe_anchor(anchor: AnchorFile, now: str = "") -> str:
    """``v1.2 (1a2b3c4), recorded 2026-03-01 by Ada: the release of March``.

    With ``now`` (ISO 8601) its age follows the day.
    """
    age = format_age(anchor.created, now) if now and anchor.created else ""
    recorded = f", recorded {anchor.created[:_DAY_CHARS]}" if anchor.created else ""
    by = f" by {anchor.author}" if recorded and anchor.author else ""
    reason = " ".join(anchor.reason.split()).rstrip(".")
    return f"{name_anchor(anchor)}{recorded}{f' ({age})' if age else ''}{by}: {reason}"
