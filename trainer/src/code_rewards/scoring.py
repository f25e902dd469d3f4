"""One call of `score`: split into requests, each sent until it is answered, and samples that a fault left without a
reward sent again, until all is known or the call's patience is spent."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from .errors import (
    BodyTooLargeError,
    InvalidRequestError,
    RequestProblem,
    RewardError,
    RunNotFoundError,
    UnavailableError,
)
from .exchange import batch_path, grade_part, send_async
from .persistence import keep_trying, wait
from .results import BatchResult, Fault, Result, Usage
from .retry import Patience
from .session import CANCEL_LIMIT_S, Session
from .stream import AnswerReader
from .wire import (
    Batch,
    Completion,
    Options,
    Part,
    Sample,
    Task,
    build_part,
    encode_batch,
    halve,
    locate_problem,
    split_batch,
)

log = logging.getLogger("code_rewards")
# A batch may be cancelled before the service has begun to read it.
UNBORN_EVERY_S = 0.25


async def score_batch(
    session: Session,
    completions: Sequence[Completion],
    tasks: Sequence[Task],
    options: Options,
    on_progress: Callable[[int], None],
) -> BatchResult:
    began_s = time.monotonic()
    batch = await asyncio.to_thread(encode_batch, completions, tasks)
    call = Call(session, batch, options, on_progress, began_s)
    try:
        await call.grade_all()
    except UnavailableError as error:
        error.partial = call.summarize(missing=error)
        raise
    return call.summarize()


@dataclass
class Sending:
    """A request on its way: what has come of it, and whether it was broken off on this side."""

    reader: AnswerReader
    is_open: bool = False


class Call:
    """What is known of one call so far."""

    def __init__(
        self,
        session: Session,
        batch: Batch,
        options: Options,
        on_progress: Callable[[int], None],
        began_s: float,
    ) -> None:
        self._session = session
        self._batch = batch
        self._options = options
        self._on_progress = on_progress
        self._began_s = began_s
        self._patience = Patience(session.policy, began_s)
        self._results: dict[int, Result] = {}
        self._usage = Usage()
        self._retries = 0
        self._resubmitted = 0

    async def grade_all(self) -> None:
        await self._grade(self._batch.samples)
        while again := [sample for sample in self._batch.samples if is_retryable(self._results[sample.index])]:
            fault = self._results[again[0].index].fault
            log.warning("%d samples have no reward (%s), sending them again", len(again), fault and fault.code)
            began_s, lost_s = time.monotonic(), self._patience.lost_s
            if not await self._wait(None):
                return
            self._resubmitted += len(again)
            await self._grade(again)
            self._patience.lost_s = lost_s + time.monotonic() - began_s

    def summarize(self, missing: UnavailableError | None = None) -> BatchResult:
        """`missing`: why samples have no result."""
        detail = missing.detail if missing else "The service said nothing of this sample."
        unknown = Result(reward=None, status="fault", fault=Fault("unavailable", detail, retryable=True))
        results = [self._results.get(sample.index, unknown) for sample in self._batch.samples]
        return BatchResult(
            rewards=[result.reward for result in results],
            results=results,
            usage=self._usage,
            retries=self._retries,
            resubmitted=self._resubmitted,
            wall_s=time.monotonic() - self._began_s,
        )

    async def _grade(self, samples: Sequence[Sample]) -> None:
        if not samples:
            return
        run_id = await self._register()
        parts = split_batch(self._batch, samples, self._options, run_id, self._left_s)
        while (part := await asyncio.to_thread(next_part, parts)) is not None:
            await self._grade_part(part, run_id)

    async def _grade_part(self, part: Part, run_id: str | None) -> None:
        """A part that something on the way takes for too large is halved."""
        try:
            await self._send_until_answered(part, run_id)
        except BodyTooLargeError as error:
            if len(part.samples) == 1:
                raise self._locate(error, part) from None
            for half in halve(part):
                smaller = await asyncio.to_thread(build_part, self._batch, half, self._options, run_id, self._left_s())
                await self._grade_part(smaller, run_id)
        except InvalidRequestError as error:
            raise self._locate(error, part) from None

    async def _send_until_answered(self, part: Part, run_id: str | None) -> None:
        """Whatever ends this before the service has answered, the service is told that nobody waits any more."""
        session = self._session
        key = session.next_key(run_id, part.digest)
        session.in_flight.add(key)
        sending = Sending(AnswerReader(len(part.samples)))
        try:
            await self._persist(part, key, sending)
        except (UnavailableError, asyncio.CancelledError):
            if session.is_closed:
                # Whoever closes the session cancels what is in flight.
                raise
            await self._cancel(key, sending)
            session.in_flight.discard(key)
            raise
        except RewardError:
            if not session.is_closed:
                session.in_flight.discard(key)
            raise
        finally:
            self._keep_results(part, sending.reader)
        session.in_flight.discard(key)

    async def _persist(self, part: Part, key: str, sending: Sending) -> None:
        while True:
            began_s = time.monotonic()
            try:
                self._usage += await self._send_once(part, key, sending)
                if not any(is_retryable(result) for result in sending.reader.results.values()):
                    self._patience.succeed()
                return
            except RunNotFoundError as error:
                self._forget_run(error)
                last = UnavailableError(error.detail, code=error.code, request_id=error.request_id)
            except UnavailableError as error:
                last = error
            self._patience.lose(time.monotonic() - began_s)
            log.warning("a batch of %d samples is sent again: %s", len(part.samples), last)
            if not await self._wait(last.retry_after_s):
                raise self._patience.give_up(time.monotonic(), last)
            self._retries += 1
            await self._register()

    async def _send_once(self, part: Part, key: str, sending: Sending) -> Usage:
        self._keep_results(part, sending.reader)
        reader = sending.reader = AnswerReader(len(part.samples))
        sending.is_open = True
        graded = sum(result.fault is None for result in self._results.values())

        def show(done: int) -> None:
            self._on_progress(min(graded + done, len(self._batch.samples)))

        try:
            async with asyncio.timeout(max(0.0, self._left_s())):
                usage = await grade_part(self._session.http, part, key, reader, show)
        except TimeoutError:
            raise UnavailableError("The answer did not come in time.") from None
        except RewardError:
            sending.is_open = False
            raise
        return usage

    def _keep_results(self, part: Part, reader: AnswerReader) -> None:
        for place, result in reader.results.items():
            self._results[part.samples[place].index] = result

    async def _cancel(self, key: str, sending: Sending) -> None:
        """Tells the service that nobody waits for a batch any more. Bounded, and never the error that is raised.

        A batch whose request has just been sent may not have begun there: it is asked for until it has.
        """
        with suppress(RewardError, TimeoutError):
            async with asyncio.timeout(CANCEL_LIMIT_S):
                while True:
                    try:
                        await send_async(self._session.http, "DELETE", batch_path(key))
                        return
                    except RewardError as error:
                        if error.code != "not_found" or not sending.is_open:
                            raise
                    await asyncio.sleep(UNBORN_EVERY_S)

    async def _register(self) -> str | None:
        keeper = self._session.keeper
        if keeper is None:
            return None
        return await keep_trying(self._session, self._patience, lambda: keeper.ensure_registered(self._session.http))

    def _forget_run(self, error: RunNotFoundError) -> None:
        if self._session.keeper is None:
            raise error
        self._session.keeper.forget()

    async def _wait(self, retry_after_s: float | None) -> bool:
        """Whether there was patience for it."""
        return await wait(self._session, self._patience, retry_after_s)

    def _left_s(self) -> float:
        return self._patience.ends_s - time.monotonic()

    def _locate(self, error: InvalidRequestError, part: Part) -> InvalidRequestError:
        problems = tuple(locate_problem(problem, part, self._batch) for problem in error.problems)
        if isinstance(error, BodyTooLargeError) and not problems:
            index = part.samples[0].index
            problems = (RequestProblem(f"/tasks/{index}", "is too large to be sent with its completion", (index,)),)
        kind = type(error)
        return kind(error.detail, code=error.code, request_id=error.request_id, problems=problems)


def is_retryable(result: Result) -> bool:
    return result.fault is not None and result.fault.retryable


def next_part(parts: Iterator[Part]) -> Part | None:
    return next(parts, None)
