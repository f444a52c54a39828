"""The GitHub REST client: JSON in and out, pages, and the waiting that GitHub asks for.

    pull = client.get("pulls/7")                                 # decoded JSON; redirects are followed
    for artifact in client.paginate("actions/runs/1/artifacts", key="artifacts"):
    made = client.post("issues/7/comments", {"body": "..."})     # never repeated blindly

A path is below the repository's; quote foreign parts with :func:`quote_part`. Broken answers are asked for
again three times, except for POST. One client waits at most 120 s in all; a longer wait fails at once.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from gate.github.job import find_text, make_line, write_log
from gate.github.transport import (
    EXCHANGE_S,
    LATER,
    BrokenAnswerError,
    DeniedError,
    ExchangeFailedError,
    GitHubError,
    MissingError,
    RejectedError,
    Request,
    Response,
    Transport,
    UncertainWriteError,
    compute_wait_s,
    get_origin,
)
from gate.installation import name_page

MAX_WAIT_S = 120.0  # of all waiting together: a job must end while somebody still looks at it
REPEAT_WAITS_S = (1.0, 2.0, 4.0)  # before the repeats after a 5xx or a broken connection
WRITE_SPACING_S = 1.0  # GitHub's advice between writes
PER_PAGE = 100
MAX_PAGES = 40  # an issue holds at most 2,500 comments: 25 pages
_SHOWN_CHARS = 200  # of GitHub's own message in ours

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    max_wait_s: float = MAX_WAIT_S
    exchange_s: float = EXCHANGE_S


class GitHubClient:
    def __init__(
        self, *, api_url: str, token: str, repository: str = "", patience: Patience | None = None
    ) -> None:
        self.repository = repository  # owner/name
        self._api_url = api_url.rstrip("/")
        self._token = token
        self._patience = patience or Patience()
        self._transport = Transport(self._api_url, token, self._patience.exchange_s)
        self._next_write = 0.0  # monotonic
        self.waited_s = 0.0

    def get(self, path: str, params: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401 -- JSON
        return self._call("GET", self._make_url(path, params))[0]

    def paginate(
        self, path: str, params: Mapping[str, object] | None = None, key: str = ""
    ) -> Iterator[dict[str, Any]]:
        """Yield the objects of a list over all its pages; ``key`` names the field that holds the list."""
        url = self._make_url(path, {"per_page": PER_PAGE, **(params or {})})
        for _ in range(MAX_PAGES):
            page, response = self._call("GET", url)
            items = page.get(key) if key and isinstance(page, dict) else page
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise GitHubError(f"GitHub's answer to GET {path} is not a list", "Try again later.")
            yield from items
            url = response.next_url
            if not url:
                return
            if get_origin(url) != get_origin(self._api_url):
                raise GitHubError(f"the next page of {path} is at another host", "Check proxies.")
        raise GitHubError(f"GET {path} has more than {MAX_PAGES} pages", "Narrow the question.")

    def post(self, path: str, body: object) -> Any:  # noqa: ANN401 -- JSON
        """Post a JSON value once; repeated only where GitHub limited the rate.

        Raises:
            UncertainWriteError: It was sent and may have taken effect.
        """
        return self._call("POST", self._make_url(path), body)[0]

    def patch(self, path: str, body: object) -> Any:  # noqa: ANN401 -- JSON
        return self._call("PATCH", self._make_url(path), body)[0]

    def delete(self, path: str) -> None:
        try:
            self._call("DELETE", self._make_url(path))
        except MissingError:
            return

    def find_login(self) -> str:
        """Find whom the token writes as; empty where GitHub does not say.

        For an app's token only GraphQL says so. An Enterprise Server has it next to /api/v3.
        """
        url = f"{self._api_url.removesuffix('/v3')}/graphql"
        try:
            answer, _ = self._call("POST", url, {"query": "{ viewer { login } }"})
        except GitHubError:
            return ""
        return find_text(answer, "data.viewer.login")

    def wait_to_write(self) -> None:
        time.sleep(max(0.0, self._next_write - time.monotonic()))

    def download(self, path: str, limit_bytes: int) -> bytes:
        """The token is not sent to another host. Raises GitHubError where it is larger than the limit."""
        request = Request(method="GET", url=self._make_url(path), limit_bytes=limit_bytes)
        return self._send(request, bytes)[0]

    def _make_url(self, path: str, params: Mapping[str, object] | None = None) -> str:
        query = f"?{urlencode({name: str(value) for name, value in params.items()})}" if params else ""
        return f"{self._api_url}/repos/{self.repository}/{path}{query}"

    def _call(self, method: str, url: str, body: object = None) -> tuple[Any, Response]:
        payload = None if body is None else json.dumps(body).encode()
        return self._send(Request(method=method, url=url, payload=payload), _decode_json)

    def _send(self, request: Request, decode: Callable[[bytes], T]) -> tuple[T, Response]:
        """Send a request until it has a usable answer; return that decoded, and raw."""
        repeats = limits = 0
        while True:
            try:
                response = self._exchange(request)
                if response.status < 400:  # noqa: PLR2004 -- HTTP's classes
                    return decode(response.body), response
            except ExchangeFailedError as failed:
                if request.method == "POST":
                    problem = f"{request.name}: {failed}; it may have taken effect"
                    raise UncertainWriteError(problem, "Look for it before sending it again.") from None
                error = GitHubError(f"{request.name}: {failed}", LATER)
                if repeats == len(REPEAT_WAITS_S) or not isinstance(failed, BrokenAnswerError):
                    raise error from None
                self._wait(REPEAT_WAITS_S[repeats], error)
                repeats += 1
                continue
            wait_s = compute_wait_s(response, limits, time.time())
            if wait_s is None:
                raise self._make_error(request, response)
            limit = f"{request.name}: GitHub limits the rate"
            self._wait(wait_s, GitHubError(limit, "Try again later."))
            limits += 1

    def _exchange(self, request: Request) -> Response:
        if request.method != "GET":
            self.wait_to_write()
            self._next_write = time.monotonic() + WRITE_SPACING_S
        response = self._transport.send(request)
        if not (200 <= response.status < 300 or 400 <= response.status < 500):  # noqa: PLR2004 -- HTTP's classes
            raise ExchangeFailedError(f"GitHub answers {response.status}")
        return response

    def _wait(self, seconds: float, error: GitHubError) -> None:
        """Wait, or raise ``error`` where the budget does not allow it."""
        if self.waited_s + seconds > self._patience.max_wait_s:
            raise error
        write_log(f"{error.what}; asking again in {seconds:.0f} s")
        self.waited_s += seconds
        time.sleep(seconds)

    def _make_error(self, request: Request, response: Response) -> GitHubError:
        try:
            message = self._clean(find_text(_decode_json(response.body), "message"))
        except BrokenAnswerError:
            message = ""
        what = f"{request.name}: GitHub answers {response.status}{': ' if message else ''}{message}"
        if response.status in (401, 403):
            needed = self._clean(response.headers.get("X-Accepted-GitHub-Permissions", ""))
            rights = f"the permission {needed}" if needed else "the permission it lacks"
            return DeniedError(what, f"Give the job's token {rights}: see {name_page('github')}.")
        if response.status in (404, 410):
            return MissingError(what, "Check the name, and that the token may see it.")
        return RejectedError(what, "Check the request against GitHub's message.")

    def _clean(self, text: str) -> str:
        return make_line(text.replace(self._token, "***") if self._token else text, _SHOWN_CHARS)


def quote_part(text: str) -> str:
    return quote(text, safe="")


def _decode_json(body: bytes) -> Any:  # noqa: ANN401 -- JSON
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        raise BrokenAnswerError("GitHub's answer is not JSON") from None
