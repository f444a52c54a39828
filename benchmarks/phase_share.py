"""How much of a cold compile its phases account for, each counted once, by case.

``python benchmarks/phase_share.py out/run.json`` prints the parts that reports show as shares of the first
compiled call, the median of each over the trials. What no phase accounts for is ``other``. The exit code is 1
where that is more than 5 % in some trial, or where the parts do not add up to the call.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median

from gate.decide.evidence.compiles import part_phases
from gate.files.codec import RUN
from gate.records.facts import FIRST_CALL, OTHER_PHASE, PHASES
from gate.records.run import Trial

LEAST_SHARE = 0.95
ROUNDING = 1e-9  # of a sum of ten numbers


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run.json files")
    trials = [trial for path in parser.parse_args().runs for trial in RUN.load(path).trials]
    cases: dict[str, list[Mapping[str, float]]] = {}
    for trial in trials:
        if FIRST_CALL in trial.phases_s:
            cases.setdefault(trial.case_id, []).append(compute_shares(trial))
    if not cases:
        sys.exit("no trial of these tells the phases of its compile")
    named = [name for name in (*PHASES, OTHER_PHASE) if any(shares.get(name) for shares in flatten(cases))]
    print(f"| case | trials | {' | '.join(named)} | accounted for, least |")
    print(f"| --- | --- | {'--- | ' * len(named)}--- |")
    for case_id, shares in cases.items():
        medians = [median(trial_shares.get(name, 0.0) for trial_shares in shares) for name in named]
        cells = " | ".join(f"{100 * share:.1f} %" for share in medians)
        print(f"| {case_id} | {len(shares)} | {cells} | {100 * min(map(find_accounted, shares)):.1f} % |")
    whole = all(abs(sum(shares.values()) - 1) < ROUNDING for shares in flatten(cases))
    coverage = "each" if whole else "not each"
    print(f"\nIn {coverage} of {len(list(flatten(cases)))} trials the parts add up to the call.")
    return 0 if whole and min(map(find_accounted, flatten(cases))) >= LEAST_SHARE else 1


def compute_shares(trial: Trial) -> Mapping[str, float]:
    """The parts of the first compiled call, as shares of it."""
    parts_s = part_phases(trial.phases_s)
    return {name: seconds / trial.phases_s[FIRST_CALL] for name, seconds in parts_s.items()}


def find_accounted(shares: Mapping[str, float]) -> float:
    """The share that the phases account for."""
    return 1 - shares[OTHER_PHASE]


def flatten(cases: Mapping[str, list[Mapping[str, float]]]) -> Iterable[Mapping[str, float]]:
    """All trials' shares."""
    return (trial_shares for shares in cases.values() for trial_shares in shares)


if __name__ == "__main__":
    sys.exit(main())
