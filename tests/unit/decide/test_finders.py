"""Every finder of causes is asked."""

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

MODULES = [import_module(one.name) for one in pkgutil.iter_modules(explain.__path__, f"{explain.__name__}.")]


def test_every_finder_is_asked() -> None:
    """A function of an inquiry that is called find_* and stands in no list would find nothing, in silence."""
    finders = {
        function
        for module in MODULES
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if name.startswith("find_") and list(inspect.signature(function).parameters) == ["inquiry"]
    }
    assert finders == set(causes.FINDERS)


def test_every_cause_has_a_weight() -> None:
    """One without could not be ranked; words of older versions and counts of others are not."""
    assert set(CAUSES) == CAUSE_CODES - {Code.MORE}


def test_weights_descend() -> None:
    """The table reads from what accounts for most to a detail."""
    weights = [weight for weight, _ in CAUSES.values()]
    assert weights == sorted(weights, reverse=True)


def test_every_cause_can_be_found() -> None:
    """A code with a weight and words that no finder makes would never be told, in silence."""
    made = {name for module in MODULES for name in re.findall(r"Code\.(\w+)", _read_finders(module))}
    # Of trials, by :func:`find_mismatch` and :func:`find_unlike`.
    made |= {code.name for code in MISMATCH_CODES | UNLIKE_CODES}
    assert {code.name for code in CAUSES} - made == set()


def test_every_kind_that_is_asked_for_is_named_by_a_metric() -> None:
    """Otherwise no change asks for it, and its finder finds nothing, in silence."""
    asked = [kind for kind in causes.FINDERS.values() if kind]
    assert [kind for kind in asked if not explained_by(kind)] == []


def _read_finders(module: ModuleType) -> str:
    return "" if module.__name__.endswith(".inquiry") else inspect.getsource(module)
