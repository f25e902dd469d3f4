"""The run that a client's batches count for: registered when it is first needed, kept alive while the GPU works."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass, field, replace

import httpx

from .errors import RewardError, RunFinishedError, RunNotFoundError
from .exchange import run_path, send_async
from .launcher import derive_run_id, read_run_id

log = logging.getLogger("code_rewards")
MAX_GENERATIONS = 1_000


@dataclass(frozen=True)
class RunOptions:
    """A run to register.

    `id`: default CODE_REWARDS_RUN_ID, else one that all ranks of a distributed job derive from their launcher.
    `workers`: how many its batches may hold at once. `heartbeat_s`: a run that nobody speaks of for five minutes
    expires.
    """

    id: str | None = None
    name: str | None = None
    workers: int = 2
    metadata: dict[str, str] = field(default_factory=dict)
    heartbeat_s: float = 60.0


@dataclass(frozen=True)
class RunIdentity:
    """A run with its id. `is_derived`: nobody chose the id, so another one does as well."""

    options: RunOptions
    id: str
    is_derived: bool
    generation: int = 1

    @property
    def full_id(self) -> str:
        return self.id if self.generation == 1 else f"{self.id}-{self.generation}"


def identify_run(options: RunOptions) -> RunIdentity:
    chosen = options.id or read_run_id()
    return RunIdentity(options, chosen or derive_run_id(), is_derived=chosen is None)


class RunKeeper:
    """One process's part in a run. Everything but `identity` belongs to one event loop."""

    def __init__(self, identity: RunIdentity) -> None:
        self.identity = identity
        self.is_registered = False
        self.was_registered = False
        # It may be registered although nobody was told.
        self.was_asked_for = False
        self._lock = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None

    async def ensure_registered(self, http: httpx.AsyncClient) -> str:
        """Registers the run unless it is; answers its id. Raises what a single request raises."""
        async with self._lock:
            if not self.is_registered:
                await self._register(http)
                self.is_registered = self.was_registered = True
            if self._beating is None:
                self._beating = asyncio.get_running_loop().create_task(self._beat_for_ever(http))
        return self.identity.full_id

    def forget(self) -> None:
        """The service does not know the run any more."""
        self.is_registered = False

    async def _register(self, http: httpx.AsyncClient) -> None:
        options = self.identity.options
        wish = {"name": options.name, "workers": options.workers, "metadata": options.metadata}
        body = {name: value for name, value in wish.items() if value is not None}
        while True:
            self.was_asked_for = True
            try:
                await send_async(http, "PUT", run_path(self.identity.full_id), body)
                return
            except RunFinishedError:
                # An earlier job with the same launcher's variables; its other ranks count up in the same way.
                is_spent = self.identity.generation >= MAX_GENERATIONS
                if self.was_registered or not self.identity.is_derived or is_spent:
                    raise
                self.identity = replace(self.identity, generation=self.identity.generation + 1)

    async def _beat_for_ever(self, http: httpx.AsyncClient) -> None:
        interval_s = self.identity.options.heartbeat_s
        while True:
            # Ranks start together; they need not beat together.
            await asyncio.sleep(interval_s * (0.8 + 0.2 * random.random()))
            try:
                await self._beat(http)
            except RunFinishedError:
                return
            except RewardError as error:
                log.warning("the run %s got no heartbeat: %s", self.identity.full_id, error)

    async def _beat(self, http: httpx.AsyncClient) -> None:
        try:
            await send_async(http, "POST", f"{run_path(self.identity.full_id)}/heartbeat")
        except RunNotFoundError:
            self.forget()
            await self.ensure_registered(http)
