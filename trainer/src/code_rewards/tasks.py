"""Tasks to train on and to be judged by, and what you need to write your own.

A file of your own has the same two names, lists of what `task` returns:

    from code_rewards.tasks import case, task

    TRAIN_TASKS = [
        task(
            "Read a JSON array of integers from standard input and print their sum.",
            case([1, 2], 3),
            case([-4], -4),
            solution="import json, sys\\nprint(sum(json.load(sys.stdin)))",
        ),
    ]
    HELD_OUT_TASKS = [...]

`code-rewards check-tasks my_tasks.py` says what known solutions and known shortcuts score on them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

TestCase = dict[str, str]
Messages = list[dict[str, Any]]


def case(input: Any, output: Any) -> TestCase:
    """One test case: what the program reads from standard input, and what it must print.

    A string is taken as it is (so the JSON text "a" is `'"a"'`); anything else is written as JSON. Both are kept as
    text, so that the column has one type whatever the values are.
    """
    return {"input": as_text(input), "output": as_text(output)}


def task(
    prompt: str | Sequence[Mapping[str, Any]],
    *cases: TestCase,
    task_id: str | None = None,
    comparison: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    scoring: Mapping[str, Any] | None = None,
    solution: str | None = None,
) -> dict[str, Any]:
    """One row of a dataset: a prompt and the test cases that judge every program written for it.

    `prompt` is the text of the user's message, or a list of messages. `comparison`, `limits` and `scoring` are sent as
    they are, say `limits={"time_ms": 500}`. `solution`, a program's source, is for `check-tasks` only: neither the
    model nor the trainer sees it. Raises ValueError when there is no case.
    """
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [dict(part) for part in prompt]
    if not cases:
        raise ValueError("a task needs at least one test case: a program can't be judged by none")
    row: dict[str, Any] = {"task_id": task_id or derive_id(messages), "prompt": messages, "test_cases": list(cases)}
    optional = {"comparison": comparison, "limits": limits, "scoring": scoring, "solution": solution}
    return row | {name: value for name, value in optional.items() if value is not None}


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def derive_id(messages: Messages) -> str:
    return "task-" + hashlib.sha256(json.dumps(messages).encode()).hexdigest()[:12]


def usage_task(task_id: str, question: str, rule: str, *cases: TestCase, per_customer: str) -> dict[str, Any]:
    """A task over API-usage records. No case's answer is the same for every input, so that no constant earns one."""
    prompt = (
        f"{question} The program's standard input is one JSON array of API-usage records, each a JSON object whose "
        f'field "customer" is a string. Print one JSON object that maps each customer\'s name to an integer. {rule} '
        "Read the records from standard input, use only Python's standard library, and answer with the complete "
        "program in one fenced python block."
    )
    solution = (
        "import json, sys\n\n"
        "totals = {}\n"
        "for record in json.load(sys.stdin):\n"
        f"{per_customer}\n"
        "print(json.dumps(totals))"
    )
    return task(prompt, *cases, task_id=task_id, solution=solution)


def add(amount: str, indent: str = "    ") -> str:
    return f"{indent}totals[record['customer']] = totals.get(record['customer'], 0) + {amount}"


TRAIN_TASKS = [
    usage_task(
        "token-totals",
        'Write a Python program that adds up the integer field "tokens" of each customer\'s records.',
        "A customer whose records add up to 0 appears with 0.",
        case([{"customer": "nova", "tokens": 70}, {"customer": "iris", "tokens": 9}], {"nova": 70, "iris": 9}),
        case(
            [
                {"customer": "iris", "tokens": 31},
                {"customer": "nova", "tokens": 4},
                {"customer": "iris", "tokens": 11},
                {"customer": "iris", "tokens": 8},
            ],
            {"iris": 50, "nova": 4},
        ),
        case(
            [{"customer": "idle", "tokens": 0}, {"customer": "bulk", "tokens": 2500000}], {"idle": 0, "bulk": 2500000}
        ),
        case([{"customer": "Ünal & Co", "tokens": 5}, {"customer": "Ünal & Co", "tokens": 6}], {"Ünal & Co": 11}),
        per_customer=add("record['tokens']"),
    ),
    usage_task(
        "request-counts",
        "Write a Python program that counts the records of each customer.",
        "Every customer that has a record appears.",
        case([{"customer": "solo"}], {"solo": 1}),
        case([{"customer": "nova"}, {"customer": "iris"}, {"customer": "nova"}], {"nova": 2, "iris": 1}),
        case(
            [{"customer": "iris", "tokens": 40}, {"customer": "iris", "tokens": 2}, {"customer": "iris", "tokens": 0}],
            {"iris": 3},
        ),
        per_customer=add("1"),
    ),
    usage_task(
        "successful-tokens",
        'Write a Python program that adds up the integer field "tokens" of each customer\'s successful records: those '
        'whose integer field "status" is 200.',
        "A customer without a successful record doesn't appear.",
        case(
            [{"customer": "nova", "tokens": 6, "status": 200}, {"customer": "nova", "tokens": 3, "status": 200}],
            {"nova": 9},
        ),
        case(
            [
                {"customer": "iris", "tokens": 14, "status": 200},
                {"customer": "iris", "tokens": 90, "status": 503},
                {"customer": "nova", "tokens": 2, "status": 200},
                {"customer": "lost", "tokens": 7, "status": 404},
            ],
            {"iris": 14, "nova": 2},
        ),
        case(
            [{"customer": "lost", "tokens": 8, "status": 429}, {"customer": "kept", "tokens": 1, "status": 200}],
            {"kept": 1},
        ),
        per_customer="    if record['status'] == 200:\n" + add("record['tokens']", "        "),
    ),
]

HELD_OUT_TASKS = [
    usage_task(
        "input-token-totals",
        'Write a Python program that adds up the integer field "input_tokens" of each customer\'s records. Their '
        'integer field "output_tokens" doesn\'t count.',
        "A customer whose records add up to 0 appears with 0.",
        case([{"customer": "vega", "input_tokens": 12, "output_tokens": 300}], {"vega": 12}),
        case(
            [
                {"customer": "vega", "input_tokens": 5, "output_tokens": 1},
                {"customer": "mira", "input_tokens": 0, "output_tokens": 64},
                {"customer": "vega", "input_tokens": 20, "output_tokens": 2},
            ],
            {"vega": 25, "mira": 0},
        ),
        per_customer=add("record['input_tokens']"),
    ),
    usage_task(
        "error-counts",
        'Write a Python program that counts each customer\'s failed records: those whose integer field "status" is '
        "400 or more.",
        "A customer without a failed record doesn't appear.",
        case([{"customer": "vega", "status": 500}, {"customer": "vega", "status": 429}], {"vega": 2}),
        case(
            [
                {"customer": "mira", "status": 400},
                {"customer": "vega", "status": 200},
                {"customer": "mira", "status": 200},
                {"customer": "orla", "status": 399},
            ],
            {"mira": 1},
        ),
        per_customer="    if record['status'] >= 400:\n" + add("1", "        "),
    ),
]
