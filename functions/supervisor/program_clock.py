"""The clock that a program is judged by: wall time less the time it waited for a CPU.

Theory of operation. A case shares its machine with other cases and with whatever the host runs beside it; the time a
program was ready to run but did not run is not its own. The kernel counts it per thread (the second field of
`schedstat`, "run delay"), and the hypervisor's share per CPU ("steal" in /proc/stat).

    program time = wall - sum over samples of (the largest growth of any thread's run delay) - growth of steal

A program of several threads or processes waits as long as the one that waited longest: the critical path can't have
waited more. Taking that maximum between samples, not once at the end, also counts the waits of helpers that ended.

A program can make its own threads wait for each other, so wall time is capped at HARD_CAP times the limit. One that
gets there having had less than half a CPU all along was starved by its surroundings: nothing is known of it. One that
had more (a fork bomb, say) used its time.
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
        self._delays_ns = {main_thread: delay_ns}
        self._cpu_before_s = cpu_ns / 1e9
        self._steal_before_s = None
        self._waited_s = 0.0
        self._stolen_s = 0.0

    def sample(self, pids) -> None:
        """Reads the present run delays of the case's processes and adds what they waited since the last sample."""
        self._add(processes.run_delays_ns(pids))
        if self._steal_before_s is None:
            self._steal_before_s = processes.steal_s(self._cpu)
        else:
            self._stolen_s = processes.steal_s(self._cpu) - self._steal_before_s

    def sample_ended(self, main_delay_ns: int) -> None:
        """The last sample: of an ended case only the main thread's run delay is still known."""
        self._add({self._main_thread: main_delay_ns})

    def _add(self, delays_ns: dict) -> None:
        growth = 0
        for thread, delay_ns in delays_ns.items():
            growth = max(growth, delay_ns - self._delays_ns.get(thread, 0))
        self._delays_ns.update(delays_ns)
        self._waited_s += growth / 1e9

    def wall_s(self, now_s: float) -> float:
        return max(0.0, now_s - self._started_at_s)

    def program_s(self, now_s: float) -> float:
        return max(0.0, self.wall_s(now_s) - self._waited_s - self._stolen_s)

    def remaining_s(self, now_s: float) -> float:
        """Until the limit may be reached at the earliest; zero or less when it has been, or the hard cap has."""
        if self.is_capped(now_s):
            return 0.0
        until_cap_s = self._limit_s * HARD_CAP - self.wall_s(now_s)
        return min(self._limit_s - self.program_s(now_s), until_cap_s)

    def is_capped(self, now_s: float) -> bool:
        return self.wall_s(now_s) >= self._limit_s * HARD_CAP

    def is_starved(self, now_s: float, cpu_s: float) -> bool:
        """Whether a case that reached the cap got too little CPU (`cpu_s`, of all its processes) to be judged."""
        within_limit = self.program_s(now_s) < self._limit_s
        share = (cpu_s - self._cpu_before_s) / max(self.wall_s(now_s), 1e-9)
        return within_limit and share < _STARVED_BELOW_CPU_SHARE
