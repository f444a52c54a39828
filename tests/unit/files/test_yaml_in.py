from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import FileError
from gate.files import yaml_in as yaml_border
from gate.files.yaml_in import decode_yaml, parse_yaml
from gate.files.yaml_out import write_scalar
from gate.project.model_entries import RegistryFile

LOADERS = [yaml.SafeLoader, *([yaml.CSafeLoader] if hasattr(yaml, "CSafeLoader") else [])]


@pytest.fixture(params=LOADERS, ids=lambda loader: loader.__name__, autouse=True)
def _loader(request: pytest.FixtureRequest) -> Any:
    """The machine decides which of PyYAML's loaders there is: both must behave alike."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_border, "_LOADER", request.param)
        yield


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# only a comment", None),
        ("a:", {"a": None}),
        ("[~, null, true, False, no, on]", [None, None, True, False, "no", "on"]),
        ("[1, -2, +3, 012, 1.5, .5, 1., 1e-5, 2E3]", [1, -2, 3, 12, 1.5, 0.5, 1.0, 1e-5, 2000.0]),
        ("['1', \"true\", '']", ["1", "true", ""]),
        ("[2026-01-31, 1:30, 0x1f, 1_000]", ["2026-01-31", "1:30", "0x1f", "1_000"]),
        ("<<: {a: 1}", {"<<": {"a": 1}}),
        ("a: |\n  1\n", {"a": "1\n"}),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775807", 1 - 2**63),
        ("a: \u00e4\U0001f600", {"a": "\u00e4\U0001f600"}),
    ],
)
def test_scalars_follow_the_core_schema(text: str, value: object) -> None:
    """Plain texts mean what they mean in JSON, and nothing else is guessed."""
    assert value == parse_yaml(text.encode(), "x").value


FINITE = "expected a finite number of at most 64 bits, got "


@pytest.mark.parametrize(
    ("text", "file", "problem"),
    [
        ("a: &x 1\nb: *x", "gate.yml:1", "uses an anchor or alias (& or *)"),
        ("a: 1\nb: *x", "gate.yml:2", "uses an anchor or alias (& or *)"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]", "gate.yml:2", "uses a tag (!)"),
        ("a: !secret x", "gate.yml:1", "uses a tag (!)"),
        ("a: 1\n\na: 2", "gate.yml:3", "is given twice, first in line 1"),
        ("b:\n  - {a: 1, 'a': 2}", "gate.yml:2", "is given twice, first in line 2"),
        ("a: 1\n---\nb: 2", "gate.yml:2", "holds more than one document (---)"),
        ("? [1]\n: 2", "gate.yml:1", "has a key that is not text"),
        ("[" * 33 + "]" * 33, "gate.yml:1", "is nested deeper than 32 levels"),
        ("a:\n- b\nc: " + "[" * 32 + "]" * 32, "gate.yml:3", "is nested deeper than 32 levels"),
        ("a: .nan", "gate.yml:1", FINITE + "'.nan'"),
        ("a: -.INF", "gate.yml:1", FINITE + "'-.INF'"),
        ("a: 1e999", "gate.yml:1", FINITE + "'1e999'"),
        ("a: 9223372036854775808", "gate.yml:1", FINITE + "'9223372036854775808'"),
        ("a: -9223372036854775808", "gate.yml:1", FINITE + "'-9223372036854775808'"),
        ("a: 100000000000000000000", "gate.yml:1", FINITE + "'100000000000000000000'"),
    ],
)
def test_what_could_blow_up_or_surprise_is_refused(text: str, file: str, problem: str) -> None:
    """Each refusal names the line."""
    with pytest.raises(FileError) as caught:
        parse_yaml(text.encode(), "gate.yml")
    assert (file, problem) == (caught.value.file, caught.value.problem)


@pytest.mark.parametrize(
    "text", ["models:\n\t- name: a", "a:\n\n  b: 1\n\tc: 2", "# ours\na:\n  - b: 1\n \t  c: 2"]
)
def test_a_tab_is_named_with_its_line(text: str) -> None:
    """YAML takes spaces alone, and an editor shows a tab as spaces."""
    with pytest.raises(FileError) as caught:
        parse_yaml(text.encode(), "gate.yml")
    line = text.count("\n") + 1
    assert caught.value.what == f"gate.yml:{line}: is indented by a tab"
    assert caught.value.fix == "Indent the line by spaces: YAML takes no tabs."


def test_thirty_two_levels_are_read() -> None:
    """However many lists of one level there are."""
    for text in ("[" * 32 + "]" * 32, "- [[]]\n" * 40):
        assert parse_yaml(text.encode(), "x").value


@pytest.mark.parametrize(
    ("version", "fix"), [(0, "Write 'version: 1'."), (2, "Install the newest compile-gate.")]
)
def test_another_version_is_refused_alone(version: int, fix: str) -> None:
    """All other keys may mean something else in it."""
    with pytest.raises(FileError) as caught:
        decode_yaml(RegistryFile, f"version: {version}\nmodles: []\n".encode(), "x")
    assert (caught.value.key, caught.value.fix) == ("version", fix)
    assert caught.value.problem == f"is {version}; this compile-gate reads version 1"


@pytest.mark.parametrize("text", ["[" * 20_000, "- " * 20_000])
def test_what_is_far_too_deep_is_refused(text: str) -> None:
    """By us, or by libyaml, which gives up before the 33rd level."""
    with pytest.raises(FileError, match=r"gate\.yml:1: is (nested deeper than 32|not YAML: .*nesting)"):
        parse_yaml(text.encode(), "gate.yml")


@pytest.mark.parametrize("text", ["a: [1, 2", "a: b: c", "a:\t1\tb: 2", "a: 'x", "@", "a: \x00", "- a\nb: 1"])
def test_broken_syntax_is_refused(text: str) -> None:
    """The parser's message follows, on one line."""
    with pytest.raises(FileError, match=r"gate\.yml.*: is not YAML: ") as caught:
        parse_yaml(text.encode(), "gate.yml")
    assert len(str(caught.value).splitlines()) == 2


def test_a_bomb_is_refused_before_it_is_built() -> None:
    """Nine levels of ten aliases each would be a billion items."""
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    with pytest.raises(FileError, match="anchor or alias"):
        parse_yaml("\n".join(levels).encode(), "x")


def test_a_file_beyond_the_size_limit_is_refused() -> None:
    """A megabyte of YAML is not a configuration."""
    with pytest.raises(FileError, match="is larger than"):
        parse_yaml(b"#" * (yaml_border.MAX_YAML_BYTES + 1), "x")


def test_lines_are_found_by_key_path() -> None:
    """A key that has no line of its own has its nearest ancestor's."""
    document = parse_yaml(b"version: 1\nmodels:\n  - name: a\n    cases:\n      - {size: x}\n", "x")
    assert document.find_line("version") == 1
    assert document.find_line("models") == 2
    assert document.find_line("models[0]") == 3
    assert document.find_line("models[0].cases[0].size") == 5
    assert document.find_line("models[0].factory") == 3
    assert document.find_line("nothing") == 0


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("", "x.yml: is empty", "Begin the file with 'version: 1'."),
        ("models: []", "x.yml: the key 'version' is missing", "Write, for example, `version: 1`."),
        (
            "models: []\nversion: 2",
            "x.yml:2: version: is 2; this compile-gate reads version 1",
            "Install the newest compile-gate.",
        ),
        ("version: 0", "x.yml:1: version: is 0; this compile-gate reads version 1", "Write 'version: 1'."),
        ("- 1", "x.yml: expected keys and values, got a list of 1", "Begin the file with 'version: 1'."),
        ("version: 1\nmodles: []", "x.yml:2: modles: unknown key", "Did you mean 'models'?"),
        (
            "version: 1\nmodels:\n  - name: a\n    factory: b:c\n    cases: [{sise: x}]",
            "x.yml:5: models[0].cases[0].sise: unknown key",
            "Did you mean 'size'?",
        ),
    ],
)
def test_our_own_files_are_refused_with_the_line(text: str, what: str, fix: str) -> None:
    """The file with its line and key, then the fix."""
    with pytest.raises(FileError) as caught:
        decode_yaml(RegistryFile, text.encode(), "x.yml")
    assert (what, fix) == (caught.value.what, caught.value.fix)


def list_errors(error: FileError) -> list[FileError]:
    """The error and the others that it carries."""
    others = [other for other in error.others if isinstance(other, FileError)]
    assert len(others) == len(error.others)
    return [error, *others]


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_lines() -> None:
    """The parser's and the record's; two lines each."""
    text = """\
version: 1
models:
  - {name: a, name: b, factory: b:c, cases: [{expected_s: .nan, sise: x}]}
  - {name: b, cases: [{expected_s: 0}, {? [a] : 1}]}
modles: []
"""
    with pytest.raises(FileError) as caught:
        decode_yaml(RegistryFile, text.encode(), "x.yml")
    keys = [f"{error.file}: {error.key}" for error in list_errors(caught.value)]
    assert keys == [
        "x.yml:3: models[0].name",
        "x.yml:3: models[0].cases[0].expected_s",
        "x.yml:3: models[0].cases[0].sise",
        "x.yml:4: models[1].cases[1]",
        "x.yml:4: models[1].cases[0].expected_s",
        "x.yml:4: models[1]",
        "x.yml:5: modles",
    ]
    assert len(str(caught.value).splitlines()) == 2 * len(keys)


def test_a_file_of_mistakes_without_end_is_cut_short() -> None:
    """Twenty are shown, with a note that there may be more."""
    text = "version: 1\n" + "".join(f"key_{index}: 1\n" for index in range(30))
    with pytest.raises(FileError) as caught:
        decode_yaml(RegistryFile, text.encode(), "x.yml")
    *errors, last = list_errors(caught.value)
    assert [error.what for error in errors] == [
        f"x.yml:{line}: key_{line - 2}: unknown key" for line in range(2, 22)
    ]
    assert (last.what, last.fix) == ("x.yml: may hold more mistakes than these", "Fix these first.")


SCRAPS = st.text("ab1: -[]{},&*!'\"#|>?\n\t\\%~", max_size=40)


@given(data=st.binary(max_size=40) | SCRAPS.map(str.encode))
@settings(max_examples=300)
def test_no_bytes_raise_anything_but_a_file_error(data: bytes) -> None:
    """Every exception of the parser becomes a refusal of two lines."""
    lines: list[str] = []
    try:
        parse_yaml(data, "x")
    except FileError as error:
        lines = str(error).splitlines()
    assert all(line.startswith("x:") for line in lines[::2])
    assert len(lines) % 2 == 0


KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | KEYS
    | st.sampled_from(
        ["yes", "No", "null", "1", "1e5", "tag:smoke", "a: b", "a #b", "-", "cuda:1", "2026-01-01"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(value=PLAIN)
@settings(max_examples=300)
def test_rendered_values_read_back_the_same(value: object) -> None:
    """Here and in any other YAML reader."""
    text = f"a: {write_scalar(value)}  # comment\n"
    assert parse_yaml(text.encode(), "x").value == {"a": value}
    assert yaml.safe_load(text) == {"a": value}


def test_what_the_parser_refuses_has_the_fix_of_its_key() -> None:
    """It is reported once: the parser's problem, with an example of the key."""
    text = "version: 1\nmodels:\n  - {name: a, factory: b:c, cases: [{expected_s: .nan}]}\n"
    with pytest.raises(FileError) as caught:
        decode_yaml(RegistryFile, text.encode(), "x.yml")
    (error,) = list_errors(caught.value)
    assert error.problem == FINITE + "'.nan'"
    assert error.fix.startswith("Write, for example, `expected_s: ")
