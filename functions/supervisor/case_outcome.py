"""What the raw facts of an ended case mean. Pure: no system calls here.

The statuses: `exited`, `signaled`, `time_limit`, `memory_limit`, `output_limit` say what the program did;
`syntax_error` that it is none; `invalid_test` that no program could pass its tests, or every one would; `starved` and
`isolation_failed` that nothing is known of it; `stopped` that nobody wants to know.
"""

from __future__ import annotations

import base64
import json
import os
import signal

from zygote_messages import Ending

_OUT_OF_MEMORY_EXIT_CODE = 1
_OVER_MEMORY_SLACK = 0.9
_SHARED_WITH_ZYGOTE_BYTES = 16 << 20


class Facts:
    """Collected while a case runs. `status` is set by whatever ended the case early."""

    def __init__(self):
        self.status = None
        self.syntax_error = None
        self.started_at_s = None
        self.stdout = bytearray()
        self.result = None  # what its function returned, in a case that calls one
        self.report = None  # what its tests said, in a case with a judge
        self.was_dismissed = False  # it went on after its tests had ended, and was killed for it
        self.judge_wait_status = 0
        self.stderr_tail = bytearray()
        self.has_ended = False
        self.was_out_of_memory = False
        self.wait_status = 0
        self.ended_at_s = 0.0  # at the earliest: by this it is judged
        self.seen_ended_at_s = 0.0  # at the latest
        self.cpu_s = 0.0
        self.cpu_before_s = 0.0  # what isolating and compiling took
        self.max_rss_kib = 0
        self.run_delay_ns = 0
        self.used_up_own_limit = False

    def take_ending(self, ending: Ending, seen_at_s: float) -> None:
        """Zygote and supervisor may both have noticed late: the earlier one counts."""
        self.has_ended = True
        self.wait_status = ending.wait_status
        self.ended_at_s = min(ending.at_s, seen_at_s)
        self.seen_ended_at_s = seen_at_s
        self.cpu_s = ending.cpu_s
        self.max_rss_kib = ending.max_rss_kib
        self.run_delay_ns = ending.run_delay_ns
        self.used_up_own_limit = ending.used_up_own_limit


def classify(facts: Facts, memory_bytes: int) -> dict:
    """{"status": …} with `exit_code`, `signal` or `detail` as the status has them."""
    if facts.status == "sandbox_lost":
        return {"status": "isolation_failed", "detail": "the sandbox was lost while the program ran"}
    if facts.status == "stopped":
        return {"status": "stopped"}
    if facts.syntax_error is not None:
        return {"status": "syntax_error", "detail": facts.syntax_error}
    if facts.was_out_of_memory or _ended_by_memory_error(facts) or _peaked_over(facts, memory_bytes):
        facts.status = "memory_limit"
    if facts.report is not None and facts.status is None:
        judged = _classify_report(facts)
        if judged is not None:
            return judged
    if facts.started_at_s is None:
        return _classify_unready(facts, memory_bytes)
    if facts.status == "starved":
        return {"status": "starved", "detail": "the machine gave the program less than half a CPU"}
    if facts.status is not None:
        return {"status": facts.status}
    if os.WIFEXITED(facts.wait_status):
        return {"status": "exited", "exit_code": os.WEXITSTATUS(facts.wait_status)}
    return _classify_signal(facts, memory_bytes)


def _classify_report(facts: Facts):
    """None when the program ended before its tests did: how it ended is what happened."""
    try:
        report = json.loads(bytes(facts.report))
    except ValueError:
        if os.WIFSIGNALED(facts.judge_wait_status) and os.WTERMSIG(facts.judge_wait_status) == signal.SIGKILL:
            return {"status": "isolation_failed", "detail": "the tests were killed from outside their sandbox"}
        return {"status": "invalid_test", "detail": "the tests ended without a verdict"}
    outcome = report["outcome"]
    if outcome == "invalid":
        return {"status": "invalid_test", "detail": report["detail"]}
    facts.result = bytearray(outcome.encode("ascii"))
    if outcome == "gone" and not facts.was_dismissed:
        return None
    return {"status": "exited", "exit_code": 1 if outcome == "raised" else 0}


def _classify_unready(facts: Facts, memory_bytes: int) -> dict:
    """Ended while its source was compiled: by the source, unless the kernel or the load did it."""
    if facts.status == "starved":
        return {"status": "starved", "detail": "the machine gave the compiler less than half a CPU"}
    if facts.status == "time_limit":
        return {"status": "syntax_error", "detail": "the compiler took too long over it"}
    if facts.status == "memory_limit":
        return {"status": "syntax_error", "detail": "the compiler ran out of memory over it"}
    if os.WIFSIGNALED(facts.wait_status):
        ended = _classify_signal(facts, memory_bytes)
        if ended["status"] != "signaled":
            return ended
        return {"status": "syntax_error", "detail": "the compiler crashed over it (%s)" % ended["signal"]}
    return {"status": "isolation_failed", "detail": "the sandbox ended before its program began"}


def _classify_signal(facts: Facts, memory_bytes: int) -> dict:
    """Nothing inside a case can send its first process SIGKILL: that was the kernel, for a limit that the program had
    set itself, or out of memory, or it was a stranger."""
    number = os.WTERMSIG(facts.wait_status)
    if number != signal.SIGKILL or facts.used_up_own_limit:
        return {"status": "signaled", "signal": _signal_name(number)}
    if facts.max_rss_kib * 1024 >= memory_bytes * _OVER_MEMORY_SLACK:
        return {"status": "memory_limit"}
    return {"status": "isolation_failed", "detail": "the program was killed from outside its sandbox"}


def _peaked_over(facts: Facts, memory_bytes: int) -> bool:
    """A short peak can pass between two looks, but not the kernel's high-water mark of the largest process."""
    return facts.max_rss_kib * 1024 > memory_bytes + _SHARED_WITH_ZYGOTE_BYTES


def _ended_by_memory_error(facts: Facts) -> bool:
    if facts.status is not None or not os.WIFEXITED(facts.wait_status):
        return False
    report, _, last_line = bytes(facts.stderr_tail).rstrip().rpartition(b"\n")
    return (
        os.WEXITSTATUS(facts.wait_status) == _OUT_OF_MEMORY_EXIT_CODE
        and last_line.startswith(b"MemoryError")
        and b"\n  File " in report
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "SIGRTMIN+%d" % (number - signal.SIGRTMIN)


def describe(facts: Facts, ending: dict) -> dict:
    """The fields of a case's line on the wire, besides its type and its place."""
    line = dict(ending)
    try:
        line["stdout"] = facts.stdout.decode("utf-8")
    except UnicodeDecodeError:
        line["stdout_base64"] = base64.b64encode(facts.stdout).decode("ascii")
    if facts.result is not None:
        line["result"] = facts.result.decode("utf-8", "replace")
    line["stderr_tail"] = facts.stderr_tail.decode("utf-8", "backslashreplace")
    cpu_s = max(facts.cpu_s - facts.cpu_before_s, 0.0)
    line["wall_ms"] = round(_wall_s(facts, cpu_s) * 1e3, 3)
    line["cpu_ms"] = round(cpu_s * 1e3, 3)
    line["peak_rss_kib"] = facts.max_rss_kib
    return line


def _wall_s(facts: Facts, cpu_s: float) -> float:
    """Of the times that it can have taken, the shortest into which its CPU time fits; only threads can have more."""
    if facts.started_at_s is None:
        return 0.0
    at_most_s = facts.seen_ended_at_s - facts.started_at_s
    return max(facts.ended_at_s - facts.started_at_s, min(cpu_s, at_most_s), 0.0)
