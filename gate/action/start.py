"""The first thing of the action that runs: refuses a Python that is too old, and goes on to :mod:`launch`.

``start.sh`` runs this file with ``-I -S``: no variable, no directory of the workspace and no start-up
file decides what is imported. ``start.py MODULE ARGUMENTS`` enters a module in the same isolation.

Standard library only, and nothing that Python 3.7 cannot parse: this file tells old ones that they are.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

MINIMUM_PYTHON = (3, 11)
EXIT_USAGE = 2  # gate.errors.ExitCode, which an old Python cannot import
ROOT = Path(__file__).resolve().parents[2]  # what holds the package ``gate``


def main(arguments: list[str]) -> int:
    """Enter the module that is named, or start the action; in a Python that is too old, say so."""
    if sys.version_info < MINIMUM_PYTHON:
        return refuse_python()
    sys.path.insert(0, str(ROOT))
    from gate.action.launch import enter, launch  # noqa: PLC0415 - an old Python could not

    sys.path.remove(str(ROOT))
    return enter(arguments[0], arguments[1:]) if arguments else launch(dict(os.environ))


def refuse_python() -> int:
    """Tell the runner that this Python is too old: an annotation, and the exit code as an output."""
    version = ".".join(map(str, sys.version_info[:3]))
    print(
        "::error title=compile-gate::compile-gate needs Python 3.11 or later;"
        f" {sys.executable} is {version}. Name another one in the input python.",
        flush=True,
    )
    if os.environ.get("GITHUB_OUTPUT"):
        with contextlib.suppress(OSError), Path(os.environ["GITHUB_OUTPUT"]).open("a") as file:
            file.write(f"exit-code={EXIT_USAGE}\n")
    return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
