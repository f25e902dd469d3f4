"""Whether the endpoint is there, knows the key and can make sandboxes, asked before a model is loaded."""

from __future__ import annotations

import time

import httpx

from ..config import Endpoint
from ..errors import UnavailableError
from ..exchange import client_options, send
from .preflight import RefusedError

PATIENCE_S = 30.0
EVERY_S = 1.0
LIMIT_S = 15.0


def wait_for_endpoint(endpoint: Endpoint, patience_s: float = PATIENCE_S) -> None:
    """Raises RefusedError when it isn't ready within `patience_s`; AuthenticationError, MisconfiguredError at once."""
    ends_s = time.monotonic() + patience_s
    with httpx.Client(**client_options(endpoint)) as http:
        while True:
            try:
                send(http, "GET", "readyz", timeout_s=LIMIT_S)
                return
            except UnavailableError as error:
                if time.monotonic() + EVERY_S > ends_s:
                    raise RefusedError(
                        f"the endpoint at {endpoint.url} isn't ready ({error}): start it, or correct --endpoint or "
                        "CODE_REWARDS_URL"
                    ) from None
            time.sleep(EVERY_S)
