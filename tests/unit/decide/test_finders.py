"""Every finder of causes is asked."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

from gate.decide import explain
from gate.decide.explain import causes
from gate.decide.explain.inquiry import WEIGHTS
from gate.records import Code
from gate.records.codes import CAUSE_CODES


def test_every_finder_is_asked() -> None:
    """A function of an inquiry that is called find_* and stands in no list would find nothing, in silence."""
    names = (one.name for one in pkgutil.iter_modules(explain.__path__, f"{explain.__name__}."))
    finders = {
        function
        for module in map(import_module, names)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if name.startswith("find_") and list(inspect.signature(function).parameters) == ["inquiry"]
    }
    assert finders == set(causes._FINDERS)


def test_every_cause_has_a_weight() -> None:
    """One without could not be ranked; words of older versions and counts of others are not."""
    assert set(WEIGHTS) == CAUSE_CODES - {Code.TEXT, Code.MORE}
