"""Chunks: what one request asked for, cut into cases, and what became of each.

A chunk ends once, with a reason: `completed`, or what stopped it (`deadline`, `cancelled`, `superseded`). It is over
only when none of its cases runs any more; only then is its summary written, so a caller who has read a summary knows
that its programs are gone. Each line names the chunk, so that no other one's answer can be taken for it; no program ever
learns the name.
"""

from __future__ import annotations

import collections

import case_outcome
from checks import Check
from submission import Program

_BEAT_INTERVAL_S = 5.0
_MOST_UNCHECKED_BYTES = 8 << 20


class Unit:
    """One case that waits or runs."""

    __slots__ = ("chunk", "program", "case_index", "was_told", "was_lost", "case", "check")

    def __init__(self, chunk, program: Program, case_index: int):
        self.chunk = chunk
        self.program = program
        self.case_index = case_index
        self.was_told = False  # its start was; a second try of it is our own affair
        self.was_lost = False
        self.case = None
        self.check = None  # once the program's output waits for a checker

    def job(self):
        """What runs: the program, or the checker."""
        return self.check or self.program


class Chunk:
    """`sink` takes the lines (`write`) and says when it can't keep up (`is_congested`)."""

    def __init__(self, chunk_id: str, fencing_token: int, programs, deadline_s: float, loop, sink):
        self.id = chunk_id
        self.fencing_token = fencing_token
        self.waiting = collections.deque()
        self.waiting_checks = collections.deque()
        self.running = set()
        self.reason = None
        self.over = loop.create_future()
        self._case_count = 0
        self._loop = loop
        self._sink = sink
        for request in programs:
            problem = request.get("problem")
            if problem is not None:
                self._write({"type": "invalid_task", "program": request["id"], "detail": problem})
                continue
            program = Program(request)
            self.waiting.extend(Unit(self, program, index) for index in range(program.case_count))
        self._deadline = loop.call_later(deadline_s, self.stop, "deadline")
        self._beat_timer = loop.call_later(_BEAT_INTERVAL_S, self._beat)

    # -- the scheduler's side

    def next_unit(self):
        """The first waiting unit, or None; it stays waiting until it is started. A rejected program's units vanish.
        Checkers wait until all programs have run, or until what they wait with takes too much memory."""
        while self.waiting and self.waiting[0].program.is_rejected:
            self.waiting.popleft()
        unchecked_bytes = sum(len(unit.check.facts.stdout) for unit in self.waiting_checks)
        if self.waiting_checks and (not self.waiting or unchecked_bytes > _MOST_UNCHECKED_BYTES):
            return self.waiting_checks[0]
        return self.waiting[0] if self.waiting else None

    def start(self, unit: Unit) -> None:
        self._queue_of(unit).popleft()
        self.running.add(unit)
        unit.program.begin_case()
        self._tell_start(unit)

    def end(self, unit: Unit, facts: case_outcome.Facts) -> None:
        """Takes what became of a unit; puts it back once when its sandbox was lost under it."""
        self.running.discard(unit)
        unit.program.end_case()
        if self.reason is None and not unit.program.is_rejected:
            ending = case_outcome.classify(facts, unit.program.memory_bytes)
            if facts.status == "sandbox_lost" and not unit.was_lost:
                unit.was_lost = True
                self._queue_of(unit).appendleft(unit)
            elif unit.check:
                self._take_check(unit, facts, ending)
            elif unit.program.mode == "checked" and ending == {"status": "exited", "exit_code": 0}:
                unit.check = Check(unit.program, unit.case_index, facts, ending)
                self.waiting_checks.append(unit)
            elif ending["status"] == "syntax_error":
                self._reject(unit.program, ending["detail"])
            else:
                self._write_end(unit, case_outcome.describe(facts, ending))
        self.finish_if_over()

    def fail(self, unit: Unit, detail: str) -> None:
        """No sandbox can be had for a waiting unit."""
        self._queue_of(unit).remove(unit)
        self._tell_start(unit)
        ending = {"status": "isolation_failed", "detail": detail}
        self._write_end(unit, case_outcome.describe(case_outcome.Facts(), ending))

    def is_congested(self) -> bool:
        return self._sink.is_congested()

    # -- its own

    def _queue_of(self, unit: Unit):
        return self.waiting_checks if unit.check else self.waiting

    def _take_check(self, unit: Unit, facts: case_outcome.Facts, ending: dict) -> None:
        concluded = unit.check.take(facts, ending)
        if concluded is None:
            self.waiting_checks.append(unit)
        else:
            self._write_end(unit, case_outcome.describe(unit.check.facts, concluded))

    def _reject(self, program: Program, detail: str) -> None:
        program.is_rejected = True
        self._write({"type": "syntax_error", "program": program.id, "detail": detail})
        for unit in self.running:
            if unit.program is program:
                unit.case.stop()

    def _tell_start(self, unit: Unit) -> None:
        if not unit.was_told:
            unit.was_told = True
            self._write({"type": "started", "program": unit.program.id, "case": unit.case_index})

    def _write_end(self, unit: Unit, outcome: dict) -> None:
        self._case_count += 1
        place = {"type": "ended", "program": unit.program.id, "case": unit.case_index}
        self._write({**place, **outcome})

    def _write(self, line: dict) -> None:
        line["chunk"] = self.id
        self._sink.write(line)

    def _beat(self) -> None:
        self._write({"type": "beat"})
        self._beat_timer = self._loop.call_later(_BEAT_INTERVAL_S, self._beat)

    def stop(self, reason: str) -> None:
        """Kills what runs and forgets what waits. `over` resolves when the last process is gone."""
        if self.reason is None:
            self.reason = reason
            self.waiting.clear()
            self.waiting_checks.clear()
            for unit in self.running:
                unit.case.stop()
        self.finish_if_over()

    def finish_if_over(self) -> None:
        if self.running or self.next_unit() or self.over.done():
            return
        self._deadline.cancel()
        self._beat_timer.cancel()
        summary = {"type": "summary", "reason": self.reason or "completed", "cases": self._case_count}
        self._write(summary)
        self.over.set_result(None)
