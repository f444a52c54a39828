"""One HTTP exchange, bounded in size and time, and how long to wait for the next."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit

import requests
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from gate.github.errors import GitHubError, RejectedError

API_VERSION = "2022-11-28"  # the REST version whose OpenAPI description the tests hold us to
CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 30.0  # between two packets; GitHub ends a request of its own accord after 10 s
EXCHANGE_S = 60.0  # whole answer: a body that trickles must not hold the job
MAX_REDIRECTS = 5
# The largest honest answer is a page of 100 comments of 65,536 characters, up to 4 bytes each.
MAX_ANSWER_BYTES = 32 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_REDIRECTS = {301, 302, 303, 307, 308}


class Clock(Protocol):
    """What is used of the module ``time``: injectable, so that tests never wait."""

    def time(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float:
        """Time that never goes back."""

    def sleep(self, seconds: float, /) -> None:
        """Wait."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What to send. ``limit_bytes`` bounds the answer's body."""

    method: str
    url: str
    payload: bytes | None = None
    limit_bytes: int = MAX_ANSWER_BYTES

    @property
    def name(self) -> str:
        """Method and path, for messages: a query may hold a signature."""
        return f"{self.method} {urlsplit(self.url).path}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """What came back. Header names are looked up without regard to case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    links: Mapping[str, str] = field(default_factory=dict)  # relation -> URL, from the Link header


class ExchangeFailedError(Exception):
    """No complete answer. ``is_sent`` tells whether the request may have reached the server."""

    def __init__(self, problem: str, *, is_sent: bool) -> None:
        super().__init__(problem)
        self.problem = problem
        self.is_sent = is_sent


class Transport:
    """Sends requests to one API; ``exchange_s`` bounds each, ``count`` tells how many there were."""

    def __init__(self, api_url: str, token: str, exchange_s: float = EXCHANGE_S) -> None:
        self._origin = get_origin(api_url)
        self._token = token
        self._exchange_s = exchange_s
        self._session = requests.Session()
        self.count = 0

    def __repr__(self) -> str:
        return f"Transport({self._origin!r})"

    def send(self, request: Request) -> Response:
        """Send a request, and follow redirects of a GET.

        Raises:
            ExchangeFailedError: No complete answer.
            RejectedError: A redirect of a write, to a weaker scheme, or one too many.
            GitHubError: A body beyond ``request.limit_bytes``.
        """
        url = request.url
        for _ in range(MAX_REDIRECTS + 1):
            response = self._send_once(request, url)
            if response.status not in _REDIRECTS:
                return response
            url = self._resolve_redirect(request, url, response)
        raise RejectedError(f"{request.name} is redirected in circles", "Check the API's address.")

    def _resolve_redirect(self, request: Request, url: str, response: Response) -> str:
        target = urljoin(url, response.headers.get("Location", ""))
        where = urlsplit(target)
        if request.method != "GET":
            raise RejectedError(
                f"{request.name} is redirected: the repository has moved",
                "Use the repository's new name.",
                response.status,
            )
        if not where.hostname or where.scheme not in {"https", urlsplit(self._origin).scheme}:
            raise RejectedError(
                "GitHub redirects to an address that is not https", "Check proxies.", response.status
            )
        return target

    def _send_once(self, request: Request, url: str) -> Response:
        self.count += 1
        try:
            answer = self._exchange(request, url)
        except requests.RequestException as error:
            raise ExchangeFailedError(type(error).__name__, is_sent=_is_sent(error)) from None
        with answer:
            body = _read_body(answer, request.limit_bytes, self._exchange_s)
        links = {name: str(link.get("url", "")) for name, link in answer.links.items()}
        return Response(status=answer.status_code, headers=answer.headers, body=body, links=links)

    def _exchange(self, request: Request, url: str) -> requests.Response:
        """Send through the session's adapter: the session itself would read a redirect's whole body."""
        prepared = self._session.prepare_request(
            requests.Request(
                request.method,
                url,
                data=request.payload,
                headers=self._make_headers(request, url),
                auth=_keep_headers,
            )
        )
        settings: Any = self._session.merge_environment_settings(url, {}, True, None, None)
        timeout = (CONNECT_TIMEOUT_S, min(READ_TIMEOUT_S, self._exchange_s))
        return self._session.get_adapter(url).send(prepared, timeout=timeout, **settings)

    def _make_headers(self, request: Request, url: str) -> dict[str, str]:
        headers = {"User-Agent": "compile-gate", "Accept-Encoding": "identity"}
        if get_origin(url) != self._origin:
            return headers
        headers |= {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": API_VERSION}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if request.payload is not None:
            headers["Content-Type"] = "application/json"
        return headers


def get_origin(url: str) -> str:
    """Get scheme, host and port of a URL: what must be equal for the token to be sent."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or {'https': 443}.get(parts.scheme, 80)}"


def _keep_headers(prepared: requests.PreparedRequest) -> requests.PreparedRequest:
    """An ``auth`` that adds nothing: without one, requests would look for passwords in ~/.netrc."""
    return prepared


def _is_sent(error: requests.RequestException) -> bool:
    cause: Any = error.args[0] if error.args else None
    reason = getattr(cause, "reason", cause)
    return not isinstance(reason, (NewConnectionError, ConnectTimeoutError))


def _read_body(answer: requests.Response, limit_bytes: int, limit_s: float) -> bytes:
    length = answer.headers.get("Content-Length", "")
    if length.isdecimal() and len(length) < 20 and int(length) > limit_bytes:  # noqa: PLR2004 -- 64 bits
        raise _describe_size(limit_bytes)
    body = bytearray()
    deadline = time.monotonic() + limit_s
    try:
        while chunk := answer.raw.read1(_CHUNK_BYTES, decode_content=True):
            body += chunk
            if len(body) > limit_bytes:
                raise _describe_size(limit_bytes)
            if time.monotonic() > deadline:
                raise ExchangeFailedError(f"the answer took longer than {limit_s:g} s", is_sent=True)
    except (HTTPError, OSError, HTTPException) as error:
        raise ExchangeFailedError(f"the answer broke off: {type(error).__name__}", is_sent=True) from None
    if length.isdecimal() and len(body) < int(length) and "Content-Encoding" not in answer.headers:
        raise ExchangeFailedError("the answer broke off", is_sent=True)
    return bytes(body)


def _describe_size(limit_bytes: int) -> GitHubError:
    return GitHubError(
        f"GitHub's answer is larger than {limit_bytes:,} bytes", "Nothing of that size is expected."
    )


SECONDARY_WAIT_S = 60.0  # GitHub's advice where a secondary limit names no time


def compute_wait_s(response: Response, limits: int, now: float) -> float | None:
    """Compute the seconds that GitHub asks to wait; None where it does not ask, and repeating is vain.

    ``limits`` is how many limits were met before; ``now`` is used where the answer has no date.
    """
    if response.status not in (403, 429):
        return None
    served = _parse_date(response.headers.get("Date", "")) or now
    asked = response.headers.get("Retry-After", "").strip()
    if asked.isdecimal() and len(asked) < _SECONDS_DIGITS:
        return max(1.0, float(asked))
    if date := _parse_date(asked):
        return max(1.0, date - served)
    reset = response.headers.get("x-ratelimit-reset", "").strip()
    if (
        response.headers.get("x-ratelimit-remaining") == "0"
        and reset.isdecimal()
        and len(reset) < _SECONDS_DIGITS
    ):
        return max(1.0, float(reset) - served + 1.0)  # the reset is told in whole seconds
    if response.status == 429 or b"secondary rate limit" in response.body.lower():  # noqa: PLR2004 -- HTTP
        return SECONDARY_WAIT_S * float(2**limits)
    return None


_SECONDS_DIGITS = 12  # seconds since the epoch have 10; more is nonsense that float() could not take


def _parse_date(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
