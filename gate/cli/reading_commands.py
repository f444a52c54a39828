"""The commands that read what was measured and render, judge or join it again; imports nothing heavy."""

from __future__ import annotations

from gate.cli.command import Command, argument
from gate.cli.measuring_commands import VERDICT_CODES
from gate.cli.options import APPROVALS, CONFIG, FAIL, GATE, REPORT_FORMAT, VOLUME, JoinTerms, to_directory
from gate.errors import ExitCode

COMPARE = Command(
    name="compare",
    summary="judge one stored run against another, or against baselines",
    example="compile-gate compare old/run.json new/run.json",
    success="PASS: the run is whole, and nothing that has a baseline regressed",
    codes=VERDICT_CODES,
    run="gate.cli.compare:run_compare",
    arguments=(
        argument(
            "baseline",
            metavar="BASELINE",
            help="a run.json, - for standard input, or a directory of baselines",
        ),
        argument("candidate", metavar="CANDIDATE", help="a run.json, or - for standard input"),
        *CONFIG,
        to_directory(
            "write verdict.json, report.md, report.html and junit.xml there (default: nothing is written)"
        ),
        *(APPROVALS, GATE, FAIL, REPORT_FORMAT, VOLUME),
    ),
)
REPORT = Command(
    name="report",
    summary="render a verdict again",
    example="compile-gate report out/verdict.json --format markdown",
    success="the verdict was rendered, whatever it says",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.compare:run_report",
    arguments=(
        argument(
            "verdict", metavar="VERDICT", help="a verdict.json, a run's directory, or - for standard input"
        ),
        *(REPORT_FORMAT, VOLUME),
    ),
)
TREND = Command(
    name="trend",
    summary="render a history of runs as pages: values over time, where they changed, since when",
    example="compile-gate trend perf/history --out site",
    success="the pages were written; damaged lines of the history are told",
    codes=(ExitCode.NOTHING_COMPARED, ExitCode.MACHINE),
    run="gate.cli.trend:run_trend",
    arguments=(
        argument(
            "history",
            nargs="*",
            metavar="HISTORY",
            help="files or directories (default: `history` of gate.yml)",
        ),
        *(*CONFIG, to_directory("write the pages there (default: trend in the out directory)")),
        argument("--repository", metavar="OWNER/NAME", help="on GitHub, for links to commits"),
        argument("--compact", action="store_true", help="first write each history into one file"),
    ),
)
EXPLAIN = Command(
    name="explain",
    summary="tell the whole story of one case: numbers, causes, changed code, how to see it again",
    example="compile-gate explain bert out/verdict.json",
    success="the story was told, whatever the verdict says",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.compare:run_explain",
    arguments=(
        argument("case", metavar="CASE", help="a case id, or the beginning of one"),
        argument(
            "verdict",
            nargs="?",
            default="out",
            metavar="VERDICT",
            help="a verdict.json, the directory of a run, or - for standard input (default: out)",
        ),
    ),
)
MERGE = Command(
    name="merge",
    summary="join the runs of shards",
    example="compile-gate merge shard-*/run.json --select tag:pr --out out",
    success="the runs fit together and were joined, whatever failed in them",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.compare:run_merge",
    arguments=(
        argument("runs", nargs="+", metavar="RUN", help="the run.json of each shard"),
        *(*CONFIG, to_directory("write the joined run there, as run.json", required=True)),
        argument(
            "--select",
            action=JoinTerms,
            metavar="CASES",
            help="the selection that was divided: a case of it in no shard is MISSING",
        ),
    ),
)
