"""Looking at a case's processes from outside, through the supervisor's /proc.

All functions tell of what is there now and skip what vanished meanwhile: a case may end at any moment.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import kernel
from isolation import OOM_SCORE_OF_CASE

_CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_HAS_CHILDREN_FILES = os.path.exists("/proc/self/task/%d/children" % os.getpid())


def pid_of(pidfd: int) -> int:
    """The process id behind a pidfd, in this process's own pid namespace; -1 once it was reaped."""
    with open("/proc/self/fdinfo/%d" % pidfd, "rb") as file:
        for line in file:
            if line.startswith(b"Pid:"):
                return int(line.split()[1])
    return -1


def process_tree(root_pid: int) -> list:
    """The ids of a process and all its descendants, itself first. Orphans of a case fall to its first process, so
    none is missed."""
    children_of = _children if _HAS_CHILDREN_FILES else _scanned_children()
    found, waiting = [], [root_pid]
    while waiting:
        pid = waiting.pop()
        children = children_of(pid)
        if children is not None:
            found.append(pid)
            waiting += children
    return found


def _children(pid: int):
    """The children of all its threads; None when the process is gone."""
    try:
        threads = os.listdir("/proc/%d/task" % pid)
    except OSError:
        return None
    children = []
    for thread in threads:
        try:
            with open("/proc/%d/task/%s/children" % (pid, thread), "rb") as file:
                children += map(int, file.read().split())
        except OSError:
            continue
    return children


def _scanned_children():
    """The same from one pass over all of /proc, for kernels without the `children` files."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parent = int(_stat_fields("/proc/%s/stat" % entry)[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(int(entry), [])
            children.setdefault(parent, []).append(int(entry))
    return children.get


class Thread(NamedTuple):
    on_cpu_ns: int
    delay_ns: int  # runnable without running; the kernel adds to it only when the thread gets a CPU again
    is_runnable: bool
    has_ended: bool  # it waits to be reaped


def read_threads(pids) -> dict:
    """{thread id: Thread} of all threads of the processes; empty where the kernel doesn't say."""
    found = {}
    for pid in pids:
        try:
            names = os.listdir("/proc/%d/task" % pid)
        except OSError:
            continue
        for name in names:
            try:
                on_cpu_ns, delay_ns, _ = _read("/proc/%d/task/%s/schedstat" % (pid, name)).split()
                state = _stat_fields("/proc/%d/task/%s/stat" % (pid, name))[0]
            except (OSError, ValueError, IndexError):
                continue
            found[int(name)] = Thread(int(on_cpu_ns), int(delay_ns), state == b"R", state in b"ZX")
    return found


def cpu_s(pids) -> float:
    """CPU seconds of the processes and of the children they have waited for.

    `stat` counts in ticks of 10 ms, which makes nothing of many short-lived processes; `schedstat` counts exactly, but
    forgets threads that ended. The larger one is nearer.
    """
    total_s = 0.0
    for pid in pids:
        try:
            fields = _stat_fields("/proc/%d/stat" % pid)
        except OSError:
            continue
        own_s = (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS_PER_S
        exact_s = sum(thread.on_cpu_ns for thread in read_threads([pid]).values()) / 1e9
        total_s += max(own_s, exact_s) + (int(fields[13]) + int(fields[14])) / _CLOCK_TICKS_PER_S
    return total_s


def reaped_ns(pids) -> dict:
    """{process: CPU nanoseconds of the children that it has waited for}."""
    found = {}
    for pid in pids:
        try:
            fields = _stat_fields("/proc/%d/stat" % pid)
        except OSError:
            continue
        found[pid] = (int(fields[13]) + int(fields[14])) * (1_000_000_000 // _CLOCK_TICKS_PER_S)
    return found


def _stat_fields(path: str) -> list:
    """The fields of a `stat` file from the state on: what is before it may hold anything."""
    return _read(path).rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def steal_s(cpu) -> float:
    """Seconds that the hypervisor gave this CPU (all of them together when None) to others, since boot."""
    name = b"cpu" if cpu is None else b"cpu%d" % cpu
    try:
        with open("/proc/stat", "rb") as file:
            for line in file:
                fields = line.split()
                if fields[0] == name:
                    return int(fields[8]) / _CLOCK_TICKS_PER_S
    except (OSError, IndexError, ValueError):
        pass
    return 0.0


def go_first_when_out_of_memory(pid: int) -> None:
    """Of the processes around it. Raised by root, it can't be lowered again from inside. It may have ended."""
    try:
        kernel.write_file("/proc/%d/oom_score_adj" % pid, OOM_SCORE_OF_CASE)
    except OSError:
        pass


def main_child_of(pid: int) -> int:
    """The only child of a process that forked once."""
    return process_tree(pid)[1]
