"""The report for programs: the verdict itself, as its file has it."""

from __future__ import annotations

from gate.files.codec import VERDICT, encode_file
from gate.records import Verdict


def render_json(verdict: Verdict) -> str:
    """Return the verdict as the text of ``verdict.json`` (``compile-gate/verdict/3``)."""
    return encode_file(VERDICT, verdict)
