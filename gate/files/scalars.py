"""The decoders of single values: numbers, text, true and false, null."""

from __future__ import annotations

import math
from typing import cast

from gate.files.misfits import expect
from gate.files.untrusted import MAX_INTEGER


def decode_float(value: object) -> float:
    """Decode a finite number; a whole one may do without its point."""
    kind = type(value)
    if kind is float or (kind is int and -MAX_INTEGER <= cast("int", value) <= MAX_INTEGER):
        number = float(cast("float", value))
        if math.isfinite(number):
            return number
    raise expect("a finite number", value)


def decode_int(value: object) -> int:
    """Decode a whole number of at most 64 bits."""
    if type(value) is not int:
        raise expect("a whole number", value)
    if not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise expect("a whole number of at most 64 bits", value)
    return value


def decode_bool(value: object) -> bool:
    """Decode true or false, and no number."""
    if type(value) is bool:
        return value
    raise expect("true or false", value)


def decode_str(value: object) -> str:
    """Decode text that can be written down again."""
    if type(value) is not str:
        raise expect("text", value)
    if not value.isascii() and not is_encodable(value):
        raise expect("text that UTF-8 can hold", value, "Replace what is no character in it.")
    return value


def is_encodable(text: str) -> bool:
    """Whether it is without lone surrogates, which JSON can spell and no report could hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def decode_none(value: object) -> None:
    """Decode null."""
    if value is not None:
        raise expect("null", value)
