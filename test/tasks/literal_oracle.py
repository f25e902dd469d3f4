"""Says of texts what Python's own reader of literals says: reads JSON texts, one a line, and writes one line each.

`u` when it is no literal, or holds something that JSON has no word for; else the value as JSON.
"""

import ast
import json
import math
import sys

if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)


def check(value) -> None:
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError
        for member in value.values():
            check(member)
    elif isinstance(value, (list, tuple)):
        for item in value:
            check(item)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError
    elif not (value is None or isinstance(value, (bool, int, str))):
        raise ValueError


for line in sys.stdin:
    try:
        value = ast.literal_eval(json.loads(line).strip())
        check(value)
        sys.stdout.write(json.dumps(value) + "\n")
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        sys.stdout.write("u\n")
