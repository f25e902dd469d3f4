"""Does what `--model` says: learn, fail, hang (in spite of everything) or sleep. Its files are the trainer's."""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

INTERRUPTED = 5


def latest(output: Path) -> int:
    return max((int(folder.name.split("-")[1]) for folder in output.glob("checkpoint-*")), default=0)


def save(output: Path, step: int) -> None:
    folder = output / f"checkpoint-{step}"
    folder.mkdir()
    (folder / "weights").write_text("w" * 100_000)
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    for old in sorted(output.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))[:-2]:
        for file in old.iterdir():
            file.unlink()
        old.rmdir()


def learn(output: Path, first: int, steps: int, save_every: int) -> int:
    stop = Path(os.environ["CODE_REWARDS_STOP_FILE"])
    for step in range(first + 1, steps + 1):
        time.sleep(0.5)
        with (output / "steps.txt").open("a") as file:
            file.write(f"{step}\n")
        print(f"step {step}/{steps}")
        if stop.exists():
            save(output, step)
            return INTERRUPTED
        if step % save_every == 0:
            save(output, step)
    (output / "checkpoint").mkdir(exist_ok=True)
    (output / "checkpoint" / "model").write_text("learnt")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--output-dir", type=Path, required=True)
    parser.add_argument("--max-steps", type=int, default=7)
    parser.add_argument("--save-steps", type=int, default=3)
    parser.add_argument("--tasks", default="")
    parser.add_argument("--resume-from-checkpoint", action="store_true")
    parser.add_argument("--note", action="append", default=[])
    options = parser.parse_args()
    found = {
        "arguments": sys.argv[1:],
        "url": os.environ.get("CODE_REWARDS_URL"),
        "key_bytes": len(os.environ.get("CODE_REWARDS_API_KEY", "")),
        "tasks": Path(options.tasks).read_text() if options.tasks else None,
        "resumed_from": latest(options.output_dir) if options.resume_from_checkpoint else None,
    }
    (options.output_dir / "found.json").write_text(json.dumps(found))
    print(f"model {options.model}")
    if options.model == "fail":
        return 3
    if options.model == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            print("still here")
            time.sleep(0.5)
    if options.model == "sleep":
        time.sleep(3_600)
    return learn(options.output_dir, found["resumed_from"] or 0, options.max_steps, options.save_steps)


sys.exit(main())
