"""A proxy before the service that loses, cuts and refuses what it is told to, and remembers what it saw."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

# What happens to one request: `Faulty` is the proxy's side of it.
Act = Callable[["Faulty"], None]


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    status: int = 0

    @property
    def key(self) -> str | None:
        return self.headers.get("idempotency-key")

    @property
    def json(self) -> Any:
        body = gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body
        return json.loads(body)


@dataclass
class FaultyProxy:
    url: str = ""
    target: str = ""
    seen: list[Seen] = field(default_factory=list)
    acts: dict[str, list[Act]] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def plan(self, method: str, path: str, *acts: Act) -> None:
        """What happens to the next requests to a path (its beginning); all others pass."""
        self.acts.setdefault(f"{method} {path}", []).extend(acts)

    def requests(self, method: str, path: str = "/") -> list[Seen]:
        return [seen for seen in self.seen if seen.method == method and seen.path.startswith(path)]

    def next_act(self, seen: Seen) -> Act:
        with self.changed:
            self.seen.append(seen)
            self.changed.notify_all()
            for wanted, acts in self.acts.items():
                if acts and f"{seen.method} {seen.path}".startswith(wanted):
                    return acts.pop(0)
        return go_through


class Faulty(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultyProxy

    def act(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.request_seen = Seen(self.command, self.path, headers, body)
        try:
            self.proxy.next_act(self.request_seen)(self)
        except OSError:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = act

    def log_message(self, *_args: Any) -> None:
        pass

    @contextmanager
    def forward(self) -> Iterator[http.client.HTTPResponse]:
        target = urlsplit(self.proxy.target)
        seen = self.request_seen
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=60)
        headers = {name: value for name, value in seen.headers.items() if name not in ("host", "connection")}
        try:
            connection.request(seen.method, seen.path, body=seen.body or None, headers=headers)
            answer = connection.getresponse()
            seen.status = answer.status
            with answer:
                yield answer
        finally:
            connection.close()

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.request_seen.status = status
        self.send_response(status)
        for name, value in {**headers, "content_length": str(len(body))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def pass_on(self, answer: http.client.HTTPResponse, *, lines: int | None = None) -> None:
        """Passes an answer on as it comes, or so many of its lines and then nothing any more."""
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "keep-alive"):
                self.send_header(name, value)
        is_measured = answer.getheader("content-length") is not None
        if not is_measured:
            self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while line := answer.readline():
            if lines is not None and (lines := lines - 1) < 0:
                self.close_connection = True
                return
            self.wfile.write(line if is_measured else b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
        if not is_measured:
            self.wfile.write(b"0\r\n\r\n")


def go_through(faulty: Faulty) -> None:
    with faulty.forward() as answer:
        faulty.pass_on(answer)


def drop(faulty: Faulty) -> None:
    """The request never arrives."""
    faulty.close_connection = True


def lose_answer(faulty: Faulty) -> None:
    """The work is done, and nobody is told."""
    with faulty.forward() as answer:
        answer.read()
    faulty.close_connection = True


def lose_connection(faulty: Faulty) -> None:
    """The work goes on, as in a function that never learns that its caller has gone."""
    _go_on_alone(faulty)
    faulty.close_connection = True


def hang(faulty: Faulty) -> None:
    """The same, and the caller is left waiting."""
    _go_on_alone(faulty).join(30)


def _go_on_alone(faulty: Faulty) -> threading.Thread:
    def work() -> None:
        with faulty.forward() as answer:
            answer.read()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def cut_after(lines: int) -> Act:
    def act(faulty: Faulty) -> None:
        with faulty.forward() as answer:
            faulty.pass_on(answer, lines=lines)

    return act


def refuse(status: int, body: bytes = b"", **headers: str) -> Act:
    return lambda faulty: faulty.answer(status, body, **headers)


def problem(status: int, code: str, detail: str = "as planned", **headers: str) -> Act:
    body = json.dumps({"type": f"urn:x:{code}", "title": code, "status": status, "detail": detail, "code": code})
    return refuse(status, body.encode(), content_type="application/problem+json", **headers)


def stream(*lines: dict[str, Any]) -> Act:
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return refuse(200, body, content_type="application/x-ndjson")


@contextmanager
def start_proxy(target: str) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(target=target)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Faulty,), {"proxy": proxy}))
    server.daemon_threads = True
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
