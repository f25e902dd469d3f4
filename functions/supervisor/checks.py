"""A task author's checker: says whether what a program printed is right, when several outputs are.

Theory of operation. The checker is a program, and runs as one, in a case of its own, after the program's case has
ended. It is the only case that ever holds an expected output, so it never runs while any submitted program runs on this
worker (see `scheduler.py`), nor does any begin before it has ended. It is given three files by their names in its
arguments: the input, the expected output, and the program's output. It says `1` for right, or `0`, on standard output.

A checker that fails over an output, say since it isn't a number, has not said that the output is wrong. So it is then
run on the expected output: if it finds that right, it was the program's output that it could not read, and that is
wrong. If not, the checker can't judge anybody.
"""

from __future__ import annotations

import json

FILE_NAMES = ("input.txt", "expected_output.txt", "output.txt")
_TIME_LIMIT_S = 10.0
_OUTPUT_BYTES = 4096
_RIGHT, _WRONG = (b"1", b"1.0", b"True"), (b"0", b"0.0", b"False")


class Check:
    """One run of a checker, in the place of a program. `facts` and `ending` are those of the program's case."""

    mode = "check"
    time_limit_s = _TIME_LIMIT_S
    output_bytes = _OUTPUT_BYTES

    def __init__(self, program, case_index: int, facts, ending: dict):
        self.facts = facts
        self.ending = ending
        self.memory_mib = program.memory_mib
        self.memory_bytes = program.memory_bytes
        self.source = program.checker
        self.is_control = False
        case = program.checked_case(case_index)
        self._input, self._expected = case["input"].encode("utf-8"), case["expected"].encode("utf-8")

    def files(self):
        """What its files hold, in the order of FILE_NAMES."""
        return self._input, self._expected, self._expected if self.is_control else bytes(self.facts.stdout)

    def take(self, facts, ending: dict):
        """What the program's case comes to, once a run has ended; None when another run is needed."""
        said = bytes(facts.stdout).strip()
        is_readable = ending["status"] == "exited" and ending["exit_code"] == 0 and said in _RIGHT + _WRONG
        if ending["status"] in ("starved", "isolation_failed"):
            return ending
        if self.is_control:
            if is_readable and said in _RIGHT:
                return self._conclude("wrong")
            return {"status": "invalid_test", "detail": "the checker does not accept the expected output"}
        self.facts.stderr_tail += facts.stderr_tail  # what it says of the output goes with what the program said
        if is_readable:
            return self._conclude("right" if said in _RIGHT else "wrong")
        self.is_control = True
        return None

    def _conclude(self, result: str) -> dict:
        self.facts.result = bytearray(result.encode("ascii"))
        return self.ending


def read_case(text: str) -> dict:
    """Of a checked program, what an input holds; raises ValueError."""
    case = json.loads(text)
    if type(case) is not dict or not all(isinstance(case.get(name), str) for name in ("input", "expected")):
        raise ValueError("no input and expected output")
    return case
