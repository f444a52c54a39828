"""Makes the history that the README's picture of `trend` is drawn from: real checks of real commits.

    python tools/measure_trend_example.py [--out docs/images/trend.jsonl] [--commits 16] [--trials 2]

A repository of its own gets the model of examples/custom-model, and a commit after the other; in the middle
somebody warns of large values, which splits the graph in two. `compile-gate check --history` measures each
commit, here, now, and appends its line; commits that the file has are not measured again, so what was stopped
goes on. `python tools/check_pages.py --trend-picture docs/images/trend.png` takes the picture.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gate.errors import ExitCode
from gate.store.history import HistoryReading, read_history

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "images" / "trend.jsonl"
_MEASURED = {ExitCode.PASS, ExitCode.NOTHING_COMPARED}
_CONFIG = """\
version: 1
device: cpu
threads: 1
reference_models: false
models:
  - name: mixer
    factory: mixer.bench:build
    arguments: {tokens: 64, batch: 16, width: 128, blocks: 2}
    cases: [{task: inference, dtype: float32}]
"""
_BEFORE = "        mixed: torch.Tensor = value + self.mix_features(self.norms[1](value))\n"
_PLANTED = (
    '        if value.abs().max() > 1e4:\n            print("large values before features are mixed")\n'
)


def main() -> int:
    """Make the commits, check each, and keep the history."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--commits", type=int, default=16)
    parser.add_argument("--trials", type=int, default=2)
    options = parser.parse_args()
    commits = read_commits(options.out)
    with tempfile.TemporaryDirectory(prefix="trend-") as directory:
        top = Path(directory)
        shutil.copytree(ROOT / "examples" / "custom-model" / "mixer", top / "mixer")
        (top / "gate.yml").write_text(_CONFIG, encoding="utf-8")
        (top / ".gitignore").write_text("out/\n__pycache__/\n", encoding="utf-8")
        _git(top, "init", "--quiet", "--initial-branch=main")
        for number in range(options.commits):
            if commit(top, number, is_planted=number == options.commits // 2) in commits:
                continue
            check(top, options)
            load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
            print(f"commit {number + 1} of {options.commits}; load {load}", flush=True)
    return 0


def read_commits(path: Path) -> set[str]:
    """Read which commits a history has."""
    lines = read_history(path, HistoryReading()) if path.is_file() else ()
    return {line.head.commit for line in lines}


def commit(top: Path, number: int, *, is_planted: bool) -> str:
    """Commit a change, of the notes or of the model; return its id, the same each time."""
    path = top / "mixer" / "model.py"
    with (top / "notes.txt").open("a", encoding="utf-8") as notes:
        notes.write(f"Change {number}\n")
    if is_planted:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(_BEFORE, _PLANTED + _BEFORE), encoding="utf-8")
    _git(top, "add", ".")
    _git(top, "commit", "--quiet", "--message", "Warn of large values" if is_planted else f"Change {number}")
    return _git(top, "rev-parse", "HEAD")


def check(top: Path, options: argparse.Namespace) -> None:
    """Measure the commit, and append its line; there are no baselines, so nothing is judged."""
    command = [sys.executable, "-m", "gate", "check", "--quiet", "--trials", str(options.trials)]
    done = subprocess.run(
        [*command, "--history", str(options.out.resolve())],
        cwd=top,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode not in _MEASURED:
        raise SystemExit(f"the check ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def _git(top: Path, *arguments: str) -> str:
    who = ("-c", "user.name=trend", "-c", "user.email=trend@example.org", "-c", "commit.gpgsign=false")
    dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-01-05T03:00:00+00:00")
    command = ["git", *who, *arguments]
    done = subprocess.run(
        command, cwd=top, check=True, capture_output=True, text=True, env={**os.environ, **dates}
    )
    return done.stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main())
