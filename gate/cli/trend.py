"""``trend``: a history of runs as pages that any web server, or GitHub Pages, can show."""

import sys
from argparse import Namespace
from pathlib import Path

from gate.errors import ExitCode, UsageError
from gate.files.codec import pause_collector, write_atomic
from gate.project.config import Config, load_config
from gate.report.clean import clean_line
from gate.report.page.trend import Link, render_pages
from gate.report.trend import Track, make_tracks
from gate.revisions import find_repository
from gate.store.history import HistoryReading, compact_history, read_history
from gate.units import count_noun

_DIRECTORY = "trend"  # below ``out``
_FIRST_PAGE = "index"
_SHOWN = 5  # damaged lines that are printed


def run_trend(options: Namespace) -> ExitCode:
    """Read the histories, write the pages, and say what could not be read."""
    # Nothing is measured or recorded: `out` is for pages, wherever `out` and `baselines` of gate.yml lie.
    config = load_config(Path(options.config) if options.config else None)
    paths = _find_histories(options, config)
    if options.compact:
        for path in paths:
            reading = compact_history(path)
            _warn(reading)
            print(f"Compacted {path}: {count_noun(reading.lines, 'run')}.")
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
    wrote, runs = count_noun(pages, "page"), count_noun(reading.lines, "run")
    print(f"Wrote {wrote} of {runs} to {out}; open {out / f'{_FIRST_PAGE}.html'}.")
    return ExitCode.PASS


def _find_histories(options: Namespace, config: Config) -> tuple[Path, ...]:
    if options.history:
        return tuple(map(Path, options.history))
    if config.history is None:
        fix = "Name its files or directories, or set `history` in gate.yml."
        raise UsageError("nothing says where the history is", fix)
    return (config.history,)


def _write_pages(tracks: tuple[Track, ...], out: Path, repository: str) -> int:
    """Write the pages of each machine; those of the first begin at index.html."""
    names = [_FIRST_PAGE, *(f"machine-{number}" for number in range(2, len(tracks) + 1))]
    links = [
        Link(text=track.machine, address=f"{name}.html") for track, name in zip(tracks, names, strict=True)
    ]
    written = 0
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
