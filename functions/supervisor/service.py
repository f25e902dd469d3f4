"""The supervisor's HTTP interface.

    GET  /v1/health    is it ready, and what did it prove
    POST /v1/execute   a chunk in, its lines out
    POST /v1/cancel    raises the fence and stops what runs

Every request carries the worker's secret as a bearer token. One that executes or cancels may say for which life of the
supervisor it is meant: one that was started again has forgotten its highest fencing token, and must not be trusted.
Every answer says which request it is for: a line by its chunk's id, all others by the request's nonce.
"""

from __future__ import annotations

import asyncio
import hmac
import platform
import secrets

import preflight
import request_bodies
from http_server import Connection, HttpError, Request
from scheduler import ChunkSeen, Scheduler, StaleToken


class Service:
    def __init__(self, scheduler: Scheduler, secret: str, version: str, mode: str):
        self._scheduler = scheduler
        self._secret = secret.encode()
        self._version = version
        self._mode = mode
        self._instance = secrets.token_urlsafe(6)
        self._state = "starting"
        self._properties = {}
        self._failed = []

    async def become_ready(self) -> bool:
        """Proves isolation; until then, and for ever if it fails, nothing is executed."""
        self._properties, self._failed = await preflight.prove_isolation(self._scheduler)
        self._state = "refused" if self._failed else "ready"
        return not self._failed

    def health(self):
        """(HTTP status, body)"""
        if self._state == "refused":
            return 503, {"state": "refused", "failed": self._failed}
        failure = self._scheduler.failure()
        if failure and self._state == "ready":
            return 503, {"state": "refused", "failed": [preflight.describe_failure("isolation", failure)]}
        if self._state != "ready":
            return 503, {"state": "starting"}
        return 200, {
            "state": "ready",
            "version": self._version,
            "instance": self._instance,
            "python": platform.python_version(),
            "mode": self._mode,
            "slots": len(self._scheduler.slots),
            "memory_mib": self._scheduler.memory_mib,
            "fencing_token": self._scheduler.fencing_token,
            "properties": self._properties,
        }

    def authorize(self, headers: dict) -> None:
        given = headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(given, b"Bearer " + self._secret):
            raise HttpError(401, "unauthorized", "the worker's secret is missing or wrong")

    async def handle(self, request: Request, connection: Connection):
        route = (request.method, request.path)
        if route == ("GET", "/v1/health"):
            return self.health()
        if route == ("POST", "/v1/execute"):
            return await self._execute(request, connection)
        if route == ("POST", "/v1/cancel"):
            return await self._cancel(request)
        raise HttpError(404, "not_found", "there is no such route")

    async def _execute(self, request: Request, connection: Connection):
        status, health = self.health()
        if status != 200:
            raise HttpError(503, "not_ready", "isolation is not proved", state=health["state"])
        self._check_instance(request)
        body = request_bodies.read_object(request.body)
        token, chunk_id, programs, deadline_s = request_bodies.read_chunk(body, self._scheduler.memory_mib)
        request.body = b""
        stream = connection.open_stream(self._scheduler.dispatch)
        try:
            chunk = await self._scheduler.execute(token, chunk_id, programs, deadline_s, stream)
        except StaleToken:
            raise self._stale() from None
        except ChunkSeen:
            raise HttpError(409, "chunk_seen", "a chunk of this id came before under this token") from None
        await _wait_or_stop(chunk, connection)
        await stream.finish()
        return None

    async def _cancel(self, request: Request):
        self._check_instance(request)
        token = request_bodies.read_fencing_token(request_bodies.read_object(request.body))
        try:
            return 200, {"fencing_token": token, "stopped": await self._scheduler.cancel(token)}
        except StaleToken:
            raise self._stale() from None

    def _check_instance(self, request: Request) -> None:
        wanted = request.headers.get("x-supervisor-instance", self._instance)
        if wanted != self._instance:
            raise HttpError(409, "restarted", "this supervisor was started again and knows nothing of its past")

    def _stale(self) -> HttpError:
        now = self._scheduler.fencing_token
        return HttpError(409, "stale_token", "a newer holder has this worker", fencing_token=now)


async def _wait_or_stop(chunk, connection: Connection) -> None:
    """Waits for the chunk's end; stops it when its caller goes away."""
    gone = asyncio.ensure_future(connection.is_closed())
    await asyncio.wait([chunk.over, gone], return_when=asyncio.FIRST_COMPLETED)
    if not chunk.over.done():
        chunk.stop("cancelled")
        await chunk.over
    gone.cancel()
    try:
        await gone
    except (asyncio.CancelledError, ConnectionError):
        pass
