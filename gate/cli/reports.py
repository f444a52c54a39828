"""``compare``, ``report``, ``explain``, ``merge`` and ``trend``: work on what is stored, measure nothing."""

import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from gate.check.procedure import CheckTerms, judge_recorded
from gate.cli.options import BENCHMARK
from gate.cli.output import VERDICT_FILE, RunSaver, print_report, report_verdict
from gate.cli.setup import RUN_FILE, load_configured, name_judge, note_origin, open_rules
from gate.collector import pause_collector
from gate.decide.evidence.baseline import make_baselines
from gate.decide.evidence.gather import list_short
from gate.decide.explain.notes import note_gone, note_shard
from gate.decide.verdict import decide_verdict
from gate.errors import ExitCode, UsageError
from gate.files.codec import RUN, VERDICT, write_atomic
from gate.files.disk import is_present
from gate.project.config import Config, check_places, load_config
from gate.project.merge import list_missing_shards, merge_runs
from gate.project.registry import load_cases
from gate.project.selection import find_cases, select_cases
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.run import Baseline, Run
from gate.records.verdict import Outcome
from gate.report.benchmark import render_benchmark
from gate.report.clean import clean_line, write_text
from gate.report.explain import get_case, keep_case, render_explanation
from gate.report.tables import JSON
from gate.report.trend import Track, make_tracks
from gate.revisions import find_repository
from gate.store.baselines import check_whole, load_baselines
from gate.store.history import HistoryReading, compact_history, read_history
from gate.store.policy import load_policy
from gate.units import format_noun

_UNKNOWN_PLAN = "A missing shard would not be noticed: measure with --shard K/N, or merge with --select."


# What to do about baselines, of which a comparison of two runs has none.
_OF_BASELINES = frozenset({Code.RECORD, Code.RECORD_MORE, Code.RECORD_BETTER})
_DIRECTORY = "trend"  # below ``out``
_FIRST_PAGE = "index"
_SHOWN = 5  # damaged lines that are printed


@pause_collector()
def run_compare(options: Namespace) -> ExitCode:
    if Path(options.candidate).is_dir():
        what = f"CANDIDATE: {options.candidate} is a directory, and no run"
        raise UsageError(what, "Name the baselines first, then the run: compile-gate compare DIR run.json")
    with open_rules(options) as rules:
        return _compare(options, load_configured(options, rules))


def _compare(options: Namespace, config: Config) -> ExitCode:
    baselines, before = _load_before(options.baseline)
    # What was accepted lies in the directory of the baselines.
    stored = Path(options.baseline) if Path(options.baseline).is_dir() else None
    if stored and options.out:
        origins = {**config.origins, "baselines": "BASELINE"}
        check_places(replace(config, baselines=stored, origins=origins))
    policy = load_policy(config, options.accepted, stored, name_judge(options, config))
    candidate = RUN.load(Path(options.candidate))
    if options.baseline == options.candidate:
        print(f"note: {options.candidate} is compared with itself: nothing can differ", file=sys.stderr)
    gone = note_gone((case.id for case in before), candidate.cases)
    candidate = _plan_lost(candidate, before)
    # As `check` would; against another run, what that one measured is what is asked for.
    if stored:
        verdict = judge_recorded(candidate, CheckTerms(baselines=baselines, policy=policy))
    else:
        verdict = decide_verdict(candidate, baselines, policy)
    is_usual = stored is None or stored.resolve() == config.baselines.resolve()
    # The commands to run next measure: their results go elsewhere than this one's.
    repeated = Namespace(config=options.config, baselines="" if is_usual else options.baseline)
    verdict = note_origin(verdict, config, repeated)
    verdict = replace(verdict, notes=(*note_shard(candidate), *verdict.notes))
    if stored is None:
        steps = tuple(step for step in verdict.next_steps if step.code not in _OF_BASELINES)
        verdict = replace(verdict, notes=(*gone, *verdict.notes), next_steps=steps)
    return report_verdict(verdict, config, options, Path(options.out) if options.out else None, policy)


@pause_collector()
def run_report(options: Namespace) -> ExitCode:
    """Exit 0 means that rendering worked."""
    verdict = VERDICT.load(_choose_verdict(options.verdict))
    if options.format == BENCHMARK:
        print(render_benchmark(verdict), end="")
    else:
        print_report(verdict, options)
    return ExitCode.PASS


def run_explain(options: Namespace) -> ExitCode:
    asked, named = options.case or "", options.verdict
    if named is None and (asked.endswith(".json") or is_present(Path(asked, VERDICT_FILE))):
        asked, named = "", asked or None  # the verdict is meant, of which no case is named
    path = _choose_verdict(named)
    verdict = VERDICT.load(path)
    case = get_case(verdict, asked)
    if options.format == JSON:
        print(VERDICT.encode(keep_case(verdict, case)), end="")
    else:
        write_text(sys.stdout, render_explanation(verdict, case, str(path.parent)))
    return ExitCode.PASS


def _choose_verdict(named: str | None) -> Path:
    """A file itself, or the verdict of a run's directory; by default the last run's.

    Raises:
        UsageError: There is no such thing, or the directory has none.
    """
    path = Path(named) if named else load_config(None).out
    if not path.is_dir() and (path.suffix or is_present(path)):
        return path
    verdict = path / VERDICT_FILE
    if not is_present(verdict):
        what = f"there is no verdict in {path}" if path.is_dir() else f"there is no {path}"
        fix = f"Run `compile-gate check` or `ab` first; or name a {VERDICT_FILE}, or the directory of a run."
        if is_present(run := path / RUN_FILE):
            what = f"{what}: its run is still going on, was stopped, or only measured"
            fix = (
                "If it was stopped, run the same command again with --resume, and it goes on from there; or"
                f" judge what there is: compile-gate compare BASELINE {run}"
            )
        raise UsageError(what, fix)
    return verdict


@pause_collector()
def run_merge(options: Namespace) -> ExitCode:
    """A shard that did not come back leaves a gap."""
    planned: tuple[Case, ...] = ()
    with open_rules(options) as rules:
        config = load_configured(options, rules)  # refuses to write among files of others
        if options.select:
            planned = select_cases(rules.cases if rules else load_cases(config), options.select)
    runs = [RUN.load(Path(name)) for name in options.runs]
    merged = merge_runs(runs, options.runs, planned)
    path = Path(options.out) / RUN_FILE
    RunSaver(path=path).save(merged)
    print(
        f"Wrote {path}: {format_noun(len(merged.cases), 'case')}, {format_noun(len(merged.trials), 'trial')}."
    )
    lost = [f"Shard {number} is missing" for number in list_missing_shards(runs)]
    for note in (*lost, *_list_gaps(merged)):
        print(f"note  {note}: judging it is {Outcome.INCOMPLETE}.")
    if not planned and not any(run.shard for run in runs):
        print(f"note  {_UNKNOWN_PLAN}")
    return ExitCode.PASS


def _list_gaps(run: Run) -> list[str]:
    short = format_noun(len(list_short(run)), "case")
    return [
        *([] if run.finished else ["A run was stopped before its end"]),
        *([f"{short} came back with fewer trials than planned"] if list_short(run) else []),
    ]


def _plan_lost(candidate: Run, before: tuple[Case, ...]) -> Run:
    """Without the other run's cases a renamed one would pass. A shard leaves them to other shards."""
    planned = {case.id for case in candidate.cases}
    asked = () if candidate.shard else find_cases(before, candidate.selection)
    return replace(candidate, cases=(*candidate.cases, *(case for case in asked if case.id not in planned)))


def _load_before(name: str) -> tuple[tuple[Baseline, ...], tuple[Case, ...]]:
    path = Path(name)
    if not is_present(path):
        raise UsageError(
            f"{path}: no such file or directory",
            "Name a run.json or a directory of baselines; an empty one will do.",
        )
    if path.is_dir():
        return load_baselines(path), ()
    run = RUN.load(path)
    check_whole(run, name)
    return make_baselines(run, run.provenance), run.cases


def run_trend(options: Namespace) -> ExitCode:
    # Nothing is measured or recorded: `out` is for pages, wherever `out` and `baselines` of gate.yml lie.
    config = load_config(options.config)
    paths = _choose_histories(options, config)
    if options.compact:
        for path in paths:
            reading = compact_history(path)
            _warn(reading)
            print(f"Compacted {path}: {format_noun(reading.lines, 'run')}.")
    reading = HistoryReading()
    with pause_collector():
        tracks = make_tracks(
            line for path in paths for line in read_history(path, reading, options.since or "")
        )
    if not options.compact:
        _warn(reading)
    if not tracks:
        print("There is no run in the history that can be read.")
        return ExitCode.NOTHING_COMPARED
    out = Path(options.out) if options.out else config.out / _DIRECTORY
    pages = _write_pages(tracks, out, options.repository or find_repository(config.directory))
    wrote, runs = format_noun(pages, "page"), format_noun(reading.lines, "run")
    print(f"Wrote {wrote} of {runs} to {out}; open {out / f'{_FIRST_PAGE}.html'}.")
    return ExitCode.PASS


def _choose_histories(options: Namespace, config: Config) -> tuple[Path, ...]:
    if options.history:
        return tuple(map(Path, options.history))
    if config.history is None:
        fix = "Name its files or directories, or set `history` in gate.yml."
        raise UsageError("nothing says where the history is", fix)
    return (config.history,)


def _write_pages(tracks: tuple[Track, ...], out: Path, repository: str) -> int:
    """Those of the first machine begin at index.html."""
    from gate.report.trend_pages import Link, render_badge, render_pages  # noqa: PLC0415 - jinja is slow to import

    names = [_FIRST_PAGE, *(f"machine-{number}" for number in range(2, len(tracks) + 1))]
    links = [
        Link(text=track.machine, address=f"{name}.html") for track, name in zip(tracks, names, strict=True)
    ]
    written = 0
    write_atomic(out / "badge.json", render_badge(tracks[0]))
    for track, name in zip(tracks, names, strict=True):
        others = [link for link in links if link.text != track.machine]
        for page, text in render_pages(track, name, repository, others):
            write_atomic(out / page, text)
            written += 1
    return written


def _warn(reading: HistoryReading) -> None:
    for line in reading.damaged[:_SHOWN]:
        print(f"warning: {clean_line(line)}: left out", file=sys.stderr)
    if more := len(reading.damaged[_SHOWN:]):
        print(f"warning: {more} more lines were left out", file=sys.stderr)
