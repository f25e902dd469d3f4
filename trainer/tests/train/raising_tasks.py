"""Tasks that make the trainer fail in its third step, as a bug of the user's own callback would."""

from transformers import Trainer

from token_tasks import HELD_OUT_TASKS, TRAIN_TASKS  # noqa: F401

do_step = Trainer.training_step


def fail_later(self, *arguments, **more):
    if self.state.global_step == 2:
        raise RuntimeError("a bug in the user's own code")
    return do_step(self, *arguments, **more)


Trainer.training_step = fail_later
