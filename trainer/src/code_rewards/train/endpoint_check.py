"""Whether there is an endpoint at the address, asked before a model is loaded."""

from __future__ import annotations

import time

import httpx

from ..config import Endpoint
from .preflight import RefusedError

PATIENCE_S = 30.0
EVERY_S = 1.0


def wait_for_endpoint(endpoint: Endpoint, patience_s: float = PATIENCE_S) -> None:
    """Raises RefusedError when nothing answers there within `patience_s`."""
    ends_s = time.monotonic() + patience_s
    while True:
        problem = find_problem(endpoint.url)
        if problem is None:
            return
        if time.monotonic() + EVERY_S > ends_s:
            raise RefusedError(
                f"the endpoint at {endpoint.url} doesn't answer ({problem}): start it, or correct --endpoint or "
                "CODE_REWARDS_URL"
            )
        time.sleep(EVERY_S)


def find_problem(url: str) -> str | None:
    try:
        status = httpx.get(f"{url.rstrip('/')}/healthz", timeout=10).status_code
    except httpx.HTTPError as error:
        return str(error) or type(error).__name__
    return None if status == 200 else f"status {status} for /healthz"
