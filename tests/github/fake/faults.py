"""Ways in which the fake GitHub misbehaves on request."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
NO_RIGHT = "Resource not accessible by integration"


@dataclass(kw_only=True)
class Fault:
    """What happens instead of the answer, or after it, the next ``times`` times.

    ``applied`` lets the request take effect before the fault strikes. ``status`` 0 sends no answer at
    all: the connection is reset. ``truncate`` cuts the true answer short, ``trickle_s`` sends it a byte
    at a time with that pause.
    """

    status: int = 0
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json; charset=utf-8"
    applied: bool = False
    truncate: bool = False
    trickle_s: float = 0.0
    times: int = 1

    def make_body(self) -> bytes:
        if self.body is not None:
            return self.body
        return json.dumps({"message": self.message, "documentation_url": "https://docs.github.com"}).encode()


def html(status: int) -> Fault:
    page = b"<html><body><h1>Unicorn!</h1></body></html>"
    return Fault(status=status, body=page, content_type="text/html")


@dataclass
class Rule:
    """A fault, or something to call, for the requests that match."""

    method: str
    pattern: str
    fault: Fault | None = None
    call: Callable[[], object] | None = None

    def matches(self, method: str, path: str) -> bool:
        if self.fault is not None and self.fault.times < 1:
            return False
        return method == self.method and re.search(self.pattern, path) is not None
