"""Judges drawn requests by the code that ships, in many worlds of noise: red, open, caught and missed.

    python benchmarks/decide_worlds.py --worlds cpu wandering --requests 60 --out now.jsonl
    python benchmarks/decide_worlds.py --worlds cpu --set LOOKS=(3,6,12) --out fewer.jsonl
    python benchmarks/decide_worlds.py --compare now.jsonl fewer.jsonl

A table a world with a row for what was changed (``--list`` names all of them), and one with a row a world.
*Red* are requests with a case that is REGRESSED though nothing made it worse, with the exact interval of
95 %; *open* those in which nothing is worse, and something INCONCLUSIVE. *Caught*, *left open* and *missed*
are of the case that is worse. Means: seconds of all pairs of a request, and trials of head alone.

The same seed draws the same requests whatever the rule is, so two files, of two commits or of two values of
a constant, are compared request by request. ``--out`` is appended to; what it holds is not judged again.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from worlds import FAULTS, NEW_CODE, NOTHING, WORLDS

if TYPE_CHECKING:  # what judges binds constants as it is imported: after --set
    from world_requests import Result

Key = tuple[str, str, int]  # world, fault and number of a request
COLUMNS = ("requests", "red", "open", "caught", "left open", "missed", "seconds of pairs", "trials")
DEFAULT_FAULTS = (NOTHING, NEW_CODE, "latency-5", "latency-10")


def main() -> int:
    """Judge and print, or compare."""
    options = parse_options()
    if options.list:
        print("worlds:", *WORLDS, "\nchanges:", *FAULTS)
        return 0
    set_constants(options.set)
    if options.compare:
        before, after = (read_results(path) for path in options.compare)
        shared = [key for key in before if key in after]
        print_tables([{key: results[key] for key in shared} for results in (before, after)])
        return 0
    started = time.perf_counter()
    terms = " ".join((f"seed {options.seed}", *options.set))
    recorded = read_results(options.out, terms) if options.out and options.out.exists() else {}
    keys = [
        (world, fault, number)
        for number in range(options.requests)
        for world in options.worlds
        for fault in options.faults
    ]
    with (options.out or Path(os.devnull)).open("a", encoding="utf-8") as file:
        for result in judge([key for key in keys if key not in recorded], options.seed):
            recorded[result.world, result.fault, result.number] = result
            file.write(json.dumps({"terms": terms, **asdict(result)}) + "\n")
            file.flush()
    print_tables([{key: recorded[key] for key in keys}])
    print(f"{time.perf_counter() - started:.0f} s")
    return 0


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS), metavar="WORLD")
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=DEFAULT_FAULTS, metavar="CHANGE")
    parser.add_argument("--requests", type=int, default=20, help="of each world and change")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a line of JSON for each request; goes on where it ended")
    parser.add_argument("--set", nargs="+", default=[], metavar="CONSTANT=VALUE", help="of gate.decide")
    parser.add_argument("--compare", nargs=2, type=Path, metavar="JSONL", help="two files of --out")
    parser.add_argument("--list", action="store_true", help="name worlds and changes, and stop")
    return parser.parse_args()


def set_constants(changed: Iterable[str]) -> None:
    """Give constants of ``gate.decide.constants`` other values, before anything takes them from there."""
    name = "gate.decide.constants"
    if "gate.decide" in sys.modules:
        raise RuntimeError("gate.decide has bound its constants already")
    package = importlib.util.find_spec("gate")
    if package is None or package.origin is None:
        raise RuntimeError("no gate")
    path = Path(package.origin).parent / "decide" / "constants.py"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"no {name}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for result in changed:
        constant, _, value = result.partition("=")
        if constant not in vars(module):
            sys.exit(f"{constant} is no constant of {name}")
        setattr(module, constant, ast.literal_eval(value))
    sys.modules[name] = module


def judge(keys: Sequence[Key], seed: int) -> Iterator[Result]:
    """Draw and judge these requests."""
    from clocked import make_drawer  # noqa: PLC0415 - as below
    from world_requests import judge_request  # noqa: PLC0415 - binds the constants

    for world, fault, number in keys:
        drawer = make_drawer(f"{seed} {world} {fault} {number}", WORLDS[world], FAULTS[fault])
        yield judge_request(drawer, (world, fault, number))


def read_results(path: Path, terms: str | None = None) -> dict[Key, Result]:
    """Read what was judged before, by these terms or whichever."""
    from world_requests import Result  # noqa: PLC0415 - binds the constants

    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    others = {line.pop("terms") for line in lines} - {terms}
    if terms is not None and others:
        sys.exit(f"{path} was judged by other terms: {', '.join(others)}")
    results = (Result(**line) for line in lines)
    return {(result.world, result.fault, result.number): result for result in results}


def print_tables(sides: Sequence[dict[Key, Result]]) -> None:
    """Print a table a world, and one of all worlds; of two sides each cell says both."""
    worlds = dict.fromkeys(world for world, _, _ in sides[0])
    for world in worlds:
        faults = dict.fromkeys(fault for name, fault, _ in sides[0] if name == world)
        print(f"\n{world}\n\n{make_head('change')}")
        for fault in faults:
            print(
                describe(fault, [[side[key] for key in side if key[:2] == (world, fault)] for side in sides])
            )
    if len(worlds) > 1:
        print(f"\n{make_head('world')}")
        for world in worlds:
            print(describe(world, [[side[key] for key in side if key[0] == world] for side in sides]))


def make_head(first: str) -> str:
    """The head of a table."""
    return f"| {first} | {' | '.join(COLUMNS)} |\n|{' --- |' * (len(COLUMNS) + 1)}"


def describe(name: str, sides: Sequence[Sequence[Result]]) -> str:
    """One row: what came of the same requests on each side."""
    cells = (" / ".join(dict.fromkeys(cell)) for cell in zip(*map(count, sides), strict=True))
    return f"| {name} | {' | '.join(cells)} |"


def count(results: Sequence[Result]) -> tuple[str, ...]:
    """The cells of a row, of one side."""
    from gate.decide.stats import compute_rate  # noqa: PLC0415 - binds the constants

    red, requests = sum(result.red for result in results), len(results)
    unchanged = [result for result in results if not result.fate]
    fates = [result.fate for result in results if result.fate]
    return (
        str(requests),
        f"{red} (to {100 * compute_rate(red, requests).high:.1f} %)",
        f"{sum(result.open for result in unchanged)} of {len(unchanged)}" if unchanged else "-",
        *(str(fates.count(fate)) if fates else "-" for fate in ("caught", "open", "missed")),
        f"{fmean(result.seconds for result in results):.0f}",
        f"{fmean(result.trials for result in results):.1f}",
    )


if __name__ == "__main__":
    sys.exit(main())
