"""The file in which a worker writes down what it asks and what it was answered, a line of JSON each."""

from __future__ import annotations

FINDINGS_FILE = "findings.jsonl"
PLANNED, ASKED, ANSWERED, ENDED = "planned", "asked", "answered", "ended"
