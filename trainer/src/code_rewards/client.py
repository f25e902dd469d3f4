"""The clients: completions in, one reward in [0, 1] or None per completion out."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from . import exit_hooks
from .config import read_endpoint
from .errors import RewardError, RunFinishedError
from .launcher import read_rank
from .loop_thread import Job
from .persistence import keep_trying
from .progress import open_progress
from .results import BatchResult, Usage
from .retry import DEFAULT_DEADLINE_S, DEFAULT_FAULT_BUDGET_S, Patience, RetryPolicy
from .runs import RunIdentity, RunOptions, identify_run
from .scoring import score_batch
from .session import FINISH_LIMIT_S, Session
from .wire import Completion, Options, Task


class BaseClient:
    """What both clients are: where the service is, which run, how patient. Picklable; safe in threads and after fork.

    `url`, `api_key`: default CODE_REWARDS_URL and CODE_REWARDS_API_KEY. `run`: the run that batches count for,
    registered when it is first needed and finished at `close`, at the process's exit, and on a signal that would kill
    it, by rank 0 of the process that made the client; None for the service's default run. `deadline_s`: the longest
    that one call may take; `fault_budget_s`: how much of that may be lost to faults. `progress`: whether to show a bar
    on standard error; None does so on a terminal.

    Raises `MisconfiguredError` when there is no URL or no key.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        run: RunOptions | None = None,
        fault_budget_s: float = DEFAULT_FAULT_BUDGET_S,
        deadline_s: float = DEFAULT_DEADLINE_S,
        progress: bool | None = None,
    ) -> None:
        self._url = url
        self._api_key = api_key
        self._identity = None if run is None else identify_run(run)
        self._policy = RetryPolicy(deadline_s, fault_budget_s)
        self._progress = progress
        self._rank = read_rank()
        self._owner_pid: int | None = os.getpid()
        self._sessions: dict[int, Session] = {}
        read_endpoint(url, api_key)
        exit_hooks.watch_signals()

    @property
    def run_id(self) -> str | None:
        """The run's id, None without one. It may still change until the run is registered."""
        keeper = self._session().keeper
        return None if keeper is None else keeper.identity.full_id

    def register(self) -> str | None:
        """Registers the run now, so that its workers are there when the first batch comes; answers its id.

        Blocks; may be left out. Raises what `score` raises.
        """
        exit_hooks.watch_signals()
        session = self._session()
        return None if session.keeper is None else session.start(register(session)).wait()

    def finish(self, limit_s: float = FINISH_LIMIT_S) -> list[str]:
        """Cancels what is under way, finishes the run, and closes the client.

        Answers the ids of sandboxes that no run needs and that are still there. Blocks, at most about `limit_s`; may be
        called again. Only rank 0 of the process that made the client finishes the run: others leave it alone. Raises
        `RewardError` when the run could not be finished; it expires by itself then.
        """
        return self._session().close(limit_s)

    def __getstate__(self) -> dict[str, Any]:
        session = self._session()
        session.share()
        identity = session.keeper.identity if session.keeper else None
        return {**self.__dict__, "_identity": identity, "_owner_pid": None, "_sessions": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _rank=read_rank())

    def _session(self) -> Session:
        pid = os.getpid()
        session = self._sessions.get(pid)
        if session is None:
            endpoint = read_endpoint(self._url, self._api_key)
            may_finish = self._rank == 0 and self._owner_pid == pid
            made = Session(endpoint, self._policy, self._known_identity(), self._rank, may_finish=may_finish)
            session = self._sessions.setdefault(pid, made)
            exit_hooks.watch_signals()
        return session

    def _known_identity(self) -> RunIdentity | None:
        """In a forked child the run is the one that its parent has come to."""
        keepers = [session.keeper for session in self._sessions.values() if session.keeper is not None]
        return keepers[-1].identity if keepers else self._identity

    def _start(self, completions: Sequence[Completion], tasks: Sequence[Task], options: Options) -> Job[BatchResult]:
        session = self._session()
        return session.start(score_with_progress(session, completions, tasks, options, self._progress))


class RewardClient(BaseClient):
    """For code without an event loop.

    with RewardClient(run=RunOptions(name="first try")) as client:
        rewards = client.score(completions, tasks).rewards
    """

    def score(
        self,
        completions: Sequence[Completion],
        tasks: Sequence[Task],
        *,
        extraction: str = "first",
        reasoning: str | Mapping[str, Any] = "auto",
        detail: str = "verdicts",
    ) -> BatchResult:
        """One result per completion, in order; a task is the service's JSON: test_cases, comparison, limits.

        Samples that a fault left without a reward are sent again as long as `fault_budget_s` allows; those still
        without one are None in `rewards`, and `faults` says why. An interruption cancels the batch on the service.

        Raises `InvalidRequestError`, `AuthenticationError`, `MisconfiguredError` at once, `UnavailableError` when the
        service could not be reached in time (its `partial` is what is known), `RunFinishedError`,
        `BatchCancelledError`; `ValueError` when the lists differ in length.
        """
        return self._start(completions, tasks, Options(extraction, reasoning, detail)).wait()

    def close(self) -> list[str]:
        """As `finish`."""
        return self.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        leave(self, error)


class AsyncRewardClient(BaseClient):
    """For code with an event loop; any number of them may use one client.

    async with AsyncRewardClient(run=RunOptions(name="first try")) as client:
        rewards = (await client.score(completions, tasks)).rewards
    """

    async def score(
        self,
        completions: Sequence[Completion],
        tasks: Sequence[Task],
        *,
        extraction: str = "first",
        reasoning: str | Mapping[str, Any] = "auto",
        detail: str = "verdicts",
    ) -> BatchResult:
        """As `RewardClient.score`. A task of asyncio that is cancelled cancels the batch on the service first."""
        return await self._start(completions, tasks, Options(extraction, reasoning, detail)).wait_async()

    async def aclose(self) -> list[str]:
        """As `finish`, without blocking the event loop."""
        return await asyncio.to_thread(self.finish)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(leave, self, error)


def leave(client: BaseClient, error: BaseException | None) -> None:
    """Finishes at the end of a `with` block; a failure to do so must not hide what the block raised."""
    try:
        client.finish()
    except RewardError as failure:
        if error is None:
            raise
        error.add_note(f"The run could not be finished either: {failure}")


async def register(session: Session) -> str:
    keeper = session.keeper
    assert keeper is not None
    patience = Patience(session.policy, time.monotonic())
    return await keep_trying(session, patience, lambda: keeper.ensure_registered(session.http))


async def score_with_progress(
    session: Session,
    completions: Sequence[Completion],
    tasks: Sequence[Task],
    options: Options,
    wanted: bool | None,
) -> BatchResult:
    if len(completions) == 0 and len(tasks) == 0:
        return BatchResult(rewards=[], results=[], usage=Usage())
    bar = open_progress(len(completions), wanted if session.rank == 0 else False)
    try:
        return await score_batch(session, completions, tasks, options, bar.show if bar else lambda done: None)
    except (Exception, asyncio.CancelledError) as error:
        if session.is_closed:
            raise RunFinishedError("The client was closed while it was grading.") from error
        raise
    finally:
        if bar:
            bar.close()
