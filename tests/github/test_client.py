"""The client against the fake GitHub: pages, waiting, faults, redirects, limits, and the token."""

import select
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from fake.clock import FakeClock
from fake.faults import NO_RIGHT, SECONDARY, Fault, html
from fake.server import TOKEN, FakeGitHub

from gate.github.client import GitHubClient, Patience, quote_part
from gate.github.transport import (
    DeniedError,
    GitHubError,
    MissingError,
    RejectedError,
    Response,
    Transport,
    UncertainWriteError,
    compute_wait_s,
)

COMMENTS = "issues/7/comments"


@pytest.fixture(autouse=True)
def _pull(github: FakeGitHub) -> None:
    github.state.add_pull(7, "a" * 40)


@pytest.mark.parametrize("github", ["api.github.com", "ghes-3.17"], indirect=True)
@pytest.mark.parametrize(("comments", "pages"), [(0, 1), (30, 1), (100, 1), (101, 2), (150, 2)])
def test_pages(github: FakeGitHub, comments: int, pages: int) -> None:
    """All pages of a list are read by following the Link header, a hundred a page."""
    for index in range(comments):
        github.state.add_comment(7, f"comment {index}")
    bodies = [comment["body"] for comment in github.client.paginate(COMMENTS)]
    assert bodies == [f"comment {index}" for index in range(comments)]
    assert len(github.requests) == pages


LINK = '<{}>; rel="next"'


@pytest.mark.parametrize(
    ("body", "link", "words", "asked"),
    [
        (b"[]", LINK.format("https://evil.example/page2"), "at another host", 1),  # the token would go there
        (b"[]", LINK.format("{}/repos/octo-org/models/issues/7/comments?page=2"), "more than 40 pages", 40),
        *((body, "", "is not a list", 1) for body in (b"{}", b"[1]", b'"text"', b"null")),
    ],
)
def test_pages_that_lead_nowhere(github: FakeGitHub, body: bytes, link: str, words: str, asked: int) -> None:
    """A next page elsewhere, a list without end and what is no list of objects are refused."""
    headers = {"Link": link.format(github.api_url)} if link else {}
    github.fail("GET", "/comments$", Fault(status=200, body=body, headers=headers, times=99))
    with pytest.raises(GitHubError, match=words):
        list(github.client.paginate(COMMENTS))
    assert len(github.requests) == asked


WAITS = [
    (Fault(status=403, message=SECONDARY, headers={"Retry-After": "7"}), [7.0]),
    (Fault(status=429, headers={"Retry-After": "7"}), [7.0]),
    (Fault(status=429, headers={"Retry-After": "0"}), [1.0]),
    (Fault(status=403, message=SECONDARY), [60.0]),
    (Fault(status=429, message="slow down"), [60.0]),
    (Fault(status=429, headers={"Retry-After": "soon"}), [60.0]),
    (html(502), []),
    (Fault(status=500), []),
    (Fault(status=503, times=3), [2.0, 4.0]),
    (Fault(times=2), [2.0]),
    (Fault(truncate=True), [1.0]),
    (Fault(truncate=True, times=3), [1.0, 2.0, 4.0]),
    (Fault(status=200, body=b'{"number": 7'), [1.0]),
    (Fault(status=200, body=b"<html>", content_type="text/html"), [1.0]),
    (Fault(status=200, body=b"[" * 100_000), [1.0]),
]


@pytest.mark.parametrize("method", ["GET", "PATCH"])
@pytest.mark.parametrize(("fault", "slept"), WAITS, ids=lambda value: str(getattr(value, "status", "")))
def test_waits(github: FakeGitHub, clock: FakeClock, method: str, fault: Fault, slept: list[float]) -> None:
    """The client waits as long as GitHub asks, and repeats after short faults."""
    again = Fault(**vars(fault))
    comment = github.state.add_comment(7, "old", github.state.author)
    path = f"issues/comments/{comment['id']}"
    github.fail(method, "/comments/", again)
    answer = github.client.get(path) if method == "GET" else github.client.patch(path, {"body": "new"})
    assert answer["id"] == comment["id"]
    assert clock.slept == slept


def test_waits_until_reset(github: FakeGitHub, clock: FakeClock) -> None:
    """With no requests left, the client waits until the reset by the server's own clock."""
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(clock.time()) + 30)}
    github.fail("GET", "/pulls/7", Fault(status=403, message="API rate limit exceeded", headers=headers))
    github.client.get("pulls/7")
    assert clock.slept == [pytest.approx(31.0, abs=2.0)]


NOON = 1_764_590_400.0  # 2025-12-01 12:00:00 UTC
OF_NOON = "Mon, 01 Dec 2025 12:00:00 GMT"
NONE_LEFT = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOON) + 30)}


@pytest.mark.parametrize(
    ("status", "headers", "limits", "wait_s"),
    [
        (403, NONE_LEFT | {"Date": OF_NOON}, 0, 31.0),  # by the server's clock: ours is 10 s ahead
        (403, NONE_LEFT, 0, 21.0),
        (403, NONE_LEFT | {"Date": "noon"}, 0, 21.0),
        (403, NONE_LEFT | {"x-ratelimit-reset": str(int(NOON) - 5)}, 0, 1.0),
        (403, NONE_LEFT | {"Retry-After": "7"}, 0, 7.0),
        (403, NONE_LEFT | {"x-ratelimit-remaining": "1"}, 0, None),
        (403, NONE_LEFT | {"x-ratelimit-reset": "soon"}, 0, None),
        (429, NONE_LEFT | {"x-ratelimit-reset": "soon"}, 0, 60.0),
        (429, {}, 1, 120.0),
        (429, {}, 3, 480.0),
        (403, {}, 0, None),
        (500, {"Retry-After": "7"}, 0, None),
    ],
)
def test_how_long_an_answer_asks_to_wait(
    status: int, headers: dict[str, str], limits: int, wait_s: float | None
) -> None:
    """As GitHub's headers say, in their order of precedence; without them by the number of limits before."""
    response = Response(status=status, headers=headers, body=b"{}")
    assert compute_wait_s(response, limits, NOON + 10) == wait_s


def test_secondary_limit_grows(github: FakeGitHub, clock: FakeClock) -> None:
    """A second secondary limit would need 120 s more than the 60 s waited: beyond the budget, at once."""
    github.fail("GET", "/pulls/7", Fault(status=403, message=SECONDARY, times=9))
    with pytest.raises(GitHubError):
        github.client.get("pulls/7")
    assert clock.slept == [60.0]


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "3600"},
        {"Retry-After": "9" * 400},
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9" * 400},
    ],
)
def test_budget(github: FakeGitHub, clock: FakeClock, headers: dict[str, str]) -> None:
    """A wait of an hour, or for ever, is not begun."""
    github.fail("GET", "/pulls/7", Fault(status=429, headers=headers))
    with pytest.raises(GitHubError):
        github.client.get("pulls/7")
    assert clock.slept == []
    assert len(github.requests) == 1


@pytest.mark.parametrize(
    ("fault", "expected", "fix"),
    [
        (Fault(status=401, message="Bad credentials"), DeniedError, "the permission it lacks"),
        (Fault(status=403, message=NO_RIGHT), DeniedError, "the permission it lacks"),
        (
            Fault(
                status=403,
                message=NO_RIGHT,
                headers={
                    "X-Accepted-GitHub-Permissions": "pull_requests=write",
                    "x-ratelimit-remaining": "4999",
                },
            ),
            DeniedError,
            "the permission pull_requests=write",
        ),
        (html(403), DeniedError, "the permission it lacks"),
        (Fault(status=404, message="Not Found"), MissingError, ""),
        (Fault(status=410, message="Gone"), MissingError, ""),
        (Fault(status=409, message="Conflict"), RejectedError, ""),
        (Fault(status=422, message="Validation Failed"), RejectedError, ""),
        (Fault(status=451, body=b"[1]"), RejectedError, ""),
        (Fault(status=400, body=b"[" * 100_000), RejectedError, ""),
    ],
    ids=lambda value: str(getattr(value, "status", "")),
)
def test_refusals(
    github: FakeGitHub, clock: FakeClock, fault: Fault, expected: type[GitHubError], fix: str
) -> None:
    """A refusal is reported at once, with the missing right where GitHub names it."""
    github.fail("POST", "/comments$", Fault(**vars(fault)))
    with pytest.raises(expected) as caught:
        github.client.post(COMMENTS, {"body": "text"})
    assert fix in caught.value.fix
    assert f"GitHub answers {fault.status}" in caught.value.what
    assert clock.slept == []
    assert len(github.requests) == 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault(applied=True),
        Fault(),
        Fault(status=502, applied=True),
        html(504),
        Fault(truncate=True),
        Fault(trickle_s=0.05),
        Fault(status=200, body=b"{", applied=True),
    ],
    ids=["reset after", "reset before", "502", "504", "truncated", "slow", "broken"],
)
def test_post_is_not_repeated(github: FakeGitHub, fault: Fault) -> None:
    """A POST whose result is unknown is sent once and reported as unknown."""
    patience = Patience(exchange_s=0.3)
    client = github.connect(patience)
    github.fail("POST", "/comments$", Fault(**vars(fault)))
    with pytest.raises(UncertainWriteError, match="it may have taken effect"):
        client.post(COMMENTS, {"body": "text"})
    assert len(github.list_writes()) == 1


def test_client_gives_up_after_three_broken_answers(github: FakeGitHub, clock: FakeClock) -> None:
    """A fourth is an error of GitHub's."""
    github.fail("GET", "/pulls/7", Fault(truncate=True, times=4))
    with pytest.raises(GitHubError, match="/pulls/7: the answer broke off"):
        github.client.get("pulls/7")
    assert clock.slept == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(("asked_s", "is_waited"), [(119, True), (120, True), (121, False)])
def test_client_waits_as_long_as_its_patience(
    github: FakeGitHub, clock: FakeClock, asked_s: int, is_waited: bool
) -> None:
    """All of it may be used up by one wait; a longer one is not begun."""
    github.fail("GET", "/pulls/7", Fault(status=429, headers={"Retry-After": str(asked_s)}))
    if is_waited:
        assert github.client.get("pulls/7")["number"] == 7
    else:
        with pytest.raises(GitHubError, match="limits the rate"):
            github.client.get("pulls/7")
    assert clock.slept == ([asked_s] if is_waited else [])
    assert github.client.waited_s == sum(clock.slept)


@pytest.mark.parametrize(("length", "shown"), [(200, "x" * 200), (201, f"{'x' * 197}...")])
def test_client_shows_200_characters_of_githubs_message(github: FakeGitHub, length: int, shown: str) -> None:
    """A longer one is cut."""
    github.fail("GET", "/pulls/7", Fault(status=409, message="x" * length))
    with pytest.raises(RejectedError) as caught:
        github.client.get("pulls/7")
    assert caught.value.what.endswith(f"GitHub answers 409: {shown}")


def test_client_quotes_every_sign_of_a_part() -> None:
    """A slash would begin another part."""
    assert quote_part("a/b c?d#e") == "a%2Fb%20c%3Fd%23e"


def test_client_posts_json_and_returns_it(github: FakeGitHub) -> None:
    """Names in any language arrive as they are."""
    made = github.client.post(COMMENTS, {"body": "modèle ✓"})
    assert made["body"] == "modèle ✓"
    assert github.client.get(f"issues/comments/{made['id']}") == made


def test_post_after_limit(github: FakeGitHub) -> None:
    """A POST that a rate limit refused did not happen, so it is sent again."""
    github.fail("POST", "/comments$", Fault(status=429, headers={"Retry-After": "2"}))
    github.client.post(COMMENTS, {"body": "text"})
    assert [comment["body"] for comment in github.state.list_comments(7)] == ["text"]


def test_post_nobody_listens(clock: FakeClock) -> None:
    """A POST that could not be sent is repeated like any request, then given up."""
    client = GitHubClient(api_url="http://127.0.0.1:9", token=TOKEN)
    with pytest.raises(GitHubError, match="no connection: NewConnectionError") as caught:
        client.post(COMMENTS, {"body": "text"})
    assert not isinstance(caught.value, UncertainWriteError)
    assert clock.slept == [2.0, 4.0]


def test_proxy_that_is_gone(github: FakeGitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's proxy is used; one that lets nothing through is named."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(GitHubError, match="the proxy lets nothing through") as caught:
        github.connect(Patience()).get("pulls/7")
    assert "HTTPS_PROXY" in caught.value.fix
    assert github.requests == []


@pytest.mark.parametrize("is_behind_proxy", [False, True])
def test_certificate_of_a_company(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_behind_proxy: bool
) -> None:
    """A certificate that only the system trusts works, through a proxy too; another one does not."""
    certificate = make_certificate(tmp_path)
    _Tunnel.asked.clear()
    with serve(ThreadingHTTPServer(("127.0.0.1", 0), _Tunnel)) as port, serve_https(certificate) as url:
        if is_behind_proxy:
            monkeypatch.setenv("no_proxy", "")
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        client = GitHubClient(api_url=url, token=TOKEN, repository="octo-org/models")
        with pytest.raises(GitHubError, match="the certificate is not trusted"):
            client.get("pulls/7")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        client = GitHubClient(api_url=url, token=TOKEN, repository="octo-org/models")
        assert client.get("pulls/7") == {}
    assert set(_Tunnel.asked) == ({url.removeprefix("https://")} if is_behind_proxy else set())


class _Tunnel(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_CONNECT(self) -> None:
        self.asked.append(self.path)
        host, _, port = self.path.partition(":")
        with socket.create_connection((host, int(port))) as other:
            self.send_response(200)
            self.end_headers()
            ends = {self.connection: other, other: self.connection}
            while ready := select.select([*ends], [], [])[0]:
                for end in ready:
                    data = end.recv(65536)
                    if not data:
                        return
                    ends[end].sendall(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def make_certificate(directory: Path) -> Path:
    """Make a certificate of ``localhost``, with its key in the same file."""
    path = directory / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "1"]
    files = ["-keyout", str(path), "-out", str(directory / "certificate.pem")]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    path.write_text(path.read_text() + (directory / "certificate.pem").read_text())
    return path


class _EmptyObject(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer with an object that holds nothing."""
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serve(server: ThreadingHTTPServer) -> Iterator[int]:
    """Serve on a port of its own."""
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@contextmanager
def serve_https(certificate: Path) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _EmptyObject)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with serve(server) as port:
        yield f"https://localhost:{port}"


def test_slow_body(github: FakeGitHub) -> None:
    """A body that trickles is cut off, and asked for again."""
    github.connect(Patience()).get("pulls/7")  # the first answer of its kind is judged for longer
    client = github.connect(Patience(exchange_s=0.3))
    github.fail("GET", "/pulls/7", Fault(trickle_s=0.05))
    assert client.get("pulls/7")["number"] == 7
    assert len(github.requests) == 3


def test_writes_are_spaced(client: GitHubClient, clock: FakeClock) -> None:
    """Two writes are a second apart; reads are not."""
    for _ in range(3):
        client.post(COMMENTS, {"body": "text"})
        client.get("pulls/7")
    assert clock.slept == [1.0, 1.0]


def test_redirect_to_storage(github: FakeGitHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A download follows GitHub's redirect to another host; neither the token nor a ~/.netrc goes along."""
    (tmp_path / "netrc").write_text("machine localhost login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    github.state.add_run(1, "a" * 40)
    artifact = github.state.add_artifact(1, "gate", b"zip bytes")
    path = f"actions/artifacts/{artifact['id']}/zip"
    assert github.client.download(path, 100) == b"zip bytes"
    assert "Authorization" not in github.requests[-1].headers


def test_redirect_within(github: FakeGitHub) -> None:
    """A GET that GitHub redirects within itself (a renamed repository) keeps the token."""
    target = {"Location": f"{github.api_url}/repos/octo-org/models/pulls/7"}
    github.fail("GET", "/old", Fault(status=301, headers=target))
    assert github.client.get("old")["number"] == 7


def test_redirect_of_write(github: FakeGitHub) -> None:
    """A write is not carried elsewhere."""
    github.fail("POST", "/comments$", Fault(status=307, headers={"Location": github.storage_url}))
    with pytest.raises(RejectedError, match="has moved"):
        github.client.post(COMMENTS, {"body": "text"})


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/x", "file:///etc/passwd", "https://", ""])
def test_redirect_to_nonsense(github: FakeGitHub, target: str) -> None:
    """A redirect to another scheme, or to itself for ever, is refused."""
    github.fail("GET", "/pulls/7", Fault(status=302, headers={"Location": target}, times=99))
    with pytest.raises(RejectedError):
        github.client.get("pulls/7")
    assert len(github.requests) <= 6


@pytest.mark.parametrize(
    ("api_url", "schemes"),
    [("https://api.github.com", {"https://"}), ("http://127.0.0.1:1", {"http://", "https://"})],
)
def test_nothing_weaker_than_the_api_is_asked(api_url: str, schemes: set[str]) -> None:
    """A redirect of https to http has nobody to carry it, nor has one to a file."""
    session = Transport(api_url, TOKEN)._session
    assert session.adapters.keys() == schemes


@pytest.mark.parametrize("declared", [True, False])
def test_too_large(github: FakeGitHub, declared: bool) -> None:
    """A download beyond its limit is refused, whether it declares its size or not."""
    github.state.add_run(1, "a" * 40)
    artifact = github.state.add_artifact(1, "gate", b"x" * 1001)
    if not declared:
        github.fail("GET", "/artifact/", Fault(trickle_s=0.000001))
    with pytest.raises(GitHubError, match="1,000 bytes"):
        github.client.download(f"actions/artifacts/{artifact['id']}/zip", 1000)


def test_token_is_not_shown(github: FakeGitHub, capfd: pytest.CaptureFixture[str]) -> None:
    """The token is in no representation, message or output, even where GitHub echoes it."""
    echo = f"bad token {TOKEN}\x1b[31m"
    github.fail("GET", "/pulls/7", Fault(status=401, message=echo))
    with pytest.raises(DeniedError) as caught:
        github.client.get("pulls/7")
    client = github.client
    shown = f"{caught.value!r} {caught.value} {client!r} {vars(client)['_transport']!r} {capfd.readouterr()}"
    assert TOKEN not in shown
    assert "\x1b" not in shown
    assert "bad token ***" in shown


def test_delete_twice(github: FakeGitHub) -> None:
    """Deleting what is gone is no error."""
    comment = github.state.add_comment(7, "text")
    for _ in range(2):
        github.client.delete(f"issues/comments/{comment['id']}")
    assert github.state.list_comments(7) == []
