"""From a call's completions and tasks to the bodies of requests.

Each task is sent once per request however many completions are judged by it. A call that is too big for one request
becomes several, in order. No text of a model is parsed here, and none of it can make a request invalid: what the
service could refuse in a completion is left out.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import BodyTooLargeError, InvalidRequestError, RequestProblem

Completion = str | list[dict[str, Any]]
Task = dict[str, Any]

# A function's platform takes 6 MiB, of which a compressed body fills a third more than its own size.
WIRE_BYTES = 4 * 1024 * 1024
# What the service itself takes: for what can't be made smaller.
LARGEST_WIRE_BYTES = 6 * 1024 * 1024
# The service inflates 32 MiB.
INFLATED_BYTES = 30 * 1024 * 1024
MAX_SAMPLES = 10_000
# Verdicts that one answer may hold.
MAX_VERDICTS = 1_000_000
# Eight times what the service reads of a completion: whatever is longer is `too_large`, however it goes on.
COMPLETION_CHARACTERS = 2 * 1024 * 1024
DEFAULT_SERVER_DEADLINE_MS = 600_000
# What the service may take is a little less than what its client waits.
ANSWER_MARGIN_MS = 5_000


@dataclass(frozen=True)
class Options:
    """How a call is graded; the names and meanings are the service's."""

    extraction: str = "first"
    reasoning: str | Mapping[str, Any] = "auto"
    detail: str = "verdicts"


@dataclass(frozen=True)
class Sample:
    """One completion as it is sent. `index` is its place in the call."""

    index: int
    completion: bytes
    task: int
    verdicts: int


@dataclass(frozen=True)
class Batch:
    """A call whose samples are encoded. `tasks` are JSON, each once; `first_use` is the sample that had it first."""

    samples: tuple[Sample, ...]
    tasks: tuple[bytes, ...]
    first_use: tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """The samples of one request, by their places in the call, and its body, compressed."""

    samples: tuple[Sample, ...]
    body: bytes
    digest: str


def encode_batch(completions: Sequence[Completion], tasks: Sequence[Task]) -> Batch:
    """Raises `ValueError` when the lists differ in length, `InvalidRequestError` naming what can't be JSON."""
    if len(completions) != len(tasks):
        raise ValueError(f"{len(completions)} completions need as many tasks, not {len(tasks)}")
    numbers: dict[bytes, int] = {}
    known: dict[int, tuple[Task, int]] = {}
    first_use: list[int] = []
    samples = []
    for index, (completion, task) in enumerate(zip(completions, tasks, strict=True)):
        if id(task) not in known:
            number = numbers.setdefault(encode_task(task, index), len(numbers))
            known[id(task)] = (task, number)
            if number == len(first_use):
                first_use.append(index)
        number = known[id(task)][1]
        samples.append(Sample(index, encode_completion(completion, index), number, count_cases(task)))
    return Batch(tuple(samples), tuple(numbers), tuple(first_use))


def encode_task(task: Task, index: int) -> bytes:
    if not isinstance(task, dict):
        raise refuse(f"/tasks/{index}", f"must be a dict with 'test_cases', not {type(task).__name__}", index)
    try:
        return to_json(task, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise refuse(f"/tasks/{index}", f"can't be sent as JSON: {error}", index) from error


def count_cases(task: Task) -> int:
    cases = task.get("test_cases")
    return len(cases) if isinstance(cases, list) else 0


def encode_completion(completion: Completion, index: int) -> bytes:
    """Of a chat only the model's last message is sent, and of that only its text: the service reads nothing else."""
    if isinstance(completion, str):
        return to_json(completion[:COMPLETION_CHARACTERS])
    if not isinstance(completion, list | tuple):
        detail = f"must be a text or a list of chat messages, not {type(completion).__name__}"
        raise refuse(f"/completions/{index}", detail, index)
    text = read_chat(completion)
    return to_json([{"role": "assistant", "content": text[:COMPLETION_CHARACTERS]}])


OTHER_ROLES = frozenset("system developer user human tool tool_result function ipython environment observation".split())
"""Whose messages are no model's; the service has the same list."""
TEXT_PARTS = ("text", "output_text")


def read_chat(messages: Sequence[Any]) -> str:
    """The text of the model's last message: all its text parts. A chat without any has no program: its own affair."""
    said = (m for m in reversed(messages) if isinstance(m, dict) and str(m.get("role")).lower() not in OTHER_ROLES)
    content = next(said, {}).get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    texts = (part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in TEXT_PARTS)
    return "".join(text for text in texts if isinstance(text, str))


def to_json(value: Any, *, sort_keys: bool = False) -> bytes:
    """ASCII: a lone surrogate, which no UTF-8 can hold, arrives as the escape of itself."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False, sort_keys=sort_keys).encode("ascii")


def refuse(pointer: str, detail: str, index: int) -> InvalidRequestError:
    problem = RequestProblem(pointer, detail, (index,))
    return InvalidRequestError("The call can't be sent. Nothing was run.", problems=(problem,))


def split_batch(
    batch: Batch, samples: Sequence[Sample], options: Options, run_id: str | None, remaining_s: Callable[[], float]
) -> Iterator[Part]:
    """The requests for `samples`, in order, each within what the service takes and made when it is asked for:
    `remaining_s` tells what is left to the call then.

    Raises `BodyTooLargeError` when a single sample with its task is too much.
    """
    for group in group_samples(batch, samples, answers_verdicts=options.detail != "rewards"):
        yield from fit_group(batch, group, options, run_id, remaining_s)


def group_samples(batch: Batch, samples: Sequence[Sample], *, answers_verdicts: bool) -> Iterator[list[Sample]]:
    group: list[Sample] = []
    tasks: set[int] = set()
    size = verdicts = 0
    for sample in samples:
        grown = len(sample.completion) + (0 if sample.task in tasks else len(batch.tasks[sample.task])) + 100
        counted = sample.verdicts if answers_verdicts else 0
        is_full = size + grown > INFLATED_BYTES or len(group) == MAX_SAMPLES or verdicts + counted > MAX_VERDICTS
        if group and is_full:
            yield group
            group, tasks, size, verdicts = [], set(), 0, 0
            grown = len(sample.completion) + len(batch.tasks[sample.task]) + 100
        group.append(sample)
        tasks.add(sample.task)
        size += grown
        verdicts += counted
    if group:
        yield group


def fit_group(
    batch: Batch, group: Sequence[Sample], options: Options, run_id: str | None, remaining_s: Callable[[], float]
) -> Iterator[Part]:
    """Halves the group until each part's body is small enough."""
    part = build_part(batch, group, options, run_id, remaining_s())
    if len(part.body) <= (WIRE_BYTES if len(group) > 1 else LARGEST_WIRE_BYTES):
        yield part
        return
    for half in halve(part):
        yield from fit_group(batch, half, options, run_id, remaining_s)


def halve(part: Part) -> tuple[tuple[Sample, ...], tuple[Sample, ...]]:
    """Raises `BodyTooLargeError` when there is nothing to halve."""
    samples = part.samples
    if len(samples) == 1:
        index = samples[0].index
        detail = f"has {len(part.body)} bytes with its task, compressed, and may have {LARGEST_WIRE_BYTES}"
        problem = RequestProblem(f"/tasks/{index}", detail, (index,))
        raise BodyTooLargeError("A task is too large to be sent. Nothing of it was run.", problems=(problem,))
    middle = len(samples) // 2
    return samples[:middle], samples[middle:]


def build_part(
    batch: Batch, samples: Sequence[Sample], options: Options, run_id: str | None, remaining_s: float
) -> Part:
    body = build_body(batch, samples, options, run_id, remaining_s)
    return Part(tuple(samples), gzip.compress(body, compresslevel=6, mtime=0), hashlib.sha256(body).hexdigest()[:16])


def build_body(
    batch: Batch, samples: Sequence[Sample], options: Options, run_id: str | None, remaining_s: float
) -> bytes:
    tasks = b",".join(b'"%d":%s' % (task, batch.tasks[task]) for task in dict.fromkeys(s.task for s in samples))
    listed = b",".join(b'{"task":"%d","completion":%s}' % (sample.task, sample.completion) for sample in samples)
    settings = {
        "detail": options.detail,
        "extraction": options.extraction,
        "reasoning": options.reasoning,
        "deadline_ms": choose_deadline_ms(remaining_s),
    }
    run = b"" if run_id is None else b'"run_id":%s,' % to_json(run_id)
    return b'{%s"options":%s,"tasks":{%s},"samples":[%s]}' % (run, to_json(settings), tasks, listed)


def choose_deadline_ms(remaining_s: float) -> int:
    """What the service is given, of what is left to the call: it is to answer before nobody waits any more."""
    left_ms = int(remaining_s * 1_000) - ANSWER_MARGIN_MS
    return max(1_000, min(DEFAULT_SERVER_DEADLINE_MS, left_ms))


def locate_problem(problem: RequestProblem, part: Part, batch: Batch) -> RequestProblem:
    """A problem of a request, as one of the call: pointers and samples are the caller's."""
    steps = problem.pointer.split("/")
    if len(steps) < 3 or not steps[2].isdecimal():
        return problem
    number, rest = int(steps[2]), steps[3:]
    if steps[1] == "tasks" and number < len(batch.tasks):
        samples = tuple(sample.index for sample in part.samples if sample.task == number)
        return RequestProblem("/".join(["/tasks", str(batch.first_use[number]), *rest]), problem.detail, samples)
    if steps[1] == "samples" and number < len(part.samples):
        index = part.samples[number].index
        field = "tasks" if rest[:1] == ["task"] else "completions"
        return RequestProblem("/".join([f"/{field}", str(index), *rest[1:]]), problem.detail, (index,))
    return problem
