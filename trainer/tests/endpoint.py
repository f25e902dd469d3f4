"""The service itself, embedded on this machine: real handlers, workers and table, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bound_process import die_with_parent

REPOSITORY = Path(__file__).resolve().parents[2]
START_LIMIT_S = 90
STOP_LIMIT_S = 20
EXPIRED_MS = 400_000


@dataclass(frozen=True)
class LocalEndpoint:
    url: str
    api_key: str
    e2b_api_url: str
    dynamodb_endpoint: str
    table: str

    def get(self, path: str) -> Any:
        return self.ask("GET", path).json()

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.api_key}"}
        return httpx.request(method, f"{self.url}{path}", headers=headers, timeout=60, **more)

    def run_ids(self) -> set[str]:
        return {run["run_id"] for run in self.get("/v1/runs")["runs"]}

    def sandboxes(self) -> list[str]:
        """E2B's own list."""
        answer = httpx.get(f"{self.e2b_api_url}/v2/sandboxes", headers={"x-api-key": "e2b_local"})
        return [sandbox["sandboxID"] for sandbox in answer.json()]

    def lose_run(self, run_id: str) -> None:
        """As a service that was set up anew."""
        for key in self._rows_of(run_id):
            self._ask_table("DeleteItem", Key=key)

    def age_run(self, run_id: str) -> None:
        """As though nobody had spoken of it for longer than it lives."""
        run, *entries = self._rows_of(run_id)
        self._move(run, "beat")
        for entry in entries:
            self._move(entry, "at")

    def sweep(self) -> None:
        """One pass of the cleanup that runs every minute elsewhere."""
        self.ask("POST", "/local/sweep").raise_for_status()

    def _rows_of(self, run_id: str) -> list[dict[str, Any]]:
        """The keys of the run's row and of its ledger's entries."""
        values = {":pk": {"S": f"L#{run_id}"}}
        found = self._ask_table("Query", KeyConditionExpression="pk = :pk", ExpressionAttributeValues=values)
        entries = [{"pk": item["pk"], "sk": item["sk"]} for item in found["Items"]]
        return [{"pk": {"S": "runs"}, "sk": {"S": f"R#{run_id}"}}, *entries]

    def _move(self, key: dict[str, Any], column: str) -> None:
        """Makes a row's time older by more than a run lives."""
        self._ask_table(
            "UpdateItem",
            Key=key,
            UpdateExpression="SET #time = #time - :ms",
            ExpressionAttributeNames={"#time": column},
            ExpressionAttributeValues={":ms": {"N": str(EXPIRED_MS)}},
        )

    def _ask_table(self, action: str, **request: Any) -> Any:
        credential = "Credential=test/20270115/eu-west-1/dynamodb/aws4_request"
        headers = {
            "x-amz-target": f"DynamoDB_20120810.{action}",
            "content-type": "application/x-amz-json-1.0",
            "x-amz-date": "20270115T080000Z",
            "authorization": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0",
        }
        body = {"TableName": self.table, **request}
        answer = httpx.post(self.dynamodb_endpoint, headers=headers, content=json.dumps(body))
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextmanager
def start_endpoint(*arguments: str, api_key: str | None = None) -> Iterator[LocalEndpoint]:
    """What `npm run local` starts, ended with everything that it started. Without a key it makes one up."""
    # npm does not pass signals on, and this is to end as it does on Ctrl-C.
    command = ["node", "--import", "tsx", "functions/local/main.ts", "--port", "0", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CODE_REWARDS_")}
    if api_key is not None:
        environment["CODE_REWARDS_API_KEY"] = api_key
    # Programs are to run on the machine's Python, not on the one of these tests.
    folders = environment["PATH"].split(os.pathsep)
    environment["PATH"] = os.pathsep.join(folder for folder in folders if not folder.startswith(sys.prefix))
    process = subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the service did not start; what it said is above"
        ready = json.loads(line)
        yield LocalEndpoint(
            **{name: ready[name] for name in ("url", "api_key", "e2b_api_url", "dynamodb_endpoint", "table")}
        )
    finally:
        stop(process)


def stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_LIMIT_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.stdout is not None
    process.stdout.close()
