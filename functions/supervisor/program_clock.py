"""The clock that a program is judged by: wall time less the time it waited for a CPU.

Theory of operation. A case shares its machine with other cases and with whatever the host runs beside it; the time a
program was ready to run but did not run is not its own. The kernel counts it per thread (the second field of
`schedstat`, "run delay"), and the hypervisor's share per CPU ("steal" in /proc/stat).

    program time = max(wall - waits, busy) - growth of steal
    waits        = sum over samples of the largest growth of any thread's run delay

A program of several threads or processes waits as long as the one that waited longest: the critical path can't have
waited more. Taking that maximum between samples, not once at the end, also counts the waits of helpers that ended. Yet
helpers can be made to wait, by giving way all the time, while others compute. So the program's time is never less than
the time in which its CPU was its own (`busy`): what all its threads ran, and the children that were waited for. It has
one CPU; on one of several, this is capped by the wall's time between two samples.

The kernel adds a wait to the run delay only when it is over. So a limit that seems reached is looked at twice, and
not judged while a thread is ready and got nothing between the two looks (`is_waiting`), unless the program was busy
for longer than the limit.

A program can make its own threads wait for each other, so wall time is capped at HARD_CAP times the limit. One that
gets there having had less than half a CPU all along was starved by its surroundings: nothing is known of it. One that
had more used its time. What it had is known in two ways, of which the larger counts, since each can fall short: what
its processes account for (children that nobody waits for vanish from it), and what its living threads got of the time
they wanted, times their number (k equal threads of one program on one CPU get a k-th each).
"""

from __future__ import annotations

import processes

HARD_CAP = 3.0
_STARVED_BELOW_CPU_SHARE = 0.5


class ProgramClock:
    def __init__(self, started_at_s: float, limit_s: float, cpu, main_thread: int, delay_ns: int, cpu_ns: int):
        self._started_at_s = started_at_s
        self._limit_s = limit_s
        self._cpu = cpu
        self._main_thread = main_thread
        self._threads = {main_thread: processes.Thread(cpu_ns, delay_ns, True, False)}
        self._reaped_ns = {}
        self._sampled_at_s = started_at_s
        self._cpu_before_s = cpu_ns / 1e9
        self._steal_before_s = None
        self._waited_s = 0.0
        self._stolen_s = 0.0
        self._busy_s = 0.0
        self._fed_s = 0.0
        self.is_waiting = False
        self.had_helpers = False

    def sample(self, pids, now_s: float, beside=()) -> None:
        """Looks at the case's threads, and adds what they waited and what they got since the last look. `beside` are
        the processes of a judge, which take turns with the program's: what both waited is added up."""
        before, now, other = self._threads, processes.read_threads(pids), processes.read_threads(beside)
        self._waited_s += _longest_wait_s(before, now) + _longest_wait_s(before, other)
        now.update(other)
        reaped_ns = processes.reaped_ns([*pids, *beside])
        busy_s = _ran_s(before, now, self._reaped_ns, reaped_ns)
        self._busy_s += min(busy_s, max(now_s - self._sampled_at_s, 0.0))
        known = [(before[name], thread) for name, thread in now.items() if name in before]
        self._fed_s += _cpu_share(known, now) * max(now_s - self._sampled_at_s, 0.0)
        self.is_waiting = any(new.is_runnable and new.on_cpu_ns == old.on_cpu_ns for old, new in known)
        self.had_helpers = self.had_helpers or len(now) > 1
        self._threads, self._reaped_ns, self._sampled_at_s = now, reaped_ns, now_s
        self._sample_steal()

    def sample_ended(self, main_delay_ns: int) -> None:
        """The last look: of an ended case only the main thread's run delay is still known."""
        main = self._threads.get(self._main_thread)
        self._waited_s += max(main_delay_ns - main.delay_ns, 0) / 1e9 if main else 0.0

    def _sample_steal(self) -> None:
        if self._steal_before_s is None:
            self._steal_before_s = processes.steal_s(self._cpu)
        else:
            self._stolen_s = processes.steal_s(self._cpu) - self._steal_before_s

    def has_ended(self) -> bool:
        """Whether all of the case had ended at the last look, and only waits to be reaped. The main thread alone says
        nothing: it may end before its process does."""
        return all(thread.has_ended for thread in self._threads.values())

    def wall_s(self, now_s: float) -> float:
        return max(0.0, now_s - self._started_at_s)

    def program_s(self, now_s: float) -> float:
        return max(0.0, max(self.wall_s(now_s) - self._waited_s, self._busy_s) - self._stolen_s)

    def was_busy_over_limit(self) -> bool:
        """Whether the program ran for longer, until the last look, whatever its threads waited for."""
        return self._busy_s - self._stolen_s >= self._limit_s

    def remaining_s(self, now_s: float) -> float:
        """Until the limit may be reached at the earliest; zero or less when it has been, or the hard cap has."""
        if self.is_capped(now_s):
            return 0.0
        until_cap_s = self._limit_s * HARD_CAP - self.wall_s(now_s)
        return min(self._limit_s - self.program_s(now_s), until_cap_s)

    def is_capped(self, now_s: float) -> bool:
        return self.wall_s(now_s) >= self._limit_s * HARD_CAP

    def is_starved(self, now_s: float, cpu_s: float) -> bool:
        """Whether a case that reached the cap got too little CPU to be judged; `cpu_s` is what its processes account
        for."""
        within_limit = self.program_s(now_s) < self._limit_s
        had_s = max(cpu_s - self._cpu_before_s, self._fed_s)
        return within_limit and had_s / max(self.wall_s(now_s), 1e-9) < _STARVED_BELOW_CPU_SHARE


def _longest_wait_s(before: dict, now: dict) -> float:
    waits = [thread.delay_ns - (before[name].delay_ns if name in before else 0) for name, thread in now.items()]
    return max(waits, default=0) / 1e9


def _ran_s(before: dict, now: dict, reaped_before: dict, reaped_now: dict) -> float:
    """CPU time between two looks. What had been seen of a child before it was waited for is not counted again."""
    living = sum(thread.on_cpu_ns - (before[name].on_cpu_ns if name in before else 0) for name, thread in now.items())
    reaped = sum(ns - reaped_before.get(pid, 0) for pid, ns in reaped_now.items())
    seen = sum(thread.on_cpu_ns for name, thread in before.items() if name not in now)
    seen += sum(ns for pid, ns in reaped_before.items() if pid not in reaped_now)
    return (living + max(reaped - seen, 0)) / 1e9


def _cpu_share(known, now: dict) -> float:
    """Of one CPU, what the threads together got between two looks."""
    on_cpu_ns = sum(new.on_cpu_ns - old.on_cpu_ns for old, new in known)
    wanted_ns = on_cpu_ns + sum(new.delay_ns - old.delay_ns for old, new in known)
    if wanted_ns <= 0:
        return 0.0
    runnable = sum(thread.is_runnable for thread in now.values())
    return min(1.0, on_cpu_ns / wanted_ns * max(runnable, 1))
