"""The action's inputs: one table, three places; every value checked, every message names its input."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from action.step import ACTION, ROOT
from hypothesis import given
from hypothesis import strategies as st

from gate.action.inputs import INPUTS, TRUSTED_MODES, ActionMode, ActionStep, parse_inputs
from gate.action.modes import (
    make_arguments,
    make_check_arguments,
    make_compare_arguments,
    make_merge_arguments,
)
from gate.action.rules import RuleSource
from gate.cli.parser import make_parser
from gate.errors import UsageError
from gate.project.config import make_default_config
from gate.store.rules import BaseRules, BaseTree

TOKEN = "ghs_must-not-be-seen"
SHA = "a" * 40
PARSER = make_parser()


def parse(**given: str) -> Mapping[str, str]:
    """Parse inputs as action.yml would pass them; a name's underscores are dashes."""
    return parse_inputs({f"INPUT_{name.upper()}": value for name, value in given.items()})


def test_action_and_parser_have_the_same_inputs_and_defaults() -> None:
    """Names, order and defaults of action.yml are those of the table."""
    declared = {name: spec["default"] for name, spec in ACTION["inputs"].items()}

    assert declared == {item.name: item.default for item in INPUTS}


def test_action_hands_every_input_to_the_parser() -> None:
    """A composite action has no automatic INPUT_*: each is set by hand from the input of its name."""
    (step,) = ACTION["runs"]["steps"]

    assert step["env"] == {item.variable: f"${{{{ inputs.{item.name} }}}}" for item in INPUTS}
    assert "${{" not in step["run"]


def test_documentation_lists_the_outputs() -> None:
    """The table of docs/github-reference.md has each output, in order; that of inputs is generated."""
    text = (ROOT / "docs" / "github-reference.md").read_text()
    outputs = re.findall(r"^\| `([a-z-]+)` \|", text.split("## Outputs")[1].split("\n## ")[0], re.MULTILINE)

    assert outputs == list(ACTION["outputs"])


def test_every_mode_that_passes_an_input_on_has_the_option() -> None:
    """A command takes each of its mode's inputs under the input's name."""
    values = {"minutes": "5", "shard": "1/2", "lock-timeout": "1", "run-id": "7", "fail-on": "new"}
    values |= {
        "pr-number": "7",
        "head-sha": SHA,
        "head-ref": "topic",
        "conclusion": "success",
        "comment": "never",
    }
    for mode in set(ActionMode) - {ActionMode.JUDGE}:
        given = {item.name: values.get(item.name, item.default or "cpu") for item in INPUTS}
        arguments = make_arguments(given | {"mode": mode})

        assert PARSER.parse_args(arguments).command == arguments[0]


def test_an_empty_input_counts_as_not_given() -> None:
    """As `${{ vars.PYTHON }}` is where the variable is not set."""
    assert parse_inputs({item.variable: " " for item in INPUTS}) == parse()


def test_every_output_comes_from_the_step() -> None:
    """An output without a value, or with another name, would silently be empty."""
    values = {name: spec["value"] for name, spec in ACTION["outputs"].items()}

    assert values == {name: f"${{{{ steps.gate.outputs.{name} }}}}" for name in ACTION["outputs"]}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "chek"),
        ("python", "-c"),
        ("working-directory", "--x"),
        ("config", "a\nb"),
        ("select", "$(id)"),
        ("select", "--out=/etc"),
        ("select", "a b"),
        ("device", "cuda:x"),
        ("minutes", "1.5"),
        ("baselines", "-rf"),
        ("baseline-ref", "main"),
        ("baseline-ref", "abc1234"),
        ("confirm", "yes"),
        ("base-python", "-c"),
        ("head-python", "a\nb"),
        ("minutes", "0"),
        *(("shard", text) for text in ("2", "0/4", "1/0", "1/1000", "a/b")),
        ("conclusion", "done"),
        ("fail-on", "always"),
        ("lock-timeout", "-1"),
        ("lock-timeout", "nan"),
        ("artifact-name", "../x"),
        ("run-id", "0"),
        ("run-id", "12;id"),
        ("comment", "sometimes"),
        ("comment-key", "a b"),
        ("head-sha", "abc1234"),
        ("head-ref", "a..b"),
        ("head-ref", "-x"),
        ("pr-number", "1e3"),
        ("reason", "a\x1b[31mb"),
        ("token", "a b"),
        ("config", "x" * 40_000),
    ],
)
def test_a_wrong_value_names_its_input(name: str, value: str) -> None:
    """The message starts with the input's name as the workflow writes it."""
    with pytest.raises(UsageError, match=rf"^input {name}: "):
        parse(**{name.replace("-", "_"): value})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("config", "a\x01b", "'a?b' is not a file"),
        ("config", f"-{'x' * 100}", f"'-{'x' * 59}' is not a file"),
        ("confirm", "yes", "'yes' is not true or false"),
        ("fail_on", "all", "'all' is not new, inconclusive, regression or never"),
        ("comment", "no", "'no' is not always, on-change, on-failure or never"),
        ("token", "a b", "that value is not a token"),
    ],
)
def test_a_wrong_value_is_shown_with_what_would_be_right(name: str, value: str, expected: str) -> None:
    """At most 60 characters of it, on one line."""
    with pytest.raises(UsageError) as caught:
        parse(**{name: value})

    assert caught.value.what == f"input {name.replace('_', '-')}: {expected}"
    assert caught.value.fix == f"Fix `{name.replace('_', '-')}:` in the workflow."


def test_a_value_may_have_32768_characters() -> None:
    """One more is refused: no command line of GitHub's needs it."""
    assert parse(config="x" * 32_768)["config"] == "x" * 32_768
    with pytest.raises(UsageError, match=r"^input config: "):
        parse(config="x" * 32_769)


def test_a_blank_value_is_that_of_the_table() -> None:
    """A value is taken without the blanks around it."""
    assert [parse(python=value)["python"] for value in ("", " \n", " python3.12 ")] == [
        *("python3", "python3", "python3.12")
    ]
    assert parse(config=" ")["config"] == ""


@pytest.mark.parametrize(
    ("name", "users"),
    [
        ("mode", tuple(ActionMode)),
        ("shard", ("measure",)),
        ("select", ("check", "measure", "judge", "upgrade", "anchor", "refresh")),
        ("baselines", ("check", "measure", "judge", "anchor", "propose-baselines")),
        ("comment-key", ("check", "measure", "judge", "publish", "publish-upgrade", "accept-regression")),
        (
            "token",
            (
                *("publish", "publish-upgrade"),
                *("authorize-command", "accept-regression", "propose-baselines"),
            ),
        ),
    ],
)
def test_an_input_is_of_the_modes_that_pass_it_on_or_read_it(name: str, users: tuple[str, ...]) -> None:
    """In the order of the modes, as the reference lists them."""
    (item,) = (item for item in INPUTS if item.name == name)

    assert item.users == users


def test_a_wrong_token_is_not_shown() -> None:
    """The message about a token has nothing of it."""
    with pytest.raises(UsageError) as caught:
        parse(mode="publish", token=f"{TOKEN} {TOKEN}")

    assert TOKEN not in str(caught.value)
    environ = {"INPUT_MODE": "publish", "INPUT_TOKEN": TOKEN}
    assert TOKEN not in repr(ActionStep(inputs=parse_inputs(environ), environ=environ, event={}))


@pytest.mark.parametrize("mode", ActionMode)
def test_a_token_is_taken_where_it_is_needed_and_nowhere_else(mode: ActionMode) -> None:
    """A token next to code under test, or a missing one, is refused before any request."""
    is_trusted = mode in TRUSTED_MODES

    with pytest.raises(UsageError, match="needs a token" if is_trusted else "takes no token"):
        parse(mode=mode, token="" if is_trusted else TOKEN)


@pytest.mark.parametrize(
    ("given_inputs", "words"),
    [
        (
            {"mode": "propose-baselines", "token": TOKEN, "head_sha": SHA},
            "head-sha and head-ref: .* needs both",
        ),
        (
            {"mode": "accept-regression", "token": TOKEN},
            "input head-sha: the mode accept-regression needs it",
        ),
        ({"mode": "upgrade", "head_python": "/new/bin/python"}, "base-python and head-python: .* needs both"),
        ({"mode": "measure"}, "input shard: the mode measure needs it"),  # else each job measured everything
    ],
)
def test_a_mode_names_what_it_needs(given_inputs: dict[str, str], words: str) -> None:
    """What was authorised, both stacks, or which part of how many."""
    with pytest.raises(UsageError, match=words):
        parse(**given_inputs)


@given(st.sampled_from(INPUTS), st.text(max_size=50))
def test_any_value_is_refused_or_harmless(item: object, value: str) -> None:
    """Any input gives a one-line error, or arguments that the command line parses."""
    assert item in INPUTS
    given_inputs = {
        "INPUT_TOKEN": TOKEN,
        "INPUT_HEAD_SHA": SHA,
        "INPUT_HEAD_REF": "topic",
        "INPUT_RUN_ID": "7",
    }
    for mode in ActionMode:
        others = (
            given_inputs
            if mode in TRUSTED_MODES
            else {"INPUT_BASE_PYTHON": "a", "INPUT_HEAD_PYTHON": "b", "INPUT_SHARD": "1/2"}
        )
        environ = {**others, "INPUT_MODE": mode, item.variable: value}
        try:
            arguments = make_any_arguments(parse_inputs(environ))
        except UsageError as error:
            texts = [error.what]
        else:
            texts = list(arguments)
            assert PARSER.parse_args(arguments).command == arguments[0]
        assert not any(ord(char) < 32 for text in texts for char in text)


OWN = RuleSource(rules=BaseRules(config=make_default_config(), cases=()))


def make_any_arguments(inputs: Mapping[str, str]) -> tuple[str, ...]:
    """Make the arguments of the mode of these inputs."""
    if inputs["mode"] in {ActionMode.CHECK, ActionMode.MEASURE}:
        return make_check_arguments(inputs, OWN, SHA)
    if inputs["mode"] == ActionMode.JUDGE:
        return make_merge_arguments(inputs, OWN, ("a",), inputs["select"] or "a")
    return make_arguments({**inputs, "run-id": inputs["run-id"] or "7"})  # as the event or the runner says it


def test_arguments_of_a_judgement() -> None:
    """The merged run is compared with the base's baselines, also where a path begins with a dash."""
    inputs = parse(mode="judge", fail_on="never", config="c.yml")
    arguments = make_compare_arguments(inputs, OWN, ("-b", "r.json"))

    options = PARSER.parse_args(arguments)
    assert (options.baseline, options.candidate, options.out) == ("-b", "r.json", "out")
    assert (options.config, options.fail_on) == ("c.yml", "never")


def test_arguments_of_a_check() -> None:
    """Every input of a check reaches the command, each in one argument."""
    options = {"select": "tag:pr,!bert/*", "device": "cuda:1", "lock_timeout": "60", "fail_on": "never"}
    inputs = parse(**options, config="x/gate.yml", baselines="b c")

    tree = BaseTree(sha=SHA, tree=Path("/opt/the base"), top=Path("/w"))
    source = RuleSource(rules=replace(OWN.rules, tree=tree))
    assert make_check_arguments(inputs, source, SHA) == (
        "check",
        f"--rules={SHA}",
        "--base-tree=/opt/the base",
        "--baselines=b c",
        f"--base={SHA}",
        "--config=x/gate.yml",
        "--select=tag:pr,!bert/*",
        "--device=cuda:1",
        "--fail-on=never",
        "--lock-timeout=60",
    )


def test_arguments_of_an_upgrade() -> None:
    """One code runs on two interpreters: no commit is named, so both arms are the working tree."""
    inputs = parse(
        mode="upgrade", base_python="/old/bin/python", head_python="/new/bin/python", minutes="120"
    )

    assert make_arguments(inputs) == (
        "ab",
        "--base-python=/old/bin/python",
        "--head-python=/new/bin/python",
        "--minutes=120",
    )


def test_arguments_of_a_comparison_with_the_anchor() -> None:
    """No commit is named: the anchor is the base, the working tree is the head."""
    inputs = parse(mode="anchor", select="bert", minutes="150", fail_on="never")

    assert make_arguments(inputs) == (
        *("ab", "--anchor", "--select=bert"),
        *("--minutes=150", "--fail-on=never"),
    )


def test_a_selection_can_name_hundreds_of_cases() -> None:
    """A list of case ids must not be cut."""
    select = ",".join(f"model_{index:03}/inference-float32-smoke-default" for index in range(500))

    assert parse(select=select)["select"] == select
