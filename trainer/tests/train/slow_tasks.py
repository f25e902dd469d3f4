"""Tasks whose programs may take a minute, so that a test can end a job while they run."""

from code_rewards.tasks import case, task

TRAIN_TASKS = [task(f"Take your time. {number}", case("", "1"), limits={"time_ms": 60_000}) for number in range(4)]
HELD_OUT_TASKS = []
