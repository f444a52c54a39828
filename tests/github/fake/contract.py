"""GitHub's OpenAPI description as a judge of requests and responses."""

import gzip
import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from openapi_core import Config, OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.templating.responses.exceptions import ResponseNotFound
from openapi_core.testing import MockRequest, MockResponse

_EXTRACTS = Path(__file__).parent.parent / "openapi"
_HOST = "https://github.example"
# Where GitHub's examples do not keep to GitHub's schemas: required keys that they lack.
_MENDS: dict[str, dict[str, Any]] = {
    "pull-request": {"requested_teams": []},
    "pull-request-simple-items": {"requested_teams": []},
    "commit": {"files": []},
    "private-user-response-with-public-and-private-profile-information": {"user_view_type": "private"},
    "full-repository-default-response": {"language": None, "source": None},
}
PREFIXES = {"api.github.com": "", "ghes-3.17": "/api/v3"}


@cache
def load_description(host: str) -> dict[str, Any]:
    """Load the extract of one host's description."""
    text = gzip.decompress((_EXTRACTS / f"{host}.json.gz").read_bytes())
    description: dict[str, Any] = json.loads(text)
    description["servers"] = [{"url": _HOST + PREFIXES[host]}]
    return description


def make_example(host: str, name: str) -> Any:
    """Make a fresh object from one of the description's own examples, less what they get wrong."""
    return json.loads(_encode_example(host, name))


@cache
def _encode_example(host: str, name: str) -> bytes:
    value = load_description(host)["components"]["examples"][name]["value"]
    example = value[0] if isinstance(value, list) else value
    return json.dumps({**example, **_MENDS.get(name, {})}).encode()


@cache
def _load_judge(host: str) -> OpenAPI:
    # extract.py has judged the description itself: that takes a second and more, in each process.
    unjudged = Config(spec_validator_cls=None)  # type: ignore[arg-type] # it takes None, as OpenAPI says
    return OpenAPI.from_dict(load_description(host), config=unjudged)


# What was judged before: most tests ask the same things and see the same runs and pull requests.
_JUDGED: dict[bytes, list[str]] = {}


def _judge_once(what: object, judge: Callable[[], list[str]]) -> list[str]:
    digest = hashlib.sha256(repr(what).encode()).digest()
    if digest not in _JUDGED:
        _JUDGED[digest] = judge()
    return _JUDGED[digest]


class Contract:
    """Checks requests to one host and its answers; ``check_`` methods list the mistakes."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._judge = _load_judge(host)

    def check_request(self, method: str, target: str, headers: dict[str, str], body: bytes) -> list[str]:
        asked = (self._host, method, target, sorted(headers.items()), body)
        request = _make_request(method, target, headers, body)
        return _judge_once(asked, lambda: self._check(self._judge.validate_request, request))

    def check_response(self, method: str, target: str, answer: tuple[int, bytes, str]) -> list[str]:
        exchange = (self._host, method, target, answer)
        return _judge_once(exchange, lambda: self._judge_response(method, target, answer))

    def _judge_response(self, method: str, target: str, answer: tuple[int, bytes, str]) -> list[str]:
        status, body, content_type = answer
        request = _make_request(method, target, {}, b"")
        response = MockResponse(data=body, status_code=status, content_type=content_type)
        if status in (204, 302):
            return []  # neither has a body to judge
        try:
            return self._check(self._judge.validate_response, request, response)
        except ResponseNotFound:
            # Any operation may answer these two, though the description does not always say so.
            return [] if status in (403, 404) else [f"{method} {target}: {status} is not documented"]

    def _check(self, validate: Any, *parts: Any) -> list[str]:
        try:
            validate(*parts)
        except ResponseNotFound:
            raise
        except OpenAPIError as error:
            causes = getattr(error.__cause__, "schema_errors", [])
            return [f"{parts[0].method} {parts[0].path}: {error}", *(str(cause)[:300] for cause in causes)]
        return []


def _make_request(method: str, target: str, headers: dict[str, str], body: bytes) -> MockRequest:
    parts = urlsplit(target)
    return MockRequest(
        host_url=_HOST,
        method=method.lower(),
        path=parts.path,
        args=dict(parse_qsl(parts.query)),
        headers=headers,
        data=body or None,
        content_type=headers.get("Content-Type", ""),
    )
