"""Python calls of a compile by function: exact, with those within each."""

import cProfile
import itertools
import json
from collections.abc import Callable
from types import CodeType

import pytest
import torch

from gate.measure.calls import list_functions, name_function
from gate.records.run import Called


def inner() -> None:
    """Call nothing."""


def middle() -> None:
    for _ in range(3):
        inner()


def outer() -> None:
    middle()
    middle()
    inner()


def profile(step: Callable[[], None]) -> dict[str, Called]:
    profiler = cProfile.Profile(itertools.count().__next__, subcalls=False, builtins=False)
    profiler.runcall(step)
    return {name.rpartition(".")[2]: called for name, called in list_functions(profiler.getstats()).items()}


def test_calls_within_a_function_are_those_of_all_that_it_calls() -> None:
    """Two of the middle with three each, and one more: 10 with its own, of which 8 within the middle."""
    counts = profile(outer)
    assert (counts["outer"].calls, counts["outer"].within) == (1, 10)
    assert (counts["middle"].calls, counts["middle"].within) == (2, 8)
    assert (counts["inner"].calls, counts["inner"].within) == (7, 7)


def test_functions_are_counted_alike_each_time() -> None:
    """The counter does not depend on time."""
    assert profile(outer) == profile(outer)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (torch.nn.Linear.forward.__code__, "torch.nn.modules.linear.Linear.forward"),
        (json.loads.__code__, "json.__init__.loads"),
        (inner.__code__, "test_compile_calls.inner"),
        ("<built-in method sorted>", "<built-in method sorted>"),
    ],
)
def test_a_function_is_named_without_what_differs_between_machines(code: CodeType | str, name: str) -> None:
    """By its module below the libraries, else by its file alone."""
    assert name_function(code) == name
