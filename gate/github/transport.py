"""One HTTP exchange, bounded in size and time; how long to wait for the next; what can go wrong."""

import email.utils
import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import ProxyManager, Retry
from urllib3.exceptions import ConnectTimeoutError, HTTPError, InvalidHeader, NewConnectionError

from gate.errors import MachineError
from gate.github.job import find_text, find_value
from gate.sizes import KIB, MIB

API_VERSION = "2022-11-28"  # the REST version whose OpenAPI description the tests hold us to
TIMEOUT_S = 30.0  # to connect, and between two packets; GitHub ends a request of its own accord after 10 s
EXCHANGE_S = 60.0  # whole answer: a body that trickles must not hold the job
MAX_REDIRECTS = 5
# The largest honest answer is a page of 100 comments of 65,536 characters, up to 4 bytes each.
MAX_ANSWER_BYTES = 32 * MIB
_CHUNK_BYTES = 64 * KIB
# Repeats, after 0, 2 and 4 s, what did not connect, and what may be sent twice of what GitHub answers by 5xx.
# What GitHub asks to wait for is compute_wait_s's: urllib3 would wait as long as any header says.
_RETRIES = Retry(
    total=3,
    backoff_factor=1.0,
    status_forcelist=range(500, 600),
    allowed_methods={"GET", "PATCH", "DELETE"},
    respect_retry_after_header=False,
    raise_on_status=False,
)
_REDIRECTS = range(300, 400)
LATER = "Try again later, and look at GitHub's status page."
_LONGEST_S = 1e11  # beyond any date in seconds; no number of an answer is too large for a float
SECONDARY_WAIT_S = 60.0  # GitHub's advice where a secondary limit names no time


class GitHubError(MachineError):
    """GitHub did not do what was asked."""


class UncertainWriteError(GitHubError):
    """A POST may or may not have taken effect; find out before sending it again."""


class DeniedError(GitHubError):
    """The token is wrong or lacks a right: 401, or a 403 that is about rights."""


class MissingError(GitHubError):
    """There is no such thing, or the token may not know of it: 404 or 410."""


class RejectedError(GitHubError):
    """Any other 4xx, or a redirect that must not be followed."""


def get_text(payload: object, path: str, pattern: re.Pattern[str] | None = None) -> str:
    """Get a text that GitHub's description promises; raises GitHubError."""
    if text := find_text(payload, path, pattern):
        return text
    raise make_answer_error(path)


def get_number(payload: object, path: str) -> int:
    """Get a number above 0; raises as :func:`get_text`."""
    value = find_value(payload, path)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise make_answer_error(path)


def make_answer_error(path: str) -> GitHubError:
    return GitHubError(f"GitHub's answer has no usable {path!r}", "Try again later.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """``limit_bytes`` bounds the answer's body."""

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
    """Header names match in any case; ``next_url`` is the next page of a list."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    next_url: str = ""


class ExchangeFailedError(Exception):
    """No complete answer, although the request may have taken effect."""


class BrokenAnswerError(ExchangeFailedError):
    """An answer began, and is of no use."""


class _Adapter(HTTPAdapter):
    """Trusts the system's certificates as well as those of requests: a company's GitHub needs them."""

    def init_poolmanager(self, *args: object, **options: object) -> None:
        super().init_poolmanager(*args, ssl_context=ssl.create_default_context(), **options)  # type: ignore[arg-type]

    def proxy_manager_for(self, proxy: str, **options: object) -> ProxyManager:
        context = ssl.create_default_context()
        manager: ProxyManager = super().proxy_manager_for(proxy, ssl_context=context, **options)
        return manager


class _Session(requests.Session):
    """Sends the token to one origin, and no password of ~/.netrc; speaks https, or as the API does."""

    def __init__(self, api_url: str, token: str) -> None:
        super().__init__()
        self._token = token
        self.auth = self._authorize  # with one of its own, requests asks ~/.netrc for none
        self.max_redirects = MAX_REDIRECTS
        self.adapters.clear()
        for scheme in {"https", urlsplit(api_url).scheme}:
            self.mount(f"{scheme}://", _Adapter(max_retries=_RETRIES))
        self.headers.update(
            {
                "User-Agent": "compile-gate",
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": API_VERSION,
            }
        )

    def _authorize(self, prepared: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token:
            prepared.headers["Authorization"] = f"Bearer {self._token}"
        return prepared

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        if self.should_strip_auth(str(response.request.url), str(prepared_request.url)):
            prepared_request.headers.pop("Authorization", None)


class Transport:
    def __init__(self, api_url: str, token: str, exchange_s: float = EXCHANGE_S) -> None:
        self._session = _Session(api_url, token)
        self._exchange_s = exchange_s

    def send(self, request: Request) -> Response:
        """Send a request, and follow redirects of a GET.

        Raises:
            ExchangeFailedError: No complete answer.
            RejectedError: A redirect of a write, to a weaker scheme, or one too many.
            GitHubError: A body beyond ``request.limit_bytes``.
        """
        try:
            with self._session.request(
                request.method,
                request.url,
                data=request.payload,
                headers={"Content-Type": "application/json"} if request.payload is not None else {},
                timeout=min(TIMEOUT_S, self._exchange_s),
                allow_redirects=request.method == "GET",
                stream=True,
            ) as answer:
                if answer.status_code in _REDIRECTS:
                    what = f"{request.name} is redirected: the repository has moved"
                    raise RejectedError(what, "Use the repository's new name.")
                body = _read_body(answer, request.limit_bytes, self._exchange_s)
        except (requests.TooManyRedirects, ValueError) as error:  # of requests: an address that it cannot use
            what = f"{request.name} is redirected to where it must not go: {type(error).__name__}"
            raise RejectedError(what, "Check the API's address, and proxies.") from None
        except requests.RequestException as error:
            raise _make_failure(request, error) from None
        following = answer.links.get("next", {}).get("url", "")
        return Response(status=answer.status_code, headers=answer.headers, body=body, next_url=following)


def _make_failure(request: Request, error: requests.RequestException) -> Exception:
    """A GitHubError where the request was surely not sent."""
    reason = getattr(error.args[0], "reason", error) if error.args else error
    if isinstance(error, requests.exceptions.ProxyError):
        fix = "Check HTTPS_PROXY, and the name and password in it."
        return GitHubError(f"{request.name}: the proxy lets nothing through", fix)
    if isinstance(error, requests.exceptions.SSLError):
        fix = "Name the certificate of your network in REQUESTS_CA_BUNDLE."
        return GitHubError(f"{request.name}: the certificate is not trusted", fix)
    if isinstance(reason, NewConnectionError | ConnectTimeoutError):
        return GitHubError(f"{request.name}: no connection: {type(reason).__name__}", LATER)
    return ExchangeFailedError(f"no answer: {type(reason).__name__}")


def get_origin(url: str) -> str:
    """Get scheme, host and port: the token is sent where they are the same."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or {'https': 443}.get(parts.scheme, 80)}"


def _read_body(answer: requests.Response, limit_bytes: int, limit_s: float) -> bytes:
    """Read chunks as they come: a whole one might never come."""
    body = bytearray()
    deadline = time.monotonic() + limit_s
    try:
        while chunk := answer.raw.read1(_CHUNK_BYTES, decode_content=True):
            body += chunk
            if len(body) > limit_bytes:
                what = f"GitHub's answer is larger than {limit_bytes:,} bytes"
                raise GitHubError(what, "Nothing of that size is expected.")
            if time.monotonic() > deadline:
                raise BrokenAnswerError(f"the answer took longer than {limit_s:g} s")
    except (HTTPError, OSError) as error:  # urllib3's: requests reads no body itself
        raise BrokenAnswerError(f"the answer broke off: {type(error).__name__}") from None
    return bytes(body)


def compute_wait_s(response: Response, limits: int, now: float) -> float | None:
    """None where GitHub asks for none, and repeating is vain.

    As long as ``Retry-After`` says; else, with no requests left, until ``x-ratelimit-reset``; else, on a
    secondary limit, 60 s, twice as long each time. ``limits`` counts those before; ``now`` is for answers
    without a date.
    """
    if response.status not in (403, 429):
        return None
    try:
        asked_s = _RETRIES.parse_retry_after(response.headers.get("Retry-After", ""))
        return max(1.0, min(asked_s, _LONGEST_S))
    except InvalidHeader:
        pass
    reset = response.headers.get("x-ratelimit-reset", "").strip()
    if response.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        served = _parse_date(response.headers.get("Date", "")) or now
        return max(1.0, min(int(reset), _LONGEST_S) - served + 1.0)  # the reset is in whole seconds
    if response.status == 429 or b"secondary rate limit" in response.body.lower():  # noqa: PLR2004 -- HTTP
        return SECONDARY_WAIT_S * float(2**limits)
    return None


def _parse_date(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
