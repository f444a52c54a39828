"""The options' effects, and the values that they refuse."""

import json
from pathlib import Path

import pytest

from gate import __version__
from gate.cli import main
from gate.cli.parser import make_parser
from gate.cli.setup import load_configured
from gate.errors import ExitCode
from gate.files.codec import RUN
from gate.report import FORMATS

pytestmark = pytest.mark.usefixtures("project")
Capture = pytest.CaptureFixture[str]


def list_files() -> list[str]:
    """The files of the current directory."""
    return sorted(str(path) for path in Path().rglob("*"))


@pytest.mark.parametrize(
    "arguments",
    [
        *(["check", option, ""] for option in ("--base", "--config", "--select", "--baselines", "--out")),
        *(["check", option, ""] for option in ("--device", "--accepted")),
        *(["ab", ""], ["ab", "main", ""], ["ab", "--base-python", ""], ["ab", "--head-python", ""]),
        *(["compare", "", "slow.json"], ["compare", "old.json", ""], ["report", ""]),
        *(["merge", "", "--out", "out"], ["merge", "old.json", "--out", ""], ["calibrate", "--run", ""]),
        *(["baseline", "refresh", "--reason", blank] for blank in ("", " ", "\t")),
        *(["check", option, " "] for option in ("--base", "--config", "--select", "--baselines", "--out")),
        ["github", "publish", "--run-id", "1", "--artifact-name", ""],
        *(["plan", "--select", ""], ["selftest", "--faults", ""], ["baseline", "show", "--baselines", ""]),
    ],
    ids=" ".join,
)
def test_an_empty_value_is_a_variable_that_was_not_set(arguments: list[str], capsys: Capture) -> None:
    """`--base "$BASE"` without BASE is exit 2 and two lines with the option's name."""
    before = list_files()
    assert main(arguments) == ExitCode.USAGE
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "must not be empty" in lines[0]
    assert list_files() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["check", "--out", "baselines"],
            "--out: baselines is the same directory as `baselines`, b",
        ),
        (
            ["plan", "--config", "nested.yml"],
            "nested.yml:2: out: stored/out is inside the directory of `baselines`, stored (nested.yml:3)",
        ),
        (
            ["check", "--baselines", "out/stored"],
            "out: out is around the directory of `baselines`, out/stored (--baselines)",
        ),
        (
            ["compare", "kept", "old.json", "--out", "kept/../kept"],
            "--out: kept/../kept is the same directory as `baselines`, kept (BASELINE)",
        ),
    ],
)
def test_results_are_not_written_among_baselines(arguments: list[str], message: str, capsys: Capture) -> None:
    """Both keys are named with their source; nothing is written."""
    Path("nested.yml").write_text("version: 1\nout: stored/out\nbaselines: stored\n", encoding="utf-8")
    Path("kept").mkdir()
    before = list_files()
    assert main(arguments) == ExitCode.USAGE
    assert message in capsys.readouterr().err
    assert list_files() == before


def test_a_directory_without_baselines_is_named(capsys: Capture) -> None:
    """A missing one may be a typing error."""
    assert main(["baseline", "show", "--baselines", "nope"]) == 3
    assert "no baselines are stored in nope, which does not exist" in capsys.readouterr().out
    Path("nope").mkdir()
    assert main(["baseline", "show", "--baselines", "nope"]) == 3
    output = capsys.readouterr().out
    assert "no baselines are stored in nope" in output
    assert "exist" not in output


@pytest.mark.parametrize("times", [["--select", "a/*", "--select", "!b,tag:c"], ["--select", "a/*,!b,tag:c"]])
def test_a_repeated_selection_grows(times: list[str]) -> None:
    """Given twice, --select means both."""
    assert make_parser().parse_args(["plan", *times]).select == "a/*,!b,tag:c"


def test_repeated_files_and_faults_grow() -> None:
    """--run, --accepted and --faults."""
    parser = make_parser()
    assert parser.parse_args(["calibrate", "--run", "a", "b", "--run", "c"]).run_files == ["a", "b", "c"]
    assert parser.parse_args(["check", "--accepted", "a", "--accepted", "b"]).accepted == ["a", "b"]
    assert parser.parse_args(["selftest", "--faults", "a", "--faults", "b"]).faults == "a,b"


def test_an_option_stands_for_a_key() -> None:
    """--lock-timeout is lock_timeout_s, and config shows its source."""
    config = load_configured(make_parser().parse_args(["check", "--lock-timeout", "30.5"]))
    assert config.lock_timeout_s == 30.5
    assert config.origins["lock_timeout_s"] == "--lock-timeout"


@pytest.mark.parametrize(
    ("option", "value"),
    [("--lock-timeout", "nan"), ("--lock-timeout", "-1"), ("--trials", "0")],
)
def test_an_error_names_the_option_and_not_a_key(option: str, value: str, capsys: Capture) -> None:
    """A user of --lock-timeout never saw lock_timeout_s."""
    assert main(["check", option, value]) == ExitCode.USAGE
    errors = capsys.readouterr().err
    assert f"{option} must be" in errors
    assert "_s" not in errors


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version(option: str, capsys: Capture) -> None:
    """Both spellings."""
    assert main([option]) == ExitCode.PASS
    assert capsys.readouterr().out == f"compile-gate {__version__}\n"


def test_config_needs_no_option(capsys: Capture) -> None:
    """It has one thing to do."""
    assert main(["config"]) == ExitCode.PASS
    assert "trials: 1 " in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["models"], ["plan"], ["doctor"]])
def test_lists_come_as_text_or_json(arguments: list[str], capsys: Capture) -> None:
    """The formats have the same names in every command."""
    assert main([*arguments, "--format", "json"]) != ExitCode.USAGE  # a machine may be unfit
    json.loads(capsys.readouterr().out)
    assert main([*arguments, "--format", "text"]) != ExitCode.USAGE
    assert main([*arguments, "--format", "table"]) == ExitCode.USAGE


def test_compare_writes_nothing_unless_asked(project: Path) -> None:
    """A verdict.json may be the user's; --out writes the three reports into a directory."""
    (project / "verdict.json").write_text("precious", encoding="utf-8")
    before = list_files()
    assert main(["compare", "old.json", "slow.json"]) == ExitCode.REGRESSION
    assert list_files() == before
    assert (project / "verdict.json").read_text(encoding="utf-8") == "precious"
    assert main(["compare", "old.json", "slow.json", "--out", "told"]) == ExitCode.REGRESSION
    assert set(list_files()) - set(before) == {
        *("told", "told/verdict.json", "told/report.md", "told/report.html", "told/junit.xml")
    }


@pytest.mark.parametrize("file", ["verdict.json", *(form.file for form in FORMATS.values() if form.file)])
def test_a_file_is_no_directory(file: str, capsys: Capture) -> None:
    """`--out report.html` is refused, and makes no directory of that name."""
    assert main(["compare", "old.json", "slow.json", "--out", file]) == ExitCode.USAGE
    assert "looks like a file" in capsys.readouterr().err
    assert not Path(file).exists()


def test_merge_names_where_it_writes(capsys: Capture) -> None:
    """There is no default that it could replace."""
    assert main(["merge", "old.json", "--out", "joined"]) == ExitCode.PASS
    assert RUN.load(Path("joined/run.json")) == RUN.load(Path("old.json"))
    assert "Wrote joined/run.json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("case", "fix"), [("actr/*", "Did you mean 'actor'?"), ("tag:smok", "has the tag 'smok'")]
)
def test_an_acceptance_fits_a_case(case: str, fix: str, capsys: Capture) -> None:
    """A pattern that no case fits would never count."""
    options = ["--allow", "1", "--reason", "r", "--expires", "2030-01-01"]
    assert main(["baseline", "accept", case, "graph_breaks", *options]) == ExitCode.USAGE
    assert fix in capsys.readouterr().err
    assert not Path("baselines").exists()


@pytest.mark.parametrize("report_format", ["markdown", "json", "junit"])
def test_a_hidden_outcome_is_printed_apart_from_what_a_program_reads(
    report_format: str, capsys: Capture
) -> None:
    """Exit 0 on a regression is noted on standard error; the report does not change."""
    arguments = ["compare", "old.json", "slow.json", "--fail-on", "never", "--format", report_format]
    assert main(arguments) == ExitCode.PASS
    printed = capsys.readouterr()
    assert "!! REGRESSION, BUT EXIT 0" in printed.err
    assert "!!" not in printed.out


@pytest.mark.parametrize(
    "arguments", [["check"], ["measure"], ["ab"], ["calibrate"], ["baseline", "refresh"]]
)
def test_nothing_to_resume_is_reported_at_once(arguments: list[str], capsys: Capture) -> None:
    """Exit 2 before any wait for a lock, and nothing is written."""
    before = list_files()
    assert main([*arguments, "--resume"]) == ExitCode.USAGE
    errors = capsys.readouterr().err
    assert "out/run.json does not exist, so there is no run to continue" in errors
    assert list_files() == before


def test_a_torn_run_is_refused_with_what_helps(capsys: Capture) -> None:
    """A truncated run.json is refused before the warm-up, and the fix needs no copy."""
    Path("out").mkdir()
    Path("out/run.json").write_text('{"schema"', encoding="utf-8")
    assert main(["check", "--resume"]) == ExitCode.USAGE
    problem, fix = capsys.readouterr().err.splitlines()
    assert "out/run.json: ends in the middle" in problem
    assert fix == "Run without --resume."


def test_a_target_stands_in_the_place_of_a_device() -> None:
    """gate.yml names the device of this machine; --target replaces it."""
    options = make_parser().parse_args(["check", "--target", "cuda:sm_90"])
    assert load_configured(options).device == "cuda:sm_90"
    assert load_configured(make_parser().parse_args(["check"])).device == "cpu"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "--target", "cuda:sm_71"], "'cuda:sm_71' is no target: choose one of cuda:sm_80"),
        (["check", "--target", "cuda:0"], "'cuda:0' is no target"),
        (["check", "--device", "cuda:sm_90"], "cpu, cuda or cuda:N"),
        (["check", "--device", "cpu", "--target", "cuda:sm_90"], "not allowed with"),
        (["selftest", "--target", "cuda:sm_90"], "--target"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_no_target_is_refused(arguments: list[str], message: str, capsys: Capture) -> None:
    """Nothing runs under another name than was asked for."""
    assert main(arguments) == ExitCode.USAGE
    assert message in capsys.readouterr().err
