"""Where the service is, and the key it is asked with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from .errors import MisconfiguredError

URL_VARIABLE = "CODE_REWARDS_URL"
API_KEY_VARIABLE = "CODE_REWARDS_API_KEY"


@dataclass(frozen=True)
class Endpoint:
    """A service. Its key is left out of every text about it."""

    url: str
    api_key: str = field(repr=False)


def read_endpoint(url: str | None, api_key: str | None, environment: Mapping[str, str] = os.environ) -> Endpoint:
    """The endpoint from what was given, else from CODE_REWARDS_URL and CODE_REWARDS_API_KEY.

    Raises `MisconfiguredError` with every problem at once.
    """
    problems = []
    url = (url or environment.get(URL_VARIABLE, "")).strip()
    api_key = (api_key or environment.get(API_KEY_VARIABLE, "")).strip()
    if not url:
        problems.append(f"no URL of the service: pass url=… or set {URL_VARIABLE}")
    elif not is_http_url(url):
        problems.append(f"the URL of the service must start with http:// or https:// and name a host, not {url!r}")
    if not api_key:
        problems.append(f"no API key: pass api_key=… or set {API_KEY_VARIABLE}")
    elif not api_key.isascii() or any(character.isspace() for character in api_key):
        problems.append("the API key must be ASCII without blanks: it could not be sent as a bearer key")
    if problems:
        raise MisconfiguredError("; ".join(problems) + ".")
    return Endpoint(url, api_key)


def is_http_url(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return url.scheme in ("http", "https") and url.host != ""
