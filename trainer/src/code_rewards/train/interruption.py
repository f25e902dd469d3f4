"""A job that was asked to stop, and can be gone on with."""

from __future__ import annotations


class InterruptedJobError(Exception):
    """`checkpoint` is where the training was saved, None when nothing was."""

    def __init__(self, checkpoint: str | None) -> None:
        super().__init__("stopped, as asked")
        self.checkpoint = checkpoint
