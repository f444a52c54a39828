"""The lines of a traceback that a reader sees."""

import contextlib
import importlib
from collections.abc import Callable
from pathlib import Path
from traceback import FrameSummary

import pytest
import torch

import gate
from gate.errors import UsageError
from gate.measure.failures import choose_frames, format_error
from gate.measure.workload.build import load_factory

GATE, TORCH = Path(gate.__file__).parent, Path(torch.__file__).parent


def make_frames(*files: str) -> list[FrameSummary]:
    """Frames of these files, outermost first."""
    return [FrameSummary(file, 1, "f", lookup_line=False) for file in files]


@pytest.mark.parametrize(
    ("files", "shown"),
    [
        pytest.param(
            [f"{pytest.__file__}", f"{GATE}/suite/fixture.py", f"{GATE}/measure/trial.py", "m.py", "n.py"],
            ["m.py", "n.py"],
            id="the gate's and pytest's are left out",
        ),
        pytest.param(
            [f"{GATE}/measure/build.py", importlib.__file__, "<frozen importlib._bootstrap>", "m.py"],
            ["m.py"],
            id="an import",
        ),
        pytest.param(
            [f"{TORCH}/a.py", "m.py", f"{TORCH}/b.py", "n.py", f"{TORCH}/c.py", f"{TORCH}/d.py"],
            ["m.py", "n.py", f"{TORCH}/d.py"],
            id="of torch's what raised",
        ),
        pytest.param(
            [f"{GATE}/measure/trial.py", f"{TORCH}/a.py", f"{TORCH}/b.py"],
            [f"{TORCH}/a.py", f"{TORCH}/b.py"],
            id="a fault of torch alone is told whole",
        ),
        pytest.param(
            [f"{GATE}/measure/trial.py", f"{GATE}/models/bert.py"],
            [f"{GATE}/models/bert.py"],
            id="a reference model is measured code",
        ),
        pytest.param(
            [f"{GATE}/measure/trial.py", f"{GATE}/selftest/planted.py"],
            [f"{GATE}/selftest/planted.py"],
            id="a planted fault stands for measured code",
        ),
        pytest.param([contextlib.__file__, f"{GATE}/a.py", "m.py"], ["m.py"], id="a context that was left"),
        pytest.param([f"{GATE}/measure/trial.py"], [], id="nothing but the gate"),
    ],
)
def test_frames_are_those_of_measured_code(files: list[str], shown: list[str]) -> None:
    """The lines that a reader can change, in their order."""
    frames = make_frames(*(file.replace("pytest/__init__.py", "_pytest/runner.py") for file in files))
    assert shown == [frame.filename for frame in choose_frames(frames)]


def fail_to_load(factory: str) -> BaseException:
    """Load a factory and return the exception, without the frame of this file."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever the module raises
        load_factory(factory)
    assert caught.value.__traceback__ is not None
    return caught.value.with_traceback(caught.value.__traceback__.tb_next)


@pytest.fixture
def make_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Name a module that can be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    return lambda name: tmp_path / f"{name}.py"


def test_failing_import_shows_the_users_line(make_module: Callable[[str], Path]) -> None:
    """Between the factory's module and the message there is nothing of importlib."""
    file = make_module("lacks_a_package")
    file.write_text("import no_such_package_at_all\n")
    assert format_error(fail_to_load("lacks_a_package:build")) == (
        "Traceback (most recent call last):\n"
        f'  File "{file}", line 1, in <module>\n'
        "    import no_such_package_at_all\n"
        "ModuleNotFoundError: No module named 'no_such_package_at_all'\n"
    )


def test_causes_are_shown_with_their_lines(make_module: Callable[[str], Path]) -> None:
    """An error that was raised from another shows both, each with the user's lines."""
    source = "try:\n    {}[3]\nexcept KeyError as error:\n    raise ValueError('no 3') from error\n"
    make_module("raises_from").write_text(source)
    text = format_error(fail_to_load("raises_from:build"))
    assert text.count("raises_from.py") == 2
    assert "KeyError: 3" in text
    assert "ValueError: no 3" in text
    assert "importlib" not in text


def test_error_without_a_line_of_the_users_has_no_traceback() -> None:
    """A missing module of a factory leaves only the fix to show."""
    assert format_error(fail_to_load("no_such_bench.models:build")) == (
        "Modules are imported from the directory of gate.yml, or from what is installed.\n"
    )


def test_a_package_named_as_this_one_is_reported() -> None:
    """The import name ``gate`` is taken: a user's own package of that name is never found."""
    with pytest.raises(UsageError, match="`gate` is compile-gate's own package"):
        load_factory("gate.moe:build")
