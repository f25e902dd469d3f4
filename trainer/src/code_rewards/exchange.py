"""Single requests to the service. Everything that fails is raised as one of our errors."""

from __future__ import annotations

import functools
import json
import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx

from .answers import read_failure
from .config import Endpoint
from .errors import MisconfiguredError, RewardError, UnavailableError
from .results import Usage
from .stream import AnswerReader
from .wire import Part

# The service says something at least every 10 s while it grades.
STREAM_TIMEOUT = httpx.Timeout(connect=15, read=60, write=120, pool=60)
# Registering a run waits up to 20 s for its workers, finishing it up to 30 s.
REQUEST_TIMEOUT = httpx.Timeout(connect=15, read=60, write=60, pool=60)


@functools.cache
def trusted_certificates() -> ssl.SSLContext:
    """Read once: that takes longer than a request."""
    return httpx.create_ssl_context()


def client_options(endpoint: Endpoint) -> dict[str, Any]:
    """How both of httpx's clients are made."""
    return {
        "base_url": endpoint.url,
        "headers": {"authorization": f"Bearer {endpoint.api_key}", "user-agent": "code-rewards-trainer"},
        "timeout": REQUEST_TIMEOUT,
        "verify": trusted_certificates(),
    }


def batch_path(key: str) -> str:
    return f"v1/batches/{quote(key, safe='')}"


def run_path(run_id: str) -> str:
    return f"v1/runs/{quote(run_id, safe='')}"


async def send_async(http: httpx.AsyncClient, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """The JSON that is answered."""
    try:
        return read_json(await http.request(method, path, json=body))
    except httpx.HTTPError as error:
        raise read_transport_error(error) from error


def send(http: httpx.Client, method: str, path: str, *, timeout_s: float) -> dict[str, Any]:
    try:
        return read_json(http.request(method, path, timeout=timeout_s))
    except httpx.HTTPError as error:
        raise read_transport_error(error) from error


async def grade_part(
    http: httpx.AsyncClient, part: Part, key: str, reader: AnswerReader, on_progress: Callable[[int], None]
) -> Usage:
    """Sends a request and reads its answer; what is known of it by now is in `reader` even when it fails."""
    headers = {
        "accept": "application/x-ndjson",
        "content-encoding": "gzip",
        "content-type": "application/json",
        "idempotency-key": key,
    }
    asked = http.stream("POST", "v1/rewards", content=part.body, headers=headers, timeout=STREAM_TIMEOUT)
    try:
        async with asked as response:
            if response.status_code != 200:
                raise read_failure(response.status_code, response.headers, await response.aread())
            async for data in response.aiter_bytes():
                reader.feed(data)
                on_progress(reader.done)
    except httpx.HTTPError as error:
        raise read_transport_error(error) from error
    return reader.finish()


def read_json(response: httpx.Response) -> dict[str, Any]:
    if not response.is_success:
        raise read_failure(response.status_code, response.headers, response.content)
    try:
        value = json.loads(response.content)
    except ValueError as error:
        raise UnavailableError(f"The answer with status {response.status_code} is not JSON.") from error
    if not isinstance(value, dict):
        raise UnavailableError(f"The answer with status {response.status_code} is not a JSON object.")
    return value


def read_transport_error(error: httpx.HTTPError) -> RewardError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return MisconfiguredError(f"The service's certificate is not trusted: {cause.verify_message}.")
        cause = cause.__cause__ or cause.__context__
    return UnavailableError(f"The connection failed: {str(error) or type(error).__name__}")
