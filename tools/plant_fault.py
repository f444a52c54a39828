"""See the gate catch something: measure a copy of examples/custom-model with and without a graph break.

    python tools/plant_fault.py

Ends with the exit code of the comparison, which is 10. Nothing but a temporary directory is written.
"""

from __future__ import annotations

import difflib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "custom-model"
_MODEL = "mixer/model.py"
_BEFORE = "        mixed: torch.Tensor = "
_FAULT = '        print("mixing")  # planted: Dynamo cannot trace a call to print()\n'
_MEASURE = ("measure", "--select", "mixer/inference-float32-smoke-default", "--trials", "1", "--out")


def main() -> int:
    """Measure, plant the fault, measure again, and compare."""
    with tempfile.TemporaryDirectory(prefix="compile-gate-fault-") as scratch:
        project = Path(scratch) / "custom-model"
        shutil.copytree(_EXAMPLE, project, ignore=shutil.ignore_patterns("out*", "baselines", "__pycache__"))
        if code := _run(project, *_MEASURE, "before"):
            return code
        plant_fault(project / _MODEL)
        return _run(project, *_MEASURE, "after") or _run(
            project, "compare", "before/run.json", "after/run.json"
        )


def plant_fault(model: Path) -> None:
    """Put the fault in front of the line that it is known by, and print the difference.

    Raises:
        ValueError: The example no longer has that line.
    """
    text = model.read_text(encoding="utf-8")
    before, line, after = text.partition(_BEFORE)
    if not line:
        raise ValueError(f"{model} has no line that begins with {_BEFORE.strip()!r}")
    planted = f"{before}{_FAULT}{line}{after}"
    model.write_text(planted, encoding="utf-8")
    print("".join(difflib.unified_diff(text.splitlines(True), planted.splitlines(True), _MODEL, _MODEL, n=1)))


def _run(project: Path, *arguments: str) -> int:
    print(f"$ compile-gate {' '.join(arguments)}", flush=True)
    return subprocess.run([sys.executable, "-m", "gate", *arguments], cwd=project, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
