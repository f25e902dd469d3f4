"""A user's own training script: another trainer of TRL, the reward named by its path, nothing else of ours."""

import sys

from datasets import Dataset
from trl import RLOOConfig, RLOOTrainer

from code_rewards.trl import code_reward, stop_on_fault
from token_tasks import TRAIN_TASKS

config = RLOOConfig(
    output_dir=sys.argv[2],
    use_cpu=True,
    per_device_train_batch_size=8,
    num_generations=8,
    max_completion_length=1,
    max_steps=2,
    logging_steps=1,
    report_to="none",
    save_strategy="no",
)
trainer = RLOOTrainer(
    model=sys.argv[1], args=config, reward_funcs=code_reward, train_dataset=Dataset.from_list(TRAIN_TASKS)
)
stop_on_fault(trainer)
trainer.train()
print("rewards:", [entry["rewards/code_reward/mean"] for entry in trainer.state.log_history if "reward" in entry])
