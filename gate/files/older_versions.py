"""Files of older versions, which held sentences: what those of now make of them.

A sentence becomes a fact that is nothing but its words, so that it reads as it did, and is dropped where
the words of others are not told. What does not fit is left as it is: the decoder says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gate.records import Code, Disturbance
from gate.records.selftest import Complaint

_Change = Callable[[Any], Any]  # of whatever stands in the file

# The command that a step ends with.
_COMMAND = re.compile(r"`?(?P<command>compile-gate [^`]*[^`.])`?\.?$")
# The release of torch in the id of an environment, which was all that told of the base's.
_RELEASE = re.compile(r"-torch([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})")


def migrate_verdict(content: dict[str, Any]) -> dict[str, Any]:
    """Turn the plain content of a ``verdict.json`` of version 1 into that of version 2."""
    made = dict(content)
    if "explanations" in made:
        made["causes"] = made.pop("explanations")
    if "headline" in made:
        made["headline"] = [_make_text(made["headline"])]
    if isinstance(made.get("base"), dict):
        made["base"] = {**made["base"], "torch": _find_release(made.get("baseline_environments"))}
    return _change_lists(
        made,
        comparisons=_change_sentence("remarks", _list_remarks),
        causes=_change_sentence("fact", _make_text),
        next_steps=_change_step,
        notes=_make_text,
    )


def migrate_calibration(content: dict[str, Any]) -> dict[str, Any]:
    """Turn the plain content of a ``calibration.json`` of version 1 into that of version 2."""
    return _change_lists(content, notes=_make_text, unstable=_change_sentence("told", _make_text))


def migrate_selftest(content: dict[str, Any]) -> dict[str, Any]:
    """Turn the plain content of a ``selftest.json`` of version 1 into that of version 2."""
    return _change_lists(content, attempts=_change_sentence("told", _make_text), scores=_change_score)


def migrate_run(content: dict[str, Any]) -> dict[str, Any]:
    """Turn the plain content of a ``run.json`` of version 1 into that of version 2."""
    return _change_lists(content, trials=_change_trial)


def migrate_version_2(content: dict[str, Any]) -> dict[str, Any]:
    """Turn the plain content of version 2 into that of version 3: sentences were left of measuring."""
    return _change_lists(
        content,
        failures=_change_sentence("told", _make_text, old="message"),
        trials=_change_lists_of(warnings=_change_warning, unknown=_make_text),
        notes=_change_warning,
        evidence=_change_evidence,
    )


def _change_lists(content: dict[str, Any], **changes: _Change) -> dict[str, Any]:
    """Change each item of these lists, as far as they are lists."""
    lists = {key: content[key] for key in changes if isinstance(content.get(key), list)}
    return {**content, **{key: [changes[key](one) for one in found] for key, found in lists.items()}}


def _change_lists_of(**changes: _Change) -> _Change:
    """The change of a record with such lists."""
    return lambda one: _change_lists(one, **changes) if isinstance(one, dict) else one


def _make_text(text: object, **more: object) -> dict[str, object]:
    words = {"text": text, **more}
    return {"code": Code.TEXT.value, "names": {name: [word] for name, word in words.items() if word != ""}}


def _change_sentence(key: str, tell: Callable[[str], object], old: str = "sentence") -> _Change:
    """The change of a record whose sentence, under ``old``, becomes what stands under ``key``."""

    def change(one: Any) -> Any:  # noqa: ANN401 -- whatever stands in the file
        if not isinstance(one, dict) or not isinstance(one.get(old), str):
            return one
        rest = {name: item for name, item in one.items() if name != old}
        return {**rest, key: tell(one[old])}

    return change


def _list_remarks(sentence: str) -> list[object]:
    values, colon, told = sentence.partition(": ")
    has_values = bool(colon) and " -> " in values
    return [_make_text(told, values=f"{values}: ") if has_values else _make_text(sentence)]


# What version 2 told in words of its own: the name that has them, and what was said before.
_WORDED = {
    "not_forked": ("why", "workers are not forked, each imports everything itself: "),
    "left_to_eager": ("text", ""),
    "unknown_here": ("text", ""),
    "reference_too_large": ("why", "drift is not measured, "),
}


def _change_warning(one: Any) -> Any:  # noqa: ANN401 -- whatever stands in the file
    if not isinstance(one, dict) or not isinstance(names := one.get("names"), dict):
        return one
    name, before = _WORDED.get(str(one.get("code")), ("", ""))
    if not isinstance(words := names.get(name), list):
        return one
    return {"code": Code.WARNING.value, "names": {"text": [f"{before}{word}" for word in words]}}


def _change_evidence(one: Any) -> Any:  # noqa: ANN401 -- whatever stands in the file
    if not isinstance(one, dict):
        return one
    change = _change_lists_of(unknown=_make_text)
    return {key: change(told) if key in {"before", "after"} else told for key, told in one.items()}


def _change_trial(one: Any) -> Any:  # noqa: ANN401 -- whatever stands in the file
    if isinstance(one, dict) and isinstance(one.get("warnings"), list):
        told = [{"code": Code.WARNING.value, "names": {"text": [text]}} for text in one["warnings"]]
        one = {**one, "warnings": told}
    conditions = one.get("conditions") if isinstance(one, dict) else None
    if not isinstance(conditions, dict) or not isinstance(phrases := conditions.get("disturbances"), list):
        return one
    codes = [
        next((code.value for word, code in _PHRASES.items() if word in str(told)), told) for told in phrases
    ]
    return {**one, "conditions": {**conditions, "disturbances": codes}}


# Words of version 1, each of one disturbance.
_PHRASES = {
    "other programs kept": Disturbance.CROWDED,
    "the hypervisor took": Disturbance.STOLEN,
    "the container's quota": Disturbance.HELD_BACK,
    "processor cores lowered": Disturbance.HEATED,
    "MiB were swapped": Disturbance.SWAPPED,
    "of memory were free": Disturbance.SHORT_OF_MEMORY,
    "the device lowered": Disturbance.THROTTLED,
    "other processes used": Disturbance.SHARED,
    "of the device's memory": Disturbance.HELD_MEMORY,
}


def _change_score(one: Any) -> Any:  # noqa: ANN401 -- whatever stands in the file
    if not isinstance(one, dict) or not isinstance(one.get("complaint"), str):
        return one
    found = (code.value for word, code in _COMPLAINTS.items() if word in one["complaint"])
    return {**one, "complaint": next(found, None)}


# Words of version 1, each of one complaint.
_COMPLAINTS = {
    "could not be tried": Complaint.UNTRIED,
    "turned red": Complaint.ALARMS,
    "were missed": Complaint.MISSES,
    "were caught": Complaint.FEW_CAUGHT,
}


def _change_step(step: Any) -> Any:  # noqa: ANN401 -- whatever stands in the file
    found = _COMMAND.search(step) if isinstance(step, str) else None
    if found is None:
        return _make_text(step)
    return _make_text(step[: found.start()].rstrip(), command=found["command"])


def _find_release(environments: object) -> str:
    names = environments if isinstance(environments, list) else []
    found = (_RELEASE.search(name) for name in names if isinstance(name, str))
    return next((one[1] for one in found if one), "")
