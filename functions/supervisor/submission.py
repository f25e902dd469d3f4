"""A program as it was submitted: its source, its inputs, its limits."""

from __future__ import annotations

import fcntl
import os

import checks

MODES = ("main", "call", "tests", "checked")
_CALL_SETUP = b'{"is_prelude_wanted":true}\n'

_F_ADD_SEALS = 1033
_ALL_SEALS = 0xF


def sealed_file(data: bytes) -> int:
    """A read-only descriptor of an immutable memory file."""
    fd = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        fcntl.fcntl(fd, _F_ADD_SEALS, _ALL_SEALS)
        return os.open("/proc/self/fd/%d" % fd, os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(fd)


class Program:
    """While any of its cases is under way, the source lies in one sealed file that they share."""

    def __init__(self, request: dict):
        limits = request["limits"]
        self.id = request["id"]
        # A program of its own (whose output a checker judges), a library of which a function is called, or one that
        # tests beside it call.
        self.mode = request.get("mode", "main")
        self.case_count = len(request["inputs"])
        self.time_limit_s = limits["time_ms"] / 1e3
        self.memory_mib = limits["memory_mib"]
        self.memory_bytes = self.memory_mib << 20
        self.output_bytes = limits["output_bytes"]
        self.checker = request.get("checker", b"")
        self.is_rejected = False
        self._inputs = request["inputs"]
        self._source = request["source"].encode("utf-8")
        self._source_fd = -1
        self._running = 0

    def stdin(self, case_index: int) -> bytes:
        if self.mode == "checked":
            return self.checked_case(case_index)["input"].encode("utf-8")
        return self._inputs[case_index].encode("utf-8") if self.mode == "main" else b""

    def checked_case(self, case_index: int) -> dict:
        return checks.read_case(self._inputs[case_index])

    def test(self, case_index: int) -> bytes:
        """What a judge runs (see `judge.py`)."""
        return self._inputs[case_index].encode("utf-8")

    def requests(self, case_index: int) -> bytes:
        """What is asked of a library (see `calls.py`)."""
        return _CALL_SETUP + self._inputs[case_index].encode("utf-8") + b"\n"

    def source_fd(self) -> int:
        if self._source_fd < 0:
            self._source_fd = sealed_file(self._source)
        return self._source_fd

    def begin_case(self) -> None:
        self._running += 1

    def end_case(self) -> None:
        self._running -= 1
        if self._running == 0 and self._source_fd >= 0:
            os.close(self._source_fd)
            self._source_fd = -1
