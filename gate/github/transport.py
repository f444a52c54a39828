"""One HTTP exchange, bounded in size and time, how long to wait for the next, and what can go wrong.

None of that says anything about the measured code. A GitHubError has exit code 4, as every trouble with the
surroundings: no usable answer after bounded repeats, one beyond its size, or a wait for longer than the
budget has left.
"""

import email.utils
import re
import time
import urllib.request
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException, HTTPResponse
from urllib.error import URLError
from urllib.parse import urljoin, urlsplit

from gate.errors import MachineError
from gate.github.job import find_text, find_value


class GitHubError(MachineError):
    """GitHub did not do what was asked."""


class UncertainWriteError(GitHubError):
    """A POST may or may not have taken effect; find out before sending it again."""


class DeniedError(GitHubError):
    """The token is wrong or lacks a right: 401, or a 403 that is about rights."""


class MissingError(GitHubError):
    """There is no such thing, or the token may not know of it: 404 or 410."""


class RejectedError(GitHubError):
    """GitHub refuses the request as such: any other 4xx, or a redirect that must not be followed."""


def need_text(payload: object, path: str, pattern: re.Pattern[str] | None = None) -> str:
    """Find a text that GitHub's description promises.

    Raises:
        GitHubError: It is missing, empty, or does not match.
    """
    if text := find_text(payload, path, pattern):
        return text
    raise describe_surprise(path)


def need_number(payload: object, path: str) -> int:
    """Find a number above 0; raises as :func:`need_text`."""
    value = find_value(payload, path)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise describe_surprise(path)


def describe_surprise(path: str) -> GitHubError:
    """The error of an answer that is not what GitHub's description promises."""
    return GitHubError(f"GitHub's answer has no usable {path!r}", "Try again later.")


API_VERSION = "2022-11-28"  # the REST version whose OpenAPI description the tests hold us to
TIMEOUT_S = 30.0  # to connect, and between two packets; GitHub ends a request of its own accord after 10 s
EXCHANGE_S = 60.0  # whole answer: a body that trickles must not hold the job
MAX_REDIRECTS = 5
# The largest honest answer is a page of 100 comments of 65,536 characters, up to 4 bytes each.
MAX_ANSWER_BYTES = 32 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_SIZE_DIGITS = 20  # of a Content-Length: 64 bits have less
_REDIRECTS = {301, 302, 303, 307, 308}
_NEXT = re.compile(r'<(https?://[^<>]+)>; *rel="next"')  # no other scheme: urllib opens files too


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
    headers: Message
    body: bytes

    @property
    def next_url(self) -> str:
        """Where the next page of a list is; empty where this is the last."""
        found = _NEXT.search(self.headers.get("Link", ""))
        return found[1] if found else ""


class ExchangeFailedError(Exception):
    """No complete answer. ``is_sent`` tells whether the request may have reached the server."""

    def __init__(self, problem: str, *, is_sent: bool) -> None:
        super().__init__(problem)
        self.problem = problem
        self.is_sent = is_sent


class _EveryAnswer(urllib.request.HTTPErrorProcessor):
    """Hands on every answer as it came: no status is an error, and no redirect is followed."""

    def http_response(self, request: urllib.request.Request, response: HTTPResponse) -> HTTPResponse:
        """Hand on an answer."""
        del request
        return response

    https_response = http_response


class Transport:
    """Sends requests to one API; ``exchange_s`` bounds each."""

    def __init__(self, api_url: str, token: str, exchange_s: float = EXCHANGE_S) -> None:
        self._origin = get_origin(api_url)
        self._token = token
        self._exchange_s = exchange_s
        self._opener = urllib.request.build_opener(_EveryAnswer)

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
            what = f"{request.name} is redirected: the repository has moved"
            raise RejectedError(what, "Use the repository's new name.")
        if not where.hostname or where.scheme not in {"https", urlsplit(self._origin).scheme}:
            raise RejectedError("GitHub redirects to an address that is not https", "Check proxies.")
        return target

    def _send_once(self, request: Request, url: str) -> Response:
        prepared = urllib.request.Request(  # noqa: S310 - the API's, its next page's, or a redirect's that was checked
            url, request.payload, self._make_headers(request, url), method=request.method
        )
        try:
            with self._opener.open(prepared, timeout=min(TIMEOUT_S, self._exchange_s)) as answer:
                body = _read_body(answer, request.limit_bytes, self._exchange_s)
        except URLError as error:  # while connecting or sending: no whole request has arrived
            raise ExchangeFailedError(type(error.reason).__name__, is_sent=False) from None
        except (OSError, HTTPException, ValueError) as error:
            raise ExchangeFailedError(f"the answer broke off: {type(error).__name__}", is_sent=True) from None
        return Response(status=answer.status, headers=answer.headers, body=body)

    def _make_headers(self, request: Request, url: str) -> dict[str, str]:
        headers = {"User-Agent": "compile-gate"}
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


def _read_body(answer: HTTPResponse, limit_bytes: int, limit_s: float) -> bytes:
    length = answer.headers.get("Content-Length", "")
    expected = int(length) if length.isdecimal() and len(length) < _SIZE_DIGITS else 0
    if expected > limit_bytes:
        raise _describe_size(limit_bytes)
    body = bytearray()
    deadline = time.monotonic() + limit_s
    while chunk := answer.read1(_CHUNK_BYTES):
        body += chunk
        if len(body) > limit_bytes:
            raise _describe_size(limit_bytes)
        if time.monotonic() > deadline:
            raise ExchangeFailedError(f"the answer took longer than {limit_s:g} s", is_sent=True)
    if len(body) < expected:
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
