"""From an answer that is not a success to the exception that says what to do.

The service answers with problem+json and a code. What stands before it (a function's platform, a balancer) answers with
bodies of its own: those are told apart by status alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from .errors import (
    AuthenticationError,
    BatchCancelledError,
    BodyTooLargeError,
    InvalidRequestError,
    MisconfiguredError,
    RequestProblem,
    RewardError,
    RunFinishedError,
    RunNotFoundError,
    UnavailableError,
)

SHOWN_CHARACTERS = 300


def read_failure(status: int, headers: Mapping[str, str], body: bytes) -> RewardError:
    """What an answer means that isn't a 2xx."""
    retry_after_s = read_retry_after(headers.get("retry-after"))
    problem = read_problem(headers.get("content-type", ""), body)
    if problem is not None:
        return read_problem_error(problem, status, retry_after_s)
    text = body.decode("utf-8", "replace").strip()[:SHOWN_CHARACTERS]
    detail = f"Status {status}" + (f": {text}" if text else "")
    if status in (401, 403):
        return AuthenticationError(f"{detail}. Something before the service refused the request.")
    if status == 413:
        return BodyTooLargeError(f"{detail}. Something before the service lets no body of this size through.")
    if status in (408, 425, 429) or status >= 500:
        return UnavailableError(detail, retry_after_s=retry_after_s)
    return MisconfiguredError(f"{detail}. That is no answer of code-rewards: look at its URL.")


def read_problem(content_type: str, body: bytes) -> dict[str, Any] | None:
    if content_type.split(";")[0].strip().lower() != "application/problem+json":
        return None
    try:
        problem = json.loads(body)
    except ValueError:
        return None
    return problem if isinstance(problem, dict) and isinstance(problem.get("code"), str) else None


def read_problem_error(problem: Mapping[str, Any], status: int, retry_after_s: float | None) -> RewardError:
    """The exception behind a problem of the service; `status` counts for codes that this version does not know."""
    code = str(problem.get("code"))
    detail = str(problem.get("detail", ""))
    named: dict[str, Any] = {"code": code, "request_id": problem.get("request_id")}
    match code:
        case "unauthorized":
            return AuthenticationError(detail, **named)
        case "run_not_found":
            return RunNotFoundError(detail, **named)
        case "run_finished":
            return RunFinishedError(detail, **named)
        case "cancelled":
            return BatchCancelledError(detail, **named)
        case "misconfigured" | "not_found" | "method_not_allowed":
            return MisconfiguredError(detail, **named)
        case "too_large":
            return BodyTooLargeError(detail, **named)
        case "in_progress":
            return UnavailableError(detail, retry_after_s=retry_after_s, **named)
    if status in (408, 425, 429) or status >= 500:
        return UnavailableError(detail, retry_after_s=retry_after_s, **named)
    return InvalidRequestError(detail, problems=read_item_errors(problem.get("errors")), **named)


def read_item_errors(errors: Any) -> tuple[RequestProblem, ...]:
    listed = errors if isinstance(errors, list) else []
    return tuple(
        RequestProblem(str(error.get("pointer", "")), str(error.get("detail", "")))
        for error in listed
        if isinstance(error, dict)
    )


def read_retry_after(header: str | None) -> float | None:
    """Seconds from now: the header has seconds or a date (RFC 9110). None when it is absent or neither."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
