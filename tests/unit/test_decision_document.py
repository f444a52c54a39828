"""docs/decision.md, docs/measuring.md and docs/dev/glossary.md agree with the code."""

import ast
import math
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from statistics import median

import pytest

from gate.check.work import REPEAT_SHARE
from gate.cli.recording import MOST_REFRESHED
from gate.decide import constants
from gate.decide.conclude.coverage import Coverage
from gate.decide.conclude.exit_codes import FailOn, compute_exit_code
from gate.decide.evidence.pairs import Paired
from gate.decide.judge.counted import count_needed_pairs
from gate.decide.judge.interval import Bar, Level, Reading, read_pairs, read_stored
from gate.decide.judge.machine import SESSION
from gate.decide.judge.pairs import assume_noise, decide_pairs
from gate.decide.stats import NOTHING_KNOWN, Variance, compute_priors, summarize_logs
from gate.errors import ExitCode
from gate.lab.host import fitness
from gate.metrics import LEADING, NOISY_DECIDING, SPECS
from gate.records.cases import Metric, Policy, Threshold
from gate.records.verdict import Outcome, Reason, Status
from tests import decision_page
from tests.decision_page import find_numbers, read_table

DOCS = Path(__file__).parents[2] / "docs"
GATE = Path(constants.__file__).parents[1]
MEASURING = (DOCS / "measuring.md").read_text(encoding="utf-8")
GLOSSARY = (DOCS / "dev" / "glossary.md").read_text(encoding="utf-8")


def read_reasons(path: Path) -> dict[str, str]:
    """The comment above each constant of a module, in one line."""
    reasons, comment = {}, list[str]()
    for line in path.read_text(encoding="utf-8").splitlines():
        if name := re.match(r"([A-Z_0-9]+) = ", line):
            reasons[name[1]] = " ".join(comment)
        comment = [*comment, line[2:]] if line.startswith("# ") else []
    return reasons


def test_constants_are_those_of_the_code() -> None:
    """The table has every constant with value and reason, in order."""
    rows = read_table("constant")
    coded = {name: value for name, value in vars(constants).items() if name.isupper()}
    assert [name for name, _, _ in rows] == [*coded]
    for name, value, _ in rows:
        numbers = coded[name] if isinstance(coded[name], tuple) else (coded[name],)
        assert [float(part) for part in value.split(",")] == [*numbers], name
    assert {name: reason for name, _, reason in rows} == read_reasons(Path(constants.__file__))


# Numbers of these rooms that decide nothing: how much is shown, offered or kept, weights of causes, and what
# arithmetic needs.
_UNDECIDING = {
    "decide/conclude/accept.py": "_STEPS _PERCENT _MAX_NAMED",
    "decide/conclude/case_evidence.py": "MAX_SHOWN_KERNELS MAX_SOURCE_CHARS MAX_ALL_CHARS _MAX_PARTS",
    "decide/evidence/baseline.py": "_DIGITS",
    "decide/evidence/values.py": "PAIRS_IN_SUPER_BLOCK",
    "decide/explain/advice.py": "ACCEPTANCE_DAYS _MAX_ACCEPTED _ALLOWANCE_MARGIN",
    "decide/explain/causes.py": "_NOTABLE _NOT_IMPORTED _MAX_DIFFERENCES",
    "decide/explain/compiled.py": (
        "_DOUBLED _NOTABLE_SHARE _NO_HARM _NOTHING_LOST _OF_RECOMPILES _NOTABLE_PHASE"
    ),
    "decide/explain/defaults.py": "UNDONE_SHARE LEAST_DEVIATIONS _MOST_LISTED",
    "decide/evidence/functions.py": "_MOST_KEPT _LEAST_GROWTH _MOST_SHOWN",
    "decide/explain/compiler_functions.py": "_FOLLOWED _CALLERS",
    "decide/explain/inquiry.py": "RESULT_ALONE _BESIDE_THE_POINT LEAST_WEIGHT MAX_NAMED _MAX_TEXT",
    "decide/explain/notes.py": "OLD_BASELINE_DAYS _MAX_NAMED _MAX_WARNINGS _SLOW_LANE",
    "decide/judge/interval.py": "LARGEST_FACTOR _KNOWN_DF",
    "decide/judge/machine.py": "NOTABLE_SHIFT",
    "decide/judge/pairs.py": "_CONVICTING_LOOKS MAX_FURTHER_PAIRS",
    "decide/stats.py": "_TINY _CONVERGED _MAX_TERMS _HALVINGS _NEARLY",
    "check/defaults.py": "DEFAULTS_SHARE",
    "check/handout.py": "MOST_ANEW",
    "check/schedule.py": "EXTENT_SHARES FURTHER",
    "check/work.py": "MAX_SOURCES_CHARS REPEAT_SHARE",
}


def test_no_other_module_holds_a_number_that_decides() -> None:
    """Other modules of the decision have only these constants, and no number in a function."""
    by_module, written = {}, []
    for path in sorted(GATE.glob("decide/**/*.py")) + sorted(GATE.glob("check/**/*.py")):
        name = path.relative_to(GATE).as_posix()
        module = import_module("gate." + name.removesuffix(".py").replace("/", "."))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assigned = [
            variable for variable in _list_assigned(tree) if is_number(getattr(module, variable, None))
        ]
        if assigned and module is not constants:
            by_module[name] = {*assigned}
        written += [
            f"{name}:{node.lineno}: {node.value}"
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef)
            for part in function.body
            for node in ast.walk(part)
            if isinstance(node, ast.Constant) and type(node.value) is float and node.value not in _PLAIN
        ]
    assert by_module == {name: {*names.split()} for name, names in _UNDECIDING.items()}
    assert written == []


_PLAIN = (0.0, 0.5, 1.0, 2.0, 3.0)  # of formulas: a half of something, the squares that a median leaves out


def _list_assigned(tree: ast.Module) -> Iterator[str]:
    """Names in capitals that the module assigns."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else getattr(node, "target", None)
        names = (
            target for target in (targets if isinstance(targets, list) else [targets]) if target is not None
        )
        yield from (
            part.id
            for target in names
            for part in ast.walk(target)
            if isinstance(part, ast.Name) and part.id.strip("_").isupper()
        )


def is_number(value: object) -> bool:
    """Whether it is a number or contains only numbers."""
    if isinstance(value, Mapping):
        return is_number(tuple(value.values()))
    if isinstance(value, tuple):
        return bool(value) and all(map(is_number, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_limits_of_the_host_are_those_of_the_code() -> None:
    """The table has every limit of the host with value and reason."""
    stated = {name: float(value) for name, value, reason in read_table("limit", MEASURING) if reason}
    coded = {
        name: float(value)
        for name, value in vars(fitness).items()
        if name.isupper() and name[0] != "_" and isinstance(value, int | float)
    }
    assert stated == {**coded, "REPEAT_SHARE": REPEAT_SHARE, "MOST_REFRESHED": MOST_REFRESHED}


def test_constants_in_the_prose_exist() -> None:
    """A name in capitals with an underscore is a constant, a status or an outcome."""
    prose = set(re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", decision_page.TEXT + MEASURING))
    names = {name for name in (*vars(constants), *vars(fitness)) if name.isupper()}
    elsewhere = {"REPEAT_SHARE", "MOST_REFRESHED"}
    assert prose - names == {*elsewhere, "NOT_COMPARABLE", "NOTHING_COMPARED"}


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_is_explained(reason: Reason) -> None:
    """The page has each reason code."""
    assert f"`{reason.value}`" in decision_page.TEXT


def test_exit_codes_are_those_of_the_code() -> None:
    """Each outcome's codes, by default and with --fail-on."""
    stated = {row[0]: row[2:] for row in read_table("outcome")}
    ways = (FailOn.INCONCLUSIVE, FailOn.NEW, FailOn.REGRESSION, FailOn.NEVER)
    coverages = (Coverage(comparisons=2, judged=2), Coverage(comparisons=2, judged=1))
    coded = {}
    for outcome in Outcome:
        codes = [[int(compute_exit_code(outcome, way, coverage)) for coverage in coverages] for way in ways]
        coded[str(outcome)] = [", or ".join(map(str, dict.fromkeys(pair))) for pair in codes]
    assert stated == coded


def read_numbers(text: str) -> tuple[float, ...]:
    """All numbers of a text, with signs."""
    return tuple(map(float, re.findall(r"[-+]?\d+(?:\.\d+)?", text)))


def read_part(start: str, end: str) -> tuple[float, ...]:
    """The numbers of the page between two texts; the first occurs once."""
    (_, rest) = decision_page.TEXT.split(start)
    return read_numbers(rest.partition(end)[0])


def read_alpha(step: str) -> float:
    """Alpha of a step, as ``alpha = 1 % / (4 x 1)``: budget, comparisons and looks."""
    budget, comparisons, looks = read_numbers(step.partition("alpha = ")[2])
    return budget / 100 / (comparisons * looks)


def test_example_is_what_the_code_computes() -> None:
    """In the example stored values leave 6 % open, and three pairs convict."""
    (clock, *clock_row), (ratio, *ratio_row), (pairs, *pairs_row) = read_table("step")
    latencies, speedups = (
        read_part("of five trials, compiled ", " ms at a"),
        read_part("ms at a speedup of ", ". One trial"),
    )
    latency, eager = read_part("One trial of head takes ", "ms. There")
    threshold = SPECS[Metric.COMPILED_LATENCY].threshold.relative
    budget = Policy(thresholds={}).error_budget
    assert read_alpha(clock) == read_alpha(ratio) == budget / len(NOISY_DECIDING)
    stored = Bar(
        alpha=read_alpha(clock),
        threshold=Threshold(relative=threshold, absolute=0.0),
        edges=constants.BASE_EDGES,
    )
    for metric, before, after, row in (
        (Metric.COMPILED_LATENCY, latencies, latency, clock_row),
        (Metric.WARM_SPEEDUP, speedups, eager / latency, ratio_row),
    ):
        reading = read_example(metric, before, after)
        assert row == [*describe(reading, stored), "open"]
        assert stored.classify(reading) is Level.OPEN
    changes = read_numbers(pairs.partition(" %")[0])
    assert round(100 * math.log(latency / median(latencies))) == read_part("prove a slowdown of ", " %")[0]
    paired, twin = (
        Paired(metric=metric, changes=logs, base=latencies[:3], head=(latency,), is_live=True)
        for metric, logs in (
            (Metric.COMPILED_LATENCY, tuple(change / 100 for change in changes)),
            (Metric.EAGER_LATENCY, (0.0,) * 3),
        )
    )
    reading = read_pairs(paired, assume_noise(Metric.COMPILED_LATENCY, is_live=True), twin)
    looks = [look for look in constants.LOOKS if look >= constants.SETTLING_PAIRS]
    assert read_alpha(pairs) == budget / len(looks)
    threshold = SPECS[Metric.COMPILED_LATENCY].side_by_side.relative
    bar = Bar(alpha=read_alpha(pairs), threshold=Threshold(relative=threshold, absolute=0.0))
    status, _ = decide_pairs(reading, bar)
    assert pairs_row == [*describe(reading, bar), status.value]
    assert status is Status.REGRESSED


def read_example(metric: Metric, stored: tuple[float, ...], seen: float) -> Reading:
    """The reading of one value against stored ones, with their noise."""
    arms = summarize_logs(stored, (seen,))
    assert arms is not None
    return read_stored(metric, arms, NOTHING_KNOWN, SESSION, 0.0)


def describe(reading: Reading, bar: Bar) -> list[str]:
    """d, SE, low, high and e, as in the table."""
    bounds = (reading.compute_bound(p) for p in (bar.alpha, constants.CLEAR_CONFIDENCE))
    values = (reading.change, reading.error, *bounds, bar.compute_log_edge(reading))
    return [f"{value:.3f}" for value in values]


WORDS = {
    word: number
    for number, word in enumerate(["one", "two", "three", "four", "five", "six", "seven", "eight"], 1)
}


def find_words(pattern: str) -> list[int]:
    """The written-out numbers at the pattern's only match, with a group for each."""
    (words,) = re.findall(pattern, decision_page.TEXT)
    return [WORDS[word.lower()] for word in ([words] if isinstance(words, str) else words)]


def test_thresholds_in_the_prose_are_those_of_the_metrics() -> None:
    """Thresholds of latency and compiles, stored and in pairs; the budget and its divisors."""
    latency, cold, warm = (SPECS[metric] for metric in LEADING)
    assert find_numbers(
        r"(\d+) % of a latency with stored values and (\d+) % in pairs, (\d+) and (\d+) % of a cold"
    ) == [
        100 * threshold.relative
        for threshold in (latency.threshold, latency.side_by_side, cold.threshold, warm.threshold)
    ]
    assert find_words(r"decide: (\w+) a case \(latency") == [len(NOISY_DECIDING)]
    assert find_numbers(r"`error_budget`, (\d+) %") == [100 * Policy(thresholds={}).error_budget]
    logarithm, percent = find_numbers(r"natural logarithms, so ([\d.]+) is (\d+) %")
    assert round(100 * math.expm1(logarithm)) == percent


def test_bias_of_a_median_is_that_of_the_code() -> None:
    """Two other cases with 8 degrees of freedom each, by (1 - 2/(9 df))³."""
    unit, two, nine = find_numbers(r"bias of a median, \((\d) - (\d)/\((\d) df\)\)³")
    variances = {name: Variance(value=4e-4, df=8.0) for name in "abc"}
    prior = compute_priors(variances)["a"]
    assert prior.value == pytest.approx(4e-4 / (unit - two / (nine * 8.0)) ** 3)
    assert prior.df == min(constants.LEARNED_DF, constants.MEDIAN_EFFICIENCY * 16.0)


def test_pairs_that_convict_what_flickers_are_as_many_as_the_page_says() -> None:
    """All of head's values are above the base's: for one case with two comparisons, and for ``ab``."""
    comparisons, few, cases, many = find_words(
        r"One case of (\w+) comparisons needs (\w+) pairs, and (\w+) cases of `ab` (\w+)\."
    )
    budget = Policy(thresholds={}).error_budget
    assert count_needed_pairs(budget / comparisons) == few
    assert count_needed_pairs(budget / (cases * (len(LEADING) + 1))) == many


def test_sums_in_the_prose_are_right() -> None:
    """Small changes that add up, a rare call's share of a block, the exit code of a partial PASS."""
    merges, step, total = find_numbers(r"(\d+) merges of \+([\d.]+) % are (\d+) % together")
    assert round(100 * ((1 + step / 100) ** merges - 1)) == total
    (times,) = find_words(r"one in a hundred at (\w+) times its time")
    assert find_numbers(r"times its time is (\d+) % of a block") == [times - 1]
    assert find_numbers(r"`--fail-on new` exits (\d+)") == [ExitCode.NOTHING_COMPARED]


def test_glossary_names_what_exists() -> None:
    """Each dotted name of the glossary exists in the package."""
    names = re.findall(r"`((?:\w+\.)+\w+)`", GLOSSARY)
    assert names
    for name in names:
        assert can_resolve(name.removeprefix("gate.")), name


def can_resolve(name: str) -> bool:
    """Whether `module.Thing.field` exists in gate, or `Thing.field` in the records."""
    records = (f"gate.records.{name}" for name in ("cases", "codes", "facts", "run", "verdict", "studies"))
    starts = ("gate", *records, "gate.errors")
    return any(_walk(start, name.split(".")) for start in starts)


def _walk(start: str, parts: list[str]) -> bool:
    thing: object = import_module(start)
    for position, part in enumerate(parts):
        if not hasattr(thing, part) and part not in getattr(thing, "__annotations__", {}):
            module = ".".join([start, *parts[: position + 1]])
            try:
                thing = import_module(module)
            except ImportError:
                return False
            continue
        thing = getattr(thing, part, None)
    return True
