"""Takes the place of `zygote.py` in a copy of the supervisor, and sums up what the stages of its children cost.

Functions of the supervisor are wrapped by their names, where this version of it has them; what a wrapped function
calls counts for the inner one. A child's sums lie in memory that it shares with the zygote, which writes all down when
the supervisor has gone. Looking costs something too, so the sums are for comparing, not for adding up.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import struct
import time

import kernel
import program
import sandbox
import unstaged_zygote
from unstaged_zygote import is_rootless  # noqa: F401  the supervisor's other parts want it of this module

_REPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stages.json")
_LEFT_OUT = 30  # the first children: those of the preflight, and those that find nothing warm
_ROW = struct.Struct("<qq")
_STAGES = {
    "close descriptors": [(kernel, "close_from"), (kernel, "close_all_but")],
    "namespaces": [(kernel, "unshare")],
    "mounts": [(kernel, "mount")],
    "user id": [(sandbox.Sandbox, "_become_nobody")],
    "capabilities": [(kernel, "clear_capabilities")],
    "filter of system calls": [(kernel, "install_seccomp")],
    "proof": [(sandbox.Sandbox, "_prove")],
    "wait for the job, take it": [(sandbox.Sandbox, "_wait_for_job"), (sandbox, "_wait_for_job")],
    "standard streams": [(program, "open_standard_streams")],
    "compile": [(program, "compile_source")],
    "forget own modules": [(sandbox, "_forget_supervisor_modules"), (sandbox.Sandbox, "_forget_supervisor_modules")],
    "the program": [(program, "_execute")],
    "the interpreter's end": [(program, "_finish_like_the_interpreter")],
}
try:
    import isolation

    _STAGES["user id"].append((isolation.Isolation, "_become_nobody"))
    _STAGES["proof"].append((isolation.Isolation, "_prove"))
except ImportError:
    pass
_BETWEEN = "the rest of its own steps"
_FORK = "fork (in the zygote)"
_END = "begin and end in the kernel"
_names = [_BETWEEN, *_STAGES]
_shared = mmap.mmap(-1, _ROW.size * len(_names))
_zygote_sums = {"forks": 0, "fork_ns": 0, "ended": 0, "cpu_ns": 0, "faults": 0}
_now = {"is_child": False, "stage": 0, "cpu_ns": 0, "faults": 0}


def _read_counters():
    return time.thread_time_ns(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _enter(stage: int) -> None:
    cpu_ns, faults = _read_counters()
    at = _now["stage"] * _ROW.size
    summed_ns, summed_faults = _ROW.unpack_from(_shared, at)
    _ROW.pack_into(_shared, at, summed_ns + cpu_ns - _now["cpu_ns"], summed_faults + faults - _now["faults"])
    _now["stage"] = stage
    _now["cpu_ns"], _now["faults"] = _read_counters()


def _wrap(owner, name: str, stage: int) -> None:
    function = getattr(owner, name, None)
    if function is None:
        return

    def wrapped(*arguments):
        if not _now["is_child"]:
            return function(*arguments)
        outer = _now["stage"]
        _enter(stage)
        try:
            return function(*arguments)
        finally:
            _enter(outer)

    setattr(owner, name, wrapped)


def _run_child(run_child):
    def wrapped(*arguments):
        _now["is_child"] = True
        _now["cpu_ns"], _now["faults"] = _read_counters()
        run_child(*arguments)

    return wrapped


def _exit(leave):
    def wrapped(code):
        if _now["is_child"]:
            _enter(0)
        elif _zygote_sums["ended"] > _LEFT_OUT:
            _write_report()
        leave(code)

    return wrapped


def _wait(wait4):
    def wrapped(pid, options):
        found = wait4(pid, options)
        _zygote_sums["ended"] += 1
        if _zygote_sums["ended"] == _LEFT_OUT:
            _shared[:] = bytes(len(_shared))
            _zygote_sums.update(forks=0, fork_ns=0, cpu_ns=0, faults=0)
        usage = found[2]
        _zygote_sums["cpu_ns"] += int((usage.ru_utime + usage.ru_stime) * 1e9)
        _zygote_sums["faults"] += usage.ru_minflt
        return found

    return wrapped


def _fork(fork):
    def wrapped():
        before_ns = time.thread_time_ns()
        pid = fork()
        if pid:
            _zygote_sums["forks"] += 1
            _zygote_sums["fork_ns"] += time.thread_time_ns() - before_ns
        return pid

    return wrapped


def _write_report() -> None:
    count = _zygote_sums["ended"] - _LEFT_OUT
    rows = {name: _ROW.unpack_from(_shared, index * _ROW.size) for index, name in enumerate(_names)}
    seen_ns, seen_faults = (sum(column) for column in zip(*rows.values()))
    rows[_END] = _zygote_sums["cpu_ns"] - seen_ns, _zygote_sums["faults"] - seen_faults
    report = {_FORK: {"ms": round(_zygote_sums["fork_ns"] / 1e6 / _zygote_sums["forks"], 3), "page_faults": 0}}
    for name, (ns, faults) in rows.items():
        report[name] = {"ms": round(ns / 1e6 / count, 3), "page_faults": round(faults / count, 1)}
    os.write(_report_fd, json.dumps(report).encode())


for _index, (_, _functions) in enumerate(_STAGES.items(), 1):
    for _owner, _name in _functions:
        _wrap(_owner, _name, _index)
sandbox.Sandbox.run_child = _run_child(sandbox.Sandbox.run_child)
os._exit, os.wait4 = _exit(os._exit), _wait(os.wait4)
if hasattr(kernel, "fork_without_hooks"):
    kernel.fork_without_hooks = _fork(kernel.fork_without_hooks)
else:
    os.fork = _fork(os.fork)

if __name__ == "__main__":
    _report_fd = os.open(_REPORT, os.O_WRONLY | os.O_CREAT, 0o600)
    unstaged_zygote.main()
