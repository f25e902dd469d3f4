"""Reading the bodies of requests: every field has its type and its range, or the request is refused."""

from __future__ import annotations

import json

import checks
from http_server import HttpError
from submission import MODES

_MAX_TOKEN = 1 << 62
_LIMIT_RANGES = {"time_ms": (1, 600_000), "memory_mib": (16, 1 << 20), "output_bytes": (0, 64 << 20)}
_MAX_DEADLINE_MS = 3_600_000


def read_object(body: bytes) -> dict:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise _invalid("the body is not JSON") from None
    if not isinstance(value, dict):
        raise _invalid("the body is not a JSON object")
    return value


def read_fencing_token(body: dict) -> int:
    return _integer(body, "fencing_token", 0, _MAX_TOKEN)


def read_chunk(body: dict, memory_mib: int):
    """(fencing token, chunk id, programs, deadline in seconds). A program that this worker can't run has a `problem`;
    that is no reason to refuse those beside it. Many programs may name one checker: it is sent, and kept, once."""
    token = read_fencing_token(body)
    chunk_id = _string(body, "chunk_id")
    deadline_s = _integer(body, "deadline_ms", 1, _MAX_DEADLINE_MS) / 1e3
    checkers = _read_checkers(body)
    programs = body.get("programs")
    if not isinstance(programs, list):
        raise _invalid("programs is not a list")
    for program in programs:
        _check_program(program, checkers)
        program["checker"] = checkers[program["checker"]] if program.get("mode") == "checked" else b""
        program["problem"] = _find_problem(program, memory_mib)
    return token, chunk_id, programs, deadline_s


def _read_checkers(body: dict) -> dict:
    """Sources by their names; None for one that isn't text."""
    checkers = body.get("checkers", {})
    if not isinstance(checkers, dict) or not all(isinstance(source, str) for source in checkers.values()):
        raise _invalid("checkers is not an object of strings")
    return {name: source.encode("utf-8") if _is_encodable(source) else None for name, source in checkers.items()}


def _check_program(program, checkers: dict) -> None:
    if not isinstance(program, dict) or not isinstance(program.get("limits"), dict):
        raise _invalid("a program is not an object with limits")
    _string(program, "id")
    _string(program, "source")
    if program.get("mode", "main") not in MODES:
        raise _invalid("mode is none of " + ", ".join(MODES))
    inputs = program.get("inputs")
    if not isinstance(inputs, list) or not all(isinstance(text, str) for text in inputs):
        raise _invalid("inputs is not a list of strings")
    if program.get("mode") == "checked":
        if _string(program, "checker") not in checkers:
            raise _invalid("checker names none of the checkers")
        if not all(_is_checked_case(text) for text in inputs):
            raise _invalid("an input of a checked program is not JSON with an input and an expected output")
    for name, (low, high) in _LIMIT_RANGES.items():
        _integer(program["limits"], name, low, high)


def _is_checked_case(text: str) -> bool:
    try:
        checks.read_case(text)
        return True
    except (ValueError, RecursionError):
        return False


def _find_problem(program, memory_mib: int):
    if program["limits"]["memory_mib"] > memory_mib:
        return "memory_mib is over the %d MiB that this worker has for programs" % memory_mib
    if program["checker"] is None:
        return "checker holds a lone surrogate, which is not text"
    if not _is_encodable(program["source"]):
        return "source holds a lone surrogate, which is not text"
    if not all(_is_encodable(text) for text in program["inputs"]):
        return "an input holds a lone surrogate, which is not text"
    return None


def _integer(holder: dict, name: str, low: int, high: int) -> int:
    value = holder.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _invalid("%s is not an integer from %d to %d" % (name, low, high))
    return value


def _string(holder: dict, name: str) -> str:
    value = holder.get(name)
    if not isinstance(value, str):
        raise _invalid("%s is not a string" % name)
    return value


def _is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
        return True
    except UnicodeEncodeError:
        return False


def _invalid(detail: str) -> HttpError:
    return HttpError(400, "invalid_request", detail)
