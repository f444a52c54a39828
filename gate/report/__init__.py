"""Reports: one pure function a format, from a verdict to text.

Importing this imports neither rich nor a format: each is imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gate.errors import UsageError
from gate.records import Verdict


def _render_text(verdict: Verdict) -> str:
    from gate.report.text import render_text  # noqa: PLC0415 - rich costs 0.1 s

    return render_text(verdict)


def _render_markdown(verdict: Verdict) -> str:
    from gate.report.markdown import render_markdown  # noqa: PLC0415 - only when asked for

    return render_markdown(verdict)


def _render_json(verdict: Verdict) -> str:
    from gate.report.json_format import render_json  # noqa: PLC0415 - only when asked for

    return render_json(verdict)


def _render_junit(verdict: Verdict) -> str:
    from gate.report.junit import render_junit  # noqa: PLC0415 - only when asked for

    return render_junit(verdict)


FORMATS: Mapping[str, Callable[[Verdict], str]] = {
    "text": _render_text,
    "markdown": _render_markdown,
    "json": _render_json,
    "junit": _render_junit,
}


def render(verdict: Verdict, report_format: str = "text") -> str:
    """Return the report of ``verdict`` in one of :data:`FORMATS`.

    Raises:
        UsageError: There is no such format.
    """
    if report_format not in FORMATS:
        raise UsageError(f"no report format {report_format!r}", f"Choose one of {', '.join(FORMATS)}.")
    return FORMATS[report_format](verdict)


__all__ = ["FORMATS", "render"]
