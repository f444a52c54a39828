"""A row of the table of commands, and options that several have; imports nothing heavy."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gate.devices import BOARDS, DEVICE_FORMS, name_targets, read_architecture
from gate.errors import ExitCode
from gate.files.invalid import quote_value
from gate.installation import name_page
from gate.records.bounds import SHA
from gate.report import FORMATS

if TYPE_CHECKING:
    from argparse import _ActionsContainer  # argparse has no public name for what takes arguments

T = TypeVar("T")
Argument = Callable[["_ActionsContainer"], object]  # adds itself to a parser
LIST_FORMATS = ("text", "json")
FAIL_ON = ("new", "inconclusive", "regression", "never")
_FILES = frozenset({".json", *(Path(row.file).suffix for row in FORMATS.values() if row.file)})
BENCHMARK = "pytorch-benchmark"  # of `report` alone: it has nothing of what failed


def argument(*names: str, **settings: object) -> Argument:
    return methodcaller("add_argument", *names, **settings)


def either(*choices: Argument) -> Argument:
    """Arguments of which at most one can be given."""

    def add(parser: _ActionsContainer) -> None:
        group = parser.add_mutually_exclusive_group()
        for choice in choices:
            choice(group)

    return add


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """``codes`` come in addition to :data:`gate.cli.parser.COMMON_CODES`; ``actions`` are of a parent."""

    name: str  # with the parent's before it: "baseline show"
    summary: str
    example: str
    success: str = ""
    codes: tuple[ExitCode, ...] = ()
    run: str = ""  # "module:function", imported when the command is chosen
    arguments: tuple[Argument, ...] = ()
    actions: tuple[Command, ...] = ()


class JoinTerms(argparse.Action):
    """``--select a --select b`` is ``--select a,b``."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        del parser, option_string
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, f"{before},{values}" if before else values)


def parse_directory(text: str) -> str:
    """A file's name is what an older option wanted."""
    if Path(text).suffix in _FILES:
        raise argparse.ArgumentTypeError(f"names a directory, and {text!r} looks like a file")
    return text


def parse_minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes < math.inf:
        raise argparse.ArgumentTypeError(f"must be minutes above 0, not {text!r}")
    return minutes


def parse_date(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a date as 2026-01-31, not {text!r}") from None


def parse_target(text: str) -> str:
    if read_architecture(text) not in BOARDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no target: choose one of {name_targets()}")
    return text


def written_as(regex: str, what: str, read: Callable[[str], T]) -> Callable[[str], T]:
    """``what`` describes the values in an error."""

    def parse(text: str) -> T:
        if not re.fullmatch(regex, text):
            raise argparse.ArgumentTypeError(f"expected {what}, got {quote_value(text)}")
        return read(text)

    return parse


def _read_shard(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    return int(number), int(of)


def _read_lanes(text: str) -> tuple[int, str]:
    """Lanes of this host, or 0 and the address of a cluster; "auto": the cluster of this host."""
    name, _, address = text.partition(":")
    return (0, address or "auto") if name == "ray" else (int(text), "")


def _read_cores(text: str) -> tuple[int, ...]:
    from gate.lab.host.cores import parse_cores  # noqa: PLC0415 - heavy

    return tuple(sorted(parse_cores(text)))


def to_directory(text: str, *, required: bool = False) -> Argument:
    return argument("--out", type=parse_directory, metavar="DIR", help=text, required=required)


def lasting(default: float, text: str) -> Argument:
    help_text = f"{text} (default: {default:g})"
    return argument("--minutes", type=parse_minutes, default=default, metavar="M", help=help_text)


def listed_as(*more: str) -> Argument:
    return argument("--format", choices=(*LIST_FORMATS, *more), default="text", help="how to print it")


parse_count = written_as("[0-9]{1,6}", "a number from 0 to 999999", int)
parse_shard = written_as("[0-9]{1,3}/[0-9]{1,3}", "which shard of how many, as 2/4", _read_shard)
parse_lanes = written_as("[1-9][0-9]{0,2}|ray(:.*)?", "a number of lanes, ray, or ray:ADDRESS", _read_lanes)
_CONFIG = argument(
    "--config",
    metavar="FILE",
    help="configuration file (default: gate.yml, here or in a directory above)",
)
_REFERENCE = argument(
    "--reference-models",
    action="store_true",
    help="measure compile-gate's own reference models, and read no gate.yml",
)
CONFIG = (_CONFIG,)
PROJECT = (either(_CONFIG, _REFERENCE),)  # of a command that needs models to work on
RULES = (
    argument(
        "--rules",
        type=written_as(f"base|{SHA}", "base, or a whole commit id", str),
        metavar="base",
        help="judge by gate.yml, registries and baselines of the base commit, as the action does for a pull"
        " request; or by those of a commit",
    ),
    # Of a caller that has checked that commit out, as the action has.
    argument("--base-tree", default="", help=argparse.SUPPRESS),
)
QUIET = argument("-q", "--quiet", action="store_true", help="no progress")
ANYWAY = argument(
    "--anyway", action="store_true", help="use disturbed trials too, if too few of a case are undisturbed"
)
VOLUME = either(
    argument("-q", "--quiet", action="store_true", help="no progress; print only the verdict"),
    argument("-v", "--verbose", action="store_true", help="print unchanged comparisons too"),
)
SELECTION = argument(
    "--select",
    action=JoinTerms,
    metavar="CASES",
    help="case ids, globs and tag:NAME, joined by commas; a leading ! removes; may be repeated",
)
DEVICE = argument("--device", metavar="D", help=DEVICE_FORMS)
TARGET = argument(
    "--target",
    type=parse_target,
    metavar="T",
    help="compile for a GPU that this machine lacks: cuda:sm_80, cuda:sm_90, ...; compares generated code,"
    f" runs nothing (see {name_page('targets')})",
)
LOCK = argument(
    "--lock-timeout",
    type=float,
    metavar="SECONDS",
    dest="lock_timeout_s",
    help="how long to wait for another run that holds the device",
)
LANES = argument(
    "--lanes",
    type=parse_lanes,
    metavar="N",
    help="N GPUs of this host, or N shares of its cores, at a time; ray or ray:ADDRESS: all of a Ray cluster"
    f" (see {name_page('fleet')})",
)
CORES = argument(
    "--cores",
    default=(),
    type=written_as("[0-9]{1,5}([,-][0-9]{1,5})*", "a list of cores, as 0-3,8", _read_cores),
    metavar="LIST",
    help="run workers on these processor cores only: 0-3, or 0,2",
)
FAIL_FAST = argument(
    "-x", "--fail-fast", action="store_true", help="stop measuring at the first regression, as pytest -x"
)
_RESULTS = to_directory("results go there (default: out)")
LAB = (SELECTION, DEVICE, _RESULTS, LOCK)
LAB_OR_TARGET = (SELECTION, either(DEVICE, TARGET), CORES, _RESULTS, LOCK)
TRIALS = argument("--trials", type=int, metavar="N", help="trials of each case, each in fresh processes")
COUNTS_ONLY = argument(
    "--counts-only",
    action="store_true",
    default=None,
    help="compare counters, memory and drift alone, on a machine that is too busy for times",
)
TRACE = argument(
    "--trace",
    action="store_true",
    help="also record a tlparse trace (one extra compile a trial, not timed)",
)
RESUME = argument("--resume", action="store_true", help="continue the run that is in the out directory")
JUDGING = (FAIL_FAST, COUNTS_ONLY, TRACE, RESUME)  # how the commands go about it that judge
BASELINES = argument("--baselines", metavar="DIR", help="directory of baselines (default: baselines)")
HISTORY = argument(
    "--history",
    metavar="PATH",
    help="append a line about this run for `trend`: to a file that ends in .jsonl, or to a directory",
)
OPEN = argument("--open", action="store_true", help="open the page of the report in a browser")
REPORT_FORMAT = argument("--format", choices=tuple(FORMATS), default="text", help="how to print the verdict")
FAIL = argument(
    "--fail-on",
    choices=FAIL_ON,
    help="lowest outcome with a non-zero exit (default: as in gate.yml, or inconclusive); `new` also fails a"
    " PASS with a missing baseline (exit 3), `regression` lets INCONCLUSIVE pass and says so",
)
ACCEPTED = argument(
    "--accepted",
    action="append",
    default=[],
    metavar="FILE",
    help="file of what was accepted of this commit, as /accept-regression writes it; may be repeated",
)
# For callers that take the configuration from another commit: whose acceptances count.
GATE = argument("--gate", default="", help=argparse.SUPPRESS)
