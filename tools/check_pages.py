"""Open HTML pages in a real browser: no request, no error, fast, accessible, and hostile texts stay inert.

    pip install -e '.[pages]' && python tools/check_pages.py [--out DIR] [--picture FILE] [PAGE...]

Without a PAGE, pages are made of the recorded runs in tests/recorded: one of measured pairs, one of 200
cases with 10 trials a side, and one in which every text is hostile; and of a history. Chromium is the
system's (Debian: ``apt-get install chromium``; another with ``CHROMIUM=/path``), axe-core comes from npm at
the version of tools/page_check/package-lock.json. Screenshots for a person to look at go into DIR
(out/pages): each whole page at desktop's and phone's width, and dark. ``--picture`` and ``--trend-picture``
take the README's.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Dialog, Page, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the recorded runs are in tests

from gate.metrics import SPECS, Unit  # noqa: E402 - after the path
from gate.records.cases import Metric  # noqa: E402
from gate.report.pages import render_verdict_page  # noqa: E402
from gate.report.trend import make_tracks  # noqa: E402
from gate.report.trend_pages import render_pages  # noqa: E402
from gate.store.history import Figures, HistoryReading, read_history  # noqa: E402
from tests.recorded import runs  # noqa: E402
from tests.unit.report.page.hostile import HOSTILE  # noqa: E402
from tests.unit.report.page.test_verdict_page import judge_pairs, keep_stencil, multiply, spoil  # noqa: E402
from tests.unit.report.test_trend import make_line, make_year  # noqa: E402

LONGEST_S = (
    2.0  # of the page's main thread until it is laid out: what else the machine does is no fault of it
)
LARGE_BYTES = 1_000_000  # axe-core takes minutes for what is larger, and sees the same elements again
MOST_ROWS = 25  # of a table, until somebody asks for all
MOST_BYTES = 200_000  # of the README's picture
VIEWS: Mapping[str, tuple[int, str]] = {
    "desktop": (1280, "light"),
    "phone": (390, "light"),
    "dark": (1280, "dark"),
}
_UNFOLDS_MS = 2000
_GRAVE = frozenset({"serious", "critical"})
_UPGRADE = 40  # nights until a newer torch
_HISTORY = ROOT / "docs" / "images" / "trend.jsonl"
_SOURCE = ROOT / "tools" / "page_check"


def main() -> int:
    """Check the pages; return the process exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "pages")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--trend-picture", type=Path)
    parser.add_argument("--without-times", action="store_true", help="of the runs of a machine that was busy")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        print("check_pages: there is no chromium; install it, or name one with CHROMIUM=/path")
        return 1
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if options.picture:
            take_picture(browser, write_pairs(options.out), options.picture)
        if options.trend_picture:
            path = write_history(options.out, without_times=options.without_times)
            take_picture(browser, path, options.trend_picture)
        if options.picture or options.trend_picture:
            return 0
        axe = load_axe(options.out)
        faults = [
            fault
            for path in options.pages or write_pages(options.out)
            for fault in check_page(browser, path.resolve(), options.out, axe)
        ]
        browser.close()
    print("\n".join(faults) or f"check_pages: all is well; screenshots are in {options.out}")
    return 1 if faults else 0


def write_pages(out: Path) -> list[Path]:
    """Write the pages to check."""
    verdicts = {
        "pairs": judge_pairs(),
        "many": multiply(keep_stencil(), 200, 10),
        "hostile": spoil(judge_pairs(), " ".join(HOSTILE)),
    }
    pages = {f"{name}.html": render_verdict_page(verdict) for name, verdict in verdicts.items()}
    pages |= write_trend()
    for name, text in pages.items():
        (out / name).write_text(text, encoding="utf-8", errors="replace")
    return [out / name for name in pages]


def write_trend() -> Mapping[str, str]:
    """Write the pages of a history with a step, noise and an upgrade: generated, as in a test."""
    lines = [
        make_line(
            night,
            {"bert/inference-float32-smoke-default": make_figures(value, night)},
            torch="2.12.0" if night < _UPGRADE else "2.13.0",
        )
        for night, value in enumerate(make_year(0.1, 2 * _UPGRADE, nights=3 * _UPGRADE))
    ]
    (track,) = make_tracks(lines)
    return {f"trend-{name}": text for name, text in render_pages(track, "index", "acme/models", ())}


def make_figures(value: float, night: int) -> dict[Metric, Figures]:
    """Figures of each kind: with an interval, a size, a count that moves, and one that never does."""
    return {
        Metric.COMPILED_LATENCY: (value, 0.98 * value, 1.02 * value),
        Metric.PEAK_MEMORY: (4e7 * (1 + 0.002 * (night % 5)),),
        Metric.GRAPH_BREAKS: (float(night > _UPGRADE),),
        Metric.RECOMPILES: (0.0,),
    }


def check_page(browser: Browser, path: Path, out: Path, axe: str) -> Iterator[str]:
    """Yield what is wrong with a page, in each view."""
    for view, (width, scheme) in VIEWS.items():
        page = browser.new_page(
            viewport={"width": width, "height": 1000}, color_scheme="dark" if scheme == "dark" else "light"
        )
        faults = watch(page)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        begun = time.monotonic()
        page.goto(path.as_uri())
        page.evaluate("document.documentElement.getBoundingClientRect().height")
        wall_s, took_s = time.monotonic() - begun, read_thread_s(session)
        if took_s > LONGEST_S:
            faults.append(f"took {took_s:.1f} s to open, and {LONGEST_S} s are too long")
        use(page, faults)
        if path.stat().st_size < LARGE_BYTES:
            faults += ask_axe(page, axe)
        page.screenshot(path=out / f"{path.stem}-{view}.png", full_page=path.stat().st_size < LARGE_BYTES)
        page.close()
        spent = f"{path.stat().st_size / 1e6:.2f} MB, {took_s:.2f} s in {wall_s:.2f} s"
        print(f"{path.name} {view}: {spent}, {len(faults)} faults")
        yield from (f"{path.name} {view}: {fault}" for fault in faults)


def read_thread_s(session: CDPSession) -> float:
    """Read the processor seconds that the page's main thread has taken."""
    metrics: Any = session.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime"))


def watch(page: Page) -> list[str]:
    """Collect requests, errors and dialogs from now on."""
    faults: list[str] = []
    page.on("request", lambda request: _note(faults, request.url))
    page.on("console", lambda message: faults.append(f"the console says: {message.text}"))
    page.on("pageerror", lambda error: faults.append(f"the script failed: {error}"))
    page.on("dialog", lambda dialog: _refuse(faults, dialog))
    return faults


def _refuse(faults: list[str], dialog: Dialog) -> None:
    faults.append(f"a dialog says: {dialog.message}")
    dialog.dismiss()


def _note(faults: list[str], url: str) -> None:
    if not url.startswith(("file:", "data:")):
        faults.append(f"asked for {url}")


def use(page: Page, faults: list[str]) -> None:
    """Filter, sort, follow a link and print, as a person with a keyboard does."""
    rows = page.locator("tr[data-case]")
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        faults.append("is wider than the window")
    if not page.locator("#filter").count():
        return
    page.keyboard.press("/")
    page.keyboard.type("no case is called so")
    if page.locator("tr[data-case]:not([hidden])").count():
        faults.append("the filter leaves cases that it should not")
    page.locator("#filter").fill("")
    more = page.locator("[data-more]:not([hidden])")
    if rows.count() > MOST_ROWS and not more.count():
        faults.append("shows all of many cases")
    if more.count() and page.locator("tr[data-case]:not([hidden])").count() != MOST_ROWS:
        faults.append(f"shows other than {MOST_ROWS} cases before somebody asks")
    if not page.locator("table[data-sortable]").count():
        return
    page.locator("table[data-sortable] thead button").first.press("Enter")
    page.locator('tr[data-case]:not([hidden]) a[href^="#"]').last.press("Enter")
    try:  # the event that unfolds it comes after the key
        page.locator("details:target[open]").wait_for(timeout=_UNFOLDS_MS)
    except PlaywrightTimeoutError:
        faults.append("a link to a case does not unfold it")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    if page.locator("details.case:not([open])").count():
        faults.append("not all cases are unfolded to be printed")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    page.evaluate("scrollTo(0, 0)")


def ask_axe(page: Page, axe: str) -> list[str]:
    """Ask axe-core what is grave, with the first cases unfolded."""
    page.evaluate(axe)
    result: Any = page.evaluate("axe.run(document, {resultTypes: ['violations'], elementRef: false})")
    return [
        f"axe: {fault['id']} ({fault['impact']}): {fault['help']}; {fault['nodes'][0]['html'][:160]}"
        for fault in result["violations"]
        if fault["impact"] in _GRAVE
    ]


def load_axe(out: Path) -> str:
    """Load axe-core, installed below the directory at the locked version."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_SOURCE / name, out / name)
    subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=out, check=True
    )
    return (out / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def write_pairs(out: Path) -> Path:
    """Write the page of the README's picture of a verdict: measured pairs of three small models."""
    run = runs.keep(runs.load("pairs"), runs.STENCIL, runs.HEAD, runs.SUM)
    verdict = runs.judge(runs.Situation(run=run, judged_by="pairs"))
    path = out / "picture.html"
    path.write_text(render_verdict_page(verdict), encoding="utf-8")
    return path


def write_history(out: Path, *, without_times: bool) -> Path:
    """Write the page of the README's picture of `trend`: what tools/measure_trend_example.py measured."""
    lines = list(read_history(_HISTORY, HistoryReading()))
    if without_times:
        lines = [replace(line, cases=dict(map(drop_times, line.cases.items()))) for line in lines]
    (track,) = make_tracks(lines)
    pages = dict(render_pages(track, "picture", "", ()))
    name = next(name for name in pages if name != "picture.html")
    (out / name).write_text(pages[name], encoding="utf-8")
    return out / name


def drop_times(case: tuple[str, Mapping[Metric, Figures]]) -> tuple[str, Mapping[Metric, Figures]]:
    """Leave what the load of a machine does not move: counts."""
    return case[0], {metric: values for metric, values in case[1].items() if SPECS[metric].unit is Unit.COUNT}


def take_picture(browser: Browser, path: Path, picture: Path) -> None:
    """Take a picture for the README: the head of a page, and its first charts."""
    page = browser.new_page(viewport={"width": 1200, "height": 1060}, device_scale_factor=1)
    page.goto(path.resolve().as_uri())
    page.screenshot(path=picture)
    if picture.stat().st_size > MOST_BYTES:
        size = f"{picture.stat().st_size:,} bytes"
        raise SystemExit(f"{picture} has {size}; at most {MOST_BYTES:,} are committed")
    print(f"check_pages: wrote {picture}, {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    raise SystemExit(main())
