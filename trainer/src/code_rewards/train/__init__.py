"""A GRPO run from the command line: `python -m code_rewards.train --help`."""
