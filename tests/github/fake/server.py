"""The fake GitHub's servers: the API, and the storage that artifact downloads are redirected to."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from fake.contract import PREFIXES, Contract
from fake.faults import Fault, Rule
from fake.routes import Query, find_route, not_found
from fake.state import OWNER, REPO, State
from gate.github.client import GitHubClient, Patience

TOKEN = "ghs_a-token-that-must-not-be-seen"
Handle = Callable[["_Handler", bytes], None]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request that arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class FakeGitHub:
    """A GitHub on loopback; see the package for how to use it."""

    def __init__(self, host: str = "api.github.com") -> None:
        self.violations: list[str] = []
        self.requests: list[Seen] = []
        self._rules: list[Rule] = []
        self._contract = Contract(host)
        self._prefix = PREFIXES[host]
        # Servers outlive the fakes that use them: starting and stopping two takes longer than most tests.
        self._api, self._storage = _take_server(), _take_server()
        self.api_url = f"http://127.0.0.1:{self._api.server_address[1]}{self._prefix}"
        self.storage_url = f"http://localhost:{self._storage.server_address[1]}/artifact"
        self.state = State(host, self.api_url)
        self._api.handle, self._storage.handle = self._handle_api, self._handle_storage

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for server in (self._api, self._storage):
            server.handle = _refuse
            _IDLE.append(server)

    def connect(self, patience: Patience) -> GitHubClient:
        """Make a client of this GitHub's repository."""
        return GitHubClient(
            api_url=self.api_url, token=TOKEN, repository=f"{OWNER}/{REPO}", patience=patience
        )

    @cached_property
    def client(self) -> GitHubClient:
        """One client, with patience for a busy machine."""
        return self.connect(Patience(exchange_s=60.0))

    @property
    def environ(self) -> dict[str, str]:
        """The variables by which a job finds this GitHub."""
        return {
            "GITHUB_API_URL": self.api_url,
            "GITHUB_REPOSITORY": f"{OWNER}/{REPO}",
            "GITHUB_TOKEN": TOKEN,
            "no_proxy": "*",
        }

    def fail(self, method: str, pattern: str, fault: Fault) -> None:
        """Break the next ``fault.times`` requests whose path matches."""
        self._rules.append(Rule(method, pattern, fault=fault))

    def call_before(self, method: str, pattern: str, call: Callable[[], object]) -> None:
        """Call something before each matching request is handled; it runs in the server's thread."""
        self._rules.append(Rule(method, pattern, call=call))

    def list_writes(self) -> list[str]:
        """The requests that change something, as "METHOD path"."""
        writes = (
            seen for seen in self.requests if seen.method != "GET" and not seen.path.endswith("/graphql")
        )
        return [f"{seen.method} {seen.path}" for seen in writes]

    def _handle_storage(self, handler: _Handler, _: bytes) -> None:
        """Storage on another host: the token must not come here."""
        parts = urlsplit(handler.path)
        self.requests.append(Seen(method="GET", path=parts.path, headers=dict(handler.headers), body=b""))
        if TOKEN in str(handler.headers):
            self.violations.append("the token reached the storage host")
        archive = self.state.archives.get(int(parts.path.rsplit("/", 1)[1]), b"")
        fault = self._find_fault("GET", parts.path)
        self._reply(handler, (200, archive, "application/zip", {}), fault)

    def _handle_api(self, handler: _Handler, body: bytes) -> None:
        parts = urlsplit(handler.path)
        path = unquote(parts.path).removeprefix(self._prefix)
        headers = dict(handler.headers)
        self.requests.append(Seen(method=handler.command, path=path, headers=headers, body=body))
        self._check_headers(handler.command, path, handler.headers)
        fault = self._find_fault(handler.command, path)
        if fault is not None and not fault.applied and not fault.truncate and not fault.trickle_s:
            self._reply(handler, (0, b"", "", {}), fault)
            return
        answer = self._answer(handler, path, body)
        self._reply(handler, answer, fault)

    def _check_headers(self, method: str, path: str, headers: Message) -> None:
        expected = {
            "Authorization": f"Bearer {TOKEN}",
            "X-GitHub-Api-Version": "2022-11-28",
            "Accept": "application/vnd.github+json",
        }
        for name, value in expected.items():
            if headers.get(name) != value:
                self.violations.append(f"{method} {path}: header {name} is {headers.get(name)!r}")
        if not headers.get("User-Agent"):
            self.violations.append(f"{method} {path}: no User-Agent")

    def _find_fault(self, method: str, path: str) -> Fault | None:
        for rule in list(self._rules):
            if not rule.matches(method, path):
                continue
            if rule.call is not None:
                rule.call()
            elif rule.fault is not None:
                rule.fault.times -= 1
                return rule.fault
        return None

    def _answer(self, handler: _Handler, path: str, body: bytes) -> tuple[int, bytes, str, dict[str, str]]:
        parts = urlsplit(handler.path)
        if parts.path == f"{self._prefix.removesuffix('/v3')}/graphql":
            viewer = {"login": self.state.author}
            return 200, json.dumps({"data": {"viewer": viewer}}).encode(), "application/json", {}
        route = find_route(handler.command, path)
        if route is None:
            status, value = not_found()
            return status, json.dumps(value).encode(), "application/json", {}
        respond, parameters, template = route
        # Less the port, which differs from server to server and is nothing that GitHub describes.
        headers = {name: value for name, value in handler.headers.items() if name != "Host"}
        target = f"{self._prefix}{_fill(template, parameters)}?{parts.query}"
        self.violations += self._contract.check_request(handler.command, target, headers, body)
        query = Query(
            path=parameters,
            query=dict(parse_qsl(parts.query)),
            body=json.loads(body) if body else None,
            storage_url=self.storage_url,
        )
        with self.state.lock:
            status, value, *more = respond(self.state, query)
            more_headers = dict(more[0]) if more else {}
            value, links = _paginate(value, query.query, f"{self.api_url}{quote(path)}")
            payload = b"" if value is None else json.dumps(value).encode()
        content_type = "application/json; charset=utf-8"
        answer = (status, payload, "application/json")
        self.violations += self._contract.check_response(handler.command, target, answer)
        return status, payload, content_type, more_headers | links

    def _reply(
        self, handler: _Handler, answer: tuple[int, bytes, str, dict[str, str]], fault: Fault | None
    ) -> None:
        status, body, content_type, headers = answer
        if fault is None:
            handler.reply(status, body, headers | {"Content-Type": content_type})
        elif fault.truncate:
            handler.reply(status, body, headers | {"Content-Type": content_type}, cut=len(body) // 2)
        elif fault.trickle_s:
            handler.trickle(status, body, fault.trickle_s)
        elif not fault.status:
            handler.reset()
        else:
            faulty = dict(fault.headers) | {"Content-Type": fault.content_type}
            handler.reply(fault.status, fault.make_body(), faulty)


def _fill(template: str, parameters: Mapping[str, str]) -> str:
    """Fill a template so that each parameter is one segment, which is all the judge can match."""
    filled = template.replace("+}", "}")
    for name, value in parameters.items():
        filled = filled.replace(f"{{{name}}}", quote(value, safe=""))
    return filled


def _paginate(value: Any, query: Mapping[str, str], url: str) -> tuple[Any, dict[str, str]]:
    key = next(
        (
            k
            for k in ("artifacts", "workflow_runs", "jobs")
            if isinstance(value, dict) and isinstance(value.get(k), list)
        ),
        "",
    )
    items = value[key] if key else value
    if not isinstance(items, list):
        return value, {}
    size, page = int(query.get("per_page", "30")), int(query.get("page", "1"))
    shown = items[(page - 1) * size : page * size]
    links = {}
    if page * size < len(items):
        following = urlencode({**query, "page": page + 1})
        links = {"Link": f'<{url}?{following}>; rel="next", <{url}?page=99>; rel="last"'}
    return ({key: shown, "total_count": len(items)} if key else shown), links


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits 40 ms for the client to acknowledge its headers

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        assert isinstance(self.server, _Server)
        self.server.handle(self, body)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle

    def reply(self, status: int, body: bytes, headers: Mapping[str, str], cut: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])
        if cut is not None:
            self.close_connection = True

    def trickle(self, status: int, body: bytes, pause_s: float) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            for byte in body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(pause_s)
        except OSError:
            self.close_connection = True  # the client has had enough

    def reset(self) -> None:
        """Close with a TCP reset and without an answer."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.close_connection = True
        self.connection.close()
        self.wfile = _Nowhere()  # type: ignore[assignment] # the base class flushes it once more

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Nowhere:
    closed = False

    def flush(self) -> None:
        """Nothing to flush."""

    def close(self) -> None:
        """Nothing to close."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    handle: Handle

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may hang up, as one that met its limit does; anything else is a bug of the fake."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _refuse(handler: _Handler, _: bytes) -> None:
    """The answer between two fakes: nobody should ask then."""
    handler.send_error(500, "no test is running")


_IDLE: list[_Server] = []


def _take_server() -> _Server:
    """Take a server that no fake uses, or start one."""
    if _IDLE:
        return _IDLE.pop()
    server = _Server(("127.0.0.1", 0), _Handler)
    server.handle = _refuse
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.5}, daemon=True).start()
    return server
