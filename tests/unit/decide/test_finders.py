"""Every finder of causes is called, and every cause can occur."""

import inspect
import pkgutil
import re
from importlib import import_module
from types import ModuleType

from gate.decide import explain
from gate.decide.explain import causes
from gate.decide.explain.inquiry import CAUSES
from gate.metrics import explained_by
from gate.records.codes import Code
from gate.records.facts import CAUSE_CODES, MISMATCH_CODES, UNLIKE_CODES

MODULES = [
    import_module(module.name) for module in pkgutil.iter_modules(explain.__path__, f"{explain.__name__}.")
]


def test_every_finder_is_listed() -> None:
    """A find_* function that is in no list would never be called."""
    finders = {
        function
        for module in MODULES
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if name.startswith("find_") and list(inspect.signature(function).parameters) == ["inquiry"]
    }
    assert finders == set(causes.FINDERS)


def test_every_cause_has_a_weight() -> None:
    """Codes of causes have a weight, except those of older versions."""
    assert set(CAUSES) == CAUSE_CODES - {Code.MORE}


def test_weights_descend() -> None:
    """The table is sorted by weight."""
    weights = [weight for weight, _ in CAUSES.values()]
    assert weights == sorted(weights, reverse=True)


def test_every_cause_can_be_found() -> None:
    """Some finder makes each code that has a weight."""
    codes = {name for module in MODULES for name in re.findall(r"Code\.(\w+)", _read_finders(module))}
    # Of trials, by :func:`find_mismatch` and :func:`find_unlike`; and after the verdict, by a bisection.
    codes |= {code.name for code in (*MISMATCH_CODES, *UNLIKE_CODES, Code.FIRST_BAD)}
    assert {code.name for code in CAUSES} - codes == set()


def test_every_kind_that_is_asked_for_is_named_by_a_metric() -> None:
    """Some metric asks for each kind of cause."""
    asked = [kind for kind in causes.FINDERS.values() if kind]
    assert [kind for kind in asked if not explained_by(kind)] == []


def _read_finders(module: ModuleType) -> str:
    return "" if module.__name__.endswith(".inquiry") else inspect.getsource(module)
