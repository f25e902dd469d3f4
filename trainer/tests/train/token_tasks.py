"""One kind of task, many times: what a tiny model can learn in seconds."""

from code_rewards.tasks import case, task


def sum_tokens(number):
    return task(
        f"Add up the tokens of each customer. {number}",
        case([{"customer": "nova", "tokens": number}, {"customer": "nova", "tokens": 5}], {"nova": number + 5}),
        case([{"customer": "iris", "tokens": number}], {"iris": number}),
        task_id=f"sum-{number}",
    )


TRAIN_TASKS = [sum_tokens(number) for number in range(1, 9)]
HELD_OUT_TASKS = [sum_tokens(number) for number in (101, 102)]
