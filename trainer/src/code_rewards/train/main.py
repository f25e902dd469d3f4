"""`python -m code_rewards.train`: runs a job, ends it well, and says by its exit code how it went."""

from __future__ import annotations

import logging
import os
import sys
import traceback
import warnings
from collections.abc import Sequence

from ..errors import RewardError
from ..task_files import TaskFileError
from ..trl_faults import FaultBudgetSpentError
from .arguments import TrainOptions, parse_options
from .ending import Ending, StoppedBySignal, say
from .interruption import InterruptedJobError
from .job import Job
from .preflight import RefusedError
from .ranks import Ranks, read_ranks
from .run_end import RunEnd

FAILED = 1
REFUSED = 2
FAULT_BUDGET_SPENT = 3
SANDBOXES_LEFT = 4
INTERRUPTED = 5
PEER_SIGNS = ("connection closed by peer", "gloo", "nccl", "connection reset", "broken pipe", "processgroup")


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when all went well, 1 for an error, 2 for what can't work as asked, 3 when the platform failed for too long,
    4 when sandboxes may be left, 5 when it was asked to stop and can be gone on with, 128 + N after signal N."""
    options = parse_options(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    # About the pinned trainer's use of other libraries: nothing that whoever runs a job could change.
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
    ranks = read_ranks()
    job = Job(options, ranks)
    ending = Ending(lambda: job.close(is_whole=False))
    ending.install()
    code = FAILED
    try:
        code = attempt(job)
    except StoppedBySignal as stop:
        # It came while the reason to end was being told.
        code = stop.exit_code
    finally:
        ending.begin_clean_up()
        code = wind_up(job, code)
        ending.end()
    if code != 0:
        # The usual end of a process waits for peers that may be gone, and tries once more to finish the run.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def attempt(job: Job) -> int:
    """Does the work, and says in a word why it could not be done."""
    name = "" if job.ranks.is_alone else f"rank {job.ranks.rank}: "
    try:
        job.run()
        return 0
    except StoppedBySignal as stop:
        say(f"{name}{stop}{explain_signal(job.ranks)}")
        return stop.exit_code
    except (RefusedError, TaskFileError) as error:
        say(f"{name}{error}")
        return REFUSED
    except FaultBudgetSpentError as error:
        say(f"{name}{error}\n{name}{explain_saved(error.checkpoint, job.options)}")
        return FAULT_BUDGET_SPENT
    except InterruptedJobError as error:
        say(f"{name}{error}. {explain_saved(error.checkpoint, job.options)}")
        return INTERRUPTED
    except RewardError as error:
        say(f"{name}{error}")
        return FAILED
    except Exception as error:
        traceback.print_exc()
        if not job.ranks.is_alone and is_about_a_peer(error):
            say(f"{name}another process of this job is gone, so this one can't go on; its own output says why it went")
        return FAILED


def wind_up(job: Job, code: int) -> int:
    """Finishes the run and writes the files; the code to exit with."""
    end = job.close(is_whole=code == 0)
    try:
        path = job.write_files(end)
    except OSError as error:
        say(f"the metrics could not be written: {error}")
        code = code or FAILED
    else:
        if path is not None:
            print(f"Saved metrics to {path}")
    return code or report_end(end)


def report_end(end: RunEnd) -> int:
    if end.remaining:
        say(f"sandboxes are still there: {', '.join(end.remaining)}")
    if end.error:
        say(f"the run could not be finished, and expires by itself within minutes: {end.error}")
    return SANDBOXES_LEFT if end.remaining or end.error else 0


def explain_signal(ranks: Ranks) -> str:
    if ranks.is_alone:
        return ""
    return "; a launcher stops every process of a job when one of them is gone, and that one's output says why"


def explain_saved(checkpoint: str | None, options: TrainOptions) -> str:
    if checkpoint is None:
        return "Nothing had been trained, so no checkpoint was saved."
    return f"Saved {checkpoint}; go on from it with --resume-from-checkpoint --output-dir {options.output_dir}"


def is_about_a_peer(error: Exception) -> bool:
    return any(sign in str(error).lower() for sign in PEER_SIGNS)
