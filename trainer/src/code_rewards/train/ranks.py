"""The processes of one job, and what they tell each other.

`accelerate launch` and `torchrun` both say by the environment who is who; without them there is one process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ranks:
    """This process's number, and how many there are."""

    rank: int = 0
    world_size: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        return self.world_size == 1

    def share_first(self, value: Any) -> Any:
        """What the first rank gave. Every rank must call it, in its main thread."""
        if self.is_alone:
            return value
        import torch.distributed

        values = [value]
        torch.distributed.broadcast_object_list(values, src=0)
        return values[0]

    def gather(self, value: Any) -> list[Any]:
        """What every rank gave, by rank. Every rank must call it, in its main thread."""
        if self.is_alone:
            return [value]
        import torch.distributed

        values: list[Any] = [None] * self.world_size
        torch.distributed.all_gather_object(values, value)
        return values

    def wait_for_all(self) -> None:
        if not self.is_alone:
            import torch.distributed

            torch.distributed.barrier()


def read_ranks() -> Ranks:
    return Ranks(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))
