"""Which case runs next, where, and for whom: slots, memory and fencing tokens.

Theory of operation. Cases start in the order of their chunks and of the requests, one per slot, while the sum of the
memory limits of all that run fits into the worker's memory. The first that doesn't fit waits, and all behind it: none
is starved by smaller ones.

Checkers, which are given expected outputs, and programs never run at the same time.

A fencing token is a lease's number; a higher one means that the worker has a new holder. The first request with a
higher token raises the fence: everything of older tokens is killed, and only when it is gone does the new holder's
work start. A request with an older token is refused, as is a chunk whose id was seen under the present token: its
sender could not know whether the first attempt ran.
"""

from __future__ import annotations

import asyncio
import secrets

import cases
from chunks import Chunk
from slots import UIDS_PER_SLOT, Slot

_LOWEST_CASE_UID = 1 << 30
_HIGHEST_CASE_UID = (1 << 31) - (1 << 26)


class StaleToken(Exception):
    """The fencing token is older than one that was seen."""


class ChunkSeen(Exception):
    """A chunk of this id came before."""


class Scheduler:
    def __init__(self, cpus, memory_mib: int):
        self.fencing_token = 0
        self.memory_mib = memory_mib
        self._loop = asyncio.get_running_loop()
        self._free_mib = memory_mib
        self._running_programs = 0
        self._running_checks = 0
        self._chunks = []
        self._seen = set()
        first_uid = _LOWEST_CASE_UID + secrets.randbelow(_HIGHEST_CASE_UID - _LOWEST_CASE_UID)
        self.slots = [
            Slot(index, cpu, first_uid + index * UIDS_PER_SLOT, self._loop, self.dispatch)
            for index, cpu in enumerate(cpus)
        ]

    def failure(self):
        """Why no slot can isolate anything any more; None while one can."""
        failures = [slot.failure for slot in self.slots]
        return failures[0] if all(failures) else None

    async def raise_fence(self, fencing_token: int) -> None:
        """Accepts the token, or raises StaleToken. Returns when nothing of older tokens is left."""
        if fencing_token < self.fencing_token:
            raise StaleToken
        if fencing_token > self.fencing_token:
            self.fencing_token = fencing_token
            self._seen.clear()
        await self._stop([chunk for chunk in self._chunks if chunk.fencing_token < fencing_token], "superseded")

    async def cancel(self, fencing_token: int) -> int:
        """Raises the fence and stops this token's work too; returns how many chunks were stopped."""
        before = len(self._chunks)
        await self.raise_fence(fencing_token)
        await self._stop(list(self._chunks), "cancelled")
        return before

    async def execute(self, fencing_token: int, chunk_id: str, programs, deadline_s: float, sink) -> Chunk:
        """Starts a chunk; its lines go to `sink`. Raises StaleToken or ChunkSeen before anything runs."""
        await self.raise_fence(fencing_token)
        if fencing_token < self.fencing_token:  # raised further while the older work was stopped
            raise StaleToken
        if chunk_id in self._seen:
            raise ChunkSeen
        self._seen.add(chunk_id)
        chunk = Chunk(chunk_id, fencing_token, programs, deadline_s, self._loop, sink)
        self._chunks.append(chunk)
        chunk.over.add_done_callback(lambda _: self._chunks.remove(chunk))
        self.dispatch()
        chunk.finish_if_over()
        return chunk

    def close(self) -> None:
        for slot in self.slots:
            slot.close()

    async def _stop(self, chunks, reason: str) -> None:
        for chunk in chunks:
            chunk.stop(reason)
        if chunks:
            await asyncio.wait([chunk.over for chunk in chunks])

    # -- what runs next

    def dispatch(self) -> None:
        """Starts whatever can start now; called whenever something may have become possible."""
        self._start_units()
        if any(chunk.next_unit() for chunk in self._chunks):
            for slot in self.slots:
                slot.prepare()
            if self.failure():
                self._fail_all()

    def _start_units(self) -> None:
        for slot in self.slots:
            if slot.has_ready_child():
                unit = self._next_unit()
                if unit is None:
                    return
                self._start(slot, unit)

    def _next_unit(self):
        for chunk in self._chunks:
            unit = chunk.next_unit()
            if unit is not None and not chunk.is_congested():
                others = self._running_programs if unit.check else self._running_checks
                return unit if others == 0 and unit.program.memory_mib <= self._free_mib else None
        return None

    def _start(self, slot: Slot, unit) -> None:
        self._free_mib -= unit.program.memory_mib
        self._count_running(unit, 1)
        unit.chunk.start(unit)
        unit.case = cases.Case(slot, unit.job(), unit.case_index, self._loop, lambda case: self._ended(unit, case))

    def _count_running(self, unit, change: int) -> None:
        if unit.check:
            self._running_checks += change
        else:
            self._running_programs += change

    def _ended(self, unit, case: cases.Case) -> None:
        self._free_mib += unit.program.memory_mib
        self._count_running(unit, -1)
        unit.chunk.end(unit, case.facts)
        self.dispatch()

    def _fail_all(self) -> None:
        for chunk in list(self._chunks):
            while chunk.next_unit():
                chunk.fail(chunk.next_unit(), self.failure())
            chunk.finish_if_over()
