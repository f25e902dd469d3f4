"""An event loop of our own in a daemon thread, on which all requests are made.

Whatever loop or thread a call comes from, its sockets belong to this loop: they outlive the caller's loop, can be used
from any number of them, and leave none of them with an open connection.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")
# A job that is cancelled tells the service; this is how long its caller waits for that.
CANCEL_GRACE_S = 10.0


class Job(Generic[T]):
    """A coroutine under way on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> None:
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self._settled: concurrent.futures.Future[T] = concurrent.futures.Future()
        loop.call_soon_threadsafe(self._launch, coroutine)

    def cancel(self) -> None:
        self._loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())

    def wait(self) -> T:
        """The coroutine's result. An interruption (Ctrl-C) cancels it, and waits a bounded time for it to end."""
        try:
            return self._settled.result()
        except BaseException:
            if not self._settled.done():
                self.cancel()
                concurrent.futures.wait([self._settled], timeout=CANCEL_GRACE_S)
            raise

    async def wait_async(self) -> T:
        """The same for a coroutine of another loop."""
        settled = asyncio.wrap_future(self._settled)
        settled.add_done_callback(lambda future: future.cancelled() or future.exception())
        try:
            return await asyncio.shield(settled)
        except asyncio.CancelledError:
            if not self._settled.done():
                self.cancel()
                await asyncio.wait([settled], timeout=CANCEL_GRACE_S)
            raise

    def _launch(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._task = self._loop.create_task(coroutine)
        self._task.add_done_callback(self._settle)

    def _settle(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self._settled.set_exception(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self._settled.set_exception(error)
        else:
            self._settled.set_result(task.result())


class LoopThread:
    """Starts at once; `stop` ends what is still under way, and `close_up` comes last on the loop."""

    def __init__(self, close_up: Callable[[], Awaitable[None]]) -> None:
        self._close_up = close_up
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="code-rewards", daemon=True)
        self._thread.start()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Job[T]:
        return Job(self._loop, coroutine)

    def stop(self, limit_s: float) -> None:
        """Cancels every job, and waits a bounded time for them."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(limit_s)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(self._close_up())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()
