"""The files that options name; ``-`` is standard input."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from gate.cli.setup import RUN_FILE
from gate.errors import UsageError
from gate.files.codec import RUN, VERDICT, decode_file, load_run, load_verdict
from gate.files.untrusted import MAX_JSON_BYTES, is_present
from gate.records import Run, Verdict

STDIN = "-"
_SOURCE = "standard input"


def read_run(name: str) -> Run:
    """Read a ``run.json``.

    Raises:
        FileError: It cannot be used.
    """
    return decode_file(RUN, _read_input(), _SOURCE) if name == STDIN else load_run(Path(name))


def name_source(name: str) -> str:
    """Name a file that an option names, for errors."""
    return _SOURCE if name == STDIN else name


def read_verdict(name: str) -> Verdict:
    """Read a ``verdict.json``; raises as :func:`read_run`."""
    return decode_file(VERDICT, _read_input(), _SOURCE) if name == STDIN else load_verdict(Path(name))


def read_previous(options: Namespace, directories: Iterable[Path]) -> dict[Path, Run]:
    """Read the runs that ``--resume`` continues, before anything else is waited for.

    Where a command makes several runs, those that it had not begun are left out.

    Raises:
        UsageError: There is none.
        FileError: One cannot be used.
    """
    if not options.resume:
        return {}
    wanted = tuple(directories)
    begun = {place: load_run(place / RUN_FILE) for place in wanted if is_present(place / RUN_FILE)}
    if not begun:
        what = f"--resume: {wanted[0] / RUN_FILE} does not exist, so there is no run to continue"
        raise UsageError(what, "Run without --resume, or name the run's directory with --out.")
    return begun


def _read_input() -> bytes:
    """Read standard input, one byte more than a file may have at most: the codec refuses it then."""
    return sys.stdin.buffer.read(MAX_JSON_BYTES + 1)
