"""Reading a streamed answer: one JSON value a line, the last of which says that it is whole."""

from __future__ import annotations

import json
from typing import Any

from .answers import read_problem_error
from .errors import UnavailableError
from .results import Result, Usage, read_result, read_usage


class AnswerReader:
    """Fed with the bytes of an answer as they come.

    `results` has what is known by now, by the place in the request. A fault that ends the whole batch is raised by
    `feed`; `UnavailableError` stands for an answer that can't be one.
    """

    def __init__(self, samples: int) -> None:
        self.results: dict[int, Result] = {}
        self.done = 0
        self.usage: Usage | None = None
        self._samples = samples
        # Lines end with \n only: other line breaks of Unicode may stand in a JSON string as they are.
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Raises what an error line says, as `read_problem_error` does."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            line = b"".join([*self._pieces, end])
            self._pieces.clear()
            if line.strip():
                self._read_line(line)
        if rest:
            self._pieces.append(rest)

    def finish(self) -> Usage:
        """What it cost, once the stream has ended. Raises `UnavailableError` when it was cut."""
        if self.usage is None:
            raise UnavailableError("The answer was cut off before its last line.")
        if len(self.results) != self._samples:
            known = len(self.results)
            raise UnavailableError(f"The answer has results for {known} of {self._samples} samples.")
        return self.usage

    def _read_line(self, line: bytes) -> None:
        try:
            value = json.loads(line)
            kind = value["type"]
            if kind == "result":
                self._keep_result(value)
            elif kind == "progress":
                self.done = max(self.done, int(value["done"]))
            elif kind == "summary":
                self.usage = read_usage(value["usage"])
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise UnavailableError(f"A line of the answer can't be read ({error!r}).") from error
        if kind == "error":
            retry_after_s = value.get("retry_after_s")
            raise read_problem_error(value, int(value.get("status", 500)), retry_after_s)

    def _keep_result(self, value: dict[str, Any]) -> None:
        index = value["index"]
        if not 0 <= index < self._samples:
            raise ValueError(f"sample {index} of {self._samples}")
        self.results[index] = read_result(value)
        self.done = max(self.done, len(self.results))
