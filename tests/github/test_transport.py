"""One exchange: how long GitHub asks to wait, what an answer must have, and how far it is followed."""

from collections.abc import Mapping
from typing import Any

import pytest
import requests
from fake.clock import FakeClock
from fake.faults import SECONDARY, Fault
from fake.server import TOKEN, FakeGitHub

from gate.github.client import GitHubClient, Patience
from gate.github.transport import (
    GitHubError,
    RejectedError,
    Request,
    Response,
    Transport,
    compute_wait_s,
    get_number,
    get_origin,
    get_text,
)

NOW = 1000.0
SOON = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1030"}


@pytest.mark.parametrize(
    ("status", "headers", "body", "limits", "expected"),
    [
        (403, {"Retry-After": "7"}, "", 0, 7.0),
        (429, {"Retry-After": "7"} | SOON, "", 0, 7.0),
        (429, {"Retry-After": "0"}, "", 0, 1.0),
        (403, SOON, "", 0, 31.0),
        (403, SOON | {"Date": "Thu, 01 Jan 1970 00:16:20 GMT"}, "", 0, 51.0),  # 980 s by the server's clock
        (403, SOON | {"Date": "today"}, "", 0, 31.0),
        (403, SOON | {"x-ratelimit-reset": "900"}, "", 0, 1.0),
        (403, SOON | {"x-ratelimit-reset": "9" * 400}, "", 0, 1e11 - 999.0),
        (403, SOON | {"x-ratelimit-reset": "soon"}, "", 0, None),
        (403, SOON | {"x-ratelimit-remaining": "1"}, "", 0, None),
        (403, {"x-ratelimit-remaining": "0"}, "", 0, None),
        (403, {}, SECONDARY, 0, 60.0),
        (403, {}, SECONDARY.upper(), 1, 120.0),
        (429, {}, "slow down", 2, 240.0),
        (429, SOON | {"x-ratelimit-reset": "soon"}, "", 0, 60.0),
        (403, {}, "no right", 0, None),
        *(
            (status, {"Retry-After": "7"} | SOON, SECONDARY, 0, None)
            for status in (200, 402, 404, 428, 430, 500)
        ),
    ],
)
def test_transport_computes_a_wait_from_what_github_asks_for(
    status: int, headers: Mapping[str, str], body: str, limits: int, expected: float | None
) -> None:
    """A time to wait, or the reset by the server's clock, or a minute, doubled each time; else none."""
    response = Response(status=status, headers=headers, body=body.encode())
    assert compute_wait_s(response, limits, NOW) == expected


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://api.github.com/repos?page=2", "https://api.github.com:443"),
        ("https://api.github.com:443", "https://api.github.com:443"),
        ("https://api.github.com:444", "https://api.github.com:444"),
        ("http://api.github.com", "http://api.github.com:80"),
        ("https://user:secret@API.github.com/", "https://api.github.com:443"),
    ],
)
def test_transport_gets_an_origin_of_scheme_host_and_port(url: str, origin: str) -> None:
    """The token goes to the API's alone."""
    assert get_origin(url) == origin


@pytest.mark.parametrize("value", [0, -1, True, "5", 1.0, None])
def test_transport_gets_a_number_above_nothing(value: object) -> None:
    """An id is 1 or more; anything else is no answer of GitHub's."""
    assert get_number({"run": {"id": 1}}, "run.id") == 1
    with pytest.raises(GitHubError, match=r"no usable 'run\.id'"):
        get_number({"run": {"id": value}}, "run.id")


@pytest.mark.parametrize("value", ["", 5, None, ["x"]])
def test_transport_gets_a_text_that_holds_something(value: object) -> None:
    """An empty one is no answer of GitHub's."""
    assert get_text({"sha": "x"}, "sha") == "x"
    with pytest.raises(GitHubError, match="no usable 'sha'"):
        get_text({"sha": value}, "sha")


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
@pytest.mark.parametrize(("times", "slept", "is_answered"), [(3, [2.0, 4.0], True), (4, [2.0, 4.0], False)])
def test_transport_retries_three_times(
    github: FakeGitHub, clock: FakeClock, method: str, times: int, slept: list[float], is_answered: bool
) -> None:
    """After 0, 2 and 4 s, what may be sent twice; then the last answer is an error."""
    github.state.add_pull(7, "a" * 40)
    comment = github.state.add_comment(7, "old")
    github.fail(method, "/comments/", Fault(status=599, times=times))
    path, body = f"issues/comments/{comment['id']}", {"body": "new"} if method == "PATCH" else None
    if is_answered:
        github.client._call(method, github.client._make_url(path), body)
    else:
        with pytest.raises(GitHubError, match="GitHub answers 599"):
            github.client._call(method, github.client._make_url(path), body)
    assert (len(github.requests), clock.slept) == (4, slept)


@pytest.mark.parametrize(("status", "is_redirect"), [(300, True), (399, True), (400, False)])
def test_transport_takes_300_to_399_for_redirects(github: FakeGitHub, status: int, is_redirect: bool) -> None:
    """A write is not carried elsewhere; other refusals keep their number."""
    github.state.add_pull(7, "a" * 40)
    github.fail("POST", "/comments$", Fault(status=status, headers={"Location": github.storage_url}))
    with pytest.raises(RejectedError) as caught:
        github.client.post("issues/7/comments", {"body": "text"})
    assert ("has moved" in caught.value.what) is is_redirect
    assert (f"GitHub answers {status}" in caught.value.what) is not is_redirect


def test_transport_session_follows_five_redirects(github: FakeGitHub) -> None:
    """A sixth is one too many, of a page that leads to itself."""
    github.state.add_pull(7, "a" * 40)
    target = f"{github.api_url}/repos/octo-org/models/pulls/7"
    github.fail("GET", "/pulls/7", Fault(status=302, headers={"Location": target}, times=5))
    assert github.client.get("pulls/7")["number"] == 7
    github.fail("GET", "/pulls/7", Fault(status=302, headers={"Location": target}, times=6))
    with pytest.raises(RejectedError, match="TooManyRedirects"):
        github.client.get("pulls/7")
    assert len(github.requests) == 6 + 6


@pytest.mark.parametrize(("exchange_s", "timeout_s"), [(None, 30.0), (60.0, 30.0), (10.0, 10.0)])
@pytest.mark.parametrize("payload", [None, b"{}"])
def test_transport_sends_within_its_time(
    monkeypatch: pytest.MonkeyPatch, exchange_s: float | None, timeout_s: float, payload: bytes | None
) -> None:
    """Half a minute to connect and between packets, or less where the whole exchange has less."""
    asked: dict[str, Any] = {}

    def request(*_: object, **options: object) -> None:
        asked.update(options)
        raise requests.ConnectionError

    transport = (
        Transport("https://x", TOKEN) if exchange_s is None else Transport("https://x", TOKEN, exchange_s)
    )
    monkeypatch.setattr(transport._session, "request", request)
    with pytest.raises(Exception, match="no answer: ConnectionError"):
        transport.send(Request(method="POST", url="https://x", payload=payload))
    assert (asked["timeout"], asked["allow_redirects"], asked["stream"]) == (timeout_s, False, True)
    assert asked["headers"] == ({} if payload is None else {"Content-Type": "application/json"})


def test_transport_requests_have_room_for_the_largest_page() -> None:
    """A hundred comments of 65,536 characters; a client waits two minutes, and one for an answer."""
    assert Request(method="GET", url="https://x").limit_bytes == 32 * 1024 * 1024 > 100 * 65_536 * 4
    assert Patience() == Patience(max_wait_s=120.0, exchange_s=60.0)


def test_transport_request_is_named_without_its_query() -> None:
    """It may hold a signature."""
    assert Request(method="GET", url="https://x/a/b?signature=secret").name == "GET /a/b"


def test_transport_session_without_a_token_sends_none(github: FakeGitHub) -> None:
    """An empty one would be refused where anybody may read."""
    github.state.add_pull(7, "a" * 40)
    GitHubClient(api_url=github.api_url, token="", repository="octo-org/models").get("pulls/7")
    assert "Authorization" not in github.requests[-1].headers
    github.violations.clear()  # every other request has one
