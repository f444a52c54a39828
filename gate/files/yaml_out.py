"""Plain values to YAML on one line, as every YAML reader reads it back."""

import json
import re

# Plain in YAML, and text to every YAML reader once the words below are left out.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*|[0-9]+(\.[0-9]+)?%")
_PLAIN_WITH_COLON = re.compile(r"[A-Za-z_][A-Za-z0-9_./:-]*[A-Za-z0-9_]")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
# Characters that JSON may write as they are and YAML may not, or would fold.
_NOT_PRINTABLE = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")


def write_scalar(value: object, *, inside: bool = False) -> str:
    """In YAML's flow style; ``inside`` a list or mapping, a colon needs quotes."""
    if isinstance(value, dict):
        pairs = (
            f"{write_scalar(key, inside=True)}: {write_scalar(value[key], inside=True)}" for key in value
        )
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(write_scalar(item, inside=True) for item in value) + "]"
    if isinstance(value, str) and _is_plain(value, inside=inside):
        return value
    if isinstance(value, float):
        return _render_float(value)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _NOT_PRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _is_plain(text: str, *, inside: bool) -> bool:
    if text.lower() in _WORDS:
        return False
    return bool(_PLAIN.fullmatch(text) or (not inside and _PLAIN_WITH_COLON.fullmatch(text)))


def _render_float(value: float) -> str:
    """YAML 1.1 readers take ``2e-05`` for text: give it the point that they look for."""
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")
