"""Says of pairs of texts what CPython's json module says of them.

Reads lines `[expected, stdout]` and writes one line each: `u` when the expected text can't be read or written again,
else `1` when both are equal values and `0` when they are not.
"""

import json
import re
import sys

MAX_DEPTH = 1_000

sys.setrecursionlimit(20_000)
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)

MARKS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def is_too_deep(text: str) -> bool:
    depth = 0
    for mark in MARKS.findall(text):
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif mark in "]}":
            depth -= 1
    return False


def judge(expected: str, stdout: str) -> str:
    if is_too_deep(expected):
        return "u"
    try:
        expected_text = dump(json.loads(expected))
    except ValueError:
        return "u"
    try:
        if is_too_deep(stdout):
            return "0"
        return "1" if expected_text == dump(json.loads(stdout)) else "0"
    except ValueError:
        return "0"


def dump(value: object) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)


for line in sys.stdin:
    print(judge(*json.loads(line)))
