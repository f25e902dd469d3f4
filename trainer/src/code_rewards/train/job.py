"""One training job, from its flags to its files.

refuse what can't work ─► join the processes ─► register the run ─► evaluate ─► train ─► save ─► evaluate
                                                                                                    │
every ending, good or bad ─► cancel batches ─► finish the run ─► write the files ◄──────────────────┘
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import read_endpoint
from ..task_files import load_tasks
from ..trl import CodeReward, stop_on_fault
from ..trl_faults import FaultBudgetSpentError
from ..trl_settings import RewardSettings, read_settings
from .advice import advise
from .arguments import TrainOptions
from .endpoint_check import wait_for_endpoint
from .interruption import InterruptedJobError
from .job_files import JobFiles, describe_config, describe_versions
from .pool_report import PoolCounts, describe_pool
from .preflight import RefusedError, check_batches
from .ranks import Ranks
from .run_end import RunEnd, end_run
from .samples import EvaluationSamples, SampleFile, summarize_rewards
from .set_up import find_checkpoint, make_config, make_dataset, make_trainer, require_device

if TYPE_CHECKING:
    from .stop_file import SaveAndStop


class Job:
    """`run` does the work; `close` must follow, however it ended."""

    def __init__(self, options: TrainOptions, ranks: Ranks) -> None:
        self.options = options
        self.ranks = ranks
        self.files = JobFiles(Path(options.output_dir), options.baseline_only)
        self.counts = PoolCounts()
        self.metrics: dict[str, Any] = {"model": options.model, "seed": options.seed}
        self.run_id: str | None = None
        self._reward: CodeReward | None = None
        self._trainer: Any = None
        self._samples: SampleFile | None = None
        self._end: RunEnd | None = None
        self._interruption: SaveAndStop | None = None

    def run(self) -> None:
        """Raises RefusedError, FaultBudgetSpentError, InterruptedJobError, and whatever the trainer raises."""
        options = self.options
        train_tasks, held_out_tasks = load_tasks(options.tasks)
        check_batches(options, len(train_tasks), self.ranks.world_size)
        if not options.skip_eval and not held_out_tasks:
            raise RefusedError(f"{options.tasks} has no HELD_OUT_TASKS to evaluate with; add some, or pass --skip-eval")
        checkpoint = find_checkpoint(options)
        settings = read_settings()
        if self.ranks.is_first:
            wait_for_endpoint(read_endpoint(options.endpoint or settings.url, settings.api_key))
        require_device(options)
        self._open(train_tasks, settings)
        if options.baseline_only:
            self._take_baseline(train_tasks, held_out_tasks)
        else:
            self._train(held_out_tasks, checkpoint)
        self._share_counts()

    def _open(self, train_tasks: Sequence[Any], settings: RewardSettings) -> None:
        from .step_lines import print_steps_only
        from .stop_file import stop_when_asked

        options = self.options
        config = make_config(options, self.ranks.world_size)
        self._reward = CodeReward(
            options.reward_settings(settings, self.ranks.share_first(make_run_id(settings.run_id)))
        )
        self._reward.observers.append(self.counts)
        if options.record_samples:
            self._samples = SampleFile(self.files.samples_path(self.ranks.rank))
            self._reward.observers.append(self._samples)
        self.metrics |= {
            "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "processes": self.ranks.world_size,
            "config": describe_config(config),
            "versions": describe_versions(),
        }
        if self.ranks.is_first:
            self._reward.client.register()
        self.run_id = self._reward.client.run_id
        self.ranks.wait_for_all()
        self._trainer = make_trainer(options, config, self._reward, train_tasks)
        stop_on_fault(self._trainer)
        self._interruption = stop_when_asked(self._trainer)
        print_steps_only(self._trainer)

    def _take_baseline(self, train_tasks: Sequence[Any], held_out_tasks: Sequence[Any]) -> None:
        self.metrics["baseline"] = {
            "train_tasks": self._evaluate("baseline.train_tasks", train_tasks),
            "held_out": self._evaluate("baseline.held_out", held_out_tasks),
        }

    def _train(self, held_out_tasks: Sequence[Any], checkpoint: str | None) -> None:
        trainer = self._trainer
        if checkpoint is not None:
            self.metrics |= {"resumed_from": checkpoint} | self.files.read_before()
        elif not self.options.skip_eval:
            self.metrics["before"] = self._evaluate("before", held_out_tasks)
        self._set_phase("train")
        try:
            self.metrics["train"] = trainer.train(resume_from_checkpoint=checkpoint).metrics
        except FaultBudgetSpentError as error:
            self.metrics["stopped"] = {"cause": str(error), "checkpoint": error.checkpoint}
            raise
        if self._interruption is not None and self._interruption.checkpoint is not None:
            self._note_interruption(self._interruption.checkpoint)
        if trainer.state.global_step == 0:
            raise RefusedError("the trainer did no step: there are too few training tasks for one batch")
        self._save_model()
        if not self.options.skip_eval:
            self.metrics["after"] = self._evaluate("after", held_out_tasks)

    def _note_interruption(self, checkpoint: str) -> None:
        self.metrics["stopped"] = {"cause": "asked to stop", "checkpoint": checkpoint}
        raise InterruptedJobError(checkpoint)

    def _save_model(self) -> None:
        directory = str(self.files.checkpoint_path)
        self._trainer.save_model(directory)
        if self.ranks.is_first:
            self._trainer.processing_class.save_pretrained(directory)
            print(f"Saved the model and its tokenizer to {directory}")

    def _evaluate(self, phase: str, tasks: Sequence[Any]) -> dict[str, Any]:
        assert self._reward is not None
        self._set_phase(phase)
        samples = EvaluationSamples()
        self._reward.observers.append(samples)
        try:
            numbers = self._trainer.evaluate(eval_dataset=make_dataset(tasks))
        except FaultBudgetSpentError as error:
            self.metrics["stopped"] = {"cause": str(error), "checkpoint": None}
            raise
        finally:
            self._reward.observers.remove(samples)
        rewards = [reward for part in self.ranks.gather(samples.rewards) for reward in part]
        if self.ranks.is_first and self.options.baseline_only:
            print("\n".join(samples.shown))
        return {**numbers, **summarize_rewards(rewards)}

    def _set_phase(self, phase: str) -> None:
        if self._samples is not None:
            self._samples.phase = phase

    def _share_counts(self) -> None:
        """The first process writes the files, so it learns what the others used; nobody ends before all are done."""
        self.counts = reduce(add, self.ranks.gather(self.counts))

    def close(self, *, is_whole: bool) -> RunEnd:
        """Finishes the run. Safe to call from another thread, and again."""
        if self._end is None and self._reward is not None and self.run_id is not None:
            endpoint = read_endpoint(self._reward.settings.url, self._reward.settings.api_key)
            self._end = end_run(
                self._reward.client, endpoint, self.run_id, is_first=self.ranks.is_first, is_whole=is_whole
            )
        return self._end or RunEnd()

    def write_files(self, end: RunEnd) -> str | None:
        """Writes what is known; answers the path, None when there is nothing to write."""
        if self._trainer is None or not self.ranks.is_first:
            return None
        history = self._trainer.state.log_history
        evaluations = [self.metrics.get("before"), *self.metrics.get("baseline", {}).values()]
        self.metrics |= {
            "advice": advise([numbers for numbers in evaluations if numbers], history),
            "history": history,
            "pool": describe_pool(self.counts, self.run_id, end.totals)
            | {"remaining_sandboxes": list(end.remaining), "finish_error": end.error},
        }
        for sentence in self.metrics["advice"]:
            print(f"Advice: {sentence}")
        return self.files.write(self.metrics)


def make_run_id(chosen: str | None) -> str:
    """A new one unless the environment names one: an old run, once finished, takes no batch."""
    import secrets

    return chosen or f"train-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
