"""The action's first file: refuses a Python that is too old, and goes on to :mod:`launch`.

``start.py MODULE ARGUMENTS`` enters a module in the same isolation, ``-I -S``. Standard library only, and
nothing that Python 3.7 cannot parse.
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
    if sys.version_info < MINIMUM_PYTHON:
        return refuse_python()
    sys.path.insert(0, str(ROOT))
    from gate.action.launch import enter, launch  # noqa: PLC0415 - an old Python could not

    sys.path.remove(str(ROOT))
    return enter(arguments[0], arguments[1:]) if arguments else launch(dict(os.environ))


def refuse_python() -> int:
    version = ".".join(map(str, sys.version_info[:3]))
    print(
        "::error title=compile-gate::compile-gate needs Python 3.11 or later;"
        f" {sys.executable} is {version}. Name another one in the input python."
    )
    if os.environ.get("GITHUB_OUTPUT"):
        with contextlib.suppress(OSError), Path(os.environ["GITHUB_OUTPUT"]).open("a") as file:
            file.write(f"exit-code={EXIT_USAGE}\n")
    return EXIT_USAGE


if __name__ == "__main__":
    # A command for the runner stands before what a child writes, though no terminal reads it.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
