"""Trying again, as a call's patience allows."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from .errors import RunFinishedError, UnavailableError
from .retry import Patience
from .session import Session

T = TypeVar("T")
log = logging.getLogger("code_rewards")


async def keep_trying(session: Session, patience: Patience, attempt: Callable[[], Awaitable[T]]) -> T:
    """Raises `UnavailableError` when the patience is spent, and whatever else an attempt raises at once."""
    while True:
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, patience.ends_s - began_s)):
                return await attempt()
        except UnavailableError as error:
            last = error
        except TimeoutError:
            last = UnavailableError("The answer did not come in time.")
        patience.lose(time.monotonic() - began_s)
        log.warning("trying again: %s", last)
        if not await wait(session, patience, last.retry_after_s):
            raise patience.give_up(time.monotonic(), last)


async def wait(session: Session, patience: Patience, retry_after_s: float | None) -> bool:
    """Waits before the next attempt; False when there is no time for one. Raises once the client is closed."""
    wait_s = patience.next_wait_s(time.monotonic(), random.random(), retry_after_s)
    if wait_s is not None and not session.is_closed:
        await asyncio.sleep(wait_s)
    if session.is_closed:
        raise RunFinishedError("The client was closed while it was grading.")
    return wait_s is not None
