"""The end of a job's run: its sandboxes go, whatever ended the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from ..client import AsyncRewardClient
from ..config import Endpoint
from ..errors import RewardError
from ..exchange import client_options, run_path, send

FINISH_LIMIT_S = 45.0
# Launchers kill for good about 30 s after they asked.
HASTY_LIMIT_S = 20.0
TOTALS_LIMIT_S = 10.0


@dataclass(frozen=True)
class RunEnd:
    """What came of finishing the run. `error`: why it is not known to be finished."""

    remaining: tuple[str, ...] = ()
    totals: Mapping[str, Any] | None = None
    error: str | None = None


def end_run(client: AsyncRewardClient, endpoint: Endpoint, run_id: str, *, is_first: bool, is_whole: bool) -> RunEnd:
    """Cancels this process's batches and finishes the run.

    The first process does that. When the job didn't end as it should, every process does, since the first may be the
    one that is gone; finishing twice changes nothing.
    """
    try:
        remaining = client.finish(FINISH_LIMIT_S if is_whole else HASTY_LIMIT_S)
        if not is_first and is_whole:
            return RunEnd()
        with httpx.Client(**client_options(endpoint)) as http:
            if not is_first:
                answer = send(http, "DELETE", run_path(run_id), timeout_s=HASTY_LIMIT_S)
                remaining = [str(sandbox) for sandbox in answer.get("remaining_sandboxes", [])]
            return RunEnd(tuple(remaining), read_totals(http, run_id))
    except RewardError as error:
        return RunEnd(error=str(error))


def read_totals(http: httpx.Client, run_id: str) -> Mapping[str, Any] | None:
    """For the report only: without them it says less."""
    try:
        totals = send(http, "GET", run_path(run_id), timeout_s=TOTALS_LIMIT_S).get("totals")
    except RewardError:
        return None
    return totals if isinstance(totals, dict) else None
