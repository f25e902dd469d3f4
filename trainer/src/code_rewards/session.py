"""One process's side of a client: its connections, its part in the run, the batches that are under way.

Made anew in a forked child or where a client is unpickled: nothing in here can be shared between processes.
"""

from __future__ import annotations

import itertools
import os
import random
import secrets
import sys
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import httpx

from . import exit_hooks
from .config import Endpoint
from .errors import RewardError, RunFinishedError, RunNotFoundError, UnavailableError
from .exchange import batch_path, client_options, run_path, send
from .loop_thread import Job, LoopThread
from .retry import Patience, RetryPolicy
from .runs import RunIdentity, RunKeeper

T = TypeVar("T")
FINISH_LIMIT_S = 90.0
CANCEL_LIMIT_S = 5.0
# For a run that may not exist.
UNSURE_LIMIT_S = 10.0


class Session:
    def __init__(
        self, endpoint: Endpoint, policy: RetryPolicy, identity: RunIdentity | None, rank: int, *, may_finish: bool
    ) -> None:
        self.endpoint = endpoint
        self.policy = policy
        self.rank = rank
        self.pid = os.getpid()
        self.keeper = None if identity is None else RunKeeper(identity)
        self.in_flight: set[str] = set()
        self.is_closed = False
        self.is_shared = False
        self._may_finish = may_finish
        self._remaining: list[str] | None = None
        # Another process of the same rank, say a restarted one, must not take up this one's batches.
        self._nonce = secrets.token_hex(4)
        self._counter = itertools.count(1)
        self._lock = threading.RLock()
        self._thread: LoopThread | None = None
        self._http: httpx.AsyncClient | None = None

    @property
    def http(self) -> httpx.AsyncClient:
        """For coroutines on this session's loop only."""
        if self._http is None:
            self._http = httpx.AsyncClient(**client_options(self.endpoint))
        return self._http

    def next_key(self, run_id: str | None, digest: str) -> str:
        """A request's idempotency key: the same on each retry of it, and no other request's."""
        return f"{run_id or 'default'}.{self.rank}.{self._nonce}.{next(self._counter)}.{digest}"

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Job[T]:
        """Runs a coroutine on this session's loop. Raises `RunFinishedError` when the client is closed."""
        with self._lock:
            if self.is_closed:
                coroutine.close()
                raise RunFinishedError("The client is closed.")
            if self._thread is None:
                self._thread = LoopThread(self._close_http)
                exit_hooks.close_at_exit(self)
            return self._thread.start(coroutine)

    def share(self) -> None:
        """Copies of the client may use the run in other processes, so it is finished though it wasn't used here."""
        self.is_shared = True
        exit_hooks.close_at_exit(self)

    def close(self, limit_s: float = FINISH_LIMIT_S) -> list[str]:
        """Cancels what is under way, finishes the run if that is this process's to do, and closes the connections.

        Answers the ids of sandboxes that are still there. May be called again. Raises `RewardError` when the run could
        not be finished within `limit_s`; it expires by itself then.
        """
        ends_s = time.monotonic() + limit_s
        self.is_closed = True
        try:
            with httpx.Client(**client_options(self.endpoint)) as http:
                self._cancel_batches(http, ends_s)
                if self._remaining is None:
                    self._remaining = self._finish_run(http, ends_s)
        finally:
            self._stop_thread()
        exit_hooks.forget(self)
        return self._remaining

    def close_at_exit(self, limit_s: float) -> None:
        """`close` for when nobody is left to be told: what is left over is said on standard error."""
        try:
            remaining = self.close(limit_s)
        except RewardError as error:
            print(f"code-rewards: the run could not be finished, and expires by itself: {error}", file=sys.stderr)
            return
        if remaining:
            print(f"code-rewards: sandboxes are still there: {', '.join(remaining)}", file=sys.stderr)

    def _cancel_batches(self, http: httpx.Client, ends_s: float) -> None:
        for key in list(self.in_flight):
            left_s = ends_s - time.monotonic()
            if left_s <= 0:
                return
            try:
                send(http, "DELETE", batch_path(key), timeout_s=min(left_s, CANCEL_LIMIT_S))
            except RewardError:
                # Unknown, or not to be reached: finishing the run takes its workers all the same.
                pass

    def _finish_run(self, http: httpx.Client, ends_s: float) -> list[str]:
        keeper = self.keeper
        if keeper is None or not self._may_finish or not (keeper.was_asked_for or self.is_shared):
            return []
        began_s = time.monotonic()
        if not keeper.was_registered:
            ends_s = min(ends_s, began_s + UNSURE_LIMIT_S)
        patience = Patience(RetryPolicy(deadline_s=ends_s - began_s), began_s)
        while True:
            left_s = max(1.0, ends_s - time.monotonic())
            try:
                answer = send(http, "DELETE", run_path(keeper.identity.full_id), timeout_s=left_s)
                return [str(sandbox) for sandbox in answer.get("remaining_sandboxes", [])]
            except RunNotFoundError:
                return []
            except UnavailableError as error:
                wait_s = patience.next_wait_s(time.monotonic(), random.random(), error.retry_after_s)
                if wait_s is None:
                    raise
                time.sleep(wait_s)

    def _stop_thread(self) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop(CANCEL_LIMIT_S)

    async def _close_http(self) -> None:
        if self._http is not None:
            await self._http.aclose()
