import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import FileError, UsageError
from gate.metrics import SPECS, Family, Role
from gate.records.bounds import MOST_ALLOWED
from gate.records.cases import Acceptance, Metric
from gate.store.acceptances import load_acceptances, parse_allowance, render_entry, save_acceptance

TODAY = "2026-03-04"
AMOUNT = "expected a percentage such as 8%, or a number of at least 0"
DAY = "expected a day at most 366 days from now, by the clock of this machine: YYYY-MM-DD, got"
FIRST = Acceptance(
    case="bert/*",
    metric=Metric.COMPILED_LATENCY,
    allowance=0.08,
    reason='the "new" attention: #123',
    author="A. Person",
    expires="2026-06-30",
)
SECOND = replace(FIRST, case="vit/inference", metric=Metric.GRAPH_BREAKS, allowance=1.0)


def save_all(path: Path, *acceptances: Acceptance) -> None:
    """Save one after the other."""
    for acceptance in acceptances:
        save_acceptance(path, acceptance, TODAY)


def test_a_link_that_leads_nowhere_is_not_an_empty_list(tmp_path: Path) -> None:
    """Its target was meant to count."""
    (tmp_path / "accepted.yml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileError, match="does not exist"):
        load_acceptances(tmp_path / "accepted.yml")


def test_a_missing_file_accepts_nothing(tmp_path: Path) -> None:
    """The file appears with the first acceptance."""
    assert load_acceptances(tmp_path / "accepted.yml") == ()


def test_a_year_is_the_longest(tmp_path: Path) -> None:
    """366 days from 2026-03-04."""
    save_all(tmp_path / "accepted.yml", replace(FIRST, expires="2027-03-05"))
    assert load_acceptances(tmp_path / "accepted.yml")[0].expires == "2027-03-05"


def test_saved_acceptances_load_in_order(tmp_path: Path) -> None:
    """Text, numbers and dates survive."""
    path = tmp_path / "baselines" / "accepted.yml"
    save_all(path, SECOND, FIRST)
    assert load_acceptances(path) == (SECOND, FIRST)


def test_the_file_is_for_people_to_read(tmp_path: Path) -> None:
    """A key a line, so that reviews and merges are easy."""
    save_all(tmp_path / "accepted.yml", FIRST)
    assert (
        (tmp_path / "accepted.yml").read_text(encoding="utf-8")
        == """\
# Accepted changes. After its expiry date an entry no longer counts.
version: 1
accepted:
  - case: "bert/*"
    metric: compiled_latency
    allowance: 8%
    reason: "the \\"new\\" attention: #123"
    author: "A. Person"
    expires: "2026-06-30"
"""
    )


def test_the_same_case_and_metric_is_replaced(tmp_path: Path) -> None:
    """The newer entry counts."""
    path = tmp_path / "accepted.yml"
    again = replace(FIRST, allowance=0.2, expires="2026-12-31")
    save_all(path, FIRST, SECOND, again)
    assert load_acceptances(path) == (SECOND, again)


def test_comments_survive_an_addition(tmp_path: Path) -> None:
    """They hold reasons."""
    path = tmp_path / "accepted.yml"
    save_all(path, FIRST)
    path.write_text("# ours\n" + path.read_text(encoding="utf-8") + "\n\n", encoding="utf-8")
    save_all(path, SECOND)
    assert path.read_text(encoding="utf-8").startswith("# ours\n")
    assert load_acceptances(path) == (FIRST, SECOND)


def test_several_entries_of_another_case_and_metric_are_kept(tmp_path: Path) -> None:
    """As after a merge: each counts, and an addition keeps them and all comments."""
    path = tmp_path / "accepted.yml"
    wider = replace(FIRST, allowance=0.15)
    save_all(path, FIRST)
    text = "# ours\n" + path.read_text(encoding="utf-8") + render_entry(wider)
    path.write_text(text, encoding="utf-8")
    assert not save_acceptance(path, SECOND, TODAY)
    assert load_acceptances(path) == (FIRST, wider, SECOND)
    assert path.read_text(encoding="utf-8").startswith(text)


def test_several_entries_of_one_case_and_metric_become_the_new_one(tmp_path: Path) -> None:
    """The newer entry counts; a wider old one would still count next to it."""
    path = tmp_path / "accepted.yml"
    save_all(path, FIRST, SECOND)
    with path.open("a", encoding="utf-8") as file:
        file.write(render_entry(replace(FIRST, allowance=0.15)))
    again = replace(FIRST, allowance=0.05)
    save_all(path, again)
    assert load_acceptances(path) == (SECOND, again)


@pytest.mark.parametrize(("comment", "is_lost"), [("# ours\n", True), ("", False)])
def test_a_replacement_reports_whether_comments_are_gone(tmp_path: Path, comment: str, is_lost: bool) -> None:
    """The file is written anew for it."""
    path = tmp_path / "accepted.yml"
    save_all(path, FIRST)
    path.write_text(comment + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert save_acceptance(path, replace(FIRST, allowance=0.05), TODAY) is is_lost


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\n",
        "version: 1\naccepted: []\n",
        "accepted: [{case: x, metric: drift, allowance: 1, reason: r, expires: 2027-01-01}]\nversion: 1\n",
    ],
)
def test_a_file_in_another_style_keeps_its_entries(tmp_path: Path, text: str) -> None:
    """Where nothing can be appended the file is written anew."""
    path = tmp_path / "accepted.yml"
    path.write_text(text, encoding="utf-8")
    before = load_acceptances(path)
    save_all(path, FIRST)
    assert load_acceptances(path) == (*before, FIRST)


@pytest.mark.parametrize(
    ("acceptance", "what"),
    [
        (replace(FIRST, expires="2026-03-03"), "--expires: 2026-03-03 is past"),
        (
            replace(FIRST, expires="2027-03-06"),
            "--expires: 2027-03-06 is more than 366 days from now",
        ),
        (
            replace(FIRST, expires="2026-02-30"),
            f"--expires: {DAY} '2026-02-30'",
        ),
        (replace(FIRST, expires="soon"), f"--expires: {DAY} 'soon'"),
        (replace(FIRST, reason=" "), "--reason: expected a text that is not empty, got ' '"),
        (replace(FIRST, reason="..."), "--reason: '...' is no reason"),
        (
            replace(FIRST, allowance=-0.1),
            "--allow: expected a percentage such as 8%, or a number of at least 0, got -0.1",
        ),
        (
            replace(FIRST, allowance=float("nan")),
            "--allow: expected a percentage such as 8%, or a number of at least 0, got nan",
        ),
    ],
)
def test_an_acceptance_with_too_few_keys_is_refused(
    tmp_path: Path, acceptance: Acceptance, what: str
) -> None:
    """Without a reason and a future day nothing is written."""
    with pytest.raises(UsageError) as caught:
        save_all(tmp_path / "accepted.yml", acceptance)
    assert what == caught.value.what
    assert list(tmp_path.iterdir()) == []


def test_the_day_of_expiry_still_counts(tmp_path: Path) -> None:
    """Today is not past."""
    save_all(tmp_path / "accepted.yml", replace(FIRST, expires=TODAY))
    assert load_acceptances(tmp_path / "accepted.yml")[0].expires == TODAY


def test_expired_acceptances_are_still_loaded(tmp_path: Path) -> None:
    """The report names them as expired; the file is valid."""
    path = tmp_path / "accepted.yml"
    save_acceptance(path, replace(FIRST, expires="2020-01-01"), "2019-12-31")
    assert load_acceptances(path)[0].expires == "2020-01-01"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (
            "expires: 2026-13-01",
            f"accepted.yml:7: accepted[0].expires: {DAY} '2026-13-01'",
        ),
        (
            "expires: 20260101",
            f"accepted.yml:7: accepted[0].expires: {DAY} 20260101",
        ),
        ("expirse: 2026-12-01", "accepted.yml:7: accepted[0].expirse: unknown key"),
    ],
)
def test_a_wrong_file_is_refused_with_the_line(tmp_path: Path, line: str, what: str) -> None:
    """As every file that people write."""
    path = tmp_path / "accepted.yml"
    entry = f"  - case: a\n    metric: drift\n    allowance: 1\n    reason: r\n    {line}\n"
    path.write_text("version: 1\naccepted:\n" + entry, encoding="utf-8")
    with pytest.raises(FileError) as caught:
        load_acceptances(path)
    assert f"{tmp_path}/{what}" == caught.value.what
    with pytest.raises(FileError):
        save_all(path, FIRST)
    assert path.read_text(encoding="utf-8").endswith(entry)


def test_all_mistakes_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    """Also ambiguous allowances; whether a metric can fail is unknown here."""
    path = tmp_path / "accepted.yml"
    entries = [
        "{case: a, metric: peak_memory, allowance: 8, reason: r, expires: 2026-12-01}",
        "{case: a, metric: graph_breaks, allowance: 8%, reason: r, expires: 2026-12-01}",
        "{case: a, metric: guards, allowance: 2, reason: r, expires: 2026-12-01}",
        "{case: a, metric: drift, allowance: -1, reason: ' ', expires: soon}",
        "{case: a, metric: compiled_latency, allowance: 100000%, reason: r, expires: 2026-12-01}",
    ]
    path.write_text(
        "version: 1\naccepted:\n" + "".join(f"  - {entry}\n" for entry in entries), encoding="utf-8"
    )
    with pytest.raises(FileError) as caught:
        load_acceptances(path)
    assert [(error.what, error.fix) for error in (caught.value, *caught.value.others)] == [
        (f"{path}:3: accepted[0].allowance: 8 would allow 800%", "Write 8% or 0.08."),
        (
            f"{path}:4: accepted[1].allowance: 8% does not fit graph_breaks, which is not compared by ratio",
            "Write a plain number: the unit is count.",
        ),
        (
            f"{path}:6: accepted[3].allowance: {AMOUNT}, got -1",
            "Write, for example, `allowance: 8%`.",
        ),
        (
            f"{path}:6: accepted[3].reason: expected a text that is not empty, got ' '",
            'Write, for example, `reason: "the new fusion pass compiles longer and runs faster, see #12"`.',
        ),
        (
            f"{path}:6: accepted[3].expires: {DAY} 'soon'",
            'Write, for example, `expires: "2027-03-31"`.',
        ),
        (
            f"{path}:7: accepted[4].allowance: 100000% is more than 1000%",
            "Record new baselines, or put the case into quarantine in gate.yml.",
        ),
    ]


@given(
    allowance=st.floats(0, MOST_ALLOWED, exclude_min=True),
    metric=st.sampled_from([metric for metric in Metric if SPECS[metric].role is Role.DECIDES]),
)
def test_every_allowance_is_read_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, allowance: float, metric: Metric
) -> None:
    """Percent in the file and a fraction in the record are the same number, to the last bit."""
    path = tmp_path_factory.getbasetemp() / "accepted.yml"
    path.unlink(missing_ok=True)
    counted = SPECS[metric].family is Family.EXACT
    accepted = replace(FIRST, metric=metric, allowance=float(math.ceil(allowance)) if counted else allowance)
    save_acceptance(path, accepted, TODAY)
    assert load_acceptances(path) == (accepted,)


@pytest.mark.parametrize(
    ("text", "metric", "allowance"),
    [
        ("8%", Metric.COMPILED_LATENCY, 0.08),
        (" 2.5 % ", Metric.PEAK_MEMORY, 0.025),
        ("150%", Metric.COLD_COMPILE_TIME, 1.5),
        ("1000%", Metric.COLD_COMPILE_TIME, 10.0),
        ("0.08", Metric.COMPILED_LATENCY, 0.08),
        ("2", Metric.GRAPH_BREAKS, 2.0),
        ("0.3", Metric.DRIFT, 0.3),
    ],
)
def test_an_allowance_is_a_percentage_or_a_number(text: str, metric: Metric, allowance: float) -> None:
    """Fractions of ratio metrics, units of the others."""
    assert allowance == pytest.approx(parse_allowance(text, metric))


@pytest.mark.parametrize(
    ("text", "metric", "fix"),
    [
        ("8", Metric.COMPILED_LATENCY, "Write 8% or 0.08."),
        ("1", Metric.COMPILED_LATENCY, "Write 1% or 0.01."),
        (
            "100000%",
            Metric.COLD_COMPILE_TIME,
            "Record new baselines, or put the case into quarantine in gate.yml.",
        ),
        ("-8%", Metric.COMPILED_LATENCY, "Write it as 8%."),
        ("inf", Metric.COMPILED_LATENCY, "Write it as 8%."),
        ("nan%", Metric.COMPILED_LATENCY, "Write it as 8%."),
        ("much", Metric.COMPILED_LATENCY, "Write it as 8%."),
        ("8%", Metric.GRAPH_BREAKS, "Write a plain number: the unit is count."),
        ("8%", Metric.DRIFT, "Write a plain number: the unit is log2."),
    ],
)
def test_an_allowance_that_could_be_misread_is_refused(text: str, metric: Metric, fix: str) -> None:
    """A bare 8 would allow 800 %."""
    with pytest.raises(UsageError) as caught:
        parse_allowance(text, metric)
    assert fix == caught.value.fix


@given(text=st.text(max_size=8), metric=st.sampled_from(list(Metric)))
def test_no_text_raises_anything_but_a_usage_error(text: str, metric: Metric) -> None:
    """An allowance that is taken is finite and not negative."""
    allowance = 0.0
    try:
        allowance = parse_allowance(text, metric)
    except UsageError as error:
        assert error.fix.startswith("Write ")  # noqa: PT017 -- both ways out are right
    assert 0 <= allowance < float("inf")


@pytest.mark.parametrize(
    ("metric", "text", "problem"),
    [
        (Metric.GRAPH_BREAKS, "0", "0 accepts no change at all"),
        (Metric.GRAPH_BREAKS, "0.5", "graph_breaks is a count: it cannot get worse by 0.5"),
        (Metric.DRIFT, "0", "0 accepts no change at all"),
        (Metric.PEAK_MEMORY, "0%", "0% accepts no change at all"),
    ],
)
def test_an_allowance_that_means_nothing_is_refused(
    tmp_path: Path, metric: Metric, text: str, problem: str
) -> None:
    """As an option, and in the file as people write it."""
    with pytest.raises(UsageError, match=f"^--allow: {problem}"):
        parse_allowance(text, metric)
    path = tmp_path / "accepted.yml"
    entry = f"{{case: a, metric: {metric}, allowance: {text}, reason: r, expires: 2026-12-01}}"
    path.write_text(f"version: 1\naccepted:\n  - {entry}\n", encoding="utf-8")
    with pytest.raises(FileError, match=rf"accepted\[0\].allowance: {problem}"):
        load_acceptances(path)


def test_half_a_log2_unit_is_an_allowance() -> None:
    """Only counts are whole."""
    assert parse_allowance("0.5", Metric.DRIFT) == 0.5
